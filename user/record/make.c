/* SPDX-License-Identifier: MIT */
/*
 * make.c - makes one answer of heaptap serve: a profile, a difference, or the growth of stacks, in the requested
 * format (see make.h).
 *
 * It runs in a child process. The samples come from a snapshot, from the past of the stacks (http/past.h), or from a
 * saved profile; a difference has two of these.
 */
#include "record/make.h"

#include <poll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "http/endpoints.h"
#include "http/pages.h"
#include "http/past.h"
#include "kernel/engine.h"
#include "proc/process.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/rows_reader.h"
#include "report/report.h"
#include "report/report_diff.h"
#include "record/make_priv.h"
#include "record/profile_build.h"
#include "record/recording_notes.h"
#include "record/scope_labels.h"
#include "record/snapshot.h"
#include "symbol/symbol.h"
#include "track/governor.h"
#include "track/instances.h"
#include "track/tracker.h"

#define DIFF_ROWS 50
#define GROWTH_ROWS 25 /* in the page of a process */
#define NAMES_NS (60 * NS_PER_S)
#define HOUR_NS (3600 * NS_PER_S)
#define SAVED_ROWS_NS \
	NS_PER_S /* to read rows for a profile that is saved: others wait for theirs */
#define ROWS_LOOK_MS 50

void result_begin_child(const struct result_source *src)
{
	slow_files_hide(src->slow);
	name_cache_hide(src->names);
}

uint64_t result_names_share(uint64_t end_ns)
{
	uint64_t now = now_ns();

	return now < end_ns ? (end_ns - now) / 2 : 1;
}

uint64_t result_image(const struct result_source *src, pid_t pid)
{
	return (uint64_t)pid << 32 | tracker_generation(src->tracker, pid);
}

struct symbol_options result_symbol_options(const struct result_source *src,
					    const struct result_request *r)
{
	return (struct symbol_options){
		.lines = true,
		.demangle = true,
		.end_ns = now_ns() + (r->names_ns ? r->names_ns : NAMES_NS),
		/* somebody looks at a page: names without lines are better than none */
		.is_hurried = r->names_ns && r->page,
		.wants_all = r->wants_all_names,
		.slow = src->slow,
		.names = src->names
	};
}

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
static bool is_wanted(const struct result_source *src, const struct result_request *r, pid_t pid,
		      uint32_t generation)
{
	if (r->pid && pid != r->pid)
		return false;
	return r->is_image ? generation == r->generation :
			     !tracker_is_over(src->tracker, pid, generation);
}

/* Choose the wanted rows; subtract what was allocated before the base. */
static int choose_rows(const struct result_source *src, const struct result_moment *m,
		       const struct result_request *r, struct snapshot *ret)
{
	const struct snapshot_row *from;
	struct hmap idx;
	int err;

	hmap_init(&idx, sizeof(struct row_key));
	err = index_base(r->base, &idx);
	vec_each(&m->snapshot->rows, from) {
		struct snapshot_row row;
		struct row_key key;
		const uint64_t *known;

		if (err)
			break;
		if (!is_wanted(src, r, from->pid, from->generation))
			continue;
		key = key_of(from);
		known = hmap_get(&idx, &key);
		row = *from;
		if (known) /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is a base */
			estimate_subtract(&row.alloc, &r->base->rows.data[*known].alloc);
		if (row.alloc.objects > 0 || row.inuse.samples)
			err = vec_push(&ret->rows, row);
	}
	hmap_release(&idx);
	return err;
}

struct wanted {
	const struct result_source *src;
	const struct result_request *r;
};

static bool is_image_wanted(const void *ctx, pid_t pid, uint32_t generation)
{
	const struct wanted *w = ctx;

	return is_wanted(w->src, w->r, pid, generation);
}

/* 0: all that was allocated since it is followed. */
static int64_t duration_ns(const struct result_moment *m, const struct result_request *r)
{
	return r->base ? (int64_t)(m->monotonic_ns - r->base_ns) : 0;
}

