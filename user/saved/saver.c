/* SPDX-License-Identifier: MIT */
/*
 * saver.c - see saver.h.
 *
 * Compares reasons (watch.c) with what may be spent (rules.h), decides which profiles are made now (batch.c), and
 * what becomes of those saved before.
 *
 * Jobs of ended processes wait in a list (ended.c), because nothing else knows of them any more. For running
 * processes the reason (peak, limit) is stored as a want of the process until a child is started.
 */
#include "saved/saver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "http/endpoints.h"
#include "kernel/engine.h"
#include "metrics/view.h"
#include "saved/saver_priv.h"
#include "saved/job.h"
#include "saved/store.h"
#include "serve/profile_file.h"
#include "snapshot/snapshot.h"
#include "track/tracker.h"

/* The saved profiles of a store, in the form that endpoints and pages need. */

static enum endpoint_moment moment_of(const struct saved_name *n)
{
	return n->reason == KEEP_PEAK  ? ENDPOINT_AT_PEAK :
	       n->reason == KEEP_LIMIT ? ENDPOINT_AT_LIMIT :
					 ENDPOINT_AT_LAST;
}

/* As saver_fetch(). */
static int saved_list_fetch(const struct saved_store *s, pid_t pid, enum endpoint_moment at)
{
	size_t cnt;
	const struct kept_file *f = saved_store_files(s, &cnt);

	while (cnt--) /* the newest that matches */
		if (f[cnt].name.pid == pid && moment_of(&f[cnt].name) == at)
			return saved_store_fetch(s, &f[cnt]);
	return -ENOENT;
}

static void view_file(const struct kept_file *f, struct serve_kept *ret)
{
	char time[KEEP_TIME_BYTES];
	int64_t ms = f->name.taken_epoch_ms;

	ret->pid = f->name.pid;
	ret->bytes = (double)f->bytes;
	ret->inuse_bytes = f->inuse_bytes < 0 ? NAN : f->inuse_bytes;
	ret->at = endpoint_moment_text(moment_of(&f->name));
	memcpy(ret->comm, f->name.comm, sizeof(ret->comm));
	saved_reason_words(&f->name, ret->why, sizeof(ret->why));
	snprintf(ret->time, sizeof(ret->time), "%s", saved_time_text(ms / 1000, -1, time));
}

/* Fill all but failed_cnt and skipped_cnt, which stay as they are. -ENOMEM; release *ret. */
static int saved_list_view(const struct saved_store *s, struct serve_keep *ret)
{
	struct saved_store_stats stats;
	const struct kept_file *f;
	struct serve_kept *kept;
	size_t cnt;

	saved_store_stats(s, &stats);
	f = saved_store_files(s, &cnt);
	kept = calloc(cnt + 1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) /* the newest first */
		view_file(&f[cnt - 1 - i], &kept[i]);
	ret->kept = kept;
	ret->kept_cnt = cnt;
	ret->file_cnt = (double)stats.cnt;
	ret->bytes = (double)stats.bytes;
	ret->memory_bytes = (double)stats.memory_bytes;
	ret->taken_cnt = (double)stats.added_cnt;
	ret->removed_cnt = (double)stats.removed_cnt;
	ret->unwritten_cnt = (double)stats.unwritten_cnt;
	return 0;
}

static void saved_list_release(struct serve_keep *v)
{
	free((void *)v->kept);
	memset(v, 0, sizeof(*v));
}

struct saver {
	struct saved_store *store;
	struct saved_watch *watch;
	struct saved_batch *batch;
	struct profile_source src;
	struct saved_ended *ended;
	struct saved_credit credit;
	uint64_t failed_cnt;
};

