/* SPDX-License-Identifier: MIT */
/*
 * recorder.c - one recording, from its start to its last snapshot: an event loop (see recorder.h). recorder_open.c
 * sets it up.
 *
 * The order at the end keeps the snapshot right: the allocation probes are removed, then the live map is read while
 * frees are still seen, then the other probes are removed. If the guardian is killed, the recording ends with the
 * samples that there are.
 */

#include <signal.h>

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/printable.h"
#include "base/units.h"
#include "guardian/exec_hold.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "proc/events.h"
#include "proc/launch.h"
#include "proc/process.h"
#include "proc/reader.h"
#include "proc/runtime_kind.h"
#include "profile/history.h"
#include "record/recorder_priv.h"
#include "record/snapshot.h"
#include "track/governor.h"
#include "track/tracker.h"

/* The status line. */

/* Growth is measured over at least this time: over one tick it would jump. */
#define RATE_NS NS_PER_S

/* Return the newest point that is old enough; NULL: none is. */
static const struct live_point *find_base(const struct live_line *l, uint64_t now_ns)
{
	size_t kept = l->cnt < LIVE_LINE_POINTS ? l->cnt : LIVE_LINE_POINTS;

	for (size_t i = 1; i <= kept; i++) {
		const struct live_point *p = &l->points[(l->cnt - i) % LIVE_LINE_POINTS];

		if (now_ns >= p->time_ns + RATE_NS)
			return p;
	}
	return NULL;
}

static void add_held_text(struct live_line *l, const struct live_now *now,
			  char buf[static LIVE_LINE_BYTES])
{
	const struct live_point *base = find_base(l, now->time_ns);
	char held[UNITS_BUF], rate[UNITS_BUF];
	double per_s;

	l->points[l->cnt++ % LIVE_LINE_POINTS] =
		(struct live_point){ now->time_ns, now->held_bytes };
	text_add(buf, LIVE_LINE_BYTES, "in use %s",
		 format_bytes(now->held_bytes, held, sizeof(held)));
	if (!base)
		return;
	per_s = (now->held_bytes - base->held_bytes) * NS_PER_S /
		(double)(now->time_ns - base->time_ns);
	text_add(buf, LIVE_LINE_BYTES, " (%c%s/s)", per_s < 0 ? '-' : '+',
		 format_bytes(fabs(per_s), rate, sizeof(rate)));
}

static void add_cost(const struct live_now *now, char buf[static LIVE_LINE_BYTES])
{
	double percent = 100 * now->cost;

	if (isnan(percent))
		text_add(buf, LIVE_LINE_BYTES, ", cost unknown");
	else
		text_add(buf, LIVE_LINE_BYTES, ", cost %s%.*f %%%s",
			 now->is_largest_cost ? "up to " : "", percent < 0.95 ? 1 : 0, percent,
			 now->is_of_one_cpu ? " of one CPU" : "");
}

void live_line_text(struct live_line *l, const struct live_now *now,
		    char buf[static LIVE_LINE_BYTES])
{
	char elapsed[UNITS_BUF];

	snprintf(buf, LIVE_LINE_BYTES,
		 "%s: ", format_duration(now->elapsed_ns, elapsed, sizeof(elapsed)));
	if (now->has_held) {
		add_held_text(l, now, buf);
	} else {
		l->cnt = 0; /* the sum is another one from here on */
		text_add(buf, LIVE_LINE_BYTES, "in use unknown");
	}
	add_cost(now, buf);
	if (now->loss)
		text_add(buf, LIVE_LINE_BYTES, ", %s", now->loss);
}

static void ask_jvm(struct reader *reader, pid_t pid, size_t *jvm_cnt)
{
	struct process_info info;
	struct err why;
	int err;

	if (process_info_read(reader, pid, &info) || info.is_zombie)
		return;
	err = jvm_write_perfmap(reader, &info, &why);
	*jvm_cnt += err != -ENOEXEC;
	if (err && err != -ENOEXEC)
		log_warn("record: no function names from the JVM %d (%s): %s", pid, info.comm,
			 why.text);
}

/* Ask all JVMs that are followed and run for the names of their code. Log those that did not answer. */
static void jvm_names_ask(struct reader *reader, const struct tracker *t)
{
	size_t jvm_cnt = 0;

	for (size_t i = 0; i < tracker_running_cnt(t); i++)
		ask_jvm(reader, tracker_running_at(t, i), &jvm_cnt);
	if (!jvm_cnt)
		log_warn("record: --jvm-perfmap: no recorded process is a running JVM");
}

