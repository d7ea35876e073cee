/* SPDX-License-Identifier: MIT */
/* test_push.c - push targets, the bytes of requests, what answers mean, secrets. */
#include "unit.h"

#include "base/err.h"
#include "parca.pb-c.h"
#include "pyroscope.pb-c.h"
#include "serve/push_message.h"
#include "serve/push_http.h"

TEST(targets_that_are_right)
{
	static const struct {
		const char *text;
		enum push_kind kind;
		bool is_tls;
		const char *host;
		uint16_t port;
		const char *url;
	} cases[] = {
		{ "parca+http://localhost:7070", PUSH_PARCA, false, "localhost", 7070,
		  "http://localhost:7070/parca.profilestore.v1alpha1.ProfileStoreService/"
		  "WriteRaw" },
		{ "parca+https://grpc.example.com:443/", PUSH_PARCA, true, "grpc.example.com", 443,
		  "https://grpc.example.com:443/"
		  "parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw" },
		{ "PYROSCOPE+HTTP://10.0.0.1:4040", PUSH_PYROSCOPE, false, "10.0.0.1", 4040,
		  "http://10.0.0.1:4040/push.v1.PusherService/Push" },
		{ "pyroscope+https://p:1/a/b//", PUSH_PYROSCOPE, true, "p", 1,
		  "https://p:1/a/b/push.v1.PusherService/Push" },
		{ "pyroscope+http://[::1]:65535", PUSH_PYROSCOPE, false, "::1", 65535,
		  "http://[::1]:65535/push.v1.PusherService/Push" },
	};
	struct err why;

	each_case(c, cases) {
		struct push_target t;

		assert_int_equal(push_target_parse(c->text, &t, &why), 0);
		assert_int_equal(t.kind, c->kind);
		assert_int_equal(t.is_tls, c->is_tls);
		assert_string_equal(t.host, c->host);
		assert_int_equal(t.port, c->port);
		assert_string_equal(t.url, c->url);
		assert_string_equal(t.name, c->text);
	}
}

TEST(targets_that_are_wrong)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "does not begin with" },
		{ "http://localhost:7070", "does not begin with" },
		{ "grafana+http://localhost:7070", "does not begin with" },
		{ "parca+http://", "no host" },
		{ "parca+http://:7070", "no host" },
		{ "parca+http://localhost", "no port, as in localhost:7070" },
		{ "pyroscope+http://localhost", "as in localhost:4040" },
		{ "parca+http://localhost:", "no port after the colon" },
		{ "parca+http://localhost:http", "the port 'http' is not a number" },
		{ "parca+http://localhost:0", "not between 1 and 65535" },
		{ "parca+http://localhost:65536", "not between 1 and 65535" },
		{ "parca+http://localhost:99999999999999999999", "not between 1 and 65535" },
		{ "parca+http://localhost:70 70", "spaces" },
		{ "parca+http://local\nhost:7070", "spaces" },
		{ "parca+http://me:secret@localhost:7070", "no user or password" },
		{ "parca+http://localhost:7070/x", "nothing may follow the port" },
		{ "pyroscope+http://localhost:7070/x?y", "must not have '?' or '#'" },
		{ "parca+http://::1:7070", "in brackets" },
		{ "parca+http://[::1", "no closing bracket" },
		{ "parca+http://[::1]", "no port" },
		{ "parca+http://[::1]7070", "':PORT' must follow" },
		{ "parca+http://[nonsense]:7070", "neither a host name nor an address" },
		{ "parca+http://-x:7070", "neither a host name nor an address" },
		{ "parca+http://a%2fb:7070", "neither a host name nor an address" },
	};
	char *longer = unit_keep(malloc(2000), free);
	struct err why;
	struct push_target t;

	each_case(c, cases) {
		assert_int_equal(push_target_parse(c->text, &t, &why), -EINVAL);
		if (!strstr(why.text, c->why))
			fail_msg("'%s': '%s' does not say '%s'", c->text, why.text, c->why);
	}
	memset(longer, 'a', 1999);
	memcpy(longer, "parca+http://", 13);
	longer[1999] = 0;
	assert_int_equal(push_target_parse(longer, &t, &why), -EINVAL);
	assert_says(why.text, "too long");
}

/* Whatever is wrong with an address, a password in it is not said again. */
TEST(passwords_are_not_repeated)
{
	static const char *const texts[] = {
		"parca+http://me:secret@localhost:7070",
		"parca+http://secret@localhost:7070",
		"http://me:secret@localhost:7070",
		"me:secret@localhost:7070",
		"pyroscope+https://me:secret/with@signs@localhost:1/x",
		"parca+http://me:secret @localhost:7070",
		"parca+http://me:secret@localhost:7070?x",
	};
	struct push_target t;
	char shown[64];
	struct err why;

	each_case(c, texts) {
		why.text[0] = '\0';
		assert_int_equal(push_target_parse(*c, &t, &why), -EINVAL);
		if (strstr(why.text, "secret") || !strstr(why.text, "***@localhost"))
			fail_msg("of %s: %s", *c, why.text);
	}
	push_target_redact(texts[0], shown, sizeof(shown));
	assert_string_equal(shown, "parca+http://***@localhost:7070");
	push_target_redact("parca+http://localhost:7070/a@b", shown, 20);
	assert_string_equal(shown, "parca+http://***@b");
	push_target_redact("parca+http://localhost:7070", shown, 20);
	assert_string_equal(shown, "parca+http://localh");
}

