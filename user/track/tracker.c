/* SPDX-License-Identifier: MIT */
/* tracker.c - see tracker.h. */
#include "track/tracker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "kernel/engine.h"
#include "kernel/reclaim.h"
#include "model/tag_labels.h"
#include "target/process.h"
#include "track/file_probes.h"
#include "track/files.h"

/*
 * Forked children that nobody asked for lose the inherited breakpoints at once, but in a storm of
 * forks not more often than this: most children execute another program soon, which takes the
 * breakpoints away for free.
 */
#define CLEAN_CNT 3 /* now and then a breakpoint survives the first time */
#define CLEAN_INTERVAL_NS 10000000ULL
/* How often to look for tags that were not ready. */
#define TAGS_INTERVAL_NS 200000000ULL
/* How often to put the sharers of events in order. */
#define ORDER_INTERVAL_NS 1000000000ULL
/* How often to look whether events were lost. */
#define LOST_INTERVAL_NS 1000000000ULL

struct process {
	pid_t pid;
	pid_t live_tid;
	uint32_t generation; /* of the image that was last read */
	bool is_dirty; /* mappings to be read again */
	bool has_allocator; /* among the files that were mapped when they were last read */
	uint32_t cleans_left; /* times that forked children are still to be cleaned */
	uint64_t cleaned_ns; /* when it was last done */
	uint64_t refreshed_ns;
	bool has_seen_hits;
	uint64_t hits_seen; /* when the sharers of events were last put in order */
	double hits_per_s; /* before that */
	uint32_t hits_idx; /* where its hits are counted; followed children share their parent's */
	struct ht_hits hits_before; /* counted there before it */
	struct process_tags tags;
	VEC(struct track_file *) mapped; /* each is held once */
};

struct held_key {
	uint32_t pid;
	uint32_t generation;
};

struct tracker {
	struct engine *engine;
	struct track_files *files;
	struct tracker_options opts;
	VEC(struct process) processes; /* those that run, in no order */
	struct hmap process_idx; /* pid -> index in it */
	struct probes *probes;
	struct instances instances;
	struct reclaim *reclaim;
	struct hmap held; /* struct held_key of images whose samples are still wanted */
	uint32_t next_generation;
	uint64_t ordered_ns; /* when the sharers of events were last put in order */
	uint64_t followed_cnt, ended_cnt;
	bool is_stopped;
	uint64_t lost_cnt, lost_checked_ns; /* events that did not fit into the ring */
	size_t failed_cnt; /* files that could not be entered */
	int failed_err;
};

static bool is_image_over(void *ctx, pid_t pid, uint32_t generation)
{
	const struct held_key key = { (uint32_t)pid, generation };
	const struct tracker *t = ctx;

	return tracker_is_over(t, pid, generation) && !hmap_get(&t->held, &key);
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
}

static void on_reclaim_end(void *ctx, const struct reclaim_files *used)
{
	struct tracker *t = ctx;

	instances_forget_noted(&t->instances);
	if (track_files_reclaim(t->files, used))
		reclaim_ask(t->reclaim);
}

int tracker_new(struct engine *engine, struct track_files *files,
		const struct tracker_options *opts, struct tracker **ret)
{
	static const struct reclaim_ops reclaim_ops = { is_image_over, on_reclaim_begin,
							on_reclaim_end };
	const struct probes_options probes_opts = {
		.is_shared = opts->follow,
		.probe_throwing = opts->probe_throwing,
		.is_all_agreed = opts->is_all,
		.wanted = opts->way,
		.events = opts->events,
		.costs = opts->costs,
	};
	struct tracker *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (probes_new(engine, &probes_opts, &t->probes) ||
	    reclaim_new(engine, &reclaim_ops, t,
			opts->reclaim_grace_ns ? opts->reclaim_grace_ns : RECLAIM_GRACE_NS,
			&t->reclaim)) {
		probes_free(t->probes);
		free(t);
		return -ENOMEM;
	}
	t->engine = engine;
	t->files = files;
	t->opts = *opts;
	hmap_init(&t->process_idx, sizeof(uint32_t));
	instances_init(&t->instances);
	hmap_init(&t->held, sizeof(struct held_key));
	track_files_watch(files, on_file_over, t);
	*ret = t;
	return 0;
}

void tracker_stop_allocs(struct tracker *t)
{
	struct process *p;

	t->is_stopped = true;
	vec_each(&t->processes, p)
		engine_mark_target(t->engine, p->pid, HT_TARGET_QUIET, 0);
	probes_stop_allocs(t->probes);
}

