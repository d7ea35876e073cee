/* SPDX-License-Identifier: MIT */
/*
 * report_diff.c - the rows of a difference of two profiles, each with its interval (see report_diff.h).
 *
 * In the interval of a difference a - b, each end is as far from a - b as both errors reach together,
 *	low  = (a - b) - sqrt((a - a_low)^2 + (b_high - b)^2)
 *	high = (a - b) + sqrt((a_high - a)^2 + (b - b_low)^2)
 * (Zou and Donner 2008, "Construction of confidence limits about effect measures", who call it MOVER). Unlike a normal
 * interval this stays lopsided where a row has few samples and is more uncertain upwards. A row that only one profile has
 * gets an interval in the other, too: from 0 to the bytes that may have been missed.
 *
 * The profiles are treated as independent. Two moments of one recording share the blocks that lived at both, so the
 * interval of their difference is too wide, never too narrow.
 *
 * A difference is also made into one profile with the samples of both. For pprof's readers the values of before are
 * negative, so that sums are changes. For the flame graph they are positive, and the first samples are those of
 * before.
 */
#include "report/report_diff.h"

#include "base/err.h"
#include "base/hmap.h"
#include "base/json.h"
#include "base/units.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "profile/witness.h"
#include "report/report_diff_rows.h"
#include "report/report_places.h"
#include "report/report_text.h"

/* Appends samples of one profile to another: for sums and differences of profiles. */
struct append {
	struct profile *to;
	const struct profile *from;
	int64_t *strings; /* id of `from` -> id of `to`; -1: not known yet */
	uint32_t mapping_first, function_first, line_first, location_first; /* in `to` */
	VEC(int) types; /* of `to` -> of `from` or -1 */
	VEC(uint32_t) locs;
	VEC(int64_t) values;
	VEC(struct profile_label) labels;
};

/* false: no memory. */
static bool take_string(struct append *a, int64_t id, int64_t *ret)
{
	if (a->strings[id] < 0)
		a->strings[id] = profile_str(a->to, profile_text(a->from, id));
	*ret = a->strings[id];
	return *ret >= 0;
}

static int begin(struct append *a)
{
	size_t cnt = strset_cnt(a->from->strings);
	const struct profile_type *type;

	a->strings = malloc(cnt * sizeof(*a->strings));
	if (!a->strings)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		a->strings[i] = -1;
	a->mapping_first = (uint32_t)a->to->mappings.cnt;
	a->function_first = (uint32_t)a->to->functions.cnt;
	a->line_first = (uint32_t)a->to->lines.cnt;
	a->location_first = (uint32_t)a->to->locations.cnt;
	vec_each(&a->to->types, type)
		if (vec_push(&a->types,
			     profile_find_type(a->from, profile_text(a->to, type->type_str))))
			return -ENOMEM;
	return 0;
}

static int append_tables(struct append *a)
{
	const struct profile_mapping *m;
	const struct profile_function *f;
	const struct profile_line *line;
	const struct profile_location *l;

	vec_each(&a->from->mappings, m) {
		struct profile_mapping copy = *m;

		if (!take_string(a, m->filename_str, &copy.filename_str) ||
		    !take_string(a, m->build_id_str, &copy.build_id_str) ||
		    vec_push(&a->to->mappings, copy))
			return -ENOMEM;
	}
	vec_each(&a->from->functions, f) {
		struct profile_function copy = *f;

		if (!take_string(a, f->name_str, &copy.name_str) ||
		    !take_string(a, f->system_name_str, &copy.system_name_str) ||
		    !take_string(a, f->filename_str, &copy.filename_str) ||
		    vec_push(&a->to->functions, copy))
			return -ENOMEM;
	}
	vec_each(&a->from->lines, line) {
		struct profile_line copy = *line;

		copy.function += a->function_first;
		if (vec_push(&a->to->lines, copy))
			return -ENOMEM;
	}
	vec_each(&a->from->locations, l) {
		struct profile_location copy = *l;

		copy.line_first += a->line_first;
		if (copy.mapping != HT_NO_INDEX)
			copy.mapping += a->mapping_first;
		if (vec_push(&a->to->locations, copy))
			return -ENOMEM;
	}
	return 0;
}

static int copy_labels(struct append *a, const struct profile_sample *s)
{
	a->labels.cnt = 0;
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		struct profile_label l = a->from->labels.data[s->label_first + i];

		if (!take_string(a, l.key_str, &l.key_str) || !take_string(a, l.str, &l.str) ||
		    !take_string(a, l.num_unit_str, &l.num_unit_str) || vec_push(&a->labels, l))
			return -ENOMEM;
	}
	return 0;
}

