/* SPDX-License-Identifier: MIT */
/*
 * report_rows.c - see report_rows.h.
 *
 * Every sample is charged to exactly one row, so the rows add up to the total to the byte. Error
 * bars come from the samples' own variances if the file has them. In a file of another tool they
 * are inferred from bytes, objects and the sampling period (estimate_variance_from_sums()), if it
 * says that it was sampled by bytes. Variances of independent samples add up.
 */
#include "report/report_rows.h"

#include "report/report_losses.h"

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

static int64_t value_of(const struct report *r, const struct profile_sample *s, int type)
{
	return type < 0 ? 0 : r->p->values.data[s->value_first + type];
}

static const char *unit_of(const struct report *r, int type)
{
	return profile_text(r->p, r->p->types.data[type].unit_str);
}

/* "alloc_space" -> the type "alloc_objects" */
static int find_objects_type(const struct profile *p, const char *name)
{
	static const char suffix[] = "_space";
	size_t n = strlen(name), cut = sizeof(suffix) - 1;
	char text[64];

	if (!strcmp(name, "space"))
		return profile_find_type(p, "objects");
	if (n < cut || n > 40 || strcmp(name + n - cut, suffix) != 0)
		return -1;
	snprintf(text, sizeof(text), "%.*s_objects", (int)(n - cut), name);
	return profile_find_type(p, text);
}

/* Bins divide what was allocated. */
static bool is_by_bin(const struct report_options *o)
{
	return o->by == REPORT_BY_LIFETIME || o->by == REPORT_BY_SIZE;
}

static bool wants_alloc(const struct report *r)
{
	const struct report_options *o = r->opts;

	if (is_by_bin(o))
		return true;
	if (o->value == REPORT_VALUE_DEFAULT)
		return r->is_unknown && o->format == REPORT_TEXT;
	return o->value == REPORT_VALUE_ALLOC;
}

bool report_is_by_class(const struct report_options *o)
{
	return o->by == REPORT_BY_AGE || is_by_bin(o);
}

static void choose_types(struct report *r)
{
	const struct profile *p = r->p;
	const char *name;
	bool has_alloc;

	r->is_unknown = p->recording.is_known && p->recording.inuse == RECORDING_INUSE_UNKNOWN;
	r->has_bins = p->has_bins;
	r->has_lifetimes = p->has_bins && !r->is_unknown;
	r->value_type = profile_find_type(p, wants_alloc(r) ? "alloc_space" : "inuse_space");
	r->is_inuse = r->value_type >= 0 && !wants_alloc(r);
	if (r->value_type < 0 && p->default_type_str)
		r->value_type = profile_find_type(p, profile_text(p, p->default_type_str));
	if (r->value_type < 0)
		r->value_type = (int)p->types.cnt - 1;
	name = profile_text(p, p->types.data[r->value_type].type_str);
	r->is_alloc = !strcmp(name, "alloc_space");
	r->objects_type = find_objects_type(p, name);
	if (r->is_inuse && p->moment.at == PROFILE_AT_TIME) /* blocks are not kept for it */
		r->objects_type = -1;
	/* allocated values are not divided by age, and nobody's are known to be 0 */
	has_alloc = r->is_inuse && r->opts->by != REPORT_BY_AGE && !p->recording.has_no_tap;
	r->alloc_type = has_alloc ? profile_find_type(p, "alloc_space") : -1;
	r->alloc_objects_type = has_alloc ? profile_find_type(p, "alloc_objects") : -1;
	/* it is of the end, and not divided by age or task */
	r->pinned_type = r->is_inuse && p->moment.at == PROFILE_AT_END &&
					 !report_is_by_class(r->opts) &&
					 r->opts->by != REPORT_BY_INSTANCE ?
				 profile_find_type(p, "pinned_space") :
				 -1;
}

/* Older files have numbers of in-use samples, but none of alloc samples. */
static void choose_alloc_interval(struct report *r)
{
	const struct profile_sample *s;

	if (r->alloc_type < 0)
		return;
	vec_each(&r->p->samples, s)
		r->has_alloc_samples |= s->has_error && s->alloc_samples;
	r->has_alloc_interval =
		r->has_alloc_samples || (r->rate_bytes && r->alloc_objects_type >= 0 &&
					 !strcmp(unit_of(r, r->alloc_type), "bytes"));
}

static void choose_interval(struct report *r)
{
	const struct profile *p = r->p;
	const struct profile_sample *s;
	bool is_by_bytes = !strcmp(profile_text(p, p->period_type.type_str), "space") &&
			   !strcmp(profile_text(p, p->period_type.unit_str), "bytes");
	bool has_error_bars = p->recording.is_known && !r->is_inuse;

	vec_each(&p->samples, s) {
		has_error_bars |= s->has_error;
		r->has_samples |=
			s->has_error && (r->is_inuse || (r->is_alloc && s->alloc_samples));
	}
	r->rate_bytes = is_by_bytes && p->period > 0 ? (uint64_t)p->period : 0;
	/* If some samples have bars of their own, those of others must not be guessed. */
	r->has_interval =
		r->has_samples || (r->rate_bytes && !has_error_bars && r->objects_type >= 0 &&
				   !strcmp(unit_of(r, r->value_type), "bytes"));
	choose_alloc_interval(r);
}