/* The highest cost of probes among running processes, and whether all their frees are watched. */
struct cost_view {
	pid_t pid; /* the process with that cost */
	struct budget_price now;
	double share_overall, one_cpu_overall; /* of pid */
	bool is_of_one_cpu; /* its limit in force is of one CPU */
	bool has_inuse, is_out;
	size_t cnt;
};

/* is_one: all share one budget. */
static struct cost_view cost_view_read(const struct tracker *t, const struct governor *g,
				       bool is_one)
{
	struct cost_view all = { .now = { -1, -1 }, .has_inuse = true };
	size_t running_cnt = tracker_running_cnt(t);

	if (is_one && running_cnt > 1)
		running_cnt = 1;
	for (size_t i = 0; i < running_cnt; i++) {
		pid_t pid = tracker_running_at(t, i);
		struct governor_view view;

		if (governor_view(g, pid, &view))
			continue;
		all.cnt++;
		all.has_inuse &= view.has_inuse;
		all.is_out |= view.step == BUDGET_OFF;
		if (view.now.cpu_share > all.now.cpu_share) {
			all.now = view.now;
			all.is_of_one_cpu = view.limit.one_cpu > 0;
		}
		if (view.overall.cpu_share >= all.share_overall) {
			all.share_overall = view.overall.cpu_share;
			all.one_cpu_overall = view.overall.one_cpu;
			all.pid = pid;
		}
	}
	return all;
}

#define TICK_NS 200000000ULL /* for the status line and for work that waits */
#define COUNTERS_INTERVAL_NS 1000000000ULL /* of the programs' own counters and key names */
/* Interval of looks at processes if all are tapped; otherwise each status line looks. */
#define LOOK_TAPPED_NS 1000000000ULL
#define ROWS_LOOK_MS 5
/* The end of a recording waits no longer than this for a last reading that a first one was too slow for: there is nothing to
 * compare it with, and it would hardly be faster. */
#define ROWS_ALONE_NS (NS_PER_S / 2)
/* The pause between readings that are shown: so much, and so many times what one took */
#define ROWS_PAUSE_NS (5 * NS_PER_S)
#define ROWS_PAUSE_TIMES 20
#define OVERHEAD_WARN 0.2 /* of the target's CPU time */
#define OVERHEAD_WARN_ONE_CPU \
	0.02 /* less is little, whatever part it is of a process that mostly sleeps */
#define OVERHEAD_WARN_AFTER_NS 2000000000ULL

static void end(struct recorder *r, const char *reason)
{
	if (!r->is_over)
		r->facts.end_reason = reason;
	r->is_over = true;
}

void recorder_end(struct recorder *r, const char *reason)
{
	if (!r->is_over)
		r->facts.is_cut_short = true;
	end(r, reason);
}

/* Return losses that the user must know of at once, in a few words; NULL: none. */
static const char *loss_words(const uint64_t stats[HT_STAT_CNT])
{
	if (stats[HT_STAT_LIVE_FULL] || stats[HT_STAT_SHARE_LIVE])
		return "live map full";
	if (stats[HT_STAT_STACKS_FULL] || stats[HT_STAT_SHARE_STACKS])
		return "stack map full";
	return NULL;
}

/* Warn once, after some seconds of it: short bursts do not matter. */
static void warn_overhead(struct recorder *r, const struct cost_view *costs, uint64_t elapsed_ns)
{
	if (r->has_warned || budget_has_limit(&r->opts.max_overhead) ||
	    elapsed_ns < OVERHEAD_WARN_AFTER_NS || costs->share_overall < OVERHEAD_WARN ||
	    costs->one_cpu_overall < OVERHEAD_WARN_ONE_CPU)
		return;
	r->has_warned = true;
	log_warn("record: the probes take about %.0f %% of the CPU time of PID %d, which allocates "
		 "very often; keep the recording short (Ctrl-C ends it), or limit it with "
		 "--max-overhead",
		 100 * costs->share_overall, costs->pid);
}

struct held_sum {
	const struct tracker *tracker;
	double bytes;
};

