/* SPDX-License-Identifier: MIT */
/* token.c - see http.h. */
#include "http/http.h"

#include "base/err.h"

static int check_owner(int fd, const char *path, struct err *why)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return err_set(why, -EINVAL, "token file '%s' is not a regular file", path);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return err_set(why, -EPERM,
			       "token file '%s' can be read by others (mode %03o): chmod 600 '%s'",
			       path, st.st_mode & 0777, path);
	if (st.st_uid && st.st_uid != geteuid())
		return err_set(why, -EPERM, "token file '%s' belongs to uid %u: make it your own",
			       path, st.st_uid);
	return 0;
}

int token_read(const char *path, char *buf, struct err *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	ssize_t n = 0;

	if (fd < 0)
		return err_set_os(why, -errno, "cannot read token file '%s'", path);
	err = check_owner(fd, path, why);
	if (!err) {
		n = read(fd, buf, TOKEN_BYTES_CAP + 1);
		err = n < 0 ? -errno : 0;
	}
	close(fd);
	if (err)
		return err;
	if (n > TOKEN_BYTES_CAP)
		return err_set(why, -E2BIG, "the token in '%s' is longer than %d bytes", path,
			       TOKEN_BYTES_CAP);
	buf[n] = '\0';
	buf[strcspn(buf, "\r\n")] = '\0';
	if (strlen(buf) < TOKEN_BYTES_MIN)
		return err_set(why, -EINVAL,
			       "the token in '%s' is shorter than %d bytes; make one with: "
			       "head -c 24 /dev/urandom | base64",
			       path, TOKEN_BYTES_MIN);
	return 0;
}

bool token_equal(const char *given, const char *token)
{
	size_t given_len = strlen(given), token_len = strlen(token);
	volatile uint8_t differs = given_len != token_len;

	/* Compare every given byte with some byte of the token. */
	for (size_t i = 0; i < given_len; i++)
		differs |= (uint8_t)given[i] ^ (uint8_t)token[token_len ? i % token_len : 0];
	return !differs;
}

bool token_authorizes(const char *header, const char *token)
{
	return header && !strncasecmp(header, "Bearer ", 7) &&
	       token_equal(header + 7 + strspn(header + 7, " "), token);
}
