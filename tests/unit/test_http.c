/* SPDX-License-Identifier: MIT */
/*
 * test_http.c - the server on a loopback port, and a client in the same thread: what is let in, what
 * a handler sees, bodies, answers that come later, clients that have gone.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "http/http.h"

#define LIMIT_NS (20 * NS_PER_S)
#define LARGE_BODY (9 << 20)
#define TOKEN "0123456789abcdef"

/* The server of the test that runs, and what its handler has seen. */
static struct fixture {
	struct http_server *server;
	struct http_exchange *held;
	unsigned asked_cnt, abandoned_cnt;
	char path[512], body[64];
	size_t body_bytes;
} f;
static char answer[4096];

static size_t body_cap(void *ctx, const char *path)
{
	if (!strcmp(path, "/large"))
		return LARGE_BODY;
	return !strcmp(path, "/post") ? 20 : 0;
}

static void on_request(void *ctx, struct http_exchange *x)
{
	static const struct http_answer hello = { .status = 200, .text = "hello\n" };
	const struct http_request *r = http_request(x);

	f.asked_cnt++;
	snprintf(f.path, sizeof(f.path), "%s", r->path);
	f.body_bytes = r->body_bytes;
	memset(f.body, 0, sizeof(f.body));
	if (r->body && f.body_bytes < sizeof(f.body))
		memcpy(f.body, r->body, f.body_bytes);
	if (!strcmp(f.path, "/hold")) {
		f.held = x;
		http_defer(x);
	} else {
		http_reply(x, &hello);
	}
}

static void on_abandon(void *ctx, struct http_exchange *x)
{
	assert_ptr_equal(x, f.held);
	f.held = NULL;
	f.abandoned_cnt++;
}

static void open_server(const char *token)
{
	static const struct http_ops ops = { body_cap, on_request, on_abandon };
	const struct http_options opts = { .listen = "127.0.0.1:0",
					   .token = token,
					   .open_path = "/open" };
	struct err why;

	memset(&f, 0, sizeof(f));
	if (http_open(&opts, &ops, NULL, &f.server, &why))
		fail_msg("%s", why.text);
}

static int close_server(void **state)
{
	http_close(f.server);
	f.server = NULL;
	return 0;
}

/* From one of the addresses of this machine. */
static int dial_from(uint32_t address)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
	unsigned port;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(sscanf(http_address(f.server), "http://127.0.0.1:%u/", &port), 1);
	to.sin_port = htons((uint16_t)port);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int dial(void)
{
	return dial_from(0x7f000001);
}

static void turn(void)
{
	struct pollfd poller = { .fd = http_fd(f.server), .events = POLLIN };

	poll(&poller, 1, 1);
	assert_int_equal(http_run(f.server), 0);
	http_end_slow(f.server);
}

/* Sends all of it, however little the server takes at a time; it may hang up before. */
static void send_all(int fd, const char *data, size_t bytes)
{
	while (bytes) {
		ssize_t n = send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			return;
		data += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
		turn();
	}
}

static void send_text(int fd, const char *text)
{
	send_all(fd, text, strlen(text));
}

/* What comes until the server closes, as a text. */
static void read_all(int fd)
{
	uint64_t end_ns = now_ns() + LIMIT_NS;
	size_t used = 0;
	ssize_t n;

	do {
		if (now_ns() > end_ns)
			fail_msg("no end after: %.*s", (int)used, answer);
		turn();
		n = recv(fd, answer + used, sizeof(answer) - 1 - used, MSG_DONTWAIT);
		used += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EAGAIN));
	answer[used] = '\0';
	close(fd);
}

