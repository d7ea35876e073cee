/* SPDX-License-Identifier: MIT */
/*
 * tracker.c - begins and ends the tracking of processes, handles the kernel's events, and does the periodic work (see
 * tracker.h).
 *
 * tracker_ask.c answers questions. tracked.c reads a process and keeps what is known of it.
 */
#include "track/tracker_priv.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/loop.h"
#include "guardian/exec_hold.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "kernel/reclaim.h"
#include "proc/events.h"
#include "proc/process.h"
#include "alloc/file_sampler.h"
#include "track/jit_code.h"
#include "track/tap_orders.h"

/*
 * The breakpoints that children inherit are removed at once from forked children that are not
 * followed, but in a storm of forks more and more seldom: most children soon execute another
 * program, which removes the breakpoints for free.
 */
#define CLEAN_CNT 3 /* now and then a breakpoint survives the first time */
#define CLEAN_INTERVAL_NS (10 * NS_PER_MS) /* after a calm... */
#define CLEAN_STORM_NS (250 * NS_PER_MS) /* ... and in the end of a storm */
#define CLEAN_CALM_NS NS_PER_S
/* Interval of looking for tags that were not ready. */
#define TAGS_INTERVAL_NS 200000000ULL
/* Interval of retrying files of which somebody has exclusive use. */
#define BUSY_INTERVAL_NS 1000000000ULL
/* A forked child is tapped after it has lived this long: most execute another program before. */
#define TAP_CHILD_NS 50000000ULL
#define TAP_LOG_NS (10 * NS_PER_S)
#define TAP_LOG_BURST 10
/* Interval of ordering the sharers of events. */
#define ORDER_INTERVAL_NS 1000000000ULL
/* How late the mappings of files that could wait may be read. */
#define PLAIN_LOOK_MS 100
/* Interval of looking for lost events. */
#define LOST_INTERVAL_NS 1000000000ULL
/* Limit of one turn, because the caller has other work: processes that do not answer take this long each. */
#define TURN_NS 200000000ULL

struct pinned_key {
	uint32_t pid;
	uint32_t generation;
};

bool tracker_is_let_go(const struct tracker *t, pid_t pid, uint32_t generation)
{
	const struct pinned_key key = { (uint32_t)pid, generation };

	return tracker_is_over(t, pid, generation) && !hmap_get(&t->pinned, &key);
}

static bool is_image_over(void *ctx, pid_t pid, uint32_t generation)
{
	return tracker_is_let_go(ctx, pid, generation);
}

static void on_reclaim_begin(void *ctx)
{
	struct tracker *t = ctx;

	instances_note_over(&t->instances, is_image_over, t);
}

static void on_file_over(void *ctx, struct track_file *file)
{
	struct tracker *t = ctx;

	probes_forget_file(t->probes, file);
	if (t->loaders)
		loaders_forget_file(t->loaders, file);
}

static void on_reclaim_gone(void *ctx)
{
	struct tracker *t = ctx;

	instances_forget_noted(&t->instances);
}

static void on_reclaim_end(void *ctx, const struct reclaim_files *used)
{
	struct tracker *t = ctx;

	if (track_files_reclaim(t->files, used))
		reclaim_ask(t->reclaim);
}

int tracker_new(struct engine *engine, struct guardian *guardian, struct track_files *files,
		const struct track_policy *policy, struct tracker **ret)
{
	static const struct reclaim_ops reclaim_ops = { is_image_over, on_reclaim_begin,
							on_reclaim_gone, on_reclaim_end };
	struct tracker *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (probes_new(engine, guardian, policy, &t->probes) ||
	    reclaim_new(engine, &reclaim_ops, t,
			policy->reclaim_grace_ns ? policy->reclaim_grace_ns : RECLAIM_GRACE_NS,
			&t->reclaim)) {
		probes_free(t->probes);
		free(t);
		return -ENOMEM;
	}
	t->engine = engine;
	t->files = files;
	t->guardian = guardian;
	t->policy = policy;
	t->tap_log = (struct log_limit){ .every_ns = TAP_LOG_NS, .burst = TAP_LOG_BURST };
	instances_init(&t->instances);
	hmap_init(&t->idx, sizeof(uint32_t));
	hmap_init(&t->pinned, sizeof(struct pinned_key));
	track_files_watch(files, on_file_over, t);
	*ret = t;
	return 0;
}

