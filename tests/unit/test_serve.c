/* SPDX-License-Identifier: MIT */
/* Requests, addresses, tokens and pages of `heaptap serve`: what of it is pure. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "http/endpoints.h"
#include "http/index_page.h"
#include "http/page_files.h"
#include "http/page_json.h"
#include "http/process_page.h"
#include "http/listen.h"
#include "http/token.h"
#include "metrics/inuse_past.h"
#include "metrics/rows_past.h"
#include "metrics/stack_past.h"
#include "metrics/view.h"
#include "serve/daemon_priv.h"
#include "serve/live_view_priv.h"

static void test_paths(void **state)
{
	static const char *const wrong[] = {
		"",
		"healthz",
		"/healthz/",
		"/debug/pprof",
		"/debug/pprof/symbol",
		"/debug/pprof/heap/",
		"/debug/pprof/heap%00",
		"/pprof/",
		"/pprof/allocs",
		"/pprof/symbol/",
		"/debug/pprof/profile",
		"/pid/1/healthz",
		"/pid//debug/pprof/heap",
		"/pid/0/debug/pprof/heap",
		"/pid/-1/debug/pprof/heap",
		"/pid/4294967297/debug/pprof/heap",
		"/pid/99999999999999999999999/debug/pprof/heap",
		"/pid/1x/debug/pprof/heap",
		"/../etc/passwd",
		"/debug/pprof/../../etc/passwd",
	};
	struct result_request r;

	(void)state;
	assert_int_equal(endpoint_parse_path("/", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_INDEX);
	assert_int_equal(endpoint_parse_path("/healthz", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_HEALTH);
	assert_int_equal(endpoint_parse_path("/metrics", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_METRICS);
	assert_int_equal(endpoint_parse_path("/debug/pprof/heap", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_HEAP);
	assert_int_equal(r.pid, 0);
	assert_int_equal(r.seconds, 0);
	assert_int_equal(endpoint_parse_path("/debug/pprof/", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_PPROF_INDEX);
	assert_int_equal(endpoint_parse_path("/pprof/growth", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_REMOTE_GROWTH);
	assert_int_equal(r.pid, 0);
	assert_int_equal(endpoint_parse_path("/pid/17/pprof/symbol", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_SYMBOL);
	assert_int_equal(r.pid, 17);
	assert_int_equal(endpoint_parse_path("/pid/17/debug/pprof/cmdline", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_CMDLINE);
	assert_int_equal(endpoint_parse_path("/pid/2147483647/debug/pprof/allocs", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_ALLOCS);
	assert_int_equal(r.pid, 2147483647);
	assert_int_equal(endpoint_parse_path("/pid/17/", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_PROCESS);
	assert_int_equal(endpoint_parse_path("/pid/17/viewer", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_VIEWER);
	assert_int_equal(r.pid, 17);
	assert_int_equal(endpoint_parse_path("/viewer", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_VIEWER);
	assert_int_equal(endpoint_parse_path("/viewer.js", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_VIEWER_SCRIPT);
	assert_int_equal(endpoint_parse_path("/viewer.css", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_VIEWER_STYLE);
	assert_int_equal(endpoint_parse_path("/pid/17/viewer.js", &r), -ENOENT);
	assert_int_equal(endpoint_parse_path("/api", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_INDEX_JSON);
	assert_int_equal(endpoint_parse_path("/pid/17/api", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_PROCESS_JSON);
	assert_int_equal(r.pid, 17);
	assert_int_equal(endpoint_parse_path("/page.css", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_PAGE_STYLE);
	assert_int_equal(endpoint_parse_path("/pid/17/page.js", &r), -ENOENT);
	assert_int_equal(endpoint_parse_path("/pid/17/diff", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_DIFF);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (endpoint_parse_path(wrong[i], &r) != -ENOENT)
			fail_msg("'%s' is a page", wrong[i]);
}

static int set(const char *path, const char *key, const char *value, struct result_request *r)
{
	struct err why = { 0 };
	int err;

	assert_int_equal(endpoint_parse_path(path, r), 0);
	err = endpoint_set_arg(r, key, value, &why);
	assert_int_equal(!err, !why.text[0]); /* a refusal has a reason */
	return err;
}

