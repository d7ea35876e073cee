/* SPDX-License-Identifier: MIT */
/* tracker.c - see tracker.h. */
#include "track/tracker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/engine.h"
#include "target/allocators.h"
#include "target/process.h"
#include "track/files.h"

/*
 * Forked children that nobody asked for lose the inherited breakpoints at once, but in a storm of
 * forks not more often than this: most children execute another program soon, which takes the
 * breakpoints away for free.
 */
#define CLEAN_CNT 3 /* now and then a breakpoint survives the first time */
#define CLEAN_INTERVAL_NS 10000000ULL
/* How often to look whether events were lost. */
#define LOST_INTERVAL_NS 1000000000ULL

struct probed_file {
	const struct track_file *file;
	struct attach_links *alloc_links, *free_links;
};

struct probe_set {
	VEC(struct probed_file) files;
};

struct process {
	pid_t pid;
	pid_t live_tid;
	uint32_t generation; /* of the image that was last read */
	bool is_dirty; /* mappings to be read again */
	bool is_gone;
	uint32_t cleans_left; /* times that forked children are still to be cleaned */
	uint64_t cleaned_ns; /* when it was last done */
	struct probe_set probed;
};

struct tracker {
	struct engine *engine;
	struct track_files *files;
	struct tracker_options opts;
	VEC(struct process) processes;
	struct probe_set shared; /* with opts.follow: the probes of all processes */
	VEC(struct track_instance) instances;
	uint32_t next_generation;
	bool is_stopped;
	uint64_t lost_cnt, lost_checked_ns; /* events that did not fit into the ring */
	size_t site_cnt, stepped_cnt, throwing_cnt, failed_cnt;
	int failed_err;
};

int tracker_new(struct engine *engine, struct track_files *files,
		const struct tracker_options *opts, struct tracker **ret)
{
	struct tracker *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->engine = engine;
	t->files = files;
	t->opts = *opts;
	*ret = t;
	return 0;
}

static void stop_allocs(struct probe_set *set)
{
	struct probed_file *pf;

	vec_each(&set->files, pf) {
		attach_links_free(pf->alloc_links);
		pf->alloc_links = NULL;
	}
}

static void stop_all(struct probe_set *set)
{
	struct probed_file *pf;

	stop_allocs(set);
	vec_each(&set->files, pf)
		attach_links_free(pf->free_links);
	vec_release(&set->files);
}

void tracker_stop_allocs(struct tracker *t)
{
	struct process *p;

	t->is_stopped = true;
	stop_allocs(&t->shared);
	vec_each(&t->processes, p)
		stop_allocs(&p->probed);
}

void tracker_stop(struct tracker *t)
{
	struct process *p;

	tracker_stop_allocs(t);
	stop_all(&t->shared);
	vec_each(&t->processes, p) {
		stop_all(&p->probed);
		engine_del_target(t->engine, p->pid);
	}
}

void tracker_free(struct tracker *t)
{
	struct track_instance *inst;

	if (!t)
		return;
	tracker_stop(t);
	vec_each(&t->instances, inst)
		free(inst->exe);
	vec_release(&t->instances);
	vec_release(&t->processes);
	free(t);
}

static struct process *find_process(const struct tracker *t, pid_t pid)
{
	struct process *p;

	vec_each(&t->processes, p)
		if (p->pid == pid && !p->is_gone)
			return p;
	return NULL;
}

const struct track_instance *tracker_find_instance(const struct tracker *t, pid_t pid,
						   uint32_t generation)
{
	const struct track_instance *inst;

	vec_each(&t->instances, inst)
		if (inst->pid == pid && inst->generation == generation)
			return inst;
	return NULL;
}

/* The instance of an image, made when it is new; NULL: out of memory. */
static struct track_instance *get_instance(struct tracker *t, pid_t pid, uint32_t generation)
{
	struct track_instance fresh = { .pid = pid, .generation = generation };
	struct track_instance *inst =
		(struct track_instance *)tracker_find_instance(t, pid, generation);

	if (inst)
		return inst;
	fresh.exe = strdup("");
	if (!fresh.exe || vec_push(&t->instances, fresh)) {
		free(fresh.exe);
		return NULL;
	}
	return &t->instances.data[t->instances.cnt - 1];
}

