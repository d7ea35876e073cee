/* SPDX-License-Identifier: MIT */
/* Where the group of a process is, version 1 and 2, and which limit of those above it counts. */
#include "unit.h"

#include "proc/cgroup.h"

#define V2_LINE "25 30 0:24 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_LINE "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define CPU_LINE "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"

TEST(test_mounts)
{
	static const char *const none[] = { "", "\n", "25 30", CPU_LINE,
					    "1 2 3 / /memory rw - tmpfs tmpfs rw,memory\n" };
	struct cgroup_mount m;

	assert_int_equal(cgroup_mount_find(CPU_LINE V2_LINE, &m), 0);
	assert_true(m.is_v2);
	assert_string_equal(m.point, "/sys/fs/cgroup");
	assert_string_equal(m.root, "/");
	/* both: the controller is in the older one, whatever the order */
	assert_int_equal(cgroup_mount_find(V1_LINE V2_LINE, &m), 0);
	assert_false(m.is_v2);
	assert_int_equal(cgroup_mount_find(V2_LINE V1_LINE CPU_LINE, &m), 0);
	assert_false(m.is_v2);
	assert_string_equal(m.point, "/sys/fs/cgroup/memory");
	each_case(c, none)
		assert_int_equal(cgroup_mount_find(*c, &m), -ENOENT);
	assert_int_equal(cgroup_mount_find("1 2 3 / /a\\040b rw - cgroup2 cgroup2 rw\n", &m), 0);
	assert_string_equal(m.point, "/a b");
}

TEST(test_dirs)
{
	static const struct {
		const char *root, *text, *want; /* NULL: none */
		bool is_v2;
	} cases[] = {
		{ "/", "0::/a.slice/b\n", "/m/a.slice/b", true },
		{ "/", "0::/\n", "/m", true },
		{ "/", "9:name=systemd:/x\n4:memory:/y:z\n0::/q\n", "/m/y:z", false },
		{ "/", "4:cpu,memory:/y", "/m/y", false },
		{ "/", "4:memory:/y\n", NULL, true },
		{ "/", "0::/y\n", NULL, false },
		{ "/", "4:memoryless:/y\n", NULL, false },
		{ "/docker/1", "0::/docker/1/a\n", "/m/a", true },
		{ "/docker/1", "0::/docker/1\n", "/m", true },
		{ "/docker/1", "0::/docker/12\n", NULL, true },
		{ "/docker/1", "0::/other\n", NULL, true },
		{ "/", "0::/../../x\n", NULL, true },
		{ "/", "0::relative\n", NULL, true },
		{ "/", "0:\n", NULL, true },
		{ "/", "", NULL, true },
	};

	each_case(c, cases) {
		struct cgroup_mount m = { .point = "/m", .is_v2 = c->is_v2 };
		char dir[CGROUP_PATH_BYTES];
		int err;

		snprintf(m.root, sizeof(m.root), "%s", c->root);
		err = cgroup_memory_dir(&m, c->text, dir);
		if (err != (c->want ? 0 : -ENOENT) || (!err && strcmp(dir, c->want) != 0))
			fail_msg("'%s' below %s: %d", c->text, c->root, err);
	}
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

/* A tree of files like the kernel's: top/mid/leaf. */
TEST(test_limits)
{
	struct cgroup_mount m = { .point = "/tmp/heaptap-test-XXXXXX", .is_v2 = true };
	char mid[128], leaf[192], dir[CGROUP_PATH_BYTES], command[256];
	uint64_t bytes;

	assert_non_null(mkdtemp(m.point));
	snprintf(mid, sizeof(mid), "%s/mid", m.point);
	snprintf(leaf, sizeof(leaf), "%s/leaf", mid);
	assert_int_equal(mkdir(mid, 0700), 0);
	assert_int_equal(mkdir(leaf, 0700), 0);
	assert_int_equal(cgroup_memory_limit(&m, leaf, &bytes, dir), -ENODATA);

	put(leaf, "memory.max", "max\n");
	assert_int_equal(cgroup_memory_limit(&m, leaf, &bytes, dir), 0);
	assert_true(bytes == CGROUP_UNLIMITED);
	assert_string_equal(dir, leaf);
	put(mid, "memory.max", "5000\n");
	assert_int_equal(cgroup_memory_limit(&m, leaf, &bytes, dir), 0);
	assert_true(bytes == 5000);
	assert_string_equal(dir, mid);
	put(leaf, "memory.max", "4000\n");
	put(leaf, "memory.current", "1234\n");
	assert_int_equal(cgroup_memory_limit(&m, leaf, &bytes, dir), 0);
	assert_true(bytes == 4000);
	assert_string_equal(dir, leaf);
	assert_int_equal(cgroup_memory_usage(&m, dir, &bytes), 0);
	assert_true(bytes == 1234);
	assert_int_not_equal(cgroup_memory_usage(&m, mid, &bytes), 0);

	m.is_v2 = false;
	put(m.point, "memory.limit_in_bytes", "9223372036854771712\n");
	put(leaf, "memory.limit_in_bytes", "9223372036854771712\n");
	put(mid, "memory.limit_in_bytes", "7000\n");
	assert_int_equal(cgroup_memory_limit(&m, leaf, &bytes, dir), 0);
	assert_true(bytes == 7000);
	put(mid, "memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(cgroup_memory_limit(&m, leaf, &bytes, dir), 0);
	assert_true(bytes == CGROUP_UNLIMITED);
	/* not below the mount */
	assert_int_equal(cgroup_memory_limit(&m, "/", &bytes, dir), -ENODATA);
	snprintf(command, sizeof(command), "rm -r '%s'", m.point);
	assert_int_equal(system(command), 0);
}

RUN_TESTS()
