/* SPDX-License-Identifier: MIT */
/*
 * inuse_past.c - see past.h.
 *
 * Time is cut into slots. A process has a ring of slots for an hour and one for a day; a slot of a day is DAY_STEPS
 * slots of an hour. Slots in which nobody looked (the machine slept) are not known.
 */
#include "http/past.h"

#include "base/clock.h"
#include "base/hmap.h"

#define STEP_NS (INUSE_PAST_STEP_S * NS_PER_S)

struct process {
	uint64_t since_ns;
	uint64_t first, last; /* slots */
	float hour[INUSE_PAST_LINE_CNT][INUSE_PAST_HOUR_CNT];
	float day[INUSE_PAST_LINE_CNT][INUSE_PAST_DAY_CNT];
};
_Static_assert(sizeof(struct process) <= INUSE_PAST_PROCESS_BYTES, "the bound holds");

struct inuse_past {
	struct hmap processes; /* pid_t -> struct process, a record */
	uint64_t slot, time_ns; /* of the current moment; 0: there was none */
};

int inuse_past_new(struct inuse_past **ret)
{
	struct inuse_past *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	hmap_init(&p->processes, sizeof(pid_t));
	*ret = p;
	return 0;
}

void inuse_past_free(struct inuse_past *p)
{
	if (!p)
		return;
	hmap_keep_records(&p->processes, NULL, NULL);
	hmap_release(&p->processes);
	free(p);
}

bool inuse_past_begin(struct inuse_past *p, uint64_t time_ns)
{
	uint64_t slot = time_ns / STEP_NS + 1;

	if (slot <= p->slot)
		return false;
	p->slot = slot;
	p->time_ns = time_ns;
	return true;
}

uint64_t inuse_past_time_ns(const struct inuse_past *p)
{
	return p->time_ns;
}

static void put(struct process *one, uint64_t slot, const double bytes[INUSE_PAST_LINE_CNT])
{
	uint64_t point = slot / INUSE_PAST_DAY_STEPS;
	bool is_fresh = slot == one->first || slot % INUSE_PAST_DAY_STEPS == 0;

	for (int line = 0; line < INUSE_PAST_LINE_CNT; line++) {
		float *most = &one->day[line][point % INUSE_PAST_DAY_CNT];
		float value = (float)bytes[line];

		one->hour[line][slot % INUSE_PAST_HOUR_CNT] = value;
		if (is_fresh || isnan(*most) || value > *most)
			*most = value;
	}
	one->last = slot;
}

bool inuse_past_is_full(const struct inuse_past *p)
{
	return p->processes.cnt >= INUSE_PAST_PROCESSES_CAP;
}

int inuse_past_add(struct inuse_past *p, pid_t pid, uint64_t since_ns,
		   const double bytes[static INUSE_PAST_LINE_CNT])
{
	static const double nothing[INUSE_PAST_LINE_CNT] = { NAN, NAN };
	struct process *one = hmap_record(&p->processes, &pid);
	uint64_t slot;

	if (!one && inuse_past_is_full(p))
		return -ENOSPC;
	if (!one)
		one = hmap_add_record(&p->processes, &pid, sizeof(*one));
	if (!one)
		return -ENOMEM;
	if (!one->last || one->since_ns != since_ns) { /* new, or another process with this pid */
		one->since_ns = since_ns;
		one->first = p->slot;
		one->last = 0;
	}
	if (one->last == p->slot) /* already added */
		return 0;
	slot = one->last ? one->last + 1 : p->slot;
	/* After a day nothing older is left anyway. */
	if (p->slot - slot > INUSE_PAST_DAY_CNT * INUSE_PAST_DAY_STEPS)
		one->first = slot = p->slot;
	for (; slot < p->slot; slot++)
		put(one, slot, nothing);
	put(one, slot, bytes);
	return 0;
}

static bool was_added(void *record, const void *slot)
{
	const struct process *one = record;

	return one->last == *(const uint64_t *)slot;
}

void inuse_past_end(struct inuse_past *p)
{
	hmap_keep_records(&p->processes, was_added, &p->slot);
}