/* value * sign. Somebody's file may have INT64_MIN, which has no opposite. */
static int64_t signed_value(int64_t value, int sign)
{
	return sign > 0 ? value : value == INT64_MIN ? INT64_MAX : -value;
}

static int append_sample(struct append *a, const struct profile_sample *s, int sign)
{
	const int64_t *values = a->from->values.data + s->value_first;
	struct profile_sample *copy;
	int err = copy_labels(a, s);

	a->locs.cnt = a->values.cnt = 0;
	for (uint32_t i = 0; i < s->loc_cnt && !err; i++)
		err = vec_push(&a->locs,
			       a->from->sample_locs.data[s->loc_first + i] + a->location_first);
	for (size_t i = 0; i < a->types.cnt && !err; i++) {
		int type = a->types.data[i];

		err = vec_push(&a->values, type < 0 ? 0 : signed_value(values[type], sign));
	}
	if (!err)
		err = profile_add_sample(a->to, a->locs.data, a->locs.cnt, a->values.data,
					 a->labels.data, a->labels.cnt, &copy);
	if (err || sign < 0)
		return err;
	copy->has_error = s->has_error;
	copy->inuse_samples = s->inuse_samples;
	copy->inuse_bytes_variance = s->inuse_bytes_variance;
	copy->inuse_objects_variance = s->inuse_objects_variance;
	copy->alloc_samples = s->alloc_samples;
	copy->alloc_bytes_variance = s->alloc_bytes_variance;
	copy->alloc_bytes_beyond = s->alloc_bytes_beyond;
	copy->peak_samples = s->peak_samples;
	copy->peak_bytes_variance = s->peak_bytes_variance;
	copy->peak_objects = s->peak_objects;
	return 0;
}

/*
 * Append the samples with these indexes. Values: those of the types that `to` has (0 where `from` lacks the type), each
 * times sign (1 or -1). Stacks and labels are copied and, if sign is 1, the data of the error bars; no history, ages or
 * bins. Nothing is merged: readers sum up by name. 0 or -ENOMEM; then `to` must be thrown away.
 */
static int profile_append(struct profile *to, const struct profile *from, const uint32_t *samples,
			  size_t cnt, int sign)
{
	struct append a = { .to = to, .from = from };
	int err = begin(&a);

	if (!err)
		err = append_tables(&a);
	for (size_t i = 0; i < cnt && !err; i++)
		err = append_sample(&a, &from->samples.data[samples[i]], sign);
	free(a.strings);
	vec_release(&a.types);
	vec_release(&a.locs);
	vec_release(&a.values);
	vec_release(&a.labels);
	return err;
}

#define PLAIN_ROWS 50 /* in the text of a page */

/* Lines do not count: another build has others. */
static void name_row(const struct report *r, const struct report_row *row,
		     struct report_named_place *ret)
{
	report_name_row(r, row, ret);
	ret->hint = NULL;
	ret->own.place[0] = '\0';
	for (size_t i = 0; i < ret->caller_cnt; i++)
		ret->caller[i].place[0] = '\0';
}

/* The name of a row of d->rows, frame by frame. */
static void diff_name_row(const struct diff *d, const struct diff_row *row,
			  struct report_named_place *ret)
{
	name_row(d->side[row->from_side].r, row->from, ret);
}

/* The name by which a row is compared. */
static int64_t key_of(struct diff *d, const struct report *r, const struct report_row *row)
{
	char buf[4 * REPORT_NAME_BUF + 16];
	struct report_named_place place;
	size_t used;

	name_row(r, row, &place);
	report_strip_tier(place.own.name);
	used = (size_t)snprintf(buf, sizeof(buf), "%s", place.own.name);
	for (size_t i = 0; i < place.caller_cnt && used < sizeof(buf); i++) {
		report_strip_tier(place.caller[i].name);
		used += (size_t)snprintf(buf + used, sizeof(buf) - used, " < %s",
					 place.caller[i].name);
	}
	return strset_add(d->names, buf);
}

