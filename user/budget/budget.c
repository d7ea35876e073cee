/* SPDX-License-Identifier: MIT */
/*
 * budget.c - see budget.h.
 *
 * The overhead of a process is the share of its CPU time that goes into probes: hits times what a
 * hit costs on this machine, and the measured time of the stacks of sampled allocations. When it is
 * above the limit something is given up, in this order:
 *
 *   coarse    a coarser sampling rate, if it is the samples that cost
 *   allocs    the probes on frees, about half of the hits: without them in-use is not known
 *   windows   probes are in for a random part of the time only (windows.c)
 *   out       nothing is left that fits
 *
 * Down. What is measured says what each step would cost, with a, f and s the cost of allocation hits,
 * free hits and samples per second of the program's own work:
 *   full a+f+s    coarse a+f+s/4^k    allocs a+s/4^k    windows the duty times that
 * so the first step that is predicted to need at most AIM of the limit is taken directly. It is
 * taken when the overhead was above the limit over a while (EVIDENCE_NS), not for short bursts.
 *
 * Kill switch. A process that is far above the limit (KILL_FACTOR) in two intervals in a row loses
 * its probes at once: it goes straight to windows, whose first begins with the probes out. With intervals
 * of 100 ms they are out after about 0.2 s.
 *
 * Up again: one step at a time, when the prediction for it is below ROOM of the limit for a waiting time.
 * The wait doubles when the step had to be taken back soon after, so that a process whose load
 * swings around the limit is not attached to and detached from all the time.
 *
 * In windows the duty follows what the last periods cost in proportion to theirs. Few allocations are seen
 * in them, and it is their hits that cost: so many more of these are sampled, until that costs
 * SAMPLES_COST of what the hits do. With the rate of the other steps there would be a handful of samples
 * of small blocks in ten seconds, and chance would decide what the sums say.
 *
 * Costs below BUDGET_FLOOR of one CPU are nobody's concern, whatever share of a sleeping process they are: a
 * few thousand allocations a second, of programs that are mostly asleep and whose in-use somebody asked
 * for. Many such processes together are what the host's limit is for: while that is exceeded the floor
 * falls with the limits.
 */
#include "budget/budget.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "budget/windows.h"
#include "heaptap/abi.h"

#define AIM 0.7
#define AIM_IN_WINDOWS 0.6 /* putting probes in and out costs as well */
#define ROOM 0.6
#define KILL_FACTOR 4
#define KILL_SHARE_MIN 0.2 /* less hurts nobody within half a second */
#define EVIDENCE_NS (500 * NS_PER_MS)
#define MEMORY_NS (1 * NS_PER_S) /* of what decides */
#define SHOWN_MEMORY_NS (2 * NS_PER_S)
#define UP_WAIT_NS (5 * NS_PER_S)
#define UP_WAIT_MAX_NS (300 * NS_PER_S)
#define SOON_NS (30 * NS_PER_S) /* a step up that holds this long was right */
#define OUT_WAIT_NS (30 * NS_PER_S)
#define HOST_FACTOR_MIN 0.1
#define PERIODS 4 /* of windows, over which they are judged */
#define PERIODS_KEEP 0.75
#define STACK_NS 10000.0 /* of a sample, as long as there was none */
#define SAMPLES_COST 0.5 /* in windows, of what the hits cost */
#define SAMPLES_MAX 0.125 /* of allocations */

/* Costs and CPU time with exponential forgetting, in ns. */
struct flow {
	double cpu, wall;
	double alloc, free, sample; /* what probes took of cpu */
};

struct budget {
	struct budget_options opts;
	struct budget_plan plan;
	struct budget_reading start, last;
	struct flow recent; /* since the last step: decides */
	struct flow shown;
	struct flow window; /* while probes were in, in BUDGET_WINDOWS */
	struct {
		double cost, cpu; /* the latter times the duty */
	} periods;
	uint64_t window_rate_bytes; /* 0: as anywhere */
	double free_per_alloc; /* cost of frees when they were last seen */
	double overall_cost;
	double share_at_step;
	double floor; /* of one CPU */
	uint64_t step_ns, up_ns; /* of the last step, and of the last one up */
	uint64_t room_ns; /* since when there is room for the next step up; 0: there is none */
	uint64_t up_wait_ns;
	uint32_t far_cnt; /* intervals in a row far above the limit */
	uint32_t window_cnt, judged_cnt; /* since the last step */
	bool was_killed;
};