void tracker_stop(struct tracker *t)
{
	struct process *p;

	t->is_stopped = true;
	probes_stop(t->probes);
	vec_each(&t->processes, p)
		engine_del_target(t->engine, p->pid);
}

void tracker_free(struct tracker *t)
{
	struct process *p;

	if (!t)
		return;
	tracker_stop(t);
	track_files_watch(t->files, NULL, NULL);
	probes_free(t->probes);
	reclaim_free(t->reclaim);
	instances_release(&t->instances);
	hmap_release(&t->held);
	vec_each(&t->processes, p) {
		process_tags_release(&p->tags);
		vec_release(&p->mapped);
	}
	vec_release(&t->processes);
	hmap_release(&t->process_idx);
	free(t);
}

static struct process *find_process(const struct tracker *t, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	const uint64_t *idx = hmap_get(&t->process_idx, &key);

	return idx ? &t->processes.data[*idx] : NULL;
}

/* BPF saw the image begin: its name is known whatever becomes of it. */
static void name_instance(struct tracker *t, const struct ht_event *event, pid_t pid,
			  uint32_t generation)
{
	struct track_instance *inst = instances_get(&t->instances, pid, generation);

	if (inst)
		memcpy(inst->comm, event->comm, sizeof(inst->comm));
}

/* Add what /proc says, if it still speaks of this image. */
static int note_instance(struct tracker *t, const struct process *p)
{
	struct track_instance *inst = instances_get(&t->instances, p->pid, p->generation);
	struct process_info info;
	struct ht_target target;

	if (!inst)
		return -ENOMEM;
	if (process_info_read(p->pid, &info))
		return 0;
	if (engine_get_target(t->engine, p->pid, &target) || target.generation != p->generation)
		return 0;
	return instance_describe(inst, &info);
}

static void note_failure(struct tracker *t, int err)
{
	t->failed_cnt++;
	if (!t->failed_err)
		t->failed_err = err;
}

/* After the end of a recording no more. */
static int probe_file(struct tracker *t, const struct process *p, const struct track_file *file)
{
	return t->is_stopped ? 0 : probes_add(t->probes, file, p->pid, p->live_tid);
}

struct file_list {
	VEC(struct track_file *) file; /* with an allocator or tags in it */
};

/* The names of the keys of labels, to the process's image. */
static int read_keys(struct tracker *t, struct process *p, uint32_t generation,
		     const struct proc_maps *maps)
{
	struct track_instance *inst;
	struct tag_keys *keys;
	int err = process_tags_read_keys(&p->tags, t->engine, p->pid, p->live_tid, generation, maps,
					 &keys);

	if (err || !keys)
		return err;
	inst = instances_get(&t->instances, p->pid, generation);
	if (!inst) {
		tag_keys_release(keys);
		free(keys);
		return -ENOMEM;
	}
	instance_set_keys(inst, keys);
	return 0;
}

static bool is_in_list(const struct file_list *list, const struct track_file *file)
{
	for (size_t i = 0; i < list->file.cnt; i++)
		if (list->file.data[i] == file)
			return true;
	return false;
}

/* The process maps these files now, and no others. */
static void hold_files(struct tracker *t, struct process *p, struct file_list *mapped)
{
	struct track_file **file;

	vec_each(&mapped->file, file)
		track_file_hold(*file);
	vec_each(&p->mapped, file)
		if (track_file_put(*file))
			reclaim_ask(t->reclaim);
	vec_release(&p->mapped);
	p->mapped.data = mapped->file.data;
	p->mapped.cnt = mapped->file.cnt;
	p->mapped.cap = mapped->file.cap;
	memset(mapped, 0, sizeof(*mapped));
}

/* Mappings of the process -> mapping set in the engine; the files worth probing -> list. */
static int read_mappings(struct tracker *t, struct process *p, uint32_t generation,
			 struct file_list *list)
{
	VEC(struct ht_mapping) set = { 0 };
	struct file_list mapped = { 0 };
	struct proc_maps maps = { 0 };
	const struct proc_map *m;
	int err = proc_maps_read(p->pid, p->live_tid, &maps);