static int add_row(struct diff *d, int which, const struct report_row *row)
{
	int64_t name = key_of(d, d->side[which].r, row);
	const uint64_t *known;
	struct diff_row *to;

	if (name < 0)
		return -ENOMEM;
	known = hmap_get(&d->index, &name);
	if (!known &&
	    (vec_push(&d->rows,
		      ((struct diff_row){ .name = name, .from = row, .from_side = which })) ||
	     hmap_put(&d->index, &name, d->rows.cnt - 1)))
		return -ENOMEM;
	to = known ? &d->rows.data[*known] : &d->rows.data[d->rows.cnt - 1];
	to->is_in[which] = true;
	report_add_row(&to->at[which], row);
	return 0;
}

/* A row that a profile lacks was not seen in it: it held nothing, or less than what is always seen. */
static void compare(const struct diff *d, struct diff_row *row)
{
	double value[2], low[2], high[2];
	bool is_known = true;

	for (int i = 0; i < 2; i++) {
		const struct report *r = d->side[i].r;

		row->at[i].estimate.rate_bytes = (double)r->rate_bytes;
		value[i] = (double)row->at[i].value;
		is_known &= report_interval(r, &row->at[i], &low[i], &high[i]);
	}
	row->delta = value[1] - value[0];
	row->low = row->high = NAN;
	row->is_significant = false;
	if (!is_known)
		return;
	row->low = row->delta - hypot(value[1] - low[1], high[0] - value[0]);
	row->high = row->delta + hypot(high[1] - value[1], value[0] - low[0]);
	row->is_significant = row->low > 0 || row->high < 0;
}

/* Rows that are more than chance first, then by size. */
static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct diff_row *x = a, *y = b;
	const struct diff *d = ctx;
	double u = fabs(x->delta), v = fabs(y->delta);

	if (x->is_significant != y->is_significant)
		return x->is_significant ? -1 : 1;
	if (u != v)
		return u > v ? -1 : 1;
	return strcmp(strset_get(d->names, x->name), strset_get(d->names, y->name));
}

static int make_rows(struct diff *d)
{
	const struct report_row *row;
	struct diff_row *to;
	int err = 0;

	for (int i = 0; i < 2; i++) {
		vec_each(&d->side[i].r->rows, row) {
			/* Only a caller, or freed by now */
			if (!row->value && !row->estimate.samples)
				continue;
			err = add_row(d, i, row);
			if (err)
				return err;
		}
		d->total.at[i] = d->side[i].r->total;
		d->total.is_in[i] = true;
	}
	vec_each(&d->rows, to)
		compare(d, to);
	compare(d, &d->total);
	if (d->rows.cnt)
		qsort_r(d->rows.data, d->rows.cnt, sizeof(*d->rows.data), compare_rows, d);
	return 0;
}

/* Choose the rows to be shown one by one; sum up the others. */
static void choose_rows(struct diff *d)
{
	size_t cap = d->opts->row_cap ? d->opts->row_cap : SIZE_MAX;
	bool is_text = d->opts->format != REPORT_JSON;

	for (size_t i = 0; i < d->rows.cnt; i++) {
		struct diff_row *row = &d->rows.data[i];

		d->chance_cnt += !row->is_significant && !isnan(row->low);
		if (i < cap && (!is_text || row->is_significant || isnan(row->low))) {
			d->shown_cnt++;
			continue;
		}
		d->rest_cnt++;
		d->rest.is_in[0] = d->rest.is_in[1] = true;
		for (int k = 0; k < 2; k++)
			report_add_row(&d->rest.at[k], &row->at[k]);
	}
	compare(d, &d->rest);
}

static int check_sides(const struct diff *d, struct err *why)
{
	const char *type[2];

	for (int i = 0; i < 2; i++) {
		const struct report *r = d->side[i].r;

		type[i] = r->value_type < 0 ?
				  "" :
				  profile_text(r->p, r->p->types.data[r->value_type].type_str);
		if (r->is_unknown && r->is_inuse)
			return err_set(why, -EINVAL,
				       "heap in use is unknown in %s; --value alloc compares "
				       "allocations",
				       d->side[i].name);
	}
	if (!strcmp(type[0], type[1]))
		return 0;
	return err_set(why, -EINVAL, "cannot compare: %s has %s, %s has %s", d->side[0].name,
		       type[0][0] ? type[0] : "nothing", d->side[1].name,
		       type[1][0] ? type[1] : "nothing");
}

