/* SPDX-License-Identifier: MIT */
/*
 * growth.c - the statistics of growth.
 *
 * A row's bytes at a moment are a sum of weighted samples (estimate.c). The errors of two moments are not independent:
 * most samples live at both, and their errors cancel. So the difference is taken sample by sample. x_w is the part of
 * the moments of window w at which a sample is live. The sample counts with
 *	c = (x_9 + x_10 + x_11 + x_12 - x_3 - x_4 - x_5 - x_6) / 4
 * of its weight. With n its size and p its probability:
 *	D = sum of c n/p		unbiased, because each sum at a moment is
 *	V = sum of c^2 n^2 (1-p)/p^2	its variance, because samples are drawn independently
 * A block that lives from the third window to the last has c = 0 and adds no error. A block that leaks has c from 0 to
 * 1, a block that comes and goes a little of either sign. Means of four windows are compared, not two moments, because
 * a row that churns holds something else at each moment. The first two windows are left out because everything that is
 * newly allocated in them looks like growth: what was there before is not seen.
 *
 * Interval of few samples: the gains and the losses in D are two sums of positive weights. Each has its interval from
 * estimate_interval_at(), and MOVER joins the two (report_diff.c has the formula). A block that was not seen has a c,
 * too: UNSEEN_C is the root mean square of c for blocks that are allocated at any time and stay. In rows that churn c
 * is less, which many samples show.
 *
 * A program has ups and downs of its own, which sampling does not explain. They show in the steps from window to
 * window, minus the line. When these vary far more than sampling explains, the rest is added to V, and the quantile is
 * that of Student's t with the few degrees of freedom that there are. So a cache that swells and shrinks is not said to
 * grow.
 *
 * "Grows" needs more than D > 0, because programs warm up:
 *   - the row grew from the second third to the last as well;
 *   - it did not slow down: growth in the second half is not clearly less than in the first;
 *   - old blocks stay: of the blocks of the first third that lived at two thirds, few were freed since.
 *     Frees of blocks from before heaptap attached cannot be seen. So a full cache that replaces its
 *     entries looks as if it grew, until the recording is longer than its entries live.
 * If one of them fails, the right answer is "cannot say yet". The verdict stays wrong about blocks that all live longer
 * than the recording.
 *
 * Against a limit the same is asked of the total, with one difference: the total has rows whose old blocks are replaced
 * and rows that leak. So two sums have to be beyond the limit: the total, and the total without the rows that are
 * replaced. The total alone would take a cache that fills up for a leak; the rest alone, memory that only changed its
 * owner.
 */
#include "profile/growth.h"

#include "profile/estimate.h"
#include "profile/history.h"

/* First window, from 0, of each mean: over four windows; MIDDLE: over two. */
#define FIRST 2
#define SECOND 4
#define MIDDLE 6
#define LAST 8
#define TAIL LAST
/* sqrt(1/6 + 2/9): for a leak c is 1 in windows 7 and 8, with a ramp of four windows on each side. */
#define UNSEEN_C 0.624
#define UNSEEN_SAMPLES 3 /* UNSEEN_C counts like this many samples */
/* Steps vary by this factor more than sampling explains: by chance in one row of a hundred. */
#define EXCESS_FROM 2.5
#define STEPS_FREE (GROWTH_STEP_CNT - 1) /* the line takes one degree of freedom */
/*
 * The variance of D, in variances of one step between windows. A random walk has 7. Windows that do not depend on each
 * other have 1/4 (1/2 is taken), and then the bend has 5/4 (1 is taken). Steps over four windows tell which case it is:
 * in a walk they vary 5.5 times as much as steps over one window, otherwise as much.
 */
#define WALK_VARIANCE 7
#define NOISE_VARIANCE 0.5
#define NOISE_VARIANCE_BEND 1
#define WALK_RATIO 5.5
#define LONG_STEP 4
#define LATE_Z 1
#define LATE_Z_NAMED 2
#define BEND_Z 2 /* no longer counts as growth */
#define BEND_Z_OTHER 3 /* is another rate */
#define STOPPED_SHARE 0.5
/* Old blocks do not stay if more than this share of them, and at least this many samples, has gone. */
#define OLD_GONE_SHARE 0.1
#define OLD_GONE_SAMPLES 1
/* Steady: in the recorded time it cannot have grown by more than this part of what it holds. */
#define STEADY_SHARE 0.5
#define NAMED_BY_CHANCE 0.003
#define MORE_MIN_S 5
#define MORE_FACTOR_MAX 20
/* With this many times the samples that would just decide, 4 of 5 recordings decide. */
#define MORE_SURE 1.85

