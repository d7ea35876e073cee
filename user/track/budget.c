/* SPDX-License-Identifier: MIT */
/*
 * budget.c - decides how much of a process is recorded, so that its probes stay within the overhead limit (see
 * budget.h).
 *
 * The overhead is the share of a process's CPU time that goes into probes: hits times the cost of a hit on this
 * machine, plus the measured time for the stacks of samples. The limit is a share of the CPU time of the process, or
 * of one CPU if that is more: a process that mostly sleeps is not harmed. Above the limit a step is taken:
 *
 *	coarse	a coarser sampling rate, if the samples are what costs
 *	allocs	no probes on frees, which are about half of the hits: heap in use becomes unknown
 *	off	no probes; retried from time to time
 *
 * Down. Measurements predict the cost of each step, with a, f and s the cost of allocation hits, free hits and samples
 * per time of the program's own work. The first step that is predicted to keep the limit is taken:
 *
 *	full a+f+s	coarse a+f+s/4^k	allocs a+s or a+s/4^k
 *
 * Lost heap in use does not come back, so one burst is not enough. A step needs LOOK_CPU_NS of CPU time or LOOK_NS of
 * the clock, and a mean above DOWN times the limit, both recently (RECENT_NS), so that a burst that is over does not
 * count, and for longer (MEAN_NS), so that a burst counts by its share. It also needs moments above the limit at least
 * SPREAD_NS apart, the last of them now. With DOWN = 1.1 the overhead seen from outside stays below 1.5 times the
 * limit (E2E_LOADS=20); with 1.35 it does not.
 *
 * Up. Steps are undone, also directly, when the predicted cost stays below UP of the limit for a waiting time. The
 * wait doubles if the step had to be taken again soon after, so that probes are not attached and detached all the
 * time.
 *
 * Kill switch. All probes go at once if they take more than BUDGET_KILL_SHARE of the CPU time, and more than the
 * limit, in BUDGET_KILL_CNT intervals in a row, in each of which the process used about a third of a CPU: after 0.4 s.
 * A share of 0.8 is a program slowed down to a fifth. Programs that only allocate and free small blocks reach it, and
 * so do programs that grow: 0.93 for blocks of 64 bytes that are written to (64 MiB in 0.4 s), 0.83 for 256 bytes,
 * 0.48 for 1 KiB. Heap in use matters most just before the OOM killer comes. So an interval in which less than half of
 * the bytes are freed does not count for the kill switch.
 *
 * Off. A trial records allocations for TRIAL_CPU_NS of CPU time. The waits between trials are so long that trials take
 * TRIAL_PART of the limit on average, and double after each failed trial.
 */
#include "track/budget.h"

#include "base/clock.h"
#include "heaptap/abi.h"

#define LOOK_CPU_NS (1 * NS_PER_S)
#define LOOK_LEAST_NS (1 * NS_PER_S) /* of the clock, however much CPU time the threads use */
#define LOOK_NS (3 * NS_PER_S)
#define DOWN 1.1
#define UP 0.8
#define RECENT_NS (3 * NS_PER_S)
#define MEAN_NS (10 * NS_PER_S)
#define SHOWN_NS (2 * NS_PER_S)
#define SPREAD_NS (1 * NS_PER_S)
#define SPREAD_GAP_NS (30 * NS_PER_S) /* moments further apart do not belong together */
#define UP_WAIT_NS (5 * NS_PER_S)
#define UP_WAIT_MAX_NS (300 * NS_PER_S)
#define SOON_NS (30 * NS_PER_S) /* a step up that holds this long was right */
#define KILL_BUSY 0.3 /* of one CPU */
#define TRIAL_CPU_NS (300 * NS_PER_MS)
#define TRIAL_NS (3 * NS_PER_S)
#define TRIAL_COST_NS (400 * NS_PER_MS) /* CPU time until the probes are out again */
#define TRIAL_PART (1 / 3.0)
#define MOMENT_CPU_NS (200 * NS_PER_MS)
#define HOST_AIM 0.7
#define HOST_ROOM 0.6
#define HOST_FACTOR_MIN 0.1

