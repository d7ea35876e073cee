/* SPDX-License-Identifier: MIT */
/* new_file.c - see new_file.h. */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define SUFFIX ".tmp"
#define NUMBER_DIGITS 16
#define TRIES 16

int new_file_open(int folder_fd, const char *prefix, struct new_file *ret)
{
	int err = -EEXIST;

	*ret = (struct new_file){ .folder_fd = folder_fd, .fd = -1 };
	for (int i = 0; i < TRIES && err == -EEXIST; i++) {
		uint64_t number;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
			err = -EIO;
			break;
		}
		snprintf(ret->name, sizeof(ret->name), "%.24s%016llx" SUFFIX, prefix,
			 (unsigned long long)number);
		ret->fd = openat(folder_fd, ret->name,
				 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		err = ret->fd < 0 ? -errno : 0;
	}
	if (err)
		ret->name[0] = '\0';
	return err;
}

/* -EEXIST: the name is taken. */
static int give_free_name(const struct new_file *f, const char *name)
{
	if (!renameat2(f->folder_fd, f->name, f->folder_fd, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* a file system without this: link a second name, which has to be free as well */
	if (linkat(f->folder_fd, f->name, f->folder_fd, name, 0))
		return -errno;
	unlinkat(f->folder_fd, f->name, 0);
	return 0;
}

int new_file_commit(struct new_file *f, const char *name, bool replaces)
{
	int err = f->fd >= 0 && close(f->fd) ? -errno : 0;

	f->fd = -1;
	if (err)
		return err;
	if (replaces)
		err = renameat(f->folder_fd, f->name, f->folder_fd, name) ? -errno : 0;
	else
		err = give_free_name(f, name);
	if (!err)
		f->name[0] = '\0';
	return err;
}

void new_file_drop(struct new_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	if (f->name[0])
		unlinkat(f->folder_fd, f->name, 0);
	f->name[0] = '\0';
}

bool new_file_is_left(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return !strncmp(name, prefix, len) &&
	       strspn(name + len, "0123456789abcdef") == NUMBER_DIGITS &&
	       !strcmp(name + len + NUMBER_DIGITS, SUFFIX);
}