TEST(file_names_are_apart)
{
	static const char *const texts[] = { "pyroscope+http://[fe80::1]:4040",
					     "pyroscope+http://[fe80::1]:4040/a",
					     "pyroscope+https://[fe80::1]:4040/a" };
	char names[3][PUSH_TARGET_FILE_BYTES];
	struct err why;
	struct push_target t;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(push_target_parse(texts[i], &t, &why), 0);
		push_target_file_name(&t, names[i]);
		assert_int_equal(strncmp(names[i], "pyroscope-fe80__1-4040-", 23), 0);
		assert_int_equal(strlen(names[i]), 23 + 8);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(names[i], names[k]);
	}
}

static const struct push_label labels[] = { { "__name__", "memory" }, { "pid", "42" } };
static const struct push_series two[] = {
	{ labels, 2, "\x1f\x8b profile", 10 },
	{ labels, 1, "\0\1\2", 3 },
};

TEST(a_grpc_frame_holds_the_message)
{
	Parca__Profilestore__V1alpha1__WriteRawRequest *m;
	uint8_t *body;
	size_t n;

	assert_int_equal(push_parca_encode(two, 2, &body, &n), 0);
	assert_true(n > PUSH_PARCA_FRAME_BYTES);
	assert_int_equal(body[0], 0);
	assert_int_equal((size_t)body[1] << 24 | body[2] << 16 | body[3] << 8 | body[4], n - 5);
	m = parca__profilestore__v1alpha1__write_raw_request__unpack(NULL, n - 5, body + 5);
	assert_non_null(m);
	assert_true(m->normalized);
	assert_int_equal(m->n_series, 2);
	assert_int_equal(m->series[0]->labels->n_labels, 2);
	assert_string_equal(m->series[0]->labels->labels[1]->name, "pid");
	assert_string_equal(m->series[0]->labels->labels[1]->value, "42");
	assert_int_equal(m->series[0]->n_samples, 1);
	assert_int_equal(m->series[0]->samples[0]->raw_profile.len, 10);
	assert_memory_equal(m->series[1]->samples[0]->raw_profile.data, "\0\1\2", 3);
	parca__profilestore__v1alpha1__write_raw_request__free_unpacked(m, NULL);
	free(body);
}

/* The published numbers, byte by byte: the generated code would be wrong on both sides. */
TEST(the_bytes_on_the_wire)
{
	static const struct push_label label = { "a", "b" };
	static const struct push_series one = { &label, 1, "P", 1 };
	static const uint8_t parca[] = { 0, 0,	 0,    0, 19,  0x12, 15, 0x0a, 8, 0x0a, 6,    0x0a,
					 1, 'a', 0x12, 1, 'b', 0x12, 3,	 0x0a, 1, 'P',	0x18, 1 };
	static const uint8_t pyroscope[] = { 0x0a, 13,	0x0a, 6, 0x0a, 1, 'a', 0x12,
					     1,	   'b', 0x12, 3, 0x0a, 1, 'P' };
	uint8_t *body;
	size_t n;

	assert_int_equal(push_parca_encode(&one, 1, &body, &n), 0);
	assert_int_equal(n, sizeof(parca));
	assert_memory_equal(body, parca, n);
	free(body);
	assert_int_equal(push_pyroscope_encode(&one, 1, &body, &n), 0);
	assert_int_equal(n, sizeof(pyroscope));
	assert_memory_equal(body, pyroscope, n);
	free(body);
}

TEST(a_pyroscope_request_is_the_bare_message)
{
	Push__V1__PushRequest *m;
	uint8_t *body;
	size_t n;

	assert_int_equal(push_pyroscope_encode(two, 2, &body, &n), 0);
	m = push__v1__push_request__unpack(NULL, n, body);
	assert_non_null(m);
	assert_int_equal(m->n_series, 2);
	assert_string_equal(m->series[0]->labels[0]->name, "__name__");
	assert_string_equal(m->series[0]->labels[0]->value, "memory");
	assert_int_equal(m->series[1]->n_labels, 1);
	assert_memory_equal(m->series[0]->samples[0]->raw_profile.data, "\x1f\x8b profile", 10);
	push__v1__push_request__free_unpacked(m, NULL);
	free(body);
}

static struct push_answer grpc_answer(long http, const char *const *lines)
{
	struct push_grpc g = { 0 };
	struct push_answer a;

	for (; *lines; lines++)
		push_parca_header(&g, *lines, strlen(*lines));
	push_parca_answer(&g, http, &a);
	return a;
}

