/* SPDX-License-Identifier: MIT */
/*
 * saver.c - watches the tracked processes for reasons to save a profile: a peak, a near memory limit, an end (see
 * saver.h).
 *
 * saved_jobs.c chooses the profiles that are made now, and removes old ones. The job of an ended process waits in its
 * list; for a running process the reason (peak, limit) is a pending save of the process until a child is started.
 */
#include "record/saver.h"

#include <sys/mman.h>

#include "base/err.h"
#include "heaptap/abi.h"
#include "http/view.h"
#include "kernel/engine.h"
#include "proc/process.h"
#include "record/saver_priv.h"
#include "track/tracker.h"

bool saved_has_grown(double inuse_bytes, double kept_bytes, uint64_t rate_bytes)
{
	double more = inuse_bytes - kept_bytes;

	if (kept_bytes <= 0)
		return inuse_bytes > 0;
	return more >= kept_bytes * KEEP_GROWTH && more >= (double)rate_bytes * 2;
}

bool saved_limit_reached(struct saved_limit *l, uint64_t used_bytes, uint64_t limit_bytes,
			 uint64_t event_cnt, double share)
{
	double used = limit_bytes ? (double)used_bytes / (double)limit_bytes : 0;
	bool was_near = l->is_near;
	bool has_new = l->has_events && event_cnt > l->event_cnt;

	l->event_cnt = event_cnt;
	l->has_events = true; /* events before the first look are not new */
	if (used >= share)
		l->is_near = true;
	else if (used < share - KEEP_LIMIT_SLACK)
		l->is_near = false;
	return has_new || (l->is_near && !was_near);
}

static enum endpoint_moment moment_of(const struct saved_name *n)
{
	return n->reason == KEEP_PEAK  ? ENDPOINT_AT_PEAK :
	       n->reason == KEEP_LIMIT ? ENDPOINT_AT_LIMIT :
					 ENDPOINT_AT_LAST;
}

static void view_file(const struct kept_file *f, struct serve_kept *ret)
{
	ret->pid = f->name.pid;
	ret->bytes = (double)f->bytes;
	ret->inuse_bytes = f->inuse_bytes < 0 ? NAN : f->inuse_bytes;
	ret->at = endpoint_moment_text(moment_of(&f->name));
	memcpy(ret->comm, f->name.comm, sizeof(ret->comm));
	saved_reason_words(&f->name, ret->why, sizeof(ret->why));
	ret->epoch_ms = f->name.taken_epoch_ms;
}

/*
 * The running processes of which profiles may be saved: what each holds, how near its cgroup is to its
 * limit, and which reasons that gives to save a profile.
 */

/*
 * The memory cgroups of the watched processes: how near each is to its limit.
 *
 * Each cgroup is read once, however many processes are in it: once a second if it is far from its limit, else at
 * every call.
 */

/* Interval of reading cgroups that are far from their limits; others are read in each tick. */
#define FAR_INTERVAL_NS NS_PER_S
#define FAR_SHARE 0.5
#define LOG_EVERY_NS (60 * NS_PER_S)

struct saved_cgroup {
	char *dir;
	struct cgroup_room *room;
	struct cgroup_room_reading reading; /* the last one */
	struct saved_limit limit;
	bool has_come_near;
	uint64_t read_ns;
	struct log_limit log; /* over memory.high the kernel reports events all the time */
	size_t user_cnt;
};

/* Limits change, and processes move, now and then. */
#define REFRESH_INTERVAL_NS (5 * NS_PER_S)

static void free_cgroup(struct saved_cgroup *c)
{
	cgroup_room_close(c->room);
	free(c->dir);
	free(c);
}

/* Return the cgroup of a process, to be given to put_cgroup(); NULL: not known, or out of memory. */
static struct saved_cgroup *get_cgroup(struct saved_watch *kw, pid_t pid)
{
	char dir[CGROUP_PATH_BYTES];
	struct saved_cgroup *fresh, **c;