/* Its image with that generation is known now. */
static void note_tap_awaited(const struct tracker *t, const struct tracked_process *p,
			     uint32_t generation)
{
	struct track_instance *inst = instances_find(&t->instances, p->pid, generation);

	if (inst && taps_are_for(t, p))
		inst->is_tap_awaited = true;
}

/* When the recording ends: note if the newest image of a process was not read. */
static void note_unread(struct tracker *t, const struct tracked_process *p)
{
	uint64_t now = now_ns();
	struct ht_target target;

	if (engine_get_target(t->engine, p->pid, &target) ||
	    !instances_get(&t->instances, p->pid, target.generation))
		return;
	note_tap_awaited(t, p, target.generation);
	if (p->held_until_ns < now)
		instances_note_end(&t->instances, p->pid, target.generation, now);
}

void tracker_stop_allocs(struct tracker *t)
{
	struct tracked_process *p;

	t->is_stopped = true;
	vec_each(&t->list, p) {
		engine_mark_target(t->engine, p->pid, HT_TARGET_QUIET, 0);
		note_unread(t, p);
	}
	probes_stop_allocs(t->probes);
}

void tracker_free(struct tracker *t)
{
	if (!t)
		return;
	tracker_stop(t);
	track_files_watch(t->files, NULL, NULL);
	probes_free(t->probes);
	reclaim_free(t->reclaim);
	instances_release(&t->instances);
	hmap_release(&t->pinned);
	tracked_release(t);
	free(t);
}

/* Does nothing after the end of a recording. */
static int probe_file(struct tracker *t, const struct tracked_process *p,
		      const struct track_file *file)
{
	return t->is_stopped ? 0 : probes_add(t->probes, file, p->pid, p->live_tid);
}

/* Find the sampler to be preferred when it is awake, among those of the process's files. */
static void find_sampler(const struct tracker *t, struct tracked_process *p)
{
	struct track_file **file;

	p->sampler = NULL;
	vec_each(&p->mapped, file)
		if (!p->sampler && probes_use_sampler(t->probes, *file))
			p->sampler = *file;
}

/* An image whose allocations may be missing since its exec is said to be that, and one that was held has not run. Which it
 * is, is not known before the exec is heard of: then a later look finds its late files. */
static void find_late_files(const struct tracker *t, struct tracked_process *p)
{
	struct track_instance *inst = instances_find(&t->instances, p->pid, p->generation);
	bool was_held = p->held_until_ns ? now_ns() < p->held_until_ns : inst && inst->has_loader;
	bool has_executed = p->generation % HT_GENERATION_STEP;

	if (inst && !was_held && has_executed && !inst->exec_ns)
		return;
	if (inst && (was_held || (inst->exec_ns && !inst->is_settled)))
		inst = NULL;
	late_files_find(p, t->probes, inst);
}

/* After the shared probes are gone. Until each has its own no frees were seen, so what it had is not known to be in use. */
static void probe_each(struct tracker *t, enum probes_kept kept)
{
	const struct tracked_process *p;
	struct track_instance *inst;
	uint64_t ticket;
	int err;

	vec_each(&t->list, p) {
		if (p->is_emulated)
			continue;
		err = probes_keep(t->probes, p->pid, p->live_tid, kept, &ticket);
		if (!err)
			err = engine_drop_live(t->engine, p->pid, p->generation, NULL);
		if (err && err != -ESRCH && err != -EPIPE)
			log_warn("PID %d cannot get probes of its own: %s", p->pid, strerror(-err));
		inst = instances_find(&t->instances, p->pid, p->generation);
		if (inst)
			inst->inuse_since_ns = now_ns();
	}
}

