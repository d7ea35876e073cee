/* SPDX-License-Identifier: MIT */
/*
 * report_sums.c - what a row sums up, how rows are compared, and what is missing in them.
 *
 * Error bars come from the samples' own variances if the file has them. In a file of another tool they
 * are inferred from bytes, objects and the sampling period (estimate_variance_from_sums()), if it says
 * that it was sampled by bytes. Variances of independent samples add up.
 */
#include "report/report_rows.h"

#include "base/names.h"

/* Add without undefined behaviour, also for a file that was made to overflow. */
int64_t report_add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

double report_value(const struct report_row *row)
{
	return row->value < INT64_MAX ? (double)row->value :
					fmax(row->estimate.bytes, PROFILE_VALUE_MAX);
}

double report_alloc(const struct report_row *row)
{
	return row->alloc < INT64_MAX ? (double)row->alloc :
					fmax(row->alloc_estimate.bytes, PROFILE_VALUE_MAX);
}

static void infer_from_sums(const struct report *r, struct estimate *e)
{
	e->bytes_variance = estimate_variance_from_sums(e->bytes, e->objects, r->rate_bytes);
	e->samples = e->bytes_variance > 0 ? llround(e->bytes * e->bytes / e->bytes_variance) : 0;
}

static void add_growth(const struct report *r, const struct profile_sample *s,
		       struct growth_sums *sums)
{
	if (r->p->is_history_partial && s->inuse_samples && !s->life_cnt)
		sums->is_partial = true;
	for (uint32_t i = 0; i < s->life_cnt; i++)
		growth_add(&r->growth_plan, sums, &r->p->lives.data[s->life_first + i]);
}

static void add_ages(const struct report *r, const struct profile_sample *s, struct age_sums *sums)
{
	for (uint32_t i = 0; i < s->age_cnt; i++) {
		const struct age_part *part = &r->p->ages.data[s->age_first + i];

		sums->bytes[part->age_class] += (float)part->bytes;
	}
	if (s->age_cnt && s->oldest_ns > sums->oldest_ns)
		sums->oldest_ns = s->oldest_ns;
}

static void add_bins(const struct report *r, const struct profile_sample *s, struct bin_sums *sums)
{
	if (!r->has_bins)
		return;
	sums->is_known = true;
	for (uint32_t i = 0; i < s->bin_cnt; i++)
		bin_sums_add(sums, &r->p->bins.data[s->bin_first + i]);
	sums->freed_objects += s->freed_objects;
	sums->freed_bytes += s->freed_bytes;
}

static struct estimate estimate_of(const struct report *r, const struct profile_sample *s)
{
	struct estimate e = {
		.bytes = report_sample_value(r, s, r->value_type),
		.objects = report_sample_value(r, s, r->objects_type),
		/* weight of an unseen allocation, whatever the others weigh */
		.rate_bytes = (double)r->rate_bytes,
	};

	if (r->has_samples && r->is_alloc) {
		e.samples = s->alloc_samples;
		e.bytes += s->alloc_bytes_beyond;
		e.bytes_variance = s->alloc_bytes_variance;
	} else if (r->has_samples) {
		e.samples = s->inuse_samples;
		e.bytes_variance = s->inuse_bytes_variance;
		e.objects_variance = s->inuse_objects_variance;
	} else if (r->has_interval) {
		infer_from_sums(r, &e);
	}
	return e;
}

static struct estimate alloc_estimate_of(const struct report *r, const struct profile_sample *s)
{
	struct estimate e = {
		.bytes = report_sample_value(r, s, r->alloc_type),
		.objects = report_sample_value(r, s, r->alloc_objects_type),
		.rate_bytes = (double)r->rate_bytes,
	};

	if (r->has_alloc_samples) {
		e.samples = s->alloc_samples;
		e.bytes += s->alloc_bytes_beyond;
		e.bytes_variance = s->alloc_bytes_variance;
	} else if (r->has_alloc_interval) {
		infer_from_sums(r, &e);
	}
	return e;
}

void report_add_sample(const struct report *r, const struct profile_sample *s,
		       struct report_row *row)
{
	struct estimate e = estimate_of(r, s), alloc = alloc_estimate_of(r, s);
	const struct estimate pinned = { .samples = s->inuse_samples,
					 .bytes = report_sample_value(r, s, r->pinned_type),
					 .bytes_variance = s->pinned_bytes_variance };