/* The mean of four windows. */
static double mean_of(const double *of_window, size_t first)
{
	return (of_window[first] + of_window[first + 1] + of_window[first + 2] +
		of_window[first + 3]) /
	       4;
}

void growth_plan_init(struct growth_plan *p, const int64_t *moment_ns, size_t cnt, int64_t from_ns,
		      int64_t to_ns, double rate_bytes)
{
	double duration_ns = (double)to_ns - (double)from_ns;
	size_t i = 0;

	*p = (struct growth_plan){ .moment_cnt = cnt,
				   .duration_s = duration_ns / 1e9,
				   .rate_bytes = rate_bytes };
	if (duration_ns <= 0 || cnt > GROWTH_MOMENTS_CAP)
		return;
	while (i < cnt && moment_ns[i] < from_ns)
		i++;
	p->is_known = cnt - i >= GROWTH_MOMENTS_LEAST;
	for (size_t w = 0; w < GROWTH_WINDOW_CNT; w++) {
		double end = (double)from_ns + duration_ns * (double)(w + 1) / GROWTH_WINDOW_CNT;
		size_t first = i;
		double sum = 0;

		p->moment_first[w] = (uint32_t)i;
		while (i < cnt && (w == GROWTH_WINDOW_CNT - 1 || (double)moment_ns[i] < end))
			sum += (double)moment_ns[i++] / 1e9;
		p->is_known &= i > first;
		p->time_s[w] = i > first ? sum / (double)(i - first) : NAN;
	}
	p->moment_first[GROWTH_WINDOW_CNT] = (uint32_t)cnt;
	p->tail_part = (p->time_s[TAIL + 2] + p->time_s[TAIL + 3] - p->time_s[TAIL] -
			p->time_s[TAIL + 1]) /
		       2 / (mean_of(p->time_s, LAST) - mean_of(p->time_s, FIRST));
}

static void add_part(struct growth_part *to, double c, const struct history_life *life)
{
	if (c == 0)
		return;
	to->samples += life->samples;
	to->bytes += fabs(c) * life->bytes;
	to->variance += c * c * life->variance;
	to->share_max = fmax(to->share_max, fabs(c));
}

/* The part of the moments of window w at which the life is live. */
static double part_of_window(const struct growth_plan *p, size_t w, const struct history_life *life)
{
	uint32_t first = p->moment_first[w], end = p->moment_first[w + 1];
	uint32_t from = life->first > first ? life->first : first;
	uint32_t to = life->last + 1 < end ? life->last + 1 : end;

	return from < to ? (double)(to - from) / (end - first) : 0;
}

void growth_add(const struct growth_plan *p, struct growth_sums *sums,
		const struct history_life *life)
{
	double x[GROWTH_WINDOW_CNT], first, second, middle, last, bend, tail, flat;

	if (!p->is_known || life->first > life->last || life->last >= p->moment_cnt)
		return;
	for (size_t w = 0; w < GROWTH_WINDOW_CNT; w++) {
		x[w] = part_of_window(p, w, life);
		sums->mean_bytes[w] += x[w] * life->bytes;
		if (w > FIRST)
			sums->step_variance[w - FIRST - 1] +=
				(x[w] - x[w - 1]) * (x[w] - x[w - 1]) * life->variance;
	}
	first = mean_of(x, FIRST);
	second = mean_of(x, SECOND);
	last = mean_of(x, LAST);
	middle = (x[MIDDLE] + x[MIDDLE + 1]) / 2;
	add_part(last > first ? &sums->up : &sums->down, last - first, life);
	add_part(last > second ? &sums->late_up : &sums->late_down, last - second, life);
	bend = last - 2 * middle + first;
	sums->bend_bytes += bend * life->bytes;
	sums->bend_variance += bend * bend * life->variance;
	tail = (x[TAIL + 2] + x[TAIL + 3] - x[TAIL] - x[TAIL + 1]) / 2;
	flat = tail - p->tail_part * (last - first);
	sums->tail_bytes += tail * life->bytes;
	sums->flat_bytes += flat * life->bytes;
	sums->flat_variance += flat * flat * life->variance;
	if (life->first >= p->moment_first[SECOND] || life->last + 1 < p->moment_first[LAST])
		return;
	add_part(&sums->old, 1, life);
	if (life->last + 1 < p->moment_cnt)
		add_part(&sums->old_gone, 1, life);
}

