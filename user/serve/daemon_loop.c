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
#include "track/governor.h"
#include "saved/saver.h"
#include "track/session.h"
#include "serve/pushes.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "http/http.h"
#include "symbol/name_cache.h"
#include "track/tracker.h"

#define TICK_NS (200 * NS_PER_MS)

/* Time for the last profiles to arrive. */
#define LAST_PUSH_NS (5 * NS_PER_S)
/* Time for their names: a slow process must not cost the others their last profiles, nor delay the end. Names
 * unknown by then stay addresses. */
#define LAST_NAMES_NS (NS_PER_S / 2)
/* Time to make them, once no names are looked up any more. */
#define LAST_MADE_NS NS_PER_S

static void on_tick(void *ctx)
{
	const struct daemon *d = ctx;

	ticks_tick(d->ticks);
}

static void on_signal(void *ctx, int signal)
{
	struct daemon *d = ctx;
	bool pauses = signal == SIGUSR1;
	int err;

	if (signal == SIGHUP && d->opts.can_reload) {
		d->end.wants_reload = true;
		return;
	}
	if (signal != SIGUSR1 && signal != SIGUSR2) {
		d->end.is_over = d->end.is_hurried = true;
		return;
	}
	err = governor_pause(d->session->governor, pauses);
	if (err)
		log_warn("serve: cannot change some probes: %s", strerror(-err));
	log_warn(pauses ? "serve: all probes are removed (SIGUSR1), until SIGUSR2" :
			  "serve: probes are attached again (SIGUSR2)");
}

static void on_guardian_news(void *ctx, int fd)
{
	struct daemon *d = ctx;

	(void)fd;
	if (!guardian_work(d->guardian))
		return;
	log_error("serve: %s (heaptap-guard, PID %d)", guardian_lost_why(d->guardian),
		  guardian_pid(d->guardian));
	d->end.has_lost_guardian = d->end.is_over = true;
}

static void on_ring(void *ctx, int fd)
{
	const struct daemon *d = ctx;

	(void)fd;
	engine_events_drain(d->session->engine);
}

static void on_mapping_events(void *ctx, int fd)
{
	const struct daemon *d = ctx;

	(void)fd;
	ticks_drain(d->ticks);
}

/* Nothing to do: http_run() is called in each turn. */
static void on_http(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
}

int daemon_loop_open(struct daemon *d)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, 0 };
	int err = loop_new(&d->loop);

	if (!err)
		err = loop_watch_signals(d->loop, signals, on_signal, d);
	if (err)
		return err;
	/* One that comes when the loop is closed already shall not end what is left to do. */
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	return 0;
}

int daemon_loop_start(struct daemon *d)
{
	int err = loop_every(d->loop, TICK_NS, on_tick, d);

	if (!err)
		err = loop_watch(d->loop, engine_events_fd(d->session->engine), on_ring, d);
	if (!err)
		err = loop_watch(d->loop, guardian_fd(d->guardian), on_guardian_news, d);
	if (!err && ticks_fd(d->ticks) >= 0)
		err = loop_watch(d->loop, ticks_fd(d->ticks), on_mapping_events, d);
	return err ? err : loop_watch(d->loop, http_fd(d->http), on_http, d);
}

static int least(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int wait_ms(const struct daemon *d)
{
	int ms = tracker_wait_ms(d->session->tracker);

	if (d->end.is_over)
		ms = least(ms, 100);
	ms = least(ms, governor_wait_ms(d->session->governor));
	ms = least(ms, http_wait_ms(d->http));
	return least(ms, profiles_wait_ms(d->profiles));
}

static int follow_changes(struct daemon *d)
{
	int err = tracker_work(d->session->tracker);

	/* Whoever asked the guardian for something may have received that news, too. */
	if (guardian_take_dropped(d->guardian))
		governor_resume_after_stop(d->session->governor, "serve");
	if (err) { /* one process's; the others go on */
		log_warn("serve: cannot follow a change of a process: %s", strerror(-err));
		if (err == -ENOMEM)
			return err;
	}
	return governor_work(d->session->governor);
}

/* At the end the last profiles are made, and nothing new is begun: the kernel may take seconds for a probe. */
static int loop_once(struct daemon *d)
{
	int err = loop_turn(d->loop, wait_ms(d));

	if (!err && !d->end.is_over)
		err = follow_changes(d);
	if (!err)
		err = http_run(d->http);
	if (!err)
		err = profiles_work(d->profiles);
	return err ? err : saver_work(d->saver);
}

/* Finish the profiles of processes that have just ended. */
static int saved_last(struct daemon *d)
{
	int err = 0;

	d->end.is_hurried = false;
	saver_hurry(d->saver);
	while (!err && !d->end.is_hurried && now_ns() < d->end.made_ns && saver_is_busy(d->saver))
		err = loop_once(d);
	return err;
}

/* Push what is held at the end to destinations that answer; for others it waits in the spool. */
static int push_last(struct daemon *d)
{
	uint64_t end_ns = now_ns() + LAST_PUSH_NS;
	int err = 0;

	d->end.is_hurried = false;
	pushes_hurry(d->pushes);
	while (!err && !d->end.is_hurried && now_ns() < end_ns &&
	       ((now_ns() < d->end.made_ns &&
		 (pushes_is_due(d->pushes) || profiles_makes_pushes(d->profiles))) ||
		pushes_are_waiting(d->pushes)))
		err = loop_once(d);
	return err;
}

int daemon_loop_run(struct daemon *d, bool *ret_wants_reload)
{
	int err = 0;

	d->end.wants_reload = false;
	while (!d->end.is_over && !d->end.wants_reload && !err)
		err = loop_once(d);
	*ret_wants_reload = !d->end.is_over && !err;
	if (*ret_wants_reload)
		return 0;
	guardian_begin_end(d->guardian); /* SIGTERM ends all within 2 s */
	d->end.made_ns = now_ns() + LAST_MADE_NS;
	slow_files_end_at(d->slow, now_ns() + LAST_NAMES_NS);
	if (!err)
		err = saved_last(d);
	if (!err && pushes_cnt(d->pushes))
		err = push_last(d);
	if (err)
		log_error("serve: %s: ending", strerror(-err));
	else if (d->end.has_lost_guardian)
		err = -EPIPE;
	else
		log_info("serve: ended by a signal");
	return err;
}
