/* SPDX-License-Identifier: MIT */
/*
 * test_push_queue.c - the times of the queue, when a try comes again, and the thread that runs one. The
 * target is a port of this process that nobody accepts on; tests/consumers/test_push.sh has servers.
 */
#include "unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "serve/push_queue.h"

static const struct push_label label = { "__name__", "memory" };
static const struct push_series series = { &label, 1, "profile", 7 };

/* Bound, not listening: each connection is refused, and nobody else can have the port. */
static int refusing_port(uint16_t *ret_port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t n = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &n), 0);
	*ret_port = ntohs(addr.sin_port);
	return fd;
}

/* Until the test ends. */
static uint16_t refused_port(void)
{
	uint16_t port;

	keep_fd(refusing_port(&port));
	return port;
}

static void get_options_of(const char *kind, uint16_t port, size_t cnt_max,
			   struct push_queue_options *ret)
{
	char text[64];
	struct err why;

	*ret = push_queue_defaults;
	snprintf(text, sizeof(text), "%s+http://127.0.0.1:%u", kind, port);
	assert_int_equal(push_target_parse(text, &ret->http.target, &why), 0);
	ret->spool.cnt_max = cnt_max;
	ret->retry_min_ns = 50 * NS_PER_MS;
	ret->retry_max_ns = 400 * NS_PER_MS;
}

static void get_options(uint16_t port, size_t cnt_max, struct push_queue_options *ret)
{
	get_options_of("parca", port, cnt_max, ret);
}

static struct push_queue *open_queue(uint16_t port, size_t cnt_max)
{
	struct push_queue_options opts;
	struct push_queue *q;

	get_options(port, cnt_max, &opts);
	assert_int_equal(push_queue_open(&opts, &q), 0);
	return q;
}

/* Runs the queue when its fd says so, and only then: how often. */
static unsigned int run_for(struct push_queue *q, uint64_t ns)
{
	uint64_t end = now_ns() + ns;
	unsigned int turns = 0;

	while (now_ns() < end) {
		struct pollfd fd = { push_queue_fd(q), POLLIN, 0 };
		uint64_t left_ms = (end - now_ns()) / NS_PER_MS;

		if (poll(&fd, 1, (int)left_ms + 1) <= 0)
			continue;
		push_queue_run(q);
		turns++;
	}
	return turns;
}

/* Adds a request for Parca: no server here reads it. */
static int add(struct push_queue *q, const struct push_series *added)
{
	uint8_t *body = NULL;
	size_t bytes = 0;
	int err = push_parca_encode(added, 1, &body, &bytes);

	return err ? err : push_queue_take(q, body, bytes);
}

TEST(nothing_to_send_is_no_work)
{
	uint16_t port = refused_port();
	struct push_queue *q = open_queue(port, 10);

	assert_int_equal(run_for(q, 100 * NS_PER_MS), 0);
	push_queue_close(q);
}

TEST(tries_come_apart)
{
	struct push_queue_stats stats;
	uint16_t port = refused_port();
	struct push_queue *q = open_queue(port, 10);
	unsigned int turns;

	for (int i = 0; i < 3; i++)
		assert_int_equal(add(q, &series), 0);
	/* Waits of 25-50, 50-100, 100-200, then 200-400 ms: for all three together. */
	turns = run_for(q, 1000 * NS_PER_MS);
	push_queue_stats(q, &stats);
	assert_in_range(stats.failed_cnt, 3, 8);
	assert_true(turns < 100);
	assert_int_equal(stats.added_cnt, 3);
	assert_int_equal(stats.spool.cnt, 3);
	assert_int_equal(stats.sent_cnt + stats.refused_cnt, 0);
	assert_true(stats.is_failing);
	assert_says(stats.last_error, "onnect");
	push_queue_close(q);
}

#define NO_BODY "Content-Length: 0\r\nConnection: close\r\n\r\n"