static void test_args(void **state)
{
	static const char heap[] = "/debug/pprof/heap";
	struct result_request r;

	(void)state;
	assert_int_equal(set(heap, "pid", "17", &r), 0);
	assert_int_equal(r.pid, 17);
	assert_int_equal(set(heap, "seconds", "3600", &r), 0);
	assert_int_equal(r.seconds, 3600);
	assert_int_equal(set(heap, "seconds", "0", &r), 0);
	assert_int_equal(r.seconds, 0);
	assert_int_equal(set(heap, "gc", "1", &r), 0);
	assert_int_equal(set(heap, "seconds", "3601", &r), -EINVAL);
	assert_int_equal(set(heap, "seconds", "", &r), -EINVAL);
	assert_int_equal(set(heap, "seconds", "-1", &r), -EINVAL);
	assert_int_equal(set(heap, "seconds", "1.5", &r), -EINVAL);
	assert_int_equal(set(heap, "pid", "0", &r), -EINVAL);
	assert_int_equal(set(heap, "pid", "17 ", &r), -EINVAL);
	/* As Go: numbers that are none are 0, arguments that nobody knows are passed over. */
	assert_int_equal(set(heap, "debug", "0", &r), 0);
	assert_false(r.is_text);
	assert_int_equal(set(heap, "debug", "1", &r), 0);
	assert_true(r.is_text);
	assert_int_equal(set(heap, "debug", "x", &r), 0);
	assert_false(r.is_text);
	assert_int_equal(set(heap, "second", "1", &r), 0);
	assert_int_equal(r.seconds, 0);
	assert_int_equal(set("/pprof/growth", "seconds", "3", &r), 0);
	assert_int_equal(r.seconds, 3);
	assert_int_equal(set("/pprof/symbol", "pid", "3", &r), 0);
	assert_int_equal(r.pid, 3);
	assert_int_equal(set("/pprof/symbol", "pid", "a", &r), -EINVAL);
	assert_int_equal(set("/pid/17/debug/pprof/heap", "pid", "17", &r), 0);
	assert_int_equal(set("/pid/17/debug/pprof/heap", "pid", "18", &r), -EINVAL);
	assert_int_equal(set("/metrics", "pid", "17", &r), 0);
	assert_int_equal(r.pid, 0);
}

static void test_args_together(void **state)
{
	struct result_request r = { .endpoint = ENDPOINT_HEAP, .seconds = 1 };
	struct err why = { 0 };

	(void)state;
	assert_int_equal(endpoint_check(&r, &why), 0);
	r.is_text = true;
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_non_null(strstr(why.text, "debug"));
	r.seconds = 0;
	assert_int_equal(endpoint_check(&r, &why), 0);
}