	if (err)
		return err;
	process_tags_begin(&p->tags);
	vec_each(&maps.maps, m) {
		struct track_file *file = NULL;
		struct ht_mapping hm = { m->start_addr, m->end_addr, 0, 0, 0 };
		uint64_t bias;

		/* [vsyscall] is in the kernel's half: nothing calls malloc from there, and the
		 * walk's search compares as signed numbers. */
		if (!m->is_exec || m->start_addr >> 63)
			continue;
		err = track_files_get(t->files, p->pid, p->live_tid, m, &file);
		if (err == -ENOMEM)
			goto out;
		if (err) /* no more tables or descriptors: go on without this file */
			note_failure(t, err);
		if (file && !track_file_bias(file, m->start_addr, m->off, &bias)) {
			hm.bias = bias;
			hm.file_id = file->id;
		}
		err = vec_push(&set, hm);
		if (!err && file && !is_in_list(&mapped, file))
			err = vec_push(&mapped.file, file);
		if (!err && file && (file->alloc || file->tags))
			err = vec_push(&list->file, file);
		if (!err && file && file->tags && hm.file_id)
			err = process_tags_add_file(&p->tags, t->engine, p->pid, p->live_tid,
						    generation, file, hm.bias, &maps);
		if (err)
			goto out;
	}
	err = engine_put_mappings(t->engine, p->pid, generation, set.data, set.cnt);
	if (err && err != -ENOMEM) { /* the walk asks the kernel then */
		note_failure(t, err);
		err = 0;
	}
	if (!err) {
		hold_files(t, p, &mapped);
		err = read_keys(t, p, generation, &maps);
	}
out:
	vec_release(&set);
	vec_release(&mapped.file);
	proc_maps_release(&maps);
	return err;
}

/* Bring one process up to date: mappings first, so that the first sample can be unwound. */
static int refresh(struct tracker *t, struct process *p)
{
	struct file_list list = { 0 };
	struct ht_target target;
	struct process_info info;
	int err;

	p->is_dirty = false;
	p->refreshed_ns = now_ns();
	if (!process_info_read(p->pid, &info) && info.live_tid)
		p->live_tid = info.live_tid;
	err = engine_get_target(t->engine, p->pid, &target);
	if (err)
		return err;
	/* If an exec comes in between, the set is the old image's: it does not count then, the walk
	 * asks the kernel, and the exec's event brings us here again. */
	err = read_mappings(t, p, target.generation, &list);
	if (err)
		goto out;
	p->generation = target.generation;
	p->has_allocator = false;
	err = note_instance(t, p);
	for (size_t i = 0; i < list.file.cnt; i++)
		p->has_allocator |= list.file.data[i]->alloc != NULL;
	for (size_t i = 0; i < list.file.cnt && !err; i++)
		err = probe_file(t, p, list.file.data[i]);
out:
	vec_release(&list.file);
	return err;
}

/* A process entry; its target is the caller's business. */
static int new_process(struct tracker *t, pid_t pid, uint32_t generation, struct process **ret)
{
	struct process fresh = { .pid = pid, .live_tid = pid, .generation = generation };
	uint32_t key = (uint32_t)pid;
	int err = find_process(t, pid) ? -EEXIST : 0;

	if (!err)
		err = vec_reserve(&t->processes, t->processes.cnt + 1);
	if (!err)
		err = hmap_put(&t->process_idx, &key, t->processes.cnt);
	if (err)
		return err;
	t->processes.data[t->processes.cnt] = fresh;
	t->followed_cnt++;
	*ret = &t->processes.data[t->processes.cnt++];
	return 0;
}

static int new_target(struct tracker *t, pid_t pid, uint32_t flags, struct process **ret)
{
	struct ht_target target = { .flags = flags, .rate_idx = t->opts.rate_idx };
	int err;

	target.generation = t->next_generation;
	if (t->opts.follow && t->processes.cnt)
		target.hits_idx = t->processes.data[0].hits_idx;
	else
		target.hits_idx = engine_hits_take(t->engine);
	if (t->opts.follow)
		target.flags |= HT_TARGET_FOLLOW;
	t->next_generation += HT_GENERATION_STEP;
	err = new_process(t, pid, target.generation, ret);
	if (!err) {
		(*ret)->hits_idx = target.hits_idx;
		err = engine_read_hits(t->engine, target.hits_idx, &(*ret)->hits_before);
	}
	return err ? err : engine_put_target(t->engine, pid, &target);
}

int tracker_add(struct tracker *t, pid_t pid)
{
	struct process *p;
	int err = new_target(t, pid, HT_TARGET_QUIET, &p), mark_err;

	if (err)
		return err;
	err = refresh(t, p);
	mark_err = engine_mark_target(t->engine, pid, 0, HT_TARGET_QUIET);
	return err ? err : mark_err;
}