static void merge_part(struct growth_part *to, const struct growth_part *from)
{
	to->samples += from->samples;
	to->bytes += from->bytes;
	to->variance += from->variance;
	to->share_max = fmax(to->share_max, from->share_max);
}

void growth_merge(struct growth_sums *sums, const struct growth_sums *other)
{
	sums->is_partial |= other->is_partial;
	for (size_t w = 0; w < GROWTH_WINDOW_CNT; w++)
		sums->mean_bytes[w] += other->mean_bytes[w];
	for (size_t w = 0; w < GROWTH_STEP_CNT; w++)
		sums->step_variance[w] += other->step_variance[w];
	merge_part(&sums->up, &other->up);
	merge_part(&sums->down, &other->down);
	merge_part(&sums->late_up, &other->late_up);
	merge_part(&sums->late_down, &other->late_down);
	sums->bend_bytes += other->bend_bytes;
	sums->bend_variance += other->bend_variance;
	sums->tail_bytes += other->tail_bytes;
	sums->flat_bytes += other->flat_bytes;
	sums->flat_variance += other->flat_variance;
	merge_part(&sums->old, &other->old);
	merge_part(&sums->old_gone, &other->old_gone);
}

/* Student's t with 8 degrees of freedom has a distribution in closed form. */
_Static_assert(STEPS_FREE == 8, "the distribution below is that of 8 degrees of freedom");
static double t_upper(double t)
{
	double c = 1 / (1 + t * t / 8), s = t / sqrt(8 + t * t); /* a squared cosine, a sine */

	return 0.5 - s * (1 + c * (1. / 2 + c * (3. / 8 + c * 15. / 48))) / 2;
}

/* t that is exceeded with probability p */
static double t_quantile(double p)
{
	double low = 0, high = 1e6;

	for (int i = 0; i < 100; i++) {
		double mid = (low + high) / 2;

		if (t_upper(mid) > p)
			low = mid;
		else
			high = mid;
	}
	return high;
}

/* A difference in bytes, the distances to the low and the high end of its interval, and its standard error. */
struct change {
	double bytes, below, above, error;
};

static void part_interval(const struct growth_plan *p, const struct growth_part *part,
			  double unseen_share, double tail, double *ret_low, double *ret_high)
{
	const struct estimate e = {
		.samples = part->samples,
		.bytes = part->bytes,
		.bytes_variance = part->variance,
		.rate_bytes = p->rate_bytes > 1 ? unseen_share * p->rate_bytes : 0,
	};

	estimate_interval_at(&e, tail, ret_low, ret_high);
}

/* The c of a block that was not seen: like the c of seen blocks, if there are enough of them to tell. */
static double unseen_share(const struct growth_part *up, const struct growth_part *down)
{
	double seen = fmin(UNSEEN_C, fmax(up->share_max, down->share_max));
	double n = (double)(up->samples + down->samples);

	return sqrt((n * seen * seen + UNSEEN_SAMPLES * UNSEEN_C * UNSEEN_C) /
		    (n + UNSEEN_SAMPLES));
}

/* excess: variance that sampling does not explain; 0: none. tail: probability on each side. */
static struct change change_of(const struct growth_plan *p, const struct growth_part *up,
			       const struct growth_part *down, double excess, double tail)
{
	double unseen = unseen_share(up, down);
	double up_low, up_high, down_low, down_high;
	struct change c = { .bytes = up->bytes - down->bytes,
			    .error = sqrt(up->variance + down->variance + excess) };

	part_interval(p, up, unseen, tail, &up_low, &up_high);
	part_interval(p, down, unseen, tail, &down_low, &down_high);
	c.below = hypot(up->bytes - up_low, down_high - down->bytes);
	c.above = hypot(up_high - up->bytes, down->bytes - down_low);
	if (excess > 0) {
		double reach = t_quantile(tail) * c.error;

		c.below = fmax(c.below, reach);
		c.above = fmax(c.above, reach);
	}
	return c;
}

/* The difference of the means of two windows, minus the line's. */
static double rest_of(const struct growth_plan *p, const struct growth_sums *s, double slope,
		      size_t from, size_t to)
{
	return s->mean_bytes[to] - s->mean_bytes[from] - slope * (p->time_s[to] - p->time_s[from]);
}

