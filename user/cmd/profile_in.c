/* SPDX-License-Identifier: MIT */
/* profile_in.c - see profile_in.h. */
#include "cmd/profile_in.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "symbol/profile_symbols.h"

int profile_in_read(const char *command, const char *path, struct profile **ret)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), err;
	struct format_error why;

	if (fd < 0) {
		err = -errno;
		log_error("%s: cannot read '%s': %s", command, path, strerror(-err));
		return err;
	}
	err = pprof_read(fd, ret, &why);
	if (err == -EBADMSG)
		log_error("%s: '%s' is not a readable profile: at %s %llu: %s", command, path,
			  why.line ? "line" : "byte",
			  (unsigned long long)(why.line ? why.line : why.offset), why.text);
	else if (err)
		log_error("%s: cannot read '%s': %s", command, path, strerror(-err));
	if (!is_stdin)
		close(fd);
	return err;
}

int profile_in_name(const char *command, struct profile *p)
{
	const struct symbol_options opts = { .lines = true, .demangle = true };
	size_t missing_cnt = 0;
	int err = profile_symbolize(p, &opts, &missing_cnt);

	if (err)
		log_error("%s: cannot look up names: %s", command, strerror(-err));
	if (missing_cnt)
		log_warn("%s: %zu of the profile's files not here, or not the same: their "
			 "functions have no names",
			 command, missing_cnt);
	return err;
}
