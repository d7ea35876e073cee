/* SPDX-License-Identifier: MIT */
/*
 * record_source.c - see record_source.h.
 *
 * The recording's loop runs, and the screen is its guest. Every few seconds a forked child takes a snapshot, looks
 * up names and hands over a profile, as if the recording ended then: the loop never waits for names. A child takes
 * at most a tenth of the time of one CPU: the next one waits accordingly.
 */
#include "top/record_source.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/recorder.h"
#include "record/result.h"
#include "result/worker.h"
#include "snapshot/scope_labels.h"
#include "top/ui.h"
#include "track/tracker.h"

#define FIRST_NS (NS_PER_S / 2)
#define REST 10 /* times the CPU time of a child */
#define RESIZE_MS 500 /* a new size of the terminal is noticed within this time */
#define LIVE_CAP 1000000
#define STACK_CAP 65536

struct source {
	const struct top_record_options *opts;
	struct result_options result;
	struct recorder *recorder;
	struct top_ui *ui;
	struct worker worker;
	int signal_fd; /* top's own: the recorder has another while it runs */
	int fd; /* the profile being made; -1: none */
	uint64_t due_ns;
	bool wants_end; /* the user quits */
	int err;
};

/* Runs in the child. */
static int make_profile(void *ctx, size_t i)
{
	struct source *s = ctx;
	struct profile *p = NULL;
	int err = recorder_peek(s->recorder);

	(void)i;
	if (!err)
		err = result_profile(&s->result, s->recorder, &p);
	if (!err)
		err = pprof_write(p, s->fd);
	if (err)
		log_warn("top: cannot make a profile: %s", strerror(-err));
	return err;
}

static int begin_profile(struct source *s)
{
	const struct worker_options opts = { .command = "top",
					     .what = "the making of a profile",
					     .moment_ns = now_ns() };
	int err;

	s->fd = memfd_create("profile", MFD_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	err = worker_start(&s->worker, &opts, 1, make_profile, s);
	if (err) {
		close(s->fd);
		s->fd = -1;
	}
	return err;
}

/* Take what the child has written; nothing if it failed, which it has logged. */
static int take_profile(struct source *s)
{
	uint64_t rest_ns = REST * s->worker.cpu_ns;
	struct profile *p = NULL;
	int err = 0;

	if (lseek(s->fd, 0, SEEK_END) > 0 && !lseek(s->fd, 0, SEEK_SET) &&
	    !pprof_read(s->fd, &p, NULL) && !top_ui_is_frozen(s->ui))
		err = top_ui_set_profile(s->ui, p);
	else
		profile_free(p);
	close(s->fd);
	s->fd = -1;
	s->due_ns = now_ns() + (rest_ns > s->opts->interval_ns ? rest_ns : s->opts->interval_ns);
	return err;
}

static int work(struct source *s)
{
	int err = 0;

	worker_check(&s->worker);
	if (s->fd >= 0 && worker_reap(&s->worker))
		err = take_profile(s);
	if (!err && s->fd < 0 && now_ns() >= s->due_ns && !top_ui_is_frozen(s->ui))
		err = begin_profile(s);
	return err ? err : top_ui_draw(s->ui);
}

static void on_tick(void *ctx, struct recorder *r)
{
	struct source *s = ctx;

	if (top_ui_keys(s->ui) == TOP_QUIT) {
		s->wants_end = true;
		recorder_end(r, "stopped by the user");
		return;
	}
	s->err = work(s);
	if (s->err)
		recorder_end(r, "an error");
}

/* Run until a key, a signal, or the end of the terminal ends it. */
static int show_next(struct source *s)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = s->signal_fd, .events = POLLIN } };
	int err = 0;

	while (!err && top_ui_keys(s->ui) != TOP_QUIT) {
		err = top_ui_draw(s->ui);
		if (!err && poll(fds, 2, RESIZE_MS) > 0 && fds[1].revents)
			break;
	}
	return err;
}

/* The user may still look at the result after the process has ended. */
static int stay(struct source *s)
{
	struct profile *p = NULL;
	int err = result_profile(&s->result, s->recorder, &p);

	if (!err)
		err = top_ui_set_profile(s->ui, p);
	recorder_close(s->recorder);
	s->recorder = NULL;
	top_ui_set_over(s->ui, true);
	return err ? err : show_next(s);
}

static int run(struct source *s)
{
	int err = recorder_start(s->recorder);

	if (!err)
		err = recorder_run(s->recorder);
	if (!err)
		err = recorder_error(s->recorder);
	worker_release(&s->worker);
	if (s->fd >= 0)
		close(s->fd);
	if (!err && s->err) {
		log_error("top: cannot show what was recorded: %s", strerror(-s->err));
		err = s->err;
	}
	if (!err && !s->wants_end && !tracker_running_cnt(recorder_tracker(s->recorder)))
		err = stay(s);
	return err;
}

/*
 * SIGINT, SIGTERM and SIGHUP end heaptap top as `q` does: in their turn, with the terminal restored. Let them wait
 * from now on. Return a descriptor that is readable when one has come, or -errno.
 */
static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/*
 * Open before the recorder takes the signals: when it ends, it restores the mask that it found, while the terminal
 * is still drawn on. Another Ctrl-C must not end top then.
 */
static int open_screen(struct source *s)
{
	int err;

	s->signal_fd = open_signals();
	if (s->signal_fd < 0) {
		log_error("top: cannot wait for signals: %s", strerror(-s->signal_fd));
		return s->signal_fd;
	}
	err = top_ui_open(&s->opts->ui, &s->ui);
	if (err)
		log_error("top: cannot draw on this terminal: %s", strerror(-err));
	return err;
}

int top_record(const struct top_record_options *opts)
{
	struct source s = {
		.opts = opts,
		.signal_fd = -1,
		.fd = -1,
		.result = { .stdout_fd = -1,
			    .is_quiet = true,
			    .labels = LABEL_ALL,
			    .command_argv = opts->command_argv,
			    .command_argc = opts->command_argc },
	};
	const struct recorder_guest guest = { STDIN_FILENO, on_tick, &s };
	const struct recorder_options recorder = {
		.pids = &opts->ui.pid,
		.pid_cnt = 1,
		.named_cnt = 1,
		.rate_bytes = opts->rate_bytes,
		.live_cap = LIVE_CAP,
		.stack_cap = STACK_CAP,
		.rate_is_fixed = opts->rate_is_fixed,
		.tap = opts->tap,
		.is_quiet = true,
		.max_overhead = opts->max_overhead,
		.stdout_fd = -1,
		.guest = &guest,
		.reads_rows = true,
		.refreshes_rows = true,
	};
	int err = recorder_open(&recorder, &s.recorder);

	if (err)
		return err;
	err = open_screen(&s);
	s.due_ns = now_ns() + FIRST_NS;
	if (!err)
		err = top_ui_draw(s.ui);
	if (!err)
		err = run(&s);
	recorder_close(s.recorder);
	top_ui_close(s.ui);
	if (s.signal_fd >= 0)
		close(s.signal_fd);
	return err;
}