/* The status that a request is answered with; 0: the connection is closed. */
static int ask(const char *request)
{
	int fd = dial(), status = 0;

	send_text(fd, request);
	read_all(fd);
	return sscanf(answer, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

#define END "Connection: close\r\n\r\n"

TEST_WITH(lets_in, NULL, close_server)
{
	static const struct {
		const char *request;
		int status;
	} cases[] = {
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, 200 },
		{ "HEAD /a HTTP/1.1\r\nHost: localhost:1\r\n" END, 200 },
		{ "GET /a HTTP/1.0\r\n\r\n", 200 },
		{ "GET /a HTTP/1.1\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nhost: 127.0.0.1\r\n" END, 400 },
		{ "GET /a HTTP/1.0\r\nHost: a.localhost\r\nHost: evil.example\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: evil.example\r\n" END, 421 },
		{ "POST /a HTTP/1.1\r\nHost: a.localhost\r\nContent-Length: 1\r\n" END "x", 405 },
		{ "PUT /post HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 1\r\n" END "x", 405 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\n" END "x", 400 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 21\r\n" END, 413 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n" END,
		  411 },
		{ "GET /a HTTP/1.1\r\nHost: [::1]evil\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: [::1]:80evil\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: [::1\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1:80@evil.example\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: ::1\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: [::1].evil:80\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: [localhost]\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: [evil.example]\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n .evil.example\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nhost: evil.example\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost : 127.0.0.1\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1, evil.example\r\n" END, 421 },
		{ "GET /a HTTP/1.1\r\nHost:\r\n" END, 400 },
		{ "GET /a HTTP/1.1\r\nHost: evil@127.0.0.1\r\n" END, 421 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1/evil\r\n" END, 421 },
		{ "GET /a HTTP/1.1\r\nHost: localhost.evil.example\r\n" END, 421 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" END
		  "xy",
		  400 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1, 2\r\n" END "xy",
		  400 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n" END
		  "abcde",
		  400 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length : 1\r\n" END "x", 411 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: identity\r\n"
		  "Content-Length: 1\r\n" END "x",
		  400 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: +1\r\n" END "x", 400 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n" END "x", 400 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0x1\r\n" END "x",
		  400 },
		{ "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n"
		  "Transfer-Encoding: chunked\r\n" END "0\r\n\r\n",
		  400 },
		{ "GET /a HTTP/1.1\r\nHost: [::1]:7676\r\n" END, 200 },
		{ "nonsense\r\n\r\n", 0 },
	};

	open_server(NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int status = ask(cases[i].request);

		if (status != cases[i].status && !(status == 400 && !cases[i].status))
			fail_msg("%d, not %d for %s: %s", status, cases[i].status, cases[i].request,
				 answer);
		/* lengths that are no numbers the library refuses by itself */
		if (i < 12)
			assert_int_equal(!strstr(answer, "X-Go-Pprof: 1"), status == 200);
	}
	assert_int_equal(f.asked_cnt, 4);
}

TEST_WITH(says_what_it_takes, NULL, close_server)
{
	open_server(NULL);
	ask("DELETE /a HTTP/1.1\r\nHost: 127.0.0.1\r\n" END);
	assert_says(answer, "Allow: GET, HEAD\r\n");
	ask("DELETE /post HTTP/1.1\r\nHost: 127.0.0.1\r\n" END);
	assert_says(answer, "Allow: GET, HEAD, POST\r\n");
}

/* A path is what stands there: nothing in it ends it, or makes two parts of one. */
TEST_WITH(paths_are_whole, NULL, close_server)
{
	open_server(NULL);
	assert_int_equal(ask("GET /a%00b%2Fc%2fd%41%zz%4 HTTP/1.1\r\nHost: 127.0.0.1\r\n" END),
			 200);
	assert_string_equal(f.path, "/a%00b%2Fc%2fdA%zz%4");
}

TEST_WITH(bodies, NULL, close_server)
{
	int fd;

	open_server(NULL);
	assert_int_equal(ask("POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20\r\n" END
			     "0123456789abcdefghij"),
			 200);
	assert_int_equal(f.body_bytes, 20);
	assert_string_equal(f.body, "0123456789abcdefghij");
	/* In pieces, and what follows is another request. */
	fd = dial();
	send_text(fd, "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\na");
	for (int i = 0; i < 5; i++)
		turn();
	assert_int_equal(f.asked_cnt, 1);
	send_text(fd, "bcGET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n" END);
	read_all(fd);
	assert_int_equal(f.asked_cnt, 3);
	assert_string_equal(f.path, "/a");
	/* Cut off: nobody is asked. */
	fd = dial();
	send_text(fd, "POST /post HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\na");
	shutdown(fd, SHUT_WR);
	read_all(fd);
	assert_int_equal(f.asked_cnt, 3);
}

/* All bodies together have a bound; one that has gone has left its room. */
TEST_WITH(bodies_of_all, NULL, close_server)
{
	static const char large[] =
		"POST /large HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9437184\r\n\r\n0x1";
	int fd;

	open_server(NULL);
	fd = dial();
	send_text(fd, large);
	assert_int_equal(ask(large), 503);
	shutdown(fd, SHUT_WR);
	read_all(fd);
	fd = dial();
	send_text(fd, large);
	for (int i = 0; i < 20; i++)
		turn();
	assert_int_equal(recv(fd, answer, 1, MSG_DONTWAIT), -1); /* it is waited for */
	close(fd);
}

/* Without the token no body is read, and nobody is asked. */
TEST_WITH(token_first, NULL, close_server)
{
	open_server(TOKEN);
	assert_int_equal(ask("GET /a HTTP/1.1\r\nHost: any.example\r\n" END), 401);
	assert_says(answer, "WWW-Authenticate: Basic");
	assert_int_equal(ask("POST /post HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n" END), 401);
	assert_int_equal(ask("GET /a HTTP/1.1\r\nAuthorization: Bearer " TOKEN "\r\n" END), 400);
	assert_int_equal(f.asked_cnt, 0);
	assert_int_equal(ask("POST /post HTTP/1.1\r\nHost: any.example\r\nContent-Length: 3\r\n"
			     "Authorization: Bearer " TOKEN "\r\n" END "abc"),
			 200);
	assert_int_equal(f.asked_cnt, 1);
}

/* The token as a password: the scheme is libmicrohttpd's, whose password counts is not. */
TEST_WITH(token_as_password, NULL, close_server)
{
	static char large[8192];
	static const struct {
		const char *of, *header;
		int status;
	} cases[] = {
		{ "x:" TOKEN, "Basic eDowMTIzNDU2Nzg5YWJjZGVm", 200 },
		{ "anybody:" TOKEN, "Basic YW55Ym9keTowMTIzNDU2Nzg5YWJjZGVm", 200 },
		{ ":" TOKEN, "Basic OjAxMjM0NTY3ODlhYmNkZWY=", 200 },
		{ "another password", "Basic eDowMTIzNDU2Nzg5YWJjZGVn", 401 },
		{ "no colon", "Basic MDEyMzQ1Njc4OWFiY2RlZg==", 401 },
		{ "no base64", "Basic !!!!", 401 },
		{ "nothing", "Basic ", 401 },
		{ "another scheme", "Digest eDowMTIzNDU2Nzg5YWJjZGVm", 401 },
		{ "too long", large, 401 },
	};
	char request[sizeof(large) + 256];

	memcpy(large, "Basic ", 6);
	memset(large + 6, 'A', sizeof(large) - 7);
	open_server(TOKEN);
	each_case(c, cases) {
		int status;

		snprintf(request, sizeof(request),
			 "GET /a HTTP/1.1\r\nHost: any.example\r\nAuthorization: %s\r\n" END,
			 c->header);
		status = ask(request);
		if (status != c->status)
			fail_msg("%s: %d", c->of, status);
	}
}

static int ask_to_be_held(void)
{
	static const char hold[] = "GET /hold HTTP/1.1\r\nHost: 127.0.0.1\r\n" END;
	int fd = dial();

	send_text(fd, hold);
	for (uint64_t end_ns = now_ns() + LIMIT_NS; !f.held;) {
		assert_true(now_ns() < end_ns);
		turn();
	}
	return fd;
}

TEST_WITH(answers_that_come_later, NULL, close_server)
{
	struct http_answer later = { .status = 200, .text = "a\0b", .text_bytes = 3 };
	int fd;

	open_server(NULL);
	fd = ask_to_be_held();
	for (int i = 0; i < 20; i++)
		turn();
	assert_int_equal(f.abandoned_cnt, 0);
	http_reply(f.held, &later);
	read_all(fd);
	assert_says(answer, "Content-Length: 3\r\n");
	/* At the end of the server, who waits is told. */
	f.held = NULL;
	fd = ask_to_be_held();
	close_server(NULL);
	assert_true(recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) > 12);
	assert_memory_equal(answer, "HTTP/1.1 503", 12);
	close(fd);
}

/* Whoever would answer is gone by then, and nobody would end what is held. */
TEST_WITH(requests_at_the_end, NULL, close_server)
{
	static const char *const paths[] = { "/hello", "/hold" };

	each_case(c, paths) {
		int fd;

		open_server(NULL);
		fd = dial();
		send_text(fd, "GET ");
		for (int n = 0; n < 5; n++)
			turn();
		snprintf(answer, sizeof(answer), "%s HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, *c);
		assert_true(send(fd, answer, strlen(answer), 0) > 0);
		close_server(NULL);
		assert_int_equal(f.asked_cnt, 0);
		assert_true(recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) > 12);
		assert_memory_equal(answer, "HTTP/1.1 503", 12);
		close(fd);
	}
}

static int send_to(const char *path)
{
	char text[256];
	int fd = dial();

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n" END, path);
	assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

/* From within other work only the open page is answered; the others are, when that is done, or at the end. */
TEST_WITH(only_the_open_page, NULL, close_server)
{
	for (int ends = 0; ends < 2; ends++) {
		int later, now;

		open_server(NULL);
		later = send_to("/hello");
		now = send_to("/open");
		for (int n = 0; n < 20; n++)
			http_run_open(f.server);
		assert_int_equal(f.asked_cnt, 1);
		assert_true(recv(now, answer, sizeof(answer) - 1, MSG_DONTWAIT) > 12);
		assert_memory_equal(answer, "HTTP/1.1 200", 12);
		assert_int_equal(recv(later, answer, sizeof(answer), MSG_DONTWAIT), -1);
		assert_int_equal(http_wait_ms(f.server), 0);
		if (ends)
			close_server(NULL);
		else
			turn();
		assert_true(recv(later, answer, sizeof(answer) - 1, MSG_DONTWAIT) > 12);
		assert_memory_equal(answer, ends ? "HTTP/1.1 503" : "HTTP/1.1 200", 12);
		assert_int_equal(f.asked_cnt, ends ? 1 : 2);
		if (!ends)
			close_server(NULL);
		close(later);
		close(now);
	}
}

TEST_WITH(clients_that_have_gone, NULL, close_server)
{
	const struct linger reset = { 1, 0 };

	open_server(NULL);
	for (unsigned i = 0; i < 3; i++) {
		int fd = ask_to_be_held();

		if (i == 1)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		if (i == 2) /* has said more, which nobody reads */
			assert_int_equal(send(fd, "GET", 3, 0), 3);
		close(fd);
		for (uint64_t end_ns = now_ns() + LIMIT_NS; f.abandoned_cnt == i;) {
			assert_true(now_ns() < end_ns);
			turn();
		}
		assert_null(f.held);
	}
}

/* Has the server closed it? What has come is read. */
static bool is_closed(int fd)
{
	char text[4096];
	ssize_t n;

	while ((n = recv(fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
		;
	return n == 0 || errno != EAGAIN;
}

static size_t closed_cnt(const int *fds, size_t cnt)
{
	size_t closed = 0;

	for (size_t i = 0; i < cnt; i++)
		closed += is_closed(fds[i]);
	return closed;
}

#define CROWD 200

static void dial_crowd(int *fds, size_t cnt, uint32_t address, uint32_t address_step)
{
	for (size_t i = 0; i < cnt; i++) {
		fds[i] = dial_from(address + (uint32_t)i * address_step);
		if (i % 2)
			send_text(fds[i], "GET /a HT");
		turn();
	}
	for (int i = 0; i < 20; i++)
		turn();
}

/* Who says nothing, or half of something, gives way to who comes: the oldest of the same address. */
TEST_WITH(silent_crowds, NULL, close_server)
{
	static const char request[] = "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n" END;
	int fds[CROWD], held, other, waits;

	open_server(NULL);
	held = keep_fd(ask_to_be_held());
	other = keep_fd(dial_from(0x7f000003));
	dial_crowd(fds, CROWD, 0x7f000002, 0);
	assert_int_equal(closed_cnt(fds, CROWD - 32), CROWD - 32);
	assert_int_equal(closed_cnt(fds + CROWD - 32, 32), 0);
	assert_false(is_closed(other));
	assert_false(is_closed(held));
	/* of the same address */
	waits = dial_from(0x7f000002);
	send_text(waits, request);
	read_all(waits);
	assert_memory_equal(answer, "HTTP/1.1 200", 12);
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
	/* of as many addresses */
	dial_crowd(fds, CROWD, 0x7f010001, 1);
	assert_in_range(closed_cnt(fds, CROWD), CROWD - 128, CROWD - 127);
	assert_int_equal(closed_cnt(fds + CROWD - 127, 127), 0);
	assert_false(is_closed(held));
	assert_int_equal(ask(request), 200);
	for (int i = 0; i < CROWD; i++)
		close(fds[i]);
}

/* No page lets in what is not its own, or into a page of somebody else. */
TEST_WITH(pages_stand_alone, NULL, close_server)
{
	static const char *const requests[] = {
		"GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n" END,
		"GET /a HTTP/1.1\r\nHost: evil.example\r\n" END,
	};

	open_server(NULL);
	for (size_t i = 0; i < 2; i++) {
		ask(requests[i]);
		assert_says(answer, "\r\nX-Frame-Options: DENY\r\n");
		assert_says(answer, "\r\nContent-Security-Policy: default-src 'none'; ");
		assert_says(answer, "frame-ancestors 'none'");
		assert_says(answer, "\r\nX-Content-Type-Options: nosniff\r\n");
	}
}

/* For the sanitizers: what is none of HTTP, cut anywhere. */
TEST_WITH(noise, NULL, close_server)
{
	static const char request[] =
		"POST /post?pid=%00&x HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic eDp5\r\n"
		"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n0x1+2GET /a HTTP/1.1\r\n\r\n";
	char text[sizeof(request)];

	srandom(1);
	open_server(NULL);
	for (int i = 0; i < 500; i++) {
		size_t bytes = (size_t)random() % sizeof(request);
		int fd = dial();

		memcpy(text, request, sizeof(text));
		for (int k = i % 6; k > 0 && bytes; k--)
			text[(size_t)random() % bytes] = (char)random();
		send_all(fd, text, bytes);
		shutdown(fd, SHUT_WR);
		read_all(fd);
		if (f.held) { /* "/hold" by chance */
			http_error(f.held, 500, "no\n");
			f.held = NULL;
		}
	}
	assert_int_equal(ask("GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n" END), 200);
}

RUN_TESTS()
