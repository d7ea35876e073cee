/* SPDX-License-Identifier: MIT */
/* push_secret.c - see push_secret.h. */
#include "push/push_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_line(const char *path, char *line, char *why, size_t why_bytes)
{
	size_t n = strcspn(line, "\n");

	while (n && strchr(" \t\r", line[n - 1]))
		n--;
	line[n] = 0;
	if (!n) {
		snprintf(why, why_bytes, "push: '%s' is empty", path);
		return -EINVAL;
	}
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) {
			snprintf(why, why_bytes, "push: '%s' has control characters in it", path);
			return -EINVAL;
		}
	return 0;
}

int push_secret_read(const char *path, char ret[PUSH_SECRET_MAX], char *why, size_t why_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err = -errno;
		snprintf(why, why_bytes, "push: cannot read '%s': %s", path, strerror(-err));
	} else if (!S_ISREG(st.st_mode)) {
		err = -EINVAL;
		snprintf(why, why_bytes, "push: '%s' is not a file", path);
	} else if (st.st_mode & (S_IROTH | S_IWOTH)) {
		err = -EACCES;
		snprintf(why, why_bytes,
			 "push: others can read or write '%s': take that away (chmod o= '%s')",
			 path, path);
	} else if ((n = read(fd, ret, PUSH_SECRET_MAX)) < 0) {
		err = -errno;
		snprintf(why, why_bytes, "push: cannot read '%s': %s", path, strerror(-err));
	} else if (n == PUSH_SECRET_MAX) {
		err = -EINVAL;
		snprintf(why, why_bytes, "push: '%s' has more than %d bytes", path,
			 PUSH_SECRET_MAX - 1);
	}
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	ret[n] = 0;
	return check_line(path, ret, why, why_bytes);
}
