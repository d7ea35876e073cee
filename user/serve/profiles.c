/* SPDX-License-Identifier: MIT */
/* profiles.c - see profiles.h. */
#include "serve/profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "serve/process_text.h"
#include "serve/profile_lane.h"
#include "serve/pushes.h"
#include "budget/governor.h"
#include "http/endpoints.h"
#include "http/http.h"
#include "http/process_page.h"
#include "snapshot/recording_notes.h"
#include "snapshot/snapshot.h"
#include "symbol/name_cache.h"
#include "symbol/slow_files.h"
#include "proc/process.h"
#include "track/tracker.h"

#define WAITERS_CAP 64
#define BASES_CAP 8 /* beginnings of deltas kept at once: each is a copy of all samples */
/* A request over an hour must not keep out one over ten seconds: requests longer than LONG_S may use only half of
 * each. */
#define LONG_S 60
#define BASE_SHARED_NS (100 * NS_PER_MS) /* deltas that begin within this share a beginning */
#define CMDLINE_BYTES_CAP (64 << 10)

/* The beginning of a delta. */
struct base {
	struct snapshot *snapshot;
	uint64_t taken_ns;
	size_t user_cnt;
	bool is_long; /* for a request of more than LONG_S */
};

struct waiter {
	struct http_exchange *x;
	struct endpoint_request request;
	struct endpoint_addrs addrs; /* addresses to be named */
	int saved_fd; /* saved profile to use; -1: none */
	char *page; /* with a place for the stacks; NULL: not a page */
	struct stack_moments moments;
	bool has_after; /* after_fd: the saved profile to compare with */
	int after_fd;
	struct base *base; /* NULL: no delta */
	uint64_t due_ns;
	uint32_t generation; /* of the requested process, at that time */
	enum lane_kind lane;
	int file; /* index in the lane's files while a child makes it; -1: not begun */
};

struct file {
	enum endpoint endpoint;
	struct profile_request request;
	struct endpoint_addrs addrs; /* the waiter's */
	struct stack_moments moments;
	int fd;
};

/* The files that a child makes, or has made. */
struct batch {
	struct profile_lane lane;
	struct file files[LANE_FILES_CAP];
	size_t file_cnt;
	int push_fd; /* of LANE_PUSH, instead of files: the child's requests; -1: none */
};

struct profiles {
	struct profile_source src;
	struct pushes *pushes;
	VEC(struct waiter) waiters;
	struct base *bases[BASES_CAP];
	struct batch batches[LANE_CNT]; /* by lane */
	struct slow_processes slow;
	uint64_t snapshot_ns; /* duration of the last one */
};

int profiles_new(const struct profile_source *src, struct profiles **ret)
{
	struct profiles *p = calloc(1, sizeof(*p));
	int err = 0;

	if (!p)
		return -ENOMEM;
	p->src = *src;
	for (int i = 0; i < LANE_CNT; i++)
		p->batches[i].push_fd = -1;
	for (int i = 0; i < LANE_CNT && !err; i++)
		err = profile_lane_init(&p->batches[i].lane, (enum lane_kind)i);
	if (err)
		profiles_free(p);
	else
		*ret = p;
	return err;
}

void profiles_set_pushes(struct profiles *p, struct pushes *pushes)
{
	p->pushes = pushes;
}

bool profiles_makes_pushes(const struct profiles *p)
{
	return profile_lane_is_at_work(&p->batches[LANE_PUSH].lane);
}

uint64_t profiles_reader_since_ns(const struct profiles *p)
{
	uint64_t since_ns = UINT64_MAX;

	for (int i = 0; i < LANE_CNT; i++) {
		uint64_t one_ns = worker_reader_since_ns(&p->batches[i].lane.worker);

		since_ns = one_ns < since_ns ? one_ns : since_ns;
	}
	return since_ns;
}

double profiles_snapshot_seconds(const struct profiles *p)
{
	return p->snapshot_ns ? (double)p->snapshot_ns / 1e9 : NAN;
}

static int take(struct profiles *p, struct snapshot **ret)
{
	uint64_t begin_ns = now_ns();
	int err = snapshot_take(p->src.engine, ret);

	p->snapshot_ns = now_ns() - begin_ns;
	if (err)
		log_warn("serve: cannot read the samples: %s", strerror(-err));
	return err;
}

static void base_put(struct profiles *p, struct base *b)
{
	if (!b || --b->user_cnt)
		return;
	for (size_t i = 0; i < BASES_CAP; i++)
		if (p->bases[i] == b)
			p->bases[i] = NULL;
	snapshot_free(b->snapshot);
	free(b);
}