int tracker_add_launch(struct tracker *t, pid_t pid, const char *const *paths, size_t path_cnt)
{
	struct track_file *file;
	struct process *p;
	int err = new_target(t, pid, HT_TARGET_WAITS_EXEC, &p);

	/* Making the set takes long, filling it does not: it is there when the program runs. */
	if (!err)
		err = engine_put_mappings(t->engine, pid, HT_GENERATION_NONE, NULL, 0);
	for (size_t i = 0; i < path_cnt && !err; i++) {
		/* What cannot be opened now is met again as a mapping. */
		if (!track_files_get_path(t->files, paths[i], &file) && file)
			err = probe_file(t, p, file);
	}
	return err;
}

/* A child of a followed process: its target exists already, made by BPF in the fork. */
static void add_child(struct tracker *t, const struct ht_event *event)
{
	pid_t child = event->other;
	struct process *p;
	struct ht_target target;

	if (engine_get_target(t->engine, child, &target) || find_process(t, child))
		return;
	if (new_process(t, child, target.generation, &p))
		return;
	p->hits_idx = target.hits_idx;
	name_instance(t, event, child, target.generation);
	p->is_dirty = true;
}

/* It has ended: its instances stay, for the snapshot. The last process takes its place. */
static void end_process(struct tracker *t, struct process *p)
{
	struct process *last = &t->processes.data[t->processes.cnt - 1];
	uint32_t key = (uint32_t)p->pid;
	struct file_list none = { 0 };

	t->ended_cnt++;
	hold_files(t, p, &none);
	reclaim_ask(t->reclaim);
	probes_del_process(t->probes, p->pid);
	process_tags_release(&p->tags);
	engine_del_target(t->engine, p->pid);
	if (!t->opts.follow)
		engine_hits_give(t->engine, p->hits_idx);
	engine_del_mappings(t->engine, p->pid);
	engine_del_tags(t->engine, p->pid);
	hmap_del(&t->process_idx, &key);
	if (p != last) {
		*p = *last;
		key = (uint32_t)p->pid;
		*hmap_get(&t->process_idx, &key) = (uint64_t)(p - t->processes.data);
	}
	t->processes.cnt--;
}

void tracker_remove(struct tracker *t, pid_t pid)
{
	struct process *p = find_process(t, pid);

	if (p)
		end_process(t, p);
}

/* The process; pid 0: any one, where they share their probes. */
static struct process *find_or_any(const struct tracker *t, pid_t pid)
{
	if (!pid)
		return t->processes.cnt ? &t->processes.data[0] : NULL;
	return find_process(t, pid);
}

int tracker_read_hits(const struct tracker *t, pid_t pid, struct ht_hits *ret)
{
	const struct process *p = find_or_any(t, pid);
	int err = p ? engine_read_hits(t->engine, p->hits_idx, ret) : -ESRCH;

	if (err)
		return err;
	ret->alloc_cnt -= p->hits_before.alloc_cnt;
	ret->free_cnt -= p->hits_before.free_cnt;
	ret->return_cnt -= p->hits_before.return_cnt;
	ret->stepped_cnt -= p->hits_before.stepped_cnt;
	ret->sample_cnt -= p->hits_before.sample_cnt;
	ret->stack_ns -= p->hits_before.stack_ns;
	return 0;
}

uint32_t tracker_generation(const struct tracker *t, pid_t pid)
{
	const struct process *p = find_process(t, pid);

	return p ? p->generation : HT_GENERATION_NONE;
}

int tracker_keep_probes(struct tracker *t, pid_t pid, enum probes_kept kept,
			struct attach_links *gone)
{
	const struct process *p = find_or_any(t, pid);

	if (t->is_stopped)
		return 0;
	return p ? probes_keep(t->probes, p->pid, p->live_tid, kept, gone) : -ESRCH;
}

void tracker_hold_probes(struct tracker *t, bool hold)
{
	probes_hold(t->probes, hold);
}

int tracker_hits_idx(const struct tracker *t, pid_t pid, uint32_t *ret_idx)
{
	const struct process *p = find_or_any(t, pid);

	if (!p)
		return -ESRCH;
	*ret_idx = p->hits_idx;
	return 0;
}

int tracker_add_window(struct tracker *t, pid_t pid, bool has_frees, struct attach_links *links)
{
	const struct process *p = find_or_any(t, pid);

	if (t->is_stopped)
		return 0;
	return p ? probes_add_window(t->probes, p->pid, p->live_tid, has_frees, links) : -ESRCH;
}

