/* SPDX-License-Identifier: MIT */
/* fd_stream.c - see fd_stream.h. */
#include "base/fd_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

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