/* BPF saw the image begin: its name is known whatever becomes of it. */
static void name_instance(struct tracker *t, const struct ht_event *event, pid_t pid,
			  uint32_t generation)
{
	struct track_instance *inst = get_instance(t, pid, generation);

	if (inst)
		memcpy(inst->comm, event->comm, sizeof(inst->comm));
}

/* Add what /proc says, if it still speaks of this image. */
static int note_instance(struct tracker *t, const struct process *p)
{
	struct track_instance *inst = get_instance(t, p->pid, p->generation);
	struct process_info info;
	struct ht_target target;
	char *exe;

	if (!inst)
		return -ENOMEM;
	if (process_info_read(p->pid, &info))
		return 0;
	if (engine_get_target(t->engine, p->pid, &target) || target.generation != p->generation)
		return 0;
	exe = strdup(info.exe);
	if (!exe)
		return -ENOMEM;
	free(inst->exe);
	inst->exe = exe;
	memcpy(inst->comm, info.comm, sizeof(inst->comm));
	return 0;
}

static void end_instances(struct tracker *t, pid_t pid, uint32_t before_generation)
{
	struct track_instance *inst;

	vec_each(&t->instances, inst)
		if (inst->pid == pid && inst->generation < before_generation)
			inst->has_ended = true;
}

static void note_failure(struct tracker *t, size_t cnt, int err)
{
	t->failed_cnt += cnt;
	if (!t->failed_err)
		t->failed_err = err;
}

/* With return probes that always fire an exception from the function would end the program. */
static bool is_left_alone(const struct tracker *t, const struct alloc_site *site)
{
	return (HT_COOKIE_FLAGS(site->cookie) & HT_SITE_THROWS) && !t->opts.probe_throwing &&
	       engine_mode(t->engine) != ATTACH_SESSION;
}

/* Sites of one kind of a file, as the attachment wants them. */
static size_t collect_sites(const struct tracker *t, const struct alloc_file *af, bool frees,
			    struct attach_site *ret)
{
	const struct alloc_site *site;
	size_t cnt = 0;

	vec_each(&af->sites, site) {
		if ((site->row->op == HT_OP_FREE) == frees && !is_left_alone(t, site))
			ret[cnt++] = (struct attach_site){ site->probe_off, site->cookie };
	}
	return cnt;
}

static int attach_kind_of(struct tracker *t, const struct process *p, const struct track_file *file,
			  bool frees, const struct attach_site *sites, size_t site_cnt,
			  struct attach_links *links)
{
	enum attach_mode mode = engine_mode(t->engine);
	struct attach_request req = {
		.file_fd = file->fd,
		.pid = t->opts.follow	   ? 0 :
		       mode == ATTACH_PERF ? p->live_tid :
					     p->pid,
		.mode = mode,
		.kind = !frees && mode == ATTACH_SESSION ? ATTACH_ENTRY_DECIDES : ATTACH_ENTRY,
		.prog_fd = engine_prog_fd(t->engine, frees ? ENGINE_FREE : ENGINE_ALLOC),
		.sites = sites,
		.site_cnt = site_cnt,
	};
	int err = 0;

	/* Returns first: an entry without its return would wait for nothing. */
	if (!frees && mode != ATTACH_SESSION) {
		struct attach_request ret_req = req;

		ret_req.kind = ATTACH_RETURN;
		ret_req.prog_fd = engine_prog_fd(t->engine, ENGINE_ALLOC_RETURN);
		err = attach_add(links, &ret_req);
	}
	return err ? err : attach_add(links, &req);
}

static bool is_probed(const struct probe_set *set, const struct track_file *file)
{
	const struct probed_file *pf;

	vec_each(&set->files, pf)
		if (pf->file == file)
			return true;
	return false;
}

