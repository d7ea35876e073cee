/* SPDX-License-Identifier: MIT */
/* profiles.c - see profiles.h. */
#include "daemon/profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "daemon/process_text.h"
#include "daemon/pushes.h"
#include "daemon/worker.h"
#include "budget/governor.h"
#include "serve/endpoints.h"
#include "serve/http.h"
#include "snapshot/recording_notes.h"
#include "snapshot/snapshot.h"
#include "symbol/slow_files.h"
#include "target/process.h"
#include "track/tracker.h"

#define WAITERS_CAP 64
#define BASES_CAP 8 /* beginnings of deltas that are kept at once: each is a copy of all samples */
/* Who asks for what takes an hour must not keep out who asks for ten seconds: for what takes longer than
 * LONG_S there is half of each. */
#define LONG_S 60
#define BASE_SHARED_NS (100 * NS_PER_MS) /* deltas that begin within this share a beginning */
#define FILES_CAP 16 /* that one child makes */
#define CMDLINE_BYTES_CAP (64 << 10)

/* The beginning of a delta. */
struct base {
	struct snapshot *snapshot;
	uint64_t taken_ns;
	size_t user_cnt;
	bool is_long; /* for one that asks for more than LONG_S */
};

struct waiter {
	struct http_exchange *x;
	struct endpoint_request request;
	struct endpoint_addrs addrs; /* whose names are wanted */
	struct base *base; /* NULL: no delta */
	uint64_t due_ns;
	uint32_t generation; /* of the process that it asks for, at that time */
	int file; /* index in files while a child makes it; -1: not begun */
};

struct file {
	enum endpoint endpoint;
	struct profile_wish wish;
	struct endpoint_addrs addrs; /* of the waiter, whose names are wanted */
	int fd;
};

struct profiles {
	struct profile_source src;
	struct pushes *pushes;
	int push_fd; /* what the child makes for them; -1: nothing */
	VEC(struct waiter) waiters;
	struct base *bases[BASES_CAP];
	struct file files[FILES_CAP];
	size_t file_cnt;
	int *file_errs; /* FILES_CAP: what the child says of each, in memory that both see */
	struct worker worker;
	uint64_t snapshot_ns; /* that the last one took */
};

int profiles_new(const struct profile_source *src, struct profiles **ret)
{
	struct profiles *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->file_errs = mmap(NULL, FILES_CAP * sizeof(*p->file_errs), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->file_errs == MAP_FAILED) {
		free(p);
		return -ENOMEM;
	}
	p->src = *src;
	p->push_fd = -1;
	*ret = p;
	return 0;
}

void profiles_set_pushes(struct profiles *p, struct pushes *pushes)
{
	p->pushes = pushes;
}

bool profiles_is_busy(const struct profiles *p)
{
	return p->worker.pid;
}

uint64_t profiles_reader_since_ns(const struct profiles *p)
{
	return worker_reader_since_ns(&p->worker);
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

/* -EBUSY: too many at once, and why. */
static int base_get(struct profiles *p, bool for_long, struct base **ret, char *why,
		    size_t why_bytes)
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
	if (for_long && long_cnt >= BASES_CAP / 2 && !(shared && (*shared)->is_long)) {
		snprintf(
			why, why_bytes,
			"%d profiles of more than %d seconds are under way, and each keeps a copy of "
			"all samples: ask for at most %d seconds, or later",
			BASES_CAP / 2, LONG_S, LONG_S);
		return -EBUSY;
	}
	if (!place) {
		snprintf(why, why_bytes,
			 "%d profiles with seconds= are under way, and each keeps a copy of all "
			 "samples: ask again later",
			 BASES_CAP);
		return -EBUSY;
	}
	if (!shared)
		err = base_take(p, place);
	if (err)
		return err;
	(*place)->user_cnt++;
	(*place)->is_long |= for_long;
	*ret = *place;
	return 0;
}

static int waiters_check(const struct profiles *p, bool for_long, char *why, size_t why_bytes)
{
	const struct waiter *w;
	size_t long_cnt = 0;

	vec_each(&p->waiters, w)
		long_cnt += is_long(&w->request);
	if (p->waiters.cnt < WAITERS_CAP && !(for_long && long_cnt >= WAITERS_CAP / 2))
		return 0;
	snprintf(why, why_bytes, "too many requests at once: %zu wait%s", p->waiters.cnt,
		 p->waiters.cnt < WAITERS_CAP ? ", half of them for more than a minute" : "");
	return -EBUSY;
}

void profiles_request(struct profiles *p, struct http_exchange *x, const struct endpoint_request *r,
		      const struct endpoint_addrs *addrs)
{
	struct waiter w = { .x = x, .request = *r, .due_ns = now_ns(), .file = -1 };
	char why[256] = "out of memory";
	int err = waiters_check(p, is_long(r), why, sizeof(why));

	if (addrs)
		w.addrs = *addrs;
	if (r->pid)
		w.generation = tracker_generation(p->src.tracker, r->pid);
	if (!err && r->seconds) {
		w.due_ns += r->seconds * NS_PER_S;
		err = base_get(p, is_long(r), &w.base, why, sizeof(why));
	}
	if (!err)
		err = vec_push(&p->waiters, w);
	if (!err) {
		http_hold(x);
		return;
	}
	base_put(p, w.base);
	free(w.addrs.addrs);
	http_error(x, err == -EBUSY ? 503 : 500, "%s\n", why);
}