int diff_open(const struct profile *before, const char *before_name, const struct profile *after,
	      const char *after_name, struct report_options *o, struct diff *ret, struct err *why)
{
	struct diff *d = ret;
	int err;

	*d = (struct diff){ .side = { { .name = before_name }, { .name = after_name } },
			    .opts = o };
	if (o->by_is_default && report_has_scopes(before) && report_has_scopes(after))
		o->by = REPORT_BY_SCOPE;
	d->whole = *o;
	d->whole.row_cap = 0; /* rows are folded after comparing */
	d->whole.format = REPORT_JSON;
	hmap_init(&d->index, sizeof(int64_t));
	err = strset_new(&d->names);
	if (!err)
		err = report_open(before, &d->whole, &d->side[0].r);
	if (!err)
		err = report_open(after, &d->whole, &d->side[1].r);
	if (!err)
		err = check_sides(d, why);
	if (!err)
		err = make_rows(d);
	if (!err)
		choose_rows(d);
	return err;
}

void diff_release(struct diff *d)
{
	report_close(d->side[0].r);
	report_close(d->side[1].r);
	strset_free(d->names);
	hmap_release(&d->index);
	vec_release(&d->rows);
}

/* A difference as text and as JSON. */

#define CELL_COLUMNS 52 /* columns in front of a name */

static char *format_delta(const struct diff *d, const struct diff_row *row, char *buf,
			  size_t buf_bytes)
{
	char text[32];

	snprintf(buf, buf_bytes, "%s%s", row->delta > 0 ? "+" : "",
		 report_format_value(d->side[1].r, row->delta, text));
	return buf;
}

/* "+1.2 MiB to +3.4 MiB" */
static char *format_interval(const struct diff *d, const struct diff_row *row, char *buf,
			     size_t buf_bytes)
{
	char low[32], high[32];

	report_format_value(d->side[1].r, row->low, low);
	report_format_value(d->side[1].r, row->high, high);
	if (!strcmp(low, high)) /* "155 MiB to 155 MiB" would say nothing */
		snprintf(buf, buf_bytes, "%s%s", row->low > 0 ? "+" : "", low);
	else
		snprintf(buf, buf_bytes, "%s%s to %s%s", row->low > 0 ? "+" : "", low,
			 row->high > 0 ? "+" : "", high);
	return buf;
}

/* Three digits; of 1000 to 1023 KiB four, for "%.3g" would say "1e+03". */
static const char *signed_number(double value, char buf[static 12])
{
	snprintf(buf, 12, fabs(value) < 999.5 ? "%+.3g" : "%+.0f", value);
	return buf;
}

/* Both ends in one unit: "+1.2 +3.4 MiB". */
static char *format_short_interval(const struct diff *d, const struct diff_row *row, char *buf,
				   size_t buf_bytes)
{
	double larger = fmax(fabs(row->low), fabs(row->high)), unit = 1;
	char text[32], low[12], high[12];

	if (isnan(row->low)) {
		buf[0] = 0;
		return buf;
	}
	if (row->low == row->high) {
		snprintf(buf, buf_bytes, "exact");
		return buf;
	}
	while (larger / unit >= 1024)
		unit *= 1024;
	/* take the unit's word from behind the number */
	report_format_value(d->side[1].r, larger, text);
	snprintf(buf, buf_bytes, "%s %s%s", signed_number(row->low / unit, low),
		 signed_number(row->high / unit, high), strchr(text, ' ') ? strchr(text, ' ') : "");
	return buf;
}

static const char *verdict(const struct diff_row *row)
{
	return isnan(row->low)	     ? "significance unknown" :
	       row->low == row->high ? "exact" :
	       row->is_significant   ? "beyond sampling noise" :
				       "within sampling noise";
}

static void put_cells(const struct diff *d, const struct diff_row *row, FILE *out)
{
	char delta[40], interval[40], value[32];

	fprintf(out, "%11s  %-17s", format_delta(d, row, delta, sizeof(delta)),
		format_short_interval(d, row, interval, sizeof(interval)));
	for (int i = 0; i < 2; i++)
		fprintf(out, " %9s",
			row->is_in[i] ?
				report_format_value(d->side[i].r, (double)row->at[i].value, value) :
			i ? "gone" :
			    "new");
}

/* The growth of the process that the rows cannot explain. */
static void find_unexplained(const struct diff *d, struct witness *ret)
{
	*ret = (struct witness){ 0 };
	if (d->side[1].r->is_inuse && !d->opts->scope)
		witness_compare(d->side[0].r->p, d->side[1].r->p, ret);
}

