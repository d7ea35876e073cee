/* SPDX-License-Identifier: MIT */
/* Where a recording is written to: nothing is overwritten, no link is followed, nothing is lost. */
#include "unit.h"

#include "base/err.h"
#include "record/out_file.h"
#include "temp_folder.h"

static const char *at(void **state, const char *name, char buf[static 128])
{
	const struct temp_folder *f = *state;

	snprintf(buf, 128, "%s/%s", f->path, name);
	return buf;
}

static void make(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void expect(const char *path, const char *text)
{
	char buf[64] = "";
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_true(read(fd, buf, sizeof(buf) - 1) >= 0);
	close(fd);
	assert_string_equal(buf, text);
}

static int file_cnt(void **state)
{
	const struct temp_folder *f = *state;
	char command[128];
	FILE *p;
	int n = -1;

	snprintf(command, sizeof(command), "ls -A '%s' | wc -l", f->path);
	p = popen(command, "r");
	assert_non_null(p);
	assert_int_equal(fscanf(p, "%d", &n), 1);
	pclose(p);
	return n;
}

static struct out_file *open_new(const char *path, bool replaces)
{
	struct out_file *of = NULL;
	struct err why = { 0 };

	assert_int_equal(out_file_open(path, replaces, "", &of, &why), 0);
	return of;
}

static int open_err(const char *path, bool replaces, struct err *why)
{
	struct out_file *of = NULL;
	int err;

	err = out_file_open(path, replaces, "", &of, why);
	assert_true(err < 0);
	assert_null(of);
	assert_says(why->text, path);
	return err;
}

static void write_new(struct out_file *of)
{
	assert_int_equal(write(out_file_fd(of), "new", 3), 3);
}

TEST_WITH(test_new_file, new_folder, remove_folder)
{
	struct out_file *of;
	char path[128];
	struct stat st;

	of = open_new(at(state, "p", path), false);
	write_new(of);
	assert_int_equal(access(path, F_OK), -1); /* not there before it is whole */
	assert_int_equal(out_file_commit(of), 0);
	expect(path, "new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_string_equal(out_file_path(of), path);
	out_file_free(of);
	assert_int_equal(file_cnt(state), 1);
}

TEST_WITH(test_given_up, new_folder, remove_folder)
{
	char path[128];

	out_file_free(open_new(at(state, "p", path), false));
	assert_int_equal(file_cnt(state), 0);
}

TEST_WITH(test_existing, new_folder, remove_folder)
{
	struct out_file *of;
	char path[128];
	struct err why;

	make(at(state, "p", path), "old");
	assert_int_equal(open_err(path, false, &why), -EEXIST);
	assert_says(why.text, "--force");
	expect(path, "old");
	assert_int_equal(file_cnt(state), 1);
	of = open_new(path, true);
	write_new(of);
	expect(path, "old");
	assert_int_equal(out_file_commit(of), 0);
	expect(path, "new");
	out_file_free(of);
	assert_int_equal(file_cnt(state), 1);
}

/* Somebody makes the file while it is recorded: both are kept. */
TEST_WITH(test_made_meanwhile, new_folder, remove_folder)
{
	static const struct {
		const char *name, *taken, *then;
	} cases[] = { { "p.pb.gz", "p-1.pb.gz", "p-2.pb.gz" }, { "plain", "plain-1", "plain-2" } };
	char path[128], taken[128], then[128];

	for (size_t i = 0; i < 2; i++) {
		struct out_file *of = open_new(at(state, cases[i].name, path), false);

		write_new(of);
		make(path, "theirs");
		make(at(state, cases[i].taken, taken), "theirs too");
		assert_int_equal(out_file_commit(of), 0);
		expect(path, "theirs");
		expect(taken, "theirs too");
		expect(at(state, cases[i].then, then), "new");
		assert_string_equal(out_file_path(of), then);
		out_file_free(of);
	}
	assert_int_equal(file_cnt(state), 6);
}

/* A folder takes the name: with --force too the profile is kept. */
TEST_WITH(test_folder_made_meanwhile, new_folder, remove_folder)
{
	char path[128], other[128];
	struct out_file *of = open_new(at(state, "p", path), true);

	write_new(of);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(out_file_commit(of), 0);
	expect(at(state, "p-1", other), "new");
	out_file_free(of);
}

TEST_WITH(test_links, new_folder, remove_folder)
{
	char path[128], victim[128];
	struct err why;
	struct out_file *of;
	struct stat st;

	make(at(state, "victim", victim), "precious");
	assert_int_equal(symlink(victim, at(state, "p", path)), 0);
	assert_int_equal(open_err(path, false, &why), -EEXIST);
	of = open_new(path, true);
	write_new(of);
	assert_int_equal(out_file_commit(of), 0);
	out_file_free(of);
	expect(victim, "precious");
	expect(path, "new");
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	/* one that leads nowhere must not say where a file is made */
	unlink(path);
	unlink(victim);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(open_err(path, false, &why), -EEXIST);
	/* laid while it is recorded */
	unlink(path);
	of = open_new(path, false);
	write_new(of);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(out_file_commit(of), 0);
	assert_string_not_equal(out_file_path(of), path);
	assert_int_equal(access(victim, F_OK), -1);
	out_file_free(of);
}

/* In a folder of another user nobody can be told where to write by what lies there. */
TEST_WITH(test_foreign, new_folder, remove_folder)
{
	const struct temp_folder *f = *state;
	char path[128];
	struct err why;

	if (geteuid()) {
		skip();
		return;
	}
	assert_int_equal(symlink("/dev/null", at(state, "null", path)), 0);
	out_file_free(open_new(path, false)); /* the folder and the link are ours */
	assert_int_equal(lchown(path, 65534, 65534), 0);
	assert_int_equal(open_err(path, true, &why), -EPERM);
	assert_int_equal(lchown(path, 0, 0), 0);
	assert_int_equal(chown(f->path, 65534, 65534), 0);
	assert_int_equal(open_err(path, true, &why), -EPERM);
	assert_int_equal(chown(f->path, 0, 0), 0);
	assert_int_equal(chmod(f->path, 0777), 0);
	assert_int_equal(open_err(path, true, &why), -EPERM);
	assert_int_equal(chmod(f->path, 01777), 0);
	out_file_free(open_new(path, false));
	assert_int_equal(mkfifo(at(state, "pipe", path), 0666), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(open_err(path, true, &why), -EPERM);
}

TEST(test_devices)
{
	struct out_file *of = open_new("/dev/null", false);

	write_new(of);
	assert_int_equal(out_file_commit(of), 0);
	assert_string_equal(out_file_path(of), "/dev/null");
	out_file_free(of);
}

TEST_WITH(test_refused, new_folder, remove_folder)
{
	const struct temp_folder *f = *state;
	char path[128];
	struct err why;

	assert_int_equal(open_err(at(state, "no/such", path), false, &why), -ENOENT);
	assert_int_equal(open_err(f->path, true, &why), -EISDIR);
	assert_int_equal(open_err(at(state, "", path), true, &why), -EISDIR);
	assert_int_equal(open_err("", true, &why), -ENOENT);
	make(at(state, "file", path), "");
	assert_int_equal(open_err(at(state, "file/p", path), false, &why), -ENOTDIR);
}

TEST(test_default_name)
{
	static const struct {
		const char *comm, *name;
	} cases[] = {
		{ "server", "server-14662-20261124-032524.pb.gz" },
		{ "my app/x", "my_app_x-14662-20261124-032524.pb.gz" },
		{ "a.b_c-9", "a.b_c-9-14662-20261124-032524.pb.gz" },
		{ "../../etc", "_._.._etc-14662-20261124-032524.pb.gz" },
		{ "-rf", "_rf-14662-20261124-032524.pb.gz" },
		{ "\x1b[31m\xc3\xa4", "__31m__-14662-20261124-032524.pb.gz" },
		{ "", "process-14662-20261124-032524.pb.gz" },
	};
	char name[OUT_FILE_NAME_BYTES];

	each_case(c, cases) {
		out_file_default_name(c->comm, 14662, 1795490724, name);
		assert_string_equal(name, c->name);
	}
}

TEST(test_stdout_names)
{
	assert_true(out_file_is_stdout("-"));
	assert_true(out_file_is_stdout("/dev/stdout"));
	assert_false(out_file_is_stdout("./-"));
	assert_false(out_file_is_stdout(""));
}

RUN_TESTS()
