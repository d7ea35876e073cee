/* SPDX-License-Identifier: MIT */
/*
 * bins.c - see bins.h.
 *
 * The interval of a share, such as the share s of temporary blocks. Each of n sampled blocks stands for w = 1/p
 * objects; T = sum of w objects. With equal weights s would have the interval of a binomial with n draws. As they are
 * not equal, n is the number of draws that is worth as much, T^2 / sum of w^2 (Kish). The sum of squares is not kept.
 * Blocks of one size bin have about the same weight, so the sum is made from the bins: a bin with O objects in n
 * samples adds O^2 / n, which is too small by an eighth at most. Draws that were certain have no error: the variance of
 * T is the sum of w^2 - w, not of w^2. The interval is narrower by that, and has no width where every allocation was
 * recorded. It is Wilson's, which is useful even if none or all of the samples are temporary.
 *
 * The formula assumes that lifetimes do not depend on weights. In a row of one stack they mostly do not. In a row of
 * many stacks whose small blocks are temporary and whose large ones are not, the interval is wider than necessary.
 */
#include "profile/bins.h"

#define Z_95 1.959963984540054

static uint32_t bin_of(uint64_t n, uint32_t cnt)
{
	uint32_t i = n ? 64 - (uint32_t)__builtin_clzll(n) : 0;

	return i < cnt ? i : cnt - 1;
}

uint32_t bin_of_size(uint64_t bytes)
{
	return HT_BIN_SIZE + bin_of(bytes, HT_BIN_SIZE_CNT);
}

uint32_t bin_of_life(uint64_t ns)
{
	return HT_BIN_LIFE + bin_of(HT_BIN_LIFE_UNITS(ns), HT_BIN_LIFE_CNT);
}

static bool is_life(uint32_t bin)
{
	return bin >= HT_BIN_LIFE;
}

/* The n-th bound of sizes or lifetimes. */
static uint64_t bound(bool of_life, uint32_t i)
{
	uint64_t n = 1ULL << (i & 63) >> 1; /* 0 for i = 0 */

	/* the first ns that makes n units: see HT_BIN_LIFE_UNITS() */
	return of_life ? (n * 15625 + 15) / 16 : n;
}

uint64_t bin_from(uint32_t bin)
{
	return is_life(bin) ? bound(true, bin - HT_BIN_LIFE) : bound(false, bin);
}

uint64_t bin_to(uint32_t bin)
{
	if (bin + 1 == HT_BIN_LIFE || bin + 1 >= HT_BIN_CNT)
		return UINT64_MAX;
	return bin_from(bin + 1);
}

static void format_life(uint64_t ns, char *buf, size_t buf_bytes)
{
	double s = (double)ns / 1e9;

	if (s < 1e-3)
		snprintf(buf, buf_bytes, "%.3g us", s * 1e6);
	else if (s < 1)
		snprintf(buf, buf_bytes, "%.3g ms", s * 1e3);
	else if (s < 100)
		snprintf(buf, buf_bytes, "%.3g s", s);
	else
		snprintf(buf, buf_bytes, "%.3g min", s / 60);
}

static char *life_name(uint32_t bin, char buf[BIN_NAME_BUF])
{
	char from[16], to[16];

	format_life(bin_from(bin), from, sizeof(from));
	format_life(bin_to(bin), to, sizeof(to));
	if (bin == HT_BIN_LIFE)
		snprintf(buf, BIN_NAME_BUF, "under %s", to);
	else if (bin_to(bin) == UINT64_MAX)
		snprintf(buf, BIN_NAME_BUF, "%s or more", from);
	else
		snprintf(buf, BIN_NAME_BUF, "%s to %s", from, to);
	return buf;
}

char *bin_name(uint32_t bin, char buf[BIN_NAME_BUF])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	uint64_t from = bin_from(bin), to = bin_to(bin);
	size_t unit = 0;

	if (is_life(bin))
		return life_name(bin, buf);
	while (from >= 1024 && unit < 3) {
		from /= 1024;
		to /= 1024;
		unit++;
	}
	if (bin_to(bin) == UINT64_MAX)
		snprintf(buf, BIN_NAME_BUF, "%llu %s or more", (unsigned long long)from,
			 units[unit]);
	else if (to <= 2 && !unit)
		snprintf(buf, BIN_NAME_BUF, "%llu B", (unsigned long long)from);
	else
		snprintf(buf, BIN_NAME_BUF, "%llu %s to %llu %s", (unsigned long long)from,
			 units[unit], (unsigned long long)(unit ? to : to - 1), units[unit]);
	return buf;
}

void bin_sums_add(struct bin_sums *sums, const struct bin_part *part)
{
	sums->objects[part->bin] += part->objects;
	if (!is_life(part->bin) && part->samples)
		sums->square += part->objects * part->objects / (double)part->samples;
}

void bin_sums_merge(struct bin_sums *sums, const struct bin_sums *other)
{
	sums->is_known |= other->is_known;
	for (size_t i = 0; i < HT_BIN_CNT; i++)
		sums->objects[i] += other->objects[i];
	sums->freed_objects += other->freed_objects;
	sums->freed_bytes += other->freed_bytes;
	sums->square += other->square;
}