bool tracker_follows(const struct tracker *t, pid_t pid)
{
	return find_process(t, pid) != NULL;
}

bool tracker_has_allocator(const struct tracker *t, pid_t pid)
{
	const struct process *p = find_process(t, pid);

	return p && p->has_allocator;
}

pid_t tracker_running_at(const struct tracker *t, size_t i)
{
	return t->processes.data[i].pid;
}

/* Generations wrap around. Right after an exec the old image counts until the new one is read. */
bool tracker_is_over(const struct tracker *t, pid_t pid, uint32_t generation)
{
	const struct process *p = find_process(t, pid);

	return !p || (int32_t)(generation - p->generation) < 0;
}

int tracker_hold(struct tracker *t, pid_t pid, uint32_t generation)
{
	const struct held_key key = { (uint32_t)pid, generation };

	return hmap_put(&t->held, &key, 0);
}

void tracker_unhold(struct tracker *t, pid_t pid, uint32_t generation)
{
	const struct held_key key = { (uint32_t)pid, generation };

	if (hmap_del(&t->held, &key))
		reclaim_ask(t->reclaim);
}

int tracker_reclaim(struct tracker *t, uint64_t readers_since_ns, uint64_t budget_ns)
{
	return reclaim_run(t->reclaim, readers_since_ns, budget_ns);
}

void tracker_ask_reclaim(struct tracker *t)
{
	reclaim_ask(t->reclaim);
}

const struct reclaim_counts *tracker_reclaim_counts(const struct tracker *t)
{
	return reclaim_counts(t->reclaim);
}

/*
 * Is this end that of the process, and not of one before it with the same pid, whose last event was
 * read after the new one had been added? Within a life generations only grow, one for each exec;
 * those of different lives begin HT_GENERATION_STEP apart.
 */
static bool is_own_end(const struct process *p, const struct ht_event *event)
{
	return event->generation - p->generation < HT_GENERATION_STEP;
}

void tracker_on_event(struct tracker *t, const struct ht_event *event)
{
	struct process *p = find_process(t, event->tgid);

	if (!p || t->is_stopped)
		return;
	switch (event->kind) {
	case HT_EVENT_EXEC:
		name_instance(t, event, p->pid, event->generation);
		p->is_dirty = true;
		reclaim_ask(t->reclaim);
		break;
	case HT_EVENT_UNMAPPED:
		p->is_dirty = true;
		break;
	case HT_EVENT_EXIT:
		if (is_own_end(p, event))
			end_process(t, p);
		break;
	case HT_EVENT_FORK:
		if (t->opts.follow) {
			add_child(t, event);
		} else {
			p->cleans_left = CLEAN_CNT;
		}
		break;
	}
}

void tracker_on_mmap(struct tracker *t, pid_t pid)
{
	struct process *p = find_process(t, pid);

	if (p)
		p->is_dirty = true;
}

void tracker_on_lost(struct tracker *t)
{
	struct process *p;

	vec_each(&t->processes, p)
		p->is_dirty = true;
}

bool tracker_wants_work(const struct tracker *t)
{
	const struct process *p;

	if (t->is_stopped)
		return false;
	if (probes_are_moving(t->probes))
		return true;
	vec_each(&t->processes, p)
		if (p->is_dirty || p->cleans_left)
			return true;
	return false;
}

static void clean_children(struct tracker *t, struct process *p)
{
	p->cleans_left--;
	p->cleaned_ns = now_ns();
	probes_clean_children(t->probes, p->pid);
}

/* An exec, a fork or an end may be among the events that were lost. */
static void check_lost(struct tracker *t)
{
	uint64_t stats[HT_STAT_CNT], now = now_ns();
	struct process_info info;
	bool has_grown;

	if (now < t->lost_checked_ns + LOST_INTERVAL_NS)
		return;
	t->lost_checked_ns = now;
	if (engine_read_stats(t->engine, stats) || !stats[HT_STAT_EVENTS_LOST])
		return;
	has_grown = stats[HT_STAT_EVENTS_LOST] != t->lost_cnt;
	t->lost_cnt = stats[HT_STAT_EVENTS_LOST];
	/* An end takes a while: from the first loss on every look is at all of them. */
	for (size_t i = t->processes.cnt; i-- > 0;) { /* backwards: see end_process() */
		struct process *p = &t->processes.data[i];
		int err = process_info_read(p->pid, &info);

		if (err == -ESRCH || (!err && info.is_zombie))
			end_process(t, p);
		else
			p->is_dirty |= has_grown;
	}
}

