/* SPDX-License-Identifier: MIT */
/*
 * recording_notes.c - the comments of a profile and its struct recording: the target, the times, the source of
 * samples, the cost, the losses (see recording_notes.h).
 *
 * A profile of several processes has one sum. Processes whose frees are not tracked are missing from its heap in use,
 * so they are named. Heap in use is called unknown only if that holds for all of them.
 */
#include "record/recording_notes.h"

#include "base/clock.h"
#include "base/hmap.h"
#include "base/printable.h"
#include "base/units.h"
#include "base/vec.h"
#include "profile/moment.h"
#include "profile/profile.h"
#include "profile/resident_words.h"
#include "record/snapshot.h"
#include "track/governor.h"
#include "track/tracker.h"

#define NAMED_MAX 8 /* in one line */
#define LINE_BYTES 1024

struct process {
	const struct track_instance *image; /* its newest image */
	bool is_inuse_unknown;
};

struct processes {
	VEC(struct process) list; /* the main one first */
	size_t unknown_cnt;
	struct image_losses losses; /* of the wanted images */
	bool has_others; /* others are followed */
};

static bool is_wanted(const struct recording_facts *f, const struct track_instance *inst)
{
	return !f->is_wanted || f->is_wanted(f->ctx, inst->pid, inst->generation);
}

/* The newest image of each process. */
static int list_processes(const struct recording_facts *f, struct processes *ps)
{
	const struct track_instance *inst = tracker_instances(f->tracker)->list.data;
	size_t cnt = tracker_instances(f->tracker)->list.cnt;
	struct hmap by_pid;
	int err = 0;

	hmap_init(&by_pid, sizeof(uint32_t));
	for (size_t i = 0; i < cnt && !err; i++) {
		uint32_t pid = (uint32_t)inst[i].pid;
		const uint64_t *known = hmap_get(&by_pid, &pid);

		if (!is_wanted(f, &inst[i])) {
			ps->has_others = true;
			continue;
		}
		image_losses_add(&ps->losses, &inst[i]);
		if (known) {
			/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): one that is known is in it */
			ps->list.data[*known].image = &inst[i];
			continue;
		}
		err = hmap_put(&by_pid, &pid, ps->list.cnt);
		if (!err)
			err = vec_push(&ps->list, (struct process){ .image = &inst[i] });
	}
	hmap_release(&by_pid);
	for (size_t i = 1; i < ps->list.cnt; i++) {
		struct process first = ps->list.data[0];

		if (ps->list.data[i].image->pid != f->main_pid)
			continue;
		ps->list.data[0] = ps->list.data[i];
		ps->list.data[i] = first;
	}
	return err;
}

static int set_identity(const struct recording_facts *f, const struct processes *ps,
			struct profile *p)
{
	char comm[HT_COMM_BYTES + 1] = "";
	struct recording *r = &p->recording;
	const struct track_instance *first;

	r->pid = f->main_pid;
	r->process_cnt = (uint32_t)ps->list.cnt;
	r->reason_str = f->reason ? profile_str(p, f->reason) : 0;
	if (ps->list.cnt) {
		first = ps->list.data[0].image;
		memcpy(comm, first->comm, HT_COMM_BYTES);
		make_printable(comm);
		r->pid = first->pid;
		r->comm_str = profile_str(p, comm);
		r->exe_str = profile_str(p, first->exe ? first->exe : "");
		r->called_str = profile_str(p, first->called);
	}
	return r->reason_str < 0 || r->comm_str < 0 || r->exe_str < 0 || r->called_str < 0 ?
		       -ENOMEM :
		       0;
}

