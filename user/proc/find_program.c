/* SPDX-License-Identifier: MIT */
/*
 * find_program.c - PATH look-up, "#!" lines, and why a command cannot be started.
 */
#include "proc/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return -EACCES;
	return 0;
}

int find_program(const char *cmd, char **ret)
{
	const char *dir = getenv("PATH");
	char *path = NULL;
	int err, result = -ENOENT;

	if (!cmd || !*cmd)
		return -ENOENT;
	if (strchr(cmd, '/')) {
		err = check_executable(cmd);
		if (!err) {
			*ret = strdup(cmd);
			err = *ret ? 0 : -ENOMEM;
		}
		return err;
	}
	if (!dir)
		dir = "/bin:/usr/bin";
	for (;;) {
		int len = (int)strcspn(dir, ":");

		/* an empty entry is the current directory */
		if (asprintf(&path, "%.*s/%s", len ? len : 1, len ? dir : ".", cmd) < 0)
			return -ENOMEM;
		err = check_executable(path);
		if (!err) {
			*ret = path;
			return 0;
		}
		/* EACCES of a directory that may not be searched does not count: we can find nothing there */
		if (err == -EACCES && !access(path, F_OK))
			result = err;
		free(path);
		if (!dir[len])
			return result;
		dir += len + 1;
	}
}

int script_line_read(const char *path, struct script_line *ret)
{
	int fd = regular_file_open(path);
	char *p, *end;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, ret->text, sizeof(ret->text) - 1);
	close(fd);
	if (n < 3 || memcmp(ret->text, "#!", 2))
		return -ENOEXEC;
	ret->text[n] = '\0';
	ret->text[strcspn(ret->text, "\n")] = '\0';
	p = ret->text + 2;
	p += strspn(p, " \t");
	for (end = p + strlen(p); end > p && (end[-1] == ' ' || end[-1] == '\t'); end--)
		end[-1] = '\0';
	if (!*p)
		return -ENOEXEC;
	ret->interp = p;
	p += strcspn(p, " \t");
	ret->arg = NULL;
	if (*p) {
		*p++ = '\0';
		ret->arg = p + strspn(p, " \t");
	}
	return 0;
}

/* execve returns ENOENT also for a missing interpreter, a script's or the loader. */
static void explain_missing(const char *cmd, struct err *why)
{
	struct script_line script = { .interp = "" };
	char *path = NULL;

	if (find_program(cmd, &path)) {
		if (strchr(cmd, '/'))
			err_set(why, -ENOENT, "cannot start '%s': there is no such file", cmd);
		else
			err_set(why, -ENOENT,
				"cannot start '%s': no such command in PATH; give its path", cmd);
	} else if (!script_line_read(path, &script)) {
		err_set(why, -ENOENT,
			"cannot start '%s': bad interpreter '%s' in its first line: install it or "
			"correct the line",
			path, script.interp);
	} else {
		err_set(why, -ENOENT,
			"cannot start '%s': its loader (ELF interpreter) is not installed; "
			"'readelf -l' shows which",
			path);
	}
	free(path);
}

static void explain_forbidden(const char *cmd, struct err *why)
{
	struct script_line script = { .interp = "" };
	char *path = NULL;

	if (!find_program(cmd, &path) && !script_line_read(path, &script))
		err_set(why, -EACCES,
			"cannot start '%s': its interpreter '%s' is not executable: check its "
			"permissions",
			path, script.interp);
	else
		err_set(why, -EACCES,
			"cannot start '%s': no execute permission, or its file system is mounted "
			"noexec",
			cmd);
	free(path);
}

const char *find_program_explain(const char *cmd, int err, struct err *why)
{
	switch (-err) {
	case ENOENT:
		explain_missing(cmd, why);
		break;
	case EACCES:
		explain_forbidden(cmd, why);
		break;
	case EISDIR:
		err_set(why, err, "cannot start '%s': it is a directory", cmd);
		break;
	case ENOEXEC:
		err_set(why, err,
			"cannot start '%s': not a program for this machine (neither an ELF file of "
			"its kind nor a script with a #! line)",
			cmd);
		break;
	case ENOTSUP:
		err_set(why, err,
			"cannot record '%s': it is a 32-bit program; heaptap records only 64-bit "
			"programs",
			cmd);
		break;
	case ESRCH:
		err_set(why, err, "cannot start '%s': its process was killed before it ran", cmd);
		break;
	default:
		err_set_os(why, err, "cannot start '%s'", cmd);
	}
	return why->text;
}