/* An image that an exec replaced holds nothing any more; what a process held when it ended counts in a recording. */
static int add_held(void *ctx, const struct ht_image_key *k, const struct ht_image *v)
{
	struct held_sum *sum = ctx;

	if (!instances_is_replaced(tracker_instances(sum->tracker), (pid_t)k->tgid, k->generation))
		sum->bytes += (double)v->inuse_bytes_8 / 256;
	return 0;
}

/* Looks are urgent only for probes of throwing functions, which depend on the memory that is left. A tap has none. */
static bool are_all_tapped(const struct recorder *r)
{
	const struct target *t;

	vec_each(&r->targets.list, t)
		if (!tracker_is_tapped(r->session->tracker, t->pid))
			return false;
	return true;
}

static void look_at_targets(struct recorder *r)
{
	uint64_t now = now_ns();
	struct target *t;

	if (now < r->looked_ns + LOOK_TAPPED_NS && are_all_tapped(r))
		return;
	r->looked_ns = now;
	targets_refresh(&r->targets);
	vec_each(&r->targets.list, t) {
		if (t->has_other_heap)
			recorder_say_heap(t);
		t->has_other_heap = false;
	}
}

/* What is resident at the end: between two looks a process grows by anything. */
static void look_at_targets_now(struct recorder *r)
{
	r->looked_ns = 0;
	look_at_targets(r);
}

/* Reads only sums and counters: that is cheap, while the live map may be large. */
static void show_status(struct recorder *r)
{
	struct live_now now = { .time_ns = now_ns() };
	struct held_sum held = { .tracker = r->session->tracker };
	uint64_t stats[HT_STAT_CNT];
	char text[LIVE_LINE_BYTES];
	struct cost_view costs;

	if (engine_read_stats(r->session->engine, stats))
		return;
	look_at_targets(r);
	engine_set_throw_limit(r->session->engine, targets_throw_limit(&r->targets));
	costs = cost_view_read(r->session->tracker, r->session->governor, r->opts.follow);
	r->facts.probes_went_out |= costs.is_out;
	now.elapsed_ns = now.time_ns - r->facts.begin_ns;
	warn_overhead(r, &costs, now.elapsed_ns);
	/* The first call starts the measurement of the speed that the second one shows. */
	if (r->opts.is_quiet || (r->live_line.cnt && !log_status_is_due()))
		return;
	now.has_held = costs.has_inuse && !engine_each_image(r->session->engine, add_held, &held);
	now.held_bytes = fmax(held.bytes, 0);
	now.is_of_one_cpu = costs.is_of_one_cpu;
	now.cost = !costs.cnt ? NAN : now.is_of_one_cpu ? costs.now.one_cpu : costs.now.cpu_share;
	now.is_largest_cost = costs.cnt > 1;
	now.loss = loss_words(stats);
	live_line_text(&r->live_line, &now, text);
	log_status("%s", text);
}

const char *recorder_failed_why(const struct recorder *r, int err)
{
	return guardian_is_lost(r->guardian) ? guardian_lost_why(r->guardian) : strerror(-err);
}

/* What it has recorded is complete up to here. */
static void on_guardian_news(void *ctx, int fd)
{
	struct recorder *r = ctx;

	(void)fd;
	if (!guardian_work(r->guardian) || r->is_over)
		return;
	log_error("record: %s (heaptap-guard, PID %d): the recording ends here",
		  guardian_lost_why(r->guardian), guardian_pid(r->guardian));
	recorder_end(r, guardian_lost_why(r->guardian));
}

static void on_child_end(void *ctx, int fd)
{
	struct recorder *r = ctx;

	(void)fd;
	if (!launch_reap(r->launch, &r->facts.exit_status))
		end(r, "the program ended");
}

/* A stopped ssh sends no signal: without this the probes would stay in until the process ends. */
static void on_reader_gone(void *ctx, int fd)
{
	struct recorder *r = ctx;

	(void)fd;
	if (!r->is_over)
		log_warn("record: standard output was closed: the recording ends here");
	recorder_end(r, "standard output was closed");
}

static void drop_history(struct recorder *r, int err)
{
	log_warn("record: cannot read heap in use over time (%s): growth is unknown",
		 strerror(-err));
	history_free(r->history);
	r->history = NULL;
}

static void read_moment(struct recorder *r)
{
	uint64_t now = now_ns();
	int err;

	if (!r->history || now < history_moments(r->history)->due_ns ||
	    now < r->facts.begin_ns + MOMENT_INTERVAL_NS / 2)
		return;
	err = snapshot_read_moment(r->session->engine, r->history);
	if (err)
		drop_history(r, err);
}

