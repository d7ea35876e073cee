/* SPDX-License-Identifier: MIT */
/* out_file.c - see out_file.h. */
#include "record/out_file.h"

#include "base/err.h"
#include "base/folder.h"
#include "base/names.h"

#define TEMP_PREFIX ".heaptap-"
#define FREE_NAMES 1000 /* tried when the name has been taken meanwhile */
#define SUFFIX ".pb.gz"

struct out_file {
	char path[PATH_MAX];
	size_t folder_len; /* of path, up to and with the last '/'; 0: none */
	struct new_file file; /* no name: written to directly */
	int folder_fd;
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

static int open_folder(struct out_file *of, struct err *why)
{
	char folder[PATH_MAX] = ".";
	char *slash = strrchr(of->path, '/');

	if (slash) {
		of->folder_len = (size_t)(slash + 1 - of->path);
		memcpy(folder, of->path, of->folder_len);
		folder[of->folder_len] = '\0';
	}
	return folder_open(folder, of->replaces ? FOLDER_ANY : FOLDER_SHARED, &of->folder_fd, why);
}

/* Open what is not a file. *ret_fd -1: there is nothing, or a file, or a link to one. */
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
	if (!is_trusted(at) || (S_ISLNK(at->st_mode) && !folder_is_safe(of->folder_fd)))
		return -EPERM;
	fd = openat(of->folder_fd, name_of(of), O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	/* If it has become a file meanwhile, write nothing. */
	if (fstat(fd, &st) || S_ISREG(st.st_mode))
		err = -EPERM;
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

static int open_at(struct out_file *of, struct err *why)
{
	struct stat st;
	int err = open_folder(of, why);

	if (err)
		return err;
	if (!*name_of(of))
		return -EISDIR;
	if (!fstatat(of->folder_fd, name_of(of), &st, AT_SYMLINK_NOFOLLOW)) {
		err = open_special(of, &st, &of->file.fd);
		if (err || of->file.fd >= 0)
			return err;
		if (!of->replaces)
			return -EEXIST;
	} else if (errno != ENOENT) {
		return -errno;
	}
	return new_file_open(of->folder_fd, TEMP_PREFIX, &of->file);
}

static int explain(const char *path, int err, const struct err *folder_why, const char *how,
		   struct err *why)
{
	if (folder_why->text[0])
		return err_set(
			why, err,
			"cannot write '%s': %s; choose a file in another folder%s, or write there "
			"anyway with --force",
			path, folder_why->text, how);
	if (err == -EEXIST)
		return err_set(why, err,
			       "'%s' exists: give another name%s, or replace it with --force", path,
			       how);
	if (err == -EPERM)
		return err_set(
			why, err,
			"cannot write '%s': others can change where it leads; choose another "
			"file%s",
			path, how);
	return err_set(why, err, "cannot write '%s': %s; choose another file%s", path,
		       strerror(-err), how);
}

int out_file_open(const char *path, bool replaces, const char *how, struct out_file **ret,
		  struct err *why)
{
	struct out_file *of = calloc(1, sizeof(*of));
	struct err folder_why = { 0 };
	int err = of ? 0 : -ENOMEM;

	if (of) {
		of->folder_fd = of->file.fd = -1;
		of->replaces = replaces;
		if (snprintf(of->path, sizeof(of->path), "%s", path) >= (int)sizeof(of->path))
			err = -ENAMETOOLONG;
		else
			err = *path ? open_at(of, &folder_why) : -ENOENT;
	}
	if (err) {
		out_file_free(of);
		return explain(path, err, &folder_why, how, why);
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
	of->file.fd = fd;
	snprintf(of->path, sizeof(of->path), "-");
	*ret = of;
	return 0;
}

int out_file_fd(const struct out_file *of)
{
	return of->file.fd;
}

const char *out_file_path(const struct out_file *of)
{
	return of->path;
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
		err = new_file_commit(&of->file, other, false);
	}
	if (!err)
		snprintf(of->path + of->folder_len, sizeof(of->path) - of->folder_len, "%s", other);
	return err;
}

int out_file_commit(struct out_file *of)
{
	int fd = of->file.fd, err;

	if (!of->file.name[0]) {
		of->file.fd = -1;
		return close(fd) ? -errno : 0;
	}
	err = new_file_commit(&of->file, name_of(of), of->replaces);
	return err == -EEXIST || err == -EISDIR ? give_free_name(of) : err;
}

void out_file_free(struct out_file *of)
{
	if (!of)
		return;
	new_file_drop(&of->file);
	if (of->folder_fd >= 0)
		close(of->folder_fd);
	free(of);
}

bool out_file_is_stdout(const char *path)
{
	static const char *const names[] = { "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1" };

	return equals_one_of(path, names, ARRAY_CNT(names));
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
	/* not hidden, and not like an option */
	if (name[0] == '.' || name[0] == '-')
		name[0] = '_';
	if (gmtime_r(&t, &tm))
		strftime(stamp, sizeof(stamp), "-%Y%m%d-%H%M%S", &tm);
	snprintf(buf, OUT_FILE_NAME_BYTES, "%s-%d%s" SUFFIX, *name ? name : "process", pid, stamp);
}
