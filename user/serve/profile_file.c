/* SPDX-License-Identifier: MIT */
/* profile_file.c - see profile_file.h. */
#include "serve/profile_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_stream.h"
#include "base/hmap.h"
#include "budget/governor.h"
#include "http/process_page.h"
#include "serve/process_text.h"
#include "serve/stack_profile.h"
#include "serve/stack_watch.h"
#include "profile/pprof.h"
#include "report/report.h"
#include "report/report_diff.h"
#include "profile/profile.h"
#include "kernel/engine.h"
#include "snapshot/profile_build.h"
#include "snapshot/recording_notes.h"
#include "snapshot/scope_labels.h"
#include "snapshot/scope_notes.h"
#include "snapshot/snapshot.h"
#include "proc/process.h"
#include "track/tracker.h"

#define DIFF_ROWS 50
#define GROWTH_ROWS 25 /* in the page of a process */

/* Rows of a snapshot differ in these. */
struct row_key {
	uint64_t stack_id, labels_id, instance;
	uint32_t pid, generation, source, node;
	char comm[HT_COMM_BYTES];
};

static struct row_key key_of(const struct snapshot_row *row)
{
	struct row_key key = {
		.stack_id = row->stack_id,
		.labels_id = row->labels_id,
		.instance = row->instance,
		.pid = (uint32_t)row->pid,
		.generation = row->generation,
		.source = row->source,
		.node = row->node,
	};

	memcpy(key.comm, row->comm, sizeof(key.comm));
	return key;
}

static int index_base(const struct snapshot *base, struct hmap *idx)
{
	int err = 0;

	for (size_t i = 0; base && i < base->rows.cnt && !err; i++) {
		const struct row_key key = key_of(&base->rows.data[i]);

		err = hmap_put(idx, &key, i);
	}
	return err;
}

/* True for a wanted process that still runs, or for the wanted image. */
static bool is_wanted(const struct profile_source *src, const struct profile_request *request,
		      pid_t pid, uint32_t generation)
{
	if (request->pid && pid != request->pid)
		return false;
	return request->is_image ? generation == request->generation :
				   !tracker_is_over(src->tracker, pid, generation);
}

/* Choose the wanted rows; subtract what was allocated before the base. */
static int choose_rows(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_request *request, struct snapshot *ret)
{
	const struct snapshot_row *from;
	struct hmap idx;
	int err;

	hmap_init(&idx, sizeof(struct row_key));
	err = index_base(request->base, &idx);
	vec_each(&s->rows, from) {
		const struct row_key key = key_of(from);
		const uint64_t *known = hmap_get(&idx, &key);
		struct snapshot_row row = *from;

		if (err)
			break;
		if (!is_wanted(src, request, row.pid, row.generation))
			continue;
		if (known) /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is a base */
			estimate_subtract(&row.alloc, &request->base->rows.data[*known].alloc);
		if (row.alloc.objects > 0 || row.inuse.samples)
			err = vec_push(&ret->rows, row);
	}
	hmap_release(&idx);
	return err;
}

struct wanted {
	const struct profile_source *src;
	const struct profile_request *request;
};

static bool is_image_wanted(const void *ctx, pid_t pid, uint32_t generation)
{
	const struct wanted *w = ctx;

	return is_wanted(w->src, w->request, pid, generation);
}

/* When following began, on CLOCK_MONOTONIC; 0: not known. */
static uint64_t followed_ns(const struct profile_source *src, const struct profile_request *request)
{
	struct governor_record now;

	if (request->budget)
		return request->budget->followed_ns;
	governor_take_record(src->governor, request->pid, &now);
	return now.followed_ns;
}

static void set_times(const struct profile_source *src, const struct profile_request *request,
		      struct recording_facts *f)
{
	uint64_t since_ns = request->pid ? followed_ns(src, request) : 0;

