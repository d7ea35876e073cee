/* SPDX-License-Identifier: MIT */
/* config_file.c - see config_file.h. */
#include "config/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd, const char *path, char *why, size_t why_bytes)
{
	struct stat st;
	int err;

	if (fstat(fd, &st)) {
		err = -errno;
		snprintf(why, why_bytes, "cannot read '%s': %s", path, strerror(-err));
		return err;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, why_bytes, "'%s' is not a regular file", path);
		return -EINVAL;
	}
	if (st.st_mode & S_IWOTH || (st.st_uid && st.st_uid != geteuid())) {
		snprintf(why, why_bytes,
			 "'%s' can be written by others (owner %u, mode %03o): make it your own, "
			 "and chmod o-w it",
			 path, st.st_uid, st.st_mode & 0777);
		return -EPERM;
	}
	return 0;
}

static int read_all(int fd, char *buf, size_t *ret_bytes)
{
	*ret_bytes = 0;
	for (;;) {
		ssize_t n = read(fd, buf + *ret_bytes, CONFIG_FILE_BYTES_CAP + 1 - *ret_bytes);

		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		*ret_bytes += (size_t)n;
		if (*ret_bytes > CONFIG_FILE_BYTES_CAP)
			return -EFBIG;
	}
}

int config_file_read(const char *path, char **ret, size_t *ret_bytes, char *why, size_t why_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	char *buf = NULL;

	if (fd < 0) {
		err = -errno;
		snprintf(why, why_bytes, "cannot read '%s': %s", path, strerror(-err));
		return err;
	}
	err = check(fd, path, why, why_bytes);
	if (err)
		goto out;
	buf = malloc(CONFIG_FILE_BYTES_CAP + 1);
	err = buf ? read_all(fd, buf, ret_bytes) : -ENOMEM;
	if (err) {
		snprintf(why, why_bytes, "cannot read '%s': %s", path, strerror(-err));
		free(buf);
	} else {
		*ret = buf;
	}
out:
	close(fd);
	return err;
}