/* What its image had before is taken out before it runs on. One set of probes in all processes would be in this one, too. */
static void unprobe(struct tracker *t, const struct tracked_process *p)
{
	const bool is_of_all = probes_are_shared(t->probes);
	const enum probes_kept kept = probes_kept_of(t->probes, p->pid);

	log_warn("PID %d executes valgrind, which would execute heaptap's breakpoints: its "
		 "recording ends%s; use valgrind's own tools: --tool=massif, --tool=dhat",
		 p->pid, is_of_all ? ", and heap in use of the others counts from now" : "");
	t->failed_cnt++;
	if (!t->failed_err)
		t->failed_err = -ENOTSUP;
	loaders_free(t->loaders);
	t->loaders = NULL;
	probes_unshare(t->probes);
	probes_del_process(t->probes, p->pid, false);
	guardian_wait_all_detached(t->guardian);
	if (is_of_all && !t->is_stopped)
		probe_each(t, kept);
}

static int refresh(struct tracker *t, struct tracked_process *p)
{
	size_t site_cnt = probes_counts(t->probes)->site_cnt;
	bool was_emulated = p->is_emulated;
	int err = tracked_refresh(t, p);

	if (p->is_emulated) {
		if (!was_emulated)
			unprobe(t, p);
		return err;
	}
	find_sampler(t, p);
	for (size_t i = 0; i < p->mapped.cnt && !err; i++)
		err = probe_file(t, p, p->mapped.data[i]);
	if (!err && taps_are_for(t, p) && !t->is_stopped)
		err = taps_process(t, p);
	if (!err)
		find_late_files(t, p);
	p->has_new_sites |= probes_counts(t->probes)->site_cnt > site_cnt;
	if (p->has_new_sites && tracked_is_current(t, p)) {
		if (now_ns() >= p->held_until_ns)
			instances_note_late(&t->instances, p->pid, p->generation,
					    p->held_until_ns != 0);
		p->has_new_sites = false;
	}
	if (!err)
		instances_note_read(&t->instances, p->pid, p->generation, p->refreshed_ns,
				    !p->is_waiting && !p->has_busy_files && !p->has_gone_files);
	return err;
}

/* The guardian that held the tap was killed: remove the tap from here. */
static void remove_tap(const struct tracker *t, const struct tracked_process *p)
{
	uint32_t cnt;
	struct err why;

	if (p->tap == TAP_IN &&
	    tap_orders_clear(t->policy->reader, p->pid, p->live_tid, &cnt, &why))
		log_warn("PID %d: the tap stays in it: %s; to remove it: heaptap doctor "
			 "--remove-tap -p %d",
			 p->pid, why.text, p->pid);
}

/* If the guardian was killed, perhaps just now: start another one, and remove what the old one left in the processes, as far as
 * there is time. The next heaptap removes the rest. */
static void repair(struct tracker *t)
{
	struct tracked_process *p;

	if (!guardian_is_lost(t->guardian) || guardian_restart(t->guardian))
		return;
	vec_each(&t->list, p) {
		if (!guardian_has_time(t->guardian))
			break;
		p->may_have_leftovers = true;
		refresh(t, p); /* attaches nothing any more */
		remove_tap(t, p);
	}
	guardian_wait_all_detached(t->guardian);
}

void tracker_stop(struct tracker *t)
{
	struct tracked_process *p;

	t->is_stopped = true;
	guardian_begin_end(t->guardian);
	loaders_free(t->loaders);
	t->loaders = NULL;
	probes_stop(t->probes);
	repair(t);
	vec_each(&t->list, p)
		engine_del_target(t->engine, p->pid);
}

void tracker_read_held(struct tracker *t, pid_t pid, bool is_exec, uint64_t until_ns,
		       bool *ret_traces)
{
	struct tracked_process *p = tracked_find(t, pid);

	*ret_traces = false;
	if (!p || t->is_stopped)
		return;
	p->held_until_ns = until_ns;
	if (!refresh(t, p)) {
		if (is_exec && t->loaders &&
		    !loaders_add(t->loaders, t->policy->reader, t->files, pid))
			instances_note_loader(&t->instances, pid, p->generation);
		if (!is_exec)
			instances_note_loaded(&t->instances, pid, p->generation,
					      now_ns() < until_ns);
		for (size_t i = 0; i < p->mapped.cnt; i++)
			*ret_traces |= p->mapped.data[i]->loader.traces;
	}
	p->held_until_ns = 0; /* from here on it runs */
}

