/* SPDX-License-Identifier: MIT */
/* proc_text.c - see proc_text.h. */
#include "proc/proc_text.h"

#include "base/vec.h"

#define READ_BYTES 4096
#define PATH_BYTES 128

static void make_path(char buf[PATH_BYTES], pid_t pid, const char *fmt, va_list args)
{
	int n = pid ? snprintf(buf, PATH_BYTES, "/proc/%d/", pid) :
		      snprintf(buf, PATH_BYTES, "/proc/self/");

	vsnprintf(buf + n, PATH_BYTES - (size_t)n, fmt, args);
}

void proc_root_path(pid_t pid, char buf[PROC_ROOT_BYTES])
{
	snprintf(buf, PROC_ROOT_BYTES, "/proc/%d/root", pid);
}

int proc_open(pid_t pid, int flags, const char *fmt, ...)
{
	char path[PATH_BYTES];
	va_list args;
	int fd;

	va_start(args, fmt);
	make_path(path, pid, fmt, args);
	va_end(args);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

FILE *proc_fopen(pid_t pid, const char *fmt, ...)
{
	char path[PATH_BYTES];
	va_list args;

	va_start(args, fmt);
	make_path(path, pid, fmt, args);
	va_end(args);
	return fopen(path, "re");
}

DIR *proc_opendir(pid_t pid, const char *name)
{
	int fd = proc_open(pid, O_RDONLY | O_DIRECTORY, "%s", name);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd < 0)
		errno = -fd;
	else if (!dir)
		close(fd);
	return dir;
}

size_t proc_read_start(pid_t pid, char *buf, size_t bytes, const char *fmt, ...)
{
	char path[PATH_BYTES];
	va_list args;
	ssize_t n = 0;
	int fd;

	va_start(args, fmt);
	make_path(path, pid, fmt, args);
	va_end(args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, buf, bytes - 1);
		close(fd);
	}
	buf[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

long proc_status_number(pid_t tid, const char *key, long otherwise)
{
	FILE *f = proc_fopen(tid, "status");
	size_t len = strlen(key);
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len) && line[len] == ':') {
			otherwise = strtol(line + len + 1, NULL, 10);
			break;
		}
	if (f)
		fclose(f);
	return otherwise;
}

void proc_read_link(pid_t pid, const char *name, char *buf, size_t bytes)
{
	char path[PATH_BYTES];
	ssize_t n;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	else
		snprintf(path, sizeof(path), "/proc/self/%s", name);
	n = readlink(path, buf, bytes - 1);
	buf[n > 0 ? n : 0] = '\0';
}

int proc_text_read_all(pid_t pid, const char *name, size_t bytes_cap, char **ret, size_t *ret_bytes)
{
	VEC(char) text = { 0 };
	ssize_t n;
	int fd = proc_open(pid, O_RDONLY, "%s", name), err = 0;

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	do {
		err = text.cnt > bytes_cap ? -EFBIG : vec_reserve(&text, text.cnt + READ_BYTES + 1);
		if (err)
			break;
		n = read(fd, text.data + text.cnt, READ_BYTES);
		if (n >= 0)
			text.cnt += (size_t)n;
		else if (errno != EINTR)
			err = -errno;
	} while (!err && n);
	close(fd);
	if (err) {
		vec_release(&text);
		return err;
	}
	text.data[text.cnt] = '\0';
	*ret = text.data;
	*ret_bytes = text.cnt + 1;
	return 0;
}

int proc_text_read(pid_t pid, const char *name, char **ret)
{
	size_t bytes;

	return proc_text_read_all(pid, name, PROC_TEXT_BYTES_CAP, ret, &bytes);
}