/* When following began, on CLOCK_MONOTONIC; 0: not known. */
static uint64_t followed_ns(const struct result_source *src, const struct result_request *r)
{
	struct governor_record now;

	if (r->budget)
		return r->budget->followed_ns;
	governor_take_record(src->governor, r->pid, &now);
	return now.followed_ns;
}

static void set_times(const struct result_source *src, const struct result_moment *m,
		      const struct result_request *r, struct recording_facts *f)
{
	uint64_t since_ns = r->pid ? followed_ns(src, r) : 0;

	f->end_ns = m->epoch_ns;
	f->followed_ns = since_ns ? m->epoch_ns - (int64_t)(m->monotonic_ns - since_ns) :
				    src->begin_epoch_ns;
	f->begin_ns = r->base ? m->epoch_ns - duration_ns(m, r) : f->followed_ns;
	f->duration_ns = (uint64_t)(f->end_ns - f->begin_ns);
	f->is_delta = r->base != NULL;
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
	struct engine *e = wanted->src->engine;
	const struct result_request *r = wanted->r;
	const struct ht_image_key key = { (uint32_t)r->pid, r->generation };
	struct own_shares own = { .wanted = wanted };
	struct ht_image image;
	int err = 0;

	if (!r->is_image)
		err = engine_each_image(e, add_shares, &own);
	else if (!engine_get_image(e, r->pid, r->generation, &image))
		add_shares(&own, &key, &image);
	memcpy(ret, s->stats, sizeof(s->stats));
	for (int table = 0; table < HT_SHARED_CNT && !err; table++)
		ret[HT_STAT_SHARE_LIVE + table] = own.refused[table];
	return err;
}

/* What is in use is compared with the growth since the process is followed; a delta begins later. */
static void set_resident(const struct result_source *src, const struct result_request *r,
			 const struct process_info *info, struct recording_facts *f)
{
	const struct track_instance *image = instances_find(
		tracker_instances(src->tracker), r->pid, tracker_generation(src->tracker, r->pid));

	f->rss_end_bytes = info->rss_bytes;
	if (!image || f->is_delta)
		return;
	f->rss_begin_bytes = image->rss_begin_bytes;
	f->rss_file_growth_bytes = (int64_t)info->file_bytes - (int64_t)image->file_begin_bytes;
}

static uint64_t image_of(const struct result_source *src, const struct result_request *r)
{
	return r->is_image ? (uint64_t)r->pid << 32 | r->generation : result_image(src, r->pid);
}

/* Rows of resident memory that are read for one result. */
struct rows_now {
	struct resident_reading reading; /* not known: why */
	struct resident_reading once; /* in place of another one before */
	struct snapshot *snapshot; /* of after that, with what blocks pin; NULL: not known */
};

/*
 * Read what is resident of the process now, and for wants_pinned what its blocks pin. Not if it failed the last time, as the
 * process may make its reader wait. 0, or why the samples cannot be read again.
 */
static int read_rows(const struct result_source *src, const struct result_request *r,
		     struct rows_now *ret)
{
	uint64_t image = image_of(src, r);
	const struct rows_past_image *i = src->rows ? rows_past_find(src->rows, image) : NULL;
	struct resident_pins pins = { 0 };
	struct rows_reader reader;
	struct process_info info;
	int err = 0;

	snprintf(ret->reading.why, sizeof(ret->reading.why), "%s",
		 !src->rows	? "resident memory is not read: --rows-interval 0" :
		 i && i->why[0] ? i->why :
		 process_glance(src->reader, r->pid, &info) ? "the process has ended" :
							      "");
	if (ret->reading.why[0])
		return 0;
	if (r->wants_pinned && (snapshot_list_blocks(src->engine, r->pid, (uint32_t)image, &pins) ||
				resident_pins_share(&pins)))
		resident_pins_release(&pins);
	rows_reader_begin(&reader, r->pid, info.rss_bytes,
			  r->wants_pinned ? UINT64_MAX : SAVED_ROWS_NS, &pins);
	while (!rows_reader_work(&reader))
		poll(&(struct pollfd){ .fd = reader.child.fd, .events = POLLIN }, 1, ROWS_LOOK_MS);
	ret->reading = reader.answer;
	ret->reading.is_counted = false; /* how often it was called meanwhile is not known */
	if (pins.bytes && ret->reading.is_proved)
		err = snapshot_take_moment(src->engine, NULL, &pins, &ret->snapshot);
	resident_pins_release(&pins);
	return err;
}

