/* SPDX-License-Identifier: MIT */
/*
 * saved_jobs.c - see saver_priv.h.
 */
#include "result/saver_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "http/endpoints.h"
#include "result/make.h"
#include "result/snapshot.h"
#include "track/tracker.h"

#define ENDED_CAP 64
/* How long the samples of an ended process are held when it is not the turn of its profile. */
#define ENDED_WAIT_NS (2 * NS_PER_S)
#define LOG_BURST 10
#define LOG_EVERY_NS (10 * NS_PER_S)

enum saved_class saved_job_class(const struct saved_job *j)
{
	switch (j->name.reason) {
	case KEEP_OOM:
	case KEEP_SIGNAL:
		return KEEP_DEATH;
	case KEEP_LIMIT:
		return KEEP_NEAR_LIMIT;
	case KEEP_PEAK:
		return KEEP_AT_PEAK;
	default:
		return KEEP_ENDED;
	}
}

/* True if in use is known: frees are watched, or nothing says that they are not. */
static bool saved_job_has_inuse(const struct saved_job *j)
{
	return !j->budget.is_known || j->budget.view.has_inuse;
}

bool saved_job_is_last(const struct saved_job *j)
{
	return j->name.reason >= KEEP_OOM;
}

int saved_job_by_worth(const void *a, const void *b)
{
	const struct saved_job *x = a, *y = b;

	if (saved_job_class(x) != saved_job_class(y))
		return (int)saved_job_class(x) - (int)saved_job_class(y);
	return (x->usage.inuse_bytes < y->usage.inuse_bytes) -
	       (x->usage.inuse_bytes > y->usage.inuse_bytes);
}

void saved_ended_init(struct saved_ended *ke)
{
	ke->log = (struct log_limit){ .every_ns = LOG_EVERY_NS, .burst = LOG_BURST };
}

static void del(struct saved_ended *ke, size_t i)
{
	ke->jobs.data[i] = ke->jobs.data[--ke->jobs.cnt];
}

static void count_skipped(struct saved_ended *ke, const struct saved_job *job, const char *why)
{
	char words[64];
	uint64_t more;

	ke->skipped_cnt++;
	if (saved_job_class(job) != KEEP_DEATH || !log_limit_allows(&ke->log, now_ns()))
		return;
	more = log_limit_left_out(&ke->log);
	log_warn("serve: no last profile of PID %d (%s), %s: %s%s", job->name.pid, job->name.comm,
		 saved_reason_words(&job->name, words, sizeof(words)), why,
		 more ? "; nor for some before it" : "");
}

static void skip(struct saved_ended *ke, struct tracker *t, size_t i, const char *why)
{
	const struct saved_job *job = &ke->jobs.data[i];

	tracker_unpin_image(t, job->name.pid, job->generation);
	count_skipped(ke, job, why);
	del(ke, i);
}

static size_t least_worth(const struct saved_ended *ke)
{
	size_t least = 0;

	for (size_t i = 1; i < ke->jobs.cnt; i++)
		if (saved_job_by_worth(&ke->jobs.data[i], &ke->jobs.data[least]) > 0)
			least = i;
	return least;
}

/* What waits is in the maps, and in every snapshot: of those that are worth least, no more than are made at once. */
static bool has_room(const struct saved_ended *ke, const struct saved_job *job)
{
	const struct saved_job *j;
	size_t cnt = 0;

	vec_each(&ke->jobs, j)
		cnt += saved_job_class(j) == KEEP_ENDED;
	return ke->jobs.cnt < ENDED_CAP &&
	       (cnt < KEEP_BATCH_CAP || saved_job_class(job) != KEEP_ENDED);
}

void saved_ended_add(struct saved_ended *ke, struct tracker *t, const struct saved_job *job)
{
	if (!has_room(ke, job))
		skip(ke, t, least_worth(ke), "too many ended at once");
	if (vec_reserve(&ke->jobs, ke->jobs.cnt + 1) ||
	    tracker_pin_image(t, job->name.pid, job->generation)) {
		count_skipped(ke, job, "no memory");
		return;
	}
	ke->jobs.data[ke->jobs.cnt++] = *job;
}

