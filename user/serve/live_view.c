/* SPDX-License-Identifier: MIT */
/*
 * live_view.c - the data of the pages and of /metrics: one snapshot shared by requests, and what the kernel says about
 * the memory of the tracked processes (see daemon_priv.h).
 */
#include <dirent.h>

#include "base/hmap.h"
#include "base/log.h"
#include "http/series.h"
#include "http/past.h"
#include "http/view.h"
#include "kernel/engine.h"
#include "kernel/reclaim.h"
#include "proc/process.h"
#include "profile/estimate.h"
#include "record/rows_reader.h"
#include "record/recording_notes.h"
#include "record/snapshot.h"
#include "serve/daemon_priv.h"
#include "track/files.h"
#include "track/governor.h"
#include "track/probes.h"
#include "track/tracker.h"

#define KEEP_EVERY_NS NS_PER_S
#define RETRY_NS NS_PER_S
#define START_NS (5 * NS_PER_MS) /* what a job costs besides its reading */

struct rows_watch {
	uint64_t interval_ns;
	struct rows_reader reader;
	/* What it reads. */
	pid_t pid;
	uint64_t image, began_ns;
	size_t next; /* the process that is looked at next */
	uint64_t rest_until_ns, keep_due_ns;
};

static bool is_followed(const struct rows_watch *w, const struct result_source *src)
{
	return tracker_follows(src->tracker, w->pid) && result_image(src, w->pid) == w->image;
}

/* CPU time; without an answer it may have taken all of its time. */
static uint64_t took_ns(const struct rows_watch *w, uint64_t now)
{
	const struct resident_reading *r = &w->reader.answer;
	uint64_t wall_ns = now - w->began_ns;

	return r->cpu_ns && r->cpu_ns + START_NS < wall_ns ? r->cpu_ns + START_NS : wall_ns;
}

/* A late one has mostly waited. */
struct rows_pause rows_pause_after(uint64_t took_ns, bool is_late, uint64_t interval_ns)
{
	struct rows_pause p = { took_ns * ROWS_OWN_REST, took_ns * ROWS_REST };

	if (is_late)
		p = (struct rows_pause){ ROWS_LATE_NS, ROWS_INTERVAL_MIN_NS };
	if (p.own_ns < interval_ns)
		p.own_ns = interval_ns;
	return p;
}

static void take(struct rows_watch *w, const struct result_source *src, uint64_t now)
{
	struct resident_reading *r = &w->reader.answer;
	struct rows_pause pause =
		rows_pause_after(took_ns(w, now), w->reader.is_late, w->interval_ns);
	int err;

	w->rest_until_ns = now + pause.all_ns;
	if (!is_followed(w, src) || process_has_ended(src->reader, w->pid))
		return; /* what was read before is the newest of it */
	r->is_counted = false; /* how often it was called meanwhile is not known */
	err = rows_past_add(src->rows, w->image, w->began_ns, w->began_ns + pause.own_ns, r);
	if (err || !r->is_known)
		log_debug("serve: resident memory of PID %d by row is unknown: %s", w->pid,
			  err ? strerror(-err) : r->why);
}

/* What is not followed any more is kept for a while, and then forgotten. */
static void keep_followed(struct rows_watch *w, const struct result_source *src, uint64_t now)
{
	size_t cnt = tracker_running_cnt(src->tracker);

	if (now < w->keep_due_ns)
		return;
	w->keep_due_ns = now + KEEP_EVERY_NS;
	for (size_t i = 0; i < cnt; i++)
		rows_past_keep(src->rows, result_image(src, tracker_running_at(src->tracker, i)),
			       now);
	rows_past_forget(src->rows, now);
}

static bool is_due(const struct result_source *src, uint64_t image, uint64_t now)
{
	const struct rows_past_image *i = rows_past_find(src->rows, image);

	return i ? now >= i->due_ns : !rows_past_is_full(src->rows);
}

static void begin(struct rows_watch *w, const struct result_source *src, uint64_t now)
{
	size_t cnt = tracker_running_cnt(src->tracker);
	struct process_info info;

	for (size_t i = 0; i < cnt; i++) {
		pid_t pid = tracker_running_at(src->tracker, w->next++ % cnt);
		uint64_t image = result_image(src, pid);

		if (!is_due(src, image, now) || process_glance(src->reader, pid, &info) ||
		    info.is_zombie)
			continue;
		w->pid = pid;
		w->image = image;
		w->began_ns = now;
		rows_reader_begin_job(&w->reader, src->reader, info.uid, pid, info.rss_bytes);
		if (!rows_reader_is_at_work(&w->reader)) /* other jobs have all places */
			w->rest_until_ns = now + RETRY_NS;
		return;
	}
}