static bool is_long(const struct endpoint_request *r)
{
	return r->seconds > LONG_S;
}

static int base_take(struct profiles *p, struct base **ret)
{
	struct base *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->taken_ns = now_ns();
	err = take(p, &b->snapshot);
	if (err)
		free(b);
	else
		*ret = b;
	return err;
}

/* -EBUSY: too many at once; why says which. */
static int base_get(struct profiles *p, bool for_long, struct base **ret, struct err *why)
{
	struct base **place = NULL, **shared = NULL;
	size_t long_cnt = 0;
	int err = 0;

	for (size_t i = 0; i < BASES_CAP; i++) {
		struct base *b = p->bases[i];

		long_cnt += b && b->is_long;
		if (!b)
			place = &p->bases[i];
		else if (now_ns() - b->taken_ns < BASE_SHARED_NS)
			shared = &p->bases[i];
	}
	if (shared)
		place = shared;
	if (for_long && long_cnt >= BASES_CAP / 2 && !(shared && (*shared)->is_long))
		return err_set(
			why, -EBUSY,
			"%d profiles of more than %d seconds are under way, and each keeps a copy of "
			"all samples: ask for at most %d seconds, or later",
			BASES_CAP / 2, LONG_S, LONG_S);
	if (!place)
		return err_set(
			why, -EBUSY,
			"%d profiles with seconds= are under way, and each keeps a copy of all "
			"samples: ask again later",
			BASES_CAP);
	if (!shared)
		err = base_take(p, place);
	if (err)
		return err;
	(*place)->user_cnt++;
	(*place)->is_long |= for_long;
	*ret = *place;
	return 0;
}

static int waiters_check(const struct profiles *p, bool for_long, struct err *why)
{
	const struct waiter *w;
	size_t long_cnt = 0;

	vec_each(&p->waiters, w)
		long_cnt += is_long(&w->request);
	if (p->waiters.cnt < WAITERS_CAP && !(for_long && long_cnt >= WAITERS_CAP / 2))
		return 0;
	return err_set(why, -EBUSY, "too many requests at once: %zu wait%s", p->waiters.cnt,
		       p->waiters.cnt < WAITERS_CAP ? ", half of them for more than a minute" : "");
}

static void release_given(const struct waiter *w)
{
	free(w->addrs.addrs);
	free(w->page);
	if (w->saved_fd >= 0)
		close(w->saved_fd);
	if (w->has_after)
		close(w->after_fd);
}

/* Answer with the page without its stacks. */
static void answer_page(const struct waiter *w)
{
	static const char why[] = "<p>Which stacks grow took too long to find out: "
				  "<a href=\"growth\">as JSON</a>, it may take its time.</p>\n";
	const char *place = strstr(w->page, PROCESS_PAGE_STACKS);
	struct http_answer a = { .status = 200 };
	char *text;

	profile_answer_type(&w->request, &a);
	if (asprintf(&text, "%.*s%s%s", (int)(place - w->page), w->page, why,
		     place + strlen(PROCESS_PAGE_STACKS)) < 0) {
		http_error(w->x, 500, "out of memory\n");
		return;
	}
	a.text = text;
	http_reply(w->x, &a);
	free(text);
}

void profiles_request(struct profiles *p, struct http_exchange *x, const struct endpoint_request *r,
		      const struct profiles_given *given)
{
	struct waiter w = {
		.x = x,
		.request = *r,
		.due_ns = now_ns(),
		.saved_fd = given->saved_fd,
		.page = given->page,
		.moments = given->moments,
		.has_after = given->has_after,
		.after_fd = given->after_fd,
		.file = -1,
	};
	struct err why = { .text = "out of memory" };
	int err = waiters_check(p, is_long(r), &why);

	if (given->addrs)
		w.addrs = *given->addrs;
	if (r->pid)
		w.generation = tracker_generation(p->src.tracker, r->pid);
	/* a page leaves slow parts out */
	w.lane = !w.page && slow_processes_has(&p->slow, r->pid, w.generation) ? LANE_SLOW :
										 LANE_QUICK;
	if (!err && r->seconds) {
		w.due_ns += r->seconds * NS_PER_S;
		err = base_get(p, is_long(r), &w.base, &why);
	}
	if (!err)
		err = vec_push(&p->waiters, w);
	if (!err) {
		http_defer(x);
		return;
	}
	base_put(p, w.base);
	if (w.page)
		answer_page(&w);
	else
		http_error(x, err == -EBUSY ? 503 : 500, "%s\n", why.text);
	release_given(&w);
}

