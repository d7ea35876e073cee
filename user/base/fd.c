/* SPDX-License-Identifier: MIT */
/* fd.c - see fd.h. */
#include "base/fd.h"

#include <sys/mman.h>

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

ssize_t read_full(int fd, void *buf, size_t bytes)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < bytes && n) {
		n = read(fd, (char *)buf + done, bytes - done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)done;
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
 * The replacement is /dev/null if that exists. A root that holds nothing but heaptap, such as an image "from scratch"
 * outside of a container runtime, has no /dev: there it is an empty file in memory that cannot grow. Writing to that
 * fails (EPERM), which nobody checks.
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

static int check(int fd, struct stat *ret)
{
	if (fstat(fd, ret))
		return -errno;
	return S_ISREG(ret->st_mode) ? 0 : -ENOEXEC;
}

/*
 * Has somebody a write lease on the file? To open it would send him SIGIO, which ends a process that does not handle it.
 * The device is not compared: stat() and /proc/locks name different ones on btrfs and overlayfs. A lease that is taken
 * between this look and the opening is not seen.
 *
 * Only the owner of a file, and root, can have a lease on it. So files of root's are not looked for: the kernel lists
 * locks only after an RCU grace period, which takes seconds while others attach and remove probes.
 */
static bool has_write_lease(const struct stat *file)
{
	bool found = false;
	char line[160];
	FILE *f;

	if (!file->st_uid)
		return false;
	f = fopen("/proc/locks", "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		unsigned long long locked = 0;

		found = sscanf(line, "%*u: LEASE %*s WRITE %*d %*x:%*x:%llu", &locked) == 1 &&
			locked == file->st_ino;
	}
	if (f)
		fclose(f);
	return found;
}

int regular_file_reopen(int path_fd)
{
	char self[64];
	struct stat st;
	int err = check(path_fd, &st), fd;

	if (!err && has_write_lease(&st))
		err = -EAGAIN;
	if (err)
		return err;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	err = check(fd, &st); /* the link may lead elsewhere now */
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