/* Set what the budget did: for all processes, and for each whether its frees are watched. */
static void set_budget(const struct recording_facts *f, struct processes *ps, struct recording *r)
{
	int64_t epoch_off_ns = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)now_ns();
	struct process *process;

	if (f->budget)
		governor_fill_recording_of(f->budget, epoch_off_ns, r);
	else
		governor_fill_recording(f->governor, f->is_merged ? 0 : r->pid, epoch_off_ns, r);
	if (!f->is_merged)
		return;
	vec_each(&ps->list, process) {
		struct recording one = RECORDING_NONE;

		governor_fill_recording(f->governor, process->image->pid, epoch_off_ns, &one);
		process->is_inuse_unknown = one.inuse == RECORDING_INUSE_UNKNOWN;
		ps->unknown_cnt += process->is_inuse_unknown;
	}
}

/* Where blocks are freed unseen, in use is unknown; of several processes some may be known. */
static void set_nameless_frees(struct processes *ps, struct recording *r)
{
	struct process *process;
	size_t cnt = 0;

	vec_each(&ps->list, process) {
		cnt += process->image->has_unseen_frees;
		if (process->image->has_unseen_frees && !process->is_inuse_unknown) {
			process->is_inuse_unknown = true;
			ps->unknown_cnt++;
		}
	}
	if (!cnt || cnt != ps->list.cnt)
		return;
	r->inuse = RECORDING_INUSE_UNKNOWN;
	r->has_nameless_frees = true;
}

static void set_exec_held(const struct recording_facts *f, struct recording *r)
{
	double bytes = 0, objects = 0;

	for (size_t i = 0; i < f->exec_held_cnt; i++) {
		bytes += f->exec_held[i].held.bytes;
		objects += f->exec_held[i].held.objects;
	}
	r->exec_held_bytes = (uint64_t)profile_value(bytes);
	r->exec_held_objects = (uint64_t)profile_value(objects);
}

static void set_since(const struct processes *ps, struct recording *r)
{
	int64_t epoch_off_ns = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)now_ns();
	const struct process *process;

	vec_each(&ps->list, process) {
		const struct track_instance *image = process->image;
		int64_t since_ns = (int64_t)image->inuse_since_ns + epoch_off_ns;

		if (!image->inuse_since_ns || r->inuse == RECORDING_INUSE_UNKNOWN)
			continue;
		if (r->inuse == RECORDING_INUSE_SINCE && r->inuse_since_ns >= since_ns)
			continue;
		r->inuse = RECORDING_INUSE_SINCE;
		r->inuse_since_ns = since_ns;
	}
}

/* The provider of the processes' own samplers; NULL: not all of them have one. */
static const char *sampler_of(const struct processes *ps)
{
	const struct process *process;

	vec_each(&ps->list, process)
		if (!process->image->sampler_ns)
			return NULL;
	return ps->list.cnt ? ps->list.data[0].image->sampler : NULL;
}

/* What taps did, and what they missed, over all processes. */
struct tap_sums {
	size_t tapped_cnt;
	size_t probed_cnt; /* those that have probes, or had some before their tap */
	size_t untapped_cnt; /* should be tapped, but are neither that nor refused */
	size_t from_probes_cnt; /* tapped while they had probes */
	uint64_t gap_ns; /* the longest time that this, or trying it, took */
	size_t late_cnt; /* tapped processes that began while followed */
	uint64_t late_ns; /* the longest time one ran before its tap */
	uint64_t stopped_ns; /* the longest stop, and its number of threads */
	uint32_t thread_cnt;
	uint64_t dropped_cnt, failed_cnt;
	const char *missed; /* functions, "": none */
};

static struct tap_sums sum_taps(const struct processes *ps)
{
	struct tap_sums sums = { .missed = "" };
	const struct process *process;