const char *budget_step_name(enum budget_step step)
{
	static const char *const names[BUDGET_STEP_CNT] = { "full", "coarse", "allocs", "windows",
							    "out" };

	return names[step];
}

void budget_reading_set_hits(struct budget_reading *r, const struct ht_hits *hits)
{
	r->alloc_cnt = hits->alloc_cnt;
	r->free_cnt = hits->free_cnt;
	r->return_cnt = hits->return_cnt;
	r->stepped_cnt = hits->stepped_cnt;
	r->sample_cnt = hits->sample_cnt;
	r->stack_ns = hits->stack_ns;
}

struct budget_reading budget_between(const struct budget_reading *from,
				     const struct budget_reading *to)
{
	return (struct budget_reading){
		.time_ns = to->time_ns - from->time_ns,
		/* A clock of a process that ends may go back. */
		.cpu_ns = to->cpu_ns > from->cpu_ns ? to->cpu_ns - from->cpu_ns : 0,
		.alloc_cnt = to->alloc_cnt - from->alloc_cnt,
		.free_cnt = to->free_cnt - from->free_cnt,
		.return_cnt = to->return_cnt - from->return_cnt,
		.stepped_cnt = to->stepped_cnt - from->stepped_cnt,
		.sample_cnt = to->sample_cnt - from->sample_cnt,
		.stack_ns = to->stack_ns - from->stack_ns,
	};
}

static double sample_cost(const struct budget_costs *costs, const struct budget_reading *d)
{
	return (double)d->return_cnt * costs->return_ns + (double)d->stack_ns;
}

static double hit_cost(const struct budget_costs *costs, const struct budget_reading *d)
{
	double hits = (double)d->alloc_cnt + (double)d->free_cnt;
	double stepped = fmin((double)d->stepped_cnt, hits);

	return (hits - stepped) * costs->emulated_ns + stepped * costs->stepped_ns;
}

double budget_cost_ns(const struct budget_costs *costs, const struct budget_reading *diff)
{
	return hit_cost(costs, diff) + sample_cost(costs, diff);
}

/* Estimates: the probes cannot have taken more than there was. */
static double flow_cost(const struct flow *f)
{
	return fmin(f->alloc + f->free + f->sample, f->cpu);
}

static double flow_share(const struct flow *f)
{
	return f->cpu > 0 ? flow_cost(f) / f->cpu : 0;
}

static void flow_add(struct flow *f, const struct budget_costs *costs,
		     const struct budget_reading *d, double memory_ns)
{
	double keep = exp(-(double)d->time_ns / memory_ns), hits = hit_cost(costs, d);
	double all = (double)d->alloc_cnt + (double)d->free_cnt;

	f->cpu = f->cpu * keep + (double)d->cpu_ns;
	f->wall = f->wall * keep + (double)d->time_ns;
	f->alloc *= keep;
	f->free *= keep;
	if (all > 0) {
		f->alloc += hits * (double)d->alloc_cnt / all;
		f->free += hits * (double)d->free_cnt / all;
	}
	f->sample = f->sample * keep + sample_cost(costs, d);
}

uint64_t budget_rate_bytes(uint64_t rate_bytes, uint32_t coarse)
{
	const uint64_t least = 16 << 10;

	if (!coarse)
		return rate_bytes;
	if (coarse > BUDGET_COARSE_CAP)
		coarse = BUDGET_COARSE_CAP;
	return (rate_bytes < least ? least : rate_bytes) << 2 * coarse;
}

int budget_new(const struct budget_options *opts, const struct budget_reading *start,
	       struct budget **ret)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->opts = *opts;
	b->start = b->last = *start;
	b->step_ns = start->time_ns;
	b->free_per_alloc = 1;
	b->up_wait_ns = UP_WAIT_NS;
	*ret = b;
	return 0;
}

void budget_free(struct budget *b)
{
	free(b);
}