/* A loss can make what is in use too low or, of frees, too high. */
static bool lacks_a_part(const struct report *r)
{
	return r->is_lossy || report_is_least(r);
}

void diff_write_head(const struct diff *d, FILE *out)
{
	const struct report *r = d->side[1].r;
	char delta[40], interval[80], a[32], b[32], name[2][REPORT_FIT_BUF], words[WITNESS_WORDS];
	bool is_least[2], lacks[2];
	struct witness w;

	for (int i = 0; i < 2; i++) {
		report_fit_name(d->side[i].name, sizeof(name[i]) / 2, name[i]);
		is_least[i] = report_is_least(d->side[i].r);
		lacks[i] = lacks_a_part(d->side[i].r);
	}
	fprintf(out, "%s -> %s\n", name[0], name[1]);
	fprintf(out, "%s: %s%s -> %s%s: %s", r->is_inuse ? "In use" : report_value_title(r),
		is_least[0] ? "at least " : "",
		report_format_value(d->side[0].r, (double)d->total.at[0].value, a),
		is_least[1] ? "at least " : "",
		report_format_value(r, (double)d->total.at[1].value, b),
		format_delta(d, &d->total, delta, sizeof(delta)));
	if (!isnan(d->total.low) && d->total.low != d->total.high)
		fprintf(out, " (%s, 95 %%)",
			format_interval(d, &d->total, interval, sizeof(interval)));
	fprintf(out, ": %s\n", verdict(&d->total));
	if (lacks[0] || lacks[1])
		fprintf(out,
			"> not everything was recorded %s: part of the change may be due to that "
			"(heaptap report --notes)\n",
			!lacks[1] ? "before" :
			!lacks[0] ? "after" :
				    "before and after");
	find_unexplained(d, &w);
	if (w.is_unexplained)
		report_put_wrapped(witness_words(&w, words), 2, report_columns(r), out);
}

static int put_rows(const struct diff *d, FILE *out)
{
	const struct report *r = d->side[1].r;
	struct report_named_place place;
	struct report_names names;
	int err = report_names_init(&names, r, CELL_COLUMNS);

	for (size_t i = 0; i < d->shown_cnt && !err; i++) {
		diff_name_row(d, &d->rows.data[i], &place);
		err = report_names_add(&names, &place);
	}
	for (size_t i = 0; i < d->shown_cnt && !err; i++) {
		report_paint(r, REPORT_BOLD, out);
		put_cells(d, &d->rows.data[i], out);
		report_paint(r, REPORT_PLAIN, out);
		fputs("  ", out);
		diff_name_row(d, &d->rows.data[i], &place);
		report_names_put(&names, &place, out);
	}
	report_names_release(&names);
	return err;
}

static int put_text(const struct diff *d, FILE *out)
{
	char a[32];
	int err;

	diff_write_head(d, out);
	if (d->shown_cnt)
		fprintf(out, "%11s  %-17s %9s %9s  WHERE\n", "CHANGE", "95 % INTERVAL", "BEFORE",
			"AFTER");
	err = put_rows(d, out);
	if (!d->rest_cnt || err)
		return err;
	if (d->opts->by ==
	    REPORT_BY_SCOPE) /* a scope is part of those above it: their sum means nothing */
		fprintf(out, "%50s", "");
	else
		put_cells(d, &d->rest, out);
	fprintf(out, "  %s%s row%s", d->shown_cnt ? "the other " : "",
		format_count((double)d->rest_cnt, a, sizeof(a)), d->rest_cnt == 1 ? "" : "s");
	if (d->chance_cnt == d->rest_cnt)
		fputs(": unchanged (within sampling noise)", out);
	else if (d->chance_cnt)
		fprintf(out, ", %zu of them unchanged (within sampling noise)", d->chance_cnt);
	fputc('\n', out);
	return 0;
}

static void put_json_row(const struct diff *d, const struct diff_row *row, const char *key,
			 const char *name, struct json *j)
{
	bool is_inuse = d->side[1].r->is_inuse;

	json_begin(j, key, '{');
	json_text(j, "name", name);
	json_number(j, is_inuse ? "inuse_bytes_before" : "value_before", 0,
		    row->is_in[0] ? (double)row->at[0].value : NAN);
	json_number(j, is_inuse ? "inuse_bytes_after" : "value_after", 0,
		    row->is_in[1] ? (double)row->at[1].value : NAN);
	json_number(j, is_inuse ? "inuse_bytes_delta" : "value_delta", 0, row->delta);
	json_number(j, is_inuse ? "inuse_bytes_delta_low" : "value_delta_low", 0, row->low);
	json_number(j, is_inuse ? "inuse_bytes_delta_high" : "value_delta_high", 0, row->high);
	if (isnan(row->low))
		json_null(j, "is_significant");
	else
		json_bool(j, "is_significant", row->is_significant);
	json_end(j, '}');
}

