/* SPDX-License-Identifier: MIT */
/* A cgroup as it is named, and who is in it: hybrid, v1, v2, containers, odd lines. */
#include "unit.h"

#include "base/err.h"
#include "proc/cgroup.h"

static const char v2_mounts[] =
	"23 28 0:22 / /sys rw,nosuid shared:6 - sysfs sysfs rw\n"
	"35 23 0:29 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
static const char v1_mounts[] =
	"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/memory rw shared:3 - cgroup cgroup rw,memory\n"
	"33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	"34 31 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
	"35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
/* in a container: only the part of the tree that is its own is shown */
static const char inner_mounts[] =
	"812 790 0:29 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
	"813 790 0:30 /docker/abc /odd\\040place rw master:4 - cgroup cgroup rw,memory\n";

static void assert_place(const char *text, const char *mounts, const char *path,
			 const char *controllers)
{
	struct cgroup_place place;

	assert_int_equal(cgroup_parse(text, mounts, "", &place), 0);
	assert_string_equal(place.path, path);
	if (controllers)
		assert_string_equal(place.controllers, controllers);
	else
		assert_null(place.controllers);
	cgroup_release(&place);
}

TEST(test_parse)
{
	struct cgroup_place place;

	assert_place("/sys/fs/cgroup/system.slice/x.service", v2_mounts, "/system.slice/x.service",
		     "");
	assert_place("/sys/fs/cgroup/a/b/", v2_mounts, "/a/b", "");
	assert_place("/sys/fs/cgroup", v2_mounts, "/", "");
	assert_place("/sys/fs/cgroupx/a", v2_mounts, "/sys/fs/cgroupx/a", NULL);
	assert_place("/system.slice", v2_mounts, "/system.slice", NULL);
	assert_place("system.slice/x", v2_mounts, "/system.slice/x", NULL);
	assert_place("/", v2_mounts, "/", NULL);
	assert_place("/sys/fs/cgroup/memory/docker/abc", v1_mounts, "/docker/abc", "rw,memory");
	assert_place("/sys/fs/cgroup/cpu,cpuacct/a", v1_mounts, "/a", "rw,cpu,cpuacct");
	assert_place("/sys/fs/cgroup/unified/a", v1_mounts, "/a", "");
	assert_place("/sys/fs/cgroup/a", inner_mounts, "/docker/abc/a", "");
	assert_place("/odd place/a", inner_mounts, "/docker/abc/a", "rw,memory");
	assert_place("/a..b/..c", "", "/a..b/..c", NULL);
	assert_int_equal(cgroup_parse("", v2_mounts, "", &place), -EINVAL);
	assert_int_equal(cgroup_parse("/a/../b", v2_mounts, "", &place), -EINVAL);
	assert_int_equal(cgroup_parse("..", v2_mounts, "", &place), -EINVAL);
}

static int collect(void *ctx, const char *folder)
{
	char *all = ctx;
	size_t len = strlen(all);

	snprintf(all + len, 1024 - len, "%s;", folder);
	return 0;
}

static void assert_folders(const char *text, const char *mounts, const char *want)
{
	struct cgroup_place place;
	char all[1024] = "";

	assert_int_equal(cgroup_parse(text, mounts, "", &place), 0);
	assert_int_equal(cgroup_each_folder(&place, mounts, collect, all), 0);
	assert_string_equal(all, want);
	cgroup_release(&place);
}

TEST(test_folders)
{
	assert_folders("/a", v2_mounts, "/sys/fs/cgroup/a;");
	assert_folders("/", v2_mounts, "/sys/fs/cgroup;");
	assert_folders("/sys/fs/cgroup/memory/a", v1_mounts, "/sys/fs/cgroup/memory/a;");
	assert_folders("/a", v1_mounts,
		       "/sys/fs/cgroup/memory/a;/sys/fs/cgroup/cpu,cpuacct/a;"
		       "/sys/fs/cgroup/systemd/a;/sys/fs/cgroup/unified/a;");
	assert_folders("/docker/abc/x", inner_mounts, "/sys/fs/cgroup/x;/odd place/x;");
	assert_folders("/docker/abcd", inner_mounts, "");
	assert_folders("/a", "", "");
	assert_folders("/a", "no mountinfo at all\n1 2 3\n", "");
}

static bool holds(const char *path, const char *controllers, const char *lines)
{
	struct cgroup_place place = { (char *)path, (char *)controllers, "" };

	return cgroup_holds(&place, lines);
}

TEST(test_holds)
{
	static const char v1[] =
		"9:memory:/docker/abc\n8:cpu,cpuacct:/x\n1:name=systemd:/y/z\n0::/u\n";

	assert_true(holds("/a", NULL, "0::/a\n"));
	assert_true(holds("/a", NULL, "0::/a/b/c"));
	assert_true(holds("/a", "", "0::/a\n"));
	assert_false(holds("/a", NULL, "0::/ab\n"));
	assert_false(holds("/a/b", NULL, "0::/a\n"));
	assert_true(holds("/", NULL, "0::/\n"));
	assert_true(holds("/", "", "0::/a\n"));
	assert_true(holds("/docker/abc", "rw,memory", v1));
	assert_false(holds("/docker/abc", "", v1));
	assert_false(holds("/docker/abc", "rw,cpu,cpuacct", v1));
	assert_true(holds("/docker", NULL, v1));
	assert_true(holds("/x", "rw,cpu,cpuacct", v1));
	assert_true(holds("/y", "rw,xattr,name=systemd", v1));
	assert_true(holds("/u", "", v1));
	assert_false(holds("/u", "rw,memory", v1));
	/* a path with colons */
	assert_true(holds("/a:b", NULL, "0::/a:b/c\n"));
	assert_false(holds("/a", NULL, ""));
	assert_false(holds("/a", NULL, "\n:\n::\n/a\n"));
}

