/* SPDX-License-Identifier: MIT */
/* token.c - see token.h. */
#include "http/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_owner(int fd, const char *path, char *why, size_t why_bytes)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, why_bytes, "token file '%s' is not a regular file", path);
		return -EINVAL;
	}
	if (st.st_mode & (S_IRWXG | S_IRWXO)) {
		snprintf(why, why_bytes,
			 "token file '%s' can be read by others (mode %03o): chmod 600 '%s'", path,
			 st.st_mode & 0777, path);
		return -EPERM;
	}
	if (st.st_uid && st.st_uid != geteuid()) {
		snprintf(why, why_bytes, "token file '%s' belongs to uid %u: make it your own",
			 path, st.st_uid);
		return -EPERM;
	}
	return 0;
}

int token_read(const char *path, char *buf, char *why, size_t why_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	ssize_t n = 0;

	if (fd < 0) {
		err = -errno;
		snprintf(why, why_bytes, "cannot read token file '%s': %s", path, strerror(-err));
		return err;
	}
	err = check_owner(fd, path, why, why_bytes);
	if (!err) {
		n = read(fd, buf, TOKEN_BYTES_CAP + 1);
		err = n < 0 ? -errno : 0;
	}
	close(fd);
	if (err)
		return err;
	if (n > TOKEN_BYTES_CAP) {
		snprintf(why, why_bytes, "the token in '%s' is longer than %d bytes", path,
			 TOKEN_BYTES_CAP);
		return -E2BIG;
	}
	buf[n] = '\0';
	buf[strcspn(buf, "\r\n")] = '\0';
	if (strlen(buf) < TOKEN_BYTES_MIN) {
		snprintf(why, why_bytes,
			 "the token in '%s' is shorter than %d bytes; make one with: "
			 "head -c 24 /dev/urandom | base64",
			 path, TOKEN_BYTES_MIN);
		return -EINVAL;
	}
	return 0;
}

bool token_equal(const char *given, const char *token)
{
	size_t given_len = strlen(given), token_len = strlen(token);
	volatile uint8_t differs = given_len != token_len;

	/* Every byte of what was given is compared with some byte of the token. */
	for (size_t i = 0; i < given_len; i++)
		differs |= (uint8_t)given[i] ^ (uint8_t)token[token_len ? i % token_len : 0];
	return !differs;
}

bool token_authorizes(const char *header, const char *token)
{
	return header && !strncasecmp(header, "Bearer ", 7) &&
	       token_equal(header + 7 + strspn(header + 7, " "), token);
}
