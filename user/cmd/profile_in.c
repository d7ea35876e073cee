/* SPDX-License-Identifier: MIT */
/* profile_in.c - see cmd.h. */
#include "cmd/cmd.h"

#include <curl/curl.h>
#include <sys/mman.h>

#include "base/curl_setup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/sandbox.h"
#include "http/http.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

#define CONNECT_S 10L
/* Seconds without data: a server may record for minutes before it answers (?seconds=300). */
#define HTTP_GET_IDLE_S 330
#define HTTP_GET_S 900
#define HTTP_GET_BYTES_MAX ((size_t)256 << 20)
#define ANSWER_KEPT 160 /* of the server's error text */

struct download {
	CURL *easy;
	int fd;
	size_t bytes;
	char answer[ANSWER_KEPT + 1]; /* the text, if the answer is no file */
	size_t answer_len;
	int err; /* from writing */
};

bool http_get_is_url(const char *text)
{
	return !strncmp(text, "http://", 7) || !strncmp(text, "https://", 8);
}

/* Has the address a name or a password before the host? */
static bool has_user(const char *url)
{
	const char *host = strstr(url, "://") + 3;
	size_t bytes = strcspn(host, "/?#");

	return memchr(host, '@', bytes) != NULL;
}

static long status_of(const struct download *d)
{
	long status = 0;

	curl_easy_getinfo(d->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct download *d = ctx;
	size_t bytes = size * n, room = ANSWER_KEPT - d->answer_len;

	if (status_of(d) != 200) {
		room = bytes < room ? bytes : room;
		memcpy(d->answer + d->answer_len, data, room);
		d->answer_len += room;
		return bytes;
	}
	d->bytes += bytes;
	d->err = d->bytes > HTTP_GET_BYTES_MAX ? -EFBIG : write_all(d->fd, data, bytes);
	return d->err ? 0 : bytes;
}

/* Send a token to that server alone: no proxy sees it, and redirections are not followed. NULL: none. */
static CURLcode set_token(CURL *e, const char *token)
{
	CURLcode rc = CURLE_OK;

	CURL_SET(rc, e, CURLOPT_NOPROXY, "*");
	CURL_SET(rc, e, CURLOPT_FOLLOWLOCATION, 0L);
	if (token) {
		CURL_SET(rc, e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
		CURL_SET(rc, e, CURLOPT_XOAUTH2_BEARER, token);
	}
	return rc;
}

static CURLcode set_up(struct download *d, const char *url, const char *token,
		       char error[static CURL_ERROR_SIZE])
{
	CURL *e = d->easy;
	CURLcode rc = curl_setup(e, false, NULL, error);

	if (rc == CURLE_OK)
		rc = set_token(e, token);
	CURL_SET(rc, e, CURLOPT_URL, url);
	CURL_SET(rc, e, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	CURL_SET(rc, e, CURLOPT_TIMEOUT, (long)HTTP_GET_S);
	CURL_SET(rc, e, CURLOPT_LOW_SPEED_LIMIT, 1L);
	CURL_SET(rc, e, CURLOPT_LOW_SPEED_TIME, (long)HTTP_GET_IDLE_S);
	CURL_SET(rc, e, CURLOPT_WRITEFUNCTION, on_data);
	CURL_SET(rc, e, CURLOPT_WRITEDATA, d);
	return rc;
}

/* Put the server's error into one line. */
static int explain_status(struct download *d, bool has_token, struct err *why)
{
	long status = status_of(d);

	d->answer[strcspn(d->answer, "\r\n")] = '\0';
	make_printable(d->answer);
	if (status == 401 || status == 403)
		return err_set(why, -EACCES, "the server requires %s (HTTP status %ld)",
			       has_token ? "another token than that in --token-file" :
					   "a token (--token-file FILE of heaptap diff and report)",
			       status);
	return err_set(why, -EIO, "HTTP status %ld%s%s", status, d->answer[0] ? ": " : "",
		       d->answer);
}

static int perform(struct download *d, const char *url, const char *token, struct err *why)
{
	char error[CURL_ERROR_SIZE] = "";
	CURLcode rc = set_up(d, url, token, error);

	if (rc == CURLE_OK)
		rc = curl_easy_perform(d->easy);
	if (d->err == -EFBIG)
		return err_set(why, d->err, "the file has more than %zu MiB",
			       HTTP_GET_BYTES_MAX >> 20);
	if (d->err || rc != CURLE_OK)
		return err_set(why, d->err ? d->err : -EIO, "%s",
			       d->err	? strerror(-d->err) :
			       error[0] ? error :
					  curl_easy_strerror(rc));
	return status_of(d) == 200 ? 0 : explain_status(d, token, why);
}

/*
 * Write to fd, from its position. token: as in the server's --token-file, or NULL; only that server gets it, as
 * redirections are not followed. A negative errno with a sentence in why: -EACCES when a token, or another one, is
 * needed; -EFBIG.
 */
static int http_get(const char *url, const char *token, int fd, struct err *why)
{
	struct download d = { .fd = fd };
	int err = err_set(why, -ENOMEM, "out of memory");

	if (has_user(url))
		return err_set(why, -EINVAL, "an address must not contain a name and password");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	d.easy = curl_easy_init();
	if (d.easy)
		err = perform(&d, url, token, why);
	curl_easy_cleanup(d.easy);
	curl_global_cleanup();
	return err;
}

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
