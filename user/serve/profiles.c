/* SPDX-License-Identifier: MIT */
/*
 * profiles.c - answers requests for profiles: waits until they are due, takes one snapshot for all of them, has a
 * child process make the files, and sends these (see daemon_priv.h).
 */
#include "serve/daemon_priv.h"

#include <sys/mman.h>

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "http/endpoints.h"
#include "http/http.h"
#include "http/pages.h"
#include "proc/process.h"
#include "record/recording_notes.h"
#include "record/snapshot.h"
#include "record/worker.h"
#include "serve/pushes.h"
#include "track/governor.h"
#include "track/tracker.h"

#define WAITERS_CAP 64
#define BASES_CAP 8 /* beginnings of deltas kept at once: each is a copy of all samples */
/* A request over an hour must not keep out one over ten seconds: requests longer than LONG_S may use only half of
 * each. */
#define LONG_S 60
#define BASE_SHARED_NS (100 * NS_PER_MS) /* deltas that begin within this share a beginning */
#define CMDLINE_BYTES_CAP (64 << 10)

/*
 * There are three lanes, so that no request waits for a process that is slow, because of its files or its amounts.
 * In the quick lane each file has QUICK_NAMES_NS for its names and QUICK_FILE_NS in all. A file that needs longer is
 * given up there and made in the slow lane, which makes one file at a time and takes as long as necessary. A process
 * that was slow begins there the next time, until it is quick again. Pushes have a lane of their own.
 *
 * So a request for the profile of one process waits at most QUICK_FILE_NS for each other process that is slow for
 * the first time, and never for processes that are known to be slow.
 */
enum lane_kind { LANE_QUICK, LANE_SLOW, LANE_PUSH, LANE_CNT };

#define QUICK_NAMES_NS (NS_PER_S / 2)
#define QUICK_FILE_NS NS_PER_S

/* The beginning of a delta. */
struct base {
	struct snapshot *snapshot;
	uint64_t taken_ns;
	size_t user_cnt;
	bool is_long; /* for a request of more than LONG_S */
};

struct waiter {
	struct http_exchange *x; /* NULL: nobody waits for the answer any more */
	struct result_request request;
	struct base *base; /* NULL: no delta */
	uint64_t due_ns;
	enum lane_kind lane;
	int file; /* index in the lane's files while a child makes it; -1: not begun */
};

struct file {
	/* The request of the first who waits for it, which the child has a copy of; the parent must not use it after that. */
	const struct result_request *request;
	int fd;
};

/* The files that a child makes, or has made. */
struct batch {
	enum lane_kind lane;
	struct worker worker;
	struct file files[WORKER_FILES_CAP];
	size_t file_cnt;
	int push_fd; /* of LANE_PUSH, instead of files: the child's requests; -1: none */
};

struct profiles {
	struct result_source src;
	struct pushes *pushes;
	struct loop *loop;
	VEC(struct waiter) waiters;
	struct base *bases[BASES_CAP];
	struct batch batches[LANE_CNT]; /* by lane */
	struct slow_processes slow;
	uint64_t snapshot_ns; /* duration of the last one */
};

int profiles_new(const struct result_source *src, struct pushes *pushes, struct loop *loop,
		 struct profiles **ret)
{
	struct profiles *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->src = *src;
	p->pushes = pushes;
	p->loop = loop;
	for (int i = 0; i < LANE_CNT; i++) {
		p->batches[i].lane = (enum lane_kind)i;
		p->batches[i].push_fd = -1;
	}
	*ret = p;
	return 0;
}

bool profiles_makes_pushes(const struct profiles *p)
{
	return p->batches[LANE_PUSH].worker.pid;
}

