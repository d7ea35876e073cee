/* SPDX-License-Identifier: MIT */
/* holds.c - see recorder_priv.h. */
#include "record/recorder_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "guardian/exec_hold.h"
#include "heaptap/abi.h"
#include "kernel/engine.h"
#include "proc/events.h"
#include "proc/process.h"
#include "track/tracker.h"

struct holds {
	struct holds_parts parts;
	struct exec_hold *hold;
};

int holds_begin(const struct holds_parts *parts, pid_t pid, bool is_family, struct holds **ret)
{
	struct holds *h = calloc(1, sizeof(*h));
	int err = h ? exec_hold_new(parts->guardian, &h->hold) : -ENOMEM;

	if (!err)
		err = exec_hold_begin(h->hold, pid, is_family);
	if (!err)
		err = engine_mark_target(parts->engine, pid, HT_TARGET_HELD, 0);
	if (err) {
		log_warn("record: cannot pause the program at an exec (%s%s): allocations right "
			 "after one will be missing",
			 strerror(-err), err == -EPERM ? "; it may be traced already" : "");
		holds_end(h);
		return err;
	}
	h->parts = *parts;
	*ret = h;
	return 0;
}

void holds_end(struct holds *h)
{
	if (!h)
		return;
	exec_hold_free(h->hold);
	free(h);
}

int holds_fd(const struct holds *h)
{
	return exec_hold_fd(h->hold);
}

static pid_t process_of(const struct holds *h, const struct exec_hold_stop *stop)
{
	struct process_info info;

	if (stop->is_exec || tracker_follows(h->parts.tracker, stop->tid) ||
	    process_glance(stop->tid, &info))
		return stop->tid;
	return info.tgid;
}

/* All that was reported of the process until now happened before its stop. */
static void read_held(struct holds *h, const struct exec_hold_stop *stop)
{
	pid_t pid = process_of(h, stop);
	bool traces = false;

	tracker_read_held(h->parts.tracker, pid, stop->is_exec, stop->until_ns, &traces);
	if (!traces) {
		exec_hold_resume(h->hold, stop);
		return;
	}
	log_info(
		"record: PID %d uses ptrace itself, so heaptap cannot pause it at an exec: allocations "
		"right after one may be missed",
		pid);
	engine_mark_target(h->parts.engine, pid, 0, HT_TARGET_HELD);
	exec_hold_detach(h->hold, pid);
}

void holds_work(struct holds *h)
{
	struct exec_hold_stop stop;

	while (!exec_hold_next(h->hold, &stop)) {
		engine_events_drain(h->parts.engine);
		if (h->parts.events)
			process_events_drain(h->parts.events);
		read_held(h, &stop);
	}
}