static void remove_waiter(struct profiles *p, size_t i)
{
	base_put(p, p->waiters.data[i].base);
	release_given(&p->waiters.data[i]);
	p->waiters.data[i] = p->waiters.data[--p->waiters.cnt];
}

void profiles_abandon(struct profiles *p, struct http_exchange *x)
{
	for (size_t i = p->waiters.cnt; i-- > 0;) {
		if (p->waiters.data[i].x != x)
			continue;
		if (p->waiters.data[i].file < 0)
			remove_waiter(p, i);
		else
			p->waiters.data[i].x = NULL; /* a child is making its file */
	}
}

static int write_cmdline(pid_t pid, int fd)
{
	char text[CMDLINE_BYTES_CAP];
	size_t bytes;
	int err = process_read_cmdline(pid, text, sizeof(text), &bytes);

	if (!err && write(fd, text, bytes) != (ssize_t)bytes)
		err = -EIO;
	return err;
}

/* Return the file for a waiter, added if it is new. -1: no room, the next child makes it. */
static int file_for(struct batch *b, const struct waiter *w, const struct profile_request *request)
{
	struct file *f = b->files;

	for (; f < b->files + b->file_cnt; f++)
		if (f->endpoint == w->request.endpoint && f->endpoint != ENDPOINT_SYMBOL &&
		    !profile_file_is_past(request->form) && !f->request.has_saved &&
		    !request->has_saved && !f->request.has_after && !request->has_after &&
		    f->request.pid == request->pid && f->request.base == request->base &&
		    f->request.form == request->form)
			return (int)(f - b->files);
	if (b->file_cnt == profile_lane_cap(&b->lane))
		return -1;
	*f = (struct file){ w->request.endpoint, *request, w->addrs, w->moments, -1 };
	f->fd = memfd_create("heaptap profile", MFD_CLOEXEC);
	if (f->fd < 0)
		return -1;
	/* Read by the reader, which a child does not have. If it cannot be read, the file stays empty. */
	if (f->endpoint == ENDPOINT_CMDLINE)
		(void)write_cmdline(f->request.pid, f->fd);
	return (int)b->file_cnt++;
}

static enum profile_form form_of(const struct endpoint_request *r)
{
	switch (r->endpoint) {
	case ENDPOINT_REMOTE_HEAP:
		return PROFILE_ADDRESSES;
	case ENDPOINT_REMOTE_GROWTH:
		return PROFILE_GROWTH;
	case ENDPOINT_VIEWER:
		return PROFILE_PICTURES;
	case ENDPOINT_DIFF:
		return endpoint_is_of_moments(r) ? PROFILE_MOMENTS : PROFILE_DIFF;
	case ENDPOINT_GROWTH:
		return PROFILE_STACKS;
	case ENDPOINT_PROCESS:
		return PROFILE_STACKS_PAGE;
	default:
		return r->is_text ? PROFILE_TEXT : PROFILE_PPROF;
	}
}

/* True if it waits for a child of that lane. */
static bool is_due_in(const struct waiter *w, enum lane_kind lane, uint64_t now)
{
	return w->lane == lane && w->file < 0 && w->due_ns <= now;
}

/* So that the longest waiting request gets a file in any case. */
static void put_oldest_first(struct profiles *p, enum lane_kind lane, uint64_t now)
{
	struct waiter *w, *oldest = NULL;

	vec_each(&p->waiters, w)
		if (is_due_in(w, lane, now) && (!oldest || w->due_ns < oldest->due_ns))
			oldest = w;
	if (oldest) {
		struct waiter first = *oldest;

		*oldest = p->waiters.data[0];
		p->waiters.data[0] = first;
	}
}

/* Give the requests that are due files. */
static void plan(struct profiles *p, struct batch *b, const struct profile_request *moment)
{
	struct waiter *w;

	put_oldest_first(p, b->lane.kind, moment->monotonic_ns);
	vec_each(&p->waiters, w) {
		struct profile_request request = *moment;

		if (!is_due_in(w, b->lane.kind, moment->monotonic_ns))
			continue;
		request.pid = w->request.pid;
		request.form = form_of(&w->request);
		request.shows_allocs = w->request.endpoint == ENDPOINT_ALLOCS;
		request.has_saved = w->saved_fd >= 0;
		request.saved_fd = w->saved_fd;
		request.saved_name = endpoint_moment_text(w->request.at);
		request.has_after = w->has_after;
		request.after_fd = w->after_fd;
		request.wants_growth = request.pid && !w->base && request.form == PROFILE_PPROF;
		request.page = w->page;
		request.is_json = w->request.is_json;
		request.is_plain = w->request.is_plain;
		request.of_day = w->request.of_day;
		request.by_scope = w->request.by_scope;
		if (w->base) {
			request.base = w->base->snapshot;
			request.duration_ns = moment->monotonic_ns - w->base->taken_ns;
		}
		w->file = file_for(b, w, &request);
	}
}