	vec_each(&ps->list, process) {
		const struct track_instance *inst = process->image;

		sums.tapped_cnt += inst->is_tapped;
		sums.probed_cnt +=
			inst->is_tap_refused || inst->tap_gap_ns || !inst->is_tap_awaited;
		sums.untapped_cnt += inst->is_tap_awaited && !inst->is_tapped &&
				     !inst->is_tap_refused && !inst->is_tap_of_other;
		sums.from_probes_cnt += inst->is_tapped && inst->tap_gap_ns;
		if (inst->tap_gap_ns > sums.gap_ns)
			sums.gap_ns = inst->tap_gap_ns;
		sums.late_cnt += inst->tap_late_ns != 0;
		sums.dropped_cnt += inst->tap_dropped_cnt;
		sums.failed_cnt += inst->tap_failed_cnt;
		if (inst->tap_late_ns > sums.late_ns)
			sums.late_ns = inst->tap_late_ns;
		if (!sums.missed[0])
			sums.missed = inst->tap_missed;
		if (inst->tap_stopped_ns < sums.stopped_ns)
			continue;
		sums.stopped_ns = inst->tap_stopped_ns;
		sums.thread_cnt = inst->tap_thread_cnt;
	}
	return sums;
}

/* The coarsest of the samplers' rates; 0: not known. */
static uint64_t sampler_rate(const struct processes *ps)
{
	const struct process *process;
	uint64_t rate_bytes = 0;

	vec_each(&ps->list, process)
		if (process->image->sampler_rate_bytes > rate_bytes)
			rate_bytes = process->image->sampler_rate_bytes;
	return rate_bytes;
}

bool ledger_lines_are_lossy(const struct ledger_lines *l)
{
	for (size_t i = 0; i < LEDGER_LINE_CNT; i++)
		if (l->line[i].kind == LEDGER_SUM && l->line[i].value)
			return true;
	return false;
}

static int fill(const struct recording_facts *f, const struct ledger_lines *ledger,
		struct processes *ps, struct profile *p)
{
	struct recording *r = &p->recording;
	const struct tap_sums taps = sum_taps(ps);
	int err;

	*r = RECORDING_NONE;
	r->is_known = true;
	err = set_identity(f, ps, p);
	if (err)
		return err;
	r->follows_children = f->follows_children;
	r->has_ended = f->is_over;
	if (f->is_over && f->program_argv)
		recording_program_text(f->program_argv, r->program, sizeof(r->program));
	r->is_from_start = f->was_started && taps.tapped_cnt == taps.from_probes_cnt;
	r->begin_ns = f->begin_ns;
	r->end_ns = f->end_ns;
	r->duration_ns = (int64_t)f->duration_ns;
	r->peak_ns = f->peak_ns;
	r->unrecorded_cnt = f->unrecorded_cnt;
	r->rss_begin_bytes = f->rss_begin_bytes;
	r->rss_end_bytes = f->rss_end_bytes;
	r->rss_file_growth_bytes = f->rss_file_growth_bytes;
	set_exec_held(f, r);
	set_budget(f, ps, r);
	set_nameless_frees(ps, r);
	if (f->is_delta && r->inuse == RECORDING_INUSE_ALL) {
		r->inuse = RECORDING_INUSE_SINCE;
		r->inuse_since_ns = f->followed_ns;
	}
	set_since(ps, r);
	if (taps.untapped_cnt && !taps.tapped_cnt && !taps.probed_cnt) {
		r->inuse = RECORDING_INUSE_UNKNOWN;
		r->has_no_tap = true;
	}
	if (sampler_of(ps))
		p->period = (int64_t)sampler_rate(ps);
	if (ledger_lines_are_lossy(ledger) || taps.late_cnt || taps.dropped_cnt ||
	    taps.failed_cnt || taps.untapped_cnt || taps.gap_ns)
		r->is_lossy = true;
	return 0;
}

static int comment_command(const struct recording_facts *f, struct profile *p)
{
	char line[LINE_BYTES] = "";
	size_t used = 0;

	for (int i = 0; i < f->command_argc && used < sizeof(line); i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, " %s",
					 f->command_argv[i]);
	return profile_comment(p, "heaptap %s:%s", HEAPTAP_VERSION, line);
}

