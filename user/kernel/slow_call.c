/* SPDX-License-Identifier: MIT */
/* slow_call.c - see slow_call.h. Two descriptors carry the news, since a lock could be held when a child is forked. */
#include "kernel/slow_call.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/thread.h"

#define LOOK_MS 100
/* Who is told to end does not wait any longer. */
#define LAST_WAIT_NS (300 * NS_PER_MS)

struct slow_caller {
	int begin_fd, done_fd; /* eventfds; -1: none */
	pthread_t thread;
	bool has_thread;
	bool is_under_way; /* the thread has the members below */
	void (*on_wait)(void *ctx);
	void *on_wait_ctx;
	uint64_t on_wait_ns; /* when it was called last */
	slow_call_fn fn; /* NULL: the thread is to end */
	_Alignas(8) char args[SLOW_CALL_ARGS_BYTES];
	int err; /* of the last call */
};

int slow_caller_new(struct slow_caller **ret)
{
	struct slow_caller *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->begin_fd = s->done_fd = -1;
	*ret = s;
	return 0;
}

static void tell(int fd)
{
	const uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void take(int fd)
{
	uint64_t cnt;

	while (read(fd, &cnt, sizeof(cnt)) < 0 && errno == EINTR)
		;
}

static void *run(void *arg)
{
	struct slow_caller *s = arg;

	for (;;) {
		take(s->begin_fd);
		if (!s->fn)
			return NULL;
		s->err = s->fn(s->args);
		tell(s->done_fd);
	}
}

static void close_fds(struct slow_caller *s)
{
	if (s->begin_fd >= 0)
		close(s->begin_fd);
	if (s->done_fd >= 0)
		close(s->done_fd);
	s->begin_fd = s->done_fd = -1;
}

/* Is there a thread for the calls? */
static bool start(struct slow_caller *s)
{
	if (s->has_thread)
		return true;
	s->begin_fd = eventfd(0, EFD_CLOEXEC);
	s->done_fd = eventfd(0, EFD_CLOEXEC);
	s->has_thread = s->begin_fd >= 0 && s->done_fd >= 0 && !thread_start(&s->thread, run, s);
	if (!s->has_thread)
		close_fds(s);
	return s->has_thread;
}

/* Is the call over after that time? */
static bool is_over(struct slow_caller *s, int timeout_ms)
{
	struct pollfd p = { .fd = s->done_fd, .events = POLLIN };

	if (s->is_under_way && poll(&p, 1, timeout_ms) > 0) {
		take(s->done_fd);
		s->is_under_way = false;
	}
	return !s->is_under_way;
}

void slow_caller_free(struct slow_caller *s)
{
	if (!s)
		return;
	if (s->has_thread && !is_over(s, 0)) /* the thread needs all of it */
		return;
	if (s->has_thread) {
		s->fn = NULL;
		tell(s->begin_fd);
		pthread_join(s->thread, NULL);
	}
	close_fds(s);
	free(s);
}

void slow_caller_while_waiting(struct slow_caller *s, void (*fn)(void *ctx), void *ctx)
{
	s->on_wait = fn;
	s->on_wait_ctx = ctx;
}

/* Many short calls in a row count like a long one. */
static void tell_waiting(struct slow_caller *s)
{
	const uint64_t now = now_ns();

	if (!s->on_wait || now < s->on_wait_ns + LOOK_MS * NS_PER_MS)
		return;
	s->on_wait_ns = now;
	s->on_wait(s->on_wait_ctx);
}

int slow_call(struct slow_caller *s, slow_call_fn fn, const void *args, size_t args_bytes)
{
	const uint64_t begin_ns = now_ns();

	if (args_bytes > sizeof(s->args))
		return -E2BIG;
	if (!is_over(s, 0))
		return -ECANCELED;
	s->fn = fn;
	memcpy(s->args, args, args_bytes);
	if (!start(s))
		return fn(s->args);
	s->is_under_way = true;
	tell(s->begin_fd);
	tell_waiting(s);
	while (!is_over(s, LOOK_MS)) {
		if (now_ns() > begin_ns + LAST_WAIT_NS && loop_is_told_to_end())
			return -ECANCELED;
		tell_waiting(s);
	}
	return s->err;
}
