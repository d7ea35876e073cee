/* SPDX-License-Identifier: MIT */
/* proc_text.c - see proc_text.h. */
#include "proc/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/vec.h"

#define READ_BYTES 4096

int proc_text_read_all(pid_t pid, const char *name, char **ret, size_t *ret_bytes)
{
	VEC(char) text = { 0 };
	char path[96];
	ssize_t n;
	int fd, err = 0;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	else
		snprintf(path, sizeof(path), "/proc/self/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	do {
		err = text.cnt > PROC_TEXT_BYTES_CAP ?
			      -EFBIG :
			      vec_reserve(&text, text.cnt + READ_BYTES + 1);
		if (err)
			break;
		n = read(fd, text.data + text.cnt, READ_BYTES);
		if (n < 0)
			err = -errno;
		else
			text.cnt += (size_t)n;
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

	return proc_text_read_all(pid, name, ret, &bytes);
}