/* " 14663 (worker), 14664 (worker), ...": processes from `first` on: all, or those whose in-use is unknown. */
static void name_processes(const struct processes *ps, size_t first, bool only_unknown,
			   char line[LINE_BYTES])
{
	size_t used = 0, cnt = 0;

	line[0] = '\0';
	for (size_t i = first; i < ps->list.cnt && used < LINE_BYTES; i++) {
		const struct track_instance *image = ps->list.data[i].image;

		if (only_unknown && !ps->list.data[i].is_inuse_unknown)
			continue;
		if (cnt++ == NAMED_MAX) {
			snprintf(line + used, LINE_BYTES - used, ", ...");
			return;
		}
		used += (size_t)snprintf(line + used, LINE_BYTES - used, "%s %d (%.*s)",
					 used ? "," : "", image->pid, HT_COMM_BYTES, image->comm);
	}
}

static int comment_target(const struct processes *ps, struct profile *p)
{
	const struct recording *r = &p->recording;
	char line[LINE_BYTES];

	if (!ps->list.cnt)
		return profile_comment(p, "target: no process");
	if (ps->list.cnt == 1)
		return profile_comment(p, "target: PID %d (%s) %s", r->pid,
				       profile_text(p, r->comm_str), profile_text(p, r->exe_str));
	name_processes(ps, 1, false, line);
	return profile_comment(p, "target: PID %d (%s) %s and %zu more: PID%s", r->pid,
			       profile_text(p, r->comm_str), profile_text(p, r->exe_str),
			       ps->list.cnt - 1, line);
}

static const char *time_text(int64_t epoch_ns, char buf[UNITS_BUF])
{
	time_t s = epoch_ns / 1000000000;
	struct tm tm;

	if (!gmtime_r(&s, &tm) || !strftime(buf, UNITS_BUF, "%Y-%m-%dT%H:%M:%SZ", &tm))
		buf[0] = '\0';
	return buf;
}

static int comment_time(const struct recording_facts *f, struct profile *p)
{
	char elapsed[UNITS_BUF], end[UNITS_BUF];

	format_duration(f->duration_ns, elapsed, sizeof(elapsed));
	time_text(f->end_ns, end);
	if (f->was_started)
		return profile_comment(p, "recorded: %s until %s, from the start of the program%s",
				       elapsed, f->end_reason ? f->end_reason : end,
				       p->recording.is_from_start ?
					       "" :
					       ", without its allocations before the tap");
	if (f->is_delta)
		return profile_comment(
			p,
			"recorded: the allocations of %s until %s, and heap in use since "
			"attach",
			elapsed, end);
	return profile_comment(p,
			       "recorded: %s until %s, since attach (earlier allocations are not "
			       "included)",
			       elapsed, f->end_reason ? f->end_reason : end);
}

/* A line of the ledger; none for 0. */
static int comment_tap_loss(struct profile *p, const char *name, uint64_t cnt, const char *meaning)
{
	return cnt ? profile_comment(p, "ledger: %s %llu (%s)", name, (unsigned long long)cnt,
				     meaning) :
		     0;
}

static int comment_tap_losses(const struct tap_sums *sums, struct profile *p)
{
	char late[UNITS_BUF], late_words[128];
	int err;

	snprintf(late_words, sizeof(late_words),
		 sums->late_cnt == 1 ?
			 "process tapped late: its first %s are not recorded" :
			 "processes tapped late: up to their first %s are not recorded",
		 format_duration(sums->late_ns, late, sizeof(late)));
	err = comment_tap_loss(p, "tap_late", sums->late_cnt, late_words);
	if (!err)
		err = comment_tap_loss(p, "tap_gap", (sums->gap_ns + NS_PER_MS - 1) / NS_PER_MS,
				       "ms of allocations missing from heap in use, while the "
				       "tap was put in");
	if (!err)
		err = comment_tap_loss(
			p, "tap_never", sums->untapped_cnt,
			sums->untapped_cnt == 1 ?
				"process not tapped: it ended first, or has no allocator" :
				"processes not tapped: they ended first, or have no "
				"allocator");
	if (!err)
		err = comment_tap_loss(p, "tap_dropped", sums->dropped_cnt,
				       "sampled blocks for which the tap's table was full");
	return err ? err :
		     comment_tap_loss(p, "tap_failed", sums->failed_cnt,
				      "sampled blocks lost when a realloc of them failed");
}

