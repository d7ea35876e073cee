/* SPDX-License-Identifier: MIT */
/* Requests, addresses and tokens of `heaptap serve`: what of it is pure. */
#include "unit.h"

#include "base/err.h"
#include "http/endpoints.h"
#include "http/http.h"
#include "serve/daemon_priv.h"

TEST(test_paths)
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
	static const char *const no_folders[] = { "/pid",   "/pid/",	     "/pid/17/", "/pid/x",
						  "/pid/0", "/metrics",	     "/viewer",	 "/debug",
						  "/pprof", "/pid/17/viewer" };
	struct result_request r;

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
	each_case(c, wrong)
		if (endpoint_parse_path(*c, &r) != -ENOENT)
			fail_msg("'%s' is a page", *c);
	assert_int_equal(endpoint_parse_folder("/pid/17", &r), 0);
	assert_int_equal(r.endpoint, ENDPOINT_PROCESS);
	assert_int_equal(r.pid, 17);
	assert_int_equal(endpoint_parse_folder("/debug/pprof", &r), 0);
	assert_int_equal(endpoint_parse_folder("/pid/17/debug/pprof", &r), 0);
	each_case(one, no_folders)
		if (endpoint_parse_folder(*one, &r) != -ENOENT)
			fail_msg("'%s' is a page without its slash", *one);
}