/* Pictures of one process, or of all, now or within some time; of one also at a saved moment. */
static void test_views(void **state)
{
	struct result_request r;
	struct err why = { 0 };

	(void)state;
	assert_int_equal(set("/viewer", "seconds", "5", &r), 0);
	assert_int_equal(r.seconds, 5);
	assert_int_equal(endpoint_check(&r, &why), 0);
	assert_int_equal(set("/viewer", "at", "peak", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_int_equal(set("/pid/3/viewer", "at", "peak", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), 0);
	assert_int_equal(set("/pid/3/diff", "at", "limit", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), 0);
	assert_int_equal(set("/pid/3/diff", "at", "now", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_non_null(strstr(why.text, "at=peak"));
	assert_int_equal(set("/diff", "at", "peak", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_int_equal(set("/pid/3/diff", "from", "2026-11-26T14:05:00Z", &r), 0);
	assert_true(r.has_from && r.from_s == 1795701900 && !r.to_s);
	assert_int_equal(endpoint_check(&r, &why), 0);
	r.to_s = r.from_s;
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_string_equal(why.text, "from is not before to");
	r.to_s = r.from_s + 1;
	assert_int_equal(endpoint_check(&r, &why), 0);
	r.at = ENDPOINT_AT_PEAK;
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	r.at = ENDPOINT_NOW;
	assert_true(endpoint_is_of_moments(&r));
	assert_int_equal(set("/pid/3/diff", "from", "peak", &r), 0);
	assert_true(r.has_from && r.from_at == ENDPOINT_AT_PEAK && !endpoint_is_of_moments(&r));
	assert_int_equal(endpoint_check(&r, &why), 0);
	assert_int_equal(set("/pid/3/diff", "to", "last", &r), 0);
	assert_int_equal(r.to_at, ENDPOINT_AT_LAST);
	assert_int_equal(set("/pid/3/diff", "to", "now", &r), 0);
	assert_int_equal(set("/pid/3/diff", "from", "now", &r), -EINVAL);
	assert_int_equal(set("/pid/3/diff", "to", "2026-11-26T14:05:00Z", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_int_equal(set("/pid/3/diff", "to", "", &r), 0); /* of a form that says nothing */
	assert_int_equal(set("/pid/3/diff", "format", "json", &r), 0);
	assert_true(r.is_json);
	assert_int_equal(set("/pid/3/diff", "format", "text", &r), 0);
	assert_true(r.is_plain && !r.is_json);
	assert_int_equal(set("/pid/3/diff", "format", "xml", &r), -EINVAL);
	assert_int_equal(set("/pid/3/growth", "of", "day", &r), 0);
	assert_true(r.of_day && r.endpoint == ENDPOINT_GROWTH);
	assert_int_equal(set("/pid/3/growth", "by", "scope", &r), 0);
	assert_true(r.by_scope);
	assert_int_equal(set("/pid/3/growth", "of", "week", &r), -EINVAL);
	assert_int_equal(set("/pid/3/growth", "by", "name", &r), -EINVAL);
	assert_int_equal(set("/", "live", "0", &r), 0);
	assert_true(r.is_still);
	assert_int_equal(set("/pid/3/", "live", "1", &r), 0);
	assert_false(r.is_still);
}

static void test_times(void **state)
{
	static const char *const wrong[] = { "",
					     "now",
					     "2026-11-26",
					     "2026-11-26 14:05:00Z",
					     "2026-11-26T14:05:00",
					     "2026-11-26T14:05:00ZZ",
					     "2026-11-26T24:05:00Z",
					     "2026-02-30T14:05:00Z",
					     "2026-11-26T14:05:60Z",
					     "1969-12-31T23:59:59Z",
					     " 026-11-26T14:05:00Z",
					     "2026-11-26T14:05:0<Z" };
	char text[ENDPOINT_TIME_BUF];
	int64_t t = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (endpoint_parse_time(wrong[i], &t) != -EINVAL)
			fail_msg("'%s' is a time", wrong[i]);
	assert_int_equal(endpoint_parse_time("2028-02-29T23:59:59Z", &t), 0);
	assert_string_equal(endpoint_time_text(t, text), "2028-02-29T23:59:59Z");
}

/* What is to be there of the page, or is not. */
static void check_page(const struct serve_view *v, bool is_live, const char *wanted,
		       const char *unwanted)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	process_page_write(v, v->processes, is_live, out);
	fclose(out);
	assert_non_null(strstr(text, PROCESS_PAGE_STACKS));
	if (!strstr(text, wanted) || strstr(text, unwanted))
		fail_msg("wanted '%s', not '%s': %s", wanted, unwanted, text);
	free(text);
}

/* Links and, on a still page, a form; or why there are none. */
static void test_process_page_moments(void **state)
{
	static const double at_s[] = { 0, 3000, 3500, 3590, 3600 };
	struct serve_process p = { .pid = 3, .image = 7, .comm = "a", .exe = "", .inuse_words = "" };
	struct serve_view v = { .processes = &p, .process_cnt = 1 };
	struct stack_past *past;

	(void)state;
	check_page(&v, false, "with --past-interval 0 nothing is kept.", "<form");
	assert_int_equal(stack_past_new(1, &past), 0);
	v.stacks = past;
	check_page(&v, false, "What changed by stack is not known yet.", "<form");
	p.is_inuse_unknown = true;
	check_page(&v, false, "What changed by stack is not known, as in use is not.", "<form");
	p.is_inuse_unknown = false;
	for (size_t i = 0; i < 5; i++) {
		const struct stack_past_moment m = { (uint64_t)((1 + at_s[i]) * 1e9),
						     (int64_t)((1e9 + at_s[i]) * 1e9) };

		stack_past_begin(past, &m);
		assert_int_equal(stack_past_name_image(past, 7, 1), 0);
		assert_int_equal(stack_past_end(past, 0), 0);
	}
	check_page(&v, false, "<form action=\"diff\" method=\"get\"", "between any two");
	check_page(&v, false,
		   "<option value=\"2001-09-09T01:46:40Z\" selected>2001-09-09 01:46:40 UTC, ",
		   "http-equiv");
	check_page(
		&v, true,
		"<a href=\"diff?from=2001-09-09T02:45:00Z&amp;to=2001-09-09T02:46:40Z\">100 s</a>",
		"<form");
	check_page(&v, true, ">60 min</a>; <a href=\"?live=0#moments\">between any two moments</a>",
		   "6.0 h");
	stack_past_free(past);
}

static void test_addrs(void **state)
{
	static const char *const wrong[] = { "+",	"0x",	   "0x1++0x2",
					     "0x1 0x2", "0x1,0x2", "x",
					     "-1",	"0x1+y",   "0x11111111111111111",
					     "0xg",	"0x1\n0x2" };
	struct endpoint_addrs a;
	char *text = malloc(2 * ENDPOINT_ADDRS_CAP + 4);
	struct err why;

	(void)state;
	assert_int_equal(endpoint_parse_addrs("0x7f12+0xFFFFffffFFFFffff+10\r\n", 30, &a, &why), 0);
	assert_int_equal(a.addr_cnt, 3);
	assert_int_equal(a.addrs[0], 0x7f12);
	assert_true(a.addrs[1] == UINT64_MAX);
	assert_int_equal(a.addrs[2], 16);
	free(a.addrs);
	/* As far as it is told, and no further. */
	assert_int_equal(endpoint_parse_addrs("0x123", 4, &a, &why), 0);
	assert_int_equal(a.addrs[0], 0x12);
	free(a.addrs);
	assert_int_equal(endpoint_parse_addrs("", 0, &a, &why), 0);
	assert_int_equal(a.addr_cnt, 0);
	free(a.addrs);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (endpoint_parse_addrs(wrong[i], strlen(wrong[i]), &a, &why) != -EINVAL)
			fail_msg("'%s' are addresses", wrong[i]);
	for (size_t i = 0; i <= ENDPOINT_ADDRS_CAP; i++)
		memcpy(text + 2 * i, "1+", 2);
	assert_int_equal(endpoint_parse_addrs(text, 2 * ENDPOINT_ADDRS_CAP - 1, &a, &why), 0);
	assert_int_equal(a.addr_cnt, ENDPOINT_ADDRS_CAP);
	free(a.addrs);
	assert_int_equal(endpoint_parse_addrs(text, 2 * ENDPOINT_ADDRS_CAP + 1, &a, &why), -EINVAL);
	free(text);
}

/* The names that a web page cannot make its own. */
static void test_own_names(void **state)
{
	static const char *const own[] = {
		"127.0.0.1", "127.0.0.1:7676", "10.1.2.3:80",	"[::1]:7676",	 "[::1]",
		"localhost", "LocalHost:7676", "a.localhost:1", "localhost.:80", "box:7676",
		"Box"
	};
	static const char *const foreign[] = { "",
					       "evil.example",
					       "evil.example:7676",
					       "notlocalhost",
					       "localhost.evil",
					       "127.0.0.1.evil",
					       "1.2.3",
					       "[::1",
					       "box.evil",
					       ".localhost.x",
					       "[evil]:80" };
	char text[LISTEN_HOST_BYTES + 32];

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!listen_is_own_name(own[i], "box"))
			fail_msg("'%s' is not ours", own[i]);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		if (listen_is_own_name(foreign[i], "box") || listen_is_own_name(foreign[i], ""))
			fail_msg("'%s' is ours", foreign[i]);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(listen_is_own_name(text, "box"));
}

static void test_listen(void **state)
{
	static const char *const wrong[] = { "",      "7676",	 "localhost", ":7676", "::1:7676",
					     "[::1]", "[::1:80", "[]:80",     "a:",    "a:65536",
					     "a:-1",  "a:80x",	 "a:http" };
	char host[LISTEN_HOST_BYTES], text[400];
	const char *port;

	(void)state;
	assert_int_equal(listen_parse("127.0.0.1:7676", host, &port), 0);
	assert_string_equal(host, "127.0.0.1");
	assert_string_equal(port, "7676");
	assert_int_equal(listen_parse("[::1]:0", host, &port), 0);
	assert_string_equal(host, "::1");
	assert_string_equal(port, "0");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (!listen_parse(wrong[i], host, &port))
			fail_msg("'%s' is an address", wrong[i]);
	memset(text, 'a', 300);
	memcpy(text + 300, ":80", 4);
	assert_int_equal(listen_parse(text, host, &port), -EINVAL);
}

static void test_not_local(void **state)
{
	struct listen_socket s;
	struct err why = { 0 };

	(void)state;
	assert_int_equal(listen_open("0.0.0.0:0", true, &s, &why), -EPERM);
	assert_non_null(strstr(why.text, "--token-file"));
	assert_int_equal(s.fd, -1);
	assert_int_equal(listen_open("0.0.0.0:0", false, &s, &why), 0);
	assert_false(s.is_local);
	listen_close(&s);
	assert_int_equal(listen_open("127.1.2.3:0", true, &s, &why), 0);
	assert_true(s.is_local);
	listen_close(&s);
}

static void test_in_use(void **state)
{
	struct listen_socket s, other;
	char text[64];
	struct err why = { 0 };

	(void)state;
	assert_int_equal(listen_open("127.0.0.1:0", true, &s, &why), 0);
	assert_int_equal(sscanf(s.address, "http://%63[^/]/", text), 1);
	assert_int_equal(listen_open(text, true, &other, &why), -EADDRINUSE);
	assert_non_null(strstr(why.text, "in use"));
	listen_close(&s);
}

static void test_unix_socket(void **state)
{
	char dir[] = "/tmp/heaptap-test-XXXXXX", path[64], text[80];
	struct err why = { 0 };
	struct listen_socket s, other;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	snprintf(text, sizeof(text), "unix:%s", path);
	assert_int_equal(listen_open(text, true, &s, &why), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(listen_open(text, true, &other, &why), -EADDRINUSE);
	/* As after a kill: nobody listens, the name is left. */
	close(s.fd);
	assert_int_equal(listen_open(text, true, &other, &why), 0);
	listen_close(&other);
	assert_int_not_equal(stat(path, &st), 0);
	/* Something that is no socket is not replaced. */
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_not_equal(listen_open(text, true, &other, &why), 0);
	assert_int_equal(stat(path, &st), 0);
	rmdir(path);
	rmdir(dir);
}

static void test_token_compare(void **state)
{
	static const char token[] = "0123456789abcdef";

	(void)state;
	assert_true(token_equal(token, token));
	assert_false(token_equal("", token));
	assert_false(token_equal("0123456789abcde", token));
	assert_false(token_equal("0123456789abcdef0", token));
	assert_false(token_equal("0123456789abcdef0123456789abcdef", token)); /* twice */
	assert_false(token_equal("1123456789abcdef", token));
	assert_false(token_equal("0123456789abcdeF", token));
	assert_false(token_equal("x", ""));

	assert_false(token_authorizes(NULL, token));
	assert_false(token_authorizes("", token));
	assert_false(token_authorizes("0123456789abcdef", token));
	assert_true(token_authorizes("Bearer 0123456789abcdef", token));
	assert_true(token_authorizes("bearer 0123456789abcdef", token));
	assert_false(token_authorizes("Bearer 0123456789abcdeg", token));
	assert_false(token_authorizes("Bearer ", token));
	assert_false(token_authorizes("Digest eDowMTIzNDU2Nzg5YWJjZGVm", token));
}

static int read_token(const char *text, mode_t mode, char *token, struct err *why)
{
	char path[] = "/tmp/heaptap-test-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	err = token_read(path, token, why);
	unlink(path);
	return err;
}

static void test_token_file(void **state)
{
	char token[TOKEN_BYTES_CAP + 2], text[TOKEN_BYTES_CAP + 2];
	struct err why = { 0 };

	(void)state;
	assert_int_equal(read_token("0123456789abcdef\n", 0600, token, &why), 0);
	assert_string_equal(token, "0123456789abcdef");
	assert_int_equal(read_token("0123456789abcdef", 0400, token, &why), 0);
	assert_int_equal(read_token("0123456789abcdef\n", 0640, token, &why), -EPERM);
	assert_non_null(strstr(why.text, "others"));
	assert_int_equal(read_token("0123456789abcdef\n", 0604, token, &why), -EPERM);
	assert_int_equal(read_token("short\n", 0600, token, &why), -EINVAL);
	assert_int_equal(read_token("", 0600, token, &why), -EINVAL);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(read_token(text, 0600, token, &why), -E2BIG);
	text[TOKEN_BYTES_CAP] = '\0';
	assert_int_equal(read_token(text, 0600, token, &why), 0);
	assert_int_equal(strlen(token), TOKEN_BYTES_CAP);
	assert_int_equal(token_read("/nonexistent/token", token, &why), -ENOENT);
	assert_int_equal(token_read("/tmp", token, &why), -EINVAL);
}

static char *index_text(const struct serve_view *v)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(index_page_write(v, true, out), 0);
	fclose(out);
	return text;
}

/* Names are somebody else's bytes. */
static void test_index(void **state)
{
	const struct serve_process processes[] = {
		{ .pid = 17,
		  .comm = "a\"<b>&\\\n",
		  .exe = "/bin/<script>",
		  .overhead = 0.034,
		  .overhead_step = 2,
		  .inuse_objects = NAN,
		  .inuse_bytes = NAN,
		  .is_inuse_unknown = true,
		  .inuse_words = "Tracking frees costs <53> %. To measure it: heaptap record" },
		{ .pid = 18,
		  .comm = "b",
		  .exe = "/bin/b",
		  .inuse_bytes = 2048,
		  .overhead = NAN,
		  .inuse_words = "of what was allocated since 12:03:05" },
		{ .pid = 19,
		  .comm = "c",
		  .exe = "/bin/c",
		  .inuse_bytes = 0,
		  .overhead = NAN,
		  .inuse_words = "" },
	};
	const struct serve_kept kept[] = {
		{ .pid = 20, .comm = "d", .at = "last", .why = "out of memory", .inuse_bytes = NAN },
	};
	const struct serve_counter losses[] = { { "live_full", "map <full>", 5 },
						{ "stacks_full", "none of these", 0 } };
	const struct serve_view v = { .processes = processes,
				      .process_cnt = 3,
				      .losses = losses,
				      .keep = { .kept = kept, .kept_cnt = 1 },
				      .loss_cnt = 2,
				      .rate_bytes = 1,
				      .version = "1" };
	char *text = index_text(&v);

	(void)state;
	assert_null(strstr(text, "<script>"));
	assert_null(strstr(text, "<b>"));
	assert_non_null(strstr(text, "a&quot;&lt;b&gt;&amp;\\\n<"));
	assert_non_null(strstr(text, "\"name\":\"a\\\"\\u003cb>&\\\\"));
	assert_non_null(strstr(text, "<a href=\"pid/17/\">"));
	assert_null(strstr(text, "none of these"));
	assert_non_null(strstr(text, "<td>not known<td><td>0 B<td>"));
	assert_non_null(strstr(text, "in use is not known: Tracking frees costs &lt;53&gt; %. To "
				     "measure it: heaptap record\n"));
	assert_non_null(strstr(text, "<td>2.00 KiB<td>"));
	assert_non_null(strstr(text, "in use: of what was allocated since 12:03:05"));
	assert_non_null(strstr(text, "c</a><td>0 B<td>"));
	assert_non_null(strstr(text, "<tr><td>20<td>d<td>not known<td>"));
	free(text);
}

/* So are those of threads and scopes; what is not known is said to be. */
static void test_process_page(void **state)
{
	const struct serve_scope scopes[] = {
		{ .scope = "<img src=x>/\"y\"",
		  .thread = "</table>\x1b[1m",
		  .inuse_bytes = NAN,
		  .inuse_error_bytes = NAN,
		  .alloc_bytes = 2048 },
	};
	const struct serve_process p = { .pid = 17,
					 .comm = "</h1><b>",
					 .exe = "/bin/\xff<i>",
					 .inuse_bytes = NAN,
					 .inuse_objects = NAN,
					 .overhead = NAN,
					 .is_inuse_unknown = true,
					 .inuse_words = "<u>",
					 .scopes = scopes,
					 .scope_cnt = 1 };
	const struct serve_kept kept[] = {
		{ .pid = 17, .comm = "<s>", .at = "peak", .why = "peak" },
		{ .pid = 18, .comm = "other", .at = "peak", .why = "" }
	};
	const struct serve_counter losses[] = { { "a", "all is well", 0 }, { "b", "lost it", 3 } };
	struct serve_view v = { .processes = &p,
				.process_cnt = 1,
				.losses = losses,
				.loss_cnt = 1,
				.keep = { .kept = kept, .kept_cnt = 2 } };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	assert_non_null(out);
	assert_int_equal(process_page_write(&v, &p, true, out), 0);
	v.loss_cnt = 2;
	assert_int_equal(process_page_write(&v, &p, false, out), 0);
	fclose(out);
	for (size_t i = 0; i < 5; i++)
		assert_null(strstr(
			text, ((const char *const[]){ "<img", "<i>", "<u>", "<s>", "\x1b" })[i]));
	assert_non_null(strstr(text, "<title>&lt;/h1&gt;&lt;b&gt; (PID 17)</title>"));
	assert_non_null(strstr(text, "In use: <b>not known</b>"));
	assert_non_null(strstr(text, "Whether it grows is not known yet."));
	assert_non_null(strstr(text, "<td>&lt;/table&gt; [1m<td>&lt;img src=x&gt;/&quot;y&quot;"));
	assert_non_null(strstr(text, "\"../17/viewer?at=peak\""));
	assert_null(strstr(text, "other"));
	assert_non_null(strstr(text, "<p>None.</p>"));
	assert_non_null(strstr(text, "<li>3 lost it"));
	assert_non_null(strstr(text, "http-equiv=\"refresh\" content=\"10\""));
	assert_non_null(strstr(text, "Paused: <a href=\"?live=1\">"));
	free(text);
}

/* Of one for which there was no room growth will not be known later either. */
static void test_process_page_without_past(void **state)
{
	const struct serve_process p = {
		.pid = INUSE_PAST_PROCESSES_CAP + 1, .comm = "a", .exe = "", .inuse_words = ""
	};
	struct inuse_past *past;
	struct serve_view v = { .processes = &p, .process_cnt = 1 };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	assert_non_null(out);
	assert_int_equal(inuse_past_new(&past), 0);
	assert_true(inuse_past_begin(past, 0));
	v.past = past;
	process_page_write(&v, &p, false, out);
	fflush(out);
	assert_non_null(strstr(text, "Whether it grows is not known yet."));
	rewind(out);
	for (pid_t pid = 1; pid <= INUSE_PAST_PROCESSES_CAP; pid++)
		assert_int_equal(inuse_past_add(past, pid, 1, (const double[]){ 1, 2 }), 0);
	process_page_write(&v, &p, false, out);
	fclose(out);
	assert_non_null(strstr(text, "is kept of 4096 of them, and there are more."));
	assert_null(strstr(text, "known yet."));
	inuse_past_free(past);
	free(text);
}

/* A page for 300 processes must stay within what a first look may cost. */
#define MANY 300
static struct inuse_past *past_of_many(void)
{
	struct inuse_past *past;

	assert_int_equal(inuse_past_new(&past), 0);
	for (int i = 0; i < INUSE_PAST_HOUR_CNT; i++) {
		assert_true(inuse_past_begin(past, (uint64_t)(i + 1) * 10 * NS_PER_S));
		for (pid_t pid = 1; pid <= MANY; pid++) {
			double bytes = pid * 1e6 + i * 1e5 + i * 7919 % 50 * 1e4;

			assert_int_equal(inuse_past_add(past, pid, 1,
							(const double[]){ bytes, 2 * bytes }),
					 0);
		}
		assert_int_equal(inuse_past_end(past), 0);
	}
	return past;
}

static void test_page_of_many(void **state)
{
	static struct serve_process p[MANY];
	struct inuse_past *past = past_of_many();
	const struct serve_view v = { .processes = p,
				      .process_cnt = MANY,
				      .rate_bytes = 65536,
				      .version = "1",
				      .past = past };
	char *text;

	(void)state;
	for (int i = 0; i < MANY; i++)
		p[i] = (struct serve_process){ .pid = i + 1,
					       .comm = "postgres-backend",
					       .exe = "/usr/lib/postgresql/16/bin/postgres",
					       .container = "",
					       .cgroup = "postgresql@16.service",
					       .inuse_bytes = 123456789,
					       .inuse_error_bytes = 123456,
					       .inuse_objects = 123456,
					       .alloc_bytes = 1234567890123,
					       .rss_bytes = 234567890,
					       .cgroup_limit_bytes = 8589934592,
					       .cgroup_usage_bytes = 4589934592,
					       .overhead = 0.0123,
					       .overhead_rate_bytes = 65536,
					       .inuse_words = "" };
	text = index_text(&v);
	assert_in_range(strlen(text), 100000, 200000);
	assert_non_null(strstr(text, "\"growth\":{\"trend\":\"grows\",\"bytes_per_min\":6"));
	assert_non_null(strstr(text, "\"past\":{\"seconds\":3590,\"top_bytes\":"));
	inuse_past_free(past);
	free(text);
}

static char *json_of(const struct serve_view *v, const struct serve_process *p)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	if (p)
		page_json_process(v, p, out);
	else
		page_json_index(v, out);
	fclose(out);
	return text;
}

/* What is not known is left out, and what is saved is bounded. */
static void test_json(void **state)
{
	static const char *const absent[] = { "\"inuse_bytes\"", "limit_bytes", "\"growth\"",
					      "\"past\"",	 "is_tapped",	"exec_ms",
					      "\"step\"" };
	static struct serve_kept kept[PAGE_JSON_SAVED_MAX + 5];
	struct serve_process p = { .pid = 17,
				   .comm = "a",
				   .exe = "",
				   .inuse_bytes = NAN,
				   .inuse_error_bytes = NAN,
				   .cgroup_limit_bytes = NAN,
				   .overhead = NAN,
				   .is_inuse_unknown = true,
				   .inuse_words = "why" };
	struct serve_view v = { .processes = &p,
				.process_cnt = 1,
				.version = "1",
				.keep = { .kept = kept, .kept_cnt = PAGE_JSON_SAVED_MAX + 5 } };
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		kept[i] = (struct serve_kept){ .pid = i ? 17 : 18,
					       .comm = "b",
					       .at = "peak",
					       .epoch_ms = 1795701900123,
					       .inuse_bytes = NAN };
	text = json_of(&v, NULL);
	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
		if (strstr(text, absent[i]))
			fail_msg("%s in %s", absent[i], text);
	assert_non_null(strstr(text, "\"is_inuse_unknown\":true,\"inuse_note\":\"why\""));
	assert_non_null(strstr(text, "\"saved_omitted_cnt\":5"));
	assert_non_null(strstr(text, "\"time_ms\":1795701900123"));
	free(text);
	text = json_of(&v, &p); /* without the other process's */
	assert_non_null(strstr(text, "\"saved_omitted_cnt\":4"));
	assert_non_null(strstr(text, "\"moments\":[],\"moments_note\":\"With --past-interval 0"));
	assert_non_null(strstr(text, "\"is_past_full\":false"));
	free(text);
	v.keep.file_cnt = NAN; /* nothing is ever saved */
	p.is_tapped = true;
	p.exec_ns = 1;
	text = json_of(&v, &p);
	assert_null(strstr(text, "saved"));
	assert_non_null(strstr(text, "\"is_tapped\":true"));
	assert_non_null(strstr(text, "\"exec_ms\":"));
	free(text);
}

/* What is resident by row: the words of explain, at the times of readings; null where one failed. */
static void test_json_rows(void **state)
{
	static const struct resident_reading failed = { .why = "denied" };
	struct resident_reading r = { .is_known = true, .is_proved = true, .row_cnt = 1 };
	struct serve_process p = { .pid = 17,
				   .comm = "a",
				   .exe = "",
				   .image = 1717,
				   .inuse_words = "",
				   .inuse_bytes = NAN,
				   .overhead = NAN };
	struct serve_view v = { .processes = &p, .process_cnt = 1, .version = "1" };
	struct rows_past *past;
	char *text = json_of(&v, &p);
	uint64_t now = now_ns();

	(void)state;
	assert_null(strstr(text, "\"rows\"")); /* with --rows-interval 0 */
	free(text);
	assert_int_equal(rows_past_new(&past), 0);
	v.rows = past;
	text = json_of(&v, &p);
	assert_non_null(strstr(text, "\"rows\":{\"note\":\"Not read yet.\"}"));
	free(text);
	snprintf(r.rows[0].name, sizeof(r.rows[0].name), "%s", row_name(ROW_LIVE));
	r.rows[0].bytes = 4097;
	r.rss_bytes = 4097;
	r.took_ns = 2500000;
	assert_int_equal(rows_past_add(past, 1717, now - 60 * NS_PER_S, 0, &failed), 0);
	assert_int_equal(rows_past_add(past, 1717, now, 0, &r), 0);
	text = json_of(&v, &p);
	assert_non_null(strstr(text,
			       "\"took_ms\":2.5,\"rss_bytes\":4097,\"list\":[{\"row\":\"live\","
			       "\"what\":\"malloc: live blocks\",\"bytes\":4097}]"));
	assert_non_null(strstr(text, "],\"bytes\":{\"live\":[null,4097]}}"));
	assert_null(strstr(text, "why_not"));
	free(text);
	r.is_proved = false;
	snprintf(r.why, sizeof(r.why), "torn");
	assert_int_equal(rows_past_add(past, 1717, now + 1, 0, &r), 0);
	text = json_of(&v, &p);
	assert_non_null(strstr(text, "\"heap_why_not\":\"torn\""));
	free(text);
	assert_int_equal(rows_past_add(past, 1717, now + 2, 0, &failed), 0);
	text = json_of(&v, &p);
	assert_non_null(strstr(text, "\"rows\":{\"why_not\":\"denied\",\n\"hour\":{"));
	assert_null(strstr(text, "\"list\""));
	free(text);
	rows_past_free(past);
}

/* At most once in the interval, 1 % of a CPU for all, half of that for one; one that hangs costs the others little. */
static void test_rows_pause(void **state)
{
	struct rows_pause p = rows_pause_after(8 * NS_PER_MS, false, 60 * NS_PER_S);

	(void)state;
	assert_true(p.own_ns == 60 * NS_PER_S && p.all_ns == 800 * NS_PER_MS);
	p = rows_pause_after(2 * NS_PER_S, false, 60 * NS_PER_S);
	assert_true(p.own_ns == 400 * NS_PER_S && p.all_ns == 200 * NS_PER_S);
	p = rows_pause_after(8 * NS_PER_S, true, 60 * NS_PER_S);
	assert_true(p.own_ns == 3600 * NS_PER_S && p.all_ns == 60 * NS_PER_S);
	p = rows_pause_after(8 * NS_PER_S, true, 7200 * NS_PER_S);
	assert_true(p.own_ns == 7200 * NS_PER_S);
}

/* Nothing is fetched from elsewhere, and foreign names never become markup. */
static void test_page_files(void **state)
{
	const char *const files[] = { page_files.style, page_files.script, page_files.index_script,
				      page_files.process_script };
	static const char *const never[] = {
		"https://", "innerHTML", "insertAdjacentHTML", "document.write", "eval(",
		"@import",  "url("
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		for (size_t k = 0; k < sizeof(never) / sizeof(*never); k++)
			if (strstr(files[i], never[k]))
				fail_msg("'%s' in file %zu", never[k], i);
}

static void test_who_was_slow(void **state)
{
	struct slow_processes s = { 0 };

	(void)state;
	assert_false(slow_processes_has(&s, 0, 0));
	slow_processes_set(&s, 0, 0, true);
	slow_processes_set(&s, 5, 1, true);
	slow_processes_set(&s, 5, 1, true);
	slow_processes_set(&s, 6, 1, false);
	assert_true(slow_processes_has(&s, 0, 0));
	assert_true(slow_processes_has(&s, 5, 1));
	assert_false(slow_processes_has(&s, 5, 2)); /* another image, or process */
	assert_false(slow_processes_has(&s, 6, 1));
	slow_processes_set(&s, 5, 1, false);
	assert_false(slow_processes_has(&s, 5, 1));
	for (int pid = 1000; pid < 1000 + SLOW_PROCESSES_CAP; pid++)
		slow_processes_set(&s, pid, 1, true);
	for (int pid = 1000; pid < 1000 + SLOW_PROCESSES_CAP; pid++)
		assert_true(slow_processes_has(&s, pid, 1));
	assert_false(slow_processes_has(&s, 0, 0)); /* the oldest gave way */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_listen),
		cmocka_unit_test(test_not_local),
		cmocka_unit_test(test_in_use),
		cmocka_unit_test(test_unix_socket),
		cmocka_unit_test(test_token_compare),
		cmocka_unit_test(test_token_file),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_process_page),
		cmocka_unit_test(test_process_page_without_past),
		cmocka_unit_test(test_page_of_many),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_rows),
		cmocka_unit_test(test_rows_pause),
		cmocka_unit_test(test_page_files),
		cmocka_unit_test(test_args_together),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_process_page_moments),
		cmocka_unit_test(test_addrs),
		cmocka_unit_test(test_own_names),
		cmocka_unit_test(test_who_was_slow),
	};

	return cmocka_run_group_tests_name("serve", tests, NULL, NULL);
}
