/* SPDX-License-Identifier: MIT */
/* profile_in.c - see profile_in.h. */
#include "cmd/profile_in.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "http/http_get.h"
#include "http/token.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "symbol/profile_symbols.h"

/* The page of a process, http://HOST/pid/14/ as it stands in the browser, means the process's profile. NULL: no memory. */
static char *address_of_profile(const char *page)
{
	const char *path = strchr(strstr(page, "://") + 3, '/');
	const char *pid = path ? strstr(path, "/pid/") : NULL;
	size_t len = pid ? strspn(pid + 5, "0123456789") : 0;
	const char *rest = len ? pid + 5 + len : "";
	char *url = NULL;

	rest += *rest == '/';
	if (!len || (*rest && *rest != '?' && *rest != '#'))
		return strdup(page);
	return asprintf(&url, "%.*s/debug/pprof/heap?pid=%.*s", (int)(pid - page), page, (int)len,
			pid + 5) < 0 ?
		       NULL :
		       url;
}

/* Return a descriptor of the server's answer, in memory. */
static int fetch(const char *command, const char *page, const char *token_file, int *ret_fd)
{
	char *url = address_of_profile(page), token[TOKEN_BYTES_CAP + 2] = "";
	struct err why = { 0 };
	int fd = -1, err = url ? 0 : -ENOMEM;

	if (!err && token_file)
		err = token_read(token_file, token, &why);
	if (!err) {
		fd = memfd_create("heaptap-profile", MFD_CLOEXEC);
		err = fd < 0 ? -errno : 0;
	}
	if (!err)
		err = http_get(url, token_file ? token : NULL, fd, &why);
	if (!err && lseek(fd, 0, SEEK_SET) < 0) {
		err = -errno;
		why.text[0] = '\0'; /* it tells of a success */
	}
	explicit_bzero(token, sizeof(token));
	free(url);
	if (err) {
		log_error("%s: cannot read '%s': %s", command, page,
			  why.text[0] ? why.text : strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

static int open_path(const char *command, const char *path, const char *token_file, int *ret_fd)
{
	int err = 0;

	if (http_get_is_url(path))
		return fetch(command, path, token_file, ret_fd);
	*ret_fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (*ret_fd < 0) {
		err = -errno;
		log_error("%s: cannot read '%s': %s", command, path, strerror(-err));
	}
	return err;
}

int profile_in_read(const char *command, const char *path, const char *token_file,
		    struct profile **ret)
{
	struct err why;
	int fd, err = open_path(command, path, token_file, &fd);

	if (err)
		return err;
	err = pprof_read(fd, ret, &why);
	if (err == -EBADMSG)
		log_error("%s: '%s' is not a readable profile: at %s %llu: %s", command, path,
			  why.line ? "line" : "byte",
			  (unsigned long long)(why.line ? why.line : why.offset), why.text);
	else if (err)
		log_error("%s: cannot read '%s': %s", command, path, strerror(-err));
	if (fd != STDIN_FILENO)
		close(fd);
	return err;
}

int profile_in_name(const char *command, struct profile *p)
{
	const struct symbol_options opts = { .lines = true, .demangle = true };
	size_t missing_cnt = 0;
	int err;

	if (!sandbox_is_whole())
		log_warn("%s: " SANDBOX_NOT_WHOLE, command);
	err = profile_symbolize(p, &opts, &missing_cnt);
	if (err)
		log_error("%s: cannot look up names: %s", command, strerror(-err));
	if (missing_cnt)
		log_warn("%s: %zu files of the profile are missing here or differ: their functions "
			 "have no names",
			 command, missing_cnt);
	return err;
}