static void visit(void *ctx, int fd)
{
	struct recorder *r = ctx;

	(void)fd;
	if (r->opts.guest && !r->is_over)
		r->opts.guest->on_tick(r->opts.guest->ctx, r);
}

static void begin_last_rows(struct recorder *r, uint64_t most_ns)
{
	const struct target *t = &r->targets.list.data[r->rows_target];

	rows_reader_begin(&r->rows_end, t->pid, t->rss_bytes, most_ns, &r->pins);
}

static void refresh_rows(struct recorder *r)
{
	uint64_t now = now_ns(), pause_ns;

	if (!r->opts.refreshes_rows || !r->has_rows || !rows_reader_work(&r->rows_begin))
		return;
	if (r->rows_end.child.child && rows_reader_work(&r->rows_end)) {
		r->rows_latest = r->rows_end.answer;
		r->rows_latest.is_counted =
			false; /* how often it was called meanwhile is not known */
		pause_ns = ROWS_PAUSE_TIMES * r->rows_latest.took_ns;
		r->rows_due_ns = now + (pause_ns > ROWS_PAUSE_NS ? pause_ns : ROWS_PAUSE_NS);
	} else if (!r->rows_end.child.child && now >= r->rows_due_ns) {
		begin_last_rows(r, ROWS_MOST_NS);
	}
}

static void on_tick(void *ctx)
{
	struct recorder *r = ctx;

	if (now_ns() - r->counters_ns > COUNTERS_INTERVAL_NS) {
		r->counters_ns = now_ns();
		tracker_read_counters(r->session->tracker);
	}
	idle_tasks_run(&r->idle_tasks);
	rows_reader_work(&r->rows_begin);
	refresh_rows(r);
	show_status(r);
	read_moment(r);
	visit(r, -1);
}

static void on_signal(void *ctx, int signal)
{
	struct recorder *r = ctx;

	(void)signal;
	if (r->is_over) /* he does not want to wait */
		rows_reader_give_up(&r->rows_end, "stopped by the user");
	recorder_end(r, "stopped by the user");
}

int recorder_loop_new(struct recorder *r)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, 0 };
	int err = loop_new(&r->loop);

	if (!err)
		err = loop_watch_signals(r->loop, signals, on_signal, r);
	if (!err)
		err = loop_every(r->loop, TICK_NS, on_tick, r);
	if (!err)
		err = loop_watch(r->loop, guardian_fd(r->guardian), on_guardian_news, r);
	if (!err && r->launch)
		err = loop_watch(r->loop, r->launch->wait_fd, on_child_end, r);
	if (!err && r->opts.stdout_fd >= 0) /* the end of a file cannot be gone */
		(void)loop_watch_end(r->loop, r->opts.stdout_fd, on_reader_gone, r);
	if (!err && r->opts.guest)
		err = loop_watch(r->loop, r->opts.guest->fd, visit, r);
	return err;
}

/* Milliseconds until something is due. */
static int wait_ms(const struct recorder *r)
{
	uint64_t now = now_ns(), deadline;
	int ms = tracker_wait_ms(r->session->tracker);
	int governor_ms = governor_wait_ms(r->session->governor);

	ms = governor_ms < ms ? governor_ms : ms;
	if (!r->opts.duration_ns)
		return ms;
	deadline = r->facts.begin_ns + r->opts.duration_ns;
	if (now >= deadline)
		return 0;
	if ((deadline - now) / 1000000 < (uint64_t)ms)
		ms = (deadline - now) / 1000000 + 1;
	return ms;
}

static int loop_once(struct recorder *r)
{
	int err = loop_turn(r->loop, wait_ms(r));

	if (err)
		return err;
	if (r->opts.duration_ns && now_ns() >= r->facts.begin_ns + r->opts.duration_ns)
		end(r, "the time was up");
	err = tracker_work(r->session->tracker);
	/* Whoever asked the guardian for something may have received that news, too. */
	if (guardian_take_dropped(r->guardian) && !r->is_over)
		governor_resume_after_stop(r->session->governor, "record");
	if (!err)
		err = governor_work(r->session->governor);
	if (!tracker_running_cnt(r->session->tracker))
		end(r, "the process ended");
	return err;
}