/* Put the probes of one file into one process. Frees first. */
static int probe_file(struct tracker *t, struct process *p, const struct track_file *file)
{
	struct probe_set *set = t->opts.follow ? &t->shared : &p->probed;
	struct probed_file pf = { .file = file };
	struct attach_site *sites;
	size_t free_cnt, alloc_cnt;
	int err;

	if (!file->alloc || t->is_stopped || is_probed(set, file))
		return 0;
	sites = calloc(file->alloc->sites.cnt + 1, sizeof(*sites));
	if (!sites)
		return -ENOMEM;
	err = attach_links_new(&pf.free_links);
	if (!err)
		err = attach_links_new(&pf.alloc_links);
	if (err)
		goto out;
	free_cnt = collect_sites(t, file->alloc, true, sites);
	err = attach_kind_of(t, p, file, true, sites, free_cnt, pf.free_links);
	if (err)
		goto out;
	alloc_cnt = collect_sites(t, file->alloc, false, sites);
	err = attach_kind_of(t, p, file, false, sites, alloc_cnt, pf.alloc_links);
	if (err)
		goto out;
	err = vec_push(&set->files, pf);
	if (err)
		goto out;
	t->site_cnt += free_cnt + alloc_cnt;
	for (size_t i = 0; i < file->alloc->sites.cnt; i++) {
		const struct alloc_site *site = &file->alloc->sites.data[i];

		if (is_left_alone(t, site))
			t->throwing_cnt++;
		else
			t->stepped_cnt += !site->placement.is_emulated;
	}
	pf = (struct probed_file){ 0 };
out:
	if (err)
		note_failure(t, file->alloc->sites.cnt, err);
	attach_links_free(pf.alloc_links);
	attach_links_free(pf.free_links);
	free(sites);
	/* One file that cannot be probed must not end the recording of the others. It is entered
	 * without links, so that it is not tried, and counted, at every refresh. */
	if (err && err != -ENOMEM)
		return vec_push(&set->files, (struct probed_file){ .file = file });
	return err;
}

struct file_list {
	VEC(struct track_file *) file; /* with an allocator in it */
};

/* Mappings of the process -> mapping set in the engine; the files worth probing -> list. */
static int read_mappings(struct tracker *t, struct process *p, uint32_t generation,
			 struct file_list *list)
{
	VEC(struct ht_mapping) set = { 0 };
	struct proc_maps maps = { 0 };
	const struct proc_map *m;
	int err = proc_maps_read(p->pid, p->live_tid, &maps);

	if (err)
		return err;
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
			note_failure(t, 1, err);
		if (file && !track_file_bias(file, m->start_addr, m->off, &bias)) {
			hm.bias = bias;
			hm.file_id = file->id;
		}
		err = vec_push(&set, hm);
		if (!err && file && file->alloc)
			err = vec_push(&list->file, file);
		if (err)
			goto out;
	}
	err = engine_put_mappings(t->engine, p->pid, generation, set.data, set.cnt);
	if (err && err != -ENOMEM) { /* the walk asks the kernel then */
		note_failure(t, 1, err);
		err = 0;
	}
out:
	vec_release(&set);
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
	if (p->generation != target.generation) {
		p->generation = target.generation;
		end_instances(t, p->pid, p->generation);
	}
	err = note_instance(t, p);
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
	int err = vec_push(&t->processes, fresh);

	if (err)
		return err;
	*ret = &t->processes.data[t->processes.cnt - 1];
	return 0;
}

static int new_target(struct tracker *t, pid_t pid, uint32_t flags, struct process **ret)
{
	struct ht_target target = { .flags = flags, .rate_idx = t->opts.rate_idx };
	int err;

	target.generation = t->next_generation;
	if (t->opts.follow)
		target.flags |= HT_TARGET_FOLLOW;
	t->next_generation += HT_GENERATION_STEP;
	err = new_process(t, pid, target.generation, ret);
	return err ? err : engine_put_target(t->engine, pid, &target);
}

int tracker_add(struct tracker *t, pid_t pid)
{
	struct process *p;
	int err = new_target(t, pid, 0, &p);

	return err ? err : refresh(t, p);
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
	name_instance(t, event, child, target.generation);
	p->is_dirty = true;
}

/* It has ended: its instances stay, for the snapshot. */
static void end_process(struct tracker *t, struct process *p)
{
	p->is_gone = true;
	end_instances(t, p->pid, UINT32_MAX);
	stop_all(&p->probed);
	engine_del_target(t->engine, p->pid);
	engine_del_mappings(t->engine, p->pid);
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
		break;
	case HT_EVENT_UNMAPPED:
		p->is_dirty = true;
		break;
	case HT_EVENT_EXIT:
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
		if (!p->is_gone)
			p->is_dirty = true;
}

