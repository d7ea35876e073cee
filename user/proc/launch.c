/* SPDX-License-Identifier: MIT */
/*
 * launch.c - starts a program that waits before its execve, so that probes can be placed in the files that it will
 * map.
 *
 * There are two channels, both close-on-exec. On `go` the child waits for one byte. On `failed` it sends the errno of
 * a failed execve; a successful execve closes it. `go` is a socket pair, because writing to a pipe whose reader was
 * killed raises SIGPIPE.
 *
 * When heaptap ends, the child reads end of file on `go` and exits. Another child that still has our end open would
 * prevent that, so the kernel kills the child as well: by a parent-death signal, withdrawn just before execve, which
 * would inherit it.
 *
 * All signals are blocked across fork so that no handler of heaptap can run in the child.
 */
#include "proc/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/names.h"
#include "base/vec.h"
#include "elf/elf_file.h"

/*
 * The files that a program will map when it starts.
 *
 * The loader knows best: glibc's and musl's both have a list mode ("--list PROG") that loads everything, prints
 * it, and does not run a single constructor. It is run with our environment, which the program gets too, so
 * LD_PRELOAD and LD_LIBRARY_PATH count. It is asked about the file that will run, not about a link to it:
 * $ORIGIN is the folder of /proc/self/exe. If the command is the loader itself, it is asked with the same
 * arguments that it will be run with: then it goes by the path that it is given.
 *
 * A program that executes another one is another start, which is handled at the exec. But `env` in the first
 * line of a script is handled here, since it only finds the program.
 *
 * Bounds: time, output, number of files, depth of interpreters. A PT_INTERP that does not look like a loader is
 * reported but not run.
 */

#define LIST_TIMEOUT_NS (5 * NS_PER_S)
#define LIST_BYTES_CAP ((size_t)1 << 20)
#define FILES_CAP 4096
/* scripts that are interpreters of scripts; the kernel's limit is 5 as well */
#define INTERPRETERS_CAP 5

struct file_key {
	dev_t dev;
	ino_t ino;
};

struct file_list {
	launch_file_fn fn;
	void *ctx;
	VEC(struct file_key) seen;
	int err;
};

static void report_once(void *ctx, const char *path)
{
	struct file_list *list = ctx;
	struct file_key *key;
	struct stat st;

	if (list->err || stat(path, &st) || !S_ISREG(st.st_mode))
		return;
	vec_each(&list->seen, key)
		if (key->dev == st.st_dev && key->ino == st.st_ino)
			return;
	if (list->seen.cnt >= FILES_CAP)
		return;
	list->err = vec_push(&list->seen, (struct file_key){ st.st_dev, st.st_ino });
	if (!list->err)
		list->fn(list->ctx, path);
}

/*
 * "\tlibc.so.6 => /lib/libc.so.6 (0x7f...)", "\t/lib64/ld-linux-x86-64.so.2 (0x7f...)",
 * "\tlibx.so => not found", "\tlinux-vdso.so.1 (0x7ff...)", "\tstatically linked"
 */
int launch_parse_list(const char *text, launch_file_fn fn, void *ctx)
{
	int cnt = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");
		const char *p = text, *end = text + len, *arrow, *addr = NULL, *at;
		char *path;

		text = end + (*end == '\n');
		arrow = memmem(p, len, " => ", 4);
		if (arrow)
			p = arrow + 4;
		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		/* the last " (0x": a folder's name may contain anything */
		for (at = p; (at = memmem(at, (size_t)(end - at), " (0x", 4)); at++)
			addr = at;
		if (!addr || !memchr(p, '/', (size_t)(addr - p)))
			continue;
		path = strndup(p, (size_t)(addr - p));
		if (!path)
			return -ENOMEM;
		fn(ctx, path);
		free(path);
		cnt++;
	}
	return cnt;
}

