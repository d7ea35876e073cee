/* SPDX-License-Identifier: MIT */
/* test_launch.c - programs are started when told and not before, and what they map is known. */
#include "unit.h"

#include <elf.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/err.h"
#include "proc/launch.h"

static char dir[] = "/tmp/heaptap-test-launch-XXXXXX";

static const char *in_dir(const char *name)
{
	static char paths[4][128];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* An ELF file of one segment, and a loader to ask for (NULL = none). */
static void write_elf(const char *path, unsigned char elf_class, const char *loader)
{
	Elf64_Phdr ph = { .p_type = PT_INTERP,
			  .p_offset = sizeof(Elf64_Ehdr) + sizeof(ph),
			  .p_filesz = loader ? strlen(loader) + 1 : 0 };
	Elf64_Ehdr eh = { .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(ph),
			  .e_phnum = loader ? 1 : 0 };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = elf_class;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	assert_int_equal(write(fd, &eh, sizeof(eh)), sizeof(eh));
	assert_int_equal(write(fd, &ph, sizeof(ph)), sizeof(ph));
	if (loader)
		assert_int_equal(write(fd, loader, ph.p_filesz), ph.p_filesz);
	close(fd);
}

static void read_text(const char *path, char *buf, size_t buf_bytes)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = -1;

	if (fd >= 0) {
		n = read(fd, buf, buf_bytes - 1);
		close(fd);
	}
	buf[n > 0 ? n : 0] = '\0';
}

static int make_dir(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "out", "script",	"plain",  "garbage", "badinterp",
					     "env", "noloader", "prog32", "nested",  "loop" };

	each_case(c, names)
		unlink(in_dir(*c));
	rmdir(in_dir("sub"));
	return rmdir(dir);
}

static int wait_status(struct launch *l)
{
	struct pollfd pfd = { .fd = l->wait_fd, .events = POLLIN };
	int status = -1;

	assert_int_equal(poll(&pfd, 1, 10000), 1);
	assert_int_equal(launch_reap(l, &status), 0);
	return status;
}

TEST(test_runs_when_told)
{
	char script[256], text[32];
	char *const argv[] = { "sh", "-c", script, NULL };
	struct launch *l;
	int status;

	snprintf(script, sizeof(script), "echo $$ > %s; exit 7", in_dir("out"));
	assert_int_equal(launch_prepare(argv, &l), 0);
	usleep(50000);
	assert_int_equal(access(in_dir("out"), F_OK), -1); /* not yet */
	assert_int_equal(launch_reap(l, &status), -EAGAIN);
	assert_int_equal(launch_go(l), 0);
	status = wait_status(l);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	read_text(in_dir("out"), text, sizeof(text));
	assert_int_equal(atol(text), l->pid); /* the pid from before is the program's */
	assert_int_equal(launch_go(l), -EINVAL);
	launch_free(l);
	unlink(in_dir("out"));
}

TEST(test_freed_before_go_never_runs)
{
	char script[256];
	char *const argv[] = { "sh", "-c", script, NULL };
	struct launch *l;
	pid_t pid;

	snprintf(script, sizeof(script), "echo ran > %s", in_dir("out"));
	assert_int_equal(launch_prepare(argv, &l), 0);
	pid = l->pid;
	launch_free(l);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(access(in_dir("out"), F_OK), -1);
}

/* The parent is killed with SIGKILL while another child of its holds every descriptor open. */
TEST(test_parent_killed_before_go)
{
	char script[256];
	char *const argv[] = { "sh", "-c", script, NULL };
	pid_t parent, pids[2] = { 0, 0 };
	int fds[2], i;

	snprintf(script, sizeof(script), "echo ran > %s", in_dir("out"));
	assert_int_equal(pipe(fds), 0);
	parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		struct launch *l;

		if (launch_prepare(argv, &l))
			_exit(1);
		pids[0] = l->pid;
		pids[1] = fork();
		if (pids[1] == 0) {
			sleep(20);
			_exit(0);
		}
		if (write(fds[1], pids, sizeof(pids)) != sizeof(pids))
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(fds[0], pids, sizeof(pids)), sizeof(pids));
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	for (i = 0; i < 500; i++) {
		char path[64], text[256];
		const char *close_paren;

		snprintf(path, sizeof(path), "/proc/%d/stat", pids[0]);
		read_text(path, text, sizeof(text));
		close_paren = strrchr(text, ')');
		if (!close_paren || close_paren[2] == 'Z') /* nobody may be there to reap it */
			break;
		usleep(10000);
	}
	kill(pids[1], SIGKILL);
	close(fds[0]);
	close(fds[1]);
	assert_true(i < 500);
	assert_int_equal(access(in_dir("out"), F_OK), -1);
}

