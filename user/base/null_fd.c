/* SPDX-License-Identifier: MIT */
/*
 * null_fd.c - see null_fd.h.
 *
 * It is /dev/null if that exists. A root that holds nothing but heaptap, such as an image "from scratch" outside of a
 * container runtime, has no /dev: there it is an empty file in memory that cannot grow. Writing to that fails (EPERM),
 * which nobody checks.
 */
#include "base/null_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int null_fd_open(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), err;

	if (fd >= 0)
		return fd;
	err = -errno;
	if (err != -ENOENT && err != -ENOTDIR)
		return err;
	fd = memfd_create("null", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_SEAL)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}
