/* SPDX-License-Identifier: MIT */
/*
 * plan.c - chooses how the tracked processes share the probes of a file: links of their own, one event, or one link
 * for all (see policy.h).
 *
 * All probes at one place of one file are in one list, and every hit there walks the whole list. So links of K
 * processes cost each of them K entries. A session link of another process also asks for the return, so from the
 * second process on every allocation pays for its return. A shared event is one entry with a list of processes that is
 * searched fast, but its return is always probed. A link for all has no list, but puts its breakpoints into every
 * process.
 *
 * Measured, ns per hit of one process while others are tracked too (x86-64 VM, 6.18):
 *
 *	others at the same place           0     1    10    50   100   300
 *	session link each (allocations)  460   744  1331  3872  7017
 *	multi link each (frees)          451   506   783  1828  3209  8856
 *	shared event, entry              489   499   495   592   788  1720
 *	shared event, only the return    727   742   745   853  1049  1986
 *	one link for all                 460   460   460   460   460   460
 *
 * A shared event searches from the process added last, so its numbers are those of the process added first. The
 * processes that hit most are moved to the front: each is added once more and removed at its old place, in a fraction
 * of a ms and without delay for any hit.
 *
 * A file has one sharing for all of its processes: with links of its own beside the event, one process gains what the
 * others lose (bench_event_floor, "links of its own" and "shared, beside that").
 *
 * The model is a straight line through each row, in units of the cost of a hit and a return on this machine, because a
 * slow kernel makes both the trap and the list slower.
 */
#include "track/policy.h"

/* Defaults when nothing was measured: the table's machine. */
#define HIT_NS 455
#define RETURN_NS 245
/* Part of a hit, for each other process. */
#define SESSION_SLOPE 0.140
#define MULTI_SLOPE 0.061
#define EVENT_SLOPE 0.0065
/* Part of a hit: going through perf instead of through a link. */
#define EVENT_EXTRA 0.08
/* During a move both sharings are paid for. */
#define BETTER 0.9

double plan_hit_ns(const struct plan_input *in, enum sharing sharing)
{
	double hit_ns = in->costs.hit_ns > 0 ? in->costs.hit_ns : HIT_NS;
	double return_ns = in->costs.return_ns > 0 ? in->costs.return_ns : RETURN_NS;
	double others = in->process_cnt > 1 ? (double)(in->process_cnt - 1) : 0;
	double alloc_ns = hit_ns, free_ns = hit_ns;

	switch (sharing) {
	case SHARING_OWN:
		if (!in->has_session || others > 0)
			alloc_ns += return_ns;
		alloc_ns += others * hit_ns * (in->has_session ? SESSION_SLOPE : 2 * MULTI_SLOPE);
		free_ns += others * hit_ns * MULTI_SLOPE;
		break;
	case SHARING_EVENT: /* entry and return are two entries in the list */
		alloc_ns += return_ns + hit_ns * (EVENT_EXTRA + 2 * EVENT_SLOPE * others);
		free_ns += hit_ns * (EVENT_EXTRA + EVENT_SLOPE * others);
		break;
	case SHARING_ALL:
	case SHARING_AUTO:
		if (!in->has_session)
			alloc_ns += return_ns;
		break;
	}
	return (alloc_ns + free_ns) / 2;
}

static bool is_possible(const struct plan_input *in, enum sharing sharing)
{
	switch (sharing) {
	case SHARING_OWN:
		return true;
	case SHARING_EVENT:
		return in->has_event;
	case SHARING_ALL:
		return in->is_all_agreed;
	case SHARING_AUTO:
		break;
	}
	return false;
}

enum sharing plan_choose(const struct plan_input *in)
{
	enum sharing best = SHARING_OWN;

	if (in->wanted != SHARING_AUTO && is_possible(in, in->wanted))
		return in->wanted;
	/* No other sharing is as good. With agreement there is no need to wait until it matters:
	 * processes that begin later are then seen from their first moment on. */
	if (in->is_all_agreed)
		return SHARING_ALL;
	if (is_possible(in, in->now))
		best = in->now;
	for (enum sharing sharing = SHARING_OWN; sharing <= SHARING_EVENT; sharing++) {
		double margin = best == in->now ? BETTER : 1;

		if (is_possible(in, sharing) &&
		    plan_hit_ns(in, sharing) < margin * plan_hit_ns(in, best))
			best = sharing;
	}
	return best;
}

/* An allocation searches the processes of the entry and those of the return, a free only once. */
#define LISTS_PER_HIT 1.5
/* ns saved per second. Adding a process again takes about as long, once. */
#define FRONT_GAIN_NS 1e6

size_t plan_front(const struct plan_sharer *sharers, size_t cnt, double hit_ns)
{
	double step_ns = LISTS_PER_HIT * EVENT_SLOPE * (hit_ns > 0 ? hit_ns : HIT_NS);
	double best_gain_ns = FRONT_GAIN_NS;
	size_t best = cnt;

	for (size_t i = 0; i < cnt; i++) {
		double gain_ns = 0;

		for (size_t k = 0; k < cnt; k++)
			if (sharers[k].turn > sharers[i].turn)
				gain_ns +=
					(sharers[i].hits_per_s - sharers[k].hits_per_s) * step_ns;
		if (gain_ns > best_gain_ns) {
			best_gain_ns = gain_ns;
			best = i;
		}
	}
	return best;
}

static const char *const names[] = {
	[SHARING_OWN] = "own",
	[SHARING_EVENT] = "event",
	[SHARING_ALL] = "all",
	[SHARING_AUTO] = "auto",
};

const char *sharing_name(enum sharing sharing)
{
	return names[sharing];
}
