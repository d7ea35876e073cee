/* SPDX-License-Identifier: MIT */
/* fd.c - see fd.h. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

int write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int fd_stream_open(int fd, FILE **ret)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (own < 0)
		return -errno;
	*ret = fdopen(own, "w");
	if (*ret)
		return 0;
	close(own);
	return -ENOMEM;
}

int fd_stream_close(FILE *out, int err)
{
	bool has_failed = ferror(out);

	if (fclose(out) && !err)
		return -errno;
	return !err && has_failed ? -EIO : err;
}

/*
 * The replacement is /dev/null if that exists. A root that holds nothing but heaptap, such as an image "from scratch" outside of a
 * container runtime, has no /dev: there it is an empty file in memory that cannot grow. Writing to that fails (EPERM),
 * which nobody checks.
 */
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
