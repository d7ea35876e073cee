/* SPDX-License-Identifier: MIT */
/* http_get.c - see http_get.h. */
#include "http/http_get.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/curl_setup.h"
#include "base/err.h"
#include "base/printable.h"
#include "base/fd.h"

#define CONNECT_S 10L
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

static CURLcode set_up(struct download *d, const char *url, const char *token,
		       char error[static CURL_ERROR_SIZE])
{
	CURL *e = d->easy;
	CURLcode rc = curl_setup(e, false, NULL, error);

	if (rc == CURLE_OK)
		rc = curl_setup_token(e, token);
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
		return err_set(why, -EACCES, "the server wants %s (HTTP status %ld)",
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

int http_get(const char *url, const char *token, int fd, struct err *why)
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
