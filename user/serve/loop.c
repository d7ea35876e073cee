/* SPDX-License-Identifier: MIT */
/* loop.c - see daemon_priv.h. */
#include "serve/daemon_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "budget/governor.h"
#include "saved/saver.h"
#include "serve/profiles.h"
#include "serve/pushes.h"
#include "serve/ticks.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "http/http.h"
#include "symbol/slow_files.h"
#include "track/tracker.h"

#define TICK_NS (200 * NS_PER_MS)

/* For the last profiles to arrive. */
#define LAST_PUSH_NS (5 * NS_PER_S)
/* For the names in them: one slow process must not cost the others their last profiles, nor hold up the
 * end. What is unknown by then is left as addresses. */
#define LAST_NAMES_NS (NS_PER_S / 2)
/* For them to be made, once no names are looked up any more. */
#define LAST_MADE_NS (NS_PER_S * 3 / 2)

enum source {
	SOURCE_SIGNAL,
	SOURCE_TICK,
	SOURCE_RING,
	SOURCE_MMAP,
	SOURCE_HTTP,
	SOURCE_CHILD,
	SOURCE_KEEPER,
	SOURCE_PUSH,
	SOURCE_GUARDIAN
};

struct loop {
	struct loop_parts parts;
	int epoll_fd, signal_fd, tick_fd;
	sigset_t old_mask;
	bool mask_is_set;
	bool can_reload;
	bool is_over, is_hurried; /* told to end, and once more */
	bool wants_reload;
	bool has_lost_guardian;
	uint64_t made_end_ns; /* the last profiles are made by then, or never */
};

static int take_signals(struct loop *l)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	if (sigprocmask(SIG_BLOCK, &set, &l->old_mask))
		return -errno;
	l->mask_is_set = true;
	signal(SIGPIPE, SIG_IGN);
	l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return l->signal_fd < 0 ? -errno : 0;
}

int loop_open(bool can_reload, struct loop **ret)
{
	struct loop *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->can_reload = can_reload;
	l->epoll_fd = l->signal_fd = l->tick_fd = -1;
	err = take_signals(l);
	if (err) {
		loop_close(l);
		return err;
	}
	*ret = l;
	return 0;
}

static uint64_t event_data(enum source source, int fd)
{
	return (uint64_t)source << 32 | (uint32_t)fd;
}

static int watch(struct loop *l, int fd, enum source source)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = event_data(source, fd) };

	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/*
 * Another child may still have a copy of fd, and so keep it in the set after it is closed here: the end is
 * told once. op: EPOLL_CTL_ADD; EPOLL_CTL_MOD: when it was told and there is nothing to reap (somebody
 * traces the child), once more.
 */
static int watch_child(struct loop *l, int op, int fd, enum source source)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT,
				  .data.u64 = event_data(source, fd) };

	return epoll_ctl(l->epoll_fd, op, fd, &ev) ? -errno : 0;
}

int loop_watch_pushes(struct loop *l)
{
	int err = 0;

	for (size_t i = 0; i < pushes_fd_cnt(l->parts.pushes) && !err; i++)
		err = watch(l, pushes_fd(l->parts.pushes, i), SOURCE_PUSH);
	return err;
}

void loop_unwatch_pushes(struct loop *l)
{
	for (size_t i = 0; i < pushes_fd_cnt(l->parts.pushes); i++)
		epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, pushes_fd(l->parts.pushes, i), NULL);
}

int loop_start(struct loop *l, const struct loop_parts *parts)
{
	struct itimerspec tick = { .it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS };
	int err;

	l->parts = *parts;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->epoll_fd < 0 || l->tick_fd < 0 || timerfd_settime(l->tick_fd, 0, &tick, NULL))
		return -errno;
	err = watch(l, l->signal_fd, SOURCE_SIGNAL);
	if (!err)
		err = watch(l, l->tick_fd, SOURCE_TICK);
	if (!err)
		err = watch(l, engine_events_fd(l->parts.engine), SOURCE_RING);
	if (!err)
		err = watch(l, guardian_fd(l->parts.guardian), SOURCE_GUARDIAN);
	if (!err && ticks_fd(l->parts.rounds) >= 0)
		err = watch(l, ticks_fd(l->parts.rounds), SOURCE_MMAP);
	if (!err)
		err = loop_watch_pushes(l);
	return err ? err : watch(l, http_fd(l->parts.http), SOURCE_HTTP);
}

static void on_tick(struct loop *l)
{
	uint64_t expirations;

	if (read(l->tick_fd, &expirations, sizeof(expirations)) >= 0)
		ticks_tick(l->parts.rounds);
}

static void on_signal(struct loop *l, uint32_t signal)
{
	bool pauses = signal == SIGUSR1;
	int err;

	if (signal == SIGHUP && l->can_reload) {
		l->wants_reload = true;
		return;
	}
	if (signal != SIGUSR1 && signal != SIGUSR2) {
		l->is_over = l->is_hurried = true;
		return;
	}
	err = governor_pause(l->parts.governor, pauses);
	if (err)
		log_warn("serve: some probes could not be changed: %s", strerror(-err));
	log_warn(pauses ? "serve: all probes are taken out (SIGUSR1), until SIGUSR2" :
			  "serve: probes are put in again (SIGUSR2)");
}

