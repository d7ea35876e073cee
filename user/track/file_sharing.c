/* SPDX-License-Identifier: MIT */
/*
 * file_sharing.c - see probes_priv.h.
 *
 * A move has three steps. First the probes of the new sharing are attached for all processes, while
 * only the old ones count. Then both count, and BPF makes a hit count once (bpf/sharing.bpf.h).
 * Last, only the new ones count; the old ones stay until the calls whose entry they have seen have
 * returned. Some time passes between the steps, so that no hit meets two of them. A file that is
 * not moving has probes of one sharing, and while no file is moving, no hit checks which sharing
 * counts.
 */
#include "track/probes_priv.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "track/file.h"

/* No handler of a hit runs this long, unless its thread is stopped in it. */
#define STEP_NS (20 * NS_PER_MS)
/* A call that has not returned by then is assumed never to return. */
#define LAST_CALL_NS (5 * NS_PER_S)
/* Minimum time between two moves of a file. */
#define DWELL_NS (2 * NS_PER_S)
/* Wait after events could not be had. */
#define RETRY_NS (60 * NS_PER_S)

/* Links for everyone cannot exclude one process. */
static bool is_anyone_limited(const struct file_probes *fp)
{
	const struct file_member *m;

	vec_each(&fp->members, m)
		if (probes_kept_of(fp->all, m->pid) != PROBES_ALL)
			return true;
	return false;
}

static struct plan_input plan_input_of(const struct file_probes *fp, size_t process_cnt)
{
	const struct track_policy *policy = fp->all->policy;
	const bool is_shared = probes_are_shared(fp->all);

	return (struct plan_input){
		.process_cnt = process_cnt,
		.now = fp->sharing,
		.wanted = is_shared ? SHARING_ALL : policy->sharing,
		.is_all_agreed = is_shared || (policy->is_all_agreed && !is_anyone_limited(fp)),
		.has_event = now_ns() >= fp->may_have_event_ns && file_links_has_event(fp),
		.has_session = engine_mode(fp->all->engine) == ATTACH_SESSION,
		.costs = policy->costs,
	};
}

double file_sharing_hit_ns(const struct file_probes *fp)
{
	const struct plan_input in = plan_input_of(fp, fp->members.cnt);

	return plan_hit_ns(&in, fp->sharing);
}

static void say_sharing(const struct file_probes *fp, size_t process_cnt)
{
	const struct plan_input in = plan_input_of(fp, process_cnt);

	log_info("%s: probes moved from '%s' to '%s' for %zu processes: about %.0f ns per hit "
		 "instead of %.0f ns",
		 fp->file->path, sharing_name(fp->old_sharing), sharing_name(fp->sharing),
		 process_cnt, plan_hit_ns(&in, fp->sharing), plan_hit_ns(&in, fp->old_sharing));
}

static void set_sharings(const struct file_probes *fp, uint32_t sharings)
{
	engine_set_sharings(fp->all->engine, fp->file->id, sharings);
}

static void begin_step(struct file_probes *fp, enum move_step step)
{
	fp->step = step;
	fp->step_ns = now_ns();
}

/* process_cnt includes processes that are about to come. */
static void begin_move(struct file_probes *fp, enum sharing sharing, size_t process_cnt)
{
	int err;

	set_sharings(fp, 1U << fp->sharing);
	err = file_probes_attach_sharing(fp, sharing);
	if (err) {
		log_warn("probes of %s stay '%s': they cannot be attached as '%s': %s",
			 fp->file->path, sharing_name(fp->sharing), sharing_name(sharing),
			 strerror(-err));
		file_probes_stop_sharing(fp, sharing);
		set_sharings(fp, 0);
		fp->may_move_ns = fp->may_have_event_ns = now_ns() + RETRY_NS;
		return;
	}
	fp->old_sharing = fp->sharing;
	fp->sharing = sharing;
	set_sharings(fp, 1U << fp->old_sharing | 1U << sharing);
	begin_step(fp, STEP_BOTH);
	say_sharing(fp, process_cnt);
}

void file_sharing_plan(struct file_probes *fp, size_t process_cnt)
{
	const struct plan_input in = plan_input_of(fp, process_cnt);
	enum sharing sharing;

	if (fp->sharing == SHARING_AUTO) {
		fp->sharing = plan_choose(&in);
		return;
	}
	if (fp->step || !fp->file->alloc || now_ns() < fp->may_move_ns)
		return;
	sharing = plan_choose(&in);
	fp->has_changed = false;
	if (sharing != fp->sharing)
		begin_move(fp, sharing, process_cnt);
}

static void end_move(struct file_probes *fp)
{
	file_probes_stop_sharing(fp, fp->old_sharing);
	set_sharings(fp, 0);
	fp->step = STEP_NONE;
	fp->may_move_ns = now_ns() + DWELL_NS;
	fp->has_changed = true; /* it may have, during the move */
}

static void go_on(struct file_probes *fp)
{
	uint64_t passed_ns = now_ns() - fp->step_ns;

	if (passed_ns < STEP_NS)
		return;
	if (fp->step == STEP_BOTH) {
		set_sharings(fp, 1U << fp->sharing);
		begin_step(fp, STEP_LAST_CALLS);
	} else if (passed_ns > LAST_CALL_NS ||
		   !engine_has_calls(fp->all->engine, fp->file->id, fp->old_sharing)) {
		end_move(fp);
	}
}

void file_sharing_work(struct file_probes *fp)
{
	if (fp->step)
		go_on(fp);
	else if (fp->has_changed)
		file_sharing_plan(fp, fp->members.cnt);
}