	f->end_ns = request->epoch_ns;
	f->followed_ns = since_ns ?
				 request->epoch_ns - (int64_t)(request->monotonic_ns - since_ns) :
				 src->begin_epoch_ns;
	f->begin_ns =
		request->base ? request->epoch_ns - (int64_t)request->duration_ns : f->followed_ns;
	f->duration_ns = (uint64_t)(f->end_ns - f->begin_ns);
	f->is_delta = request->base != NULL;
}

struct own_shares {
	const struct wanted *wanted;
	uint64_t refused[HT_SHARED_CNT];
};

static int add_shares(void *ctx, const struct ht_image_key *key, const struct ht_image *image)
{
	struct own_shares *own = ctx;

	if (!is_image_wanted(own->wanted, (pid_t)key->tgid, key->generation))
		return 0;
	for (int table = 0; table < HT_SHARED_CNT; table++)
		own->refused[table] += image->refused[table];
	return 0;
}

/* What was refused to others is no loss of this process. */
static int own_stats(const struct wanted *wanted, const struct snapshot *s,
		     uint64_t ret[HT_STAT_CNT])
{
	struct own_shares own = { .wanted = wanted };
	int err = engine_each_image(wanted->src->engine, add_shares, &own);

	memcpy(ret, s->stats, sizeof(s->stats));
	for (int table = 0; table < HT_SHARED_CNT && !err; table++)
		ret[HT_STAT_SHARE_LIVE + table] = own.refused[table];
	return err;
}

/* What is in use is compared with the growth since the process is followed; a delta begins later. */
static void set_resident(const struct profile_source *src, const struct profile_request *request,
			 const struct process_info *info, struct recording_facts *f)
{
	const struct track_instance *image =
		instances_find(tracker_instances(src->tracker), request->pid,
			       tracker_generation(src->tracker, request->pid));

	f->rss_end_bytes = info->rss_bytes;
	if (!image || f->is_delta)
		return;
	f->rss_begin_bytes = image->rss_begin_bytes;
	f->rss_file_growth_bytes = (int64_t)info->file_bytes - (int64_t)image->file_begin_bytes;
}

static int add_notes(struct profile *p, const struct profile_source *src, const struct snapshot *s,
		     const struct profile_request *request)
{
	const struct wanted wanted = { src, request };
	const struct scope_notes_options scopes = {
		.labels = LABEL_ALL,
		.only_pid = request->pid,
		.by_process = !request->pid,
		.epoch_off_ns = request->epoch_ns - (int64_t)request->monotonic_ns,
	};
	struct recording_facts facts = {
		.command_argv = src->command_argv,
		.command_argc = src->command_argc,
		.tracker = src->tracker,
		.governor = src->governor,
		.is_wanted = is_image_wanted,
		.ctx = &wanted,
		.main_pid = request->pid,
		.budget = request->budget,
		.reason = request->reason,
		.is_merged = !request->pid,
		.is_over = request->is_over,
		.mode = src->mode,
		.rate_bytes = src->rate_bytes,
		.stats = s->stats,
	};
	uint64_t stats[HT_STAT_CNT];
	struct process_info info;
	int err = 0;

	if (request->pid) {
		err = own_stats(&wanted, s, stats);
		facts.stats = stats;
	}
	set_times(src, request, &facts);
	if (request->pid && !request->is_over && !process_glance(request->pid, &info))
		set_resident(src, request, &info, &facts);
	for (size_t i = 0; i < request->note_cnt && !err; i++)
		err = profile_comment(p, "%s", request->notes[i]);
	if (!err)
		err = recording_notes_add(&facts, p);
	return err ? err : scope_notes_add(s, src->engine, src->tracker, &scopes, p);
}

/* Find what the process held before, to show whether it grows. */
static int find_history(const struct profile_source *src, const struct profile_request *request,
			struct profile_build_options *opts, struct history **ret)
{
	uint64_t since_ns = request->wants_growth ? followed_ns(src, request) : 0;

	if (!since_ns)
		return 0;
	opts->begin_ns = since_ns;
	return stack_profile_history(src, stack_watch_image(src, request->pid), since_ns, ret,
				     &opts->is_history_partial);
}