static bool wants_snapshot(const struct batch *b)
{
	for (size_t i = 0; i < b->file_cnt; i++)
		if (b->files[i].endpoint != ENDPOINT_SYMBOL &&
		    b->files[i].endpoint != ENDPOINT_CMDLINE &&
		    !profile_file_is_past(b->files[i].request.form))
			return true;
	return b->lane.kind == LANE_PUSH;
}

/* In the child: make one file; on failure it is left empty. */
static int write_file(const struct profile_source *src, const struct snapshot *s,
		      const struct file *f)
{
	struct profile_request request = f->request;
	int err;

	request.moments = &f->moments;
	if (f->endpoint == ENDPOINT_SYMBOL)
		err = process_names_write(src, f->request.pid, f->addrs.addrs, f->addrs.addr_cnt,
					  f->fd);
	else if (f->endpoint == ENDPOINT_CMDLINE)
		err = lseek(f->fd, 0, SEEK_END) > 0 ? 0 : -ESRCH;
	else
		err = profile_file_write(src, s, &request, f->fd);
	if (err == -EAGAIN && request.form == PROFILE_STACKS_PAGE) /* a whole page */
		return err;
	if (err && err != -ESRCH && err != -ENODATA && err != -EDOM && err != -ETIME &&
	    err != -ENOENT)
		log_warn("serve: cannot answer: %s", strerror(-err));
	return err && ftruncate(f->fd, 0) ? -errno : err;
}

struct work {
	struct profiles *p;
	const struct batch *batch;
	const struct snapshot *s;
	const struct profile_request *moment;
};

/* Runs in the child. */
static int make_file(void *ctx, size_t i)
{
	const struct work *work = ctx;
	const struct profiles *p = work->p;
	struct profile_source src = p->src;

	slow_files_hide(src.slow);
	name_cache_hide(src.names);
	if (work->batch->lane.kind == LANE_PUSH)
		return pushes_make(p->pushes, &src, work->s, work->moment, work->batch->push_fd);
	src.names_ns = work->batch->lane.kind == LANE_QUICK ? LANE_QUICK_NAMES_NS : 0;
	src.is_page = src.names_ns && work->batch->files[i].request.page;
	src.wants_names = src.names_ns && !src.is_page;
	return write_file(&src, work->s, &work->batch->files[i]);
}

static bool is_due(const struct profiles *p, enum lane_kind lane)
{
	const struct waiter *w;
	uint64_t now = now_ns();

	if (lane == LANE_PUSH)
		return p->pushes && pushes_is_due(p->pushes);
	vec_each(&p->waiters, w)
		if (is_due_in(w, lane, now))
			return true;
	return false;
}

static void close_files(struct batch *b)
{
	for (size_t i = 0; i < b->file_cnt; i++)
		close(b->files[i].fd);
	b->file_cnt = 0;
	if (b->push_fd >= 0)
		close(b->push_fd);
	b->push_fd = -1;
}

/* In use may be known later, or with another limit. */
static void answer_unknown(const struct profiles *p, struct http_exchange *x,
			   const struct endpoint_request *r)
{
	struct recording rec = RECORDING_NONE;
	char words[RECORDING_INUSE_BUF];

	rec.pid = r->pid;
	governor_fill_recording(p->src.governor, r->pid, 0, &rec);
	rec.inuse = RECORDING_INUSE_UNKNOWN; /* as it was then */
	recording_inuse_words(&rec, "", p->src.rate_bytes, !r->pid, words);
	http_error(x, 503, "What is in use is not known. %s\n", words);
}