/* The variance of the steps beyond what sampling explains, as a variance of D. */
static double excess_of(const struct growth_plan *p, const struct growth_sums *sums, double slope,
			double noise_variance)
{
	double seen = 0, explained = 0, far = 0, walk;

	for (size_t w = FIRST + 1; w < GROWTH_WINDOW_CNT; w++) {
		double rest = rest_of(p, sums, slope, w - 1, w);

		seen += rest * rest / STEPS_FREE;
		explained += sums->step_variance[w - FIRST - 1] / GROWTH_STEP_CNT;
	}
	/* less than a byte is rounding */
	if (seen <= EXCESS_FROM * explained + 1)
		return 0;
	for (size_t w = FIRST + LONG_STEP; w < GROWTH_WINDOW_CNT; w++) {
		double rest = rest_of(p, sums, slope, w - LONG_STEP, w);

		far += rest * rest / (GROWTH_WINDOW_CNT - FIRST - LONG_STEP);
	}
	walk = fmin(fmax((far / seen - 1) / (WALK_RATIO - 1), 0), 1);
	return (seen - explained) * (noise_variance + walk * (WALK_VARIANCE - noise_variance));
}

static double excess_of_sums(const struct growth_plan *p, const struct growth_sums *s,
			     double noise_variance)
{
	double seconds = mean_of(p->time_s, LAST) - mean_of(p->time_s, FIRST);

	return excess_of(p, s, (s->up.bytes - s->down.bytes) / seconds, noise_variance);
}

static double ratio(double value, double error)
{
	return error > 0 ? value / error : value > 0 ? INFINITY : value < 0 ? -INFINITY : 0;
}

/* How many standard errors growth in the second half is below growth in the first. */
static double slowing_z(const struct growth_plan *p, const struct growth_sums *s, double excess)
{
	double first_s = mean_of(p->time_s, FIRST), last_s = mean_of(p->time_s, LAST);
	double middle_s = (p->time_s[MIDDLE] + p->time_s[MIDDLE + 1]) / 2;
	double slope = (s->up.bytes - s->down.bytes) / (last_s - first_s);
	/* the middle is not exactly half-way */
	double straight = slope * (last_s - 2 * middle_s + first_s);

	return ratio(straight - s->bend_bytes, sqrt(s->bend_variance + excess + 1));
}

bool growth_is_replaced(const struct growth_sums *s)
{
	return s->old_gone.samples >= OLD_GONE_SAMPLES &&
	       s->old_gone.bytes > OLD_GONE_SHARE * s->old.bytes;
}

/* Round up to seconds that are easy to say: 5, 10, 20, 30, 60, 90, 120, 300, ... */
static double round_up(double s)
{
	static const double steps[] = { 5,   10,  15,  20,  30,	  45,	60,   90,   120,
					180, 300, 600, 900, 1800, 3600, 7200, 14400 };

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (s <= steps[i])
			return steps[i];
	return 28800;
}

/* factor: how many times the present samples are needed. */
static double more_s(const struct growth_plan *p, double factor)
{
	double more = p->duration_s * (fmin(fmax(factor, 1.5), MORE_FACTOR_MAX) - 1);

	return round_up(fmax(more, MORE_MIN_S));
}

static double squared(double x)
{
	return x * x;
}

void growth_judge(const struct growth_plan *p, const struct growth_sums *s, size_t row_cnt,
		  struct growth *ret)
{
	bool is_named = row_cnt > 1, is_late, slows, settles;
	double tail = is_named ? NAMED_BY_CHANCE / (double)row_cnt : ESTIMATE_TAIL_95;
	double seconds, excess, level, slowing;
	struct change all, late;

	*ret = (struct growth){ .more_s = more_s(p, 3) };
	if (!p->is_known || s->is_partial)
		return;
	seconds = mean_of(p->time_s, LAST) - mean_of(p->time_s, FIRST);
	excess = excess_of_sums(p, s, NOISE_VARIANCE);
	slowing = slowing_z(p, s, excess_of_sums(p, s, NOISE_VARIANCE_BEND));
	late = change_of(p, &s->late_up, &s->late_down, excess / 2, ESTIMATE_TAIL_95);
	all = change_of(p, &s->up, &s->down, excess, tail);
	if (slowing > BEND_Z_OTHER) {
		ret->is_late = true;
		seconds = mean_of(p->time_s, LAST) - mean_of(p->time_s, SECOND);
		all = late;
	}
	ret->has_rate = true;
	ret->bytes_per_s = all.bytes / seconds;
	ret->low = (all.bytes - all.below) / seconds;
	ret->high = (all.bytes + all.above) / seconds;

