/* SPDX-License-Identifier: MIT */
/* regular_file.c - see regular_file.h. */
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd, uint64_t *ret_ino)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret_ino = st.st_ino;
	return S_ISREG(st.st_mode) ? 0 : -ENOEXEC;
}

/*
 * Has somebody a write lease on the file? To open it would send him SIGIO, which ends a process that does not handle it.
 * The device is not compared: stat() and /proc/locks name different ones on btrfs and overlayfs. A lease that is taken
 * between this look and the opening is not seen.
 */
static bool has_write_lease(uint64_t ino)
{
	FILE *f = fopen("/proc/locks", "re");
	bool found = false;
	char line[160];

	while (f && !found && fgets(line, sizeof(line), f)) {
		unsigned long long locked = 0;

		found = sscanf(line, "%*u: LEASE %*s WRITE %*d %*x:%*x:%llu", &locked) == 1 &&
			locked == ino;
	}
	if (f)
		fclose(f);
	return found;
}

int regular_file_reopen(int path_fd)
{
	char self[64];
	uint64_t ino = 0;
	int err = check(path_fd, &ino), fd;

	if (!err && has_write_lease(ino))
		err = -EAGAIN;
	if (err)
		return err;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	err = check(fd, &ino); /* the link may lead elsewhere now */
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