static void remove_waiter(struct profiles *p, size_t i)
{
	base_put(p, p->waiters.data[i].base);
	free(p->waiters.data[i].addrs.addrs);
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
			p->waiters.data[i].x = NULL; /* a child makes its file */
	}
}

/* The file for a waiter, entered when it is new. -1: no room, the next child makes it. */
static int file_for(struct profiles *p, const struct waiter *w, const struct profile_wish *wish)
{
	struct file *f = p->files;

	for (; f < p->files + p->file_cnt; f++)
		if (f->endpoint == w->request.endpoint && f->endpoint != ENDPOINT_SYMBOL &&
		    f->wish.pid == wish->pid && f->wish.base == wish->base &&
		    f->wish.form == wish->form)
			return (int)(f - p->files);
	if (p->file_cnt == FILES_CAP)
		return -1;
	*f = (struct file){ w->request.endpoint, *wish, w->addrs, -1 };
	f->fd = memfd_create("heaptap profile", MFD_CLOEXEC);
	if (f->fd < 0)
		return -1;
	p->file_errs[p->file_cnt] = -EINTR; /* when the child does not come to it */
	return (int)p->file_cnt++;
}

static enum profile_form form_of(const struct endpoint_request *r)
{
	switch (r->endpoint) {
	case ENDPOINT_REMOTE_HEAP:
		return PROFILE_ADDRESSES;
	case ENDPOINT_REMOTE_GROWTH:
		return PROFILE_GROWTH;
	default:
		return r->is_text ? PROFILE_TEXT : PROFILE_PPROF;
	}
}

/* Give every request that is due a file. */
static void plan(struct profiles *p, const struct profile_wish *moment)
{
	struct waiter *w;

	vec_each(&p->waiters, w) {
		struct profile_wish wish = *moment;

		if (w->due_ns > moment->monotonic_ns)
			continue;
		wish.pid = w->request.pid;
		wish.form = form_of(&w->request);
		wish.shows_allocs = w->request.endpoint == ENDPOINT_ALLOCS;
		if (w->base) {
			wish.base = w->base->snapshot;
			wish.duration_ns = moment->monotonic_ns - w->base->taken_ns;
		}
		w->file = file_for(p, w, &wish);
	}
}

static bool wants_snapshot(const struct profiles *p)
{
	for (size_t i = 0; i < p->file_cnt; i++)
		if (p->files[i].endpoint != ENDPOINT_SYMBOL &&
		    p->files[i].endpoint != ENDPOINT_CMDLINE)
			return true;
	return p->push_fd >= 0;
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

/* What the child does for one file; one that could not be made is left empty. */
static int make_file(const struct profiles *p, const struct snapshot *s, const struct file *f)
{
	int err;

	if (f->endpoint == ENDPOINT_SYMBOL)
		err = process_names_write(&p->src, f->wish.pid, f->addrs.addrs, f->addrs.addr_cnt,
					  f->fd);
	else if (f->endpoint == ENDPOINT_CMDLINE)
		err = write_cmdline(f->wish.pid, f->fd);
	else
		err = profile_file_write(&p->src, s, &f->wish, f->fd);
	if (err && err != -ESRCH && err != -ENODATA)
		log_warn("serve: cannot answer: %s", strerror(-err));
	return err && ftruncate(f->fd, 0) ? -errno : err;
}

struct work {
	struct profiles *p;
	const struct snapshot *s;
	const struct profile_wish *moment;
};

/* In the child. */
static int make_files(void *ctx)
{
	const struct work *work = ctx;
	struct profiles *p = work->p;
	int failed_cnt = 0;

	slow_files_hide(p->src.slow);
	for (size_t i = 0; i < p->file_cnt; i++) {
		p->file_errs[i] = make_file(p, work->s, &p->files[i]);
		failed_cnt += p->file_errs[i] != 0;
	}
	if (p->push_fd >= 0)
		failed_cnt += !!pushes_make(p->pushes, &p->src, work->s, work->moment, p->push_fd);
	return failed_cnt > 0;
}

static bool is_due(const struct profiles *p)
{
	const struct waiter *w;
	uint64_t now = now_ns();

	if (p->pushes && pushes_is_due(p->pushes))
		return true;
	vec_each(&p->waiters, w)
		if (w->due_ns <= now)
			return true;
	return false;
}

static void close_files(struct profiles *p)
{
	for (size_t i = 0; i < p->file_cnt; i++)
		close(p->files[i].fd);
	p->file_cnt = 0;
	if (p->push_fd >= 0)
		close(p->push_fd);
	p->push_fd = -1;
}

/* It may be known later, or with another limit. */
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
	else if (err == -ESRCH)
		http_error(x, 404, "process %d has ended\n", r->pid);
	else if (err == -EINTR)
		http_error(x, 500, "making the profile was ended: see heaptap's log\n");
	else
		http_error(x, 500, "the profile could not be made: %s\n", strerror(-err));
}