void saved_ended_take(struct saved_ended *ke, const struct saved_job *job)
{
	for (size_t i = 0; i < ke->jobs.cnt; i++) {
		const struct saved_job *e = &ke->jobs.data[i];

		if (e->name.pid == job->name.pid && e->generation == job->generation) {
			del(ke, i);
			return;
		}
	}
}

void saved_ended_skip_late(struct saved_ended *ke, struct tracker *t, uint64_t now_ns)
{
	for (size_t i = ke->jobs.cnt; i-- > 0;)
		if (now_ns >= ke->jobs.data[i].queued_ns + ENDED_WAIT_NS)
			skip(ke, t, i, "profiles of others took too long");
}

/* Several of them from one snapshot. */

#define NOTE_BYTES 512
/* For the names of all jobs: the profile of a process near its limit must not wait for long. */
#define NAMES_NS (30 * NS_PER_S)
#define NOTES_CAP 2

void saved_batch_set(struct saved_batch *b, const struct saved_job *jobs, size_t cnt)
{
	b->job_cnt = cnt < KEEP_BATCH_CAP ? cnt : KEEP_BATCH_CAP;
	if (b->job_cnt)
		memcpy(b->jobs, jobs, b->job_cnt * sizeof(*jobs));
}

int saved_batch_open_files(struct saved_batch *b, int64_t epoch_ns)
{
	int64_t ms = epoch_ns / (int64_t)NS_PER_MS;
	int err = 0;

	/* Only this time distinguishes two ends of one process by exec, if they are found together. */
	if (ms <= b->last_epoch_ms && ms + KEEP_BATCH_CAP > b->last_epoch_ms)
		ms = b->last_epoch_ms + 1;
	for (size_t i = 0; i < b->job_cnt; i++) {
		b->jobs[i].name.taken_epoch_ms = b->last_epoch_ms = ms++;
		b->jobs[i].fd = err ? -1 : memfd_create("heaptap kept", MFD_CLOEXEC);
		if (!err && b->jobs[i].fd < 0)
			err = -errno;
	}
	return err;
}

void saved_batch_clear(struct saved_batch *b)
{
	for (size_t i = 0; i < b->job_cnt; i++)
		if (b->jobs[i].fd >= 0)
			close(b->jobs[i].fd);
	b->job_cnt = 0;
}

struct work {
	const struct saved_batch *batch;
	const struct result_source *src;
	const struct result_moment *moment;
	uint64_t names_end_ns;
};

static void inuse_of(const struct snapshot *s, const struct saved_job *job, struct estimate *ret)
{
	const struct snapshot_row *row;

	*ret = (struct estimate){ 0 };
	vec_each(&s->rows, row)
		if (row->pid == job->name.pid && row->generation == job->generation)
			estimate_merge(ret, &row->inuse);
}

struct notes {
	char text[NOTES_CAP][NOTE_BYTES];
	const char *line[NOTES_CAP];
	size_t cnt;
};

__attribute__((format(printf, 2, 3))) static void add_note(struct notes *n, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(n->text[n->cnt], NOTE_BYTES, fmt, args);
	va_end(args);
	n->line[n->cnt] = n->text[n->cnt];
	n->cnt++;
}

/* "in use 55.3 MiB (95 %: 54.0 MiB to 56.9 MiB)" */
static void inuse_text(const struct saved_job *job, const struct estimate *inuse, char *buf,
		       size_t buf_bytes)
{
	char value[UNITS_BUF], low[UNITS_BUF], high[UNITS_BUF];
	double low_bytes, high_bytes;

	format_bytes(inuse->bytes, value, sizeof(value));
	if (!saved_job_has_inuse(job)) {
		snprintf(buf, buf_bytes, "in use unknown");
	} else if (inuse->bytes_variance <= 0) {
		snprintf(buf, buf_bytes, "in use %s", value);
	} else {
		estimate_interval(inuse, &low_bytes, &high_bytes);
		format_bytes(low_bytes, low, sizeof(low));
		format_bytes(high_bytes, high, sizeof(high));
		/* bounds that look the same would say nothing */
		if (!strcmp(low, high))
			snprintf(buf, buf_bytes, "in use %s", value);
		else
			snprintf(buf, buf_bytes, "in use %s (95 %%: %s to %s)", value, low, high);
	}
}