int saver_open(const struct saver_options *opts, struct saver **ret)
{
	const struct saved_store_options store_opts = { .dir = opts->dir,
							.file_max = opts->file_max,
							.bytes_max = opts->bytes_max };
	struct saver *k;
	struct err why;
	int err;

	if (!opts->file_max) {
		*ret = NULL;
		return 0;
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	saved_credit_init(&k->credit, now_ns());
	err = saved_watch_new(opts->limit_percent / 100, &k->watch);
	if (!err)
		err = saved_ended_new(&k->ended);
	if (err)
		goto out;
	err = saved_store_open(&store_opts, &k->store, &why);
	if (err) {
		log_error("serve: %s", why.text);
		goto out;
	}
	err = saved_batch_new(k->store, &k->batch);
out:
	if (err)
		saver_close(k);
	else
		*ret = k;
	return err;
}

void saver_start(struct saver *k, const struct profile_source *src)
{
	if (!k)
		return;
	k->src = *src;
}

void saver_change(struct saver *k, const struct saver_options *opts)
{
	if (!k)
		return;
	saved_store_set_bounds(k->store, opts->file_max, opts->bytes_max);
	saved_watch_set_limit(k->watch, opts->limit_percent / 100);
}

void saver_close(struct saver *k)
{
	if (!k)
		return;
	saved_batch_free(k->batch);
	saved_watch_free(k->watch);
	saved_ended_free(k->ended);
	saved_store_close(k->store);
	free(k);
}

/* Watched processes, and their ends. */

/* Add a job for an image that is over, unless nothing of it was ever sampled. */
static void add_ended(struct saver *k, const struct watched *w, const struct saved_name *name)
{
	struct saved_job job = {
		.name = *name, .generation = w->generation, .usage = w->usage, .fd = -1
	};
	struct ht_image image;

	if (engine_get_image(k->src.engine, name->pid, w->generation, &image))
		return;
	saved_usage_set_sums(&job.usage, &image);
	governor_take_record(k->src.governor, name->pid, &job.budget);
	job.queued_ns = now_ns();
	saved_ended_add(k->ended, k->src.tracker, &job);
}

static void end_process(struct saver *k, struct watched *w, const struct saved_name *name)
{
	add_ended(k, w, name);
	saved_store_set_rank(k->store, name->pid, name->start_epoch_s,
			     name->reason == KEEP_EXIT && !name->code ? KEEP_RANK_ENDED_WELL :
									KEEP_RANK_ENDED);
	saved_watch_del(k->watch, w);
}

/* Return the watch of the process that is followed now; NULL: no memory for it. comm: as for saved_watch_add(). */
static struct watched *get_watched(struct saver *k, pid_t pid, const char *comm, size_t comm_bytes)
{
	struct watched *w = saved_watch_find(k->watch, pid);

	if (w && !tracker_is_of(k->src.tracker, pid, w->generation)) {
		struct saved_name name = w->name;

		name.reason = KEEP_GONE; /* its end was not reported before the pid was reused */
		end_process(k, w, &name);
		w = NULL;
	}
	if (!w && !saved_watch_add(k->watch, k->src.tracker, pid, comm, comm_bytes))
		w = saved_watch_find(k->watch, pid);
	return w;
}

void saver_on_event(struct saver *k, const struct ht_event *event)
{
	struct watched *w;
	struct saved_name name;
	pid_t pid;

	if (!k || (event->kind != HT_EVENT_EXIT && event->kind != HT_EVENT_EXEC))
		return;
	pid = (pid_t)event->tgid;
	if (!tracker_is_of(k->src.tracker, pid, event->generation))
		return;
	w = get_watched(k, pid, event->comm, sizeof(event->comm));
	if (!w)
		return;
	name = w->name;
	if (event->kind == HT_EVENT_EXEC) {
		if (w->generation == event->generation)
			return; /* it was first watched after that exec */
		name.reason = KEEP_EXEC;
		add_ended(k, w, &name);
		saved_store_set_rank(k->store, pid, name.start_epoch_s, KEEP_RANK_ENDED);
		watched_begin_image(w, event);
	} else {
		w->generation = event->generation;
		saved_name_set_end(&name, event->other);
		end_process(k, w, &name);
	}
}

void saver_sync(struct saver *k)
{
	struct watched *w;

	if (!k)
		return;
	for (size_t i = 0; i < saved_watch_cnt(k->watch); i++)
		saved_watch_at(k->watch, i)->is_followed = false;
	for (size_t i = 0; i < tracker_running_cnt(k->src.tracker); i++) {
		pid_t pid = tracker_running_at(k->src.tracker, i);

		w = get_watched(k, pid, "", 0);
		if (w)
			w->is_followed = true;
	}
	for (size_t i = saved_watch_cnt(k->watch); i-- > 0;) {
		struct saved_name name;

		w = saved_watch_at(k->watch, i);
		if (w->is_followed)
			continue;
		name = w->name;
		name.reason = KEEP_GONE;
		end_process(k, w, &name);
	}
}

/* A process without a budget yet has all its probes. */
static void set_has_inuse(const struct saver *k, struct watched *w)
{
	struct governor_view view;

	w->has_inuse = governor_view(k->src.governor, w->name.pid, &view) || view.has_inuse;
}

void saver_tick(struct saver *k)
{
	uint64_t now = now_ns();

	if (!k)
		return;
	for (size_t i = 0; i < saved_watch_cnt(k->watch); i++)
		set_has_inuse(k, saved_watch_at(k->watch, i));
	saved_watch_tick(k->watch, k->src.engine, k->src.rate_bytes, now);
	if (!saved_batch_is_at_work(k->batch))
		saved_ended_skip_late(k->ended, k->src.tracker, &k->credit, now);
}

/* Choose what is made now. */

/* True for a reason that may be acted upon now. */
static bool may_keep(const struct saved_want *want, uint64_t now)
{
	return want->is_wanted && saved_pace_allows(&want->pace, now);
}

/* Near its limit; but a profile that shows who holds the memory must not be replaced by one that does not. */
static bool may_keep_limit(const struct saver *k, struct watched *w, uint64_t now)
{
	if (!may_keep(&w->limit, now))
		return false;
	set_has_inuse(k, w);
	if (w->limit.has_inuse && !w->has_inuse)
		w->limit.is_wanted = false;
	return w->limit.is_wanted;
}

/* Return the want of a running process; NULL: the job is a last one, or the process has ended. */
static struct saved_want *want_of(struct watched *w, enum saved_reason reason)
{
	if (!w)
		return NULL;
	return reason == KEEP_PEAK ? &w->peak : reason == KEEP_LIMIT ? &w->limit : NULL;
}

static struct saved_job job_of(const struct saver *k, const struct watched *w,
			       enum saved_reason reason)
{
	struct saved_job job = {
		.name = w->name, .generation = w->generation, .usage = w->usage, .fd = -1
	};

	job.name.reason = reason;
	governor_take_record(k->src.governor, w->name.pid, &job.budget);
	return job;
}

/* For which needs there is CPU time to spend. */
struct means {
	bool allows[KEEP_NEED_DEATH + 1];
};

static struct means means_of(struct saver *k, uint64_t now)
{
	struct means m;

	for (int need = KEEP_NEED_CALM; need <= KEEP_NEED_DEATH; need++)
		m.allows[need] = saved_credit_is_left(&k->credit, now, (enum saved_need)need);
	return m;
}

static void choose_jobs(struct saver *k, uint64_t now)
{
	const struct means m = means_of(k, now);
	VEC(struct saved_job) all = { 0 };
	int err = 0;

	for (size_t i = 0; i < saved_ended_cnt(k->ended); i++) {
		const struct saved_job *j = saved_ended_at(k->ended, i);

		if (!err && m.allows[saved_job_need(j)])
			err = vec_push(&all, *j);
	}
	for (size_t i = 0; i < saved_watch_cnt(k->watch); i++) {
		struct watched *w = saved_watch_at(k->watch, i);

		if (!err && m.allows[KEEP_NEED_LIMIT] && may_keep_limit(k, w, now))
			err = vec_push(&all, job_of(k, w, KEEP_LIMIT));
		if (!err && m.allows[KEEP_NEED_CALM] && may_keep(&w->peak, now))
			err = vec_push(&all, job_of(k, w, KEEP_PEAK));
	}
	if (all.cnt)
		qsort(all.data, all.cnt, sizeof(*all.data), saved_job_by_worth);
	saved_batch_set(k->batch, all.data, all.cnt);
	vec_release(&all);
}

static bool has_due(struct saver *k, uint64_t now)
{
	const struct means m = means_of(k, now);

	for (size_t i = 0; i < saved_ended_cnt(k->ended); i++)
		if (m.allows[saved_job_need(saved_ended_at(k->ended, i))])
			return true;
	for (size_t i = 0; i < saved_watch_cnt(k->watch); i++) {
		struct watched *w = saved_watch_at(k->watch, i);

		if ((m.allows[KEEP_NEED_LIMIT] && may_keep_limit(k, w, now)) ||
		    (m.allows[KEEP_NEED_CALM] && may_keep(&w->peak, now)))
			return true;
	}
	return false;
}

/* Clear the wants and waiting jobs that are now being handled; their paces begin, whatever the result. */
static void note_begun(struct saver *k, uint64_t now)
{
	for (size_t i = 0; i < saved_batch_cnt(k->batch); i++) {
		const struct saved_job *job = saved_batch_at(k->batch, i);
		struct saved_want *want =
			want_of(saved_watch_find(k->watch, job->name.pid), job->name.reason);

		if (want) {
			saved_pace_take(&want->pace, now);
			want->is_wanted = false;
		}
		saved_ended_take(k->ended, job);
	}
}

/* From here on the child has a copy of the samples: those of ended processes can go. */
static void let_go_dead(struct saver *k)
{
	for (size_t i = 0; i < saved_batch_cnt(k->batch); i++) {
		const struct saved_job *job = saved_batch_at(k->batch, i);

		if (saved_job_is_last(job))
			tracker_unpin_image(k->src.tracker, job->name.pid, job->generation);
	}
}

static int begin(struct saver *k)
{
	struct profile_request moment = { .monotonic_ns = now_ns() };
	struct snapshot *s = NULL;
	int err;

	moment.epoch_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	choose_jobs(k, moment.monotonic_ns);
	if (!saved_batch_cnt(k->batch))
		return -EAGAIN;
	note_begun(k, moment.monotonic_ns);
	err = saved_batch_open_files(k->batch, moment.epoch_ns);
	if (!err)
		err = snapshot_take(k->src.engine, &s);
	saved_credit_spend(&k->credit, now_ns() - moment.monotonic_ns);
	if (!err)
		err = saved_batch_start(k->batch, &k->src, s, &moment);
	let_go_dead(k);
	if (err) {
		log_warn("serve: cannot keep profiles: %s", strerror(-err));
		k->failed_cnt += saved_batch_cnt(k->batch);
		saved_batch_clear(k->batch);
	}
	snapshot_free(s);
	return err;
}

int saver_work(struct saver *k, int *ret_fd)
{
	*ret_fd = -1;
	if (!k)
		return 0;
	if (saved_batch_is_at_work(k->batch)) {
		if (saved_batch_check(k->batch))
			saver_reap(k);
	} else if (has_due(k, now_ns()) && !begin(k)) {
		*ret_fd = saved_batch_fd(k->batch);
	}
	return 0;
}

/* Handle what has been made. */

/* Replace the earlier saved file of the running process. */
static void replace(struct saver *k, const struct saved_job *job, const struct saved_result *r)
{
	struct watched *w = saved_watch_find(k->watch, job->name.pid);
	struct saved_want *want = want_of(w, job->name.reason);

	if (!want || w->generation != job->generation)
		return;
	if (want->file.pid)
		saved_store_drop(k->store, &want->file);
	want->file = job->name;
	want->kept_bytes = r->inuse_bytes < 0 ? 0 : r->inuse_bytes;
	want->has_inuse = r->inuse_bytes >= 0;
	want->is_wanted = false; /* the next tick finds out whether it has grown since */
}

static enum saved_rank rank_of(const struct saver *k, const struct saved_job *job)
{
	if (job->name.reason == KEEP_EXIT && !job->name.code)
		return KEEP_RANK_ENDED_WELL;
	return !saved_job_is_last(job) && saved_watch_find(k->watch, job->name.pid) ?
		       KEEP_RANK_RUNS :
		       KEEP_RANK_ENDED;
}

static void take_result(struct saver *k, const struct saved_result *r)
{
	struct saved_job *job = saved_batch_at(k->batch, r->job_idx);
	int err = r->make_err;

	if (!err) {
		err = saved_store_add(k->store, &job->name, job->fd, r->write_err, r->inuse_bytes,
				      rank_of(k, job));
		job->fd = -1;
	}
	if (err)
		k->failed_cnt++;
	else if (!saved_job_is_last(job))
		replace(k, job, r);
}

bool saver_reap(struct saver *k)
{
	struct saved_result r;
	uint64_t cpu_ns;
	size_t done = 0;

	if (!k)
		return true;
	if (!saved_batch_reap(k->batch, &cpu_ns))
		return !saved_batch_is_at_work(k->batch);
	saved_credit_spend(&k->credit, cpu_ns);
	while (saved_batch_result(k->batch, done, &r)) {
		take_result(k, &r);
		done++;
	}
	for (; done < saved_batch_cnt(k->batch); done++) /* the child was killed */
		k->failed_cnt +=
			!saved_store_recover(k->store, &saved_batch_at(k->batch, done)->name);
	saved_batch_clear(k->batch);
	return true;
}

bool saver_is_busy(const struct saver *k)
{
	return k && (saved_batch_is_at_work(k->batch) || saved_ended_cnt(k->ended));
}

uint64_t saver_reader_since_ns(const struct saver *k)
{
	return k ? saved_batch_reader_since_ns(k->batch) : UINT64_MAX;
}

int saver_fetch(const struct saver *k, pid_t pid, enum endpoint_moment at)
{
	return k ? saved_list_fetch(k->store, pid, at) : -ENOENT;
}

int saver_view(const struct saver *k, struct serve_keep *ret)
{
	int err;

	*ret = (struct serve_keep){ NULL, 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	if (!k)
		return 0;
	err = saved_list_view(k->store, ret);
	if (err)
		return err;
	ret->failed_cnt = (double)k->failed_cnt;
	ret->skipped_cnt = (double)saved_ended_skipped_cnt(k->ended);
	return 0;
}

void saver_view_release(struct serve_keep *v)
{
	saved_list_release(v);
}