#define GRPC(http, ...) grpc_answer(http, (const char *const[]){ __VA_ARGS__, NULL })

TEST(grpc_answers)
{
	struct push_answer a = GRPC(200, "HTTP/2 200 \r\n", "grpc-status: 0\r\n", "\r\n");

	assert_int_equal(a.verdict, PUSH_SENT);
	a = GRPC(200, "Grpc-Status:3", "grpc-message:  bad%20%22label%22 \xc3\xa4%C3%A4%\r\n");
	assert_int_equal(a.verdict, PUSH_REFUSED);
	assert_string_equal(a.text, "INVALID_ARGUMENT: bad \"label\" \xc3\xa4\xc3\xa4%");
	a = GRPC(200, "grpc-message: a%0Ab%00c%zz%4", "grpc-status: 14");
	assert_int_equal(a.verdict, PUSH_RETRY);
	assert_string_equal(a.text, "UNAVAILABLE: a?b%00c%zz%4");
	a = GRPC(200, "grpc-status: 16");
	assert_int_equal(a.verdict, PUSH_RETRY);
	a = GRPC(200, "grpc-status: 2");
	assert_int_equal(a.verdict, PUSH_RETRY_FEW);
	a = GRPC(200, "grpc-status: 99");
	assert_int_equal(a.verdict, PUSH_RETRY_FEW);
	assert_string_equal(a.text, "gRPC status 99");
}

TEST(answers_without_a_status_are_no_success)
{
	struct push_answer a = GRPC(200, "content-type: text/html");

	assert_int_equal(a.verdict, PUSH_RETRY_FEW);
	assert_string_equal(a.text, "HTTP status 200 and no grpc-status");
	a = GRPC(200, "grpc-status: x", "grpc-status: 1234", "grpc-status:", "x-grpc-status: 0");
	assert_int_equal(a.verdict, PUSH_RETRY_FEW);
	a = GRPC(404, "server: nginx");
	assert_int_equal(a.verdict, PUSH_RETRY_FEW);
	a = GRPC(400, "server: nginx");
	assert_int_equal(a.verdict, PUSH_REFUSED);
	a = GRPC(503, "server: nginx");
	assert_int_equal(a.verdict, PUSH_RETRY);
}

TEST(pyroscope_answers)
{
	static const char body[] = "{\"code\":\"invalid_argument\",\"message\":\"no\tprofile\"}";
	struct push_answer a;
	char long_body[600];

	push_pyroscope_answer(200, "{}", 2, &a);
	assert_int_equal(a.verdict, PUSH_SENT);
	push_pyroscope_answer(400, body, strlen(body), &a);
	assert_int_equal(a.verdict, PUSH_REFUSED);
	assert_string_equal(a.text, "HTTP status 400: {\"code\":\"invalid_argument\","
				    "\"message\":\"no?profile\"}");
	push_pyroscope_answer(429, "", 0, &a);
	assert_int_equal(a.verdict, PUSH_RETRY);
	push_pyroscope_answer(500, "", 0, &a);
	assert_int_equal(a.verdict, PUSH_RETRY_FEW);
	push_pyroscope_answer(401, "", 0, &a);
	assert_int_equal(a.verdict, PUSH_RETRY);
	/* Cut between characters: 17 bytes before, then two each, and an odd number of bytes. */
	for (size_t i = 0; i + 1 < sizeof(long_body); i += 2)
		memcpy(long_body + i, "\xc3\xa4", 2);
	push_pyroscope_answer(400, long_body, sizeof(long_body), &a);
	assert_true(strlen(a.text) >= sizeof(a.text) - 2);
	assert_int_equal((unsigned char)a.text[strlen(a.text) - 1], 0xa4);
}

static int secret(const char *text, mode_t mode, char *ret, struct err *why)
{
	char path[] = "/tmp/heaptap-secret-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	err = push_secret_read(path, ret, why);
	unlink(path);
	return err;
}

TEST(secrets)
{
	char got[PUSH_SECRET_MAX], *huge = unit_keep(malloc(5001), free);
	struct err why;

	assert_int_equal(secret("s3cret \r\nsecond line", 0600, got, &why), 0);
	assert_string_equal(got, "s3cret");
	assert_int_equal(secret("s3cret", 0640, got, &why), 0);
	assert_int_equal(secret("s3cret", 0644, got, &why), -EACCES);
	assert_says(why.text, "others can read");
	assert_int_equal(secret("", 0600, got, &why), -EINVAL);
	assert_int_equal(secret(" \n", 0600, got, &why), -EINVAL);
	assert_int_equal(secret("a\x01", 0600, got, &why), -EINVAL);
	memset(huge, 'x', 5000);
	huge[5000] = 0;
	assert_int_equal(secret(huge, 0600, got, &why), -EINVAL);
	assert_int_equal(push_secret_read("/nonexistent", got, &why), -ENOENT);
	assert_int_equal(push_secret_read("/dev/null", got, &why), -EINVAL);
}

RUN_TESTS()
