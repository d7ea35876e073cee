/* SPDX-License-Identifier: MIT */
/*
 * loop.c - see loop.h. epoll returns the number of a watch, and a number is never used again. So a watch that a
 * function removes while it is ready in the same turn is not called any more.
 */
#include "base/loop.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/vec.h"

#define READY_CAP 8

struct watch {
	uint64_t number;
	int fd;
	bool is_once;
	loop_fd_fn fn;
	void *ctx;
};

struct timer {
	int fd;
	loop_fn fn;
	void *ctx;
};

struct loop {
	int epoll_fd, signal_fd;
	uint64_t next_number;
	VEC(struct watch) watches;
	VEC(struct timer) timers;
	loop_signal_fn on_signal;
	void *signal_ctx;
	sigset_t old_mask;
	bool mask_is_set;
};

int loop_new(struct loop **ret)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->signal_fd = -1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		int err = -errno;

		free(l);
		return err;
	}
	*ret = l;
	return 0;
}

void loop_free(struct loop *l)
{
	struct timer *t;

	if (!l)
		return;
	close(l->epoll_fd);
	if (l->signal_fd >= 0)
		close(l->signal_fd);
	vec_each(&l->timers, t)
		close(t->fd);
	if (l->mask_is_set)
		sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
	vec_release(&l->watches);
	vec_release(&l->timers);
	free(l);
}

static int add(struct loop *l, int fd, uint32_t events, bool is_once, loop_fd_fn fn, void *ctx)
{
	const struct watch w = { l->next_number, fd, is_once, fn, ctx };
	struct epoll_event ev = { .events = events, .data.u64 = w.number };
	int err = vec_push(&l->watches, w);

	if (err)
		return err;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
		l->watches.cnt--;
		return -errno;
	}
	l->next_number++;
	return 0;
}

int loop_watch(struct loop *l, int fd, loop_fd_fn fn, void *ctx)
{
	return add(l, fd, EPOLLIN, false, fn, ctx);
}

int loop_watch_once(struct loop *l, int fd, loop_fd_fn fn, void *ctx)
{
	return add(l, fd, EPOLLIN, true, fn, ctx);
}

/* No events are requested: the kernel always reports that the other end is closed. */
int loop_watch_end(struct loop *l, int fd, loop_fd_fn fn, void *ctx)
{
	return add(l, fd, 0, false, fn, ctx);
}

static void remove_watch(struct loop *l, size_t i)
{
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, l->watches.data[i].fd, NULL);
	l->watches.data[i] = l->watches.data[--l->watches.cnt];
}

void loop_unwatch(struct loop *l, int fd)
{
	for (size_t i = 0; i < l->watches.cnt; i++)
		if (l->watches.data[i].fd == fd) {
			remove_watch(l, i);
			return;
		}
}

static void read_signal(void *ctx, int fd)
{
	struct signalfd_siginfo info;
	struct loop *l = ctx;

	if (read(fd, &info, sizeof(info)) == sizeof(info))
		l->on_signal(l->signal_ctx, (int)info.ssi_signo);
}

int loop_watch_signals(struct loop *l, const int *signals, loop_signal_fn fn, void *ctx)
{
	sigset_t set;

	sigemptyset(&set);
	while (*signals)
		sigaddset(&set, *signals++);
	if (sigprocmask(SIG_BLOCK, &set, &l->old_mask))
		return -errno;
	l->mask_is_set = true;
	signal(SIGPIPE, SIG_IGN);
	l->on_signal = fn;
	l->signal_ctx = ctx;
	l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return l->signal_fd < 0 ? -errno : loop_watch(l, l->signal_fd, read_signal, l);
}

static void read_timer(void *ctx, int fd)
{
	const struct loop *l = ctx;
	const struct timer *t;
	uint64_t expirations;

	if (read(fd, &expirations, sizeof(expirations)) < 0)
		return;
	vec_each(&l->timers, t)
		if (t->fd == fd) {
			t->fn(t->ctx);
			return;
		}
}

int loop_every(struct loop *l, uint64_t interval_ns, loop_fn fn, void *ctx)
{
	const struct timespec interval = { (time_t)(interval_ns / NS_PER_S),
					   (long)(interval_ns % NS_PER_S) };
	const struct itimerspec every = { interval, interval };
	struct timer t = { timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), fn, ctx };
	int err;

	if (t.fd < 0)
		return -errno;
	err = vec_push(&l->timers, t);
	if (err) {
		close(t.fd);
		return err;
	}
	if (timerfd_settime(t.fd, 0, &every, NULL))
		return -errno;
	return loop_watch(l, t.fd, read_timer, l);
}

static void call(struct loop *l, uint64_t number)
{
	for (size_t i = 0; i < l->watches.cnt; i++) {
		const struct watch w = l->watches.data[i];

		if (w.number != number)
			continue;
		if (w.is_once)
			remove_watch(l, i);
		w.fn(w.ctx, w.fd);
		return;
	}
}

bool loop_is_told_to_end(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGTERM) || sigismember(&set, SIGINT));
}

int loop_turn(struct loop *l, int ms)
{
	struct epoll_event ready[READY_CAP];
	int n = epoll_wait(l->epoll_fd, ready, READY_CAP, ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++)
		call(l, ready[i].data.u64);
	return 0;
}