/* The ring may report the target's end before the pidfd: reap it. */
static void settle(struct recorder *r)
{
	int status;

	if (r->launch && r->facts.exit_status < 0 && !tracker_running_cnt(r->session->tracker)) {
		for (int i = 0; i < 100 && launch_reap(r->launch, &status); i++)
			usleep(10000);
		on_child_end(r, -1);
	}
}

/* This also reads the last moment. */
int recorder_peek(struct recorder *r)
{
	const struct resident_reading *rows = &r->rows_end.answer;
	bool is_pinned_known = r->pins.bytes && rows->is_known && rows->is_proved;
	int err = snapshot_take_moment(r->session->engine, r->history,
				       is_pinned_known ? &r->pins : NULL, &r->snapshot);

	if (!err && r->history)
		err = history_finish(r->history);
	if (!err)
		err = snapshot_part_replaced(r->snapshot, r->session->tracker);
	r->facts.end_ns = now_ns();
	r->facts.end_epoch_ns = clock_ns(CLOCK_REALTIME);
	r->facts.site_cnt = tracker_counts(r->session->tracker).probes.site_cnt;
	return err;
}

/* Without the list, it is not known what blocks pin; nor what those of several processes do. */
static void list_pins(struct recorder *r)
{
	pid_t pid = r->targets.list.data[0].pid;
	uint32_t generation = tracker_generation(r->session->tracker, pid);
	int err;

	if (tracker_counts(r->session->tracker).followed_cnt > 1)
		return;
	err = snapshot_list_blocks(r->session->engine, pid, generation, &r->pins);
	if (!err)
		err = resident_pins_share(&r->pins);
	r->pins.is_all = !err || err == -ENODATA;
	if (!r->pins.is_all)
		resident_pins_release(&r->pins);
}

/*
 * The coarsest rate at which blocks that are in use can have been allocated; 0: not known. The rate of the probes follows what
 * they cost, and each step of the budget makes it coarser.
 */
static uint64_t coarsest_rate(const struct recorder *r, pid_t pid,
			      const struct track_instance *inst)
{
	uint64_t rate_bytes = r->opts.rate_is_fixed ? r->opts.rate_bytes : AUTO_RATE_USUAL;
	struct governor_view view;

	if (governor_view(r->session->governor, pid, &view) ||
	    (inst->sampler_ns && !inst->sampler_rate_bytes))
		return 0;
	if (view.step_cnt)
		rate_bytes = budget_rate_bytes(rate_bytes, BUDGET_COARSE_CAP);
	return rate_bytes > inst->sampler_rate_bytes ? rate_bytes : inst->sampler_rate_bytes;
}

/*
 * The other reading of what is resident. The recording goes on meanwhile, so that it knows how often the process called its
 * allocator during the reading.
 */
static void read_last_rows(struct recorder *r)
{
	uint64_t before[HT_STAT_CNT], after[HT_STAT_CNT];
	struct resident_reading *answer = &r->rows_end.answer;
	const struct track_instance *inst;
	pid_t pid;
	int err;

	if (!r->has_rows)
		return;
	pid = r->targets.list.data[r->rows_target].pid;
	rows_reader_work(&r->rows_begin);
	rows_reader_give_up(&r->rows_begin, "the recording ended before the reading");
	if (!tracker_running_cnt(r->session->tracker)) {
		rows_reader_give_up(&r->rows_end, "");
		r->rows_end = (struct rows_reader){ 0 }; /* also an answer from before */
		rows_reader_give_up(&r->rows_end, "the process had ended");
		r->rows_latest = r->rows_end.answer;
		return;
	}
	if (r->opts.refreshes_rows)
		return;
	if (r->error || guardian_is_lost(r->guardian)) { /* the probes are about to go */
		rows_reader_give_up(&r->rows_end, "the recording failed");
		return;
	}
	look_at_targets_now(r);
	if (!r->opts.is_quiet)
		log_status("reading the heap of PID %d (Ctrl-C skips it)", pid);
	/* A block that is allocated while they are listed is in the heap and not in the list. */
	err = engine_read_stats(r->session->engine, before);
	list_pins(r);
	begin_last_rows(r, r->rows_begin.answer.is_known ? ROWS_MOST_NS : ROWS_ALONE_NS);
	while (!rows_reader_work(&r->rows_end))
		if (loop_turn(r->loop, ROWS_LOOK_MS) || tracker_work(r->session->tracker) ||
		    governor_work(r->session->governor))
			rows_reader_give_up(&r->rows_end, "the recording failed");
	inst = instances_find(tracker_instances(r->session->tracker), pid,
			      tracker_generation(r->session->tracker, pid));
	if (err || !inst || engine_read_stats(r->session->engine, after)) {
		answer->is_counted = false;
		return;
	}
	answer->coarsest_rate_bytes = coarsest_rate(r, pid, inst);
	answer->hit_cnt = inst->sampler_ns ? 0 : after[HT_STAT_HITS_ALLOC];
	answer->late_hit_cnt = after[HT_STAT_HITS_ALLOC] - before[HT_STAT_HITS_ALLOC] +
			       after[HT_STAT_HITS_FREE] - before[HT_STAT_HITS_FREE];
}

