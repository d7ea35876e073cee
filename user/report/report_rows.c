/* SPDX-License-Identifier: MIT */
/*
 * report_rows.c - see report_rows.h.
 *
 * Every sample is charged to exactly one row, so the rows add up to the total to the byte.
 */
#include "report/report_rows.h"

#include "base/hmap.h"
#include "profile/match_list.h"
#include "profile/moment.h"
#include "profile/scope_tree.h"

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

/*
 * The scope of each sample, and which samples a report covers.
 *
 * --scope removes the rest: rows and total are those of the scope, and the head says how much of
 * the profile it is. --match removes nothing: what does not match becomes one row, so the rows
 * still add up to the total. Scopes are compared as they are shown; folded, if that was asked for.
 */

/* What happens to all samples of one scope. */
enum fate { FATE_CHOSEN, FATE_UNMATCHED, FATE_OUTSIDE };

struct verdict {
	int64_t path; /* in report.names */
	enum fate fate;
};

struct verdicts {
	VEC(struct verdict) list;
	struct hmap index; /* string of the label "scope" (0 = none) -> verdict */
};

static bool needs_scopes(const struct report_options *o)
{
	return o->by == REPORT_BY_SCOPE || o->by == REPORT_BY_INSTANCE || o->scope || o->match;
}

static int64_t shown_path(struct report *r, const char *path)
{
	char *folded;
	int64_t id;

	if (!r->opts->folds_repeated)
		return strset_add(r->names, path);
	folded = malloc(strlen(path) + 1);
	if (!folded)
		return -ENOMEM;
	scope_path_fold(path, folded);
	id = strset_add(r->names, folded);
	free(folded);
	return id;
}

static int judge(struct report *r, int64_t label, struct verdict *ret)
{
	const struct report_options *o = r->opts;
	const char *path;

	ret->path = shown_path(r, label ? profile_text(r->p, label) : SCOPE_NONE);
	if (ret->path < 0)
		return -ENOMEM;
	path = strset_get(r->names, ret->path);
	if (o->scope && !scope_path_is_in(path, o->scope))
		ret->fate = FATE_OUTSIDE;
	else if (o->match && !match_list_test(o->match, path))
		ret->fate = FATE_UNMATCHED;
	else
		ret->fate = FATE_CHOSEN;
	return 0;
}

static int get_verdict(struct report *r, struct verdicts *v, const struct profile_sample *s,
		       struct verdict *ret)
{
	const struct profile_label *scope = profile_find_label(r->p, s, "scope");
	int64_t label = scope ? scope->str : 0;
	uint64_t i;
	int err = hmap_add(&v->index, &label, v->list.cnt, &i);

	if (!err && i < v->list.cnt) {
		*ret = v->list.data[i];
		return 0;
	}
	if (!err)
		err = judge(r, label, ret);
	return err ? err : vec_push(&v->list, *ret);
}

static int select_one(struct report *r, uint32_t i, enum fate fate)
{
	const struct profile_sample *s = &r->p->samples.data[i];

	report_add_sample(r, s, &r->whole);
	if (fate == FATE_OUTSIDE)
		return 0;
	report_add_sample(r, s, &r->total);
	if (fate == FATE_CHOSEN)
		return vec_push(&r->chosen, i);
	report_add_sample(r, s, &r->unmatched);
	r->has_unmatched = true;
	return 0;
}

static int select_by_scope(struct report *r)
{
	struct verdicts known = { 0 };
	int err = 0;

	hmap_init(&known.index, sizeof(int64_t));
	for (uint32_t i = 0; i < r->p->samples.cnt && !err; i++) {
		struct verdict v;

		err = get_verdict(r, &known, &r->p->samples.data[i], &v);
		if (!err)
			err = vec_push(&r->scopes, v.path);
		if (!err)
			err = select_one(r, i, v.fate);
	}
	vec_release(&known.list);
	hmap_release(&known.index);
	return err;
}

/* Fill scopes, chosen, unmatched, total and whole; name the unmatched row. */
static int select_samples(struct report *r)
{
	int err = 0;

	r->unmatched.name = strset_add(r->names, "(not matched)");
	if (r->unmatched.name < 0)
		return -ENOMEM;
	if (needs_scopes(r->opts))
		err = select_by_scope(r);
	else
		for (uint32_t i = 0; i < r->p->samples.cnt && !err; i++)
			err = select_one(r, i, FATE_CHOSEN);
	r->unmatched.cumulative = r->unmatched.value;
	report_set_exclusive(&r->unmatched);
	return err;
}