/* In a container that is shown the host's hierarchy: all is told as seen from its own group. */
TEST(test_origin)
{
	static const char shown[] = "812 790 0:29 /../../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
				    "813 790 0:29 /../podB /podB ro - cgroup2 cgroup rw\n"
				    "814 790 0:29 /../../../../.. /odd ro - cgroup2 cgroup rw\n";
	static const char origin[] = "/kubepods/podA/ctr";
	static const struct {
		const char *path, *want; /* NULL: there is no such place */
	} cases[] = {
		{ "/", "/kubepods/podA/ctr" },
		{ "/sub", "/kubepods/podA/ctr/sub" },
		{ "/..", "/kubepods/podA" },
		{ "/../other/x", "/kubepods/podA/other/x" },
		{ "/../../..", "/" },
		{ "/../../../init.scope", "/init.scope" },
		{ "/..a", "/kubepods/podA/ctr/..a" },
		{ "/../../../..", NULL },
	};
	struct cgroup_place place;
	char all[1024] = "", whole[64];

	each_case(c, cases) {
		assert_int_equal(cgroup_absolute(origin, c->path, whole, sizeof(whole)),
				 c->want ? 0 : -EINVAL);
		if (c->want)
			assert_string_equal(whole, c->want);
	}
	assert_int_equal(cgroup_absolute("", "/a", whole, sizeof(whole)), 0);
	assert_string_equal(whole, "/a");
	assert_int_equal(cgroup_absolute("", "/", whole, sizeof(whole)), 0);
	assert_string_equal(whole, "/");
	assert_int_equal(cgroup_absolute("", "/../a", whole, sizeof(whole)), -EINVAL);
	assert_int_equal(cgroup_absolute(origin, "/sub", whole, 10), -ENAMETOOLONG);
	assert_int_equal(cgroup_parse("/sys/fs/cgroup/kubepods/podB", shown, origin, &place), 0);
	assert_string_equal(place.path, "/kubepods/podB");
	assert_true(cgroup_holds(&place, "0::/../../podB/ctr\n"));
	assert_false(cgroup_holds(&place, "0::/../../podBB/ctr\n"));
	assert_false(cgroup_holds(&place, "0::/\n"));
	assert_false(cgroup_holds(&place, "0::/../podB\n"));
	assert_int_equal(cgroup_each_folder(&place, shown, collect, all), 0);
	assert_string_equal(all, "/sys/fs/cgroup/kubepods/podB;");
	cgroup_release(&place);
	assert_int_equal(cgroup_parse("/podB/x", shown, origin, &place), 0);
	assert_string_equal(place.path, "/kubepods/podA/podB/x");
	cgroup_release(&place);
	assert_int_equal(cgroup_parse("/kubepods/podA", shown, origin, &place), 0);
	assert_true(cgroup_holds(&place, "0::/\n"));
	assert_true(cgroup_holds(&place, "0::/../sidecar\n"));
	assert_false(cgroup_holds(&place, "0::/../../podB\n"));
	cgroup_release(&place);
}

/* We are found where we are, by any way up from there. */
TEST(test_origin_find)
{
	char root[4096] = "", origin[CGROUP_PATH_BYTES], dir[CGROUP_PATH_BYTES];
	struct cgroup_mount mount;
	const char *below;

	if (cgroup_find_mount(&mount) || cgroup_room_find_dir(&mount, getpid(), dir))
		skip();
	below = dir + strlen(mount.point);
	for (const char *at = below; (at = strchr(at, '/')); at++)
		strcat(root, "/..");
	if (!root[0])
		skip(); /* in the topmost one */
	assert_int_equal(cgroup_origin_find(mount.point, root, "/", origin, sizeof(origin)), 0);
	assert_string_equal(origin, below);
	strcat(root, "/..");
	assert_int_equal(cgroup_origin_find(mount.point, root, "/", origin, sizeof(origin)),
			 -ENOENT);
	assert_int_equal(cgroup_origin_find(mount.point, "/../x", "/", origin, sizeof(origin)),
			 -ENOENT);
}

TEST(test_find)
{
	struct cgroup_place place;
	struct err why = { 0 };

	assert_int_equal(cgroup_find("/there/is/no/such/cgroup", &place, &why), -ENOENT);
	assert_string_equal(place.path, "/there/is/no/such/cgroup");
	cgroup_release(&place);
	assert_says(why.text, "no cgroup '/there/is/no/such/cgroup'");
	assert_int_equal(cgroup_find("", &place, &why), -EINVAL);
	assert_int_equal(cgroup_find("/etc", &place, &why), -ENOENT);
	cgroup_release(&place);
}

RUN_TESTS()