int profile_file_build(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_request *request, struct profile **ret)
{
	struct profile_build_options opts = {
		.rate_bytes = src->rate_bytes,
		.label_processes = !request->pid,
		.main_pid = request->pid,
		.is_delta = request->base != NULL,
		.labels = LABEL_ALL,
		.symbols = profile_symbol_options(src),
	};
	struct snapshot chosen = *s; /* all but the rows are shared */
	struct history *history = NULL;
	struct profile *p = NULL;
	int err;

	memset(&chosen.rows, 0, sizeof(chosen.rows));
	err = choose_rows(src, s, request, &chosen);
	if (!err)
		err = find_history(src, request, &opts, &history);
	opts.history = history;
	if (!err)
		err = profile_build(&chosen, src->engine, src->files, src->tracker, &opts, &p);
	if (err)
		goto out;
	p->time_ns = request->epoch_ns;
	p->duration_ns = request->base ? (int64_t)request->duration_ns : 0;
	if (request->shows_allocs) {
		p->default_type_str = profile_str(p, "alloc_space");
		err = p->default_type_str < 0 ? -ENOMEM : 0;
	}
	if (!err)
		err = add_notes(p, src, s, request);
out:
	history_free(history);
	vec_release(&chosen.rows);
	if (err)
		profile_free(p);
	else
		*ret = p;
	return err;
}

static int write_text(const struct profile *p, int fd)
{
	const struct report_options opts = { .format = REPORT_HEAP };
	FILE *out;
	int err = fd_stream_open(fd, &out);

	return err ? err : fd_stream_close(out, report_write(p, &opts, out));
}

/* Such a format cannot say that in use is unknown. */
static bool is_only_inuse(const struct profile_request *request)
{
	return request->form == PROFILE_ADDRESSES ||
	       (request->form == PROFILE_TEXT && !request->shows_allocs);
}

static int write_pictures(const struct profile *p, const struct profile_request *request, int fd)
{
	const struct report_options opts = { .format = REPORT_HTML,
					     .html_base = request->pid ? "../../" : "" };
	FILE *out;
	int err = fd_stream_open(fd, &out);

	return err ? err : fd_stream_close(out, report_write(p, &opts, out));
}

static struct report_options diff_options(const struct profile_request *request)
{
	return (struct report_options){
		.by = REPORT_BY_STACK,
		.format = request->is_json  ? REPORT_JSON :
			  request->is_plain ? REPORT_TEXT :
					      REPORT_HTML,
		.row_cap = request->is_plain ? DIFF_ROWS : 0,
		.html_base = "../../",
	};
}

static int write_diff(const struct profile *at[2], const struct profile_request *request, int fd)
{
	const struct report_options opts = diff_options(request);
	const struct stack_moments *m = request->moments;
	FILE *out;
	int err = fd_stream_open(fd, &out);

	if (err)
		return err;
	err = report_diff(at[0], m->before[0] ? m->before : request->saved_name, at[1],
			  m->after[0] ? m->after : "now", &opts, out, NULL);
	/* the reason text is for users who compare files */
	return fd_stream_close(out, err == -EINVAL ? -EDOM : err);
}

/* Leaves the offset of fd alone: others may read it at the same time. */
static int read_saved(int fd, struct profile **ret)
{
	struct stat st;
	char *data;
	int err;

	if (fstat(fd, &st))
		return -errno;
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	if (pread(fd, data, (size_t)st.st_size, 0) == st.st_size)
		err = pprof_read_mem(data, (size_t)st.st_size, ret, NULL);
	else
		err = -EIO;
	free(data);
	return err;
}

static int write_form(const struct profile_source *src, struct profile *p,
		      const struct profile *saved, const struct profile_request *request, int fd)
{
	switch (request->form) {
	case PROFILE_PPROF:
		return pprof_write(p, fd);
	case PROFILE_TEXT:
		return write_text(p, fd);
	case PROFILE_PICTURES:
		return write_pictures(saved ? saved : p, request, fd);
	default:
		return process_text_write(src, p, request->pid, request->form == PROFILE_GROWTH,
					  fd);
	}
}

