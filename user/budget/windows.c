/* SPDX-License-Identifier: MIT */
/*
 * windows.c - see windows.h.
 *
 * Time is cut into periods. Each has one window in which the probes are in; it begins at a moment drawn
 * uniformly from the period, independent of all others (it may reach into the next period). A moment is
 * inside a window with the same chance for all of them:
 *   d = length of the window / length of the period
 * so an allocation that is sampled with p stands for 1 / (p d) allocations, and sums over windows are
 * unbiased whatever the program does when, also if it does it periodically (Horvitz and Thompson again:
 * see model/estimate.c). One window per period, not a coin per moment, because the overhead must not
 * swing: any few periods hold the same share of windows.
 *
 * A window is what lies between two exact moments, both while all its probes are in: allocations are
 * sampled from the one to the other only. Probes need as long as a window to come and go; what is hit
 * meanwhile is part of what they cost, and is counted, not sampled.
 *
 * Slowdown. That would be all if probes had no effect. They do, where windows are needed: while they are in,
 * a program that does nothing but allocate gets on many times slower, so less happens inside a window
 * than outside in the same time, by the factor `slowdown`: 1 for a program that waits for its work, and
 * 1/(1-s) for one that never waits, with s the share of the probes while they are in. A window that
 * saw n allocations in the time L of a period P, and in whose coming and going m were hit, stands for
 *   n + m + slowdown * n/L * (P - L - m L/n)
 * since m hits take the time m L/n. What a program gets done goes with the CPU time of its own, so
 *   slowdown = (own CPU time per time outside) / (own CPU time per time inside)
 * The own CPU time inside is what is left of all of it without hits * the cost of a hit: a small difference
 * of large numbers when s is near 1, so all depends on that cost. What was calibrated may be off by
 * COST_ERROR (other caches, another state of the machine). Where the slowdown is not known well enough
 * with it, an experiment is made: in every other window the probes on frees are put in as well, which do nothing but
 * cost. With h the calibrated cost of all hits per allocation, and c the CPU time per allocation,
 *   real cost / calibrated cost = (c_heavy - c_light) / (h_heavy - h_light)
 * whatever the program waits for and whether it is held up, since it takes the same CPU time of its own for an
 * allocation. How much windows of a kind differ says how good that is; it is averaged with what was
 * calibrated, by the inverse of the variances.
 *
 * The error of the cost makes an interval of slowdowns. When 1 is in it and the process has CPU time left in
 * windows, its extra CPU time is just what the probes take: they do not hold it up, and 1 is taken. (One that is held
 * up has none left: its CPU time does not rise.) The interval is told to the user: above WINDOWS_SURE the sums
 * are called uncertain, at WINDOWS_SLOWDOWN_BOUND, which ends the search, a lower bound.
 *
 * The ledger. A sample's weight is needed when it is taken, but what a window stands for is known later: how
 * long it was (a busy machine closes late), and the slowdown, from all windows. So it is noted what windows stood
 * for and what was given to them, and the next one makes up for the difference, by a factor of 2 at most. That
 * keeps the sums right, over all stacks; a stack that is in few windows may get some of what is others'.
 *
 * The variance of a row is larger than its samples alone would say: samples of a window come together. For all
 * of them windows_spread() has it.
 *
 * In-use is not estimated from windows at all: most blocks are freed while nobody looks. What was
 * outstanding is dropped when the free probes go out, and in-use begins anew when they come back.
 */
#include "budget/windows.h"

#include <math.h>

#include "base/clock.h"

#define WINDOW_NS (10 * NS_PER_MS)
#define PERIOD_MIN_NS (100 * NS_PER_MS)
#define KEEP 0.95 /* of the sums, per window */
#define LENGTH_KEEP 0.8
#define LENGTH_MAX 100
#define COST_ERROR 0.17 /* standard error of the calibrated cost of probes, relative */
#define COST_RATIO_MIN 1.3 /* of heavy to light windows, for the experiment to say something */
#define CPU_ERROR_MIN 0.01
#define INTERVAL 1.5 /* standard errors to both sides */
#define NARROW 1.25 /* high / low of an interval that needs no experiment */
#define BUSY 0.92 /* of a CPU: hardly any time left */
#define LEDGER_FACTOR 2