/* What was resident of the image by row when it was first read, and when last. The readings stay in the past and in *now. */
static void set_rows(const struct result_source *src, const struct result_moment *m,
		     const struct result_request *r, struct rows_now *now,
		     struct recording_facts *f)
{
	const struct rows_past_image *i =
		src->rows && !r->base ? rows_past_find(src->rows, image_of(src, r)) : NULL;
	bool is_now = now->reading.is_known;

	if (!i && !is_now)
		return;
	snprintf(now->once.why, sizeof(now->once.why), "%s",
		 is_now || i->last_ns ? "it was read only once" : i->why);
	f->rows_begin =
		i && i->first_ns && (is_now || i->first_ns < i->last_ns) ? &i->first : &now->once;
	f->rows_end = is_now ? &now->reading : i->last_ns ? &i->last : &now->once;
	if (!is_now && i->last_ns && i->last_ns < m->monotonic_ns)
		f->rows_age_ns = m->monotonic_ns - i->last_ns;
}

static int add_notes(struct profile *p, const struct result_source *src,
		     const struct result_moment *m, const struct result_request *r,
		     struct rows_now *now)
{
	const struct wanted wanted = { src, r };
	const struct scope_notes_options scopes = {
		.labels = LABEL_ALL,
		.only_pid = r->pid,
		.by_process = !r->pid,
		.epoch_off_ns = m->epoch_ns - (int64_t)m->monotonic_ns,
	};
	struct recording_facts facts = {
		.command_argv = src->command_argv,
		.command_argc = src->command_argc,
		.tracker = src->tracker,
		.governor = src->governor,
		.is_wanted = is_image_wanted,
		.ctx = &wanted,
		.main_pid = r->pid,
		.budget = r->budget,
		.reason = r->reason,
		.is_merged = !r->pid,
		.is_over = r->is_over,
		.mode = src->mode,
		.rate_bytes = src->rate_bytes,
		.stats = m->snapshot->stats,
	};
	uint64_t stats[HT_STAT_CNT];
	struct process_info info;
	int err = 0;

	if (r->pid) {
		err = own_stats(&wanted, m->snapshot, stats);
		facts.stats = stats;
		set_rows(src, m, r, now, &facts);
	}
	set_times(src, m, r, &facts);
	if (r->pid && !r->is_over && !process_glance(src->reader, r->pid, &info))
		set_resident(src, r, &info, &facts);
	for (size_t i = 0; i < r->note_cnt && !err; i++)
		err = profile_comment(p, "%s", r->notes[i]);
	if (!err)
		err = recording_notes_add(&facts, p);
	if (!err && r->wants_pinned)
		err = pinned_notes_add(m->snapshot, &now->reading, p);
	return err ? err : scope_notes_add(m->snapshot, src->engine, src->tracker, &scopes, p);
}

/* Find what the process held in the last hour, to show whether it grows; nothing, if nothing is kept. 0 or -ENOMEM. */
static int find_history(const struct result_source *src, const struct result_request *r,
			struct profile_build_options *opts, struct history **ret)
{
	uint64_t since_ns = r->wants_growth ? followed_ns(src, r) : 0, now = now_ns();
	uint64_t from_ns = now > HOUR_NS ? now - HOUR_NS : 0;
	int err;

	if (!since_ns)
		return 0;
	opts->begin_ns = since_ns;
	if (!src->stacks)
		return 0;
	err = stack_past_history(src->stacks, result_image(src, r->pid),
				 from_ns > since_ns ? from_ns : since_ns, ret,
				 &opts->is_history_partial);
	return err == -ENOENT ? 0 : err;
}