static int write_moments(const struct profile_source *src, const struct profile_request *request,
			 int fd)
{
	const struct report_options opts = diff_options(request);
	struct profile *at[2] = { NULL, NULL };
	FILE *out;
	int err = stack_profile_pair(src, request->pid, request->moments, at);

	if (!err)
		err = fd_stream_open(fd, &out);
	if (!err)
		err = fd_stream_close(out, report_diff(at[0], request->moments->before, at[1],
						       request->moments->after, &opts, out, NULL));
	profile_free(at[0]);
	profile_free(at[1]);
	return err;
}

static int write_stacks(const struct profile *p, const struct profile_request *request, FILE *out)
{
	int64_t before_ns = p->recording.duration_ns - (int64_t)STACK_PROFILE_HOUR_NS;
	const struct report_options opts = {
		.by = request->by_scope ? REPORT_BY_SCOPE : REPORT_BY_STACK,
		.format = REPORT_JSON,
		.sort = REPORT_SORT_GROWTH,
		.warm_up_ns = before_ns > 0 && !request->of_day ? (uint64_t)before_ns : 0,
	};
	const char *rest;
	int err;

	if (request->form == PROFILE_STACKS)
		return report_write(p, &opts, out);
	rest = strstr(request->page, PROCESS_PAGE_STACKS);
	fwrite(request->page, 1, (size_t)(rest - request->page), out);
	err = report_growth_table(p, GROWTH_ROWS, out);
	fputs(rest + strlen(PROCESS_PAGE_STACKS), out);
	return err;
}

static int write_past(const struct profile_source *src, const struct profile_request *request,
		      int fd)
{
	struct profile *p;
	FILE *out;
	int err;

	if (request->form == PROFILE_MOMENTS)
		return write_moments(src, request, fd);
	err = stack_profile_growth(src, request->pid, &p);
	if (err)
		return err;
	err = fd_stream_open(fd, &out);
	if (!err)
		err = fd_stream_close(out, write_stacks(p, request, out));
	if (!err && request->form == PROFILE_STACKS_PAGE && p->lacks_late_names)
		err = -EAGAIN;
	profile_free(p);
	return err;
}

bool profile_file_is_past(enum profile_form form)
{
	return form == PROFILE_MOMENTS || form == PROFILE_STACKS || form == PROFILE_STACKS_PAGE;
}

/* Get one side of a difference: a saved profile, a moment, or now. */
static int side_of(const struct profile_source *src, const struct snapshot *s,
		   const struct profile_request *request, bool is_after, struct profile **ret)
{
	uint64_t time_ns = is_after ? request->moments->after_ns : request->moments->before_ns;

	if (is_after ? request->has_after : request->has_saved)
		return read_saved(is_after ? request->after_fd : request->saved_fd, ret);
	return time_ns ? stack_profile_at(src, request->pid, time_ns, ret) :
			 profile_file_build(src, s, request, ret);
}

static int write_sides(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_request *request, int fd)
{
	struct profile *at[2] = { NULL, NULL };
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		err = side_of(src, s, request, i, &at[i]);
	if (!err)
		err = write_diff((const struct profile *[2]){ at[0], at[1] }, request, fd);
	profile_free(at[0]);
	profile_free(at[1]);
	return err;
}

int profile_file_write(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_request *request, int fd)
{
	struct profile *p = NULL, *saved = NULL;
	int err;

	if (profile_file_is_past(request->form))
		return write_past(src, request, fd);
	if (request->form == PROFILE_DIFF)
		return write_sides(src, s, request, fd);
	err = request->has_saved ? read_saved(request->saved_fd, &saved) : 0;

	if (!err && !request->has_saved)
		err = profile_file_build(src, s, request, &p);
	if (!err && p && is_only_inuse(request) && p->recording.inuse == RECORDING_INUSE_UNKNOWN)
		err = -ENODATA;
	if (!err)
		err = write_form(src, p, saved, request, fd);
	profile_free(p);
	profile_free(saved);
	return err;
}
