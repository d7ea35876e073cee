/* SPDX-License-Identifier: MIT */
/* push_secret.c - see push_secret.h. */
#include "push/push_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static int check_line(const char *path, char *line, struct err *why)
{
	size_t n = strcspn(line, "\n");

	while (n && strchr(" \t\r", line[n - 1]))
		n--;
	line[n] = 0;
	if (!n)
		return err_set(why, -EINVAL, "push: '%s' is empty", path);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			return err_set(why, -EINVAL, "push: '%s' has control characters in it",
				       path);
	return 0;
}

int push_secret_read(const char *path, char ret[PUSH_SECRET_MAX], struct err *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	struct stat st;
	ssize_t n = 0;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err = err_set_os(why, -errno, "push: cannot read '%s'", path);
	} else if (!S_ISREG(st.st_mode)) {
		err = err_set(why, -EINVAL, "push: '%s' is not a file", path);
	} else if (st.st_mode & (S_IROTH | S_IWOTH)) {
		err = err_set(why, -EACCES,
			      "push: others can read or write '%s': take that away (chmod o= '%s')",
			      path, path);
	} else if ((n = read(fd, ret, PUSH_SECRET_MAX)) < 0) {
		err = err_set_os(why, -errno, "push: cannot read '%s'", path);
	} else if (n == PUSH_SECRET_MAX) {
		err = err_set(why, -EINVAL, "push: '%s' has more than %d bytes", path,
			      PUSH_SECRET_MAX - 1);
	}
	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	ret[n] = 0;
	return check_line(path, ret, why);
}
