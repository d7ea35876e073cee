/* SPDX-License-Identifier: MIT */
/*
 * test_debug_files.c - separate debug files: found in the target's root, and only the right ones.
 *
 * The root is a temporary directory; what is found is recognised by its path.
 */
#include "symbol_programs.h"

#include "elf/elf_budget.h"
#include "symbol/debug_files.h"

/* Once for all cases. */
#define BUILD                                                                             \
	"{ [ -e q.debug ] || { gcc -g -O1 -Wl,--build-id=0x1122334455667788 -o q p.c && " \
	"objcopy --only-keep-debug q q.debug; }; } && cp q p && cp q.debug p.debug"

/* A root with /app/p in it, stripped, and its debug file at `place` below the root. */
static bool make_root(const char *dir, const char *place, const char *strip)
{
	return shell("cd '%s' && rm -rf root && mkdir -p root/app && " BUILD
		     " && cp p root/app/p && "
		     "mkdir -p \"root/$(dirname %s)\" && cp p.debug 'root%s' && "
		     "cd root/app && %s",
		     dir, place, place, strip);
}

/* "" when nothing was found. */
static void find(const char *dir, const char *name, char *ret_path)
{
	char root[512], file[1024];
	struct elf_file *ef;
	int fd;

	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(file, sizeof(file), "%s%s", root, name);
	assert_int_equal(elf_file_open(file, &ef), 0);
	fd = debug_files_open(ef, name, root, ret_path);
	elf_file_close(ef);
	if (fd < 0) {
		assert_int_equal(fd, -ENOENT);
		ret_path[0] = '\0';
		return;
	}
	close(fd);
}

#define BY_ID "/usr/lib/debug/.build-id/11/22334455667788.debug"

TEST(finds_by_build_id_and_by_link)
{
	static const char no_link[] = "strip p";
	static const char link[] = "objcopy --remove-section=.note.gnu.build-id "
				   "--add-gnu-debuglink=../../p.debug p && strip p";
	static const struct {
		const char *place, *strip;
		bool is_found;
	} cases[] = {
		{ BY_ID, no_link, true },
		{ "/usr/lib/debug/.build-id/11/22334455667789.debug", no_link, false },
		{ "/app/p.debug", no_link, false },
		{ "/app/p.debug", link, true },
		{ "/app/.debug/p.debug", link, true },
		{ "/usr/lib/debug/app/p.debug", link, true },
		{ "/usr/lib/debug/p.debug", link, false },
	};
	char path[PATH_MAX];

	each_case(c, cases) {
		if (!make_root(*state, c->place, c->strip))
			skip();
		find(*state, "/app/p", path);
		assert_string_equal(path, c->is_found ? c->place : "");
	}
}

TEST(wrong_files_do_not_count)
{
	static const char *const spoil[] = {
		/* another program under the right name */
		"gcc -g -DOTHER -Wl,--build-id=0x99 -o root" BY_ID " p.c",
		"(echo no ELF >root" BY_ID ")",
		"(: >root" BY_ID ")",
		"rm root" BY_ID " && mkdir root" BY_ID,
		"rm root" BY_ID " && mkfifo root" BY_ID,
		"rm root" BY_ID " && ln -s /dev/zero root" BY_ID,
		/* leads out of the root: below it there is no such file */
		"rm root" BY_ID " && ln -s \"$PWD/p.debug\" root" BY_ID,
		"rm root" BY_ID " && ln -s ../../../../../../p.debug root" BY_ID,
		"rm root" BY_ID " && ln -s /proc/self/exe root" BY_ID,
	};
	char path[PATH_MAX];

	each_case(c, spoil) {
		if (!make_root(*state, BY_ID, "strip p"))
			skip();
		assert_true(shell("cd '%s' && %s", (char *)*state, *c));
		find(*state, "/app/p", path);
		if (path[0])
			fail_msg("'%s': found %s", *c, path);
	}
}

TEST(links_are_resolved_in_the_root)
{
	char path[PATH_MAX];

	if (!make_root(*state, BY_ID, "strip p"))
		skip();
	assert_true(shell("cd '%s/root' && mkdir store && mv ." BY_ID " store/x && "
			  "ln -s /store/x ." BY_ID,
			  (char *)*state));
	find(*state, "/app/p", path);
	assert_string_equal(path, BY_ID);
}

TEST(link_with_a_wrong_crc)
{
	char path[PATH_MAX];

	if (!make_root(*state, "/app/p.debug",
		       "objcopy --remove-section=.note.gnu.build-id "
		       "--add-gnu-debuglink=../../p.debug p && strip p && (echo >>p.debug)"))
		skip();
	find(*state, "/app/p", path);
	assert_string_equal(path, "");
}

/* Whoever can write into the target's root could make us read for hours. */
TEST(link_to_a_huge_file)
{
	char path[PATH_MAX];

	if (!make_root(*state, "/app/p.debug",
		       "objcopy --remove-section=.note.gnu.build-id "
		       "--add-gnu-debuglink=../../p.debug p && strip p && truncate -s 1T p.debug"))
		skip();
	find(*state, "/app/p", path);
	assert_string_equal(path, "");
}

/* So could a small file that names a large one, which is at each of the places: the right one even. */
TEST(link_costs_what_the_file_may)
{
	char path[PATH_MAX], file[512];
	struct elf_budget cost;
	struct elf_file *ef;

	if (!make_root(
		    *state, "/app/p.debug",
		    "truncate -s 900M p.debug ../../p.debug && objcopy --remove-section=.note.gnu.build-id "
		    "--add-gnu-debuglink=../../p.debug p && strip p"))
		skip();
	snprintf(file, sizeof(file), "%s/root/app/p", (char *)*state);
	assert_int_equal(elf_file_open(file, &ef), 0);
	snprintf(file, sizeof(file), "%s/root", (char *)*state);
	assert_int_equal(debug_files_open(ef, "/app/p", file, path), -ENOENT);
	cost = *elf_file_budget(ef);
	assert_false(cost.is_over); /* what else there is to read of it is read */
	elf_file_close(ef);
}

TEST(finds_without_the_file)
{
	static const struct {
		const char *id;
		bool is_found;
	} cases[] = { { "1122334455667788", true },
		      { "1122334455667789", false },
		      { "", false },
		      { "11", false },
		      { "112", false },
		      { "../2334455667788", false } };
	char root[512], path[PATH_MAX];

	if (!make_root(*state, BY_ID, "rm p"))
		skip();
	snprintf(root, sizeof(root), "%s/root", (char *)*state);
	each_case(c, cases) {
		int fd = debug_files_open_id(c->id, root, path);

		assert_int_equal(fd >= 0, c->is_found);
		if (fd >= 0)
			close(fd);
	}
}

RUN_TESTS_WITH(programs_setup, programs_teardown)
