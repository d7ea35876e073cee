/* SPDX-License-Identifier: MIT */
/*
 * batch.c - see saver_priv.h.
 *
 * The child writes a result for each finished job, so that finished profiles are not lost if it is killed.
 */
#include "saved/saver_priv.h"

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
#include "serve/profile_file.h"
#include "saved/store.h"
#include "snapshot/snapshot.h"
#include "symbol/name_cache.h"
#include "symbol/slow_files.h"

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
	b->result_fd = memfd_create("heaptap kept", MFD_CLOEXEC);
	if (b->result_fd < 0)
		err = -errno;
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
	if (b->result_fd >= 0)
		close(b->result_fd);
	b->result_fd = -1;
}

struct work {
	const struct saved_batch *batch;
	const struct profile_source *src;
	const struct snapshot *s;
	const struct profile_request *moment;
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
		snprintf(buf, buf_bytes, "in use: not known");
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

static struct saved_result make_job(const struct work *work, const struct saved_job *job)
{
	const struct saved_store *store = work->batch->store;
	struct profile_source src = *work->src;
	struct profile_request request = *work->moment;
	struct notes notes = { .cnt = 0 };
	struct saved_result r = { .inuse_bytes = -1 };
	struct estimate inuse;
	char file[KEEP_NAME_BYTES], reason[64];

	inuse_of(work->s, job, &inuse);
	if (saved_job_has_inuse(job))
		r.inuse_bytes = inuse.bytes;
	saved_name_format(&job->name, file);
	saved_reason_words(&job->name, reason, sizeof(reason));
	make_notes(job, work, &inuse, reason, &notes);
	request.pid = job->name.pid;
	request.is_image = true;
	request.generation = job->generation;
	request.budget = &job->budget;
	request.reason = reason;
	request.is_over = saved_job_is_last(job);
	request.notes = notes.line;
	request.note_cnt = notes.cnt;
	src.names_ns = profile_names_share(work->names_end_ns);
	r.make_err = profile_file_write(&src, work->s, &request, job->fd);
	if (r.make_err)
		log_warn("serve: cannot make %s: %s", file, strerror(-r.make_err));
	else if (saved_store_has_dir(store))
		r.write_err = saved_store_write(store, &job->name, job->fd);
	if (r.write_err)
		log_warn("serve: cannot write %s: %s: it is kept in memory", file,
			 strerror(-r.write_err));
	return r;
}

/* Runs in the child. */
static int make_jobs(void *ctx)
{
	const struct work *work = ctx;
	const struct saved_batch *b = work->batch;
	int failed_cnt = 0;

	slow_files_hide(work->src->slow);
	name_cache_hide(work->src->names);
	for (size_t i = 0; i < b->job_cnt; i++) {
		struct saved_result r = make_job(work, &b->jobs[i]);

		r.job_idx = (uint32_t)i;
		failed_cnt += r.make_err || r.write_err;
		if (write(b->result_fd, &r, sizeof(r)) != sizeof(r))
			return 1;
	}
	return failed_cnt > 0;
}

int saved_batch_start(struct saved_batch *b, const struct profile_source *src,
		      const struct snapshot *s, const struct profile_request *moment)
{
	const struct worker_options opts = { .is_urgent = saved_job_class(&b->jobs[0]) <=
							  KEEP_NEAR_LIMIT,
					     .moment_ns = moment->monotonic_ns };
	struct work work = { .batch = b,
			     .src = src,
			     .s = s,
			     .moment = moment,
			     .names_end_ns = now_ns() + NAMES_NS };

	return worker_start(&b->worker, &opts, make_jobs, &work);
}

bool saved_batch_result(const struct saved_batch *b, size_t i, struct saved_result *ret)
{
	return i < b->job_cnt &&
	       pread(b->result_fd, ret, sizeof(*ret), (off_t)(i * sizeof(*ret))) == sizeof(*ret);
}