int recorder_run(struct recorder *r)
{
	int err = 0;

	while (!r->is_over && !err)
		err = loop_once(r);
	if (err) {
		log_error("record: %s: ending the recording early", strerror(-err));
		recorder_end(r, "an error");
		r->error = err;
	}
	read_last_rows(r);
	tracker_read_counters(r->session->tracker);
	look_at_targets_now(r);
	show_status(r);
	log_status_end();
	governor_stop(r->session->governor);
	/* It reports execs: what earlier images held is over. */
	err = engine_events_drain(r->session->engine);
	if (err && !r->error) {
		log_error("record: cannot read the last events: %s", strerror(-err));
		r->error = err;
	}
	tracker_stop_allocs(r->session->tracker);
	exec_hold_free(r->hold); /* nothing has to wait any more */
	r->hold = NULL;
	err = recorder_peek(r);
	tracker_stop(r->session->tracker);
	if (r->opts.jvm_perfmap)
		jvm_names_ask(r->targets.reader, r->session->tracker);
	governor_end(r->session->governor);
	settle(r);
	if (err)
		log_error("record: cannot read the samples: %s", strerror(-err));
	return err;
}

int recorder_error(const struct recorder *r)
{
	return r->error;
}

int recorder_program_status(struct recorder *r)
{
	if (r->launch && r->facts.exit_status < 0)
		launch_reap(r->launch, &r->facts.exit_status);
	return r->facts.exit_status;
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	exec_hold_free(r->hold);
	rows_reader_give_up(&r->rows_begin, "");
	rows_reader_give_up(&r->rows_end, "");
	resident_pins_release(&r->pins);
	session_stop(r->session);
	process_events_close(r->events);
	idle_tasks_release(&r->idle_tasks);
	history_free(r->history);
	session_free(r->session);
	snapshot_free(r->snapshot);
	launch_free(r->launch);
	targets_release(&r->targets);
	guardian_end(r->guardian);
	reader_end(r->targets.reader);
	loop_free(r->loop);
	free(r);
}

const struct session *recorder_session(const struct recorder *r)
{
	return r->session;
}

void recorder_facts(const struct recorder *r, struct recorder_facts *ret)
{
	const struct tracker_counts counts = tracker_counts(r->session->tracker);
	const struct target *one;

	*ret = r->facts;
	ret->snapshot = r->snapshot;
	ret->history = r->history;
	ret->pid = r->targets.list.data[0].pid;
	vec_each(&r->targets.list, one) {
		ret->rss_begin_bytes += one->rss_begin_bytes;
		ret->rss_bytes += one->rss_bytes;
		ret->rss_file_growth_bytes +=
			(int64_t)one->file_bytes - (int64_t)one->file_begin_bytes;
	}
	ret->was_started = r->launch != NULL;
	ret->rate_bytes = governor_rate_bytes(r->session->governor);
	ret->source = r->opts.source;
	ret->mode = r->session->mode;
	ret->follow = r->opts.follow;
	ret->live_cap = r->opts.live_cap;
	ret->failed_cnt = counts.probes.failed_cnt;
	ret->failed_why = recorder_failed_why(r, counts.probes.failed_err);
	if (r->has_rows) {
		ret->rows_begin = &r->rows_begin.answer;
		ret->rows_end = r->opts.refreshes_rows ? &r->rows_latest : &r->rows_end.answer;
	}
	if (counts.followed_cnt > 1)
		ret->rows_of = &r->targets.list.data[r->rows_target];
}