const char *report_sample_scope(const struct report *r, const struct profile_sample *s)
{
	return strset_get(r->names, r->scopes.data[s - r->p->samples.data]);
}

static struct report_row row_of(const struct estimate *e)
{
	return (struct report_row){ .value = profile_value(e->bytes),
				    .objects = profile_value(e->objects),
				    .estimate = *e };
}

static void set_moments(struct report *r)
{
	struct estimate peak;

	if (!report_is_at_end(r))
		r->end = row_of(&r->p->moment.end);
	if (profile_peak(r->p, &peak))
		r->at_peak = row_of(&peak);
}

/* Find or make the row with this name. index_by_name: id of name -> index of row. */
static int get_row(struct report *r, struct hmap *index_by_name, const char *name, size_t *ret)
{
	struct report_row row = { .name = strset_add(r->names, name) };
	int err;

	if (row.name < 0)
		return -ENOMEM;
	err = hmap_add(index_by_name, &row.name, r->rows.cnt, ret);
	return err || *ret < r->rows.cnt ? err : vec_push(&r->rows, row);
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
		row->cumulative = report_add_saturating(row->cumulative,
							report_sample_value(r, s, r->value_type));
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
	vec_sort_r(&r->order, compare_stacks, r->p);
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

/*
 * The rows by age, lifetime and size: what is in use by its age, and what was allocated by its lifetime or size.
 *
 * Each sample is divided among the classes of its blocks. Its value is in whole bytes, the parts
 * are not. So the running sum up to each class is rounded, and the rows add up to the total to the
 * byte.
 *
 * Blocks that are not freed have no lifetime: they have lived at least their age, and may live on.
 * They are a row of their own, so that nobody takes the lifetimes of freed blocks for those of all
 * blocks.
 */

/* The last two classes of any kind. */
#define NOT_FREED HT_BIN_CNT
#define NOT_KNOWN (HT_BIN_CNT + 1)
#define CLASS_CNT (HT_BIN_CNT + 2)
_Static_assert(AGE_CLASS_CNT <= HT_BIN_CNT, "ages and bins have room in one table");

/* A sample while it is divided. */
struct division {
	struct report_row whole;
	struct estimate sum; /* of the parts so far; given to rows so far: */
	int64_t bytes, objects;
};

static struct division divide(const struct report *r, const struct profile_sample *s)
{
	struct division d = { 0 };

	report_add_sample(r, s, &d.whole);
	return d;
}

/* Round, up to the value of the sample: a file may have any values as parts. */
static int64_t rounded(double sum, int64_t whole)
{
	return sum < (double)whole ? llround(sum) : whole;
}

static void give(struct division *d, struct report_row *row, const struct estimate *part,
		 int64_t bytes_to, int64_t objects_to)
{
	struct estimate e = *part;

	e.rate_bytes = d->whole.estimate.rate_bytes;
	row->value = report_add_saturating(row->value, bytes_to - d->bytes);
	row->objects = report_add_saturating(row->objects, objects_to - d->objects);
	estimate_merge(&row->estimate, &e);
	estimate_merge(&d->sum, part);
	d->bytes = bytes_to;
	d->objects = objects_to;
}

static void give_part(struct division *d, struct report_row *row, const struct estimate *part)
{
	give(d, row, part, rounded(d->sum.bytes + part->bytes, d->whole.value),
	     rounded(d->sum.objects + part->objects, d->whole.objects));
}

/* Give what remains. */
static void give_rest(struct division *d, struct report_row *row)
{
	struct estimate rest = d->whole.estimate;

	if (d->objects && d->objects == d->whole.objects && d->bytes == d->whole.value)
		return;
	estimate_subtract(&rest, &d->sum);
	if (isnan(d->sum.bytes_variance))
		rest.bytes_variance = NAN;
	give(d, row, &rest, d->whole.value, d->whole.objects);
}

static void divide_by_age(const struct report *r, const struct profile_sample *s,
			  struct report_row *rows)
{
	struct division d = divide(r, s);

	for (uint32_t i = 0; i < s->age_cnt; i++) {
		const struct age_part *part = &r->p->ages.data[s->age_first + i];
		const struct estimate e = { .samples = part->samples,
					    .bytes = part->bytes,
					    .bytes_variance = part->bytes_variance,
					    .objects = part->objects,
					    .objects_variance = part->objects_variance };

		if (i + 1 < s->age_cnt)
			give_part(&d, &rows[part->age_class], &e);
		else
			give(&d, &rows[part->age_class], &e, d.whole.value, d.whole.objects);
	}
	give_rest(&d, &rows[NOT_KNOWN]);
}

/* Give what was freed at an unknown time. */
static void give_freed(struct division *d, const struct profile_sample *s, struct report_row *row)
{
	struct estimate part = { .bytes = fmax(0, s->freed_bytes - d->sum.bytes),
				 .objects = fmax(0, s->freed_objects - d->sum.objects),
				 .bytes_variance = NAN };

	/* less is left by rounding */
	if (part.bytes >= 1 || part.objects >= 1)
		give_part(d, row, &part);
}

static void divide_by_bin(const struct report *r, const struct profile_sample *s,
			  struct report_row *rows)
{
	bool is_by_size = r->opts->by == REPORT_BY_SIZE;
	bool is_since = r->p->recording.inuse == RECORDING_INUSE_SINCE;
	struct division d = divide(r, s);

	for (uint32_t i = 0; i < s->bin_cnt; i++) {
		const struct bin_part *part = &r->p->bins.data[s->bin_first + i];
		const struct estimate e = { .samples = part->samples,
					    .bytes = part->bytes,
					    .bytes_variance = part->bytes_variance,
					    .objects = part->objects };

		if ((part->bin < HT_BIN_LIFE) == is_by_size)
			give_part(&d, &rows[part->bin], &e);
	}
	if (!is_by_size)
		give_freed(&d, s, &rows[NOT_KNOWN]);
	/* frees before that time were not seen, so a missing free is no life that goes on */
	give_rest(&d, &rows[is_by_size || is_since ? NOT_KNOWN : NOT_FREED]);
}

static const char *class_name(const struct report *r, uint32_t c, char buf[AGE_NAME_BUF])
{
	_Static_assert(AGE_NAME_BUF >= BIN_NAME_BUF, "room for either");

	if (c == NOT_KNOWN)
		return "(not known)";
	if (c == NOT_FREED)
		return "(not freed)";
	return r->opts->by == REPORT_BY_AGE ? age_class_name(c, buf) : bin_name(c, buf);
}

/* By age: oldest first; else in class order. */
static int push_rows(struct report *r, struct report_row *rows)
{
	char name[AGE_NAME_BUF];

	for (uint32_t c = 0; c < CLASS_CNT; c++) {
		struct report_row *row = &rows[c];

		if (!row->value && !row->objects && !row->estimate.samples)
			continue;
		row->class_rank = r->opts->by == REPORT_BY_AGE && c < AGE_CLASS_CNT ?
					  AGE_CLASS_CNT - 1 - c :
					  c;
		row->name = strset_add(r->names, class_name(r, c, name));
		if (row->name < 0 || vec_push(&r->rows, *row))
			return -ENOMEM;
	}
	return 0;
}

static int rows_by_class(struct report *r)
{
	struct report_row rows[CLASS_CNT] = { 0 };
	const uint32_t *i;

	vec_each(&r->chosen, i) {
		const struct profile_sample *s = &r->p->samples.data[*i];

		if (r->opts->by == REPORT_BY_AGE)
			divide_by_age(r, s, rows);
		else
			divide_by_bin(r, s, rows);
	}
	return push_rows(r, rows);
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
	case REPORT_BY_LIFETIME:
	case REPORT_BY_SIZE:
		err = rows_by_class(r);
		break;
	default:
		err = rows_by_name(r);
	}
	if (!err)
		vec_each(&r->rows, row)
			report_rank(r, row);
	if (!err)
		vec_sort_r(&r->rows, report_compare_rows, r);
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
			  report_lacks(p, REPORT_LACKS_STACKS);
	choose_types(r);
	choose_interval(r);
	choose_growth(r);
	err = strset_new(&r->names);
	if (!err)
		err = select_samples(r);
	set_moments(r);
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