static void answer_failure(const struct profiles *p, struct http_exchange *x,
			   const struct endpoint_request *r, int err)
{
	if (err == -ENODATA)
		answer_unknown(p, x, r);
	else if (err == -EDOM && r->has_from)
		http_error(
			x, 409,
			"What changed cannot be said: in use is not known of one of the two, or they do not "
			"go together\n");
	else if (err == -EDOM)
		http_error(x, 409,
			   "What changed cannot be said: in use is not known now, or not in the "
			   "saved profile. Each for itself: /pid/%d/viewer, /pid/%d/viewer?at=%s\n",
			   r->pid, r->pid, endpoint_moment_text(r->at));
	else if (err == -ENOENT)
		http_error(x, 404, "what the stacks of process %d held then is not kept any more\n",
			   r->pid);
	else if (err == -ESRCH)
		http_error(x, 404, "process %d has ended\n", r->pid);
	else if (err == -EINTR)
		http_error(x, 500, "making the profile was ended: see heaptap's log\n");
	else
		http_error(x, 500, "the profile could not be made: %s\n", strerror(-err));
}

void profile_answer_type(const struct endpoint_request *r, struct http_answer *ret)
{
	ret->has_script = r->endpoint == ENDPOINT_VIEWER || r->endpoint == ENDPOINT_PROCESS ||
			  (r->endpoint == ENDPOINT_DIFF && !r->is_json && !r->is_plain);
	if (r->endpoint == ENDPOINT_GROWTH || r->is_json)
		ret->type = "application/json";
	else if (ret->has_script)
		ret->type = "text/html; charset=utf-8";
	if (r->is_text || (r->endpoint != ENDPOINT_HEAP && r->endpoint != ENDPOINT_ALLOCS))
		return; /* text/plain */
	ret->type = "application/octet-stream";
	if (r->endpoint == ENDPOINT_HEAP)
		ret->file_name = r->seconds ? "heap-delta" : "heap";
	else
		ret->file_name = r->seconds ? "allocs-delta" : "allocs";
}

static void answer_file(const struct profiles *p, const struct waiter *w, const struct file *f,
			int err)
{
	struct http_answer a = { .status = 200 };

	if (!err) {
		a.fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
		err = a.fd < 0 ? -errno : 0;
	}
	if (err && w->page && err != -ESRCH) {
		answer_page(w);
		return;
	}
	if (err) {
		answer_failure(p, w->x, &w->request, err);
		return;
	}
	profile_answer_type(&w->request, &a);
	http_reply(w->x, &a);
}

/*
 * A page that lacks names is made again with time for them, for nobody: it is the next page that has them, as they are
 * kept (symbol/name_cache.h).
 */
static bool wants_late_names(const struct profiles *p, struct waiter *w)
{
	const struct waiter *other;

	if (!w->page || w->lane != LANE_QUICK)
		return false;
	vec_each(&p->waiters, other)
		if (other->page && other->lane == LANE_SLOW && other->request.pid == w->request.pid)
			return false;
	w->x = NULL;
	w->lane = LANE_SLOW;
	return true;
}

/* false: it still waits, for another child. */
static bool answer_one(struct profiles *p, const struct batch *b, struct waiter *w)
{
	int err, file = w->file;
	bool is_late;

	w->file = -1;
	switch (profile_lane_result(&b->lane, (size_t)file, &err)) {
	case LANE_TOO_SLOW:
		if (w->page) {
			if (w->x)
				answer_page(w);
			return true;
		}
		slow_processes_set(&p->slow, w->request.pid, w->generation, true);
		w->lane = LANE_SLOW;
		return !w->x;
	case LANE_NOT_BEGUN:
		return !w->x;
	case LANE_OVER:
		break;
	}
	is_late = err == -EAGAIN;
	if (w->x)
		answer_file(p, w, &b->files[file], is_late ? 0 : err);
	return !is_late || !wants_late_names(p, w);
}

/* Answer requests whose file is made (or never will be), and forget the files. */
static void answer(struct profiles *p, struct batch *b)
{
	for (size_t i = p->waiters.cnt; i-- > 0;) {
		struct waiter *w = &p->waiters.data[i];

		if (w->lane == b->lane.kind && w->file >= 0 && answer_one(p, b, w))
			remove_waiter(p, i);
	}
	close_files(b);
}

/* Refuse what is due: nothing can be made now. */
static void refuse_due(struct profiles *p, struct batch *b, uint64_t now, int err)
{
	for (size_t i = p->waiters.cnt; i-- > 0;) {
		struct waiter *w = &p->waiters.data[i];

		if (w->lane != b->lane.kind || w->due_ns > now)
			continue;
		if (w->x)
			answer_failure(p, w->x, &w->request, err);
		remove_waiter(p, i);
	}
	close_files(b);
}