	if (!kw->has_mount || cgroup_room_find_dir(&kw->mount, pid, dir))
		return NULL;
	vec_each(&kw->cgroups, c) {
		if (!strcmp((*c)->dir, dir)) {
			(*c)->user_cnt++;
			return *c;
		}
	}
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return NULL;
	fresh->user_cnt = 1;
	fresh->log = (struct log_limit){ .every_ns = LOG_EVERY_NS, .burst = 1 };
	fresh->dir = strdup(dir);
	if (!fresh->dir || cgroup_room_open(&kw->mount, dir, &fresh->room) ||
	    vec_push(&kw->cgroups, fresh)) {
		free_cgroup(fresh);
		return NULL;
	}
	return fresh;
}

/* NULL is fine. */
static void put_cgroup(struct saved_watch *kw, struct saved_cgroup *c)
{
	if (!c || --c->user_cnt)
		return;
	for (size_t i = 0; i < kw->cgroups.cnt; i++)
		if (kw->cgroups.data[i] == c)
			kw->cgroups.data[i] = kw->cgroups.data[--kw->cgroups.cnt];
	free_cgroup(c);
}

static void read_cgroup(struct saved_cgroup *c, double share, uint64_t now)
{
	struct cgroup_room_reading r;
	bool is_far =
		(double)c->reading.working_bytes < (double)c->reading.limit_bytes * FAR_SHARE ||
		!c->reading.limit_bytes;

	c->has_come_near = false;
	if (c->read_ns && is_far && now < c->read_ns + FAR_INTERVAL_NS)
		return;
	if (cgroup_room_read(c->room, &r))
		return; /* its processes are ending */
	c->read_ns = now;
	c->reading = r;
	c->has_come_near =
		saved_limit_reached(&c->limit, r.working_bytes, r.limit_bytes, r.event_cnt, share);
}

/* Read all of them, and log which have come near their limits. now_ns: CLOCK_MONOTONIC. */
static void read_cgroups(struct saved_watch *kw, uint64_t now_ns)
{
	struct saved_cgroup **c;

	vec_each(&kw->cgroups, c) {
		read_cgroup(*c, kw->limit_share, now_ns);
		if (!(*c)->has_come_near || !log_limit_allows(&(*c)->log, now_ns))
			continue;
		log_info("serve: cgroup %s uses %llu of %llu bytes: saving profiles of its "
			 "processes",
			 (*c)->dir, (unsigned long long)(*c)->reading.working_bytes,
			 (unsigned long long)(*c)->reading.limit_bytes);
	}
}

static void saved_watch_init(struct saved_watch *kw, double limit_share)
{
	hmap_init(&kw->idx, sizeof(uint32_t));
	kw->limit_share = limit_share;
	kw->has_mount = !cgroup_find_mount(&kw->mount);
	if (kw->has_mount && cgroup_is_outside(kw->mount.root))
		log_warn("serve: no profiles are saved when other containers come near their "
			 "memory limit: heaptap's own cgroup is not below %s, where the host's "
			 "cgroups are mounted",
			 kw->mount.point);
}

static void saved_watch_release(struct saved_watch *kw)
{
	struct saved_cgroup **c;

	vec_each(&kw->cgroups, c)
		free_cgroup(*c);
	vec_release(&kw->cgroups);
	vec_release(&kw->list);
	hmap_release(&kw->idx);
}

struct watched *saved_watch_find(const struct saved_watch *kw, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	const uint64_t *idx = hmap_get(&kw->idx, &key);

	return idx ? &kw->list.data[*idx] : NULL;
}

/*
 * comm: used when it is not known otherwise, because the process is ending; need not end in \0. Values that cannot
 * be had any more keep their defaults. -ESRCH: the tracker does not follow it; -ENOMEM.
 */
