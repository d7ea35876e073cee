/* SPDX-License-Identifier: MIT */
/*
 * policy.h - how a recording follows processes and probes them.
 *
 * One struct, made by who begins the recording (record/recorder_open.c, serve/daemon.c) and completed by session.c.
 * Everybody else reads it through a pointer and copies nothing of it.
 */
#ifndef HT_TRACK_POLICY_H
#define HT_TRACK_POLICY_H

#include "base/std.h"
#include "alloc/allocators.h"
#include "heaptap/abi.h"

struct reader;

/*
 * plan.c: how processes share the probes of a file. Pure: from numbers to a choice and its expected cost.
 */

enum sharing {
	SHARING_AUTO, /* as a wish: the best one */
	SHARING_OWN = HT_SHARING_OWN, /* own links for each process */
	SHARING_EVENT = HT_SHARING_EVENT, /* one event for all, opened for each process */
	SHARING_ALL = HT_SHARING_ALL, /* one link for every process of the machine */
};

/* As measured on this machine; 0: not measured. */
struct plan_costs {
	double hit_ns; /* of an entry probe that one process has */
	double return_ns; /* added where the return is probed, too */
};

struct plan_input {
	size_t process_cnt; /* tracked processes that map the file */
	enum sharing now; /* SHARING_AUTO: not probed yet */
	enum sharing wanted; /* SHARING_AUTO, or the only allowed one */
	bool is_all_agreed; /* any process that maps the file may pay, tracked or not */
	bool has_event; /* the system has shared events, and they may probe this file */
	/* Session links: the entry decides whether the return is probed. Only with these does an
	 * unsampled allocation go without a return probe, in a process that is alone at the
	 * file. */
	bool has_session;
	struct plan_costs costs;
};

/*
 * Expected ns per hit for a tracked process: the average of an unsampled allocation and its free.
 * Excludes other programs' probes at the same file.
 */
double plan_hit_ns(const struct plan_input *in, enum sharing sharing);

/* Choose the sharing. Keeps `now` unless another is better by a margin, so that a process that
 * comes and goes does not make the probes move each time. */
enum sharing plan_choose(const struct plan_input *in);

/* A process that shares an event. */
struct plan_sharer {
	double hits_per_s;
	uint64_t turn; /* number of its last adding; the kernel looks at the highest first */
};

/*
 * Choose the sharer to be added again, so that the kernel finds it first: its hits then look
 * through no others, and those before it look through one more. Returns cnt if no gain is worth it.
 */
size_t plan_front(const struct plan_sharer *sharers, size_t cnt, double hit_ns);

const char *sharing_name(enum sharing sharing);

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
	struct reader *reader; /* see proc/reader.h */
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
	 * record/targets.h. */
	struct alloc_options alloc;
	enum probes_source source;
	enum sharing sharing; /* SHARING_AUTO, or the sharing to use wherever possible */
	bool is_all_agreed; /* any process that maps a probed file may pay for the probes, tracked or not; can change */
	bool has_events; /* SHARING_EVENT works: the guardian has opened events */
	bool finds_mappings; /* BPF finds those that were not read yet; by session.c */
	struct plan_costs costs; /* by session.c */
	/* Tap allocators instead of probing them, with this mean distance of samples. A process
	 * that cannot be tapped is probed, and this is said. 0: never tap. Tapped processes share
	 * no probes, also with `follow`. */
	uint64_t tap_rate_bytes;
	bool taps_on_request; /* probe a process, and tap it only when tracker_tap() says so */
	bool (*may_tap)(void *ctx, pid_t pid); /* NULL: everyone */
	void *may_tap_ctx;
	bool taps_are_patient; /* nobody else waits: a process that cannot be tapped just now is tried again at once; can change */
	bool tap_rate_is_fixed; /* else it follows the cost: taps.c */
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
