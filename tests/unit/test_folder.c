/* SPDX-License-Identifier: MIT */
/* test_folder.c - whose folders heaptap writes to, and how it makes a file there. */
#include "unit.h"

#include "base/err.h"
#include "base/folder.h"
#include "temp_folder.h"

#define STRANGER 65534

static const char *at(void **state, const char *name, char buf[static 160])
{
	const struct temp_folder *f = *state;

	snprintf(buf, 160, "%s/%s", f->path, name);
	return buf;
}

/* A folder of the user uid, with this mode. */
static void make(void **state, const char *name, uid_t uid, mode_t mode)
{
	char path[160];

	assert_int_equal(mkdir(at(state, name, path), 0700), 0);
	assert_int_equal(chown(path, uid, uid), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void check(void **state, const char *name, enum folder_rule rule, int want, const char *says)
{
	char path[160];
	struct err why = { 0 };
	int fd = -1, err = folder_open(at(state, name, path), rule, &fd, &why);

	if (err != want)
		print_message("%s, rule %d: %d, not %d: %s\n", name, rule, err, want, why.text);
	assert_int_equal(err, want);
	assert_int_equal(fd >= 0, !want);
	if (says && !strstr(why.text, says))
		print_message("'%s' is not in '%s'\n", says, why.text);
	assert_true(!says || strstr(why.text, says));
	if (fd >= 0)
		close(fd);
}

TEST_WITH(whose_it_is, new_folder, remove_folder)
{
	char path[160], target[160];

	if (geteuid())
		skip();
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	make(state, "own", 0, 0755);
	make(state, "group", 0, 0775);
	make(state, "sticky", 0, 01777);
	make(state, "strange", STRANGER, 0755);
	make(state, "strange/inner", 0, 0755);
	check(state, "own", FOLDER_SHARED, 0, NULL);
	check(state, "own/", FOLDER_SHARED, 0, NULL);
	check(state, "sticky", FOLDER_SHARED, 0, NULL);
	check(state, "group", FOLDER_SHARED, -EPERM, "/group'");
	check(state, "strange", FOLDER_SHARED, -EPERM, "belongs to user 65534");
	check(state, "strange/inner", FOLDER_SHARED, -EPERM, "/strange' belongs to user 65534");
	check(state, "none", FOLDER_SHARED, -ENOENT, NULL);
	check(state, "strange", FOLDER_ANY, 0, NULL);
	check(state, "strange/inner", FOLDER_ANY, 0, NULL);
	/* what heaptap keeps for itself */
	check(state, "own", FOLDER_OURS, 0, NULL);
	check(state, "made", FOLDER_OURS, 0, NULL);
	check(state, "sticky", FOLDER_OURS, -EPERM, "others can change the files");
	check(state, "strange/made", FOLDER_OURS, -EPERM, "belongs to user 65534");
	assert_int_equal(access(at(state, "strange/made", path), F_OK), -1);
	/* links on the way: root's own, and one that a stranger has laid */
	assert_int_equal(symlink(at(state, "own", target), at(state, "link", path)), 0);
	check(state, "link", FOLDER_SHARED, 0, NULL);
	assert_int_equal(symlink(target, at(state, "sticky/link", path)), 0);
	assert_int_equal(lchown(path, STRANGER, STRANGER), 0);
	check(state, "sticky/link", FOLDER_SHARED, -EPERM, "the link 'link' in the path");
	/* Who became root by sudo is no stranger, and has his own group. */
	setenv("SUDO_UID", "65534", 1);
	check(state, "strange", FOLDER_SHARED, 0, NULL);
	assert_int_equal(chmod(at(state, "strange", path), 0775), 0);
	check(state, "strange", FOLDER_SHARED, -EPERM, "others can change the files");
	setenv("SUDO_GID", "65534", 1);
	check(state, "strange", FOLDER_SHARED, 0, NULL);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static int open_folder(void **state)
{
	const struct temp_folder *f = *state;

	return open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

TEST_WITH(a_file_is_there_whole_or_not_at_all, new_folder, remove_folder)
{
	char path[160], target[160], buf[16] = "";
	int dir = keep_fd(open_folder(state)), fd;
	struct new_file f;
	struct stat st;

	assert_true(dir >= 0);
	assert_int_equal(new_file_open(dir, ".p-", &f), 0);
	assert_true(new_file_is_left(f.name, ".p-"));
	assert_false(new_file_is_left(f.name, ".q-"));
	assert_false(new_file_is_left("kept", ".p-"));
	assert_int_equal(write(f.fd, "whole", 5), 5);
	/* A link that lies ready under its name is replaced and not followed. */
	fd = open(at(state, "precious", target), O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink(target, at(state, "out", path)), 0);
	assert_int_equal(new_file_commit(&f, "out", false), -EEXIST);
	assert_int_equal(new_file_commit(&f, "out", true), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_size, 0);
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, buf, sizeof(buf)), 5);
	close(fd);
	new_file_drop(&f); /* nothing more */
	assert_int_equal(access(path, F_OK), 0);
	/* One that is dropped leaves nothing. */
	assert_int_equal(new_file_open(dir, ".p-", &f), 0);
	snprintf(buf, sizeof(buf), "%.15s", f.name);
	assert_int_equal(faccessat(dir, f.name, F_OK, 0), 0);
	new_file_drop(&f);
	assert_int_equal(new_file_open(dir, ".p-", &f), 0);
	assert_true(strncmp(f.name, buf, 15)); /* no name twice */
	new_file_drop(&f);
	assert_int_equal(rmdir(((const struct temp_folder *)*state)->path), -1);
}

RUN_TESTS()