/* Say how long putting the taps in stopped the processes, and what taps do not see. */
static int comment_tap(const struct tap_sums *sums, struct profile *p)
{
	int err = 0;

	if (sums->tapped_cnt)
		err = profile_comment(
			p,
			"source: tap, put into the running program, which was paused for %.1f ms "
			"(%u thread%s)",
			(double)sums->stopped_ns / 1e6, sums->thread_cnt,
			sums->thread_cnt == 1 ? "" : "s");
	if (!err && sums->missed[0])
		err = profile_comment(
			p, "missing: allocations of these functions, which cannot be tapped: %s",
			sums->missed);
	return err ? err : comment_tap_losses(sums, p);
}

static int comment_source(const struct recording_facts *f, const struct processes *ps,
			  struct profile *p)
{
	const char *sampler = sampler_of(ps);
	const struct tap_sums sums = sum_taps(ps);
	int err;
	char rate[UNITS_BUF], every[64] = "every allocation", sites[96] = "";
	const struct probes_counts counts = tracker_counts(f->tracker).probes;

	if (f->rate_bytes > 1)
		snprintf(every, sizeof(every), "one sample per %s allocated",
			 format_bytes((double)f->rate_bytes, rate, sizeof(rate)));
	if (tracker_wants_taps(f->tracker) || sums.gap_ns) {
		err = comment_tap(&sums, p);
		/* Add the line on probes, where there are, or were, some. */
		if (err || !sums.probed_cnt)
			return err;
	}
	if (sampler && !sums.tapped_cnt)
		return profile_comment(p, "source: usdt (%s), of the program's own sampler",
				       sampler);
	if (f->says_sites && !counts.site_cnt)
		return profile_comment(p, "source: none: no known allocator was found (looked for "
					  "malloc, jemalloc, tcmalloc, mimalloc, operator new)");
	if (f->says_sites && counts.stepped_cnt)
		snprintf(sites, sizeof(sites), ", %zu sites, %zu of them single-stepped",
			 counts.site_cnt, counts.stepped_cnt);
	else if (f->says_sites)
		snprintf(sites, sizeof(sites), ", %zu site%s", counts.site_cnt,
			 counts.site_cnt == 1 ? "" : "s");
	return profile_comment(p, "source: uprobe (%s)%s; %s", attach_mode_name(f->mode), sites,
			       every);
}

char *recording_inuse_words(const struct recording *r, const char *comm, uint64_t rate_bytes,
			    bool is_over, char buf[RECORDING_INUSE_BUF])
{
	char why[RECORDING_TEXT_BUF], out[RECORDING_TEXT_BUF], since[UNITS_BUF];

	buf[0] = '\0';
	if (r->inuse == RECORDING_INUSE_SINCE)
		snprintf(buf, RECORDING_INUSE_BUF,
			 "counted since %s: frees were not tracked before",
			 time_text(r->inuse_since_ns, since));
	if (r->inuse != RECORDING_INUSE_UNKNOWN)
		return buf;
	recording_why_unknown(r, comm, why);
	if (is_over && !r->program[0])
		snprintf(buf, RECORDING_INUSE_BUF, "%s", why);
	else
		snprintf(buf, RECORDING_INUSE_BUF, "%s To measure it: %s", why,
			 recording_advice_best(r, rate_bytes, out));
	return buf;
}

