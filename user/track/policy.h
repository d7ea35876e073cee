/* SPDX-License-Identifier: MIT */
/*
 * policy.h - how a recording follows processes and probes them.
 *
 * One struct, made by who begins the recording (record/recorder_open.c, serve/daemon.c) and completed by session/.
 * Everybody else reads it through a pointer and copies nothing of it.
 */
#ifndef HT_TRACK_POLICY_H
#define HT_TRACK_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "alloc/allocators.h"
#include "track/plan.h"

/* Where the samples of a process come from. */
enum probes_source {
	/* The allocator's probes, until the process's own sampler reports a sample. Only a sampler
	 * that sees everything counts. */
	SOURCE_AUTO,
	SOURCE_PROBES, /* the allocator's probes */
	SOURCE_USDT, /* the process's own samplers, whatever they see */
};
extern const char *const probes_source_names[]; /* by number; ends with NULL */

/* Should allocators be tapped (tap/tap.h)? */
enum tap_wish {
	TAP_STARTED, /* TAP_AUTO for a program that heaptap starts, else TAP_NEVER */
	TAP_IF_POSSIBLE, /* else probe them */
	TAP_ONLY,
	TAP_AUTO, /* probe them, and tap them where probes cost too much */
	TAP_NEVER,
};
extern const char *const tap_wish_names[]; /* by number; ends with NULL */

#define TAP_RATE_FINEST (64ULL << 10) /* of a tap_rate_bytes that follows the cost */

struct track_policy {
	/*
	 * Children become tracked processes of their own. Probes are then not bound to a process
	 * but fire in every process that maps the file; only so are children seen from their first
	 * moment on. (Inherited events could do that for the children alone, but cost 10 ms each at
	 * the end of a child: 220 ms a fork with glibc's entry points.)
	 */
	bool follow;
	/* Wait for files until they are read: nobody else is kept waiting. */
	bool is_patient;
	bool holds; /* processes are held at an exec: tracker_read_held() */
	/* With probe_throwing functions that throw are probed also where every return is probed (no
	 * session attachment). An exception through a return probe ends the program: see
	 * record/throw_limit.h. */
	struct alloc_options alloc;
	enum probes_source source;
	enum sharing sharing; /* SHARING_AUTO, or the sharing to use wherever possible */
	bool is_all_agreed; /* any process that maps a probed file may pay for the probes, tracked or not; can change */
	bool has_events; /* SHARING_EVENT works: the guardian has opened events */
	struct plan_costs costs; /* by session/ */
	/* Tap allocators instead of probing them, with this mean distance of samples. A process
	 * that cannot be tapped is probed, and this is said. 0: never tap. Tapped processes share
	 * no probes, also with `follow`. */
	uint64_t tap_rate_bytes;
	bool taps_on_request; /* probe a process, and tap it only when tracker_tap() says so */
	bool (*may_tap)(void *ctx, pid_t pid); /* NULL: everyone */
	void *may_tap_ctx;
	bool taps_are_patient; /* nobody else waits: a process that cannot be tapped just now is tried again at once; can change */
	bool tap_rate_is_fixed; /* else it follows the cost: tap_rate.c */
	uint64_t reclaim_grace_ns; /* 0: RECLAIM_GRACE_NS */
	/* Read the mappings of a process again after this time without news of it, because nothing
	 * reports an unmapped file. 0: never for that reason. */
	uint64_t refresh_ns;
};

/* Is there one set of probes for every process that maps a file, as long as nothing is tapped? */
static inline bool policy_is_shared(const struct track_policy *policy)
{
	return policy->follow && (!policy->tap_rate_bytes || policy->taps_on_request);
}

#endif
