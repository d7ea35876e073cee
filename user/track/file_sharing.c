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
#include "track/policy.h"

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
	struct engine *engine;
	const struct track_policy *policy;
	struct file_probes *probes;
	const struct track_file *file;
	enum sharing sharing; /* during a move: the new one */
	enum sharing old_sharing;
	enum move_step step;
	uint64_t step_ns;
	uint64_t may_move_ns, may_have_event_ns;
	bool has_changed; /* since the last plan */
};

static struct plan_input plan_input_of(const struct file_sharing *fs, size_t process_cnt)
{
	const struct track_policy *p = fs->policy;
	const bool is_shared = policy_is_shared(p);

	return (struct plan_input){
		.process_cnt = process_cnt,
		.now = fs->sharing,
		.wanted = is_shared ? SHARING_ALL : p->sharing,
		.is_all_agreed = is_shared ||
				 (p->is_all_agreed && !file_probes_is_anyone_limited(fs->probes)),
		.has_event = now_ns() >= fs->may_have_event_ns && file_probes_has_event(fs->probes),
		.has_session = engine_mode(fs->engine) == ATTACH_SESSION,
		.costs = p->costs,
	};
}

int file_sharing_new(struct engine *e, const struct track_policy *policy, struct file_probes *fp,
		     struct file_sharing **ret)
{
	struct file_sharing *fs = calloc(1, sizeof(*fs));
	struct plan_input in;

	if (!fs)
		return -ENOMEM;
	fs->engine = e;
	fs->policy = policy;
	fs->probes = fp;
	fs->file = file_probes_file(fp);
	fs->sharing = SHARING_AUTO;
	in = plan_input_of(fs, 1);
	fs->sharing = plan_choose(&in);
	*ret = fs;
	return 0;
}

void file_sharing_free(struct file_sharing *fs)
{
	free(fs);
}

enum sharing file_sharing_now(const struct file_sharing *fs)
{
	return fs->sharing;
}

bool file_sharing_is_moving(const struct file_sharing *fs)
{
	return fs->step;
}

enum sharing file_sharing_old(const struct file_sharing *fs)
{
	return fs->old_sharing;
}

double file_sharing_hit_ns(const struct file_sharing *fs)
{
	const struct plan_input in = plan_input_of(fs, file_probes_cnt(fs->probes));

	return plan_hit_ns(&in, fs->sharing);
}

static void say_sharing(const struct file_sharing *fs, size_t process_cnt)
{
	const struct plan_input in = plan_input_of(fs, process_cnt);

	log_info("probes of %s: %s for %zu processes, about %.0f ns a hit (%s: %.0f ns)",
		 fs->file->path, sharing_name(fs->sharing), process_cnt,
		 plan_hit_ns(&in, fs->sharing), sharing_name(fs->old_sharing),
		 plan_hit_ns(&in, fs->old_sharing));
}

static void set_sharings(const struct file_sharing *fs, uint32_t sharings)
{
	engine_set_sharings(fs->engine, fs->file->id, sharings);
}

static void begin_step(struct file_sharing *fs, enum move_step step)
{
	fs->step = step;
	fs->step_ns = now_ns();
}

/* process_cnt includes processes that are about to come. */
static void begin_move(struct file_sharing *fs, enum sharing sharing, size_t process_cnt)
{
	int err;

	set_sharings(fs, 1U << fs->sharing);
	err = file_probes_sync_all(fs->probes, sharing);
	if (err) {
		log_warn("probes of %s stay '%s', because they cannot be attached as '%s': %s",
			 fs->file->path, sharing_name(fs->sharing), sharing_name(sharing),
			 strerror(-err));
		file_probes_stop_sharing(fs->probes, sharing);
		set_sharings(fs, 0);
		fs->may_move_ns = fs->may_have_event_ns = now_ns() + RETRY_NS;
		return;
	}
	fs->old_sharing = fs->sharing;
	fs->sharing = sharing;
	set_sharings(fs, 1U << fs->old_sharing | 1U << sharing);
	begin_step(fs, STEP_BOTH);
	say_sharing(fs, process_cnt);
}

void file_sharing_plan(struct file_sharing *fs, size_t process_cnt)
{
	const struct plan_input in = plan_input_of(fs, process_cnt);
	enum sharing sharing;

	if (fs->step || !fs->file->alloc || now_ns() < fs->may_move_ns)
		return;
	sharing = plan_choose(&in);
	fs->has_changed = false;
	if (sharing != fs->sharing)
		begin_move(fs, sharing, process_cnt);
}

static void end_move(struct file_sharing *fs)
{
	file_probes_stop_sharing(fs->probes, fs->old_sharing);
	set_sharings(fs, 0);
	fs->step = STEP_NONE;
	fs->may_move_ns = now_ns() + DWELL_NS;
	fs->has_changed = true; /* it may have, during the move */
}

static void go_on(struct file_sharing *fs)
{
	uint64_t passed_ns = now_ns() - fs->step_ns;

	if (passed_ns < STEP_NS)
		return;
	if (fs->step == STEP_BOTH) {
		set_sharings(fs, 1U << fs->sharing);
		begin_step(fs, STEP_LAST_CALLS);
	} else if (passed_ns > LAST_CALL_NS ||
		   !engine_has_calls(fs->engine, fs->file->id, fs->old_sharing)) {
		end_move(fs);
	}
}

void file_sharing_work(struct file_sharing *fs)
{
	if (fs->step)
		go_on(fs);
	else if (fs->has_changed)
		file_sharing_plan(fs, file_probes_cnt(fs->probes));
}

void file_sharing_note_change(struct file_sharing *fs)
{
	fs->has_changed = true;
}

void file_sharing_halt(struct file_sharing *fs)
{
	fs->step = STEP_NONE;
	fs->has_changed = false;
}
