/* SPDX-License-Identifier: MIT */
/*
 * saved_watch.c - see saver_priv.h.
 */
#include "result/saver_priv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "base/log.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "kernel/engine.h"
#include "proc/cgroup.h"
#include "proc/process.h"
#include "track/tracker.h"

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

void saved_watch_init(struct saved_watch *kw, double limit_share)
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

void saved_watch_release(struct saved_watch *kw)
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

/* Values that cannot be had any more, because the process is ending, keep their defaults. */
int saved_watch_add(struct saved_watch *kw, const struct tracker *t, pid_t pid, const char *comm,
		    size_t comm_bytes)
{
	struct watched w = { .name = { .pid = pid } };
	struct process_info info;
	uint32_t key = (uint32_t)pid;
	int err;

	if (!tracker_follows(t, pid))
		return -ESRCH;
	w.generation = tracker_generation(t, pid);
	if (!process_glance(pid, &info)) {
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

void saved_watch_del(struct saved_watch *kw, struct watched *w)
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

void watched_begin_image(struct watched *w, const struct ht_event *event)
{
	struct watched fresh = { .name = w->name, .cgroup = w->cgroup };

	fresh.generation = event->generation;
	snprintf(fresh.name.comm, sizeof(fresh.name.comm), "%.*s", (int)sizeof(event->comm),
		 event->comm);
	*w = fresh;
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

void saved_watch_tick(struct saved_watch *kw, struct engine *e, uint64_t rate_bytes,
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