/* Read until end of file, the bound or the deadline. */
static int read_output(int fd, char *buf, size_t cap)
{
	uint64_t end_ns = now_ns() + LIST_TIMEOUT_NS;
	size_t len = 0;

	while (len < cap - 1) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		uint64_t now = now_ns();
		ssize_t n;

		if (now >= end_ns)
			return -ETIMEDOUT;
		if (poll(&pfd, 1, (int)((end_ns - now) / NS_PER_MS) + 1) <= 0)
			continue;
		n = read(fd, buf + len, cap - 1 - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		if (n > 0)
			len += (size_t)n;
	}
	buf[len] = '\0';
	return 0;
}

static void __attribute__((noreturn)) loader_main(char *const argv[], int out_fd)
{
	int null_fd = null_fd_open();
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;

	sigemptyset(&none);
	sigaction(SIGPIPE, &dfl, NULL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(null_fd, 2) < 0)
		_exit(127);
	execv(argv[0], argv);
	_exit(127);
}

/* Return the loader's output, malloc'ed. Its exit status does not matter: a missing library makes it fail, and
 * the rest of the list is still right. */
static int run_loader(char *const argv[], char **ret)
{
	char *text = calloc(1, LIST_BYTES_CAP);
	int fds[2], err;
	pid_t pid;

	if (!text)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC)) {
		err = -errno;
		goto out;
	}
	pid = fork();
	if (pid == 0)
		loader_main(argv, fds[1]);
	err = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (!err)
		err = read_output(fds[0], text, LIST_BYTES_CAP);
	close(fds[0]);
	if (pid > 0) {
		if (err)
			kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
out:
	if (err) {
		free(text);
		return err;
	}
	*ret = text;
	return 0;
}

/* "ld-linux-x86-64.so.2", "ld-musl-x86_64.so.1", "ld.so.1" */
static bool looks_like_loader(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;

	return !strncmp(base, "ld", 2) && strstr(base, ".so");
}

/* The loader that an ELF program names, malloc'ed; NULL: the program is static. */
static int read_loader(const char *path, char **ret)
{
	struct elf_file *ef;
	int err;

	err = elf_file_open(path, &ef);
	if (err)
		return err;
	*ret = NULL;
	if (!elf_file_is_64(ef)) {
		err = -ENOTSUP;
	} else if (elf_file_interp(ef)) {
		*ret = strdup(elf_file_interp(ef));
		err = *ret ? 0 : -ENOMEM;
	}
	elf_file_close(ef);
	return err;
}

/* PATH look-up, "#!" lines, and why a command cannot be started. */

static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return -EACCES;
	return 0;
}

/*
 * Find the path that execvp would run: cmd itself when it has a slash, else the first executable file of that
 * name in PATH. -ENOENT; -EACCES: such a file exists but may not be executed; -EISDIR. *ret is malloc'ed.
 */
static int find_program(const char *cmd, char **ret)
{
	const char *dir = getenv("PATH");
	char *path = NULL;
	int err, result = -ENOENT;

	if (!cmd || !*cmd)
		return -ENOENT;
	if (strchr(cmd, '/')) {
		err = check_executable(cmd);
		if (!err) {
			*ret = strdup(cmd);
			err = *ret ? 0 : -ENOMEM;
		}
		return err;
	}
	if (!dir)
		dir = "/bin:/usr/bin";
	for (;;) {
		int len = (int)strcspn(dir, ":");

		/* an empty entry is the current directory */
		if (asprintf(&path, "%.*s/%s", len ? len : 1, len ? dir : ".", cmd) < 0)
			return -ENOMEM;
		err = check_executable(path);
		if (!err) {
			*ret = path;
			return 0;
		}
		/* EACCES of a directory that may not be searched does not count: we can find nothing there */
		if (err == -EACCES && !access(path, F_OK))
			result = err;
		free(path);
		if (!dir[len])
			return result;
		dir += len + 1;
	}
}

int script_line_read(const char *path, struct script_line *ret)
{
	int fd = regular_file_open(path);
	char *p, *end;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, ret->text, sizeof(ret->text) - 1);
	close(fd);
	if (n < 3 || memcmp(ret->text, "#!", 2))
		return -ENOEXEC;
	ret->text[n] = '\0';
	ret->text[strcspn(ret->text, "\n")] = '\0';
	p = ret->text + 2;
	p += strspn(p, " \t");
	for (end = p + strlen(p); end > p && (end[-1] == ' ' || end[-1] == '\t'); end--)
		end[-1] = '\0';
	if (!*p)
		return -ENOEXEC;
	ret->interp = p;
	p += strcspn(p, " \t");
	ret->arg = NULL;
	if (*p) {
		*p++ = '\0';
		ret->arg = p + strspn(p, " \t");
	}
	return 0;
}

