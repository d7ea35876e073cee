/* SPDX-License-Identifier: MIT */
/*
 * saved_jobs.c - see saver_priv.h.
 */
#include "record/saver_priv.h"

#include <sys/mman.h>

#include "base/loop.h"
#include "base/units.h"
#include "http/endpoints.h"
#include "record/saver.h"
#include "record/snapshot.h"
#include "track/tracker.h"

#define ENDED_CAP 64
/* How long the samples of an ended process are held when it is not the turn of its profile. */
#define ENDED_WAIT_NS (2 * NS_PER_S)
#define LOG_BURST 10
#define LOG_EVERY_NS (10 * NS_PER_S)

static enum saved_class saved_job_class(const struct saved_job *j)
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

/* True for a process or an image that has ended: this is the last chance to save a profile of it. */
static bool saved_job_is_last(const struct saved_job *j)
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
		 more ? "; nor of some before it" : "");
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

/* Remove the job of this image, if there is one, from those that wait; its samples are still held. */
static void saved_ended_take(struct saved_ended *ke, const struct saved_job *job)
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
		.reads_rows = job->name.reason == KEEP_LIMIT,
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

static int saved_batch_start(struct saved_batch *b, const struct result_source *src,
			     const struct result_moment *moment)
{
	const struct worker_options opts = { .what = "saving profiles",
					     .is_urgent = saved_job_class(&b->jobs[0]) <=
							  KEEP_NEAR_LIMIT,
					     .moment_ns = moment->monotonic_ns };
	struct work work = {
		.batch = b, .src = src, .moment = moment, .names_end_ns = now_ns() + NAMES_NS
	};
	int err = b->results ? 0 : map_results(b);

	return err ? err : worker_start(&b->worker, &opts, b->job_cnt, make_job, &work);
}

bool saved_pace_allows(const struct saved_pace *p, uint64_t now_ns)
{
	return !p->taken_ns || now_ns >= p->taken_ns + p->interval_ns;
}

void saved_pace_take(struct saved_pace *p, uint64_t now_ns)
{
	/* Growth had stopped for a while: this is another burst. */
	bool has_rested = !p->taken_ns || now_ns >= p->taken_ns + 2 * KEEP_PACE_MAX_NS;

	p->interval_ns = has_rested ? KEEP_PACE_MIN_NS : p->interval_ns * 2;
	if (p->interval_ns > KEEP_PACE_MAX_NS)
		p->interval_ns = KEEP_PACE_MAX_NS;
	p->taken_ns = now_ns;
}

