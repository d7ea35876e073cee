/* SPDX-License-Identifier: MIT */
/* regular_file.c - see regular_file.h. */
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) ? 0 : -ENOEXEC;
}

int regular_file_reopen(int path_fd)
{
	char self[64];
	int err = check(path_fd), fd;

	if (err)
		return err;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	err = check(fd); /* the link may lead elsewhere now */
	if (err)
		close(fd);
	return err ? err : fd;
}

int regular_file_open(const char *path)
{
	int path_fd = open(path, O_PATH | O_CLOEXEC), fd;

	if (path_fd < 0)
		return -errno;
	fd = regular_file_reopen(path_fd);
	close(path_fd);
	return fd;
}
