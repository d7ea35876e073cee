/* SPDX-License-Identifier: MIT */
/* family.c - see recorder_priv.h. */
#include "record/recorder_priv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/vec.h"
#include "kernel/engine.h"
#include "record/targets.h"
#include "proc/process.h"
#include "track/tracker.h"

#define ROUNDS 100 /* for a family that grows faster than this reads it, events report the rest */

struct family {
	struct engine *engine;
	struct tracker *tracker;
	struct targets *targets;
	VEC(pid_t) left_out;
};

static bool is_left_out(const struct family *f, pid_t pid)
{
	const pid_t *one;

	vec_each(&f->left_out, one)
		if (*one == pid)
			return true;
	return false;
}

static int leave_out(struct family *f, const struct process_info *info, const char *why)
{
	log_warn("record: left out: %s", why);
	return vec_push(&f->left_out, info->pid);
}

static int add_child(struct family *f, pid_t pid)
{
	struct process_info info;
	struct err why;
	int err = process_info_read(pid, &info);

	if (err || info.is_zombie)
		return err == -ENOMEM ? err : 0; /* it has ended */
	if (process_check_probing(&info, &why))
		return leave_out(f, &info, why.text);
	err = tracker_add(f->tracker, pid);
	if (err == -ESRCH || err == -ENOENT) {
		tracker_remove(f->tracker, pid);
		return 0;
	}
	return err ? err : targets_add(f->targets, &info);
}

/*
 * A child appears in /proc a moment before its fork is reported; then the kernel's side makes its target anew, with
 * another generation.
 */
static bool was_made_anew(const struct family *f, pid_t pid)
{
	struct ht_target target;

	return !engine_get_target(f->engine, pid, &target) &&
	       target.generation / HT_GENERATION_STEP !=
		       tracker_generation(f->tracker, pid) / HT_GENERATION_STEP;
}

static int look_at(struct family *f, pid_t pid, bool *has_news)
{
	struct process_info info;
	struct ht_target target;

	if (pid == getpid() || process_glance(pid, &info) || info.is_zombie || info.tgid != pid)
		return 0;
	if (tracker_follows(f->tracker, pid)) {
		if (!targets_have(f->targets, pid) || !was_made_anew(f, pid))
			return 0;
		tracker_remove(f->tracker, pid);
		*has_news = true;
		return tracker_add(f->tracker, pid);
	}
	/* it has a target, but is not followed: its fork is being reported */
	if (!tracker_follows(f->tracker, info.ppid) || is_left_out(f, pid) ||
	    !engine_get_target(f->engine, pid, &target))
		return 0;
	*has_news = true;
	return add_child(f, pid);
}

static int look(struct family *f, bool *has_news)
{
	struct process_list all;
	const pid_t *pid;
	int err = engine_events_drain(f->engine);

	*has_news = false;
	if (!err)
		err = process_list_read(&all);
	if (err)
		return err;
	vec_each(&all.pids, pid) {
		err = look_at(f, *pid, has_news);
		if (err == -ESRCH || err == -ENOENT)
			err = 0; /* it has ended meanwhile */
		if (err)
			break;
	}
	process_list_release(&all);
	return err;
}

int family_add(struct engine *e, struct tracker *t, struct targets *targets)
{
	struct family f = { .engine = e, .tracker = t, .targets = targets };
	bool has_news = true;
	int err = 0;

	for (int i = 0; i < ROUNDS && has_news && !err; i++)
		err = look(&f, &has_news);
	vec_release(&f.left_out);
	return err;
}
