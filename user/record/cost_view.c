/* SPDX-License-Identifier: MIT */
/* cost_view.c - see recorder_priv.h. */
#include "record/recorder_priv.h"

#include "track/governor.h"
#include "track/tracker.h"

struct cost_view cost_view_read(const struct tracker *t, const struct governor *g, bool is_one)
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
