/* SPDX-License-Identifier: MIT */
/* stack_watch.c - see live_view_priv.h. */
#include "serve/live_view_priv.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "track/governor.h"
#include "kernel/engine.h"
#include "metrics/stack_past.h"
#include "profile/estimate.h"
#include "result/make.h"
#include "track/tracker.h"

static uint64_t image_of(pid_t pid, uint32_t generation)
{
	return (uint64_t)pid << 32 | generation;
}

static int on_live(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	const struct history_key key = { .stack_id = v->stack_id,
					 .image = image_of((pid_t)k->tgid, k->generation),
					 .context_id = v->context_id };

	return stack_past_add(ctx, &key, v->time_ns, v->size_bytes,
			      estimate_threshold_probability(v->threshold));
}

/* Name the images whose in-use is known. */
static int name_images(const struct result_source *src)
{
	size_t cnt = tracker_running_cnt(src->tracker);
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		pid_t pid = tracker_running_at(src->tracker, i);
		struct governor_view view;

		if (governor_view(src->governor, pid, &view) || !view.has_inuse)
			continue;
		err = stack_past_name_image(src->stacks, result_image(src, pid),
					    view.inuse_ns ? view.inuse_ns :
							    tracker_followed_ns(src->tracker, pid));
		if (err == -ENOSPC)
			err = 0; /* its page says so */
	}
	return err;
}

int stack_watch_tick(const struct result_source *src)
{
	const struct stack_past_moment now = { now_ns(), (int64_t)clock_ns(CLOCK_REALTIME) };
	uint64_t begin_ns;
	int err;

	if (!src->stacks || now.time_ns < stack_past_due_ns(src->stacks))
		return 0;
	if (!tracker_running_cnt(src->tracker)) {
		stack_past_forget(src->stacks);
		return 0;
	}
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	stack_past_begin(src->stacks, &now);
	err = name_images(src);
	if (!err)
		err = engine_each_live(src->engine, on_live, src->stacks);
	if (err)
		stack_past_forget(src->stacks);
	else
		err = stack_past_end(src->stacks, clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
	log_debug("serve: a moment of stacks took %.1f ms of CPU, %.1f MiB are stored",
		  (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / (double)NS_PER_MS,
		  (double)stack_past_bytes(src->stacks) / (1 << 20));
	return err;
}