uint64_t profiles_reader_since_ns(const struct profiles *p)
{
	uint64_t since_ns = UINT64_MAX;

	for (int i = 0; i < LANE_CNT; i++) {
		uint64_t one_ns = worker_reader_since_ns(&p->batches[i].worker);

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
	int err = snapshot_take(p->src.engine, p->src.tracker, ret);

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

static bool is_long(const struct result_request *r)
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
			"%d profiles with seconds= above %d are being made, and each holds a "
			"copy of all samples: request at most %d seconds, or retry later",
			BASES_CAP / 2, LONG_S, LONG_S);
	if (!place)
		return err_set(
			why, -EBUSY,
			"%d profiles with seconds= are being made, and each holds a copy of all "
			"samples: retry later",
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
		       p->waiters.cnt < WAITERS_CAP ? ", half of them with seconds= above 60" : "");
}

/* Answer with the page without its stacks. */
static void answer_page(const struct waiter *w)
{
	static const char why[] = "<p>Growth by stack took too long to compute: <a "
				  "href=\"growth\">wait for it as JSON</a>.</p>\n";
	const char *page = w->request.page, *place = strstr(page, PROCESS_PAGE_STACKS);
	struct http_answer a = { .status = 200 };
	char *text;

	profile_answer_type(&w->request, &a);
	if (asprintf(&text, "%.*s%s%s", (int)(place - page), page, why,
		     place + strlen(PROCESS_PAGE_STACKS)) < 0) {
		http_error(w->x, 500, "out of memory\n");
		return;
	}
	a.text = text;
	http_reply(w->x, &a);
	free(text);
}

/* What the child finds nowhere else. */
static int set_up(struct profiles *p, struct waiter *w, struct err *why)
{
	struct result_request *r = &w->request;
	int err = waiters_check(p, is_long(r), why);

	if (r->pid)
		r->generation = tracker_generation(p->src.tracker, r->pid);
	if (r->from_pid)
		r->from_generation = tracker_generation(p->src.tracker, r->from_pid);
	r->wants_growth = (r->endpoint == ENDPOINT_HEAP || r->endpoint == ENDPOINT_ALLOCS) &&
			  r->pid && !r->seconds && !r->is_text;
	/* a page leaves slow parts out */
	if (!r->page && (r->wants_pinned || slow_processes_has(&p->slow, r->pid, r->generation)))
		w->lane = LANE_SLOW;
	if (err || !r->seconds)
		return err;
	w->due_ns += r->seconds * NS_PER_S;
	err = base_get(p, is_long(r), &w->base, why);
	if (err)
		return err;
	r->base = w->base->snapshot;
	r->base_ns = w->base->taken_ns;
	return 0;
}

void profiles_request(struct profiles *p, struct http_exchange *x, const struct result_request *r)
{
	struct waiter w = {
		.x = x, .request = *r, .due_ns = now_ns(), .lane = LANE_QUICK, .file = -1
	};
	struct err why = { .text = "out of memory" };
	int err = set_up(p, &w, &why);

	if (!err)
		err = vec_push(&p->waiters, w);
	if (!err) {
		http_defer(x);
		return;
	}
	base_put(p, w.base);
	if (w.request.page)
		answer_page(&w);
	else
		http_error(x, err == -EBUSY ? 503 : 500, "%s\n", why.text);
	result_request_release(&w.request);
}