TEST(test_killed_before_go)
{
	char *const argv[] = { "true", NULL };
	struct launch *l;
	struct pollfd pfd = { .events = POLLIN };
	int status;

	assert_int_equal(launch_prepare(argv, &l), 0);
	kill(l->pid, SIGKILL);
	pfd.fd = l->wait_fd;
	assert_int_equal(poll(&pfd, 1, 10000), 1);
	assert_int_equal(launch_go(l), -ESRCH); /* and no SIGPIPE */
	assert_int_equal(launch_reap(l, &status), 0);
	assert_true(WIFSIGNALED(status));
	launch_free(l);
}

static void on_signal(int sig)
{
}

TEST(test_signals_are_default)
{
	char script[256], text[4096];
	char *const argv[] = { "sh", "-c", script, NULL };
	const char *ignored;
	struct sigaction sa = { .sa_handler = SIG_IGN }, old_pipe, old_term, old_int;
	sigset_t blocked, old;
	struct launch *l;

	sigaction(SIGPIPE, &sa, &old_pipe);
	sa.sa_handler = SIG_IGN;
	sigaction(SIGINT, &sa, &old_int);
	sa.sa_handler = on_signal;
	sigaction(SIGTERM, &sa, &old_term);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &old);
	/* exec: a shell that waits for grep blocks and ignores signals for a while */
	snprintf(script, sizeof(script), "exec grep ^Sig /proc/self/status > %s", in_dir("out"));
	assert_int_equal(launch_prepare(argv, &l), 0);
	assert_int_equal(launch_go(l), 0);
	wait_status(l);
	launch_free(l);
	sigprocmask(SIG_SETMASK, &old, NULL);
	sigaction(SIGPIPE, &old_pipe, NULL);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	read_text(in_dir("out"), text, sizeof(text));
	unlink(in_dir("out"));
	assert_says(text, "SigBlk:\t0000000000000000");
	/* 32 and 33 are the C library's, which lets nobody set them: under make they are ignored,
	 * since posix_spawn() leaves them so. */
	ignored = strstr(text, "SigIgn:\t");
	assert_non_null(ignored);
	assert_int_equal(strtoull(ignored + 8, NULL, 16) & ~(3ull << 31), 0);
}

/* Everything that cannot be started: where it fails and what is said. */
TEST(test_cannot_start)
{
	static const struct {
		const char *name, *cmd; /* cmd NULL: in the directory */
		bool fails_at_go;
		int err;
		const char *says;
	} cases[] = {
		{ "not in PATH", "no-such-command-anywhere", false, -ENOENT,
		  "no such command in PATH" },
		{ "no such file", "/no/such/file", false, -ENOENT, "no such file" },
		{ "plain", NULL, false, -EACCES, "no execute permission" },
		{ "sub", NULL, false, -EISDIR, "is a directory" },
		{ "badinterp", NULL, false, -ENOENT, "bad interpreter '/no/such/interpreter'" },
		{ "garbage", NULL, true, -ENOEXEC, "not a program for this machine" },
		{ "noloader", NULL, false, -ENOENT, "loader" },
		{ "prog32", NULL, false, -ENOTSUP, "32-bit" },
		{ "nested", NULL, false, -ENOENT, "bad interpreter" },
		{ "loop", NULL, false, -ELOOP, "cannot start" },
		{ "empty", "", false, -ENOENT, "cannot start ''" },
	};
	char line[256];

	write_file(in_dir("plain"), "x", 0644);
	write_file(in_dir("garbage"),
		   "\x7f"
		   "ELFgarbage",
		   0755);
	write_file(in_dir("badinterp"), "#! /no/such/interpreter -x\n", 0755);
	write_elf(in_dir("noloader"), ELFCLASS64, "/no/such/ld.so");
	write_elf(in_dir("prog32"), ELFCLASS32, NULL);
	snprintf(line, sizeof(line), "#!%s\n", in_dir("badinterp"));
	write_file(in_dir("nested"), line, 0755);
	snprintf(line, sizeof(line), "#!%s\n", in_dir("loop"));
	write_file(in_dir("loop"), line, 0755);
	assert_int_equal(mkdir(in_dir("sub"), 0755), 0);
	each_case(c, cases) {
		const char *cmd = c->cmd ? c->cmd : in_dir(c->name);
		char *const argv[] = { (char *)cmd, NULL };
		struct launch *l = NULL;
		struct err why;
		const char *says;
		int err;

		err = launch_prepare(argv, &l);
		if (c->fails_at_go) {
			assert_int_equal(err, 0);
			err = launch_go(l);
		}
		launch_free(l);
		if (err != c->err)
			fail_msg("%s: %d, not %d", c->name, err, c->err);
		says = find_program_explain(cmd, err, &why);
		if (!strstr(says, c->says))
			fail_msg("%s: says \"%s\"", c->name, says);
	}
}