bool tracker_wants_work(const struct tracker *t)
{
	const struct process *p;

	if (t->is_stopped)
		return false;
	vec_each(&t->processes, p)
		if (!p->is_gone && (p->is_dirty || p->cleans_left))
			return true;
	return false;
}

/* Take the inherited breakpoints out of children that run on. perf events do that by themselves. */
static void clean_children(struct tracker *t, struct process *p)
{
	struct probed_file *pf;

	p->cleans_left--;
	p->cleaned_ns = now_ns();
	if (engine_mode(t->engine) == ATTACH_PERF)
		return;
	vec_each(&p->probed.files, pf) {
		size_t cnt = pf->file->alloc->sites.cnt;
		struct attach_site *sites = calloc(cnt + 1, sizeof(*sites));
		struct attach_request req = {
			.file_fd = pf->file->fd,
			.pid = p->pid,
			.mode = ATTACH_MULTI,
			.kind = ATTACH_ENTRY,
			.prog_fd = engine_prog_fd(t->engine, ENGINE_FREE),
			.sites = sites,
		};

		if (!sites)
			return;
		req.site_cnt = collect_sites(t, pf->file->alloc, true, sites);
		req.site_cnt += collect_sites(t, pf->file->alloc, false, sites + req.site_cnt);
		/* For the moment that it exists this link must not do anything. */
		for (size_t i = 0; i < req.site_cnt; i++)
			sites[i].cookie = 0;
		attach_clean_children(&req);
		free(sites);
	}
}

/* An exec, a fork or an end may be among the events that were lost. */
static void check_lost(struct tracker *t)
{
	uint64_t stats[HT_STAT_CNT], now = now_ns();
	struct process_info info;
	struct process *p;
	bool has_grown;

	if (now < t->lost_checked_ns + LOST_INTERVAL_NS)
		return;
	t->lost_checked_ns = now;
	if (engine_read_stats(t->engine, stats) || !stats[HT_STAT_EVENTS_LOST])
		return;
	has_grown = stats[HT_STAT_EVENTS_LOST] != t->lost_cnt;
	t->lost_cnt = stats[HT_STAT_EVENTS_LOST];
	/* An end takes a while: from the first loss on every look is at all of them. */
	vec_each(&t->processes, p) {
		int err = p->is_gone ? 0 : process_info_read(p->pid, &info);

		if (p->is_gone)
			continue;
		if (err == -ESRCH || (!err && info.is_zombie))
			end_process(t, p);
		else
			p->is_dirty |= has_grown;
	}
}

int tracker_work(struct tracker *t)
{
	int err = 0;

	if (t->is_stopped)
		return 0;
	check_lost(t);
	for (size_t i = 0; i < t->processes.cnt && !err; i++) {
		struct process *p = &t->processes.data[i];

		if (p->is_gone)
			continue;
		if (p->is_dirty)
			err = refresh(t, p);
		if (err == -ESRCH || err == -ENOENT)
			err = 0; /* its exit event is on the way */
		if (p->cleans_left && now_ns() >= p->cleaned_ns + CLEAN_INTERVAL_NS)
			clean_children(t, p);
	}
	return err;
}

size_t tracker_running_cnt(const struct tracker *t)
{
	const struct process *p;
	size_t cnt = 0;

	vec_each(&t->processes, p)
		cnt += !p->is_gone;
	return cnt;
}

size_t tracker_site_cnt(const struct tracker *t)
{
	return t->site_cnt;
}

size_t tracker_stepped_cnt(const struct tracker *t)
{
	return t->stepped_cnt;
}

size_t tracker_throwing_cnt(const struct tracker *t)
{
	return t->throwing_cnt;
}

size_t tracker_failed_cnt(const struct tracker *t, int *ret_err)
{
	*ret_err = t->failed_err;
	return t->failed_cnt;
}

const struct track_instance *tracker_instances(const struct tracker *t, size_t *ret_cnt)
{
	*ret_cnt = t->instances.cnt;
	return t->instances.data;
}