uint64_t windows_period_ns(double duty)
{
	double period = WINDOW_NS / duty;

	return period > PERIOD_MIN_NS ? (uint64_t)period : PERIOD_MIN_NS;
}

uint64_t windows_length_ns(double duty)
{
	return (uint64_t)((double)windows_period_ns(duty) * duty);
}

/* splitmix64 (Steele, Lea and Flood 2014): uniform in [0, 1). */
static double draw(struct windows *w)
{
	uint64_t z = w->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double clamp(double x, double low, double high)
{
	return fmin(fmax(x, low), high);
}

/*
 * Sums.
 */

static void stretch_add(struct windows_stretch *sum, const struct windows_stretch *more,
			double factor)
{
	sum->wall_ns += more->wall_ns * factor;
	sum->cpu_ns += more->cpu_ns * factor;
	sum->cost_ns += more->cost_ns * factor;
	sum->alloc_cnt += more->alloc_cnt * factor;
}

static void sums_add(struct windows_sums *sum, const struct windows_stretch *in)
{
	sum->cnt++;
	stretch_add(&sum->all, in, 1);
	sum->alloc_sq += in->alloc_cnt * in->alloc_cnt;
	sum->alloc_cpu += in->alloc_cnt * in->cpu_ns;
	sum->cpu_sq += in->cpu_ns * in->cpu_ns;
	sum->noise_sq += in->cpu_noise_ns * in->cpu_noise_ns;
}

static void forget(struct windows *w)
{
	struct windows_sums *s;

	for (s = w->in; s < w->in + WINDOWS_KIND_CNT; s++) {
		s->cnt *= KEEP;
		stretch_add(&s->all, &s->all, KEEP - 1);
		s->alloc_sq *= KEEP;
		s->alloc_cpu *= KEEP;
		s->cpu_sq *= KEEP;
		s->noise_sq *= KEEP;
		s->seen *= KEEP;
		s->unseen *= KEEP;
	}
	stretch_add(&w->out, &w->out, KEEP - 1);
	w->given *= KEEP;
}

/*
 * Slowdown.
 */

static const struct windows_slowdown unknown = { 1, 1, WINDOWS_SLOWDOWN_BOUND };

static double without(double cpu_ns, double cost_ns)
{
	return fmax(cpu_ns - cost_ns, cpu_ns / WINDOWS_SLOWDOWN_BOUND);
}

/* Standard error, squared, of the CPU time per allocation in windows of a kind: from how they differ. */
static double cpu_error_sq(const struct windows_sums *s)
{
	double each = s->all.cpu_ns / s->all.alloc_cnt;
	double sum = s->cpu_sq - 2 * each * s->alloc_cpu + each * each * s->alloc_sq;

	/* The fewer they are, the less is their difference known itself. */
	return fmax(sum, 0) / (s->all.alloc_cnt * s->all.alloc_cnt) * (s->cnt + 2) / (s->cnt - 1) +
	       pow(CPU_ERROR_MIN * each, 2);
}

/* The cost per allocation in heavy windows, relative to light ones. */
static double cost_ratio(const struct windows *w)
{
	const struct windows_stretch *light = &w->in[WINDOWS_LIGHT].all;
	const struct windows_stretch *heavy = &w->in[WINDOWS_HEAVY].all;

	if (light->alloc_cnt <= 0 || heavy->alloc_cnt <= 0 || light->cost_ns <= 0)
		return 2; /* not known yet: as many frees as allocations */
	return heavy->cost_ns / heavy->alloc_cnt / (light->cost_ns / light->alloc_cnt);
}

/* What the probes really cost, relative to what was calibrated, and its standard error. */
static double real_cost(const struct windows *w, double *ret_error)
{
	const struct windows_sums *light = &w->in[WINDOWS_LIGHT], *heavy = &w->in[WINDOWS_HEAVY];
	double more_ns, cost_ns, error_sq, weight, prior = 1 / (COST_ERROR * COST_ERROR);

	*ret_error = COST_ERROR;
	if (light->cnt < 1.8 || heavy->cnt < 1.8 || light->all.alloc_cnt <= 0 ||
	    heavy->all.alloc_cnt <= 0 || cost_ratio(w) < COST_RATIO_MIN)
		return 1;
	more_ns =
		heavy->all.cpu_ns / heavy->all.alloc_cnt - light->all.cpu_ns / light->all.alloc_cnt;
	cost_ns = heavy->all.cost_ns / heavy->all.alloc_cnt -
		  light->all.cost_ns / light->all.alloc_cnt;
	error_sq = (cpu_error_sq(light) + cpu_error_sq(heavy)) / (cost_ns * cost_ns);
	weight = 1 / error_sq;
	*ret_error = 1 / sqrt(prior + weight);
	return (prior + weight * more_ns / cost_ns) / (prior + weight);
}

/* of: windows of the kind that it is for. */
static struct windows_slowdown slowdown_of(const struct windows *w, const struct windows_sums *of)
{
	struct windows_stretch in = { 0 };
	double noise_sq = 0, slow[3], real, error;

	for (int i = 0; i < WINDOWS_KIND_CNT; i++) {
		stretch_add(&in, &w->in[i].all, 1);
		noise_sq += w->in[i].noise_sq;
	}
	if (in.cpu_ns <= 0 || of->all.cpu_ns <= 0 || of->all.alloc_cnt <= 0 || w->out.wall_ns <= 0)
		return unknown;
	real = real_cost(w, &error);
	for (int sign = -1; sign <= 1; sign++) {
		double cost = fmax(real + sign * INTERVAL * error, 0);
		double own_ns = in.cpu_ns - sign * sqrt(noise_sq) - cost * in.cost_ns;
		double per_ns = w->out.cpu_ns / w->out.wall_ns * in.alloc_cnt / own_ns;
		/* More cannot come from the probes: it is the program that does less at times. */
		double most = of->all.cpu_ns / without(of->all.cpu_ns, cost * of->all.cost_ns);

		slow[sign + 1] = most;
		if (own_ns > in.cpu_ns / WINDOWS_SLOWDOWN_BOUND)
			slow[sign + 1] =
				clamp(per_ns * of->all.wall_ns / of->all.alloc_cnt, 1, most);
	}
	if (slow[0] <= 1 && in.cpu_ns < BUSY * in.wall_ns)
		slow[1] = 1;
	return (struct windows_slowdown){ slow[0], slow[1], slow[2] };
}

struct windows_slowdown windows_slowdown(const struct windows *w, enum windows_kind kind)
{
	struct windows_slowdown ret;

	if (w->in[kind].cnt || !w->in[!kind].cnt)
		return slowdown_of(w, &w->in[kind]);
	/* Of the other kind only: half the probes, or twice as many. */
	ret = slowdown_of(w, &w->in[!kind]);
	if (kind == WINDOWS_LIGHT) {
		ret.low = sqrt(ret.low);
		ret.value = sqrt(ret.value);
	}
	return ret;
}

/*
 * Windows.
 */

static enum windows_kind next_kind(const struct windows *w)
{
	const struct windows_slowdown s = slowdown_of(w, &w->in[WINDOWS_LIGHT]);

	if (!w->cnt || w->kind == WINDOWS_HEAVY || s.high < NARROW * s.low ||
	    cost_ratio(w) < COST_RATIO_MIN)
		return WINDOWS_LIGHT;
	return WINDOWS_HEAVY;
}

static void plan(struct windows *w, uint64_t begin_ns, uint64_t more_ns)
{
	w->begin_ns = begin_ns;
	w->period_ns = windows_period_ns(w->duty) + more_ns;
	w->window_ns = windows_length_ns(w->duty);
	w->open_ns = begin_ns + (uint64_t)(draw(w) * (double)w->period_ns);
	w->kind = next_kind(w);
}

void windows_start(struct windows *w, uint64_t now_ns, double duty, uint64_t seed,
		   const struct windows_stretch *before)
{
	struct windows_stretch window = { 0 };

	*w = (struct windows){ .random = seed, .duty = duty, .length = 1 };
	/* It counts like one window: a program may begin with something else than it goes on with. */
	if (before->wall_ns > 0) {
		stretch_add(&window, before,
			    fmin((double)windows_length_ns(duty) / before->wall_ns, 1));
		sums_add(&w->in[WINDOWS_HEAVY], &window);
	}
	plan(w, now_ns, 0);
}

void windows_set_duty(struct windows *w, double duty)
{
	w->duty = duty;
}

/* What windows stood for and was not given to them. */
static double owed(const struct windows *w)
{
	double sum = -w->given;

	for (int i = 0; i < WINDOWS_KIND_CNT; i++)
		sum += w->in[i].seen +
		       windows_slowdown(w, (enum windows_kind)i).value * w->in[i].unseen;
	return sum;
}

double windows_open(struct windows *w, const struct windows_stretch *out)
{
	double length_ns = (double)w->window_ns * w->length, seen = 0, slow, planned, expected;
	const struct windows_stretch *in = &w->in[w->kind].all;
	struct windows now = *w;

	stretch_add(&now.out, out, 1);
	slow = windows_slowdown(&now, w->kind).value;
	if (w->cnt && in->alloc_cnt > 0 && w->in[w->kind].seen > in->alloc_cnt)
		seen = w->in[w->kind].seen / in->alloc_cnt - 1;
	planned = 1 + seen + slow * fmax((double)w->period_ns / length_ns - 1 - seen, 0);
	expected = in->wall_ns > 0 ? in->alloc_cnt / in->wall_ns * length_ns : 0;
	w->scale = planned;
	if (w->cnt && expected > 0)
		w->scale = clamp(planned + owed(&now) / expected, planned / LEDGER_FACTOR,
				 planned * LEDGER_FACTOR);
	w->scale = fmax(w->scale, 1);
	return w->scale;
}

/* Of a window that has been closed: allocations that it was not there for, at its own rate. */
static double unseen(const struct windows *w, const struct windows_stretch *in,
		     const struct windows_stretch *out)
{
	double per_ns = in->alloc_cnt / in->wall_ns;

	return fmax(((double)w->period_ns - in->wall_ns) * per_ns - out->alloc_cnt, 0);
}

void windows_put_off(struct windows *w, uint64_t now_ns)
{
	plan(w, now_ns, 0);
}

void windows_close(struct windows *w, uint64_t now_ns, const struct windows_stretch *in,
		   const struct windows_stretch *out)
{
	double keep = fmin(LENGTH_KEEP, w->cnt / (w->cnt + 1.0)); /* at first a plain mean */
	uint64_t end_ns = w->begin_ns + w->period_ns;
	struct windows_sums *sums = &w->in[w->kind];

	forget(w);
	stretch_add(&w->out, out, 1);
	w->cnt++;
	if (in->wall_ns > 0) {
		double length = in->wall_ns / (double)w->window_ns, stood;

		w->length = w->length * keep + fmin(length, LENGTH_MAX) * (1 - keep);
		sums_add(sums, in);
		sums->seen += in->alloc_cnt + out->alloc_cnt;
		sums->unseen += unseen(w, in, out);
		w->given += w->scale * in->alloc_cnt;
		stood = in->alloc_cnt + out->alloc_cnt +
			windows_slowdown(w, w->kind).value * unseen(w, in, out);
		stood /= (double)w->period_ns;
		w->stood_for += stood;
		w->change_sq += w->cnt > 1 ? (stood - w->stood_last) * (stood - w->stood_last) : 0;
		w->stood_last = stood;
	}
	/* Time that was slept through belongs to the next period, whose window stands for it too. */
	plan(w, end_ns, now_ns > end_ns + w->window_ns ? now_ns - end_ns - w->window_ns : 0);
	if (w->open_ns < now_ns)
		w->open_ns = now_ns;
}

double windows_spread(const struct windows *w)
{
	double n = w->cnt, mean = n ? w->stood_for / n : 0;

	if (n < 2)
		return INFINITY;
	if (mean <= 0)
		return 0;
	/* From one window to the next: a slow change is no error, each period has its own window. */
	return sqrt(w->change_sq / 2 / (n - 1) / n) / mean;
}