/* Costs and CPU time, in ns, with exponential forgetting. */
struct flow {
	double cpu, wall;
	double alloc, free, sample; /* parts of cpu that probes took */
};

/* The cost of a plan. */
struct need {
	double cost, cpu, wall;
};

struct budget {
	struct budget_options opts;
	struct recording_limit limit; /* in force now */
	struct budget_plan plan;
	bool is_held;
	struct budget_verdict verdict;
	struct budget_reading start, last, step; /* step: when the plan took effect */
	struct flow recent, mean; /* since the plan took effect */
	struct flow far; /* intervals in a row that count for the kill switch */
	uint32_t far_cnt;
	/* First and last moment above the limit since the step; 0: none */
	uint64_t over_first_ns, over_last_ns;
	struct flow shown;
	/* Cost of frees relative to allocations, when frees were last seen */
	double free_per_alloc;
	double overall_cost;
	double settled_cost; /* overall_cost at settled_cpu_ns; all 0: not yet */
	uint64_t settled_cpu_ns, settled_ns;
	uint64_t up_ns; /* time of the last step up; 0: none */
	uint64_t room_ns; /* since when a step up has room; 0: it has none */
	uint64_t up_wait_ns;
	uint64_t off_wait_ns; /* wait of the last BUDGET_OFF */
	uint64_t trial_ns; /* BUDGET_OFF: time of the next trial */
};

