/* SPDX-License-Identifier: MIT */
/* write_all.c - see write_all.h. */
#include "base/write_all.h"

#include <errno.h>
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
