/* SPDX-License-Identifier: MIT */
/* folder.c - see folder.h. */
#include "base/folder.h"

#include <sys/random.h>

#include "base/err.h"

#define SHOWN_BYTES 256UL /* of a path in a message */
#define PATH_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* Only root's environment counts: what sudo says there is true. */
static bool is_number_of(const char *variable, unsigned id)
{
	const char *text = geteuid() ? NULL : getenv(variable);
	char *end;

	return text && *text >= '0' && *text <= '9' && strtoul(text, &end, 10) == id && !*end;
}

static bool is_own(const struct stat *st)
{
	return !st->st_uid || st->st_uid == geteuid() || is_number_of("SUDO_UID", st->st_uid);
}

/* Others' write permissions. sudo's user often has a default group of his own: it does not count. */
static mode_t others_mode(const struct stat *st)
{
	mode_t mode = st->st_mode & (S_IWGRP | S_IWOTH);

	if (is_number_of("SUDO_UID", st->st_uid) && is_number_of("SUDO_GID", st->st_gid))
		mode &= ~(mode_t)S_IWGRP;
	return mode;
}

static bool has_other_owner(const struct stat *st, enum folder_rule rule)
{
	return rule == FOLDER_OURS ? st->st_uid && st->st_uid != geteuid() : !is_own(st);
}

static bool is_stranger(const struct stat *st, enum folder_rule rule)
{
	if (has_other_owner(st, rule))
		return true;
	if (rule == FOLDER_OURS)
		return st->st_mode & (S_IWGRP | S_IWOTH);
	return others_mode(st) && !(st->st_mode & S_ISVTX);
}

bool folder_is_safe(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !is_stranger(&st, FOLDER_SHARED);
}

/* shown: the length of the part of path that names the folder. */
static int judge(int fd, enum folder_rule rule, const char *path, size_t shown, struct err *why)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!is_stranger(&st, rule))
		return 0;
	if (!shown) {
		path = ".";
		shown = 1;
	}
	while (shown > 1 && path[shown - 1] == '/')
		shown--;
	if (shown > SHOWN_BYTES)
		shown = SHOWN_BYTES;
	if (has_other_owner(&st, rule))
		return err_set(why, -EPERM,
			       "the folder '%.*s' belongs to user %u, who can change the files in "
			       "it",
			       (int)shown, path, st.st_uid);
	return err_set(why, -EPERM, "others can change the files in the folder '%.*s'", (int)shown,
		       path);
}

/* In a safe folder nobody can change what was checked, except his own entries: those are no links, or are refused. */
static int step(int fd, const char *name, int *ret_fd, struct err *why)
{
	struct stat st;
	bool is_link;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	is_link = S_ISLNK(st.st_mode);
	if (is_link && !is_own(&st))
		return err_set(
			why, -EPERM,
			"the link '%.200s' in the path belongs to user %u, who can change its "
			"target",
			name, st.st_uid);
	*ret_fd = openat(fd, name, PATH_FLAGS | (is_link ? 0 : O_NOFOLLOW));
	return *ret_fd < 0 ? -errno : 0;
}

static int walk(const char *path, bool makes, int *fd, struct err *why)
{
	char name[NAME_MAX + 1];
	const char *at = path + strspn(path, "/"), *end;
	size_t len;
	int err, next = -1;

	for (; *at; at = end) {
		len = strcspn(at, "/");
		end = at + len + strspn(at + len, "/");
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, at, len);
		name[len] = '\0';
		err = judge(*fd, FOLDER_SHARED, path, (size_t)(at - path), why);
		if (!err && makes && !*end && mkdirat(*fd, name, 0700) && errno != EEXIST)
			err = -errno;
		if (!err)
			err = step(*fd, name, &next, why);
		if (err)
			return err;
		close(*fd);
		*fd = next;
	}
	return 0;
}

int folder_open(const char *path, enum folder_rule rule, int *ret_fd, struct err *why)
{
	bool walks = rule != FOLDER_ANY && !geteuid(), is_ours = rule == FOLDER_OURS;
	int fd, path_fd, err = 0;

	if (!walks && is_ours && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	path_fd = open(!walks ? path : *path == '/' ? "/" : ".", PATH_FLAGS);
	if (path_fd < 0)
		return -errno;
	if (walks)
		err = walk(path, is_ours, &path_fd, why);
	if (!err && (walks || is_ours))
		err = judge(path_fd, rule, path, strlen(path), why);
	if (err || !is_ours) {
		fd = path_fd;
		goto out;
	}
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	close(path_fd);
out:
	if (!err)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}

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