/* Write two lines: the reason, the time and what it held; then what else is known of its memory. */
static void make_notes(const struct saved_job *job, const struct work *work,
		       const struct estimate *inuse, const char *reason, struct notes *ret)
{
	const struct cgroup_room_reading *r = &job->usage.cgroup;
	char time[KEEP_TIME_BYTES], held[4 * UNITS_BUF], peak[UNITS_BUF], before[UNITS_BUF];
	uint64_t now = work->moment->monotonic_ns, peak_ns = job->usage.peak_ns;
	int64_t ms = job->name.taken_epoch_ms;

	inuse_text(job, inuse, held, sizeof(held));
	add_note(ret, "kept: %s, %s, %s", reason,
		 saved_time_text(ms / 1000, (int)(ms % 1000), time), held);
	format_bytes(job->usage.peak_bytes, peak, sizeof(peak));
	format_duration(now > peak_ns ? now - peak_ns : 0, before, sizeof(before));
	if (r->limit_bytes)
		add_note(ret,
			 "kept memory: peak %s %s before; cgroup: usage %llu bytes, working set "
			 "%llu bytes, limit %llu bytes",
			 peak, before, (unsigned long long)r->usage_bytes,
			 (unsigned long long)r->working_bytes, (unsigned long long)r->limit_bytes);
	else
		add_note(ret, "kept memory: peak %s %s before; cgroup: no limit, or not known",
			 peak, before);
}

/* Runs in the child. */
static int make_job(void *ctx, size_t i)
{
	const struct work *work = ctx;
	const struct saved_job *job = &work->batch->jobs[i];
	const struct saved_store *store = work->batch->store;
	struct result_request r = {
		.endpoint = ENDPOINT_HEAP,
		.pid = job->name.pid,
		.generation = job->generation,
		.is_image = true,
		.names_ns = result_names_share(work->names_end_ns),
		.budget = &job->budget,
		.is_over = saved_job_is_last(job),
	};
	struct notes notes = { .cnt = 0 };
	struct saved_result *told = &work->batch->results[i];
	struct estimate inuse;
	char file[KEEP_NAME_BYTES], reason[64];
	int err;

	result_begin_child(work->src);
	inuse_of(work->moment->snapshot, job, &inuse);
	told->inuse_bytes = saved_job_has_inuse(job) ? inuse.bytes : -1;
	told->write_err = 0;
	saved_name_format(&job->name, file);
	saved_reason_words(&job->name, reason, sizeof(reason));
	make_notes(job, work, &inuse, reason, &notes);
	r.reason = reason;
	r.notes = notes.line;
	r.note_cnt = notes.cnt;
	err = result_make(work->src, work->moment, &r, job->fd);
	if (err)
		log_warn("serve: cannot make %s: %s", file, strerror(-err));
	else if (saved_store_has_dir(store))
		told->write_err = saved_store_write(store, &job->name, job->fd);
	if (told->write_err)
		log_warn("serve: cannot write %s: %s; the profile stays in memory", file,
			 strerror(-told->write_err));
	return err;
}

static int map_results(struct saved_batch *b)
{
	void *shared = mmap(NULL, KEEP_BATCH_CAP * sizeof(*b->results), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return -ENOMEM;
	b->results = shared;
	return 0;
}

int saved_batch_start(struct saved_batch *b, const struct result_source *src,
		      const struct result_moment *moment)
{
	const struct worker_options opts = { .what = "keeping profiles",
					     .is_urgent = saved_job_class(&b->jobs[0]) <=
							  KEEP_NEAR_LIMIT,
					     .moment_ns = moment->monotonic_ns };
	struct work work = {
		.batch = b, .src = src, .moment = moment, .names_end_ns = now_ns() + NAMES_NS
	};
	int err = b->results ? 0 : map_results(b);

	return err ? err : worker_start(&b->worker, &opts, b->job_cnt, make_job, &work);
}

void saved_batch_release(struct saved_batch *b)
{
	worker_release(&b->worker);
	saved_batch_clear(b);
	if (b->results)
		munmap(b->results, KEEP_BATCH_CAP * sizeof(*b->results));
	b->results = NULL;
}