int result_build(const struct result_source *src, const struct result_moment *m,
		 const struct result_request *r, struct profile **ret)
{
	struct rows_now now = { 0 };
	struct result_moment after;
	struct snapshot chosen;
	struct profile_build_options opts = {
		.rate_bytes = src->rate_bytes,
		.label_processes = !r->pid,
		.main_pid = r->pid,
		.is_delta = r->base != NULL,
		.labels = LABEL_ALL,
		.symbols = result_symbol_options(src, r),
	};
	struct history *history = NULL;
	struct profile *p = NULL;
	int err = r->reads_rows || r->wants_pinned ? read_rows(src, r, &now) : 0;

	if (now.snapshot) {
		after = (struct result_moment){ now.snapshot, (int64_t)clock_ns(CLOCK_REALTIME),
						now_ns() };
		m = &after;
	}
	chosen = *m->snapshot; /* all but the rows are shared */
	memset(&chosen.rows, 0, sizeof(chosen.rows));
	if (!err)
		err = choose_rows(src, m, r, &chosen);
	if (!err)
		err = find_history(src, r, &opts, &history);
	opts.history = history;
	if (!err)
		err = profile_build(&chosen, src->engine, src->files, src->tracker, &opts, &p);
	if (err)
		goto out;
	p->time_ns = m->epoch_ns;
	p->duration_ns = duration_ns(m, r);
	if (r->endpoint == ENDPOINT_ALLOCS) {
		p->default_type_str = profile_str(p, "alloc_space");
		err = p->default_type_str < 0 ? -ENOMEM : 0;
	}
	if (!err)
		err = add_notes(p, src, m, r, &now);
out:
	history_free(history);
	vec_release(&chosen.rows);
	snapshot_free(now.snapshot);
	if (err)
		profile_free(p);
	else
		*ret = p;
	return err;
}

/* The past: what stacks held at other moments (http/past.h). */

_Static_assert(STACK_PAST_REST == SNAPSHOT_STACK_REST, "one number");

/* Rows in the form that snapshots take. */
struct given {
	struct snapshot_given *data;
	size_t cnt, cap; /* like VEC() */
};

struct sides {
	struct given of[2];
	double least_variance; /* of rows that seem not to differ, and yet may */
};

static int on_pair(void *ctx, const struct history_key *key, const struct estimate at[2])
{
	struct sides *s = ctx;
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		struct snapshot_given g = { .stack_id = key->stack_id,
					    .image = key->image,
					    .context_id = (uint32_t)key->context_id,
					    .inuse = at[i] };
		struct estimate *e = &g.inuse;

		if (!e->samples)
			continue;
		if (e->bytes_variance < s->least_variance)
			e->bytes_variance = s->least_variance;
		/* as if all objects had one size */
		if (e->bytes > 0)
			e->objects_variance = e->bytes_variance * (e->objects / e->bytes) *
					      (e->objects / e->bytes);
		err = vec_push(&s->of[i], g);
	}
	return err;
}

/* -ENOENT: it was thinned out meanwhile. */
static int find_moment(const struct stack_past_moment *moments, size_t cnt, uint64_t time_ns,
		       size_t *ret)
{
	for (size_t i = 0; i < cnt; i++) {
		if (moments[i].time_ns != time_ns)
			continue;
		*ret = i;
		return 0;
	}
	return -ENOENT;
}

static int set_recording(const struct result_source *src, pid_t pid,
			 const struct stack_past_moment *first,
			 const struct stack_past_moment *last, struct profile *p)
{
	const struct track_instance *inst = instances_find(tracker_instances(src->tracker), pid,
							   tracker_generation(src->tracker, pid));
	char comm[HT_COMM_BYTES + 1];

	snprintf(comm, sizeof(comm), "%.*s", HT_COMM_BYTES, inst ? inst->comm : "");
	p->time_ns = last->epoch_ns;
	p->recording = RECORDING_NONE;
	p->recording.is_known = true;
	p->recording.pid = pid;
	p->recording.process_cnt = 1;
	p->recording.inuse = RECORDING_INUSE_ALL;
	p->recording.duration_ns = (int64_t)(last->time_ns - first->time_ns);
	p->recording.end_ns = last->epoch_ns;
	p->recording.begin_ns = last->epoch_ns - p->recording.duration_ns;
	p->recording.comm_str = profile_str(p, comm);
	p->recording.exe_str = profile_str(p, inst ? inst->exe : "");
	p->recording.called_str = profile_str(p, inst ? inst->called : "");
	return p->recording.comm_str < 0 || p->recording.exe_str < 0 ||
			       p->recording.called_str < 0 ?
		       -ENOMEM :
		       0;
}