static int comment_inuse(const struct recording_facts *f, const struct processes *ps,
			 struct profile *p)
{
	const struct recording *r = &p->recording;
	bool is_one = ps->list.cnt == 1, is_unknown = r->inuse == RECORDING_INUSE_UNKNOWN;
	char words[RECORDING_INUSE_BUF], line[LINE_BYTES];

	if (ps->unknown_cnt && !is_unknown) {
		name_processes(ps, 0, true, line);
		return profile_comment(p,
				       "in-use: UNKNOWN for %zu of %zu processes, whose frees are "
				       "not tracked: PID%s",
				       ps->unknown_cnt, ps->list.cnt, line);
	}
	recording_inuse_words(r, is_one ? profile_text(p, r->comm_str) : "", f->rate_bytes,
			      f->is_over || !is_one, words);
	if (!*words || (f->is_delta && !is_unknown))
		return 0;
	return profile_comment(p, "in-use: %s%s", is_unknown ? "UNKNOWN. " : "", words);
}

/* "PID 12 (server)" */
#define IMAGE_BYTES (HT_COMM_BYTES + 24)

static const char *image_text(pid_t pid, const struct track_instance *image, char buf[IMAGE_BYTES])
{
	snprintf(buf, IMAGE_BYTES, "PID %d (%.*s)", pid, HT_COMM_BYTES, image ? image->comm : "?");
	make_printable(buf);
	return buf;
}

/* Say from when to when, because allocations in that time may be missing. */
static int comment_unseen(const struct track_instance *inst, int64_t epoch_off_ns,
			  struct profile *p)
{
	char when[UNITS_BUF], elapsed[UNITS_BUF], image[IMAGE_BYTES];

	return profile_comment(p,
			       "not exact since the exec at %s: %s ran %s before it was probed%s; "
			       "its allocations in that time may be missing",
			       time_text((int64_t)inst->exec_ns + epoch_off_ns, when),
			       image_text(inst->pid, inst, image),
			       format_duration(inst->unseen_until_ns - inst->exec_ns, elapsed,
					       sizeof(elapsed)),
			       inst->was_read ? "" : ", or ended");
}

static int comment_unseen_execs(const struct recording_facts *f, const struct processes *ps,
				struct profile *p)
{
	int64_t epoch_off_ns = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)now_ns();
	const struct track_instance *inst = tracker_instances(f->tracker)->list.data;
	size_t cnt = tracker_instances(f->tracker)->list.cnt, said_cnt = 0;
	int err = 0;

	for (size_t i = 0; i < cnt && said_cnt < NAMED_MAX && !err; i++) {
		if (!inst[i].unseen_until_ns || !is_wanted(f, &inst[i]))
			continue;
		said_cnt++;
		err = comment_unseen(&inst[i], epoch_off_ns, p);
	}
	if (!err && ps->losses.unseen_exec_cnt > said_cnt)
		err = profile_comment(p, "not exact since an exec: and %zu more",
				      ps->losses.unseen_exec_cnt - said_cnt);
	return err;
}

/* Is the text of an earlier image? */
static bool is_said(const struct recording_facts *f, const struct track_instance *inst, size_t i,
		    bool is_heap)
{
	const char *text = is_heap ? inst[i].own_heap : inst[i].unseen;

	while (i--)
		if (is_wanted(f, &inst[i]) &&
		    !strcmp(is_heap ? inst[i].own_heap : inst[i].unseen, text))
			return true;
	return false;
}