static int saved_watch_add(struct saved_watch *kw, const struct result_source *src, pid_t pid,
			   const char *comm, size_t comm_bytes)
{
	struct watched w = { .name = { .pid = pid } };
	const struct track_instance *image;
	struct process_info info;
	uint32_t key = (uint32_t)pid;
	int err;

	if (!tracker_follows(src->tracker, pid))
		return -ESRCH;
	w.generation = tracker_generation(src->tracker, pid);
	image = instances_find(tracker_instances(src->tracker), pid, w.generation);
	if (image && image->comm[0]) {
		comm = image->comm;
		comm_bytes = sizeof(image->comm);
	} else if (!process_glance(src->reader, pid, &info)) {
		comm = info.comm;
		comm_bytes = sizeof(info.comm);
	}
	snprintf(w.name.comm, sizeof(w.name.comm), "%.*s", (int)comm_bytes, comm);
	err = vec_reserve(&kw->list, kw->list.cnt + 1);
	if (!err)
		err = hmap_put(&kw->idx, &key, kw->list.cnt);
	if (err)
		return err;
	w.cgroup = get_cgroup(kw, pid);
	kw->list.data[kw->list.cnt++] = w;
	return 0;
}

/* Moves the last one to the free place. */
static void saved_watch_del(struct saved_watch *kw, struct watched *w)
{
	struct watched *last = &kw->list.data[kw->list.cnt - 1];
	uint32_t key = (uint32_t)w->name.pid;

	put_cgroup(kw, w->cgroup);
	hmap_del(&kw->idx, &key);
	if (w != last) {
		*w = *last;
		key = (uint32_t)w->name.pid;
		*hmap_get(&kw->idx, &key) = (uint64_t)(w - kw->list.data);
	}
	kw->list.cnt--;
}

/* Begin another program's image, which has no peak yet. event: HT_EVENT_EXEC. */
static void watched_begin_image(struct watched *w, const struct ht_event *event)
{
	struct watched fresh = { .name = w->name, .cgroup = w->cgroup };

	fresh.generation = event->generation;
	snprintf(fresh.name.comm, sizeof(fresh.name.comm), "%.*s", (int)sizeof(event->comm),
		 event->comm);
	*w = fresh;
}

/* Fill in BPF's sums of an image; `cgroup` stays as it is. */
static void saved_usage_set_sums(struct saved_usage *u, const struct ht_image *image)
{
	u->inuse_bytes = image->inuse_bytes_8 > 0 ? (double)image->inuse_bytes_8 / 256 : 0;
	u->peak_bytes = (double)image->peak_bytes_8 / 256;
	u->peak_ns = image->peak_ns;
}

static int on_image(void *ctx, const struct ht_image_key *key, const struct ht_image *image)
{
	struct saved_watch *kw = ctx;
	struct watched *w = saved_watch_find(kw, (pid_t)key->tgid);

	if (w && w->generation == key->generation) {
		w->is_sampled = true;
		saved_usage_set_sums(&w->usage, image);
	}
	return 0;
}

static void refresh_cgroups(struct saved_watch *kw)
{
	struct saved_cgroup *old, **c;
	struct watched *w;

	vec_each(&kw->list, w) {
		old = w->cgroup;
		w->cgroup = get_cgroup(kw, w->name.pid);
		put_cgroup(kw, old);
	}
	vec_each(&kw->cgroups, c)
		cgroup_room_refresh((*c)->room);
}

static void look_at_limit(struct watched *w, uint64_t rate_bytes)
{
	if (!w->cgroup)
		return;
	if (w->cgroup->has_come_near)
		w->limit.is_wanted = w->is_sampled;
	w->usage.cgroup = w->cgroup->reading;
	if (w->is_sampled && w->has_inuse && w->cgroup->limit.is_near &&
	    saved_has_grown(w->usage.inuse_bytes, w->limit.kept_bytes, rate_bytes))
		w->limit.is_wanted = true;
}