double bin_temporary_objects(const struct bin_sums *sums)
{
	uint32_t end = bin_of_life(BIN_TEMPORARY_NS);
	double sum = 0;

	for (uint32_t bin = HT_BIN_LIFE; bin < end; bin++)
		sum += sums->objects[bin];
	return sum;
}

double bin_sized_objects(const struct bin_sums *sums)
{
	double sum = 0;

	for (uint32_t i = 0; i < HT_BIN_SIZE_CNT; i++)
		sum += sums->objects[HT_BIN_SIZE + i];
	return sum;
}

bool bin_share(const struct bin_sums *sums, double part_objects, struct bin_share *ret)
{
	double total = bin_sized_objects(sums), s, n, z2, middle, half;

	if (!(total > 0) || !(sums->square > 0))
		return false;
	s = fmin(part_objects / total, 1);
	n = total * total / sums->square;
	z2 = Z_95 * Z_95 * fmax(0, 1 - total / sums->square);
	middle = (s + z2 / (2 * n)) / (1 + z2 / n);
	half = sqrt(z2 * s * (1 - s) / n + z2 * z2 / (4 * n * n)) / (1 + z2 / n);
	if (!isfinite(middle) || !isfinite(half)) /* a file may contain anything */
		return false;
	ret->share = s;
	ret->low = fmax(0, middle - half);
	ret->high = fmin(1, middle + half);
	return true;
}

/*
 * Ages.
 *
 * Each class is a third to a half wider than the one before: fine enough for a median, few enough that every sample of
 * a file can have its own.
 */

#define S 1000000000ULL
#define MIN (60 * S)
#define H (60 * MIN)
#define D (24 * H)

static const uint64_t bounds_ns[AGE_CLASS_CNT] = {
	0,	  S / 10,  S / 5,    S / 2,   S,	2 * S,	  3 * S,    5 * S,
	7 * S,	  10 * S,  15 * S,   20 * S,  30 * S,	45 * S,	  MIN,	    90 * S,
	2 * MIN,  3 * MIN, 5 * MIN,  7 * MIN, 10 * MIN, 15 * MIN, 20 * MIN, 30 * MIN,
	45 * MIN, H,	   90 * MIN, 2 * H,   3 * H,	5 * H,	  8 * H,    12 * H,
	18 * H,	  D,	   2 * D,    3 * D,   5 * D,	7 * D,
};

uint32_t age_class_of(uint64_t age_ns)
{
	uint32_t c = AGE_CLASS_CNT - 1;

	while (bounds_ns[c] > age_ns)
		c--;
	return c;
}

uint64_t age_bound_ns(uint32_t age_class)
{
	return age_class < AGE_CLASS_CNT ? bounds_ns[age_class] : UINT64_MAX;
}

char *age_bound_name(uint32_t age_class, char buf[AGE_NAME_BUF])
{
	uint64_t ns = bounds_ns[age_class < AGE_CLASS_CNT ? age_class : AGE_CLASS_CNT - 1];

	if (ns < MIN || ns == 90 * S)
		snprintf(buf, AGE_NAME_BUF, "%g s", (double)ns / S);
	else if (ns < H || ns == 90 * MIN)
		snprintf(buf, AGE_NAME_BUF, "%g min", (double)ns / MIN);
	else if (ns < D)
		snprintf(buf, AGE_NAME_BUF, "%g h", (double)ns / H);
	else
		snprintf(buf, AGE_NAME_BUF, "%g d", (double)ns / D);
	return buf;
}

char *age_class_name(uint32_t age_class, char buf[AGE_NAME_BUF])
{
	char from[AGE_NAME_BUF], to[AGE_NAME_BUF];

	age_bound_name(age_class, from);
	if (age_class >= AGE_CLASS_CNT - 1) {
		snprintf(buf, AGE_NAME_BUF, "%.16s or more", from);
		return buf;
	}
	age_bound_name(age_class + 1, to);
	if (!age_class)
		snprintf(buf, AGE_NAME_BUF, "under %.16s", to);
	else
		snprintf(buf, AGE_NAME_BUF, "%.16s to %.16s", from, to);
	return buf;
}

void age_merge(struct age_sums *sums, const struct age_sums *other)
{
	for (size_t c = 0; c < AGE_CLASS_CNT; c++)
		sums->bytes[c] += other->bytes[c];
	if (other->oldest_ns > sums->oldest_ns)
		sums->oldest_ns = other->oldest_ns;
}

bool age_median_s(const struct age_sums *sums, double *ret)
{
	double all = 0, below = 0;

	for (size_t c = 0; c < AGE_CLASS_CNT; c++)
		all += sums->bytes[c];
	if (!(all > 0))
		return false;
	for (uint32_t c = 0; c < AGE_CLASS_CNT; c++) {
		double from = (double)bounds_ns[c], to = (double)sums->oldest_ns;

		if (below + sums->bytes[c] < all / 2) {
			below += sums->bytes[c];
			continue;
		}
		if (c + 1 < AGE_CLASS_CNT && (double)bounds_ns[c + 1] < to)
			to = (double)bounds_ns[c + 1];
		to = fmax(to, from);
		*ret = (from + (to - from) * (all / 2 - below) / sums->bytes[c]) / S;
		break;
	}
	return true;
}