/* Call a few times a second. Nothing is done if src keeps no rows. */
static void rows_watch_tick(struct rows_watch *w, const struct result_source *src)
{
	uint64_t now = now_ns();

	if (!src->rows)
		return;
	keep_followed(w, src, now);
	if (rows_reader_is_at_work(&w->reader)) {
		if (rows_reader_work(&w->reader))
			take(w, src, now);
	} else if (now >= w->rest_until_ns) {
		begin(w, src, now);
	}
}

static uint64_t image_of(pid_t pid, uint32_t generation)
{
	return (uint64_t)pid << 32 | generation;
}

static int on_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	const struct history_key key = { .stack_id = v->stack_id,
					 .image = image_of((pid_t)k->tgid, k->generation),
					 .context_id = v->context_id };

	return stack_past_add(ctx, &key, v->time_ns, v->size_bytes,
			      estimate_threshold_probability(v->threshold));
}

/* Name the images whose in-use is known. */
static int name_images(const struct result_source *src)
{
	size_t cnt = tracker_running_cnt(src->tracker);
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		pid_t pid = tracker_running_at(src->tracker, i);
		struct governor_view view;

		if (governor_view(src->governor, pid, &view) || !view.has_inuse)
			continue;
		err = stack_past_name_image(src->stacks, result_image(src, pid),
					    view.inuse_ns ? view.inuse_ns :
							    tracker_followed_ns(src->tracker, pid));
		if (err == -ENOSPC)
			err = 0; /* its page says so */
	}
	return err;
}