static void infer_from_sums(const struct report *r, struct estimate *e)
{
	e->bytes_variance = estimate_variance_from_sums(e->bytes, e->objects, r->rate_bytes);
	e->samples = e->bytes_variance > 0 ? llround(e->bytes * e->bytes / e->bytes_variance) : 0;
}

/* If in-use is known only from a later time than the recording's begin, growth counts from then on. */
static void choose_growth(struct report *r)
{
	const struct profile *p = r->p;
	const struct recording *rec = &p->recording;
	int64_t from_ns = 0, warm_up_ns = (int64_t)r->opts->warm_up_ns;

	if (!rec->is_known || !r->is_inuse || r->is_unknown)
		return;
	if (rec->inuse == RECORDING_INUSE_SINCE && rec->inuse_since_ns > rec->begin_ns)
		from_ns = rec->inuse_since_ns - rec->begin_ns;
	from_ns = from_ns > warm_up_ns ? from_ns : warm_up_ns;
	/* A server forgets what was long ago. */
	if (p->moments_ns.cnt &&
	    p->moments_ns.data[0] - from_ns > (rec->duration_ns - from_ns) / GROWTH_WINDOW_CNT)
		from_ns = p->moments_ns.data[0];
	growth_plan_init(&r->growth_plan, p->moments_ns.data, p->moments_ns.cnt, from_ns,
			 rec->duration_ns, (double)p->period);
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
		.bytes = value_of(r, s, r->value_type),
		.objects = value_of(r, s, r->objects_type),
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
		.bytes = value_of(r, s, r->alloc_type),
		.objects = value_of(r, s, r->alloc_objects_type),
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
					 .bytes = value_of(r, s, r->pinned_type),
					 .bytes_variance = s->pinned_bytes_variance };

	row->value = report_add_saturating(row->value, value_of(r, s, r->value_type));
	row->objects = report_add_saturating(row->objects, value_of(r, s, r->objects_type));
	row->alloc = report_add_saturating(row->alloc, value_of(r, s, r->alloc_type));
	row->alloc_objects =
		report_add_saturating(row->alloc_objects, value_of(r, s, r->alloc_objects_type));
	estimate_merge(&row->estimate, &e);
	estimate_merge(&row->alloc_estimate, &alloc);
	estimate_merge(&row->pinned, &pinned);
	add_growth(r, s, &row->growth);
	add_ages(r, s, &row->ages);
	add_bins(r, s, &row->bins);
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

/* Find or make the row with this name. index_by_name: id of name -> index of row. */
static int get_row(struct report *r, struct hmap *index_by_name, const char *name, size_t *ret)
{
	struct report_row row = { .name = strset_add(r->names, name) };
	const uint64_t *known;
	int err;

	if (row.name < 0)
		return -ENOMEM;
	known = hmap_get(index_by_name, &row.name);
	if (known) {
		*ret = *known;
		return 0;
	}
	err = vec_push(&r->rows, row);
	if (!err)
		err = hmap_put(index_by_name, &row.name, r->rows.cnt - 1);
	if (!err)
		*ret = r->rows.cnt - 1;
	return err;
}

/* Add a sample to every function on its stack, once each however often it is there. */
static int add_cumulative(struct report *r, struct hmap *index_by_name, uint32_t sample)
{
	const struct profile_sample *s = &r->p->samples.data[sample];
	struct report_frame_pos pos = { 0 };
	struct report_frame f;
	char buf[REPORT_NAME_BUF];

	while (report_next_frame(r->p, s, &pos, &f)) {
		struct report_row *row;
		size_t i;
		int err = get_row(r, index_by_name, report_frame_name(r->p, &f, buf, sizeof(buf)),
				  &i);

		if (err)
			return err;
		row = &r->rows.data[i];
		if (row->seen == sample + 1)
			continue;
		row->seen = sample + 1;
		row->cumulative =
			report_add_saturating(row->cumulative, value_of(r, s, r->value_type));
	}
	return 0;
}

static const char *leaf_name(const struct report *r, const struct profile_sample *s, char *buf)
{
	struct report_frame_pos pos = { 0 };
	struct report_frame f;

	if (!report_next_frame(r->p, s, &pos, &f))
		return "(no stack)";
	return report_frame_name(r->p, &f, buf, REPORT_NAME_BUF);
}

static const char *row_name(const struct report *r, const struct profile_sample *s, char *buf)
{
	switch (r->opts->by) {
	case REPORT_BY_MODULE:
		return report_sample_module(r, s);
	case REPORT_BY_THREAD:
		return report_sample_thread(r, s, buf);
	case REPORT_BY_PROCESS:
		return report_sample_process(r, s, buf);
	case REPORT_BY_LABEL:
		return report_sample_label(r, s, buf);
	default:
		return report_sample_function(r, s, buf);
	}
}

