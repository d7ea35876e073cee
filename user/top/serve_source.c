/* SPDX-License-Identifier: MIT */
/*
 * serve_source.c - see sources.h.
 *
 * Processes come from /metrics, a single one from /pid/N/debug/pprof/heap; only what is shown is requested. A slow
 * server is asked so seldom that it works for us at most half of the time. The first answer comes before the screen
 * is drawn on, so that failures to reach the server are reported in plain words.
 */
#include "top/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "http/token.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "top/fetch.h"
#include "top/signals.h"
#include "top/ui.h"

#define TICK_MS 500 /* a new size of the terminal is noticed within this time */

struct source {
	const struct top_serve_options *opts;
	struct top_fetch *fetch;
	struct top_ui *ui; /* NULL: not yet */
	int signal_fd;
	pid_t pid; /* of the request in progress; 0: all */
	uint64_t begun_ns, due_ns;
};

static int begin(struct source *s, pid_t pid)
{
	char path[64] = "/metrics";

	if (pid)
		snprintf(path, sizeof(path), "/pid/%d/debug/pprof/heap", pid);
	s->pid = pid;
	s->begun_ns = now_ns();
	return top_fetch_begin(s->fetch, path);
}

/* Explain why an answer is an error, in the server's words if it has any. */
static int explain(const struct top_answer *a, bool has_token, struct err *why)
{
	if (!a->status)
		return err_set(why, -EBADMSG, "%s", a->why.text);
	if (a->status == 401)
		return err_set(why, -EBADMSG, "the server wants %s",
			       has_token ? "another token than that of --token-file" :
					   "its token: --token-file FILE");
	return err_set(why, -EBADMSG, "the server answers %d: %.*s", a->status,
		       (int)strcspn(a->data, "\r\n"), a->data);
}

/* -EBADMSG: the answer is not metrics; why says so. */
static int take_metrics(struct source *s, const struct top_answer *a, struct err *why)
{
	struct top_table *t = NULL;
	int err = top_table_of_metrics(a->data, &t);

	if (err == -EBADMSG)
		err_set(why, err, "this is no heaptap serve: its /metrics has nothing of one");
	if (err || !s->ui) {
		top_table_free(t);
		return err;
	}
	return top_ui_set_processes(s->ui, t);
}

static int take_profile(struct source *s, const struct top_answer *a, struct err *why)
{
	struct err bad = { 0 };
	struct profile *p = NULL;
	int err = pprof_read_mem(a->data, a->bytes, &p, &bad);

	if (err == -EBADMSG)
		err_set(why, err, "the server's profile cannot be read: %s", bad.text);
	if (err || !s->ui) {
		profile_free(p);
		return err;
	}
	top_ui_set_over(s->ui, false);
	err = top_ui_set_profile(s->ui, p);
	return err == -EINVAL ? err_set(why, -EBADMSG, "the server's profile has no values") : err;
}

static int take(struct source *s, const struct top_answer *a)
{
	uint64_t now = now_ns(), rest_ns = now - s->begun_ns;
	struct err why = { 0 };
	int err = 0;

	s->due_ns = now + (rest_ns > s->opts->interval_ns ? rest_ns : s->opts->interval_ns);
	if (s->ui && (s->pid != top_ui_view(s->ui)->pid || top_ui_is_frozen(s->ui)))
		return 0; /* not shown any more, or it would replace what must stay */
	if (a->status != 200)
		err = explain(a, s->opts->token_file, &why);
	else if (s->pid)
		err = take_profile(s, a, &why);
	else
		err = take_metrics(s, a, &why);
	if (err != -EBADMSG) {
		if (s->ui && !err)
			top_ui_say(s->ui, "%s", "");
		return err;
	}
	if (!s->ui) {
		log_error("top: %s", why.text);
		return err;
	}
	if (s->pid && a->status == 404) {
		top_ui_set_over(s->ui, true);
		err_set(&why, err,
			"process %d has ended, or is not followed any more: Esc goes back", s->pid);
	}
	top_ui_say(s->ui, "%s", why.text);
	return 0;
}

static int step(struct source *s)
{
	const int fds[2] = { STDIN_FILENO, s->signal_fd };
	struct top_answer a;
	int err = 0;

	if (top_fetch_wait(s->fetch, fds, TICK_MS, &a))
		err = take(s, &a);
	if (!err && !top_fetch_is_busy(s->fetch) && now_ns() >= s->due_ns &&
	    !top_ui_is_frozen(s->ui))
		err = begin(s, top_ui_view(s->ui)->pid);
	return err ? err : top_ui_draw(s->ui);
}

static bool was_signalled(const struct source *s)
{
	char info[128];

	return read(s->signal_fd, info, sizeof(info)) > 0;
}

static int loop(struct source *s)
{
	enum top_wish wish;
	int err = 0;

	while (!err && !was_signalled(s)) {
		wish = top_ui_keys(s->ui);
		if (wish == TOP_QUIT)
			return 0;
		if (wish == TOP_LOAD) {
			top_fetch_cancel(s->fetch);
			s->due_ns = 0;
		}
		err = step(s);
	}
	return err;
}

/* Before the screen is opened, so that errors are plain messages. */
static int reach(struct source *s)
{
	const int fds[2] = { s->signal_fd, s->signal_fd };
	struct top_answer a;
	int err = begin(s, s->opts->ui.pid);

	while (!err) {
		if (top_fetch_wait(s->fetch, fds, TICK_MS, &a))
			return take(s, &a);
		if (was_signalled(s))
			err = -EINTR;
	}
	return err;
}

static int open_source(struct source *s)
{
	const struct top_serve_options *o = s->opts;
	char token[TOKEN_BYTES_CAP + 2] = "";
	struct err why;
	int err = 0;

	s->signal_fd = top_signals_open();
	if (s->signal_fd < 0)
		return s->signal_fd;
	if (o->token_file)
		err = token_read(o->token_file, token, &why);
	if (err) {
		log_error("top: %s", why.text);
	} else {
		err = top_fetch_open(o->url, o->token_file ? token : NULL, &s->fetch);
		if (err)
			log_error("top: cannot ask a server: %s", strerror(-err));
	}
	explicit_bzero(token, sizeof(token));
	return err;
}

int top_serve(const struct top_serve_options *opts)
{
	struct source s = { .opts = opts, .signal_fd = -1 };
	int err = open_source(&s);

	if (!err)
		err = reach(&s);
	if (!err) {
		err = top_ui_open(&opts->ui, &s.ui);
		if (err)
			log_error("top: cannot draw on this terminal: %s", strerror(-err));
	}
	if (!err) {
		s.due_ns = 0;
		err = loop(&s);
		if (err)
			log_error("top: cannot show what the server says: %s", strerror(-err));
	}
	top_ui_close(s.ui);
	top_fetch_close(s.fetch);
	if (s.signal_fd >= 0)
		close(s.signal_fd);
	return err;
}
