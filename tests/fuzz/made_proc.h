/* SPDX-License-Identifier: MIT */
/*
 * made_proc.h - files of /proc/PID that hold what the input says.
 *
 * What is linked to a harness opens files by its open(), which takes the place of the C library's. All threads of
 * all processes have the same files; what is not among them, and what is outside of /proc/PID, is what it is.
 */
#ifndef HT_FUZZ_MADE_PROC_H
#define HT_FUZZ_MADE_PROC_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct made_file {
	const char *name; /* the last part of its path; "map_files": each in that folder */
	const uint8_t *data; /* not terminated */
	size_t bytes;
	int fd; /* when it is > 0: opened instead */
};

static struct made_file *made_files;
static size_t made_file_cnt;

int open(const char *path, int flags, ...);

static int made_open(const struct made_file *f, int flags)
{
	char self[32];
	int fd = f->fd, copy;

	if (fd <= 0) {
		fd = memfd_create("made", MFD_CLOEXEC);
		if (fd < 0 || write(fd, f->data, f->bytes) != (ssize_t)f->bytes)
			abort();
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	copy = openat(AT_FDCWD, self, flags);
	if (f->fd <= 0)
		close(fd);
	return copy;
}

int open(const char *path, int flags, ...)
{
	const char *last = strrchr(path, '/');
	mode_t mode = 0;
	va_list args;

	if (!strncmp(path, "/proc/", 6) && path[6] >= '0' && path[6] <= '9')
		for (size_t i = 0; i < made_file_cnt; i++)
			if (!strcmp(last + 1, made_files[i].name) ||
			    (!strcmp(made_files[i].name, "map_files") &&
			     strstr(path, "/map_files/")))
				return made_open(&made_files[i], flags);
	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	return openat(AT_FDCWD, path, flags, mode);
}

/* The input's parts, with a byte 0xff between two: files[0], [1], ... */
static inline void made_proc_split(struct made_file *files, size_t cnt, const uint8_t *data,
				   size_t bytes)
{
	for (size_t i = 0; i < cnt; i++) {
		const uint8_t *end = i + 1 < cnt && bytes ? memchr(data, 0xff, bytes) : NULL;

		files[i].data = data;
		files[i].bytes = end ? (size_t)(end - data) : bytes;
		data += files[i].bytes + !!end;
		bytes -= files[i].bytes + !!end;
	}
	made_files = files;
	made_file_cnt = cnt;
}

#endif
