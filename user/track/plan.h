/* SPDX-License-Identifier: MIT */
/*
 * plan.h - how processes share the probes of a file. Pure: from numbers to a choice and its
 * expected cost.
 */
#ifndef HT_TRACK_PLAN_H
#define HT_TRACK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heaptap/abi.h"

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

#endif