const struct budget_plan *budget_plan(const struct budget *b)
{
	return &b->plan;
}

double budget_share(const struct budget *b)
{
	return flow_share(&b->shown);
}

double budget_share_overall(const struct budget *b)
{
	double cpu = (double)(b->last.cpu_ns - b->start.cpu_ns);

	return cpu > 0 ? fmin(b->overall_cost / cpu, 1) : 0;
}

double budget_share_at_step(const struct budget *b)
{
	return b->share_at_step;
}

bool budget_was_killed(const struct budget *b)
{
	return b->was_killed;
}

/* Share of the CPU time that a plan would take, from the costs per CPU time of the program's own. */
static double predict(const struct budget *b, const struct flow *f, const struct budget_plan *plan)
{
	double own = fmax(f->cpu - flow_cost(f), 0.02 * f->cpu), cost = f->alloc;
	double from = (double)budget_rate_bytes(b->opts.rate_bytes, b->plan.coarse);
	double to = (double)budget_rate_bytes(b->opts.rate_bytes, plan->coarse);

	if (f == &b->window && b->window_rate_bytes)
		from = (double)b->window_rate_bytes;
	if (f->cpu <= 0)
		return 0;
	/* With small blocks, most of all programs'; with large ones a coarser rate changes less. */
	cost += f->sample * fmax(from, 1) / fmax(to, 1);
	if (plan->step < BUDGET_ALLOCS)
		cost += b->plan.step < BUDGET_ALLOCS ? f->free : f->alloc * b->free_per_alloc;
	return cost / (own + cost);
}

/* The rate from which on it is not the samples that cost. */
static uint32_t useful_coarse(const struct budget *b, const struct flow *f)
{
	double from = (double)budget_rate_bytes(b->opts.rate_bytes, b->plan.coarse);
	uint32_t coarse = b->plan.coarse;

	while (coarse < BUDGET_COARSE_CAP &&
	       f->sample * from / (double)budget_rate_bytes(b->opts.rate_bytes, coarse) >
		       (f->alloc + f->free) / 4)
		coarse++;
	return coarse;
}

static double clamp(double x, double low, double high)
{
	return fmin(fmax(x, low), high);
}

/* The first step that is predicted to fit. */
static struct budget_plan choose(const struct budget *b, const struct flow *f, double limit)
{
	uint32_t useful = useful_coarse(b, f);
	struct budget_plan plan = b->plan;
	double share;

	for (plan.coarse = b->plan.coarse; plan.step < BUDGET_ALLOCS && plan.coarse <= useful;
	     plan.coarse++) {
		plan.step = plan.coarse ? BUDGET_COARSE : BUDGET_FULL;
		if (predict(b, f, &plan) <= AIM * limit)
			return plan;
	}
	plan.coarse = useful;
	plan.step = BUDGET_ALLOCS;
	share = predict(b, f, &plan);
	if (b->plan.step < BUDGET_ALLOCS && share <= AIM * limit)
		return plan;
	plan.step = BUDGET_WINDOWS;
	plan.duty = clamp(AIM_IN_WINDOWS * limit / fmax(share, limit), BUDGET_DUTY_MIN,
			  BUDGET_DUTY_MAX);
	return plan;
}

static bool take_step(struct budget *b, const struct budget_plan *plan, double share)
{
	bool is_up = plan->step < b->plan.step ||
		     (plan->step == b->plan.step && plan->coarse < b->plan.coarse);
	uint64_t now = b->last.time_ns;

	if (is_up) {
		b->up_ns = now;
	} else if (b->up_ns && now - b->up_ns < SOON_NS) {
		b->up_wait_ns =
			b->up_wait_ns * 2 < UP_WAIT_MAX_NS ? b->up_wait_ns * 2 : UP_WAIT_MAX_NS;
	} else {
		b->up_wait_ns = UP_WAIT_NS;
	}
	if (b->plan.step < BUDGET_ALLOCS && b->recent.alloc > 0)
		b->free_per_alloc = b->recent.free / b->recent.alloc;
	b->plan = *plan;
	b->share_at_step = share;
	b->step_ns = now;
	b->room_ns = 0;
	b->far_cnt = 0;
	b->window_cnt = b->judged_cnt = 0;
	b->was_killed = false;
	b->recent = b->window = (struct flow){ 0 };
	b->periods.cost = b->periods.cpu = 0;
	return true;
}