	level = mean_of(s->mean_bytes, LAST);
	is_late = ratio(late.bytes, late.error) > (is_named ? LATE_Z_NAMED : LATE_Z);
	slows = slowing > BEND_Z;
	settles = growth_is_replaced(s);
	if (ret->low > 0 && is_late && !slows && !settles) {
		ret->verdict = GROWTH_GROWS;
		return;
	}
	if (ret->low <= 0 && ret->high * p->duration_s <= STEADY_SHARE * level) {
		ret->verdict = GROWTH_STEADY;
		return;
	}
	ret->has_grown = ret->low > 0;
	if (ret->low > 0 || settles)
		ret->more_s = more_s(p, 3);
	else if (ratio(all.bytes, all.error) > 1)
		ret->more_s = more_s(p, squared(all.below / all.bytes * 1.3));
	else
		ret->more_s = more_s(
			p, level > 0 ? squared(ret->high * p->duration_s / (STEADY_SHARE * level)) :
				       4);
}

/*
 * In the last third the row gained less than half of what the line would, and sampling does not explain that. Needed
 * because slowing_z() takes a warm-up that ended shortly before for ups and downs: it is no line.
 */
static bool has_stopped(const struct growth_sums *s)
{
	return s->tail_bytes < STOPPED_SHARE * (s->tail_bytes - s->flat_bytes) &&
	       -s->flat_bytes > BEND_Z_OTHER * sqrt(s->flat_variance);
}

/* Rate of the whole, or of the second half if that differs: *ret per returned seconds. */
static double rate_of(const struct growth_plan *p, const struct growth_sums *s, double tail,
		      bool is_late, double excess, struct change *ret)
{
	if (is_late) {
		*ret = change_of(p, &s->late_up, &s->late_down, excess / 2, tail);
		return mean_of(p->time_s, LAST) - mean_of(p->time_s, SECOND);
	}
	*ret = change_of(p, &s->up, &s->down, excess, tail);
	return mean_of(p->time_s, LAST) - mean_of(p->time_s, FIRST);
}

static double more_to_tell(const struct growth_plan *p, double limit,
			   const struct growth_limit *ret)
{
	double gap = fabs(ret->bytes_per_s - limit);
	double reach = ret->bytes_per_s > limit ? ret->bytes_per_s - ret->low :
						  ret->high - ret->bytes_per_s;
	double factor = MORE_SURE * squared(reach / gap);

	return gap > 0 && factor < MORE_FACTOR_MAX ? more_s(p, factor) : 0;
}

void growth_compare(const struct growth_plan *p, const struct growth_sums *s,
		    const struct growth_sums *staying, double limit, double tail,
		    struct growth_limit *ret)
{
	double seconds, excess, bend;
	struct change all, stays;
	bool is_late;

	*ret = (struct growth_limit){ .more_s = s->is_partial ? 0 : more_s(p, 3) };
	if (!p->is_known || s->is_partial)
		return;
	excess = excess_of_sums(p, s, NOISE_VARIANCE);
	bend = slowing_z(p, s, excess_of_sums(p, s, NOISE_VARIANCE_BEND));
	is_late = bend > BEND_Z || bend < -BEND_Z_OTHER;
	seconds = rate_of(p, s, tail, is_late, excess, &all);
	rate_of(p, staying, tail, is_late, excess_of_sums(p, staying, NOISE_VARIANCE), &stays);
	ret->has_rate = true;
	ret->bytes_per_s = all.bytes / seconds;
	ret->low = (all.bytes - all.below) / seconds;
	ret->high = (all.bytes + all.above) / seconds;
	if (ret->high <= limit) {
		ret->side = GROWTH_WITHIN;
		return;
	}
	if (ret->low <= limit) {
		ret->more_s = more_to_tell(p, limit, ret);
		return;
	}
	ret->slows = bend > BEND_Z_OTHER || has_stopped(s);
	ret->is_replaced = (stays.bytes - stays.below) / seconds <= limit;
	if (!ret->slows && !ret->is_replaced)
		ret->side = GROWTH_BEYOND;
}