/* Read what all of them hold, and set what is wanted. Call a few times a second. rate_bytes: between samples. */
static void saved_watch_tick(struct saved_watch *kw, struct engine *e, uint64_t rate_bytes,
			     uint64_t now_ns)
{
	struct watched *w;

	engine_each_image(e, on_image, kw);
	if (now_ns > kw->refreshed_ns + REFRESH_INTERVAL_NS) {
		kw->refreshed_ns = now_ns;
		refresh_cgroups(kw);
	}
	read_cgroups(kw, now_ns);
	vec_each(&kw->list, w) {
		look_at_limit(w, rate_bytes);
		w->peak.is_wanted =
			w->is_sampled && w->has_inuse &&
			saved_has_grown(w->usage.inuse_bytes, w->peak.kept_bytes, rate_bytes);
	}
}

int saver_open(const struct saver_options *opts, struct saver **ret)
{
	struct saver *k;
	struct err why;
	int err;

	if (!opts->file_max) {
		*ret = NULL;
		return 0;
	}
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	saved_ended_init(&k->ended);
	saved_watch_init(&k->watch, opts->limit_percent / 100);
	err = saved_store_open(opts->dir, opts->file_max, opts->bytes_max, &k->store, &why);
	if (err) {
		log_error("serve: %s", why.text);
		saver_close(k);
		return err;
	}
	k->batch.store = k->store;
	*ret = k;
	return 0;
}

void saver_start(struct saver *k, const struct result_source *src, struct loop *loop)
{
	if (!k)
		return;
	k->src = *src;
	k->loop = loop;
}

void saver_change(struct saver *k, const struct saver_options *opts)
{
	if (!k)
		return;
	saved_store_set_bounds(k->store, opts->file_max, opts->bytes_max);
	k->watch.limit_share = opts->limit_percent / 100;
}

/* End the child. */
static void batch_release(struct saved_batch *b)
{
	worker_release(&b->worker);
	saved_batch_clear(b);
	if (b->results)
		munmap(b->results, KEEP_BATCH_CAP * sizeof(*b->results));
	b->results = NULL;
}

void saver_close(struct saver *k)
{
	if (!k)
		return;
	batch_release(&k->batch);
	saved_watch_release(&k->watch);
	vec_release(&k->ended.jobs); /* samples stay held: the tracker ends as well */
	saved_store_close(k->store);
	free(k);
}

/* Watched processes, and their ends. */

/* Add a job for an image that is over, unless nothing of it was ever sampled. */
static void add_ended(struct saver *k, const struct watched *w, const struct saved_name *name)
{
	struct saved_job job = {
		.name = *name, .generation = w->generation, .usage = w->usage, .fd = -1
	};
	struct ht_image image;

	if (engine_get_image(k->src.engine, name->pid, w->generation, &image))
		return;
	saved_usage_set_sums(&job.usage, &image);
	governor_take_record(k->src.governor, name->pid, &job.budget);
	job.queued_ns = now_ns();
	saved_ended_add(&k->ended, k->src.tracker, &job);
}

static void end_process(struct saver *k, struct watched *w, const struct saved_name *name)
{
	add_ended(k, w, name);
	saved_store_set_rank(k->store, name->pid, saved_rank_of(name));
	saved_watch_del(&k->watch, w);
}

/* Return the watch of the process that is followed now; NULL: no memory for it. comm: as for saved_watch_add(). */
static struct watched *get_watched(struct saver *k, pid_t pid, const char *comm, size_t comm_bytes)
{
	struct watched *w = saved_watch_find(&k->watch, pid);

	if (w && !tracker_is_of(k->src.tracker, pid, w->generation)) {
		struct saved_name name = w->name;

		name.reason = KEEP_GONE; /* its end was not reported before the pid was reused */
		end_process(k, w, &name);
		w = NULL;
	}
	if (!w && !saved_watch_add(&k->watch, &k->src, pid, comm, comm_bytes))
		w = saved_watch_find(&k->watch, pid);
	return w;
}