/* Of a server that a thread is, and its client. */
static void end_queue(struct push_queue *q, int listening, pthread_t thread)
{
	push_queue_close(q);
	shutdown(listening, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(listening);
}

struct stubborn_server {
	int listening;
	const char *answer;
};

/* Answers each request the same, until its socket is shut. */
static void *answer_all(void *arg)
{
	const struct stubborn_server *s = arg;
	char text[4096];
	int fd;

	while ((fd = accept(s->listening, NULL, NULL)) >= 0) {
		if (recv(fd, text, sizeof(text), 0) > 0)
			send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
		while (recv(fd, text, sizeof(text), 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

static struct push_queue *open_to_stubborn(struct stubborn_server *server, uint16_t port,
					   pthread_t *ret_thread)
{
	struct push_queue_options opts;
	struct push_queue *q;

	assert_int_equal(listen(server->listening, 8), 0);
	assert_int_equal(pthread_create(ret_thread, NULL, answer_all, server), 0);
	get_options_of("pyroscope", port, 10, &opts);
	assert_int_equal(push_queue_open(&opts, &q), 0);
	return q;
}

/* One request less says nothing of the next: a server that fails is not asked any sooner. */
TEST(giving_up_is_no_recovery)
{
	struct push_queue_stats stats = { .refused_cnt = 0 };
	uint64_t end = now_ns() + 20 * NS_PER_S;
	struct push_queue *q;
	pthread_t thread;
	uint16_t port;
	struct stubborn_server server = { refusing_port(&port), "HTTP/1.1 500 Sorry\r\n" NO_BODY };

	q = open_to_stubborn(&server, port, &thread);
	for (int i = 0; i < 2; i++)
		assert_int_equal(add(q, &series), 0);
	while (!stats.refused_cnt && now_ns() < end) {
		run_for(q, 5 * NS_PER_MS);
		push_queue_stats(q, &stats);
	}
	assert_int_equal(stats.refused_cnt, 1);
	assert_int_equal(stats.failed_cnt, PUSH_TRIES_MAX);
	assert_true(stats.is_failing);
	run_for(q, 100 * NS_PER_MS); /* of 200 to 400 */
	push_queue_stats(q, &stats);
	assert_int_equal(stats.failed_cnt, PUSH_TRIES_MAX);
	assert_int_equal(stats.spool.cnt, 1);
	end_queue(q, server.listening, thread);
}

TEST(a_pause_is_kept)
{
	struct push_queue_stats stats = { .failed_cnt = 0 };
	uint64_t first_ns = 0, end = now_ns() + 20 * NS_PER_S;
	struct push_queue *q;
	pthread_t thread;
	uint16_t port;
	struct stubborn_server server = { refusing_port(&port),
					  "HTTP/1.1 429 Slow down\r\nRetry-After: 1\r\n" NO_BODY };

	q = open_to_stubborn(&server, port, &thread);
	assert_int_equal(add(q, &series), 0);
	while (stats.failed_cnt < 2 && now_ns() < end) {
		if (stats.failed_cnt && !first_ns) {
			first_ns = now_ns();
			assert_int_equal(add(q, &series), 0); /* no reason to ask */
		}
		run_for(q, 5 * NS_PER_MS);
		push_queue_stats(q, &stats);
	}
	assert_int_equal(stats.failed_cnt, 2);
	assert_true(now_ns() - first_ns > 950 * NS_PER_MS);
	assert_int_equal(stats.spool.cnt, 2);
	end_queue(q, server.listening, thread);
}

struct slow_server {
	int listening;
	unsigned int pause_ms; /* in front of each request of more than a few bytes */
};

struct slow_client {
	int fd;
	unsigned int pause_ms;
};

/* Reads nothing for a time, then all, and is content. */
static void *read_late(void *arg)
{
	static const char answer[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	struct slow_client c = *(struct slow_client *)arg;
	char text[4096] = "", *length;
	size_t left, used = 0;
	ssize_t n;

	free(arg);
	n = recv(c.fd, text, 2000, MSG_PEEK);
	text[n > 0 ? n : 0] = '\0';
	length = strstr(text, "Content-Length: ");
	left = length ? strtoul(length + 16, NULL, 10) : 0;
	if (left > 100000)
		usleep(c.pause_ms * 1000);
	while (used < left && (n = recv(c.fd, text, sizeof(text), 0)) > 0)
		used += (size_t)n;
	send(c.fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
	shutdown(c.fd, SHUT_WR);
	while (recv(c.fd, text, sizeof(text), 0) > 0)
		;
	close(c.fd);
	return NULL;
}

/* Each client has a thread: one that has given up is not what the next one waits for. */
static void *serve_slowly(void *arg)
{
	const struct slow_server *s = arg;
	pthread_t thread;
	int fd;

	while ((fd = accept(s->listening, NULL, NULL)) >= 0) {
		struct slow_client *c = malloc(sizeof(*c));

		assert_non_null(c);
		*c = (struct slow_client){ fd, s->pause_ms };
		assert_int_equal(pthread_create(&thread, NULL, read_late, c), 0);
		pthread_detach(thread);
	}
	return NULL;
}

/* A large request and a small one, to a server that does not read large ones for so long. */
static void send_to_slow(unsigned int pause_ms, struct push_queue_stats *ret)
{
	static char large[32 << 20];
	static const struct push_series large_series = { &label, 1, large, sizeof(large) };
	struct slow_server server = { .pause_ms = pause_ms };
	uint64_t end = now_ns() + 60 * NS_PER_S;
	struct push_queue_options opts;
	struct push_queue *q;
	pthread_t thread;
	int bytes = 4096;
	uint16_t port;

	memset(ret, 0, sizeof(*ret));
	server.listening = refusing_port(&port);
	assert_int_equal(setsockopt(server.listening, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)),
			 0);
	assert_int_equal(listen(server.listening, 8), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve_slowly, &server), 0);
	get_options_of("pyroscope", port, 10, &opts);
	opts.http.timeout_ns = 300 * NS_PER_MS;
	assert_int_equal(push_queue_open(&opts, &q), 0);
	assert_int_equal(add(q, &large_series), 0);
	assert_int_equal(add(q, &series), 0);
	do {
		run_for(q, 5 * NS_PER_MS);
		push_queue_stats(q, ret);
	} while (ret->spool.cnt && now_ns() < end);
	end_queue(q, server.listening, thread);
}

TEST(what_never_gets_through_is_given_up)
{
	struct push_queue_stats stats;

	send_to_slow(20000, &stats);
	assert_int_equal(stats.failed_cnt, PUSH_TRIES_MAX);
	assert_int_equal(stats.refused_cnt, 1);
	assert_int_equal(stats.sent_cnt, 1);
}

TEST(what_is_slow_gets_more_time)
{
	struct push_queue_stats stats;

	send_to_slow(700, &stats);
	assert_in_range(stats.failed_cnt, 1, PUSH_TRIES_MAX - 1);
	assert_int_equal(stats.refused_cnt, 0);
	assert_int_equal(stats.sent_cnt, 2);
}

/* How often "dropped" is said while this many are added, where there is room for two. */
static int times_said(size_t cnt)
{
	int saved = dup(STDERR_FILENO), fds[2], said = 0;
	struct push_queue_stats stats;
	char text[4096], *at = text;
	struct push_queue *q;
	uint16_t port;
	ssize_t n;
	int fd = refusing_port(&port);

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log_set_level(LOG_WARN);
	q = open_queue(port, 2);
	for (size_t i = 0; i < cnt; i++)
		assert_int_equal(add(q, &series), 0);
	push_queue_stats(q, &stats);
	push_queue_close(q);
	log_set_level(LOG_ERROR);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[1]);
	close(fd);
	n = read(fds[0], text, sizeof(text) - 1);
	close(fds[0]);
	assert_int_equal(stats.spool.dropped_cnt, cnt - 2);
	assert_true(n >= 0);
	text[n] = '\0';
	while ((at = strstr(at, "dropped (1 so far)"))) {
		said++;
		at++;
	}
	return said;
}

TEST(what_is_dropped_is_said_now_and_then)
{
	assert_int_equal(times_said(2), 0);
	assert_int_equal(times_said(3), 1);
	assert_int_equal(times_said(30), 1);
}

TEST(closed_while_under_way)
{
	uint16_t port;
	int fd = keep_fd(refusing_port(&port));
	struct push_queue *q;

	/* Now it listens: the connection stands, nobody ever answers. */
	assert_int_equal(listen(fd, 5), 0);
	q = open_queue(port, 10);
	assert_int_equal(add(q, &series), 0);
	run_for(q, 200 * NS_PER_MS);
	push_queue_close(q);
}

TEST(a_sender_needs_nobody_to_run_it)
{
	struct push_queue_options opts;
	struct push_queue_stats stats;
	struct push_sender *s;
	uint16_t port = refused_port();

	get_options(port, 10, &opts);
	assert_int_equal(push_sender_open(&opts, &s), 0);
	assert_int_equal(push_sender_take(s, (uint8_t *)strdup("body"), 4), 0);
	for (int i = 0; i < 500; i++) {
		push_sender_stats(s, &stats);
		if (stats.failed_cnt >= 2)
			break;
		usleep(10000);
	}
	assert_true(stats.failed_cnt >= 2); /* the first try, and one by the timer */
	assert_int_equal(stats.added_cnt, 1);
	assert_int_equal(stats.spool.cnt, 1);
	push_sender_close(s);
}

TEST(a_sender_is_closed_while_it_waits)
{
	struct push_queue_options opts;
	struct push_sender *s;
	uint16_t port;
	int fd = keep_fd(refusing_port(&port));
	uint64_t begin;

	assert_int_equal(listen(fd, 5), 0); /* and nobody answers */
	get_options(port, 10, &opts);
	assert_int_equal(push_sender_open(&opts, &s), 0);
	assert_int_equal(push_sender_take(s, (uint8_t *)strdup("body"), 4), 0);
	usleep(100000);
	begin = now_ns();
	push_sender_close(s);
	assert_true(now_ns() - begin < opts.http.timeout_ns / 3);
	push_sender_close(NULL);
}

int main(void)
{
	log_set_level(LOG_ERROR);
	return unit_main(__FILE__, NULL, NULL);
}
