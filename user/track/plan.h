/* SPDX-License-Identifier: MIT */
/*
 * plan.h - how processes share the probes of a file. Pure: numbers in, a choice and the cost
 * that it was made for out.
 */
#ifndef HT_TRACK_PLAN_H
#define HT_TRACK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heaptap/abi.h"

enum sharing {
	SHARING_AUTO, /* as a wish: whatever is best */
	SHARING_OWN = HT_SHARING_OWN, /* links of its own for each process */
	SHARING_EVENT = HT_SHARING_EVENT, /* one event for all, opened for each process */
	SHARING_ALL = HT_SHARING_ALL, /* one link for every process of the machine */
};

/* As measured on this machine; 0: not measured. */
struct plan_costs {
	double hit_ns; /* of an entry probe that one process has */
	double return_ns; /* more, where the return is probed too */
};

struct plan_input {
	size_t process_cnt; /* tracked processes that map the file */
	enum sharing now; /* SHARING_AUTO: the file is not probed yet */
	enum sharing wanted; /* SHARING_AUTO, or the only one that may be taken */
	bool is_all_agreed; /* who maps the file may pay, tracked or not */
	bool has_event; /* this system has shared events, and the file may be probed by them */
	/* Of links: only where the entry decides about the return (session) an unsampled allocation of
	 * a process that is alone at the file goes without a return probe. */
	bool has_session;
	struct plan_costs costs;
};

/*
 * ns that a tracked process pays for a hit, on the average of an unsampled allocation and its free.
 * What other programs do with probes at the same file is not in it.
 */
double plan_hit_ns(const struct plan_input *in, enum sharing sharing);

/* The sharing to take. Stays with `now` unless another is better by a margin, so that a process that
 * comes and goes does not make the probes move each time. */
enum sharing plan_choose(const struct plan_input *in);

/* A process that shares an event. */
struct plan_sharer {
	double hits_per_s;
	uint64_t turn; /* when it was added: the kernel looks at the one with the highest first */
};

/*
 * The one to be added anew, so that the kernel finds it first: its hits then pay for nobody, and those
 * of the ones before it for one more. Returns cnt where nobody's gain is worth it.
 */
size_t plan_front(const struct plan_sharer *sharers, size_t cnt, double hit_ns);

const char *sharing_name(enum sharing sharing);

#endif