static void on_guardian_news(struct loop *l)
{
	if (!guardian_work(l->parts.guardian))
		return;
	log_error("serve: process %d (heaptap-guard), which holds the probes, was killed",
		  guardian_pid(l->parts.guardian));
	l->has_lost_guardian = l->is_over = true;
}

static void dispatch(struct loop *l, enum source source, int fd)
{
	struct signalfd_siginfo info;

	switch (source) {
	case SOURCE_SIGNAL:
		if (read(l->signal_fd, &info, sizeof(info)) == sizeof(info))
			on_signal(l, info.ssi_signo);
		break;
	case SOURCE_TICK:
		on_tick(l);
		break;
	case SOURCE_RING:
		engine_events_drain(l->parts.engine);
		break;
	case SOURCE_MMAP:
		ticks_drain(l->parts.rounds);
		break;
	case SOURCE_GUARDIAN:
		on_guardian_news(l);
		break;
	case SOURCE_HTTP:
		break; /* runs in each turn */
	case SOURCE_PUSH:
		pushes_run(l->parts.pushes);
		break;
	case SOURCE_CHILD:
		if (!profiles_reap(l->parts.profiles, fd))
			watch_child(l, EPOLL_CTL_MOD, fd, source);
		break;
	case SOURCE_KEEPER:
		if (!saver_reap(l->parts.saver))
			watch_child(l, EPOLL_CTL_MOD, fd, source);
		break;
	}
}

static int least(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int wait_ms(const struct loop *l)
{
	int ms = tracker_wait_ms(l->parts.tracker);

	if (l->is_over)
		ms = least(ms, 100);
	ms = least(ms, governor_wait_ms(l->parts.governor));
	ms = least(ms, http_wait_ms(l->parts.http));
	return least(ms, profiles_wait_ms(l->parts.profiles));
}

static int loop_once(struct loop *l)
{
	struct epoll_event ready[8];
	int n = epoll_wait(l->epoll_fd, ready, 8, wait_ms(l)), child_fd, err;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++)
		dispatch(l, (enum source)(ready[i].data.u64 >> 32),
			 (int)(uint32_t)ready[i].data.u64);
	err = tracker_work(l->parts.tracker);
	if (err) { /* of one process; the others go on */
		log_warn("serve: cannot follow a change of a process: %s", strerror(-err));
		if (err == -ENOMEM)
			return err;
	}
	err = governor_work(l->parts.governor);
	if (!err)
		err = http_run(l->parts.http);
	if (!err)
		err = profiles_work(l->parts.profiles, &child_fd);
	if (!err && child_fd >= 0)
		err = watch_child(l, EPOLL_CTL_ADD, child_fd, SOURCE_CHILD);
	if (!err)
		err = saver_work(l->parts.saver, &child_fd);
	if (!err && child_fd >= 0)
		err = watch_child(l, EPOLL_CTL_ADD, child_fd, SOURCE_KEEPER);
	return err;
}

/* Of processes that have just ended. */
static int saved_last(struct loop *l)
{
	int err = 0;

	l->is_hurried = false;
	while (!err && !l->is_hurried && now_ns() < l->made_end_ns && saver_is_busy(l->parts.saver))
		err = loop_once(l);
	return err;
}

/* What is held at the end, to those that answer; for the others it waits in the spool. */
static int push_last(struct loop *l)
{
	uint64_t end_ns = now_ns() + LAST_PUSH_NS;
	int err = 0;

	l->is_hurried = false;
	pushes_hurry(l->parts.pushes);
	while (!err && !l->is_hurried && now_ns() < end_ns &&
	       ((now_ns() < l->made_end_ns &&
		 (pushes_is_due(l->parts.pushes) || profiles_makes_pushes(l->parts.profiles))) ||
		pushes_are_waiting(l->parts.pushes)))
		err = loop_once(l);
	return err;
}

int loop_run(struct loop *l, bool *ret_wants_reload)
{
	int err = 0;

	l->wants_reload = false;
	while (!l->is_over && !l->wants_reload && !err)
		err = loop_once(l);
	*ret_wants_reload = !l->is_over && !err;
	if (*ret_wants_reload)
		return 0;
	l->made_end_ns = now_ns() + LAST_MADE_NS;
	slow_files_end_at(l->parts.slow, now_ns() + LAST_NAMES_NS);
	if (!err)
		err = saved_last(l);
	if (!err && pushes_cnt(l->parts.pushes))
		err = push_last(l);
	if (err)
		log_error("serve: %s: ending", strerror(-err));
	else if (l->has_lost_guardian)
		err = -EPIPE;
	else
		log_info("serve: ended by a signal");
	return err;
}

void loop_close(struct loop *l)
{
	if (!l)
		return;
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
	if (l->signal_fd >= 0)
		close(l->signal_fd);
	if (l->tick_fd >= 0)
		close(l->tick_fd);
	if (l->mask_is_set)
		sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
	free(l);
}