	row->value = report_add_saturating(row->value, report_sample_value(r, s, r->value_type));
	row->objects =
		report_add_saturating(row->objects, report_sample_value(r, s, r->objects_type));
	row->alloc = report_add_saturating(row->alloc, report_sample_value(r, s, r->alloc_type));
	row->alloc_objects = report_add_saturating(
		row->alloc_objects, report_sample_value(r, s, r->alloc_objects_type));
	estimate_merge(&row->estimate, &e);
	estimate_merge(&row->alloc_estimate, &alloc);
	estimate_merge(&row->pinned, &pinned);
	add_growth(r, s, &row->growth);
	add_ages(r, s, &row->ages);
	add_bins(r, s, &row->bins);
}

struct estimate report_end_of(const struct report *r, uint32_t sample)
{
	struct report_row row = { 0 };

	if (r->is_inuse && r->p->ends.cnt)
		return r->p->ends.data[sample];
	report_add_sample(r, &r->p->samples.data[sample], &row);
	return row.estimate;
}

bool report_interval(const struct report *r, const struct report_row *row, double *ret_low,
		     double *ret_high)
{
	if (!r->has_interval || isnan(row->estimate.bytes_variance))
		return false;
	estimate_interval(&row->estimate, ret_low, ret_high);
	return true;
}

bool report_alloc_interval(const struct report *r, const struct report_row *row, double *ret_low,
			   double *ret_high)
{
	const struct estimate *e = &row->alloc_estimate;

	if (!r->has_alloc_interval || row->task.has_no_alloc || isnan(e->bytes_variance))
		return false;
	estimate_interval(e, ret_low, ret_high);
	return true;
}

void report_add_row(struct report_row *into, const struct report_row *row)
{
	into->value = report_add_saturating(into->value, row->value);
	into->objects = report_add_saturating(into->objects, row->objects);
	into->alloc = report_add_saturating(into->alloc, row->alloc);
	into->alloc_objects = report_add_saturating(into->alloc_objects, row->alloc_objects);
	estimate_merge(&into->estimate, &row->estimate);
	estimate_merge(&into->alloc_estimate, &row->alloc_estimate);
	estimate_merge(&into->pinned, &row->pinned);
	growth_merge(&into->growth, &row->growth);
	age_merge(&into->ages, &row->ages);
	bin_sums_merge(&into->bins, &row->bins);
	into->task.has_no_alloc =
		row->task.has_no_alloc && (!into->row_cnt || into->task.has_no_alloc);
	into->row_cnt++;
}

void report_set_exclusive(struct report_row *row)
{
	row->scope.exclusive = (struct report_exclusive){ row->value, row->objects, row->alloc,
							  row->alloc_objects };
}

static bool has_lives(const struct growth_sums *s)
{
	for (size_t w = 0; w < GROWTH_WINDOW_CNT; w++)
		if (s->mean_bytes[w] > 0)
			return true;
	return false;
}

/* The history knows no tasks: see record/profile_build.c. A row that held nothing at any moment is unknown. */
bool report_growth(const struct report *r, const struct report_row *row, size_t row_cnt,
		   struct growth *ret)
{
	const struct growth_sums *s = &row->growth;

	*ret = (struct growth){ 0 };
	if (r->opts->by == REPORT_BY_INSTANCE || report_is_by_class(r->opts) || !r->is_inuse ||
	    r->is_unknown || !r->p->moments_ns.cnt ||
	    (r->growth_plan.is_known && !s->is_partial && !has_lives(s)))
		return false;
	growth_judge(&r->growth_plan, &row->growth, row_cnt, ret);
	return ret->has_rate;
}

/* Tasks have only sums of what they allocated. If frees were not tracked all the time, nobody knows
 * of some blocks whether they were temporary. */
bool report_temporary(const struct report *r, const struct report_row *row, struct bin_share *ret)
{
	if (!r->has_lifetimes || r->p->recording.inuse == RECORDING_INUSE_SINCE ||
	    !row->bins.is_known || r->opts->by == REPORT_BY_INSTANCE || report_is_by_class(r->opts))
		return false;
	return bin_share(&row->bins, bin_temporary_objects(&row->bins), ret);
}

void report_rank_growth(const struct report *r, struct report_row *row)
{
	static const int ranks[] = { [GROWTH_GROWS] = 0, [GROWTH_UNKNOWN] = 1, [GROWTH_STEADY] = 2 };
	struct growth g;

	row->growth_bytes_per_s = report_growth(r, row, 1, &g) ? g.bytes_per_s : 0;
	row->growth_rank = ranks[g.verdict];
}

void report_rank(const struct report *r, struct report_row *row)
{
	if (r->opts->sort == REPORT_SORT_GROWTH)
		report_rank_growth(r, row);
	else if (r->opts->sort == REPORT_SORT_TEMPORARY)
		row->temporary_objects = bin_temporary_objects(&row->bins);
}

static int compare_largest(int64_t x, int64_t y)
{
	return x > y ? -1 : x < y;
}

