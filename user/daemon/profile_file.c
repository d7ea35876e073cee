/* SPDX-License-Identifier: MIT */
/* profile_file.c - see profile_file.h. */
#include "daemon/profile_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd_stream.h"
#include "base/hmap.h"
#include "base/units.h"
#include "budget/governor.h"
#include "daemon/process_text.h"
#include "format/pprof.h"
#include "format/report.h"
#include "model/profile.h"
#include "snapshot/ledger_notes.h"
#include "snapshot/profile_build.h"
#include "snapshot/scope_labels.h"
#include "snapshot/scope_notes.h"
#include "snapshot/snapshot.h"
#include "track/tracker.h"

/* What tells the rows of a snapshot apart. */
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

/* Of a wanted process that still runs, or of the image that is wanted. */
static bool is_wanted(const struct profile_source *src, const struct profile_wish *wish, pid_t pid,
		      uint32_t generation)
{
	if (wish->pid && pid != wish->pid)
		return false;
	return wish->is_image ? generation == wish->generation :
				!tracker_is_over(src->tracker, pid, generation);
}

/* Rows of what is wanted; without what was allocated before the base. */
static int choose_rows(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_wish *wish, struct snapshot *ret)
{
	const struct snapshot_row *from;
	struct hmap idx;
	int err;

	hmap_init(&idx, sizeof(struct row_key));
	err = index_base(wish->base, &idx);
	vec_each(&s->rows, from) {
		const struct row_key key = key_of(from);
		const uint64_t *known = hmap_get(&idx, &key);
		struct snapshot_row row = *from;

		if (err)
			break;
		if (!is_wanted(src, wish, row.pid, row.generation))
			continue;
		if (known)
			estimate_subtract(&row.alloc, &wish->base->rows.data[*known].alloc);
		if (row.alloc.objects > 0 || row.inuse.samples)
			err = vec_push(&ret->rows, row);
	}
	hmap_release(&idx);
	return err;
}

static int comment_targets(struct profile *p, const struct profile_source *src,
			   const struct profile_wish *wish)
{
	const struct track_instance *inst;
	size_t cnt;
	int err = 0;

	inst = tracker_instances(src->tracker, &cnt);
	for (size_t i = 0; i < cnt && !err; i++) {
		if (!is_wanted(src, wish, inst[i].pid, inst[i].generation))
			continue;
		err = profile_comment(p, "target: PID %d (%.*s) %s", inst[i].pid,
				      (int)sizeof(inst[i].comm), inst[i].comm, inst[i].exe);
	}
	return err;
}

static int comment_source(struct profile *p, const struct profile_source *src)
{
	char line[1024] = "", text[UNITS_BUF];
	time_t begin = src->begin_epoch_ns / (int64_t)NS_PER_S;
	size_t used = 0;
	struct tm tm;
	int err;

	for (int i = 0; i < src->command_argc && used < sizeof(line); i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, " %s",
					 src->command_argv[i]);
	err = profile_comment(p, "heaptap %s", HEAPTAP_VERSION);
	if (!err)
		err = profile_comment(p, "command: heaptap%s", line);
	if (!err && gmtime_r(&begin, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		err = profile_comment(p, "serving since %s", text);
	if (!err)
		err = profile_comment(p, "allocations before attach are not included");
	if (!err)
		err = profile_comment(p, "source: uprobe (%s)", attach_mode_name(src->mode));
	if (!err && src->rate_bytes <= 1)
		err = profile_comment(p, "rate: every allocation (exact)");
	else if (!err)
		err = profile_comment(p, "rate: one sample per %s allocated on the average",
				      format_bytes((double)src->rate_bytes, text, sizeof(text)));
	return err;
}

/* The counters are those of all processes. */
static int comment_ledger(struct profile *p, const struct tracker *t,
			  const uint64_t stats[HT_STAT_CNT])
{
	int err = ledger_notes_add(p, stats), why;
	size_t failed_cnt = tracker_failed_cnt(t, &why), throwing_cnt = tracker_throwing_cnt(t);

	if (!err && failed_cnt)
		err = profile_comment(p,
				      "ledger: failed_sites %zu (probe sites and files that could "
				      "not be had)",
				      failed_cnt);
	if (!err && throwing_cnt)
		err = profile_comment(p,
				      "ledger: throwing_sites %zu (operator new not probed: it may "
				      "throw)",
				      throwing_cnt);
	return err;
}

static int add_comments(struct profile *p, const struct profile_source *src,
			const struct snapshot *s, const struct profile_wish *wish)
{
	struct scope_notes_options opts = {
		.labels = LABEL_ALL,
		.only_pid = wish->pid,
		.by_process = !wish->pid,
		.epoch_off_ns = wish->epoch_ns - (int64_t)wish->monotonic_ns,
	};
	int err = comment_source(p, src);

	if (!err)
		err = comment_targets(p, src, wish);
	for (size_t i = 0; i < wish->note_cnt && !err; i++)
		err = profile_comment(p, "%s", wish->notes[i]);
	if (!err)
		err = wish->budget ? governor_comment_record(wish->budget, p) :
				     governor_comment(src->governor, wish->pid, p);
	if (!err)
		err = comment_ledger(p, src->tracker, s->stats);
	return err ? err : scope_notes_add(s, src->engine, src->tracker, &opts, p);
}

int profile_file_build(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_wish *wish, struct profile **ret)
{
	const struct profile_build_options opts = {
		.rate_bytes = src->rate_bytes,
		.label_processes = !wish->pid,
		.main_pid = wish->pid,
		.labels = LABEL_ALL,
		.symbols = { .lines = true, .demangle = true },
	};
	struct snapshot chosen = *s; /* all but the rows is shared */
	struct profile *p = NULL;
	int err;

	memset(&chosen.rows, 0, sizeof(chosen.rows));
	err = choose_rows(src, s, wish, &chosen);
	if (!err)
		err = profile_build(&chosen, src->engine, src->files, src->tracker, &opts, &p);
	if (err)
		goto out;
	p->time_ns = wish->epoch_ns;
	p->duration_ns = wish->base ? (int64_t)wish->duration_ns : 0;
	if (wish->shows_allocs) {
		p->default_type_str = profile_str(p, "alloc_space");
		err = p->default_type_str < 0 ? -ENOMEM : 0;
	}
	if (!err)
		err = add_comments(p, src, s, wish);
out:
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

int profile_file_write(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_wish *wish, int fd)
{
	struct profile *p = NULL;
	int err = profile_file_build(src, s, wish, &p);

	if (!err && wish->form == PROFILE_PPROF)
		err = pprof_write(p, fd);
	else if (!err && wish->form == PROFILE_TEXT)
		err = write_text(p, fd);
	else if (!err)
		err = process_text_write(src, p, wish->pid, wish->form == PROFILE_GROWTH, fd);
	profile_free(p);
	return err;
}
