/* SPDX-License-Identifier: MIT */
/* test_cgroup_room.c - cgroups near their limits, in hierarchies made of plain files. */
#include "unit.h"

#include "proc/cgroup.h"

struct tree {
	struct cgroup_mount mount;
};

static void put(const struct tree *t, const char *path, const char *text)
{
	char full[4200];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", t->mount.point, path);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int new_tree(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));
	char path[4200];

	snprintf(t->mount.point, sizeof(t->mount.point), "/tmp/heaptap-cgroup-XXXXXX");
	snprintf(t->mount.root, sizeof(t->mount.root), "/");
	if (!mkdtemp(t->mount.point))
		return -1;
	snprintf(path, sizeof(path), "%s/pod", t->mount.point);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/pod/one", t->mount.point);
	mkdir(path, 0700);
	*state = t;
	return 0;
}

static int remove_tree(void **state)
{
	struct tree *t = *state;
	char command[4200];

	snprintf(command, sizeof(command), "rm -rf '%s'", t->mount.point);
	if (system(command))
		return -1;
	free(t);
	return 0;
}

static int open_one(const struct tree *t, const char *path, struct cgroup_room **ret)
{
	char dir[4200];

	snprintf(dir, sizeof(dir), "%s/%s", t->mount.point, path);
	return cgroup_room_open(&t->mount, dir, ret);
}

static struct cgroup_room_reading read_one(struct cgroup_room *c)
{
	struct cgroup_room_reading r;

	assert_int_equal(cgroup_room_read(c, &r), 0);
	return r;
}

static void reads(struct cgroup_room *c, uint64_t usage, uint64_t working, uint64_t limit,
		  uint64_t event_cnt)
{
	struct cgroup_room_reading r = read_one(c);

	assert_int_equal(r.usage_bytes, usage);
	assert_int_equal(r.working_bytes, working);
	assert_int_equal(r.limit_bytes, limit);
	assert_int_equal(r.event_cnt, event_cnt);
}

TEST_WITH(test_v2, new_tree, remove_tree)
{
	struct tree *t = *state;
	struct cgroup_room *c;

	t->mount.is_v2 = true;
	put(t, "pod/one/memory.current", "600\n");
	put(t, "pod/one/memory.max", "max\n");
	put(t, "pod/one/memory.high", "max\n");
	put(t, "pod/one/memory.stat", "anon 1\ninactive_file 500\nactive_file 7\n");
	put(t, "pod/one/memory.events", "low 0\nhigh 5\nmax 9\noom 1\noom_kill 2\n");
	put(t, "pod/memory.current", "900\n");
	put(t, "pod/memory.max", "1000\n");
	put(t, "pod/memory.high", "max\n");
	put(t, "pod/memory.stat", "inactive_file 100\n");
	put(t, "pod/memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 4\n");
	assert_int_equal(open_one(t, "pod/one", &c), 0);
	/* the pod's limit binds */
	reads(c, 900, 800, 1000, 7);
	/* its own is nearer, and memory.high is what holds it back */
	put(t, "pod/one/memory.max", "800\n");
	put(t, "pod/one/memory.high", "610\n");
	put(t, "pod/one/memory.stat", "inactive_file 5\n");
	cgroup_room_refresh(c);
	reads(c, 600, 595, 610, 7 + 5 + 1 + 2);
	/* what happens to another container of the pod is in the pod's sums, and does not count */
	put(t, "pod/memory.events", "low 0\nhigh 70\nmax 9\noom 30\noom_kill 40\n");
	put(t, "pod/memory.events.local", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 0\n");
	reads(c, 600, 595, 610, 3 + 5 + 1 + 2);
	/* without any limit */
	put(t, "pod/one/memory.max", "max\n");
	put(t, "pod/one/memory.high", "max\n");
	put(t, "pod/memory.max", "max\n");
	cgroup_room_refresh(c);
	assert_int_equal(read_one(c).usage_bytes, 600);
	assert_int_equal(read_one(c).limit_bytes, 0);
	cgroup_room_close(c);
}

TEST_WITH(test_v1, new_tree, remove_tree)
{
	struct tree *t = *state;
	struct cgroup_room *c;

	put(t, "memory.usage_in_bytes", "5000\n");
	put(t, "memory.limit_in_bytes", "9223372036854771712\n");
	put(t, "pod/memory.usage_in_bytes", "2000\n");
	put(t, "pod/memory.limit_in_bytes", "9223372036854771712\n");
	put(t, "pod/one/memory.usage_in_bytes", "950\n");
	put(t, "pod/one/memory.limit_in_bytes", "1000\n");
	put(t, "pod/one/memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
	put(t, "pod/one/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	assert_int_equal(open_one(t, "pod/one", &c), 0);
	reads(c, 950, 900, 1000, 3);
	/* files that do not say what they should */
	put(t, "pod/one/memory.stat", "total_inactive_file 99999999\n");
	put(t, "pod/one/memory.oom_control", "");
	reads(c, 950, 0, 1000, 0);
	cgroup_room_close(c);
	assert_int_equal(cgroup_room_open(&t->mount, "/", &c), -ENOENT);
	assert_int_equal(open_one(t, "pod/two", &c), -ENOENT);
}

/* This process's own, whatever the machine has. */
TEST(test_own)
{
	char dir[CGROUP_PATH_BYTES];
	struct cgroup_room_reading r;
	struct cgroup_mount mount;
	struct cgroup_room *c;

	if (cgroup_find_mount(&mount) || cgroup_room_find_dir(&mount, getpid(), dir) ||
	    cgroup_room_open(&mount, dir, &c))
		skip();
	r = read_one(c);
	assert_true(r.working_bytes <= r.usage_bytes);
	cgroup_room_close(c);
	assert_int_equal(cgroup_room_find_dir(&mount, 0x7fffffff, dir), -ENOENT);
}

RUN_TESTS()
