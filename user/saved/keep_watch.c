/* SPDX-License-Identifier: MIT */
/*
 * keep_watch.c - see keep_watch.h.
 */
#include "saved/keep_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "saved/keep_cgroups.h"
#include "heaptap/abi.h"
#include "kernel/engine.h"
#include "proc/process.h"
#include "track/tracker.h"

/* Limits are changed, and processes moved, now and then. */
#define REFRESH_INTERVAL_NS (5 * NS_PER_S)

struct keep_watch {
	VEC(struct watched) list;
	struct hmap idx; /* pid -> index in it */
	struct keep_cgroups *cgroups;
	uint64_t refreshed_ns;
};

int keep_watch_new(double limit_share, struct keep_watch **ret)
{
	struct keep_watch *kw = calloc(1, sizeof(*kw));
	int err;

	if (!kw)
		return -ENOMEM;
	hmap_init(&kw->idx, sizeof(uint32_t));
	err = keep_cgroups_new(limit_share, &kw->cgroups);
	if (err)
		keep_watch_free(kw);
	else
		*ret = kw;
	return err;
}

void keep_watch_set_limit(struct keep_watch *kw, double limit_share)
{
	keep_cgroups_set_limit(kw->cgroups, limit_share);
}

void keep_watch_free(struct keep_watch *kw)
{
	if (!kw)
		return;
	keep_cgroups_free(kw->cgroups);
	vec_release(&kw->list);
	hmap_release(&kw->idx);
	free(kw);
}

struct watched *keep_watch_find(const struct keep_watch *kw, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	const uint64_t *idx = hmap_get(&kw->idx, &key);

	return idx ? &kw->list.data[*idx] : NULL;
}

size_t keep_watch_cnt(const struct keep_watch *kw)
{
	return kw->list.cnt;
}

struct watched *keep_watch_at(const struct keep_watch *kw, size_t i)
{
	return &kw->list.data[i];
}

static int64_t start_epoch_s(uint64_t start_time_ticks)
{
	int64_t boot_ns = (int64_t)clock_ns(CLOCK_REALTIME) - (int64_t)clock_ns(CLOCK_BOOTTIME);
	long ticks_per_s = sysconf(_SC_CLK_TCK);

	return boot_ns / (int64_t)NS_PER_S +
	       (int64_t)(start_time_ticks / (uint64_t)(ticks_per_s > 0 ? ticks_per_s : 100));
}

/* What is not to be had any more, because the process is ending, stays as it is. */
int keep_watch_add(struct keep_watch *kw, const struct tracker *t, pid_t pid, const char *comm,
		   size_t comm_bytes)
{
	struct watched w = { .name = { .pid = pid } };
	struct process_info info;
	uint32_t key = (uint32_t)pid;
	int err;

	if (!tracker_follows(t, pid))
		return -ESRCH;
	w.generation = tracker_generation(t, pid);
	w.name.start_epoch_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_S);
	if (!process_glance(pid, &info)) {
		comm = info.comm;
		comm_bytes = sizeof(info.comm);
		w.name.start_epoch_s = start_epoch_s(info.start_time_ticks);
	}
	snprintf(w.name.comm, sizeof(w.name.comm), "%.*s", (int)comm_bytes, comm);
	err = vec_reserve(&kw->list, kw->list.cnt + 1);
	if (!err)
		err = hmap_put(&kw->idx, &key, kw->list.cnt);
	if (err)
		return err;
	w.cgroup = keep_cgroups_get(kw->cgroups, pid);
	kw->list.data[kw->list.cnt++] = w;
	return 0;
}

void keep_watch_del(struct keep_watch *kw, struct watched *w)
{
	struct watched *last = &kw->list.data[kw->list.cnt - 1];
	uint32_t key = (uint32_t)w->name.pid;

	keep_cgroups_put(kw->cgroups, w->cgroup);
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
	struct keep_watch *kw = ctx;
	struct watched *w = keep_watch_find(kw, (pid_t)key->tgid);

	if (w && w->generation == key->generation) {
		w->is_sampled = true;
		keep_usage_set_sums(&w->usage, image);
	}
	return 0;
}

static void refresh_cgroups(struct keep_watch *kw)
{
	struct keep_cgroup *old;
	struct watched *w;

	vec_each(&kw->list, w) {
		old = w->cgroup;
		w->cgroup = keep_cgroups_get(kw->cgroups, w->name.pid);
		keep_cgroups_put(kw->cgroups, old);
	}
	keep_cgroups_refresh(kw->cgroups);
}

static void look_at_limit(struct watched *w, uint64_t rate_bytes)
{
	if (!w->cgroup)
		return;
	if (keep_cgroup_has_come_near(w->cgroup))
		w->limit.is_wanted = w->is_sampled;
	w->usage.cgroup = *keep_cgroup_reading(w->cgroup);
	if (w->is_sampled && w->has_inuse && keep_cgroup_is_near(w->cgroup) &&
	    keep_has_grown(w->usage.inuse_bytes, w->limit.kept_bytes, rate_bytes))
		w->limit.is_wanted = true;
}

void keep_watch_tick(struct keep_watch *kw, struct engine *e, uint64_t rate_bytes, uint64_t now_ns)
{
	struct watched *w;

	engine_each_image(e, on_image, kw);
	if (now_ns > kw->refreshed_ns + REFRESH_INTERVAL_NS) {
		kw->refreshed_ns = now_ns;
		refresh_cgroups(kw);
	}
	keep_cgroups_read(kw->cgroups, now_ns);
	vec_each(&kw->list, w) {
		look_at_limit(w, rate_bytes);
		w->peak.is_wanted =
			w->is_sampled && w->has_inuse &&
			keep_has_grown(w->usage.inuse_bytes, w->peak.kept_bytes, rate_bytes);
	}
}