/* The next step up: one thing back. */
static struct budget_plan next_up(const struct budget_plan *now, bool has_no_windows)
{
	struct budget_plan plan = *now;

	switch (now->step) {
	case BUDGET_OUT:
		plan.step = has_no_windows ? BUDGET_ALLOCS : BUDGET_WINDOWS;
		plan.duty = BUDGET_DUTY_MIN;
		break;
	case BUDGET_WINDOWS:
		plan.step = BUDGET_ALLOCS;
		break;
	case BUDGET_ALLOCS:
		plan.step = plan.coarse ? BUDGET_COARSE : BUDGET_FULL;
		break;
	case BUDGET_COARSE:
		plan.coarse--;
		plan.step = plan.coarse ? BUDGET_COARSE : BUDGET_FULL;
		break;
	case BUDGET_FULL:
		break;
	}
	return plan;
}

static bool try_up(struct budget *b, double limit)
{
	const struct flow *f = b->plan.step == BUDGET_WINDOWS ? &b->window : &b->recent;
	struct budget_plan up = next_up(&b->plan, b->opts.has_no_windows);
	uint64_t now = b->last.time_ns;
	double share;

	if (b->plan.step == BUDGET_FULL)
		return false;
	if (b->plan.step == BUDGET_OUT) {
		if (now - b->step_ns < fmax(b->up_wait_ns, OUT_WAIT_NS))
			return false;
		return take_step(b, &up, 0);
	}
	if (b->plan.step == BUDGET_WINDOWS && b->window_cnt < PERIODS)
		return false;
	share = predict(b, f, &up);
	if (share > ROOM * limit && flow_cost(f) > b->floor * f->wall) {
		b->room_ns = 0;
		return false;
	}
	if (!b->room_ns)
		b->room_ns = now;
	return now - b->room_ns >= b->up_wait_ns && take_step(b, &up, share);
}

/* Windows: the duty follows what periods of it cost. */
static bool adjust_duty(struct budget *b, double limit)
{
	double per_duty = b->periods.cpu > 0 ? b->periods.cost / b->periods.cpu : 0;

	if (!b->window_cnt || b->window_cnt == b->judged_cnt)
		return false;
	b->judged_cnt = b->window_cnt;
	if (b->window_cnt >= PERIODS && per_duty * BUDGET_DUTY_MIN > limit) {
		struct budget_plan out = b->plan;

		out.step = BUDGET_OUT;
		return take_step(b, &out, per_duty * BUDGET_DUTY_MIN);
	}
	/* Not much more at once: a program may have done nothing for a while. */
	b->plan.duty = clamp(AIM_IN_WINDOWS * limit / fmax(per_duty, 1e-9), 0, 1.5 * b->plan.duty);
	b->plan.duty = clamp(b->plan.duty, BUDGET_DUTY_MIN, BUDGET_DUTY_MAX);
	return false;
}

static bool is_far(const struct budget *b, const struct budget_reading *d, double limit)
{
	double cost = budget_cost_ns(b->opts.costs, d), cpu = (double)d->cpu_ns;

	return cost > b->floor * (double)d->time_ns &&
	       cost > fmax(KILL_FACTOR * limit, KILL_SHARE_MIN) * cpu;
}

/* Over the limit: take a step, or two at once. */
static bool try_down(struct budget *b, const struct budget_reading *d, double limit)
{
	const struct flow *f = &b->recent;
	double share = flow_share(f);
	struct budget_plan plan;
	bool is_killed;

	if (b->plan.step >= BUDGET_WINDOWS)
		return false;
	b->far_cnt = is_far(b, d, limit) ? b->far_cnt + 1 : 0;
	is_killed = b->far_cnt >= 2;
	if (!is_killed && (b->last.time_ns - b->step_ns < EVIDENCE_NS || share <= limit ||
			   flow_cost(f) <= b->floor * f->wall))
		return false;
	plan = choose(b, f, limit);
	if (is_killed && plan.step < BUDGET_WINDOWS) {
		plan.step = BUDGET_WINDOWS;
		plan.duty = BUDGET_DUTY_MAX;
	}
	if (plan.step == BUDGET_WINDOWS && b->opts.has_no_windows)
		plan.step = BUDGET_OUT;
	take_step(b, &plan, share);
	b->was_killed = is_killed;
	return true;
}