/* Record now and then what the stacks of each process hold: see http/past.h. Then it reads the live map. */
static int stack_watch_tick(const struct result_source *src)
{
	const struct stack_past_moment now = { now_ns(), (int64_t)clock_ns(CLOCK_REALTIME) };
	uint64_t begin_ns;
	int err;

	if (!src->stacks || now.time_ns < stack_past_due_ns(src->stacks))
		return 0;
	if (!tracker_running_cnt(src->tracker)) {
		stack_past_forget(src->stacks);
		return 0;
	}
	begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	stack_past_begin(src->stacks, &now);
	err = name_images(src);
	if (!err)
		err = engine_each_live(src->engine, on_live, src->stacks);
	if (err)
		stack_past_forget(src->stacks);
	else
		err = stack_past_end(src->stacks, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns);
	log_debug("serve: a moment of stacks took %.1f ms of CPU, %.1f MiB are stored",
		  (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / (double)NS_PER_MS,
		  (double)stack_past_bytes(src->stacks) / (1 << 20));
	return err;
}

_Static_assert(INUSE_PAST_PROCESSES_CAP >= HT_TARGETS_CAP, "each that is tracked has a past");

struct sums {
	const struct result_source *src;
	struct hmap by_pid; /* uint32_t -> bytes, a double's bits */
};

/*
 * Skip images before an exec and ended processes: what they held is gone, and only running processes are shown
 * here. (record/recorder.c keeps ended ones: what a process held at its end is what a recording is for.)
 */
static int add_image(void *ctx, const struct ht_image_key *key, const struct ht_image *image)
{
	struct sums *s = ctx;
	double bytes = (double)image->inuse_bytes_8 / 256, before;
	const uint64_t *known;
	uint64_t bits;

	if (tracker_is_over(s->src->tracker, (pid_t)key->tgid, key->generation))
		return 0;
	known = hmap_get(&s->by_pid, &key->tgid);
	if (known) {
		memcpy(&before, known, sizeof(before));
		bytes += before;
	}
	memcpy(&bits, &bytes, sizeof(bits));
	return hmap_put(&s->by_pid, &key->tgid, bits);
}

/* A process without a sum has allocated no sample yet: it holds nothing that was seen. */
static double held(const struct sums *s, pid_t pid)
{
	struct governor_view view;
	uint32_t key = (uint32_t)pid;
	const uint64_t *known = hmap_get(&s->by_pid, &key);
	double bytes = 0;

	if (governor_view(s->src->governor, pid, &view) || !view.has_inuse)
		return NAN;
	if (known)
		memcpy(&bytes, known, sizeof(bytes));
	return fmax(bytes, 0);
}

static double resident(struct reader *reader, pid_t pid)
{
	struct process_info info;

	return process_glance(reader, pid, &info) ? NAN : (double)info.rss_bytes;
}

/*
 * Record now and then what each followed process holds, and its resident memory: see http/past.h. It uses the sums
 * that BPF keeps of each process, so it costs one small read, and a look at /proc for each process. There is seldom
 * anything to do. 0 or a negative errno.
 */
static int inuse_watch_tick(const struct result_source *src, struct inuse_past *past)
{
	struct sums s = { .src = src };
	size_t cnt = tracker_running_cnt(src->tracker);
	int err;

	if (!inuse_past_begin(past, now_ns()))
		return 0;
	hmap_init(&s.by_pid, sizeof(uint32_t));
	err = engine_each_image(src->engine, add_image, &s);
	for (size_t i = 0; i < cnt && !err; i++) {
		pid_t pid = tracker_running_at(src->tracker, i);
		const double bytes[] = { [INUSE_PAST_INUSE] = held(&s, pid),
					 [INUSE_PAST_RESIDENT] = resident(src->reader, pid) };

		err = inuse_past_add(past, pid, tracker_followed_ns(src->tracker, pid), bytes);
		if (err == -ENOSPC)
			err = 0; /* ended ones make room next time; its page says so */
	}
	hmap_release(&s.by_pid);
	if (!err)
		inuse_past_end(past);
	return err;
}

/* The probed files for the pages: their sharing, and the number of their processes. */

struct live_files {
	VEC(struct serve_file) list; /* most processes first */
};

static void live_files_release(struct live_files *lf);

static int by_processes(const void *a, const void *b)
{
	const struct serve_file *x = a, *y = b;

	if (x->process_cnt != y->process_cnt)
		return x->process_cnt < y->process_cnt ? 1 : -1;
	return strcmp(x->path, y->path);
}

/* Copies the path: the file may be forgotten before the page is shown. */
static int add(struct live_files *lf, const struct probes_file *file)
{
	struct serve_file row = {
		.path = strdup(file->file->path),
		.id = file->file->id,
		.sharing = sharing_name(file->sharing),
		.process_cnt = (double)file->process_cnt,
		.hit_seconds = file->hit_ns / 1e9,
	};

	if (!row.path || vec_push(&lf->list, row)) {
		free((void *)row.path);
		return -ENOMEM;
	}
	return 0;
}

/* Replaces the content of *lf, which stays as it is on failure. */
static int live_files_make(const struct tracker *t, struct live_files *lf)
{
	struct live_files fresh = { 0 };
	struct probes_file file;

	for (size_t i = 0; probes_next_file(tracker_probes(t), &i, &file);) {
		if (add(&fresh, &file)) {
			live_files_release(&fresh);
			return -ENOMEM;
		}
	}
	if (fresh.list.cnt)
		qsort(fresh.list.data, fresh.list.cnt, sizeof(*fresh.list.data), by_processes);
	live_files_release(lf);
	*lf = fresh;
	return 0;
}

static void live_files_release(struct live_files *lf)
{
	struct serve_file *row;

	vec_each(&lf->list, row)
		free((void *)row->path);
	vec_release(&lf->list);
}

/* The cost of heaptap itself: descriptors by kind, memory. */
enum { OWN_FD_KIND_CNT = 7 };

/* Beginnings of links in /proc/self/fd. A link that matches none is of the last kind. */
static const struct kind {
	const char *name, *prefix;
} kinds[OWN_FD_KIND_CNT] = {
	{ "link", "anon_inode:bpf_link" },
	{ "perf_event", "anon_inode:[perf_event]" },
	{ "map", "anon_inode:bpf-map" },
	{ "program", "anon_inode:bpf-prog" },
	{ "socket", "socket:" },
	{ "file", "/" },
	{ "other", "" },
};

static size_t kind_of(int dir_fd, const char *name)
{
	char text[64] = "";
	size_t i = 0;

	if (readlinkat(dir_fd, name, text, sizeof(text) - 1) < 0)
		return OWN_FD_KIND_CNT - 1;
	while (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)) != 0)
		i++;
	return i;
}