/* execve returns ENOENT also for a missing interpreter, a script's or the loader. */
static void explain_missing(const char *cmd, struct err *why)
{
	struct script_line script = { .interp = "" };
	char *path = NULL;

	if (find_program(cmd, &path)) {
		if (strchr(cmd, '/'))
			err_set(why, -ENOENT, "cannot start '%s': there is no such file", cmd);
		else
			err_set(why, -ENOENT,
				"cannot start '%s': no such command in PATH; give its path", cmd);
	} else if (!script_line_read(path, &script)) {
		err_set(why, -ENOENT,
			"cannot start '%s': bad interpreter '%s' in its first line: install it or "
			"correct the line",
			path, script.interp);
	} else {
		err_set(why, -ENOENT,
			"cannot start '%s': its loader (ELF interpreter) is not installed; "
			"'readelf -l' shows which",
			path);
	}
	free(path);
}

static void explain_forbidden(const char *cmd, struct err *why)
{
	struct script_line script = { .interp = "" };
	char *path = NULL;

	if (!find_program(cmd, &path) && !script_line_read(path, &script))
		err_set(why, -EACCES,
			"cannot start '%s': its interpreter '%s' is not executable: check its "
			"permissions",
			path, script.interp);
	else
		err_set(why, -EACCES,
			"cannot start '%s': no execute permission, or its file system is mounted "
			"noexec",
			cmd);
	free(path);
}

const char *find_program_explain(const char *cmd, int err, struct err *why)
{
	switch (-err) {
	case ENOENT:
		explain_missing(cmd, why);
		break;
	case EACCES:
		explain_forbidden(cmd, why);
		break;
	case EISDIR:
		err_set(why, err, "cannot start '%s': it is a directory", cmd);
		break;
	case ENOEXEC:
		err_set(why, err,
			"cannot start '%s': not a program for this machine (neither an ELF file of "
			"its kind nor a script with a #! line)",
			cmd);
		break;
	case ENOTSUP:
		err_set(why, err,
			"cannot record '%s': it is a 32-bit program; heaptap records only 64-bit "
			"programs",
			cmd);
		break;
	case ESRCH:
		err_set(why, err, "cannot start '%s': its process was killed before it ran", cmd);
		break;
	default:
		err_set_os(why, err, "cannot start '%s'", cmd);
	}
	return why->text;
}

/*
 * Check a program before it is executed: 0, -ENOENT or -EACCES (its interpreter or loader is missing or may not
 * be executed), -ENOTSUP (a 32-bit program), -ELOOP.
 */
static int check_command(const char *cmd, int depth)
{
	char *path = NULL, *loader = NULL;
	struct script_line script;
	int err;

	if (depth > INTERPRETERS_CAP)
		return -ELOOP;
	err = find_program(cmd, &path);
	if (err)
		return err;
	if (!script_line_read(path, &script))
		err = check_command(script.interp, depth + 1);
	else
		err = read_loader(path, &loader);
	/* Neither script nor ELF: execve may still know it (binfmt_misc). And a program may be executable but
	 * not readable. */
	if (err == -ENOEXEC || (err == -EACCES && !access(path, X_OK)))
		err = 0;
	if (!err && loader && access(loader, X_OK))
		err = -errno;
	free(loader);
	free(path);
	return err;
}

/* Report what `loader --list args...` prints. After a foreign loader or a timeout, mapping events tell the
 * rest. */