static int new_target(struct tracker *t, pid_t pid, uint32_t flags, struct tracked_process **ret)
{
	struct ht_target target = { .flags = flags };
	struct ht_hits before;
	int err;

	target.generation = t->next_generation;
	if (t->policy->follow && t->list.cnt)
		target.hits_idx = t->list.data[0].hits_idx;
	else
		target.hits_idx = engine_hits_take(t->engine);
	if (t->policy->follow)
		target.flags |= HT_TARGET_FOLLOW;
	t->next_generation += HT_GENERATION_STEP;
	err = tracked_find(t, pid) ? -EEXIST :
				     engine_read_hits(t->engine, target.hits_idx, &before);
	if (!err)
		err = engine_put_target(t->engine, pid, &target);
	if (!err) {
		err = tracked_add(t, pid, target.generation, ret);
		if (err)
			engine_del_target(t->engine, pid);
	}
	if (err) {
		if (!t->policy->follow)
			engine_hits_give(t->engine, target.hits_idx);
		return err;
	}
	(*ret)->hits_idx = target.hits_idx;
	(*ret)->hits_before = before;
	(*ret)->followed_ns = now_ns();
	process_cpu_ns(pid, &(*ret)->cpu_before_ns); /* else it has ended */
	return 0;
}

int tracker_add(struct tracker *t, pid_t pid)
{
	struct tracked_process *p;
	int err = new_target(t, pid, HT_TARGET_QUIET, &p), mark_err;

	if (err)
		return err;
	p->may_have_leftovers = true;
	err = taps_are_for_new(t) ? taps_await(t, p, 0) : 0;
	if (!err)
		err = refresh(t, p);
	if (!err)
		err = probes_fd_error(t->probes, pid);
	mark_err = engine_mark_target(t->engine, pid, 0, HT_TARGET_QUIET);
	p->recorded_ns = now_ns();
	return err ? err : mark_err;
}

int tracker_add_launch(struct tracker *t, pid_t pid, const char *const *paths, size_t path_cnt)
{
	struct track_file *file;
	struct tracked_process *p;
	int err = new_target(t, pid, HT_TARGET_WAITS_EXEC, &p);

	if (!err && taps_are_for_new(t))
		err = taps_await(t, p, 0);
	if (!err && t->policy->holds)
		err = loaders_new(t->engine, t->guardian, t->policy->follow ? 0 : pid, &t->loaders);
	/* Making the set is slow, filling it is fast: it is ready when the program runs. */
	if (!err)
		err = engine_put_mappings(t->engine, pid, HT_GENERATION_NONE, 0, NULL, 0);
	for (size_t i = 0; i < path_cnt && !err; i++) {
		/* A file that cannot be opened now is met again as a mapping. */
		if (!track_files_get_path(t->files, paths[i], &file) && file)
			err = probe_file(t, p, file);
	}
	return err;
}

/* Track a child of a tracked process. BPF has already made its target, in the fork. */
static void add_child(struct tracker *t, const struct ht_event *event)
{
	pid_t child = event->other;
	struct tracked_process *p, *parent;
	struct ht_target target;

	if (engine_get_target(t->engine, child, &target) || tracked_find(t, child))
		return;
	if (tracked_add(t, child, target.generation, &p))
		return;
	p->hits_idx = target.hits_idx;
	p->followed_ns = now_ns();
	parent = tracked_find(t, event->tgid); /* the list may have moved */
	if (parent && parent->jit_code)
		p->jit_parent = jit_code_ref(parent->jit_code);
	p->is_child = true;
	if (taps_are_for_new(t))
		taps_await(t, p, p->followed_ns + TAP_CHILD_NS);
	instances_note_begin(&t->instances, child, target.generation, event);
	note_tap_awaited(t, p, target.generation);
	p->is_dirty = true;
}

/* Samples of the allocator's probes are dropped, because their frees will not be seen. */
static int begin_sampled(struct tracker *t, struct tracked_process *p)
{
	struct track_instance *inst = instances_get(&t->instances, p->pid, p->generation);
	size_t dropped_cnt = 0;
	int err = inst ? probes_set_sampled(t->probes, p->pid, p->live_tid, true) : -ENOMEM;

	if (!err && t->policy->source == SOURCE_AUTO)
		err = engine_drop_live(t->engine, p->pid, p->generation, &dropped_cnt);
	if (err)
		return err;
	p->is_sampled = true;
	inst->sampler_ns = now_ns();
	inst->inuse_since_ns = dropped_cnt ? inst->sampler_ns : 0;
	snprintf(inst->sampler, sizeof(inst->sampler), "%s", p->sampler->sampler->provider);
	log_info("PID %d has its own sampler (%s of %s): heaptap reads it, and does not probe the "
		 "allocator",
		 p->pid, inst->sampler, p->sampler->path);
	return 0;
}

