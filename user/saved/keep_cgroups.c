/* SPDX-License-Identifier: MIT */
/*
 * keep_cgroups.c - see keep_cgroups.h.
 */
#include "saved/keep_cgroups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "base/vec.h"
#include "saved/keep_rules.h"
#include "proc/cgroup_origin.h"

/* Cgroups that are far from their limits are looked at so often, the others in each tick. */
#define FAR_INTERVAL_NS NS_PER_S
#define FAR_SHARE 0.5
#define LOG_EVERY_NS (60 * NS_PER_S)

struct keep_cgroup {
	char *dir;
	struct cgroup_room *room;
	struct cgroup_room_reading reading; /* the last one */
	struct keep_limit limit;
	bool has_come_near;
	uint64_t read_ns;
	struct log_limit log; /* over memory.high the kernel has something to tell all the time */
	size_t user_cnt;
};

struct keep_cgroups {
	double limit_share;
	struct cgroup_mount mount;
	bool has_mount;
	VEC(struct keep_cgroup *) list;
};

int keep_cgroups_new(double limit_share, struct keep_cgroups **ret)
{
	struct keep_cgroups *cs = calloc(1, sizeof(*cs));

	if (!cs)
		return -ENOMEM;
	cs->limit_share = limit_share;
	cs->has_mount = !cgroup_room_find_mount(&cs->mount);
	if (cs->has_mount && cgroup_is_outside(cs->mount.root))
		log_warn(
			"serve: nothing is kept when another container comes near its memory limit: this "
			"container's place in the host's cgroups, mounted at %s, is not found",
			cs->mount.point);
	*ret = cs;
	return 0;
}

void keep_cgroups_set_limit(struct keep_cgroups *cs, double limit_share)
{
	cs->limit_share = limit_share;
}

static void free_cgroup(struct keep_cgroup *c)
{
	cgroup_room_close(c->room);
	free(c->dir);
	free(c);
}

void keep_cgroups_free(struct keep_cgroups *cs)
{
	struct keep_cgroup **c;

	if (!cs)
		return;
	vec_each(&cs->list, c)
		free_cgroup(*c);
	vec_release(&cs->list);
	free(cs);
}

struct keep_cgroup *keep_cgroups_get(struct keep_cgroups *cs, pid_t pid)
{
	char dir[CGROUP_PATH_BYTES];
	struct keep_cgroup *fresh, **c;

	if (!cs->has_mount || cgroup_room_find_dir(&cs->mount, pid, dir))
		return NULL;
	vec_each(&cs->list, c) {
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
	if (!fresh->dir || cgroup_room_open(&cs->mount, dir, &fresh->room) ||
	    vec_push(&cs->list, fresh)) {
		free_cgroup(fresh);
		return NULL;
	}
	return fresh;
}

void keep_cgroups_put(struct keep_cgroups *cs, struct keep_cgroup *c)
{
	if (!c || --c->user_cnt)
		return;
	for (size_t i = 0; i < cs->list.cnt; i++)
		if (cs->list.data[i] == c)
			cs->list.data[i] = cs->list.data[--cs->list.cnt];
	free_cgroup(c);
}

static void read_cgroup(struct keep_cgroup *c, double share, uint64_t now)
{
	struct cgroup_room_reading r;
	bool is_far =
		(double)c->reading.working_bytes < (double)c->reading.limit_bytes * FAR_SHARE ||
		!c->reading.limit_bytes;

	c->has_come_near = false;
	if (c->read_ns && is_far && now < c->read_ns + FAR_INTERVAL_NS)
		return;
	if (cgroup_room_read(c->room, &r))
		return; /* its processes end */
	c->read_ns = now;
	c->reading = r;
	c->has_come_near =
		keep_limit_reached(&c->limit, r.working_bytes, r.limit_bytes, r.event_cnt, share);
}

void keep_cgroups_read(struct keep_cgroups *cs, uint64_t now_ns)
{
	struct keep_cgroup **c;

	vec_each(&cs->list, c) {
		read_cgroup(*c, cs->limit_share, now_ns);
		if (!(*c)->has_come_near || !log_limit_allows(&(*c)->log, now_ns))
			continue;
		log_info("serve: cgroup %s uses %llu of %llu bytes: keeping the profiles of its "
			 "processes",
			 (*c)->dir, (unsigned long long)(*c)->reading.working_bytes,
			 (unsigned long long)(*c)->reading.limit_bytes);
	}
}

void keep_cgroups_refresh(struct keep_cgroups *cs)
{
	struct keep_cgroup **c;

	vec_each(&cs->list, c)
		cgroup_room_refresh((*c)->room);
}

const struct cgroup_room_reading *keep_cgroup_reading(const struct keep_cgroup *c)
{
	return &c->reading;
}

bool keep_cgroup_has_come_near(const struct keep_cgroup *c)
{
	return c->has_come_near;
}

bool keep_cgroup_is_near(const struct keep_cgroup *c)
{
	return c->limit.is_near;
}