/* Copy slots or points `first` to `last` out of a ring. */
static size_t copy(const float *ring, size_t ring_cnt, uint64_t first, uint64_t last, float *ret)
{
	size_t cnt = 0;

	if (last - first >= ring_cnt)
		first = last - ring_cnt + 1;
	for (; first <= last; first++)
		ret[cnt++] = ring[first % ring_cnt];
	return cnt;
}

size_t inuse_past_hour(const struct inuse_past *p, pid_t pid, enum inuse_past_line line,
		       float ret[static INUSE_PAST_HOUR_CNT])
{
	const struct process *one = hmap_record(&p->processes, &pid);

	return one ? copy(one->hour[line], INUSE_PAST_HOUR_CNT, one->first, one->last, ret) : 0;
}

size_t inuse_past_day(const struct inuse_past *p, pid_t pid, enum inuse_past_line line,
		      float ret[static INUSE_PAST_DAY_CNT])
{
	const struct process *one = hmap_record(&p->processes, &pid);

	return one ? copy(one->day[line], INUSE_PAST_DAY_CNT, one->first / INUSE_PAST_DAY_STEPS,
			  one->last / INUSE_PAST_DAY_STEPS, ret) :
		     0;
}

#define QUARTERS 4
#define NOISE_DEVIATIONS 2 /* ups and downs within a quarter, in standard deviations */
#define STILL_PART \
	0.1 /* the last quarter's part of growth that goes on: with a steady pace, a third */

struct quarter {
	double sum, squares;
	size_t cnt;
};

static double mean(const struct quarter *q)
{
	return q->sum / (double)q->cnt;
}

/* NAN if a quarter has no value. */
static double deviation(const struct quarter q[QUARTERS])
{
	double squares = 0, cnt = 0;

	for (int i = 0; i < QUARTERS; i++) {
		if (!q[i].cnt)
			return NAN;
		squares += q[i].squares - q[i].sum * mean(&q[i]);
		cnt += (double)q[i].cnt;
	}
	return sqrt(fmax(squares, 0) / cnt);
}

static enum inuse_trend trend_of(const struct quarter q[QUARTERS], double noise)
{
	double change = mean(&q[3]) - mean(&q[0]);

	if (!(fabs(change) > noise))
		return INUSE_TREND_STEADY;
	if (change < 0)
		return INUSE_TREND_SHRINKS;
	return mean(&q[3]) - mean(&q[2]) > STILL_PART * change ? INUSE_TREND_GROWS :
								 INUSE_TREND_GREW;
}

void inuse_growth(const float *values, size_t cnt, double step_s, double error_bytes,
		  struct inuse_growth *ret)
{
	struct quarter q[QUARTERS] = { 0 };
	size_t first = 0, last = cnt;
	double spread, sampling = error_bytes > 0 ? 1.96 * M_SQRT2 * error_bytes : 0;

	*ret = (struct inuse_growth){ .trend = INUSE_TREND_UNKNOWN };
	while (first < cnt && isnan(values[first]))
		first++;
	while (last > first && isnan(values[last - 1]))
		last--;
	cnt = last - first;
	ret->minutes = cnt ? (double)(cnt - 1) * step_s / 60 : 0;
	if (cnt < INUSE_GROWTH_POINTS_LEAST)
		return;
	for (size_t i = 0; i < cnt; i++) {
		struct quarter *to = &q[i * QUARTERS / cnt];
		double value = (double)values[first + i];

		if (isnan(value))
			continue;
		to->sum += value;
		to->squares += value * value;
		to->cnt++;
	}
	spread = deviation(q);
	if (isnan(spread))
		return;
	ret->trend = trend_of(q, fmax(sampling, NOISE_DEVIATIONS * spread));
	/* The middles of the outer quarters are three quarters of the time apart. */
	ret->bytes_per_min = (mean(&q[3]) - mean(&q[0])) /
			     ((double)cnt * step_s / 60 * (QUARTERS - 1) / QUARTERS);
}

const char *inuse_trend_text(enum inuse_trend trend)
{
	static const char *const texts[] = {
		[INUSE_TREND_UNKNOWN] = NULL,	   [INUSE_TREND_GROWS] = "grows",
		[INUSE_TREND_GREW] = "grew",	   [INUSE_TREND_STEADY] = "steady",
		[INUSE_TREND_SHRINKS] = "shrinks",
	};

	return texts[trend];
}