static void read_sampler_rate(struct tracker *t, const struct tracked_process *p)
{
	struct track_instance *inst = instances_find(&t->instances, p->pid, p->generation);
	struct ht_hits hits;

	if (inst && !engine_read_hits(t->engine, p->hits_idx, &hits))
		inst->sampler_rate_bytes = hits.sampler_rate_bytes;
}

/* Check whether its own sampler has reported a first sample, or another program runs in it. */
static int follow_sampler(struct tracker *t, struct tracked_process *p)
{
	struct ht_target target;
	bool is_sampled;
	int err;

	if (engine_get_target(t->engine, p->pid, &target) || target.generation != p->generation)
		return 0;
	is_sampled = target.flags & HT_TARGET_SAMPLES;
	if (is_sampled && (p->is_sampled || p->sampler)) {
		err = p->is_sampled ? 0 : begin_sampled(t, p);
		if (p->tap != TAP_IN)
			read_sampler_rate(t, p);
		return err;
	}
	if (is_sampled == p->is_sampled)
		return 0;
	p->is_sampled = false;
	if (taps_are_for(t, p) && p->tap != TAP_REFUSED)
		return 0; /* the next image is tapped, too */
	return probes_set_sampled(t->probes, p->pid, p->live_tid, false);
}

/* Its instances stay, for the snapshot. The last process moves to its place. */
static void end_process(struct tracker *t, struct tracked_process *p, bool has_ended)
{
	if (p->sampler || p->is_sampled)
		follow_sampler(t, p); /* a last look, because its samples live on */
	reclaim_ask(t->reclaim);
	probes_del_process(t->probes, p->pid, has_ended);
	engine_del_target(t->engine, p->pid);
	if (!t->policy->follow)
		engine_hits_give(t->engine, p->hits_idx);
	tracked_delete(t, p);
}

void tracker_remove(struct tracker *t, pid_t pid)
{
	struct tracked_process *p = tracked_find(t, pid);

	if (p)
		end_process(t, p, process_has_ended(t->policy->reader, pid));
}

static int keep_probes_of_each(struct tracker *t, enum probes_kept kept)
{
	const struct tracked_process *p;
	uint64_t ticket;
	int err = 0;

	vec_each(&t->list, p) {
		if (err)
			break;
		err = probes_keep(t->probes, p->pid, p->live_tid, kept, &ticket);
		guardian_wait_detached(t->guardian, ticket);
	}
	return err;
}

int tracker_keep_probes(struct tracker *t, pid_t pid, enum probes_kept kept, uint64_t *ret_ticket)
{
	const struct tracked_process *p = tracker_find(t, pid);

	*ret_ticket = 0;
	if (t->is_stopped)
		return 0;
	if (!pid && t->policy->follow && !probes_are_shared(t->probes))
		return keep_probes_of_each(t, kept);
	return p ? probes_keep(t->probes, p->pid, p->live_tid, kept, ret_ticket) : -ESRCH;
}

void tracker_wait_detached(struct tracker *t, uint64_t ticket)
{
	guardian_wait_detached(t->guardian, ticket);
}

int tracker_pin_image(struct tracker *t, pid_t pid, uint32_t generation)
{
	const struct pinned_key key = { (uint32_t)pid, generation };

	return hmap_put(&t->pinned, &key, 0);
}

void tracker_unpin_image(struct tracker *t, pid_t pid, uint32_t generation)
{
	const struct pinned_key key = { (uint32_t)pid, generation };

	if (hmap_del(&t->pinned, &key))
		reclaim_ask(t->reclaim);
}