/* Count descriptors by kind: every kind is listed, also with 0, and their sum is the total. */
static int own_fds_count(struct serve_named ret[static OWN_FD_KIND_CNT])
{
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");

	if (!dir)
		return -errno;
	for (size_t i = 0; i < OWN_FD_KIND_CNT; i++)
		ret[i] = (struct serve_named){ .name = kinds[i].name };
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != dirfd(dir))
			ret[kind_of(dirfd(dir), entry->d_name)].value++;
	closedir(dir);
	return 0;
}

static double own_rss_bytes(void)
{
	struct process_info info;

	return process_glance(NULL, getpid(), &info) ? NAN : (double)info.rss_bytes;
}

/* Maps whose entries are counted: live, totals, stacks, contexts, scopes, files. */
#define MAP_CNT 6
/* The members of struct reclaim_counts except the cycles. */
#define RECLAIMED_CNT 8

struct live_view {
	struct result_source src;
	uint64_t live_cap, stack_cap; /* the engine's */
	struct series_table *book;
	struct target_memory *memory;
	struct inuse_past *past;
	struct rows_watch rows_watch;
	struct live_processes processes;
	struct live_files files;
	struct serve_counter losses[LEDGER_LINE_CNT], lost_bytes[1];
	struct serve_map maps[MAP_CNT];
	struct serve_named reclaimed[RECLAIMED_CNT];
	struct serve_named fds[OWN_FD_KIND_CNT];
	struct serve_view view; /* points to the above */
	uint64_t made_ns; /* 0: not yet */
	uint64_t due_ns; /* when it is too old to be shown */
};

int live_view_new(const struct result_source *src, const struct daemon_options *opts,
		  struct live_view **ret)
{
	struct live_view *lv = calloc(1, sizeof(*lv));
	int err;

	if (!lv)
		return -ENOMEM;
	lv->src = *src;
	lv->live_cap = opts->live_cap;
	lv->stack_cap = opts->stack_cap;
	lv->rows_watch.interval_ns = opts->rows_interval_ns;
	err = series_table_new(opts->metrics_scopes, &lv->book);
	if (!err)
		err = target_memory_new(&lv->memory);
	if (!err)
		err = inuse_past_new(&lv->past);
	if (err)
		live_view_free(lv);
	else
		*ret = lv;
	return err;
}

void live_view_free(struct live_view *lv)
{
	if (!lv)
		return;
	live_processes_release(&lv->processes);
	live_files_release(&lv->files);
	series_table_free(lv->book);
	target_memory_free(lv->memory);
	inuse_past_free(lv->past);
	rows_reader_give_up(&lv->rows_watch.reader, "");
	free(lv);
}

static void make_losses(struct live_view *lv, const struct snapshot *s)
{
	struct ledger_lines ledger;

	ledger_lines_read(&ledger, s->stats, lv->src.tracker);
	lv->view.loss_cnt = 0;
	for (size_t i = 0; i < LEDGER_LINE_CNT; i++) {
		const struct ledger_line *l = &ledger.line[i];
		const struct serve_counter c = { l->name, l->meaning, l->value };

		if (i == HT_STAT_LIVE_FULL_BYTES)
			lv->lost_bytes[0] =
				(struct serve_counter){ "live_full", l->meaning, l->value };
		else if (l->kind != LEDGER_ACTIVITY)
			lv->losses[lv->view.loss_cnt++] = c;
	}
	lv->view.losses = lv->losses;
	lv->view.lost_bytes = lv->lost_bytes;
	lv->view.lost_bytes_cnt = 1;
}

static void make_maps(struct live_view *lv, const struct snapshot *s)
{
	uint64_t gone_cnt = reclaim_counts(tracker_reclaim(lv->src.tracker))->stacks;

	lv->maps[0] = (struct serve_map){ "live", (double)s->live_cnt, lv->live_cap };
	lv->maps[1] =
		(struct serve_map){ "stacks", (double)(s->stats[HT_STAT_STACKS_NEW] - gone_cnt),
				    lv->stack_cap };
	lv->maps[2] = (struct serve_map){ "totals", (double)s->total_cnt,
					  (double)lv->stack_cap * ENGINE_TOTALS_PER_STACK };
	lv->maps[3] = (struct serve_map){ "contexts", (double)s->context_cnt, HT_CONTEXTS_CAP };
	lv->maps[4] = (struct serve_map){ "scopes", (double)s->scopes.cnt, HT_SCOPES_CAP };
	lv->maps[5] =
		(struct serve_map){ "files", (double)track_files_cnt(lv->src.files), HT_FILES_CAP };
	lv->view.maps = lv->maps;
	lv->view.map_cnt = MAP_CNT;
}

