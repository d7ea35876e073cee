/* SPDX-License-Identifier: MIT */
/* daemon_loop.c - see daemon_priv.h. */
#include "serve/daemon_priv.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "budget/governor.h"
#include "saved/saver.h"
#include "serve/pushes.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "http/http.h"
#include "symbol/slow_files.h"
#include "track/tracker.h"

#define TICK_NS (200 * NS_PER_MS)

/* Time for the last profiles to arrive. */
#define LAST_PUSH_NS (5 * NS_PER_S)
/* Time for their names: a slow process must not cost the others their last profiles, nor delay the end. Names
 * unknown by then stay addresses. */
#define LAST_NAMES_NS (NS_PER_S / 2)
/* Time to make them, once no names are looked up any more. */
#define LAST_MADE_NS (NS_PER_S * 3 / 2)

struct daemon_loop {
	struct daemon_loop_parts parts;
	struct loop *loop;
	bool can_reload;
	bool is_over, is_hurried; /* told to end; told again */
	bool wants_reload;
	bool has_lost_guardian;
	uint64_t made_end_ns; /* then the last profiles are made, or never will be */
};

static void on_tick(void *ctx)
{
	const struct daemon_loop *l = ctx;

	ticks_tick(l->parts.ticks);
}

static void on_signal(void *ctx, int signal)
{
	struct daemon_loop *l = ctx;
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

static void on_guardian_news(void *ctx, int fd)
{
	struct daemon_loop *l = ctx;

	(void)fd;
	if (!guardian_work(l->parts.guardian)) {
		if (guardian_take_dropped(l->parts.guardian))
			governor_resume_after_stop(l->parts.governor, "serve");
		return;
	}
	log_error("serve: %s (heaptap-guard, PID %d)", guardian_lost_why(l->parts.guardian),
		  guardian_pid(l->parts.guardian));
	l->has_lost_guardian = l->is_over = true;
}

static void on_ring(void *ctx, int fd)
{
	const struct daemon_loop *l = ctx;

	(void)fd;
	engine_events_drain(l->parts.engine);
}

static void on_mapping_events(void *ctx, int fd)
{
	const struct daemon_loop *l = ctx;

	(void)fd;
	ticks_drain(l->parts.ticks);
}

/* Nothing to do: http_run() is called in each turn. */
static void on_http(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
}

static void on_push(void *ctx, int fd)
{
	const struct daemon_loop *l = ctx;

	(void)fd;
	pushes_run(l->parts.pushes);
}

/* If there is nothing to reap (somebody traces the child), watch once more. */
static void on_profile_child(void *ctx, int fd)
{
	const struct daemon_loop *l = ctx;

	if (!profiles_reap(l->parts.profiles, fd))
		loop_watch_once(l->loop, fd, on_profile_child, ctx);
}

static void on_saver_child(void *ctx, int fd)
{
	const struct daemon_loop *l = ctx;

	if (!saver_reap(l->parts.saver))
		loop_watch_once(l->loop, fd, on_saver_child, ctx);
}

int daemon_loop_open(bool can_reload, struct daemon_loop **ret)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, 0 };
	struct daemon_loop *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->can_reload = can_reload;
	err = loop_new(&l->loop);
	if (!err)
		err = loop_watch_signals(l->loop, signals, on_signal, l);
	if (err) {
		daemon_loop_close(l);
		return err;
	}
	/* One that comes when the loop is closed already shall not end what is left to do. */
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	*ret = l;
	return 0;
}

int daemon_loop_watch_pushes(struct daemon_loop *l)
{
	int err = 0;

	for (size_t i = 0; i < pushes_fd_cnt(l->parts.pushes) && !err; i++)
		err = loop_watch(l->loop, pushes_fd(l->parts.pushes, i), on_push, l);
	return err;
}

void daemon_loop_unwatch_pushes(struct daemon_loop *l)
{
	for (size_t i = 0; i < pushes_fd_cnt(l->parts.pushes); i++)
		loop_unwatch(l->loop, pushes_fd(l->parts.pushes, i));
}

int daemon_loop_start(struct daemon_loop *l, const struct daemon_loop_parts *parts)
{
	int err;

	l->parts = *parts;
	err = loop_every(l->loop, TICK_NS, on_tick, l);
	if (!err)
		err = loop_watch(l->loop, engine_events_fd(l->parts.engine), on_ring, l);
	if (!err)
		err = loop_watch(l->loop, guardian_fd(l->parts.guardian), on_guardian_news, l);
	if (!err && ticks_fd(l->parts.ticks) >= 0)
		err = loop_watch(l->loop, ticks_fd(l->parts.ticks), on_mapping_events, l);
	if (!err)
		err = daemon_loop_watch_pushes(l);
	return err ? err : loop_watch(l->loop, http_fd(l->parts.http), on_http, l);
}

static int least(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int wait_ms(const struct daemon_loop *l)
{
	int ms = tracker_wait_ms(l->parts.tracker);

	if (l->is_over)
		ms = least(ms, 100);
	ms = least(ms, governor_wait_ms(l->parts.governor));
	ms = least(ms, http_wait_ms(l->parts.http));
	return least(ms, profiles_wait_ms(l->parts.profiles));
}

static int loop_once(struct daemon_loop *l)
{
	int child_fd, err = loop_turn(l->loop, wait_ms(l));

	if (err)
		return err;
	err = tracker_work(l->parts.tracker);
	if (err) { /* one process's; the others go on */
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
		err = loop_watch_once(l->loop, child_fd, on_profile_child, l);
	if (!err)
		err = saver_work(l->parts.saver, &child_fd);
	if (!err && child_fd >= 0)
		err = loop_watch_once(l->loop, child_fd, on_saver_child, l);
	return err;
}

/* Finish the profiles of processes that have just ended. */
static int saved_last(struct daemon_loop *l)
{
	int err = 0;

	l->is_hurried = false;
	saver_hurry(l->parts.saver);
	while (!err && !l->is_hurried && now_ns() < l->made_end_ns && saver_is_busy(l->parts.saver))
		err = loop_once(l);
	return err;
}

/* Push what is held at the end to destinations that answer; for others it waits in the spool. */
static int push_last(struct daemon_loop *l)
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

int daemon_loop_run(struct daemon_loop *l, bool *ret_wants_reload)
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

void daemon_loop_close(struct daemon_loop *l)
{
	if (!l)
		return;
	loop_free(l->loop);
	free(l);
}