static void remove_waiter(struct profiles *p, size_t i)
{
	base_put(p, p->waiters.data[i].base);
	result_request_release(&p->waiters.data[i].request);
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

static int write_cmdline(struct reader *reader, pid_t pid, int fd)
{
	char text[CMDLINE_BYTES_CAP];
	size_t bytes;
	int err = process_read_cmdline(reader, pid, text, sizeof(text), &bytes);

	if (!err && write(fd, text, bytes) != (ssize_t)bytes)
		err = -EIO;
	return err;
}

static size_t find_slow(const struct slow_processes *s, pid_t pid, uint32_t generation)
{
	size_t i = 0;

	while (i < SLOW_PROCESSES_CAP && !(s->known[i].is_slow && s->known[i].pid == pid &&
					   s->known[i].generation == generation))
		i++;
	return i;
}

void slow_processes_set(struct slow_processes *s, pid_t pid, uint32_t generation, bool is_slow)
{
	size_t i = find_slow(s, pid, generation);

	if (i == SLOW_PROCESSES_CAP && !is_slow)
		return;
	if (i == SLOW_PROCESSES_CAP)
		i = s->next++ % SLOW_PROCESSES_CAP;
	s->known[i].pid = pid;
	s->known[i].generation = generation;
	s->known[i].is_slow = is_slow;
}

bool slow_processes_has(const struct slow_processes *s, pid_t pid, uint32_t generation)
{
	return find_slow(s, pid, generation) < SLOW_PROCESSES_CAP;
}

/* Do both get the same file? */
static bool is_same(const struct result_request *a, const struct result_request *b)
{
	bool may_share = a->endpoint == ENDPOINT_CMDLINE ||
			 (a->endpoint != ENDPOINT_DIFF && result_needs_snapshot(a));

	return may_share && a->endpoint == b->endpoint && !result_has_saved(a) &&
	       !result_has_saved(b) && a->pid == b->pid && a->base == b->base &&
	       a->is_text == b->is_text && a->wants_pinned == b->wants_pinned;
}

/* Return the file for a request, added if it is new. -1: no room, the next child makes it. */
static int file_for(const struct profiles *p, struct batch *b, const struct result_request *r)
{
	struct file *f = b->files;

	for (; f < b->files + b->file_cnt; f++)
		if (is_same(f->request, r))
			return (int)(f - b->files);
	if (b->file_cnt == (b->lane == LANE_QUICK ? WORKER_FILES_CAP : 1))
		return -1;
	*f = (struct file){ r, memfd_create("heaptap profile", MFD_CLOEXEC) };
	if (f->fd < 0)
		return -1;
	/* Read by the reader, which a child does not have. If it cannot be read, the file stays empty. */
	if (r->endpoint == ENDPOINT_CMDLINE)
		(void)write_cmdline(p->src.reader, r->pid, f->fd);
	return (int)b->file_cnt++;
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
static void plan(struct profiles *p, struct batch *b, uint64_t now)
{
	bool is_quick = b->lane == LANE_QUICK;
	struct waiter *w;

	put_oldest_first(p, b->lane, now);
	vec_each(&p->waiters, w) {
		if (!is_due_in(w, b->lane, now))
			continue;
		w->request.names_ns = is_quick ? QUICK_NAMES_NS : 0;
		w->request.wants_all_names = is_quick && !w->request.page;
		w->file = file_for(p, b, &w->request);
	}
}

static bool wants_snapshot(const struct batch *b)
{
	for (size_t i = 0; i < b->file_cnt; i++)
		if (result_needs_snapshot(b->files[i].request))
			return true;
	return b->lane == LANE_PUSH;
}

struct work {
	struct profiles *p;
	const struct batch *batch;
	const struct result_moment *moment;
};

/* Runs in the child: make one file; on failure it is left empty. */
static int make_file(void *ctx, size_t i)
{
	const struct work *work = ctx;
	const struct profiles *p = work->p;
	const struct file *f = &work->batch->files[i];
	const struct result_request *r = f->request;
	int err;

	result_begin_child(&p->src);
	if (work->batch->lane == LANE_PUSH)
		return pushes_make(p->pushes, &p->src, work->moment, work->batch->push_fd);
	if (r->endpoint == ENDPOINT_CMDLINE)
		err = lseek(f->fd, 0, SEEK_END) > 0 ? 0 : -ESRCH;
	else
		err = result_make(&p->src, work->moment, r, f->fd);
	if (err == -EAGAIN && r->page) /* a whole page */
		return err;
	if (err && err != -ESRCH && err != -ENODATA && err != -EDOM && err != -ETIME &&
	    err != -ENOENT)
		log_warn("serve: cannot answer: %s", strerror(-err));
	return err && ftruncate(f->fd, 0) ? -errno : err;
}

static bool is_due(const struct profiles *p, enum lane_kind lane)
{
	const struct waiter *w;
	uint64_t now = now_ns();

	if (lane == LANE_PUSH)
		return pushes_is_due(p->pushes);
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
			   const struct result_request *r)
{
	struct recording rec = RECORDING_NONE;
	char words[RECORDING_INUSE_BUF];

	rec.pid = r->pid;
	governor_fill_recording(p->src.governor, r->pid, 0, &rec);
	rec.inuse = RECORDING_INUSE_UNKNOWN; /* as it was then */
	recording_inuse_words(&rec, "", p->src.rate_bytes, !r->pid, words);
	http_error(x, 503, "Heap in use is unknown. %s\n", words);
}

static void answer_failure(const struct profiles *p, struct http_exchange *x,
			   const struct result_request *r, int err)
{
	if (err == -ENODATA)
		answer_unknown(p, x, r);
	else if (err == -EDOM && (r->has_from || r->from_pid))
		http_error(x, 409,
			   "Cannot compare: heap in use is unknown in one of the two, or they have "
			   "different values\n");
	else if (err == -EDOM)
		http_error(x, 409,
			   "Cannot compare: heap in use is unknown now, or in the saved profile. "
			   "Each by itself: /pid/%d/viewer, /pid/%d/viewer?at=%s\n",
			   r->pid, r->pid, endpoint_moment_text(r->at));
	else if (err == -ENOENT)
		http_error(x, 404, "the stacks of process %d at that time are no longer stored\n",
			   r->pid);
	else if (err == -ESRCH && r->from_pid)
		http_error(x, 404, "process %d or %d has ended\n", r->from_pid, r->pid);
	else if (err == -ESRCH)
		http_error(x, 404, "process %d has ended\n", r->pid);
	else if (err == -EINTR)
		http_error(x, 500, "heaptap stopped making the profile: see its log\n");
	else
		http_error(x, 500, "cannot make the profile: %s\n", strerror(-err));
}

void profile_answer_type(const struct result_request *r, struct http_answer *ret)
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
	if (err && w->request.page && err != -ESRCH) {
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
 * kept (symbol/symbol.h).
 */
static bool wants_late_names(const struct profiles *p, struct waiter *w)
{
	const struct waiter *other;

	if (!w->request.page || w->lane != LANE_QUICK)
		return false;
	vec_each(&p->waiters, other)
		if (other->request.page && other->lane == LANE_SLOW &&
		    other->request.pid == w->request.pid)
			return false;
	w->x = NULL;
	w->lane = LANE_SLOW;
	return true;
}

/* false: it still waits, for another child. */
static bool answer_one(struct profiles *p, const struct batch *b, struct waiter *w)
{
	pid_t pid = w->request.pid;
	int err, file = w->file;
	bool is_late;

	w->file = -1;
	if (b->lane == LANE_SLOW && b->worker.took_ns < QUICK_NAMES_NS)
		slow_processes_set(&p->slow, pid, tracker_generation(p->src.tracker, pid), false);
	switch (worker_result(&b->worker, (size_t)file, &err)) {
	case WORKER_TOO_SLOW:
		if (w->request.page) {
			if (w->x)
				answer_page(w);
			return true;
		}
		slow_processes_set(&p->slow, w->request.pid, w->request.generation, true);
		w->lane = LANE_SLOW;
		return !w->x;
	case WORKER_NOT_BEGUN:
		return !w->x;
	case WORKER_OVER:
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

		if (w->lane == b->lane && w->file >= 0 && answer_one(p, b, w))
			remove_waiter(p, i);
	}
	close_files(b);
}

/* Refuse what is due: nothing can be made now. */
static void refuse_due(struct profiles *p, struct batch *b, uint64_t now, int err)
{
	for (size_t i = p->waiters.cnt; i-- > 0;) {
		struct waiter *w = &p->waiters.data[i];

		if (w->lane != b->lane || w->due_ns > now)
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
	const struct result_request *r = &w->request;
	pid_t pid = result_needs(r), from_pid = result_needs_from(r);

	return (pid && !tracker_is_of(p->src.tracker, pid, r->generation)) ||
	       (from_pid && !tracker_is_of(p->src.tracker, from_pid, r->from_generation));
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
	struct result_moment moment = { .epoch_ns = (int64_t)clock_ns(CLOCK_REALTIME),
					.monotonic_ns = now_ns() };
	struct work work = { p, b, &moment };
	bool is_push = b->lane == LANE_PUSH;
	/* Somebody waits for a quick file, and its time is bounded. With less than its share of a busy processor it
	 * would be taken for slow, and would wait behind slow ones. */
	const struct worker_options opts = {
		.what = "making profiles",
		.is_urgent = b->lane == LANE_QUICK,
		.moment_ns = moment.monotonic_ns,
		.file_ns = b->lane == LANE_QUICK ? QUICK_FILE_NS : 0,
	};
	struct snapshot *s = NULL;
	int err;

	if (is_push) {
		pushes_begin(p->pushes);
		b->push_fd = memfd_create("heaptap pushes", MFD_CLOEXEC);
	} else {
		plan(p, b, moment.monotonic_ns);
	}
	err = b->file_cnt || b->push_fd >= 0 ? 0 : -EMFILE;
	if (!err && wants_snapshot(b))
		err = take(p, &s);
	moment.snapshot = s;
	if (!err)
		err = worker_start(&b->worker, &opts, is_push ? 1 : b->file_cnt, make_file, &work);
	if (err) {
		log_warn("serve: cannot make profiles: %s", strerror(-err));
		refuse_due(p, b, moment.monotonic_ns, err);
	}
	snapshot_free(s);
	return err;
}

/* Call when the child has ended or is left alone. */
static void finish(struct profiles *p, struct batch *b)
{
	if (b->lane == LANE_PUSH)
		pushes_take(p->pushes, b->push_fd);
	answer(p, b);
}

static bool reap(struct profiles *p, struct batch *b)
{
	if (!worker_reap(&b->worker))
		return !b->worker.pid;
	finish(p, b);
	return true;
}

/* If there is nothing to reap (somebody traces the child), watch once more. */
static void on_child(void *ctx, int fd)
{
	struct profiles *p = ctx;
	struct batch *b = p->batches;

	for (; b < p->batches + LANE_CNT; b++)
		if (b->worker.pid && b->worker.fd == fd && !reap(p, b))
			loop_watch_once(p->loop, fd, on_child, p);
}

int profiles_work(struct profiles *p)
{
	struct batch *b = p->batches;
	bool has_begun = false;
	int err = 0;

	refuse_ended(p, now_ns());
	for (; b < p->batches + LANE_CNT && !err; b++) {
		if (b->worker.pid) {
			if (worker_check(&b->worker))
				reap(p, b);
		} else if (!has_begun && is_due(p, b->lane) && !begin(p, b)) {
			has_begun = true;
			err = loop_watch_once(p->loop, b->worker.fd, on_child, p);
		}
	}
	return err;
}

int profiles_wait_ms(const struct profiles *p)
{
	const struct waiter *w;
	uint64_t now = now_ns(), ms;
	int least = -1;

	if (!profiles_makes_pushes(p))
		least = pushes_wait_ms(p->pushes);
	vec_each(&p->waiters, w) {
		if (p->batches[w->lane].worker.pid)
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
		worker_release(&p->batches[i].worker);
		close_files(&p->batches[i]);
	}
	while (p->waiters.cnt)
		remove_waiter(p, p->waiters.cnt - 1);
	vec_release(&p->waiters);
	free(p);
}