/* Make the profile of what was held at `last`, in a past that begins at `first`. -ETIME: as profile_build(). */
static int build_past(const struct result_source *src, const struct result_request *r,
		      const struct given *rows, const struct stack_past_moment *first,
		      const struct stack_past_moment *last, const struct history *history,
		      bool is_partial, struct profile **ret)
{
	struct profile_build_options opts = {
		.rate_bytes = src->rate_bytes,
		.main_pid = r->pid,
		.labels = LABEL_SCOPE | LABEL_APP | LABEL_THREAD,
		.history = history,
		.is_history_partial = is_partial,
		.begin_ns = history ? history_moments(history)->ns[0] : 0,
		.symbols = result_symbol_options(src, r),
	};
	struct profile *p = NULL;
	struct snapshot *s;
	int err = snapshot_of(src->engine, rows->data, rows->cnt, &s);

	if (err)
		return err;
	err = profile_build(s, src->engine, src->files, src->tracker, &opts, &p);
	if (!err)
		err = set_recording(src, r->pid, first, last, p);
	snapshot_free(s);
	if (err)
		profile_free(p);
	else
		*ret = p;
	return err;
}

static void release_sides(struct sides *s)
{
	vec_release(&s->of[0]);
	vec_release(&s->of[1]);
}

/*
 * Make the profiles of two moments, to be compared: their error bars cover only what differs between them. -ENOENT:
 * nothing is kept of the process, or not of these moments any more. Those that were made are the caller's in any case.
 */
static int build_pair(const struct result_source *src, const struct result_request *r,
		      struct profile *ret[2])
{
	uint64_t image = result_image(src, r->pid);
	const struct stack_past_moment *moments;
	size_t cnt = stack_past_moments(src->stacks, image, &moments), at[2] = { 0 };
	struct sides s = { .least_variance = src->rate_bytes > 1 };
	int err = find_moment(moments, cnt, r->moments.before_ns, &at[0]);

	if (!err)
		err = find_moment(moments, cnt, r->moments.after_ns, &at[1]);
	if (!err)
		err = stack_past_compare(src->stacks, image, at[0], at[1], on_pair, &s);
	for (int i = 0; i < 2 && !err; i++)
		err = build_past(src, r, &s.of[i], &moments[at[i]], &moments[at[i]], NULL, false,
				 &ret[i]);
	release_sides(&s);
	return err;
}

/* Make the profile of one moment, to be compared with one that is saved. -ENOENT, -ETIME: as above. */
static int build_moment(const struct result_source *src, const struct result_request *r,
			uint64_t time_ns, struct profile **ret)
{
	uint64_t image = result_image(src, r->pid);
	const struct stack_past_moment *moments;
	size_t cnt = stack_past_moments(src->stacks, image, &moments), i = 0;
	struct sides s = { 0 };
	int err = find_moment(moments, cnt, time_ns, &i);

	if (!err)
		err = stack_past_compare(src->stacks, image, i, i, on_pair, &s);
	if (!err)
		err = build_past(src, r, &s.of[1], &moments[i], &moments[i], NULL, false, ret);
	release_sides(&s);
	return err;
}

/* Make a profile of what is kept, with all moments. -ENOENT: nothing is kept. */
static int build_growth(const struct result_source *src, const struct result_request *r,
			struct profile **ret)
{
	uint64_t image = result_image(src, r->pid);
	const struct stack_past_moment *moments;
	size_t cnt = stack_past_moments(src->stacks, image, &moments);
	struct sides s = { 0 };
	struct history *h = NULL;
	bool is_partial = false;
	int err;