/* Say which memory is not seen: of files that were probed late, of allocators without names, of runtimes that have a heap of their own. */
static int comment_not_seen(const struct recording_facts *f, struct profile *p)
{
	const struct track_instance *inst = tracker_instances(f->tracker)->list.data;
	size_t cnt = tracker_instances(f->tracker)->list.cnt, said_cnt = 0;
	char late[LATE_FILES_WORDS];
	int err = 0;

	for (size_t i = 0; i < cnt && said_cnt < NAMED_MAX && !err; i++) {
		if (!is_wanted(f, &inst[i]))
			continue;
		if (inst[i].unseen[0] && !is_said(f, inst, i, false)) {
			err = profile_comment(p, "not seen: %s%s", inst[i].unseen,
					      inst[i].unseen_cnt > 1 ? "; and others" : "");
			said_cnt++;
		}
		if (!err && inst[i].late_file_cnt) {
			err = profile_comment(p,
					      "not seen: %s; heap in use is at least the "
					      "number shown",
					      late_files_words(&inst[i], late));
			said_cnt++;
		}
		if (!err && inst[i].own_heap[0] && !is_said(f, inst, i, true)) {
			err = profile_comment(p, "not seen: %s", inst[i].own_heap);
			said_cnt++;
		}
	}
	return err;
}

/* One line for each image, because people look for what a program left behind. */
static int comment_exec_held(const struct recording_facts *f, struct profile *p)
{
	char bytes[UNITS_BUF], image[IMAGE_BYTES];
	int err = 0;

	for (size_t i = 0; i < f->exec_held_cnt && i < NAMED_MAX && !err; i++) {
		const struct snapshot_held *h = &f->exec_held[i];

		format_bytes(h->held.bytes, bytes, sizeof(bytes));
		image_text(h->pid,
			   instances_find(tracker_instances(f->tracker), h->pid, h->generation),
			   image);
		err = profile_comment(
			p,
			"in use at exec: %s in %lld blocks by %s, gone when it executed "
			"another program; not in the rows",
			bytes, llround(h->held.objects), image);
	}
	if (!err && f->exec_held_cnt > NAMED_MAX)
		err = profile_comment(p, "in use at exec: and %zu more",
				      f->exec_held_cnt - NAMED_MAX);
	return err;
}

static int comment_resident(struct profile *p)
{
	char begin[UNITS_BUF], end[UNITS_BUF];
	const struct recording *r = &p->recording;

	if (!r->rss_end_bytes)
		return 0;
	format_bytes((double)r->rss_begin_bytes, begin, sizeof(begin));
	format_bytes((double)r->rss_end_bytes, end, sizeof(end));
	if (!r->rss_begin_bytes)
		return profile_comment(p, "resident: %s at the end", end);
	return profile_comment(p, "resident: %s -> %s", begin, end);
}

/* A heap that is not seen is mapped like memory that the program maps for itself. */
static int set_rows(const struct recording_facts *f, const struct processes *ps, struct profile *p)
{
	int err = resident_rows_set(p, f->rows_begin, f->rows_end);
	bool is_doubtful = ps->losses.unseen_allocator_cnt || ps->losses.late_file_cnt;
	const struct process *process;

	p->resident.end.age_ns = f->rows_age_ns;
	vec_each(&ps->list, process)
		is_doubtful |= process->image->unseen[0] || process->image->own_heap[0];
	return err || !is_doubtful ? err : resident_rows_doubt(p);
}

static int comment_rows(struct profile *p)
{
	char words[RESIDENT_WORDS], why[RESIDENT_WORDS], took[UNITS_BUF], age[UNITS_BUF + 24] = "";

	if (!p->resident.is_asked)
		return 0;
	resident_list_words(p, words);
	resident_why_words(p, why);
	if (p->resident.end.age_ns)
		snprintf(age, sizeof(age), ", read %s before the end",
			 format_duration(p->resident.end.age_ns, took, sizeof(took)));
	return profile_comment(p, "resident by row%s: %s%s%s", age, words,
			       *words && *why ? "; " : "", why);
}

static int comment_cost(const struct recording_facts *f, struct profile *p)
{
	const struct recording *r = &p->recording;
	char limit[RECORDING_TEXT_BUF], cost[UNITS_BUF];

	if (f->budget)
		return governor_comment_record(f->budget, p);
	if (!f->is_merged)
		return governor_comment(f->governor, r->pid, p);
	if (isnan(r->overhead_share))
		return 0;
	return profile_comment(p,
			       "cost: %s %% of the CPU time of all processes (limit of each: %s)",
			       format_percent(r->overhead_share, cost, sizeof(cost)),
			       recording_limit_text(&r->limit, limit));
}