/* What is kept of a process that has ended is shown: both sides of a difference are saved, or what the viewer shows is. */
TEST(test_of_past)
{
	static const struct {
		struct result_request r;
		bool is;
	} cases[] = {
		{ { .endpoint = ENDPOINT_DIFF,
		    .has_from = true,
		    .from_at = ENDPOINT_AT_PEAK,
		    .to_at = ENDPOINT_AT_LAST },
		  true },
		{ { .endpoint = ENDPOINT_DIFF, .has_from = true, .from_at = ENDPOINT_AT_PEAK },
		  false },
		{ { .endpoint = ENDPOINT_DIFF, .has_from = true, .to_at = ENDPOINT_AT_LAST },
		  false },
		{ { .endpoint = ENDPOINT_DIFF, .at = ENDPOINT_AT_PEAK }, false },
		{ { .endpoint = ENDPOINT_VIEWER, .at = ENDPOINT_AT_LAST }, true },
		{ { .endpoint = ENDPOINT_VIEWER }, false },
		{ { .endpoint = ENDPOINT_HEAP }, false },
	};

	each_case(c, cases)
		if (result_is_of_past(&c->r) != c->is)
			fail_msg("case %zu", (size_t)(c - cases));
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

TEST(test_args)
{
	static const char heap[] = "/debug/pprof/heap";
	struct result_request r;

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

TEST(test_args_together)
{
	struct result_request r = { .endpoint = ENDPOINT_HEAP, .seconds = 1 };
	struct err why = { 0 };

	assert_int_equal(endpoint_check(&r, &why), 0);
	r.is_text = true;
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_says(why.text, "debug");
	r.seconds = 0;
	assert_int_equal(endpoint_check(&r, &why), 0);
	/* who pins, for which the heap of that process is read */
	assert_int_equal(set("/debug/pprof/heap", "pinned", "1", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_int_equal(set("/pid/3/viewer", "pinned", "1", &r), 0);
	assert_true(r.wants_pinned);
	assert_int_equal(endpoint_check(&r, &why), 0);
	r.seconds = 1;
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_int_equal(set("/pid/3/debug/pprof/heap", "pinned", "0", &r), 0);
	assert_false(r.wants_pinned);
	assert_int_equal(set("/pid/3/debug/pprof/allocs", "pinned", "1", &r), 0);
	assert_false(r.wants_pinned);
}

/* Pictures of one process, or of all, now or within some time; of one also at a saved moment. */
TEST(test_views)
{
	struct result_request r;
	struct err why = { 0 };

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
	assert_says(why.text, "at=peak");
	assert_int_equal(set("/diff", "at", "peak", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_int_equal(set("/pid/3/diff", "from", "2026-11-26T14:05:00Z", &r), 0);
	assert_true(r.has_from && r.from_s == 1795701900 && !r.to_s);
	assert_int_equal(endpoint_check(&r, &why), 0);
	r.to_s = r.from_s;
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_string_equal(why.text, "from must be before to");
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
	/* another process: now, and at any two moments */
	assert_int_equal(set("/pid/3/diff", "from_pid", "4", &r), 0);
	assert_int_equal(r.from_pid, 4);
	assert_int_equal(endpoint_check(&r, &why), 0);
	assert_false(endpoint_is_of_moments(&r));
	assert_true(result_needs(&r) == 3 && result_needs_from(&r) == 4);
	r.has_from = true;
	r.from_s = 2;
	r.to_s = 1;
	assert_int_equal(endpoint_check(&r, &why), 0);
	r.from_at = ENDPOINT_AT_LAST;
	assert_true(result_needs(&r) == 3 && !result_needs_from(&r));
	r.to_at = ENDPOINT_AT_PEAK;
	assert_false(result_needs(&r));
	r.at = ENDPOINT_AT_PEAK;
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_int_equal(set("/pid/3/diff", "from_pid", "3", &r), 0);
	assert_int_equal(endpoint_check(&r, &why), -EINVAL);
	assert_string_equal(why.text, "from_pid is the process itself");
	assert_int_equal(set("/pid/3/diff", "from_pid", "x", &r), -EINVAL);
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

TEST(test_times)
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
					     "1969-02-29T23:59:59Z",
					     " 026-11-26T14:05:00Z",
					     "2026-11-26T14:05:0<Z" };
	static const char *const old[] = { "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z",
					   "0001-01-01T00:00:00Z" };
	char text[ENDPOINT_TIME_BUF];
	int64_t t = 0;

	each_case(c, wrong)
		if (endpoint_parse_time(*c, &t) != -EINVAL)
			fail_msg("'%s' is a time", *c);
	assert_int_equal(endpoint_parse_time("2028-02-29T23:59:59Z", &t), 0);
	assert_string_equal(endpoint_time_text(t, text), "2028-02-29T23:59:59Z");
	/* of a time long ago, the answer is which times are kept */
	each_case(one, old) {
		t = 0;
		if (endpoint_parse_time(*one, &t) || t != 1)
			fail_msg("'%s' is no time", *one);
	}
}

TEST(test_addrs)
{
	static const char *const wrong[] = { "+",	"0x",	   "0x1++0x2",
					     "0x1 0x2", "0x1,0x2", "x",
					     "-1",	"0x1+y",   "0x11111111111111111",
					     "0xg",	"0x1\n0x2" };
	struct endpoint_addrs a;
	char *text = unit_keep(malloc(2 * ENDPOINT_ADDRS_CAP + 4), free);
	struct err why;

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
	each_case(c, wrong)
		if (endpoint_parse_addrs(*c, strlen(*c), &a, &why) != -EINVAL)
			fail_msg("'%s' are addresses", *c);
	for (size_t i = 0; i <= ENDPOINT_ADDRS_CAP; i++)
		memcpy(text + 2 * i, "1+", 2);
	assert_int_equal(endpoint_parse_addrs(text, 2 * ENDPOINT_ADDRS_CAP - 1, &a, &why), 0);
	assert_int_equal(a.addr_cnt, ENDPOINT_ADDRS_CAP);
	free(a.addrs);
	assert_int_equal(endpoint_parse_addrs(text, 2 * ENDPOINT_ADDRS_CAP + 1, &a, &why), -EINVAL);
}

/* The names that a web page cannot make its own. */
TEST(test_own_names)
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

	each_case(c, own)
		if (!listen_is_own_name(*c, "box"))
			fail_msg("'%s' is not ours", *c);
	each_case(one, foreign)
		if (listen_is_own_name(*one, "box") || listen_is_own_name(*one, ""))
			fail_msg("'%s' is ours", *one);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(listen_is_own_name(text, "box"));
}

TEST(test_listen)
{
	static const char *const wrong[] = { "",      "7676",	 "localhost", ":7676", "::1:7676",
					     "[::1]", "[::1:80", "[]:80",     "a:",    "a:65536",
					     "a:-1",  "a:80x",	 "a:http" };
	char host[LISTEN_HOST_BYTES], text[400];
	const char *port;

	assert_int_equal(listen_parse("127.0.0.1:7676", host, &port), 0);
	assert_string_equal(host, "127.0.0.1");
	assert_string_equal(port, "7676");
	assert_int_equal(listen_parse("[::1]:0", host, &port), 0);
	assert_string_equal(host, "::1");
	assert_string_equal(port, "0");
	each_case(c, wrong)
		if (!listen_parse(*c, host, &port))
			fail_msg("'%s' is an address", *c);
	memset(text, 'a', 300);
	memcpy(text + 300, ":80", 4);
	assert_int_equal(listen_parse(text, host, &port), -EINVAL);
}

TEST(test_not_local)
{
	struct listen_socket s;
	struct err why = { 0 };

	assert_int_equal(listen_open("0.0.0.0:0", true, &s, &why), -EPERM);
	assert_says(why.text, "--token-file");
	assert_int_equal(s.fd, -1);
	assert_int_equal(listen_open("0.0.0.0:0", false, &s, &why), 0);
	assert_false(s.is_local);
	listen_close(&s);
	assert_int_equal(listen_open("127.1.2.3:0", true, &s, &why), 0);
	assert_true(s.is_local);
	listen_close(&s);
}

TEST(test_in_use)
{
	struct listen_socket s, other;
	char text[64];
	struct err why = { 0 };

	assert_int_equal(listen_open("127.0.0.1:0", true, &s, &why), 0);
	assert_int_equal(sscanf(s.address, "http://%63[^/]/", text), 1);
	assert_int_equal(listen_open(text, true, &other, &why), -EADDRINUSE);
	assert_says(why.text, "in use");
	listen_close(&s);
}

TEST(test_unix_socket)
{
	char dir[] = "/tmp/heaptap-test-XXXXXX", path[64], text[80];
	struct err why = { 0 };
	struct listen_socket s, other;
	struct stat st;

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

TEST(test_token_compare)
{
	static const char token[] = "0123456789abcdef";

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

TEST(test_token_file)
{
	char token[TOKEN_BYTES_CAP + 2], text[TOKEN_BYTES_CAP + 2];
	struct err why = { 0 };

	assert_int_equal(read_token("0123456789abcdef\n", 0600, token, &why), 0);
	assert_string_equal(token, "0123456789abcdef");
	assert_int_equal(read_token("0123456789abcdef", 0400, token, &why), 0);
	assert_int_equal(read_token("0123456789abcdef\n", 0640, token, &why), -EPERM);
	assert_says(why.text, "others");
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

/* At most once in the interval, 1 % of a CPU for all, half of that for one; one that hangs costs the others little. */
TEST(test_rows_pause)
{
	struct rows_pause p = rows_pause_after(8 * NS_PER_MS, false, 60 * NS_PER_S);

	assert_true(p.own_ns == 60 * NS_PER_S && p.all_ns == 800 * NS_PER_MS);
	p = rows_pause_after(2 * NS_PER_S, false, 60 * NS_PER_S);
	assert_true(p.own_ns == 400 * NS_PER_S && p.all_ns == 200 * NS_PER_S);
	p = rows_pause_after(8 * NS_PER_S, true, 60 * NS_PER_S);
	assert_true(p.own_ns == 3600 * NS_PER_S && p.all_ns == 60 * NS_PER_S);
	p = rows_pause_after(8 * NS_PER_S, true, 7200 * NS_PER_S);
	assert_true(p.own_ns == 7200 * NS_PER_S);
}

TEST(test_who_was_slow)
{
	struct slow_processes s = { 0 };

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

RUN_TESTS()