static int report_listed(struct file_list *list, const char *loader, char *const args[])
{
	char *text = NULL, **argv;
	size_t cnt = 0;

	while (args[cnt])
		cnt++;
	argv = calloc(cnt + 3, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	argv[0] = (char *)loader;
	argv[1] = "--list";
	memcpy(argv + 2, args, cnt * sizeof(*argv));
	if (!run_loader(argv, &text))
		launch_parse_list(text, report_once, list);
	free(text);
	free(argv);
	return list->err;
}

/* Find the program to run in the arguments of a loader; NULL: none. Knows the options of glibc and musl. */
static const char *loaded_program(char *const args[])
{
	static const char *const with_value[] = {
		"--library-path",	  "--inhibit-rpath",	 "--audit", "--preload",
		"--glibc-hwcaps-prepend", "--glibc-hwcaps-mask", "--argv0",
	};

	for (; *args && begins(*args, "--"); args++) {
		if (!(*args)[2])
			return args[1];
		if (equals_one_of(*args, with_value, ARRAY_CNT(with_value)) && !*++args)
			return NULL;
	}
	return *args;
}

/* The command is a loader: report what it will load with these arguments. */
static int report_by_loader(struct file_list *list, const char *loader, char *const args[])
{
	const char *program = loaded_program(args);

	if (!program)
		return 0;
	report_once(list, program);
	return list->err ? list->err : report_listed(list, loader, args);
}

/* An ELF program: report itself, its loader, its libraries. args are the arguments after its name. */
static int report_program(struct file_list *list, const char *path, char *const args[])
{
	char *loader = NULL, *real = NULL;
	int err;

	err = read_loader(path, &loader);
	if (err == -ENOEXEC) /* something for binfmt_misc, or for execve to refuse */
		return 0;
	if (err)
		return err;
	report_once(list, path);
	real = realpath(path, NULL); /* a file without a name is asked about as it is */
	if (loader) {
		char *const program[] = { real ? real : (char *)path, NULL };

		report_once(list, loader);
		if (!list->err && looks_like_loader(loader))
			list->err = report_listed(list, loader, program);
	} else if (looks_like_loader(path) || (real && looks_like_loader(real))) {
		err = report_by_loader(list, path, args);
	}
	free(loader);
	free(real);
	return err ? err : list->err;
}

/* Skip options of env in one word: returns how much of p is not the program's name. *ret_has_value: the next
 * word belongs to the option. */
static size_t env_option_len(const char *p, size_t len, bool *ret_has_value)
{
	*ret_has_value = false;
	if (len > 1 && p[1] == '-') {
		*ret_has_value = (len == 7 && !memcmp(p, "--unset", len)) ||
				 (len == 7 && !memcmp(p, "--chdir", len));
		return len;
	}
	for (size_t i = 1; i < len; i++) {
		if (p[i] == 'S') /* the rest is split into words, from here on */
			return i + 1;
		if (p[i] == 'u' || p[i] == 'C') {
			*ret_has_value = i + 1 == len;
			return len;
		}
	}
	return len;
}

/*
 * `#!/usr/bin/env [-S] [NAME=VALUE...] PROG ...`: env is executed first, but the user means PROG, which runs a
 * moment later. Returns the name in the line, malloc'ed, or NULL.
 */
static char *env_program(const struct script_line *script)
{
	const char *slash = strrchr(script->interp, '/'), *p = script->arg;
	bool is_value = false;
	size_t len;

	if (!p || strcmp(slash ? slash + 1 : script->interp, "env"))
		return NULL;
	for (; *p; p += len) {
		p += strspn(p, " \t");
		len = strcspn(p, " \t");
		if (is_value)
			is_value = false;
		else if (len && *p == '-')
			len = env_option_len(p, len, &is_value);
		else if (len && !memchr(p, '=', len))
			return strndup(p, len);
	}
	return NULL;
}

static int report_command(struct file_list *list, char *const argv[], int depth)
{
	struct script_line script;
	char *path, *program;
	int err;

	if (depth > INTERPRETERS_CAP)
		return -ELOOP;
	err = find_program(argv[0], &path);
	if (err)
		return err;
	err = script_line_read(path, &script);
	if (err == 0) {
		err = report_command(list, (char *const[]){ (char *)script.interp, NULL },
				     depth + 1);
		program = err ? NULL : env_program(&script);
		if (program)
			report_command(list, (char *const[]){ program, NULL }, depth + 1);
		free(program);
	} else if (err == -ENOEXEC) {
		err = report_program(list, path, argv + 1);
	}
	free(path);
	return err;
}

int launch_libraries(char *const argv[], launch_file_fn fn, void *ctx)
{
	struct file_list list = { .fn = fn, .ctx = ctx };
	int err = report_command(&list, argv, 0);
	int cnt = (int)list.seen.cnt;

	vec_release(&list.seen);
	return err ? err : cnt;
}

/*
 * The child.
 */

#define EXIT_NOT_RUN 127

/* Runs in the child: only calls that are safe after fork. The C library keeps signals 32 and 33. */
static void reset_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigset_t none;
	int sig;

	for (sig = 1; sig < NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void __attribute__((noreturn))
child_main(const char *path, char *const argv[], int go_fd, int failed_fd, pid_t parent)
{
	char byte;
	int err;

	reset_signals();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_NOT_RUN);
	if (read_full(go_fd, &byte, 1) != 1)
		_exit(EXIT_NOT_RUN);
	prctl(PR_SET_PDEATHSIG, 0);
	execve(path, argv, environ);
	err = errno;
	write_all(failed_fd, &err, sizeof(err));
	_exit(EXIT_NOT_RUN);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int fork_child(struct launch *l, char *const argv[], int go[2], int failed[2])
{
	pid_t parent = getpid(), pid;
	sigset_t all, old;
	int err;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	err = pid < 0 ? -errno : 0;
	if (pid == 0) {
		close(go[1]);
		close(failed[0]);
		child_main(l->path, argv, go[0], failed[1], parent);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	l->pid = pid;
	l->wait_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return l->wait_fd < 0 ? -errno : 0;
}

int launch_prepare(char *const argv[], struct launch **ret)
{
	int go[2] = { -1, -1 }, failed[2] = { -1, -1 }, err;
	struct launch *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->go_fd = l->failed_fd = l->wait_fd = -1;
	err = find_program(argv[0], &l->path);
	if (!err)
		err = check_command(l->path, 0);
	if (err)
		goto out;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) || pipe2(failed, O_CLOEXEC)) {
		err = -errno;
		goto out;
	}
	err = fork_child(l, argv, go, failed);
	l->go_fd = go[1];
	l->failed_fd = failed[0];
	go[1] = failed[0] = -1;
	if (err)
		goto out;
	*ret = l;
	l = NULL;
out:
	close_fd(&go[0]);
	close_fd(&go[1]);
	close_fd(&failed[0]);
	close_fd(&failed[1]);
	launch_free(l);
	return err;
}

static int wait_pid(struct launch *l, int flags)
{
	pid_t pid;

	if (l->is_reaped)
		return 0;
	do {
		pid = waitpid(l->pid, &l->status, flags);
	} while (pid < 0 && errno == EINTR);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		return -EAGAIN;
	l->is_reaped = true;
	return 0;
}

int launch_go(struct launch *l)
{
	int exec_err = 0;
	ssize_t n;

	if (l->is_running || l->go_fd < 0)
		return -EINVAL;
	if (send(l->go_fd, "g", 1, MSG_NOSIGNAL) != 1)
		return -ESRCH; /* somebody killed it */
	close_fd(&l->go_fd);
	n = read_full(l->failed_fd, &exec_err, sizeof(exec_err));
	close_fd(&l->failed_fd);
	if (n == 0) {
		l->is_running = true;
		return 0;
	}
	wait_pid(l, 0);
	return n == (ssize_t)sizeof(exec_err) && exec_err > 0 ? -exec_err : -EIO;
}

int launch_reap(struct launch *l, int *ret_status)
{
	int err = wait_pid(l, WNOHANG);

	if (!err)
		*ret_status = l->status;
	return err;
}

void launch_free(struct launch *l)
{
	if (!l)
		return;
	if (l->pid > 0 && !l->is_running && !l->is_reaped) {
		/* it is still ours, waits in front of execve, and is not reaped */
		kill(l->pid, SIGKILL);
		wait_pid(l, 0);
	}
	close_fd(&l->go_fd);
	close_fd(&l->failed_fd);
	close_fd(&l->wait_fd);
	free(l->path);
	free(l);
}