struct paths {
	char text[16384];
	int cnt;
};

static void add_path(void *ctx, const char *path)
{
	struct paths *paths = ctx;
	size_t len = strlen(paths->text);

	snprintf(paths->text + len, sizeof(paths->text) - len, "%s\n", path);
	paths->cnt++;
}

TEST(test_parse_list)
{
	static const struct {
		const char *name, *text, *paths;
	} cases[] = {
		{ "glibc",
		  "\tlinux-vdso.so.1 (0x00007ffc4a7f2000)\n"
		  "\t/opt/pre.so (0x00007f4f0b1c0000)\n"
		  "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f4f0afc8000)\n"
		  "\t/lib64/ld-linux-x86-64.so.2 (0x00007f4f0b1d3000)\n",
		  "/opt/pre.so\n/lib/x86_64-linux-gnu/libc.so.6\n/lib64/ld-linux-x86-64.so.2\n" },
		{ "musl",
		  "\t/lib/ld-musl-x86_64.so.1 (0x7f1ba1b1d000)\n"
		  "\tlibc.musl-x86_64.so.1 => /lib/ld-musl-x86_64.so.1 (0x7f1ba1b1d000)\n",
		  "/lib/ld-musl-x86_64.so.1\n/lib/ld-musl-x86_64.so.1\n" },
		{ "not found", "\tlibx.so => not found\n", "" },
		{ "relative", "\tlibx.so => ./libx.so (0x00007f0000000000)\n", "./libx.so\n" },
		{ "odd directory", "\tlibx.so => /a (0x1)/libx.so (0x00007f0000000000)\n",
		  "/a (0x1)/libx.so\n" },
		{ "static", "\tstatically linked\n", "" },
		{ "no newline at the end", "\t/a/b (0x1)", "/a/b\n" },
		{ "empty", "", "" },
		{ "noise", "\n\n => \n (0x\n=>\n/x\n", "" },
	};

	each_case(c, cases) {
		struct paths paths = { "", 0 };

		int cnt = launch_parse_list(c->text, add_path, &paths);

		assert_int_equal(cnt, paths.cnt);
		if (strcmp(paths.text, c->paths))
			fail_msg("%s: got \"%s\"", c->name, paths.text);
	}
}

TEST(test_libraries_of_a_program)
{
	char *const argv[] = { "sh", NULL };
	struct paths paths = { "", 0 };
	int cnt;

	cnt = launch_libraries(argv, add_path, &paths);
	assert_int_equal(cnt, paths.cnt);
	assert_true(paths.cnt >= 3);
	assert_says(paths.text, "/sh\n");
	assert_says(paths.text, "/libc.so.6\n");
	assert_says(paths.text, "/ld-linux");
}