/* One process at a time, so that many that were read together do not stay so. */
static void refresh_oldest(struct tracker *t)
{
	struct process *p, *oldest = NULL;

	vec_each(&t->processes, p)
		if (!oldest || p->refreshed_ns < oldest->refreshed_ns)
			oldest = p;
	if (oldest && now_ns() >= oldest->refreshed_ns + t->opts.refresh_ns)
		oldest->is_dirty = true;
}

static double hits_per_s(void *ctx, pid_t pid)
{
	const struct process *p = find_process(ctx, pid);

	return p ? p->hits_per_s : 0;
}

/* Children that share their parent's place have its hits, and all the same number. */
static void order_sharers(struct tracker *t)
{
	const struct probes_activity activity = { hits_per_s, t };
	uint64_t now = now_ns(), passed_ns = now - t->ordered_ns;
	struct process *p;

	if (passed_ns < ORDER_INTERVAL_NS || !probes_share_events(t->probes))
		return;
	vec_each(&t->processes, p) {
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
	probes_order(t->probes, &activity);
	t->ordered_ns = now;
}

int tracker_work(struct tracker *t)
{
	int err = 0;

	if (t->is_stopped)
		return 0;
	check_lost(t);
	if (t->opts.refresh_ns)
		refresh_oldest(t);
	probes_work(t->probes);
	order_sharers(t);
	for (size_t i = 0; i < t->processes.cnt && !err; i++) {
		struct process *p = &t->processes.data[i];

		if (p->tags.is_pending && now_ns() >= p->refreshed_ns + TAGS_INTERVAL_NS)
			p->is_dirty = true;
		if (p->is_dirty)
			err = refresh(t, p);
		if (err == -ESRCH || err == -ENOENT)
			err = 0; /* its exit event is on the way */
		if (p->cleans_left && now_ns() >= p->cleaned_ns + CLEAN_INTERVAL_NS)
			clean_children(t, p);
	}
	return err;
}

/* Keys are added while a program runs, which no event tells of. What cannot be read stays. */
static void read_new_keys(struct tracker *t, struct process *p)
{
	struct proc_maps maps = { 0 };

	if (process_tags_wants_keys(&p->tags, now_ns()) &&
	    !proc_maps_read(p->pid, p->live_tid, &maps))
		read_keys(t, p, p->generation, &maps);
	proc_maps_release(&maps);
}

void tracker_read_counters(struct tracker *t)
{
	struct track_instance *inst;
	struct process *p;

	vec_each(&t->processes, p) {
		inst = p->tags.desc_addrs.cnt ?
			       instances_get(&t->instances, p->pid, p->generation) :
			       NULL;
		if (inst)
			process_tags_read_counters(&p->tags, p->live_tid, &inst->scope_counters);
		read_new_keys(t, p);
	}
}

uint64_t tracker_followed_cnt(const struct tracker *t)
{
	return t->followed_cnt;
}

uint64_t tracker_ended_cnt(const struct tracker *t)
{
	return t->ended_cnt;
}

void tracker_set_all(struct tracker *t, bool is_all)
{
	probes_set_all_agreed(t->probes, is_all);
}

const struct probes *tracker_probes(const struct tracker *t)
{
	return t->probes;
}

size_t tracker_running_cnt(const struct tracker *t)
{
	return t->processes.cnt;
}

size_t tracker_site_cnt(const struct tracker *t)
{
	return probes_counts(t->probes)->site_cnt;
}

size_t tracker_stepped_cnt(const struct tracker *t)
{
	return probes_counts(t->probes)->stepped_cnt;
}

size_t tracker_throwing_cnt(const struct tracker *t)
{
	return probes_counts(t->probes)->throwing_cnt;
}

size_t tracker_failed_cnt(const struct tracker *t, int *ret_err)
{
	const struct probes_counts *counts = probes_counts(t->probes);

	*ret_err = t->failed_err ? t->failed_err : counts->failed_err;
	return t->failed_cnt + counts->failed_cnt;
}

const struct track_instance *tracker_find_instance(const struct tracker *t, pid_t pid,
						   uint32_t generation)
{
	return instances_find(&t->instances, pid, generation);
}

const struct track_instance *tracker_instances(const struct tracker *t, size_t *ret_cnt)
{
	*ret_cnt = t->instances.list.cnt;
	return t->instances.list.data;
}