/* Of the overhead that is shown: no single window is to be seen in it. */
static double shown_memory_ns(const struct budget *b)
{
	if (b->plan.step != BUDGET_WINDOWS)
		return SHOWN_MEMORY_NS;
	return fmax(PERIODS * (double)windows_period_ns(b->plan.duty), SHOWN_MEMORY_NS);
}

bool budget_update(struct budget *b, const struct budget_reading *now, double factor)
{
	struct budget_reading d = budget_between(&b->last, now);
	double limit = b->opts.max_share * factor;
	bool has_changed;

	if (!d.time_ns)
		return false;
	b->last = *now;
	b->floor = BUDGET_FLOOR * factor;
	b->overall_cost += fmin(budget_cost_ns(b->opts.costs, &d), (double)d.cpu_ns);
	flow_add(&b->shown, b->opts.costs, &d, shown_memory_ns(b));
	flow_add(&b->recent, b->opts.costs, &d, MEMORY_NS);
	if (b->opts.max_share <= 0) /* steps are of the time when there was a limit */
		return try_up(b, INFINITY);
	has_changed = try_down(b, &d, limit);
	if (!has_changed && b->plan.step == BUDGET_WINDOWS)
		has_changed = adjust_duty(b, limit);
	return has_changed || try_up(b, limit);
}

void budget_set_limit(struct budget *b, double max_share)
{
	bool is_wider = max_share <= 0 || (b->opts.max_share > 0 && max_share > b->opts.max_share);

	b->opts.max_share = max_share;
	/* How long a step up has not lasted says nothing of other limits. */
	if (is_wider)
		b->up_wait_ns = UP_WAIT_NS;
	b->room_ns = 0;
}

void budget_saw_window(struct budget *b, const struct budget_reading *in,
		       const struct budget_reading *all)
{
	/* Also while they come and go: the shorter a window, the more of its cost is that. */
	double cost = fmin(budget_cost_ns(b->opts.costs, all), (double)all->cpu_ns);

	if (b->plan.step != BUDGET_WINDOWS)
		return;
	b->window_cnt++;
	flow_add(&b->window, b->opts.costs, in, PERIODS * (double)in->time_ns);
	b->periods.cost = b->periods.cost * PERIODS_KEEP + cost;
	b->periods.cpu = b->periods.cpu * PERIODS_KEEP + (double)all->cpu_ns * b->plan.duty;
}

void budget_set_window_rate(struct budget *b, uint64_t rate_bytes)
{
	b->window_rate_bytes = rate_bytes;
}

uint32_t budget_fine(const struct budget_costs *costs, const struct budget_reading *seen,
		     double sampled_bytes, uint64_t rate_bytes)
{
	double stack_ns = STACK_NS, mean_bytes, part;
	uint32_t fine = 0;

	if (!seen->alloc_cnt)
		return 0;
	if (seen->sample_cnt)
		stack_ns = sample_cost(costs, seen) / (double)seen->sample_cnt;
	/* Not one sample so far: there could have been one. */
	mean_bytes = fmax(sampled_bytes, (double)rate_bytes) / (double)seen->alloc_cnt;
	part = fmin(SAMPLES_COST * costs->emulated_ns / stack_ns, SAMPLES_MAX);
	while (fine < BUDGET_FINE_CAP && (double)(rate_bytes >> (fine + 1)) >= mean_bytes / part)
		fine++;
	return fine;
}

double budget_host_factor(double factor, double cost_ns, double host_cpu_ns, double max_share)
{
	double share = host_cpu_ns > 0 ? cost_ns / host_cpu_ns : 0;

	if (max_share <= 0)
		return 1;
	if (share > max_share)
		return fmax(factor * fmax(AIM * max_share / share, 0.5), HOST_FACTOR_MIN);
	if (share < ROOM * max_share)
		return fmin(factor * 1.1, 1);
	return factor;
}