const char *budget_step_name(enum budget_step step)
{
	static const char *const names[BUDGET_STEP_CNT] = { "full", "coarse", "allocs", "off" };

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
		/* The clock of an ending process may go back. */
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

uint64_t budget_rate_bytes(uint64_t rate_bytes, uint32_t coarse)
{
	const uint64_t least = 16 << 10;

	if (!coarse)
		return rate_bytes;
	if (coarse > BUDGET_COARSE_CAP)
		coarse = BUDGET_COARSE_CAP;
	return (rate_bytes < least ? least : rate_bytes) << 2 * coarse;
}

/*
 * Limits.
 */

bool budget_has_limit(const struct recording_limit *limit)
{
	return limit->cpu_share > 0 || limit->one_cpu > 0;
}

double budget_allowed_ns(const struct recording_limit *limit, double cpu_ns, double wall_ns)
{
	if (!budget_has_limit(limit))
		return INFINITY;
	return fmax(limit->cpu_share * cpu_ns, limit->one_cpu * wall_ns);
}

static bool is_of_one_cpu(const struct recording_limit *limit, double cpu_ns, double wall_ns)
{
	return limit->one_cpu * wall_ns > limit->cpu_share * cpu_ns;
}

static bool fits(const struct budget *b, const struct need *n, double margin)
{
	return n->cost <= margin * budget_allowed_ns(&b->limit, n->cpu, n->wall);
}

/*
 * Flows.
 */

/* Costs are estimates: the probes cannot have taken more than all CPU time. */
static double flow_cost(const struct flow *f)
{
	return fmin(f->alloc + f->free + f->sample, f->cpu);
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

static struct need need_now(const struct flow *f)
{
	return (struct need){ flow_cost(f), f->cpu, f->wall };
}

/* Predict the cost of a plan, from costs per CPU time of the program's own work. */
static struct need need_of(const struct budget *b, const struct flow *f,
			   const struct budget_plan *plan)
{
	double own = fmax(f->cpu - flow_cost(f), 0.02 * f->cpu), cost = f->alloc;
	double from = (double)budget_rate_bytes(b->opts.rate_bytes, b->plan.coarse);
	double to = (double)budget_rate_bytes(b->opts.rate_bytes, plan->coarse);

	/* Holds for small blocks, which most programs have; with large ones a coarser rate changes
	 * less. */
	cost += f->sample * fmax(from, 1) / fmax(to, 1);
	if (plan->step < BUDGET_ALLOCS)
		cost += b->plan.step < BUDGET_ALLOCS ? f->free : f->alloc * b->free_per_alloc;
	return (struct need){ cost, own + cost, f->wall };
}

static struct budget_price price(const struct need *n)
{
	return (struct budget_price){ n->cpu > 0 ? n->cost / n->cpu : 0,
				      n->wall > 0 ? n->cost / n->wall : 0 };
}

/* The number of coarser steps after which samples are no longer what costs. */
static uint32_t useful_coarse(const struct budget *b, const struct flow *f)
{
	double from = (double)budget_rate_bytes(b->opts.rate_bytes, b->plan.coarse);
	uint32_t coarse = 0;

	while (coarse < BUDGET_COARSE_CAP &&
	       f->sample * from / (double)budget_rate_bytes(b->opts.rate_bytes, coarse) >
		       (f->alloc + f->free) / 4)
		coarse++;
	return coarse;
}

/*
 * Plans.
 */

/* The first plan that is predicted to fit. */
static struct budget_plan choose(const struct budget *b, const struct flow *f, double margin)
{
	uint32_t useful = useful_coarse(b, f);
	struct budget_plan plan = { 0 };
	struct need n;

	for (int is_alloc_only = 0; is_alloc_only <= 1; is_alloc_only++) {
		for (plan.coarse = 0; plan.coarse <= useful; plan.coarse++) {
			plan.step = is_alloc_only ? BUDGET_ALLOCS :
				    plan.coarse	  ? BUDGET_COARSE :
						    BUDGET_FULL;
			n = need_of(b, f, &plan);
			if (fits(b, &n, margin))
				return plan;
		}
	}
	return (struct budget_plan){ BUDGET_OFF, useful, false };
}

static bool is_above(const struct budget_plan *a, const struct budget_plan *b)
{
	return a->step < b->step || (a->step == b->step && a->coarse < b->coarse);
}

static void begin_step(struct budget *b)
{
	b->step = b->last;
	b->recent = b->mean = b->far = (struct flow){ 0 };
	b->far_cnt = 0;
	b->room_ns = 0;
	b->over_first_ns = b->over_last_ns = 0;
}

/* Expected cost of a trial, for a process that uses `cpu` of a CPU. */
static double trial_cost(double share, double cpu)
{
	return share * fmin(TRIAL_COST_NS, cpu * TRIAL_NS);
}

/* Wait until the next trial, from the cost of one. */
static uint64_t off_wait(const struct budget *b, const struct flow *f, const struct need *allocs)
{
	double cpu = f->wall > 0 ? f->cpu / f->wall : 0;
	double least = trial_cost(price(allocs).cpu_share, cpu) /
		       (TRIAL_PART * budget_allowed_ns(&b->limit, cpu, 1));
	double wait = fmax(fmin(2.0 * (double)b->off_wait_ns, UP_WAIT_MAX_NS), UP_WAIT_NS);

	return (uint64_t)fmin(fmax(wait, least), 1e18);
}

/* Note what is known now, for the user, and for the time when recording is off. */
static void judge(struct budget *b, const struct flow *f)
{
	const struct budget_plan full = { BUDGET_FULL, 0, false };
	const struct budget_plan allocs = { BUDGET_ALLOCS, useful_coarse(b, f), false };
	const struct need now = need_now(f), n_full = need_of(b, f, &full),
			  n_allocs = need_of(b, f, &allocs);

	if (b->plan.step == BUDGET_OFF)
		return; /* nothing new is known */
	b->verdict = (struct budget_verdict){
		.before = price(&now),
		.full = b->plan.step == BUDGET_FULL ? price(&now) : price(&n_full),
		.allocs = price(&n_allocs),
		.limit = b->limit,
		.given = b->opts.limit,
		.is_of_one_cpu = is_of_one_cpu(&b->limit, f->cpu, f->wall),
		.retry_ns = off_wait(b, f, &n_allocs),
	};
}

static bool take_step(struct budget *b, const struct flow *f, const struct budget_plan *plan)
{
	uint64_t now = b->last.time_ns;
	bool was_up_soon = b->up_ns && now - b->up_ns < SOON_NS;

	if (!b->plan.is_trial && !was_up_soon)
		b->off_wait_ns = 0;
	judge(b, f);
	if (!b->plan.is_trial && is_above(&b->plan, plan)) {
		b->up_wait_ns = !was_up_soon			   ? UP_WAIT_NS :
				b->up_wait_ns * 2 < UP_WAIT_MAX_NS ? b->up_wait_ns * 2 :
								     UP_WAIT_MAX_NS;
	} else if (plan->step < BUDGET_OFF && !plan->is_trial) {
		b->up_ns = now;
	}
	if (b->plan.step < BUDGET_ALLOCS && f->alloc > 0)
		b->free_per_alloc = f->free / f->alloc;
	if (plan->step == BUDGET_OFF) {
		b->off_wait_ns = b->verdict.retry_ns;
		b->trial_ns = now + b->off_wait_ns;
	}
	b->plan = *plan;
	begin_step(b);
	return true;
}

/*
 * Verdicts.
 */

static bool has_looked(const struct budget *b)
{
	const struct budget_reading d = budget_between(&b->step, &b->last);

	return d.time_ns >= LOOK_NS || (d.time_ns >= LOOK_LEAST_NS && d.cpu_ns >= LOOK_CPU_NS);
}

static bool is_growing(const struct budget *b, const struct budget_reading *d)
{
	return b->plan.step < BUDGET_ALLOCS && d->free_cnt < d->alloc_cnt / 2;
}

static void note_interval(struct budget *b, const struct budget_reading *d)
{
	double cost = budget_cost_ns(b->opts.costs, d), cpu = (double)d->cpu_ns;
	double wall = (double)d->time_ns;

	/* If the mean is above the limit, some intervals are. */
	if (cost > b->limit.cpu_share * cpu) {
		if (!b->over_last_ns || b->last.time_ns - b->over_last_ns > SPREAD_GAP_NS)
			b->over_first_ns = b->last.time_ns - d->time_ns;
		b->over_last_ns = b->last.time_ns;
	}
	if (cost > BUDGET_KILL_SHARE * cpu && cpu >= KILL_BUSY * wall && !is_growing(b, d) &&
	    cost > DOWN * budget_allowed_ns(&b->limit, cpu, wall)) {
		flow_add(&b->far, b->opts.costs, d, MEAN_NS);
		b->far_cnt++;
	} else {
		b->far = (struct flow){ 0 };
		b->far_cnt = 0;
	}
}

static bool kill(struct budget *b)
{
	const struct flow far = b->far;
	struct budget_plan plan;

	if (b->far_cnt < BUDGET_KILL_CNT)
		return false;
	plan = choose(b, &far, 1);
	take_step(b, &far, &plan);
	b->verdict.is_kill = true;
	return true;
}

static bool try_down(struct budget *b)
{
	const struct flow recent = b->recent;
	const struct need late = need_now(&b->recent), mean = need_now(&b->mean);
	struct budget_plan plan;

	if (kill(b))
		return true;
	if (!has_looked(b) || fits(b, &late, DOWN) || fits(b, &mean, DOWN) ||
	    b->over_last_ns != b->last.time_ns || b->over_last_ns - b->over_first_ns < SPREAD_NS)
		return false;
	plan = choose(b, &recent, 1);
	return is_above(&b->plan, &plan) && take_step(b, &recent, &plan);
}

static bool try_up(struct budget *b)
{
	const struct flow recent = b->recent;
	struct budget_plan plan = choose(b, &recent, UP);
	struct need mean = need_of(b, &b->mean, &plan);

	if (!is_above(&plan, &b->plan) || !fits(b, &mean, UP)) {
		b->room_ns = 0;
		return false;
	}
	if (!b->room_ns)
		b->room_ns = b->last.time_ns;
	return b->last.time_ns - b->room_ns >= b->up_wait_ns && take_step(b, &recent, &plan);
}

static bool begin_trial(struct budget *b)
{
	const struct budget_plan trial = { BUDGET_ALLOCS, b->plan.coarse, true };
	const struct budget_reading d = budget_between(&b->step, &b->last);
	double share = fmin(b->verdict.allocs.cpu_share, 0.98);
	/* Its CPU use with the probes, if it goes on as it does without them. */
	double cpu = b->recent.cpu / fmax(b->recent.wall, 1) / (1 - share);

	/* It may use less CPU time than expected. */
	if (b->last.time_ns < b->trial_ns ||
	    trial_cost(share, cpu) >
		    budget_allowed_ns(&b->limit, (double)d.cpu_ns, (double)d.time_ns) / 2)
		return false;
	return take_step(b, &b->recent, &trial);
}

static bool end_trial(struct budget *b)
{
	const struct budget_reading d = budget_between(&b->step, &b->last);
	const struct flow seen = b->recent;
	struct budget_plan plan;

	if (d.time_ns < TRIAL_NS && d.cpu_ns < TRIAL_CPU_NS)
		return false;
	plan = choose(b, &seen, 1);
	/* Frees come back by the usual steps: a moment is too short to judge them. */
	if (plan.step < BUDGET_ALLOCS)
		plan = (struct budget_plan){ BUDGET_ALLOCS, 0, false };
	return take_step(b, &seen, &plan);
}

bool budget_costs(const struct budget *b, double share)
{
	return b->recent.cpu >= MOMENT_CPU_NS && flow_cost(&b->recent) > share * b->recent.cpu;
}

void budget_restart(struct budget *b)
{
	b->plan = (struct budget_plan){ BUDGET_FULL, 0, false };
	b->up_ns = b->off_wait_ns = 0;
	begin_step(b);
}

void budget_hold(struct budget *b, bool is_held)
{
	b->is_held = is_held;
}

const struct recording_limit *budget_limit(const struct budget *b)
{
	return &b->limit;
}

bool budget_update(struct budget *b, const struct budget_reading *now, double factor)
{
	struct budget_reading d = budget_between(&b->last, now);

	if (!d.time_ns)
		return false;
	b->limit.cpu_share = b->opts.limit.cpu_share * factor;
	b->limit.one_cpu = b->opts.limit.one_cpu * factor;
	budget_end(b, now);
	flow_add(&b->recent, b->opts.costs, &d, RECENT_NS);
	flow_add(&b->mean, b->opts.costs, &d, MEAN_NS);
	note_interval(b, &d);
	if (b->is_held && b->plan.step == BUDGET_FULL)
		return false;
	if (!budget_has_limit(&b->limit))
		return try_up(b); /* steps are left from the time when there was one */
	if (b->plan.step == BUDGET_OFF)
		return begin_trial(b);
	if (b->plan.is_trial)
		return end_trial(b);
	return try_down(b) || try_up(b);
}

void budget_end(struct budget *b, const struct budget_reading *now)
{
	struct budget_reading d = budget_between(&b->last, now);

	b->last = *now;
	b->overall_cost += fmin(budget_cost_ns(b->opts.costs, &d), (double)d.cpu_ns);
	flow_add(&b->shown, b->opts.costs, &d, SHOWN_NS);
	if (!b->settled_ns && now->time_ns - b->start.time_ns >= BUDGET_SETTLE_NS) {
		b->settled_cost = b->overall_cost;
		b->settled_cpu_ns = now->cpu_ns;
		b->settled_ns = now->time_ns;
	}
}

void budget_applied(struct budget *b, const struct budget_reading *now)
{
	budget_end(b, now);
	begin_step(b);
}

/*
 * The rest.
 */

int budget_new(const struct budget_options *opts, const struct budget_reading *start,
	       struct budget **ret)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->opts = *opts;
	b->limit = opts->limit;
	b->start = b->last = b->step = *start;
	b->free_per_alloc = 1;
	b->up_wait_ns = UP_WAIT_NS;
	*ret = b;
	return 0;
}

void budget_free(struct budget *b)
{
	free(b);
}

void budget_set_limit(struct budget *b, const struct recording_limit *limit)
{
	bool is_wider = !budget_has_limit(limit) || (budget_has_limit(&b->opts.limit) &&
						     limit->cpu_share >= b->opts.limit.cpu_share &&
						     limit->one_cpu >= b->opts.limit.one_cpu);

	b->opts.limit = *limit;
	/* A step up that did not last under other limits says nothing. */
	if (is_wider) {
		b->up_wait_ns = UP_WAIT_NS;
		b->trial_ns = b->last.time_ns + UP_WAIT_NS;
	}
	b->room_ns = 0;
}

void budget_set_rate(struct budget *b, uint64_t rate_bytes)
{
	b->opts.rate_bytes = rate_bytes; /* flows soon forget the old rate */
}

const struct budget_plan *budget_plan(const struct budget *b)
{
	return &b->plan;
}

const struct budget_verdict *budget_verdict(const struct budget *b)
{
	return &b->verdict;
}

struct recording_limit budget_limit_in_force(const struct budget *b)
{
	const struct budget_reading d = budget_between(&b->start, &b->last);
	bool is_one = is_of_one_cpu(&b->limit, (double)d.cpu_ns, (double)d.time_ns);

	if (b->plan.step != BUDGET_FULL)
		is_one = b->verdict.is_of_one_cpu;
	/* The limit may have changed since. */
	if (is_one && b->limit.one_cpu > 0)
		return (struct recording_limit){ .one_cpu = b->limit.one_cpu };
	return (struct recording_limit){ .cpu_share = b->limit.cpu_share };
}

struct budget_price budget_now(const struct budget *b)
{
	const struct need n = need_now(&b->shown);

	return price(&n);
}

static struct budget_price price_since(const struct budget *b, double cost, uint64_t cpu_ns,
				       uint64_t time_ns)
{
	const struct need n = { cost, (double)(b->last.cpu_ns - cpu_ns),
				(double)(b->last.time_ns - time_ns) };
	struct budget_price ret = price(&n);

	if (n.cpu <= 0)
		return BUDGET_PRICE_UNKNOWN;
	ret.cpu_share = fmin(ret.cpu_share, 1);
	return ret;
}

struct budget_price budget_overall(const struct budget *b)
{
	return price_since(b, b->overall_cost, b->start.cpu_ns, b->start.time_ns);
}

struct budget_price budget_settled(const struct budget *b)
{
	if (!b->settled_ns)
		return BUDGET_PRICE_UNKNOWN;
	return price_since(b, b->overall_cost - b->settled_cost, b->settled_cpu_ns, b->settled_ns);
}

struct budget_price budget_full(const struct budget *b)
{
	const struct budget_plan full = { BUDGET_FULL, 0, false };
	struct need n;

	if (b->plan.step == BUDGET_FULL)
		return BUDGET_PRICE_UNKNOWN;
	if (b->plan.step == BUDGET_OFF || b->plan.is_trial || !has_looked(b))
		return b->verdict.full;
	n = need_of(b, &b->recent, &full);
	return price(&n);
}

double budget_host_factor(double factor, double cost_ns, double host_cpu_ns, double max_share)
{
	double share = host_cpu_ns > 0 ? cost_ns / host_cpu_ns : 0;

	if (max_share <= 0)
		return 1;
	if (share > max_share)
		return fmax(factor * fmax(HOST_AIM * max_share / share, 0.5), HOST_FACTOR_MIN);
	if (share < HOST_ROOM * max_share)
		return fmin(factor * 1.1, 1);
	return factor;
}
