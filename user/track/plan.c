/* SPDX-License-Identifier: MIT */
/*
 * plan.c - see plan.h.
 *
 * All probes at one place of one file are in one list, and every hit in a process that has a
 * breakpoint there walks it all: with a link for each of K processes, K entries, of which one is
 * meant. And a session link that is for another process asks for the return all the same, so from
 * the second process on every allocation pays for its return. An event that processes share is one
 * entry with a list of processes that is quick to look through, but its return is always
 * probed. A link for all has no list, but its breakpoints are in every process.
 *
 * Measured, ns per hit of one process while others are tracked too (x86-64 VM, 6.18):
 *
 *   others at the same place           0     1    10    50   100   300
 *   session link each (allocations)  460   744  1331  3872  7017
 *   multi link each (frees)          451   506   783  1828  3209  8856
 *   shared event, entry              489   499   495   592   788  1720
 *   shared event, only the return    727   742   745   853  1049  1986
 *   one link for all                 460   460   460   460   460   460
 *
 * The processes of a shared event are looked through from the one that was added last, so what the
 * table says of them is for the one that was added first. The ones that hit most are kept in front:
 * adding a process once more, and taking it out at its old place, costs a fraction of a ms and
 * neither its own hits nor those of others notice.
 *
 * Links of its own for the one that hits most, while the others share the event, were measured, too
 * (bench_event_floor, "links of its own" and "shared, beside that"): it is let off the return, but its
 * hits look through all processes of the event in vain, and those of the others pass one more
 * consumer. What one gains the others lose, so a file has one sharing for all of its processes.
 *
 * The model is a straight line through each row, in units of what a hit and a return cost on the
 * machine at hand, for the trap and the list both grow with the kernel's slowness.
 */
#include "track/plan.h"

#include <errno.h>
#include <string.h>

/* Where nothing was measured: the table's machine. */
#define HIT_NS 455
#define RETURN_NS 245
/* Of a hit, for each other process. */
#define SESSION_SLOPE 0.140
#define MULTI_SLOPE 0.061
#define EVENT_SLOPE 0.0065
/* Of a hit: going through perf instead of through a link. */
#define EVENT_EXTRA 0.08
/* To move takes a while in which both are paid for. */
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
	case SHARING_EVENT: /* the entry and the return are two entries in the list */
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
	/* No other is as good, and who has agreed need not wait for it to matter: processes that
	 * begin later are seen from their first moment on. */
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

/* An allocation looks through the processes of the entry and those of the return, a free once. */
#define LISTS_PER_HIT 1.5
/* ns saved in each second. To add a process anew takes about as long, once. */
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