	if (!cnt)
		return -ENOENT;
	err = stack_past_history(src->stacks, image, 0, &h, &is_partial);
	if (!err)
		err = stack_past_compare(src->stacks, image, cnt - 1, cnt - 1, on_pair, &s);
	if (!err)
		err = build_past(src, r, &s.of[1], &moments[0], &moments[cnt - 1], h, is_partial,
				 ret);
	release_sides(&s);
	history_free(h);
	return err;
}

/* The forms of a result. */

static int write_report(const struct profile *p, const struct report_options *opts, int fd)
{
	FILE *out;
	int err = fd_stream_open(fd, &out);

	return err ? err : fd_stream_close(out, report_write(p, opts, out));
}

/* Such a format cannot say that in use is unknown. */
static bool is_only_inuse(const struct result_request *r)
{
	return r->endpoint == ENDPOINT_REMOTE_HEAP || (r->endpoint == ENDPOINT_HEAP && r->is_text);
}

static struct report_options diff_options(const struct result_request *r)
{
	return (struct report_options){
		.by = REPORT_BY_STACK,
		.format = r->is_json  ? REPORT_JSON :
			  r->is_plain ? REPORT_TEXT :
					REPORT_HTML,
		.row_cap = r->is_plain ? DIFF_ROWS : 0,
		.html_base = "../../",
	};
}

#define SIDE_NAME_BUF 96

/* "peak", "2026-11-26T14:05:00Z"; of two processes "postgres (PID 14), now". */
static char *side_name(const struct profile *p, const struct result_request *r, bool is_after,
		       char buf[SIDE_NAME_BUF])
{
	const char *moment = is_after ? r->moments.after : r->moments.before;

	if (!moment[0])
		moment = endpoint_moment_text(is_after ? ENDPOINT_NOW : r->at);
	if (r->from_pid)
		snprintf(buf, SIDE_NAME_BUF, "%.32s (PID %d), %s",
			 profile_text(p, p->recording.comm_str), is_after ? r->pid : r->from_pid,
			 moment);
	else
		snprintf(buf, SIDE_NAME_BUF, "%s", moment);
	return buf;
}