TEST(test_libraries_of_scripts)
{
	const char *script = in_dir("script"), *env = in_dir("env");
	char *const argv[] = { (char *)script, NULL }, *const env_argv[] = { (char *)env, NULL };
	char *const missing[] = { "no-such-command-anywhere", NULL };
	struct paths direct = { "", 0 }, paths = { "", 0 }, env_paths = { "", 0 };

	write_file(script, "#!/bin/sh -e\ntrue\n", 0755);
	write_file(env, "#!/usr/bin/env -S A=b sh\ntrue\n", 0755);
	launch_libraries((char *const[]){ "/bin/sh", NULL }, add_path, &direct);
	assert_true(launch_libraries(argv, add_path, &paths) > 0);
	assert_string_equal(paths.text, direct.text);
	assert_true(launch_libraries(env_argv, add_path, &env_paths) > 0);
	assert_says(env_paths.text, "/env\n");
	assert_says(env_paths.text, "/sh\n");
	assert_int_equal(launch_libraries(missing, add_path, &paths), -ENOENT);
}

/* Which words of env's line are the program. */
TEST(test_libraries_of_env)
{
	static const char *const lines[] = {
		"sh",
		"-S sh -e",
		"-S A=b sh",
		"-Ssh -e",
		"-vS sh",
		"-S -u OTHER sh",
		"-S -uOTHER sh",
		"-S -C / sh",
		"-S --unset OTHER sh",
		"-S --unset=OTHER sh",
		"-i sh",
		"- sh",
	};
	const char *env = in_dir("env");
	char *const argv[] = { (char *)env, NULL };
	char text[128];

	each_case(c, lines) {
		struct paths paths = { "", 0 };

		snprintf(text, sizeof(text), "#!/usr/bin/env %s\n", *c);
		write_file(env, text, 0755);
		assert_true(launch_libraries(argv, add_path, &paths) > 0);
		if (!strstr(paths.text, "/env\n") || !strstr(paths.text, "/sh\n"))
			fail_msg("%s: \"%s\"", *c, paths.text);
	}
}

/* The loader is the command: what it is told to load is what will be mapped. */
TEST(test_libraries_by_a_loader)
{
	static char *const options[][4] = {
		{ "/bin/sh" },
		{ "--argv0", "other", "/bin/sh", "--preload" },
		{ "--inhibit-cache", "--library-path", "/tmp", "/bin/sh" },
	};
	struct paths direct = { "", 0 };
	const char *newline, *start;
	char loader[128];
	size_t i, k;

	assert_true(launch_libraries((char *const[]){ "/bin/sh", NULL }, add_path, &direct) > 0);
	start = strstr(direct.text, "/ld");
	assert_non_null(start);
	while (start > direct.text && start[-1] != '\n')
		start--;
	newline = strchr(start, '\n');
	snprintf(loader, sizeof(loader), "%.*s", (int)(newline - start), start);
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char *argv[6] = { loader };
		struct paths paths = { "", 0 };

		for (k = 0; k < 4; k++)
			argv[k + 1] = options[i][k];
		assert_int_equal(launch_libraries(argv, add_path, &paths), direct.cnt);
		assert_says(paths.text, "/bin/sh\n");
		assert_says(paths.text, "/libc.so.6\n");
	}
	/* and without a program it is one file */
	assert_int_equal(launch_libraries((char *const[]){ loader, NULL }, add_path, &direct), 1);
}

TEST(test_script_line)
{
	static const struct {
		const char *text, *interp, *arg; /* interp NULL: no script */
	} cases[] = {
		{ "#!/bin/sh\n", "/bin/sh", NULL },
		{ "#! /bin/sh  -e -x \t\nfoo", "/bin/sh", "-e -x" },
		{ "#!/bin/sh", "/bin/sh", NULL },
		{ "#!\n", NULL, NULL },
		{ "#!   \n/bin/sh", NULL, NULL },
		{ "\x7f"
		  "ELF",
		  NULL, NULL },
		{ "", NULL, NULL },
		{ "#", NULL, NULL },
	};

	each_case(c, cases) {
		struct script_line line;
		int err;

		write_file(in_dir("script"), c->text, 0755);
		err = script_line_read(in_dir("script"), &line);
		assert_int_equal(err, c->interp ? 0 : -ENOEXEC);
		if (!c->interp)
			continue;
		assert_string_equal(line.interp, c->interp);
		assert_string_equal(line.arg ? line.arg : "(none)", c->arg ? c->arg : "(none)");
	}
}

RUN_TESTS_WITH(make_dir, remove_dir)