static int rows_by_name(struct report *r)
{
	struct hmap index_by_name;
	char buf[REPORT_NAME_BUF];
	int err = 0;

	hmap_init(&index_by_name, sizeof(int64_t));
	for (size_t k = 0; k < r->chosen.cnt && !err; k++) {
		uint32_t i = r->chosen.data[k];
		const struct profile_sample *s = &r->p->samples.data[i];
		size_t row;

		err = get_row(r, &index_by_name, row_name(r, s, buf), &row);
		if (err)
			break;
		report_add_sample(r, s, &r->rows.data[row]);
		if (r->opts->by == REPORT_BY_FUNCTION)
			err = add_cumulative(r, &index_by_name, i);
	}
	hmap_release(&index_by_name);
	return err;
}

static int compare_stacks(const void *a, const void *b, void *ctx)
{
	const struct profile *p = ctx;
	const struct profile_sample *x = &p->samples.data[*(const uint32_t *)a];
	const struct profile_sample *y = &p->samples.data[*(const uint32_t *)b];

	for (uint32_t i = 0; i < x->loc_cnt && i < y->loc_cnt; i++) {
		uint32_t u = p->sample_locs.data[x->loc_first + i];
		uint32_t v = p->sample_locs.data[y->loc_first + i];

		if (u != v)
			return u < v ? -1 : 1;
	}
	if (x->loc_cnt != y->loc_cnt)
		return x->loc_cnt < y->loc_cnt ? -1 : 1;
	return 0;
}

/* Samples of one stack are one row, whatever their labels. */
static int rows_by_stack(struct report *r)
{
	char buf[REPORT_NAME_BUF];

	for (size_t k = 0; k < r->chosen.cnt; k++)
		if (vec_push(&r->order, r->chosen.data[k]))
			return -ENOMEM;
	if (r->order.cnt)
		qsort_r(r->order.data, r->order.cnt, sizeof(*r->order.data), compare_stacks,
			(void *)r->p);
	for (uint32_t i = 0; i < r->order.cnt; i++) {
		const struct profile_sample *s = &r->p->samples.data[r->order.data[i]];
		struct report_row *last;

		if (!i || compare_stacks(&r->order.data[i - 1], &r->order.data[i], (void *)r->p)) {
			struct report_row row = { .sample_first = i };

			row.name = strset_add(r->names, leaf_name(r, s, buf));
			if (row.name < 0 || vec_push(&r->rows, row))
				return -ENOMEM;
		}
		last = &r->rows.data[r->rows.cnt - 1];
		last->sample_cnt++;
		report_add_sample(r, s, last);
	}
	return 0;
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

static int make_rows(struct report *r)
{
	struct report_row *row;
	int err;

	switch (r->opts->by) {
	case REPORT_BY_SCOPE:
		return report_rows_by_scope(r);
	case REPORT_BY_INSTANCE:
		return report_rows_by_instance(r);
	case REPORT_BY_STACK:
		err = rows_by_stack(r);
		break;
	case REPORT_BY_AGE:
		err = report_rows_by_age(r);
		break;
	case REPORT_BY_LIFETIME:
	case REPORT_BY_SIZE:
		err = report_rows_by_bin(r);
		break;
	default:
		err = rows_by_name(r);
	}
	if (!err)
		vec_each(&r->rows, row)
			report_rank(r, row);
	if (!err && r->rows.cnt)
		qsort_r(r->rows.data, r->rows.cnt, sizeof(*r->rows.data), report_compare_rows, r);
	if (err || report_is_screen(r->opts))
		return err;
	return report_fold_rows(r, r->rows.data, &r->rows.cnt);
}

int report_open(const struct profile *p, const struct report_options *opts, struct report **ret)
{
	struct report *r;
	int err;

	if (!p->types.cnt || p->samples.cnt >= UINT32_MAX)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->p = p;
	r->opts = opts;
	r->is_lossy = p->recording.is_known ? p->recording.is_lossy : report_has_losses(p);
	r->lacks_stacks = (opts->by == REPORT_BY_STACK || opts->by == REPORT_BY_FUNCTION ||
			   opts->by == REPORT_BY_MODULE) &&
			  report_lacks_stacks(p);
	choose_types(r);
	choose_interval(r);
	choose_growth(r);
	err = strset_new(&r->names);
	if (!err)
		err = report_select(r);
	report_set_moments(r);
	if (!err)
		err = make_rows(r);
	if (!err && r->has_unmatched)
		err = vec_push(&r->rows, r->unmatched);
	if (err)
		report_close(r);
	else
		*ret = r;
	return err;
}

void report_close(struct report *r)
{
	if (!r)
		return;
	strset_free(r->names);
	vec_release(&r->scopes);
	vec_release(&r->chosen);
	vec_release(&r->order);
	vec_release(&r->outstanding);
	vec_release(&r->rows);
	free(r);
}