static void make_reclaimed(struct live_view *lv)
{
	const struct reclaim_counts *c = reclaim_counts(tracker_reclaim(lv->src.tracker));
	const struct serve_named all[RECLAIMED_CNT] = {
		{ "samples", (double)c->samples }, { "sums", (double)c->sums },
		{ "bins", (double)c->bins },	   { "contexts", (double)c->contexts },
		{ "scopes", (double)c->scopes },   { "tasks", (double)c->tasks },
		{ "stacks", (double)c->stacks },   { "label_sets", (double)c->label_sets },
	};

	memcpy(lv->reclaimed, all, sizeof(all));
	lv->view.reclaimed = lv->reclaimed;
	lv->view.reclaimed_cnt = RECLAIMED_CNT;
}

static void make_own(struct live_view *lv)
{
	lv->view.own.rss_bytes = own_rss_bytes();
	lv->view.own.start_seconds = (double)lv->src.begin_epoch_ns / (double)NS_PER_S;
	if (!own_fds_count(lv->fds)) {
		lv->view.fds = lv->fds;
		lv->view.fd_cnt = OWN_FD_KIND_CNT;
	}
}

static int make(struct live_view *lv)
{
	struct live_processes processes = { 0 };
	struct snapshot *s = NULL;
	uint64_t begin_ns = now_ns();
	int err = snapshot_take_contexts(lv->src.engine, lv->src.tracker, &s);

	if (err)
		return err;
	memset(&lv->view, 0, sizeof(lv->view));
	lv->view.own.snapshot_seconds = (double)(now_ns() - begin_ns) / (double)NS_PER_S;
	err = live_files_make(lv->src.tracker, &lv->files);
	if (!err)
		err = live_processes_make(&lv->src, s, lv->book, lv->memory, &processes);
	if (!err) {
		live_processes_release(&lv->processes);
		lv->processes = processes;
		lv->view.processes = processes.all.data;
		lv->view.process_cnt = processes.all.cnt;
		lv->view.followed_cnt = (double)processes.all.cnt;
		lv->view.began_cnt = (double)tracker_counts(lv->src.tracker).followed_cnt;
		lv->view.ended_cnt = (double)tracker_counts(lv->src.tracker).ended_cnt;
		lv->view.sample_cnt = (double)s->stats[HT_STAT_SAMPLES];
		lv->view.rate_bytes = (double)lv->src.rate_bytes;
		lv->view.host_overhead = governor_host_share(lv->src.governor);
		lv->view.is_paused = governor_is_paused(lv->src.governor);
		lv->view.version = HEAPTAP_VERSION;
		make_losses(lv, s);
		make_maps(lv, s);
		make_reclaimed(lv);
		lv->view.files = lv->files.list.data;
		lv->view.file_cnt = lv->files.list.cnt;
		make_own(lv);
	}
	snapshot_free(s);
	return err;
}

int live_view_get(struct live_view *lv, struct serve_view *ret)
{
	uint64_t begin_ns, rest_ns;
	int err = 0;

	if (!lv->made_ns || now_ns() >= lv->due_ns) {
		begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		err = make(lv);
		lv->made_ns = err ? 0 : now_ns();
		rest_ns = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) * LIVE_VIEW_REST;
		lv->due_ns =
			lv->made_ns + (rest_ns > LIVE_VIEW_AGE_NS ? rest_ns : LIVE_VIEW_AGE_NS);
	}
	if (err)
		return err;
	*ret = lv->view;
	ret->past = lv->past;
	ret->stacks = lv->src.stacks;
	ret->rows = lv->src.rows;
	ret->own.snapshot_age_seconds = (double)(now_ns() - lv->made_ns) / (double)NS_PER_S;
	return 0;
}

void live_view_tick(struct live_view *lv)
{
	int err = inuse_watch_tick(&lv->src, lv->past);

	if (err)
		log_debug("serve: heap in use over time is not recorded: %s", strerror(-err));
	err = stack_watch_tick(&lv->src);
	if (err)
		log_debug("serve: heap in use of stacks over time is not recorded: "
			  "%s",
			  strerror(-err));
	target_memory_work(lv->memory, lv->src.reader);
	rows_watch_tick(&lv->rows_watch, &lv->src);
}