static void put_json(const struct diff *d, FILE *out)
{
	struct json j = { .out = out };
	struct witness w;

	find_unexplained(d, &w);
	json_begin(&j, NULL, '{');
	json_text(&j, "before", d->side[0].name);
	json_text(&j, "after", d->side[1].name);
	json_bool(&j, "is_lossy_before", lacks_a_part(d->side[0].r));
	json_bool(&j, "is_lossy_after", lacks_a_part(d->side[1].r));
	put_json_row(d, &d->total, "total", "total", &j);
	json_number(&j, "unexplained_bytes", 0,
		    w.is_unexplained ? w.growth_bytes - w.held_bytes : NAN);
	json_begin(&j, "rows", '[');
	for (size_t i = 0; i < d->shown_cnt; i++) {
		json_line(&j);
		put_json_row(d, &d->rows.data[i], NULL, strset_get(d->names, d->rows.data[i].name),
			     &j);
	}
	json_end(&j, ']');
	json_format(&j, "omitted_cnt", "%zu", d->rest_cnt);
	json_format(&j, "chance_cnt", "%zu", d->chance_cnt);
	json_end(&j, '}');
	fputc('\n', out);
}

int diff_write(const struct diff *d, FILE *out)
{
	if (d->opts->format != REPORT_JSON)
		return put_text(d, out);
	put_json(d, out);
	return 0;
}

int report_diff(const struct profile *before, const char *before_name, const struct profile *after,
		const char *after_name, const struct report_options *opts, FILE *out,
		struct err *why)
{
	struct report_options o = *opts;
	struct diff d;
	int err;

	if (o.format == REPORT_HTML)
		o.row_cap = PLAIN_ROWS;
	err = diff_open(before, before_name, after, after_name, &o, &d, why);
	if (!err && o.format == REPORT_HTML)
		err = diff_write_html(&d, out);
	else if (!err)
		err = diff_write(&d, out);
	if (!err && (fflush(out) || ferror(out)))
		err = errno ? -errno : -EIO;
	diff_release(&d);
	return err;
}

static int copy_type(struct profile *to, const struct report *r, int type)
{
	const struct profile_type *from;
	struct profile_type copy;

	if (type < 0)
		return 0;
	from = &r->p->types.data[type];
	copy.type_str = profile_str(to, profile_text(r->p, from->type_str));
	copy.unit_str = profile_str(to, profile_text(r->p, from->unit_str));
	return copy.type_str < 0 || copy.unit_str < 0 ? -ENOMEM : vec_push(&to->types, copy);
}

int diff_join(const struct diff *d, int sign_before, struct profile **ret)
{
	const struct report *before = d->side[0].r, *after = d->side[1].r;
	struct profile *p;
	int err = profile_new(&p);

	if (err)
		return err;
	err = copy_type(p, after, after->objects_type);
	if (!err)
		err = copy_type(p, after, after->value_type);
	if (!err) {
		p->default_type_str = p->types.data[p->types.cnt - 1].type_str;
		p->time_ns = after->p->time_ns;
		err = profile_append(p, before->p, before->chosen.data, before->chosen.cnt,
				     sign_before);
	}
	if (!err)
		err = profile_append(p, after->p, after->chosen.data, after->chosen.cnt, 1);
	if (err)
		profile_free(p);
	else
		*ret = p;
	return err;
}

int report_diff_profile(const struct profile *before, const char *before_name,
			const struct profile *after, const char *after_name,
			const struct report_options *opts, struct profile **ret, struct err *why)
{
	struct report_options o = *opts;
	struct profile *p = NULL;
	struct profile_sample *s;
	struct diff d;
	int err = diff_open(before, before_name, after, after_name, &o, &d, why);

	if (!err)
		err = diff_join(&d, -1, &p);
	if (!err)
		err = profile_comment(p, "difference: %s minus %s", after_name, before_name);
	if (!err) {
		vec_each(&p->samples, s)
			s->has_error = false; /* the error of a change differs */
		*ret = p;
	} else {
		profile_free(p);
	}
	diff_release(&d);
	return err;
}