void tracker_on_event(struct tracker *t, const struct ht_event *event)
{
	struct tracked_process *p = tracked_find(t, event->tgid);

	if (t->is_stopped)
		return;
	if (event->kind == HT_EVENT_FORK && t->policy->follow)
		add_child(t, event);
	if (!p)
		return;
	switch (event->kind) {
	case HT_EVENT_EXEC:
		instances_note_begin(&t->instances, p->pid, event->generation, event);
		note_tap_awaited(t, p, event->generation);
		instances_note_end(&t->instances, p->pid, event->generation - 1, event->time_ns);
		p->is_dirty = true;
		p->held_until_ns = event->other ? event->time_ns + HOLD_LIMIT_NS : 0;
		p->tap_due_ns = 0;
		reclaim_ask(t->reclaim);
		break;
	case HT_EVENT_UNMAPPED:
		p->is_dirty = true;
		break;
	case HT_EVENT_EXIT:
		/* A process's last event may be read only after a new process with its pid was
		 * added. */
		if (tracker_is_of(t, p->pid, event->generation)) {
			instances_note_end(&t->instances, p->pid, event->generation,
					   event->time_ns);
			end_process(t, p, true);
		}
		break;
	case HT_EVENT_FORK:
		/* Children never run the code that the tap's probes are in. */
		if (!t->policy->follow && p->tap != TAP_IN)
			p->cleans_left = CLEAN_CNT;
		break;
	}
}

void tracker_on_mmap(struct tracker *t, const struct process_events_map *map)
{
	struct tracked_process *p = tracked_find(t, map->pid);

	if (!p || tracked_may_wait(t, p, map))
		return;
	p->is_dirty = true;
	late_files_note_mapped(p, map->ino, map->time_ns);
}

/* Refresh only the first time. Some compilers make the same memory writable and executable again
 * all the time; walks meet the code that they add. */
void tracker_on_code(struct tracker *t, pid_t pid)
{
	struct tracked_process *p = tracked_find(t, pid);

	if (p && !p->jit_code)
		p->is_dirty = true;
}

void tracker_on_lost(struct tracker *t)
{
	struct tracked_process *p;

	vec_each(&t->list, p)
		p->is_dirty = true;
}

static bool wants_work(const struct tracker *t)
{
	const struct tracked_process *p;

	if (t->is_stopped)
		return false;
	if (probes_are_moving(t->probes))
		return true;
	vec_each(&t->list, p)
		if (p->is_dirty || p->is_waiting || p->tap_due_ns ||
		    (p->cleans_left && p->clean_wait_ns < CLEAN_STORM_NS))
			return true;
	return false;
}

int tracker_wait_ms(const struct tracker *t)
{
	const struct tracked_process *p;
	int ms = wants_work(t) ? 10 : 1000;

	vec_each(&t->list, p) {
		if (p->jit_code && ms > (int)(JIT_REFRESH_NS / NS_PER_MS))
			ms = (int)(JIT_REFRESH_NS / NS_PER_MS);
		if (p->plain_due_ns && ms > PLAIN_LOOK_MS)
			ms = PLAIN_LOOK_MS;
	}
	return ms;
}

static void clean_children(struct tracker *t, struct tracked_process *p)
{
	const uint64_t now = now_ns();

	p->clean_wait_ns =
		now < p->cleaned_ns + CLEAN_CALM_NS ? 2 * p->clean_wait_ns : CLEAN_INTERVAL_NS;
	if (p->clean_wait_ns > CLEAN_STORM_NS)
		p->clean_wait_ns = CLEAN_STORM_NS;
	p->cleaned_ns = now;
	if (probes_clean_children(t->probes, p->pid))
		p->cleans_left--;
}

/* An exec, a fork or an end may be among the events that were lost. */
static void check_lost(struct tracker *t)
{
	uint64_t stats[HT_STAT_CNT], now = now_ns();
	bool has_grown;

	if (now < t->lost_checked_ns + LOST_INTERVAL_NS)
		return;
	t->lost_checked_ns = now;
	if (engine_read_stats(t->engine, stats) || !stats[HT_STAT_EVENTS_LOST])
		return;
	has_grown = stats[HT_STAT_EVENTS_LOST] != t->lost_cnt;
	t->lost_cnt = stats[HT_STAT_EVENTS_LOST];
	/* An end takes a while, so after the first loss every look checks all processes. */
	for (size_t i = t->list.cnt; i-- > 0;) { /* backwards: see end_process() */
		struct tracked_process *p = &t->list.data[i];

		if (process_has_ended(t->policy->reader, p->pid))
			end_process(t, p, true);
		else
			p->is_dirty |= has_grown;
	}
}