void saver_on_event(struct saver *k, const struct ht_event *event)
{
	struct watched *w;
	struct saved_name name;
	pid_t pid;

	if (!k || (event->kind != HT_EVENT_EXIT && event->kind != HT_EVENT_EXEC))
		return;
	pid = (pid_t)event->tgid;
	if (!tracker_is_of(k->src.tracker, pid, event->generation))
		return;
	w = get_watched(k, pid, event->comm, sizeof(event->comm));
	if (!w)
		return;
	name = w->name;
	if (event->kind == HT_EVENT_EXEC) {
		if (w->generation == event->generation)
			return; /* it was first watched after that exec */
		name.reason = KEEP_EXEC;
		add_ended(k, w, &name);
		saved_store_set_rank(k->store, pid, saved_rank_of(&name));
		watched_begin_image(w, event);
	} else {
		w->generation = event->generation;
		saved_name_set_end(&name, event->other);
		end_process(k, w, &name);
	}
}

void saver_sync(struct saver *k)
{
	struct watched *w;

	if (!k)
		return;
	vec_each(&k->watch.list, w)
		w->is_followed = false;
	for (size_t i = 0; i < tracker_running_cnt(k->src.tracker); i++) {
		pid_t pid = tracker_running_at(k->src.tracker, i);

		w = get_watched(k, pid, "", 0);
		if (w)
			w->is_followed = true;
	}
	for (size_t i = k->watch.list.cnt; i-- > 0;) {
		struct saved_name name;

		w = &k->watch.list.data[i];
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without data the count is 0 */
		if (w->is_followed)
			continue;
		name = w->name;
		name.reason = KEEP_GONE;
		end_process(k, w, &name);
	}
}

void saved_set_has_inuse(const struct saver *k, struct watched *w)
{
	struct governor_view view;

	w->has_inuse = governor_view(k->src.governor, w->name.pid, &view) || view.has_inuse;
}

void saver_tick(struct saver *k)
{
	uint64_t now = now_ns();
	struct watched *w;

	if (!k)
		return;
	vec_each(&k->watch.list, w)
		saved_set_has_inuse(k, w);
	saved_watch_tick(&k->watch, k->src.engine, k->src.rate_bytes, now);
	if (!k->batch.worker.pid)
		saved_ended_skip_late(&k->ended, k->src.tracker, now);
}

int saver_fetch(const struct saver *k, pid_t pid, enum endpoint_moment at)
{
	size_t cnt = k ? k->store->files.cnt : 0;

	while (cnt--) { /* the newest that matches */
		const struct kept_file *f = &k->store->files.data[cnt];

		if (f->name.pid == pid && moment_of(&f->name) == at)
			return saved_store_fetch(k->store, f);
	}
	return -ENOENT;
}

int saver_view(const struct saver *k, struct serve_keep *ret)
{
	const struct saved_store_stats *stats;
	struct serve_kept *kept;
	size_t cnt;

	*ret = (struct serve_keep){ NULL, 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	if (!k)
		return 0;
	stats = &k->store->stats;
	cnt = k->store->files.cnt;
	kept = calloc(cnt + 1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) /* the newest first */
		view_file(&k->store->files.data[cnt - 1 - i], &kept[i]);
	*ret = (struct serve_keep){
		.kept = kept,
		.kept_cnt = cnt,
		.file_cnt = (double)stats->cnt,
		.bytes = (double)stats->bytes,
		.memory_bytes = (double)stats->memory_bytes,
		.taken_cnt = (double)stats->added_cnt,
		.removed_cnt = (double)stats->removed_cnt,
		.unwritten_cnt = (double)stats->unwritten_cnt,
		.failed_cnt = (double)k->failed_cnt,
		.skipped_cnt = (double)k->ended.skipped_cnt,
	};
	return 0;
}

void saver_view_release(struct serve_keep *v)
{
	free((void *)v->kept);
	memset(v, 0, sizeof(*v));
}