static int write_diff(struct profile *const at[2], const struct result_request *r, int fd)
{
	const struct report_options opts = diff_options(r);
	char before[SIDE_NAME_BUF], after[SIDE_NAME_BUF];
	FILE *out;
	int err = fd_stream_open(fd, &out);

	if (err)
		return err;
	err = report_diff(at[0], side_name(at[0], r, false, before), at[1],
			  side_name(at[1], r, true, after), &opts, out, NULL);
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

static int write_form(const struct result_source *src, struct profile *p,
		      const struct profile *saved, const struct result_request *r, int fd)
{
	const struct report_options pictures = { .format = REPORT_HTML,
						 .html_base = r->pid ? "../../" : "" };
	const struct report_options text = { .format = REPORT_HEAP };

	switch (r->endpoint) {
	case ENDPOINT_VIEWER:
		return write_report(saved ? saved : p, &pictures, fd);
	case ENDPOINT_REMOTE_HEAP:
	case ENDPOINT_REMOTE_GROWTH:
		return process_text_write(src, r, p, fd);
	default:
		return r->is_text ? write_report(p, &text, fd) : pprof_write(p, fd);
	}
}

static int write_moments(const struct result_source *src, const struct result_request *r, int fd)
{
	struct profile *at[2] = { NULL, NULL };
	int err = build_pair(src, r, at);

	if (!err)
		err = write_diff(at, r, fd);
	profile_free(at[0]);
	profile_free(at[1]);
	return err;
}

static int write_stacks(const struct profile *p, const struct result_request *r, FILE *out)
{
	int64_t before_ns = p->recording.duration_ns - (int64_t)HOUR_NS;
	const struct report_options opts = {
		.by = r->by_scope ? REPORT_BY_SCOPE : REPORT_BY_STACK,
		.format = REPORT_JSON,
		.sort = REPORT_SORT_GROWTH,
		.warm_up_ns = before_ns > 0 && !r->of_day ? (uint64_t)before_ns : 0,
	};
	const char *rest;
	int err;

	if (r->endpoint == ENDPOINT_GROWTH)
		return report_write(p, &opts, out);
	rest = strstr(r->page, PROCESS_PAGE_STACKS);
	fwrite(r->page, 1, (size_t)(rest - r->page), out);
	err = report_growth_table(p, GROWTH_ROWS, out);
	fputs(rest + strlen(PROCESS_PAGE_STACKS), out);
	return err;
}

static int write_past(const struct result_source *src, const struct result_request *r, int fd)
{
	struct profile *p;
	FILE *out;
	int err;

	if (r->endpoint == ENDPOINT_DIFF)
		return write_moments(src, r, fd);
	err = build_growth(src, r, &p);
	if (err)
		return err;
	err = fd_stream_open(fd, &out);
	if (!err)
		err = fd_stream_close(out, write_stacks(p, r, out));
	if (!err && r->endpoint == ENDPOINT_PROCESS && p->lacks_late_names)
		err = -EAGAIN;
	profile_free(p);
	return err;
}

/* Is it of the past that is kept, and not of the samples that there are now? */
static bool is_of_past(const struct result_request *r)
{
	return r->endpoint == ENDPOINT_GROWTH || r->endpoint == ENDPOINT_PROCESS ||
	       (r->endpoint == ENDPOINT_DIFF && endpoint_is_of_moments(r));
}

bool result_needs_snapshot(const struct result_request *r)
{
	return r->endpoint != ENDPOINT_SYMBOL && r->endpoint != ENDPOINT_CMDLINE && !is_of_past(r);
}

/* Get one side of a difference: a saved profile, a moment, or now. */
static int side_of(const struct result_source *src, const struct result_moment *m,
		   const struct result_request *r, bool is_after, struct profile **ret)
{
	uint64_t time_ns = is_after ? r->moments.after_ns : r->moments.before_ns;
	struct result_request other = *r;

	if (!is_after && r->from_pid) {
		other.pid = r->from_pid;
		r = &other;
	}
	if (is_after ? r->to_at != ENDPOINT_NOW : result_has_saved(r))
		return read_saved(is_after ? r->after_fd : r->saved_fd, ret);
	return time_ns ? build_moment(src, r, time_ns, ret) : result_build(src, m, r, ret);
}

static int write_sides(const struct result_source *src, const struct result_moment *m,
		       const struct result_request *r, int fd)
{
	struct profile *at[2] = { NULL, NULL };
	int err = 0;

	for (int i = 0; i < 2 && !err; i++)
		err = side_of(src, m, r, i, &at[i]);
	if (!err)
		err = write_diff(at, r, fd);
	profile_free(at[0]);
	profile_free(at[1]);
	return err;
}

static int make_profile(const struct result_source *src, const struct result_moment *m,
			const struct result_request *r, int fd)
{
	struct profile *p = NULL, *saved = NULL;
	int err;

	if (r->endpoint == ENDPOINT_DIFF)
		return write_sides(src, m, r, fd);
	err = result_has_saved(r) ? read_saved(r->saved_fd, &saved) : 0;
	if (!err && !saved)
		err = result_build(src, m, r, &p);
	if (!err && p && is_only_inuse(r) && p->recording.inuse == RECORDING_INUSE_UNKNOWN)
		err = -ENODATA;
	if (!err)
		err = write_form(src, p, saved, r, fd);
	profile_free(p);
	profile_free(saved);
	return err;
}

int result_make(const struct result_source *src, const struct result_moment *m,
		const struct result_request *r, int fd)
{
	if (r->endpoint == ENDPOINT_SYMBOL)
		return process_names_write(src, r, fd);
	return is_of_past(r) ? write_past(src, r, fd) : make_profile(src, m, r, fd);
}