/* Refresh one process at a time, so that processes that were read together spread out. */
static void refresh_oldest(struct tracker *t)
{
	struct tracked_process *p, *oldest = NULL;

	vec_each(&t->list, p)
		if (!oldest || p->refreshed_ns < oldest->refreshed_ns)
			oldest = p;
	if (oldest && now_ns() >= oldest->refreshed_ns + t->policy->refresh_ns)
		oldest->is_dirty = true;
}

/* Children that share their parent's counter all have the same number of hits. */
static void read_hits(struct tracker *t, uint64_t passed_ns)
{
	struct tracked_process *p;

	vec_each(&t->list, p) {
		struct ht_hits hits;
		uint64_t cnt;

		if (engine_read_hits(t->engine, p->hits_idx, &hits))
			continue;
		cnt = hits.alloc_cnt + hits.free_cnt;
		if (p->has_seen_hits)
			p->hits_per_s = (double)(cnt - p->hits_seen) * NS_PER_S / (double)passed_ns;
		p->hits_seen = cnt;
		p->has_seen_hits = true;
	}
}

static double hits_per_s(void *t, pid_t pid)
{
	const struct tracked_process *p = tracked_find(t, pid);

	return p ? p->hits_per_s : 0;
}

static void order_sharers(struct tracker *t)
{
	const struct probes_activity activity = { hits_per_s, t };
	uint64_t now = now_ns(), passed_ns = now - t->ordered_ns;

	if (passed_ns < ORDER_INTERVAL_NS || !probes_share_events(t->probes))
		return;
	read_hits(t, passed_ns);
	probes_order(t->probes, &activity);
	t->ordered_ns = now;
}

/* New files are known: refresh the processes that wait for some. */
static int take_files(struct tracker *t)
{
	struct tracked_process *p;
	int err;

	if (track_files_work(t->files, 0, &err))
		t->has_new_files = true;
	if (t->has_new_files)
		vec_each(&t->list, p)
			p->is_dirty |= p->is_waiting;
	t->has_new_files = false;
	if (track_files_may_retry(t->files))
		vec_each(&t->list, p)
			p->is_dirty |= p->has_unread_files;
	return err == -ENOMEM ? err : 0;
}

static int work_for(struct tracker *t, struct tracked_process *p)
{
	int err = 0;

	if (p->tags.is_pending && now_ns() >= p->refreshed_ns + TAGS_INTERVAL_NS)
		p->is_dirty = true;
	if (p->jit_code && jit_code_refresh(p->jit_code))
		p->is_dirty = true;
	if (p->has_busy_files && now_ns() >= p->refreshed_ns + BUSY_INTERVAL_NS)
		p->is_dirty = true;
	if (p->tap_due_ns && now_ns() >= p->tap_due_ns)
		p->is_dirty = true;
	if (p->plain_due_ns && now_ns() >= p->plain_due_ns)
		p->is_dirty = true;
	if (p->is_dirty && !loop_is_told_to_end())
		err = refresh(t, p);
	if (!err && (p->sampler || p->is_sampled))
		err = follow_sampler(t, p);
	if (!err && p->tap == TAP_IN)
		taps_adjust(t, p);
	if (err == -ESRCH || err == -ENOENT)
		err = 0; /* its exit event is on the way */
	if (p->cleans_left && now_ns() >= p->cleaned_ns + p->clean_wait_ns)
		clean_children(t, p);
	return err;
}

int tracker_work(struct tracker *t)
{
	const uint64_t end_ns = now_ns() + TURN_NS;
	int err;

	if (t->is_stopped)
		return 0;
	err = take_files(t);
	check_lost(t);
	if (t->policy->refresh_ns)
		refresh_oldest(t);
	probes_work(t->probes);
	order_sharers(t);
	for (size_t left = t->list.cnt; left && !err && now_ns() < end_ns; left--) {
		if (t->next_idx >= t->list.cnt)
			t->next_idx = 0;
		err = work_for(t, &t->list.data[t->next_idx++]);
	}
	return err;
}