/* Its pid may belong to another process now; an exec does not count as an end. */
static bool has_ended(const struct profiles *p, const struct waiter *w)
{
	const struct tracker *t = p->src.tracker;
	pid_t pid = w->request.pid;

	if (w->saved_fd >= 0 && w->request.endpoint == ENDPOINT_VIEWER)
		return false; /* it shows the past */
	return pid && !tracker_is_of(t, pid, w->generation);
}

/* Refuse requests for ended processes: an empty profile would say that they hold nothing. */
static void refuse_ended(struct profiles *p, uint64_t now)
{
	for (size_t i = p->waiters.cnt; i-- > 0;) {
		const struct waiter *w = &p->waiters.data[i];

		if (w->file >= 0 || w->due_ns > now || !has_ended(p, w))
			continue;
		if (w->x)
			answer_failure(p, w->x, &w->request, -ESRCH);
		remove_waiter(p, i);
	}
}

static int begin(struct profiles *p, struct batch *b)
{
	struct profile_request moment = { .monotonic_ns = now_ns() };
	struct work work = { .p = p, .batch = b, .moment = &moment };
	bool is_push = b->lane.kind == LANE_PUSH;
	struct snapshot *s = NULL;
	int err;

	moment.epoch_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	if (is_push) {
		pushes_begin(p->pushes);
		b->push_fd = memfd_create("heaptap pushes", MFD_CLOEXEC);
	} else {
		plan(p, b, &moment);
	}
	err = b->file_cnt || b->push_fd >= 0 ? 0 : -EMFILE;
	if (!err && wants_snapshot(b))
		err = take(p, &s);
	work.s = s;
	if (!err)
		err = profile_lane_start(&b->lane, is_push ? 1 : b->file_cnt, moment.monotonic_ns,
					 make_file, &work);
	if (err) {
		log_warn("serve: cannot make profiles: %s", strerror(-err));
		refuse_due(p, b, moment.monotonic_ns, err);
	}
	snapshot_free(s);
	return err;
}

/* Call when the child has ended or is left alone. */
static void finish(struct profiles *p, struct batch *b, uint64_t took_ns)
{
	const struct file *f = b->files;

	if (b->lane.kind == LANE_PUSH)
		pushes_take(p->pushes, b->push_fd);
	else if (b->lane.kind == LANE_SLOW && took_ns < LANE_QUICK_NAMES_NS)
		slow_processes_set(&p->slow, f->request.pid,
				   tracker_generation(p->src.tracker, f->request.pid), false);
	answer(p, b);
}

static bool reap(struct profiles *p, struct batch *b)
{
	uint64_t took_ns;

	if (!profile_lane_reap(&b->lane, &took_ns))
		return !profile_lane_is_at_work(&b->lane);
	finish(p, b, took_ns);
	return true;
}

int profiles_work(struct profiles *p, int *ret_fd)
{
	struct batch *b = p->batches;

	*ret_fd = -1;
	refuse_ended(p, now_ns());
	for (; b < p->batches + LANE_CNT; b++) {
		if (profile_lane_is_at_work(&b->lane)) {
			if (profile_lane_check(&b->lane))
				reap(p, b);
		} else if (*ret_fd < 0 && is_due(p, b->lane.kind) && !begin(p, b)) {
			*ret_fd = b->lane.worker.fd;
		}
	}
	return 0;
}

bool profiles_reap(struct profiles *p, int fd)
{
	struct batch *b = p->batches;

	for (; b < p->batches + LANE_CNT; b++)
		if (profile_lane_is_at_work(&b->lane) && b->lane.worker.fd == fd)
			return reap(p, b);
	return true;
}

int profiles_wait_ms(const struct profiles *p)
{
	const struct waiter *w;
	uint64_t now = now_ns(), ms;
	int least = -1;

	if (p->pushes && !profiles_makes_pushes(p))
		least = pushes_wait_ms(p->pushes);
	vec_each(&p->waiters, w) {
		if (profile_lane_is_at_work(&p->batches[w->lane].lane))
			continue;
		ms = w->due_ns > now ? (w->due_ns - now) / NS_PER_MS + 1 : 0;
		if (least < 0 || ms < (uint64_t)least)
			least = (int)ms;
	}
	return least;
}

void profiles_free(struct profiles *p)
{
	if (!p)
		return;
	for (int i = 0; i < LANE_CNT; i++) {
		profile_lane_release(&p->batches[i].lane);
		close_files(&p->batches[i]);
	}
	while (p->waiters.cnt)
		remove_waiter(p, p->waiters.cnt - 1);
	vec_release(&p->waiters);
	free(p);
}