bool saved_rest_is_over(const struct saved_rest *r, uint64_t now_ns, enum saved_class of)
{
	static const uint64_t times[] = {
		[KEEP_DEATH] = 5, [KEEP_NEAR_LIMIT] = 10, [KEEP_ENDED] = 10, [KEEP_AT_PEAK] = 32
	};

	if (of == KEEP_ENDED && r->had_ended)
		of = KEEP_AT_PEAK;
	return now_ns >= r->end_ns + r->took_ns * times[of];
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
	saved_set_has_inuse(k, w);
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

static bool is_rested(const struct saver *k, uint64_t now, enum saved_class of)
{
	return k->is_hurried || saved_rest_is_over(&k->rest, now, of);
}

static void choose_jobs(struct saver *k, uint64_t now)
{
	VEC(struct saved_job) all = { 0 };
	const struct saved_job *j;
	struct watched *w;
	int err = 0;

	if (!is_rested(k, now, KEEP_DEATH))
		return;
	vec_each(&k->ended.jobs, j)
		if (!err && is_rested(k, now, saved_job_class(j)))
			err = vec_push(&all, *j);
	vec_each(&k->watch.list, w) {
		if (!err && is_rested(k, now, KEEP_NEAR_LIMIT) && may_keep_limit(k, w, now))
			err = vec_push(&all, job_of(k, w, KEEP_LIMIT));
		if (!err && is_rested(k, now, KEEP_AT_PEAK) && may_keep(&w->peak, now))
			err = vec_push(&all, job_of(k, w, KEEP_PEAK));
	}
	if (all.cnt)
		qsort(all.data, all.cnt, sizeof(*all.data), saved_job_by_worth);
	saved_batch_set(&k->batch, all.data, all.cnt);
	vec_release(&all);
}

/* Clear the wants and waiting jobs that are now being handled; their paces begin, whatever the result. */
static void note_begun(struct saver *k, uint64_t now)
{
	for (size_t i = 0; i < k->batch.job_cnt; i++) {
		const struct saved_job *job = &k->batch.jobs[i];
		struct saved_want *want =
			want_of(saved_watch_find(&k->watch, job->name.pid), job->name.reason);

		if (want) {
			saved_pace_take(&want->pace, now);
			want->is_wanted = false;
		}
		saved_ended_take(&k->ended, job);
	}
}

/* From here on the child has a copy of the samples: those of ended processes can go. */
static void let_go_dead(struct saver *k)
{
	for (size_t i = 0; i < k->batch.job_cnt; i++) {
		const struct saved_job *job = &k->batch.jobs[i];

		if (saved_job_is_last(job))
			tracker_unpin_image(k->src.tracker, job->name.pid, job->generation);
	}
}

/* Start a child for what is due. false: nothing was started. */
static bool begin(struct saver *k)
{
	struct result_moment moment = { .monotonic_ns = now_ns() };
	uint64_t begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct snapshot *s = NULL;
	int err;

	choose_jobs(k, moment.monotonic_ns);
	if (!k->batch.job_cnt)
		return false;
	moment.epoch_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	note_begun(k, moment.monotonic_ns);
	err = saved_batch_open_files(&k->batch, moment.epoch_ns);
	if (!err)
		err = snapshot_take(k->src.engine, k->src.tracker, &s);
	k->rest.end_ns = now_ns();
	k->rest.took_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	k->rest.had_ended = false;
	for (size_t i = 0; i < k->batch.job_cnt; i++)
		k->rest.had_ended |= saved_job_class(&k->batch.jobs[i]) == KEEP_ENDED;
	moment.snapshot = s;
	if (!err)
		err = saved_batch_start(&k->batch, &k->src, &moment);
	let_go_dead(k);
	if (err) {
		log_warn("serve: cannot save profiles: %s", strerror(-err));
		k->failed_cnt += k->batch.job_cnt;
		saved_batch_clear(&k->batch);
	}
	snapshot_free(s);
	return !err;
}

/* Handle what has been made. */

/* Replace the earlier saved file of the running process. */
static void replace(struct saver *k, const struct saved_job *job, const struct saved_result *r)
{
	struct watched *w = saved_watch_find(&k->watch, job->name.pid);
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
	return !saved_job_is_last(job) && saved_watch_find(&k->watch, job->name.pid) ?
		       KEEP_RANK_RUNS :
		       saved_rank_of(&job->name);
}

static void take_result(struct saver *k, size_t i, int err)
{
	const struct saved_result *r = &k->batch.results[i];
	struct saved_job *job = &k->batch.jobs[i];

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

/* false: the child has not ended. */
static bool reap(struct saver *k)
{
	int err;

	if (!worker_reap(&k->batch.worker))
		return !k->batch.worker.pid;
	k->rest.took_ns += k->batch.worker.cpu_ns;
	k->rest.end_ns = now_ns();
	for (size_t i = 0; i < k->batch.job_cnt; i++) {
		if (worker_result(&k->batch.worker, i, &err) == WORKER_OVER && err != -EINTR)
			take_result(k, i, err);
		else /* the child was killed */
			k->failed_cnt += !saved_store_recover(k->store, &k->batch.jobs[i].name);
	}
	saved_batch_clear(&k->batch);
	return true;
}

/* As in serve/profiles.c. */
static void on_child(void *ctx, int fd)
{
	struct saver *k = ctx;

	if (!reap(k))
		loop_watch_once(k->loop, fd, on_child, k);
}

int saver_work(struct saver *k)
{
	if (!k)
		return 0;
	if (!k->batch.worker.pid)
		return begin(k) ? loop_watch_once(k->loop, k->batch.worker.fd, on_child, k) : 0;
	if (worker_check(&k->batch.worker))
		reap(k);
	return 0;
}

void saver_hurry(struct saver *k)
{
	if (k)
		k->is_hurried = true;
}

bool saver_is_busy(const struct saver *k)
{
	return k && (k->batch.worker.pid || k->ended.jobs.cnt);
}

uint64_t saver_reader_since_ns(const struct saver *k)
{
	return k ? worker_reader_since_ns(&k->batch.worker) : UINT64_MAX;
}
