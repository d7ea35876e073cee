/* SPDX-License-Identifier: MIT */
/*
 * out_file.c - see out_file.h.
 *
 * The folder is opened once and everything is done in it by its descriptor, so that no other folder can
 * be put in its place meanwhile. Root may be asked to write into a folder of somebody else: the
 * temporary file has a random name and is made anew (O_EXCL), the name is given by rename, which
 * replaces a link and does not follow it.
 */
#include "record/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMP_NAME_BYTES 40
#define TEMP_TRIES 16
#define FREE_NAMES 1000 /* that are tried when the name has been taken meanwhile */
#define SUFFIX ".pb.gz"

struct out_file {
	char path[PATH_MAX];
	size_t folder_len; /* of path: up to and with the last '/', 0: none */
	char temp[TEMP_NAME_BYTES]; /* "": written to directly */
	int folder_fd, fd;
	bool replaces;
};

static const char *name_of(const struct out_file *of)
{
	return of->path + of->folder_len;
}

static bool is_trusted(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

/* Can nobody else change what is in it? In a sticky folder each can change only what is his own. */
static bool is_folder_safe(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && is_trusted(&st) &&
	       (!(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX);
}

static int open_folder(struct out_file *of)
{
	char folder[PATH_MAX] = ".";
	char *slash = strrchr(of->path, '/');

	if (slash) {
		of->folder_len = (size_t)(slash + 1 - of->path);
		memcpy(folder, of->path, of->folder_len);
		folder[of->folder_len] = '\0';
	}
	of->folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return of->folder_fd < 0 ? -errno : 0;
}

/* Where there is something that is no file. *ret_fd -1: there is nothing, or a file, or a link to one. */
static int open_special(const struct out_file *of, const struct stat *at, int *ret_fd)
{
	struct stat st;
	int fd, err = 0;

	*ret_fd = -1;
	if (S_ISDIR(at->st_mode))
		return -EISDIR;
	if (S_ISREG(at->st_mode))
		return 0;
	if (S_ISLNK(at->st_mode)) {
		if (fstatat(of->folder_fd, name_of(of), &st, 0))
			return errno == ENOENT || errno == ELOOP ? 0 : -errno;
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		if (S_ISREG(st.st_mode))
			return 0;
	}
	if (!is_trusted(at) || (S_ISLNK(at->st_mode) && !is_folder_safe(of->folder_fd)))
		return -EPERM;
	fd = openat(of->folder_fd, name_of(of), O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	/* It is what it was, or else nothing is written. */
	if (fstat(fd, &st) || S_ISREG(st.st_mode))
		err = -EPERM;
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

static int make_temp(struct out_file *of)
{
	for (int i = 0; i < TEMP_TRIES; i++) {
		uint64_t number;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -EIO;
		snprintf(of->temp, sizeof(of->temp), ".heaptap-%016llx.tmp",
			 (unsigned long long)number);
		of->fd = openat(of->folder_fd, of->temp,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (of->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	of->temp[0] = '\0';
	return -errno;
}

static int open_at(struct out_file *of)
{
	struct stat st;
	int err = open_folder(of);

	if (err)
		return err;
	if (!*name_of(of))
		return -EISDIR;
	if (!fstatat(of->folder_fd, name_of(of), &st, AT_SYMLINK_NOFOLLOW)) {
		err = open_special(of, &st, &of->fd);
		if (err || of->fd >= 0)
			return err;
		if (!of->replaces)
			return -EEXIST;
	} else if (errno != ENOENT) {
		return -errno;
	}
	return make_temp(of);
}

static void explain(const char *path, int err, char *why, size_t why_bytes)
{
	if (err == -EEXIST)
		snprintf(why, why_bytes,
			 "'%s' exists: give another name with -o FILE, or replace it with --force",
			 path);
	else if (err == -EPERM)
		snprintf(why, why_bytes,
			 "cannot write '%s': somebody else can say where it leads; choose another "
			 "file with -o FILE",
			 path);
	else
		snprintf(why, why_bytes, "cannot write '%s': %s; choose another file with -o FILE",
			 path, strerror(-err));
}

int out_file_open(const char *path, bool replaces, struct out_file **ret, char *why,
		  size_t why_bytes)
{
	struct out_file *of = calloc(1, sizeof(*of));
	int err = of ? 0 : -ENOMEM;

	if (of) {
		of->folder_fd = of->fd = -1;
		of->replaces = replaces;
		if (snprintf(of->path, sizeof(of->path), "%s", path) >= (int)sizeof(of->path))
			err = -ENAMETOOLONG;
		else
			err = *path ? open_at(of) : -ENOENT;
	}
	if (err) {
		explain(path, err, why, why_bytes);
		out_file_free(of);
		return err;
	}
	*ret = of;
	return 0;
}

int out_file_open_stdout(int fd, struct out_file **ret)
{
	struct out_file *of = calloc(1, sizeof(*of));

	if (!of)
		return -ENOMEM;
	of->folder_fd = -1;
	of->fd = fd;
	snprintf(of->path, sizeof(of->path), "-");
	*ret = of;
	return 0;
}

int out_file_fd(const struct out_file *of)
{
	return of->fd;
}

const char *out_file_path(const struct out_file *of)
{
	return of->path;
}

/* -EEXIST: there is something of that name. */
static int give_new_name(const struct out_file *of, const char *name)
{
	if (!renameat2(of->folder_fd, of->temp, of->folder_fd, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* a file system that cannot: a second name instead, which has to be free as well */
	if (linkat(of->folder_fd, of->temp, of->folder_fd, name, 0))
		return -errno;
	unlinkat(of->folder_fd, of->temp, 0);
	return 0;
}

static int give_free_name(struct out_file *of)
{
	const char *name = name_of(of);
	size_t len = strlen(name), suffix_len = strlen(SUFFIX);
	bool has_suffix = len > suffix_len && !strcmp(name + len - suffix_len, SUFFIX);
	int stem_len = (int)(has_suffix ? len - suffix_len : len);
	char other[PATH_MAX];
	int err = -EEXIST;

	for (int i = 1; i <= FREE_NAMES && err == -EEXIST; i++) {
		if (snprintf(other, sizeof(other), "%.*s-%d%s", stem_len, name, i,
			     has_suffix ? SUFFIX : "") >= (int)(sizeof(other) - of->folder_len))
			return -ENAMETOOLONG;
		err = give_new_name(of, other);
	}
	if (!err)
		snprintf(of->path + of->folder_len, sizeof(of->path) - of->folder_len, "%s", other);
	return err;
}

int out_file_commit(struct out_file *of)
{
	int err = close(of->fd) ? -errno : 0;

	of->fd = -1;
	if (err || !of->temp[0])
		return err;
	if (of->replaces)
		err = renameat(of->folder_fd, of->temp, of->folder_fd, name_of(of)) ? -errno : 0;
	else
		err = give_new_name(of, name_of(of));
	if (err == -EEXIST || err == -EISDIR)
		err = give_free_name(of);
	if (!err)
		of->temp[0] = '\0';
	return err;
}

void out_file_free(struct out_file *of)
{
	if (!of)
		return;
	if (of->fd >= 0)
		close(of->fd);
	if (of->temp[0])
		unlinkat(of->folder_fd, of->temp, 0);
	if (of->folder_fd >= 0)
		close(of->folder_fd);
	free(of);
}

bool out_file_is_stdout(const char *path)
{
	static const char *const names[] = { "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(path, names[i]))
			return true;
	return false;
}

int out_file_take_stdout(int *ret_fd)
{
	int fd, err;

	if (isatty(STDOUT_FILENO))
		return -ENOTTY;
	fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

void out_file_default_name(const char *comm, pid_t pid, int64_t epoch_s,
			   char buf[static OUT_FILE_NAME_BYTES])
{
	char name[32], stamp[24] = "";
	time_t t = epoch_s;
	struct tm tm;
	size_t i;

	for (i = 0; i < sizeof(name) - 1 && comm[i]; i++)
		name[i] = is_plain(comm[i]) ? comm[i] : '_';
	name[i] = '\0';
	/* neither hidden nor taken for an option */
	if (name[0] == '.' || name[0] == '-')
		name[0] = '_';
	if (gmtime_r(&t, &tm))
		strftime(stamp, sizeof(stamp), "-%Y%m%d-%H%M%S", &tm);
	snprintf(buf, OUT_FILE_NAME_BYTES, "%s-%d%s" SUFFIX, *name ? name : "process", pid, stamp);
}