int report_compare_rows(const void *a, const void *b, void *ctx)
{
	const struct report *r = ctx;
	const struct report_row *x = a, *y = b;
	int order = 0;

	if (report_is_by_class(r->opts))
		return (x->class_rank > y->class_rank) - (x->class_rank < y->class_rank);
	switch (r->opts->sort) {
	case REPORT_SORT_INUSE:
		if (r->is_unknown)
			order = compare_largest(x->alloc, y->alloc);
		break;
	case REPORT_SORT_OBJECTS:
		order = compare_largest(x->objects, y->objects);
		break;
	case REPORT_SORT_ALLOC:
		order = compare_largest(x->alloc, y->alloc);
		break;
	case REPORT_SORT_GROWTH:
		order = x->growth_rank - y->growth_rank;
		if (!order)
			order = (x->growth_bytes_per_s < y->growth_bytes_per_s) -
				(x->growth_bytes_per_s > y->growth_bytes_per_s);
		break;
	case REPORT_SORT_TEMPORARY:
		order = (x->temporary_objects < y->temporary_objects) -
			(x->temporary_objects > y->temporary_objects);
		break;
	case REPORT_SORT_PINNED:
		order = (x->pinned.bytes < y->pinned.bytes) - (x->pinned.bytes > y->pinned.bytes);
		break;
	case REPORT_SORT_NAME:
		order = strcmp(strset_get(r->names, x->name), strset_get(r->names, y->name));
		break;
	}
	if (!order)
		order = compare_largest(x->value, y->value);
	if (!order)
		order = compare_largest(x->cumulative, y->cumulative);
	if (!order)
		order = compare_largest(x->alloc, y->alloc);
	if (!order)
		order = strcmp(strset_get(r->names, x->name), strset_get(r->names, y->name));
	return order ? order :
		       (x->sample_first > y->sample_first) - (x->sample_first < y->sample_first);
}

int report_fold_rows(struct report *r, struct report_row *rows, size_t *cnt)
{
	struct report_row other = { .name = strset_add(r->names, "(other)") };
	size_t cap = r->opts->row_cap;

	if (other.name < 0)
		return -ENOMEM;
	if (!cap || *cnt <= cap)
		return 0;
	for (size_t i = cap; i < *cnt; i++)
		report_add_row(&other, &rows[i]);
	rows[cap] = other;
	*cnt = cap + 1;
	return 0;
}

/* The losses that a profile's comments tell. */

/* Does another line tell this counter? (In-use is unknown, the program paused, or the same in samples.) */
static bool is_said_elsewhere(const char *name)
{
	static const char *const names[] = { "alloc_only_samples", "paused", "live_full_bytes" };

	return equals_one_of(name, names, ARRAY_CNT(names));
}

static bool read_loss(const char *comment, struct report_loss *ret)
{
	char name[64];
	int used = 0;

	if (strncmp(comment, REPORT_LEDGER, strlen(REPORT_LEDGER)) != 0 ||
	    sscanf(comment, REPORT_LEDGER "%63s %llu (%n", name, &ret->cnt, &used) != 2 ||
	    !ret->cnt || is_said_elsewhere(name))
		return false;
	ret->text = comment + strlen(REPORT_LEDGER);
	ret->meaning = used ? comment + used : "of an unknown kind)";
	return true;
}

size_t report_find_losses(const struct profile *p, struct report_loss *ret_largest)
{
	struct report_loss loss;
	const int64_t *id;
	size_t cnt = 0;

	*ret_largest = (struct report_loss){ 0 };
	vec_each(&p->comments, id) {
		if (!read_loss(profile_text(p, *id), &loss))
			continue;
		cnt++;
		if (loss.cnt > ret_largest->cnt)
			*ret_largest = loss;
	}
	return cnt;
}

bool report_lacks(const struct profile *p, enum report_lack what)
{
	/* NULL at the end */
	static const char *const names[][5] = {
		[REPORT_LACKS_STACKS] = { "stacks_full", "stack_collisions", "share_stacks" },
		[REPORT_LACKS_BLOCKS] = { "live_full", "share_live", "scratch_busy",
					  "pending_full" },
		[REPORT_LACKS_LIVING] = { "tap_late" },
		[REPORT_LACKS_PROCESSES] = { "tap_late", "tap_never" },
	};
	struct report_loss loss;
	const int64_t *id;

	vec_each(&p->comments, id) {
		if (!read_loss(profile_text(p, *id), &loss))
			continue;
		for (const char *const *name = names[what]; *name; name++)
			if (!strncmp(loss.text, *name, strlen(*name)) &&
			    loss.text[strlen(*name)] == ' ')
				return true;
	}
	return false;
}

bool report_has_losses(const struct profile *p)
{
	struct report_loss largest;

	return report_find_losses(p, &largest) > 0;
}
