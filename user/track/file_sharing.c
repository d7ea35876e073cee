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

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "track/file_probes.h"
#include "track/files.h"

/* No handler of a hit runs this long, unless its thread is stopped in it. */
#define STEP_NS (20 * NS_PER_MS)
/* A call that has not returned by then is assumed never to return. */
#define LAST_CALL_NS (5 * NS_PER_S)
/* Minimum time between two moves of a file. */
#define DWELL_NS (2 * NS_PER_S)
/* Wait after events could not be had. */
#define RETRY_NS (60 * NS_PER_S)

enum move_step { STEP_NONE, STEP_BOTH, STEP_LAST_CALLS };

struct file_sharing {
	const struct sharing_policy *policy;
	struct file_probes *probes;
	const struct track_file *file;
	enum sharing sharing; /* during a move: the new one */
	enum sharing old_sharing;
	enum move_step step;
	uint64_t step_ns;
	uint64_t may_move_ns, may_have_event_ns;
	bool has_changed; /* since the last plan */
};

static struct plan_input plan_input_of(const struct file_sharing *fw, size_t process_cnt)
{
	const struct sharing_policy *p = fw->policy;

	return (struct plan_input){
		.process_cnt = process_cnt,
		.now = fw->sharing,
		.wanted = p->is_shared ? SHARING_ALL : p->wanted,
		.is_all_agreed = p->is_shared ||
				 (p->is_all_agreed && !file_probes_is_anyone_limited(fw->probes)),
		.has_event = now_ns() >= fw->may_have_event_ns && file_probes_has_event(fw->probes),
		.has_session = engine_mode(p->engine) == ATTACH_SESSION,
		.costs = p->costs,
	};
}

int file_sharing_new(const struct sharing_policy *policy, struct file_probes *fp,
		     struct file_sharing **ret)
{
	struct file_sharing *fw = calloc(1, sizeof(*fw));
	struct plan_input in;

	if (!fw)
		return -ENOMEM;
	fw->policy = policy;
	fw->probes = fp;
	fw->file = file_probes_file(fp);
	fw->sharing = SHARING_AUTO;
	in = plan_input_of(fw, 1);
	fw->sharing = plan_choose(&in);
	*ret = fw;
	return 0;
}

void file_sharing_free(struct file_sharing *fw)
{
	free(fw);
}

enum sharing file_sharing_now(const struct file_sharing *fw)
{
	return fw->sharing;
}

bool file_sharing_is_moving(const struct file_sharing *fw)
{
	return fw->step;
}

enum sharing file_sharing_old(const struct file_sharing *fw)
{
	return fw->old_sharing;
}

double file_sharing_hit_ns(const struct file_sharing *fw)
{
	const struct plan_input in = plan_input_of(fw, file_probes_cnt(fw->probes));

	return plan_hit_ns(&in, fw->sharing);
}

static void say_sharing(const struct file_sharing *fw, size_t process_cnt)
{
	const struct plan_input in = plan_input_of(fw, process_cnt);

	log_info("probes of %s: %s for %zu processes, about %.0f ns a hit (%s: %.0f ns)",
		 fw->file->path, sharing_name(fw->sharing), process_cnt,
		 plan_hit_ns(&in, fw->sharing), sharing_name(fw->old_sharing),
		 plan_hit_ns(&in, fw->old_sharing));
}

static void set_sharings(const struct file_sharing *fw, uint32_t sharings)
{
	engine_set_sharings(fw->policy->engine, fw->file->id, sharings);
}

static void begin_step(struct file_sharing *fw, enum move_step step)
{
	fw->step = step;
	fw->step_ns = now_ns();
}

/* process_cnt includes processes that are about to come. */
static void begin_move(struct file_sharing *fw, enum sharing sharing, size_t process_cnt)
{
	int err;

	set_sharings(fw, 1U << fw->sharing);
	err = file_probes_bring_all(fw->probes, sharing);
	if (err) {
		log_warn("probes of %s stay '%s', because they cannot be attached as '%s': %s",
			 fw->file->path, sharing_name(fw->sharing), sharing_name(sharing),
			 strerror(-err));
		file_probes_stop_sharing(fw->probes, sharing);
		set_sharings(fw, 0);
		fw->may_move_ns = fw->may_have_event_ns = now_ns() + RETRY_NS;
		return;
	}
	fw->old_sharing = fw->sharing;
	fw->sharing = sharing;
	set_sharings(fw, 1U << fw->old_sharing | 1U << sharing);
	begin_step(fw, STEP_BOTH);
	say_sharing(fw, process_cnt);
}

void file_sharing_plan(struct file_sharing *fw, size_t process_cnt)
{
	const struct plan_input in = plan_input_of(fw, process_cnt);
	enum sharing sharing;

	if (fw->step || !fw->file->alloc || now_ns() < fw->may_move_ns)
		return;
	sharing = plan_choose(&in);
	fw->has_changed = false;
	if (sharing != fw->sharing)
		begin_move(fw, sharing, process_cnt);
}

static void end_move(struct file_sharing *fw)
{
	file_probes_stop_sharing(fw->probes, fw->old_sharing);
	set_sharings(fw, 0);
	fw->step = STEP_NONE;
	fw->may_move_ns = now_ns() + DWELL_NS;
	fw->has_changed = true; /* it may have, during the move */
}

static void go_on(struct file_sharing *fw)
{
	uint64_t passed_ns = now_ns() - fw->step_ns;

	if (passed_ns < STEP_NS)
		return;
	if (fw->step == STEP_BOTH) {
		set_sharings(fw, 1U << fw->sharing);
		begin_step(fw, STEP_LAST_CALLS);
	} else if (passed_ns > LAST_CALL_NS ||
		   !engine_has_calls(fw->policy->engine, fw->file->id, fw->old_sharing)) {
		end_move(fw);
	}
}

void file_sharing_work(struct file_sharing *fw)
{
	if (fw->step)
		go_on(fw);
	else if (fw->has_changed)
		file_sharing_plan(fw, file_probes_cnt(fw->probes));
}

void file_sharing_note_change(struct file_sharing *fw)
{
	fw->has_changed = true;
}

void file_sharing_halt(struct file_sharing *fw)
{
	fw->step = STEP_NONE;
	fw->has_changed = false;
}
