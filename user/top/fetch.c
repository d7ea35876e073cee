/* SPDX-License-Identifier: MIT */
/* fetch.c - see fetch.h. */
#include "top/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/curl_setup.h"
#include "base/err.h"
#include "base/vec.h"
#include "http/http_get.h"

#define CONNECT_MS 10000L
#define ANSWER_MS 120000L /* a server may need long for names */
#define ANSWER_BYTES_MAX ((size_t)256 << 20)

struct top_fetch {
	CURLM *multi;
	CURL *easy;
	char *base; /* of all addresses, without a final slash */
	char *unix_path;
	VEC(char) body;
	bool is_busy, is_too_large;
	char error[CURL_ERROR_SIZE];
};

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct top_fetch *f = ctx;
	size_t bytes = size * n;

	f->is_too_large = f->body.cnt + bytes > ANSWER_BYTES_MAX;
	if (f->is_too_large || vec_reserve(&f->body, f->body.cnt + bytes + 1))
		return 0;
	memcpy(f->body.data + f->body.cnt, data, bytes);
	f->body.cnt += bytes;
	f->body.data[f->body.cnt] = '\0';
	return bytes;
}

int top_fetch_check(const char *url, struct err *why)
{
	static const char *const begins[] = { "http://", "https://", "unix:" };

	if (http_get_is_url(url) && http_get_has_user(url))
		return err_set(why, -EINVAL, "an address without a name and a password");
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		if (!strncmp(url, begins[i], strlen(begins[i])) && url[strlen(begins[i])])
			return 0;
	return err_set(why, -EINVAL,
		       "the address of a heaptap serve: http://HOST:PORT or unix:PATH");
}

static int set_address(struct top_fetch *f, const char *url)
{
	size_t len = strlen(url);

	if (!strncmp(url, "unix:", 5)) {
		f->unix_path = strdup(url + 5);
		f->base = strdup("http://localhost");
		return f->unix_path && f->base ? 0 : -ENOMEM;
	}
	while (len && url[len - 1] == '/')
		len--;
	f->base = strndup(url, len);
	return f->base ? 0 : -ENOMEM;
}

/* -ENOTSUP: this libcurl lacks what is needed, and nothing is sent. */
static int set_up(struct top_fetch *f, const char *token)
{
	CURL *e = f->easy;
	CURLcode rc = curl_setup(e, false, NULL, f->error);

	if (rc == CURLE_OK)
		rc = curl_setup_token(e, token);
	CURL_SET(rc, e, CURLOPT_WRITEFUNCTION, on_body);
	CURL_SET(rc, e, CURLOPT_WRITEDATA, f);
	CURL_SET(rc, e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	CURL_SET(rc, e, CURLOPT_TIMEOUT_MS, ANSWER_MS);
	if (f->unix_path)
		CURL_SET(rc, e, CURLOPT_UNIX_SOCKET_PATH, f->unix_path);
	return rc == CURLE_OK ? 0 : rc == CURLE_OUT_OF_MEMORY ? -ENOMEM : -ENOTSUP;
}

int top_fetch_open(const char *url, const char *token, struct top_fetch **ret)
{
	struct top_fetch *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	err = set_address(f, url);
	if (!err && !curl_global_init(CURL_GLOBAL_DEFAULT)) {
		f->multi = curl_multi_init();
		f->easy = curl_easy_init();
	}
	if (!err && (!f->multi || !f->easy))
		err = -ENOMEM;
	if (!err)
		err = set_up(f, token);
	if (err)
		top_fetch_close(f);
	else
		*ret = f;
	return err;
}

void top_fetch_close(struct top_fetch *f)
{
	if (!f)
		return;
	top_fetch_cancel(f);
	if (f->easy)
		curl_easy_cleanup(f->easy);
	if (f->multi)
		curl_multi_cleanup(f->multi);
	vec_release(&f->body);
	free(f->unix_path);
	free(f->base);
	free(f);
}

void top_fetch_cancel(struct top_fetch *f)
{
	if (f->is_busy)
		curl_multi_remove_handle(f->multi, f->easy);
	f->is_busy = false;
}

bool top_fetch_is_busy(const struct top_fetch *f)
{
	return f->is_busy;
}

int top_fetch_begin(struct top_fetch *f, const char *path)
{
	char *url = NULL;
	int err = 0;

	if (asprintf(&url, "%s%s", f->base, path) < 0)
		return -ENOMEM;
	f->body.cnt = 0;
	f->error[0] = '\0';
	f->is_too_large = false;
	if (vec_reserve(&f->body, 1) || curl_easy_setopt(f->easy, CURLOPT_URL, url) ||
	    curl_multi_add_handle(f->multi, f->easy))
		err = -ENOMEM;
	else
		f->body.data[0] = '\0';
	free(url);
	f->is_busy = !err;
	return err;
}

/* The server's name as the user knows it. */
static const char *name_of(const struct top_fetch *f)
{
	return f->unix_path ? f->unix_path : f->base;
}

static void take_answer(struct top_fetch *f, CURLcode code, struct top_answer *ret)
{
	long status = 0;

	*ret = (struct top_answer){ .data = f->body.data, .bytes = f->body.cnt };
	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (!code)
		ret->status = (int)status;
	else if (f->is_too_large)
		err_set(&ret->why, 0, "%s: the answer is larger than %zu MiB", name_of(f),
			ANSWER_BYTES_MAX >> 20);
	else
		err_set(&ret->why, 0, "%s: %s", name_of(f),
			f->error[0] ? f->error : curl_easy_strerror(code));
	top_fetch_cancel(f);
}

bool top_fetch_wait(struct top_fetch *f, const int fds[2], int ms, struct top_answer *ret)
{
	struct curl_waitfd wait[2] = { { fds[0], CURL_WAIT_POLLIN, 0 },
				       { fds[1], CURL_WAIT_POLLIN, 0 } };
	const struct CURLMsg *m;
	int left, running;

	curl_multi_poll(f->multi, wait, 2, ms, NULL);
	curl_multi_perform(f->multi, &running);
	while ((m = curl_multi_info_read(f->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		take_answer(f, m->data.result, ret);
		return true;
	}
	return false;
}
