/* SPDX-License-Identifier: MIT */
/* live_view.c - see daemon_priv.h. */
#include "serve/daemon_priv.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "track/governor.h"
#include "kernel/engine.h"
#include "kernel/reclaim.h"
#include "metrics/inuse_past.h"
#include "metrics/series.h"
#include "metrics/view.h"
#include "proc/process.h"
#include "serve/live_view_priv.h"
#include "result/make.h"
#include "snapshot/ledger_notes.h"
#include "snapshot/snapshot.h"
#include "track/files.h"
#include "track/probes.h"
#include "track/tracker.h"

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

/* The cost of heaptap itself: descriptors by kind, CPU time, memory. */
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

/* Fill cpu_seconds and rss_bytes. */
static void own_cost_read(struct serve_own *ret)
{
	struct process_info info;

	ret->cpu_seconds = (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / (double)NS_PER_S;
	ret->rss_bytes = process_glance(getpid(), &info) ? NAN : (double)info.rss_bytes;
}

/* Maps whose entries are counted: live, totals, stacks, contexts, scopes, files. */
#define MAP_CNT 6
/* The members of struct reclaim_counts except the cycles. */
#define RECLAIMED_CNT 8

struct live_view {
	struct result_source src;
	struct live_view_options opts;
	struct series_table *book;
	struct target_memory *memory;
	struct inuse_past *past;
	struct rows_watch *rows_watch;
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

int live_view_new(const struct result_source *src, const struct live_view_options *opts,
		  struct live_view **ret)
{
	struct live_view *lv = calloc(1, sizeof(*lv));
	int err;

	if (!lv)
		return -ENOMEM;
	lv->src = *src;
	lv->opts = *opts;
	err = series_table_new(opts->scopes_max, &lv->book);
	if (!err)
		err = target_memory_new(&lv->memory);
	if (!err)
		err = inuse_past_new(&lv->past);
	if (!err)
		err = rows_watch_new(opts->rows_interval_ns, &lv->rows_watch);
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
	rows_watch_free(lv->rows_watch);
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
	const struct live_view_options *o = &lv->opts;
	uint64_t gone_cnt = reclaim_counts(tracker_reclaim(lv->src.tracker))->stacks;

	lv->maps[0] = (struct serve_map){ "live", (double)s->live_cnt, o->live_cap };
	lv->maps[1] =
		(struct serve_map){ "stacks", (double)(s->stats[HT_STAT_STACKS_NEW] - gone_cnt),
				    o->stack_cap };
	lv->maps[2] = (struct serve_map){ "totals", (double)s->total_cnt,
					  (double)o->stack_cap * ENGINE_TOTALS_PER_STACK };
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
	own_cost_read(&lv->view.own);
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
		log_debug("serve: what processes hold is not kept now: %s", strerror(-err));
	err = stack_watch_tick(&lv->src);
	if (err)
		log_debug("serve: what stacks hold is not kept now: %s", strerror(-err));
	target_memory_work(lv->memory);
	rows_watch_tick(lv->rows_watch, &lv->src);
}