void profile_answer_type(const struct endpoint_request *r, struct http_answer *ret)
{
	if (r->is_text || (r->endpoint != ENDPOINT_HEAP && r->endpoint != ENDPOINT_ALLOCS))
		return; /* text/plain */
	ret->type = "application/octet-stream";
	if (r->endpoint == ENDPOINT_HEAP)
		ret->file_name = r->seconds ? "heap-delta" : "heap";
	else
		ret->file_name = r->seconds ? "allocs-delta" : "allocs";
}

static void answer_file(const struct profiles *p, const struct waiter *w)
{
	struct http_answer a = { .status = 200 };
	int err = p->file_errs[w->file];

	if (!err) {
		a.fd = fcntl(p->files[w->file].fd, F_DUPFD_CLOEXEC, 0);
		err = a.fd < 0 ? -errno : 0;
	}
	if (err) {
		answer_failure(p, w->x, &w->request, err);
		return;
	}
	profile_answer_type(&w->request, &a);
	http_reply(w->x, &a);
}

/* Answer those whose file is made (or never will be), and forget the files. */
static void answer(struct profiles *p)
{
	for (size_t i = p->waiters.cnt; i-- > 0;) {
		if (p->waiters.data[i].file < 0)
			continue;
		if (p->waiters.data[i].x)
			answer_file(p, &p->waiters.data[i]);
		remove_waiter(p, i);
	}
	close_files(p);
}

/* Nothing can be made now. */
static void refuse_due(struct profiles *p, uint64_t now, int err)
{
	for (size_t i = p->waiters.cnt; i-- > 0;) {
		struct waiter *w = &p->waiters.data[i];

		if (w->due_ns > now)
			continue;
		if (w->x)
			answer_failure(p, w->x, &w->request, err);
		remove_waiter(p, i);
	}
	close_files(p);
}

/* Its pid may be another process's now; an exec leaves it what it is. */
static bool has_ended(const struct profiles *p, const struct waiter *w)
{
	const struct tracker *t = p->src.tracker;
	pid_t pid = w->request.pid;

	return pid && !tracker_is_of(t, pid, w->generation);
}

/* An empty profile would say that the process holds nothing. */
static void refuse_ended(struct profiles *p, uint64_t now)
{
	for (size_t i = p->waiters.cnt; i-- > 0;) {
		const struct waiter *w = &p->waiters.data[i];

		if (w->due_ns > now || !has_ended(p, w))
			continue;
		answer_failure(p, w->x, &w->request, -ESRCH);
		remove_waiter(p, i);
	}
}

static int begin(struct profiles *p)
{
	struct profile_wish moment = { .monotonic_ns = now_ns() };
	const struct worker_options opts = { .moment_ns = moment.monotonic_ns };
	struct work work = { .p = p, .moment = &moment };
	struct snapshot *s = NULL;
	int err;

	moment.epoch_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	plan(p, &moment);
	if (p->pushes && pushes_is_due(p->pushes)) {
		pushes_begin(p->pushes);
		p->push_fd = memfd_create("heaptap pushes", MFD_CLOEXEC);
	}
	err = p->file_cnt || p->push_fd >= 0 ? 0 : -EMFILE;
	if (!err && wants_snapshot(p))
		err = take(p, &s);
	work.s = s;
	if (!err)
		err = worker_start(&p->worker, &opts, make_files, &work);
	if (err) {
		log_warn("serve: cannot make profiles: %s", strerror(-err));
		refuse_due(p, moment.monotonic_ns, err);
	}
	snapshot_free(s);
	return err;
}

int profiles_work(struct profiles *p, int *ret_fd)
{
	*ret_fd = -1;
	if (p->worker.pid) {
		if (worker_check(&p->worker))
			profiles_reap(p);
		return 0;
	}
	refuse_ended(p, now_ns());
	if (!is_due(p))
		return 0;
	if (!begin(p))
		*ret_fd = p->worker.fd;
	return 0;
}

bool profiles_reap(struct profiles *p)
{
	uint64_t cpu_ns;

	if (!worker_reap(&p->worker, "making profiles", &cpu_ns))
		return !p->worker.pid;
	if (p->push_fd >= 0)
		pushes_take(p->pushes, p->push_fd);
	answer(p);
	return true;
}

int profiles_wait_ms(const struct profiles *p)
{
	const struct waiter *w;
	uint64_t now = now_ns(), ms;
	int least;

	if (p->worker.pid)
		return -1;
	least = p->pushes ? pushes_wait_ms(p->pushes) : -1;
	vec_each(&p->waiters, w) {
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
	worker_kill(&p->worker);
	close_files(p);
	while (p->waiters.cnt)
		remove_waiter(p, p->waiters.cnt - 1);
	vec_release(&p->waiters);
	munmap(p->file_errs, FILES_CAP * sizeof(*p->file_errs));
	free(p);
}