static int comment(const struct recording_facts *f, const struct ledger_lines *ledger,
		   const struct processes *ps, struct profile *p)
{
	int err = comment_command(f, p);

	if (!err)
		err = comment_target(ps, p);
	if (!err)
		err = comment_time(f, p);
	if (!err)
		err = comment_source(f, ps, p);
	if (!err)
		err = comment_cost(f, p);
	if (!err)
		err = comment_inuse(f, ps, p);
	if (!err)
		err = comment_not_seen(f, p);
	if (!err)
		err = comment_exec_held(f, p);
	if (!err)
		err = comment_unseen_execs(f, ps, p);
	if (!err)
		err = comment_resident(p);
	if (!err)
		err = comment_rows(p);
	return err ? err : ledger_notes_add(p, ledger);
}

/* Unknown values are 0, and mean nothing. */
static void forget_inuse(struct profile *p)
{
	int objects = profile_find_type(p, "inuse_objects");
	int bytes = profile_find_type(p, "inuse_space");
	struct profile_sample *s;

	vec_each(&p->samples, s) {
		if (objects >= 0)
			p->values.data[s->value_first + (size_t)objects] = 0;
		if (bytes >= 0)
			p->values.data[s->value_first + (size_t)bytes] = 0;
		s->inuse_samples = 0;
		s->inuse_bytes_variance = s->inuse_objects_variance = 0;
		s->age_cnt = s->life_cnt = 0;
	}
	p->moments_ns.cnt = 0;
}

int recording_notes_add(const struct recording_facts *f, struct profile *p)
{
	struct processes ps = { 0 };
	struct ledger_lines ledger;
	int err = list_processes(f, &ps);

	ledger_lines_read(&ledger, f->stats, f->tracker);
	ledger_lines_set(&ledger, &ps.losses);
	ledger.is_of_all = ps.has_others;
	if (!err)
		err = fill(f, &ledger, &ps, p);
	if (!err && f->rows_begin && f->rows_end)
		err = set_rows(f, &ps, p);
	if (!err)
		err = comment(f, &ledger, &ps, p);
	if (p->recording.has_nameless_frees)
		forget_inuse(p);
	if (p->recording.inuse == RECORDING_INUSE_UNKNOWN || !p->recording.peak_ns)
		profile_drop_peak(p);
	if (p->recording.inuse == RECORDING_INUSE_UNKNOWN)
		profile_drop_type(p, "pinned_space");
	if (!err && p->recording.inuse == RECORDING_INUSE_UNKNOWN) {
		p->default_type_str = profile_str(p, "alloc_space");
		err = p->default_type_str < 0 ? -ENOMEM : 0;
	}
	vec_release(&ps.list);
	return err;
}

int pinned_notes_add(const struct snapshot *s, const struct resident_reading *rows,
		     struct profile *p)
{
	bool is_known = profile_find_type(p, "pinned_space") >= 0;

	if (is_known && !s->unpinned_cnt)
		return 0;
	if (p->recording.has_ended && !rows->is_known && p->resident.is_asked)
		return 0; /* comment_rows() says why */
	if (s->unpinned_cnt)
		return profile_comment(
			p, "pinned_space: %s%zu of %zu sampled blocks were not found in the heap",
			is_known ? "" : "unknown: ", s->unpinned_cnt,
			s->unpinned_cnt + s->pinned_cnt);
	return profile_comment(p, "pinned_space: unknown (%s)",
			       p->recording.inuse == RECORDING_INUSE_UNKNOWN ?
				       "frees were not tracked" :
			       rows->is_proved ? "no sampled blocks were in use, or too many" :
						 rows->why);
}
