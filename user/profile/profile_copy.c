/* SPDX-License-Identifier: MIT */
/* profile_copy.c - see profile_copy.h. */
#include "profile/profile_copy.h"

#include "profile/pprof.h"
#include "profile/profile.h"

/* Return a text of `from` as a string of c->to. */
static int64_t profile_copy_str(struct profile_copy *c, int64_t id)
{
	return profile_str(c->to, profile_text(c->from, id));
}

/* In-use types come last; they are left out when in use is unknown, as they must not look like 0. */
static size_t type_cnt(const struct profile *p)
{
	bool is_unknown = p->recording.is_known && p->recording.inuse == RECORDING_INUSE_UNKNOWN;

	return is_unknown && p->types.cnt == PROFILE_VALUE_CNT ? PROFILE_INUSE_OBJECTS :
								 p->types.cnt;
}

static int copy_types(struct profile_copy *c)
{
	const struct profile *from = c->from;
	struct profile *to = c->to;

	for (size_t i = 0; i < type_cnt(from); i++) {
		struct profile_type t = {
			.type_str = profile_copy_str(c, from->types.data[i].type_str),
			.unit_str = profile_copy_str(c, from->types.data[i].unit_str),
		};

		if (t.type_str < 0 || t.unit_str < 0 || vec_push(&to->types, t))
			return -ENOMEM;
	}
	to->default_type_str = profile_copy_str(c, from->default_type_str);
	to->period_type.type_str = profile_copy_str(c, from->period_type.type_str);
	to->period_type.unit_str = profile_copy_str(c, from->period_type.unit_str);
	to->period = from->period;
	to->time_ns = from->time_ns;
	to->duration_ns = from->duration_ns;
	return to->default_type_str < 0 || to->period_type.type_str < 0 ||
			       to->period_type.unit_str < 0 ?
		       -ENOMEM :
		       0;
}

static int copy_mappings(struct profile_copy *c)
{
	for (size_t i = 0; i < c->from->mappings.cnt; i++) {
		struct profile_mapping m = c->from->mappings.data[i];

		m.filename_str = profile_copy_str(c, m.filename_str);
		m.build_id_str = profile_copy_str(c, m.build_id_str);
		if (m.filename_str < 0 || m.build_id_str < 0 || vec_push(&c->to->mappings, m))
			return -ENOMEM;
	}
	return 0;
}

int profile_copy_onto(struct profile_copy *c, const struct profile *from, struct profile *to)
{
	int err;

	*c = (struct profile_copy){ .from = from, .to = to, .is_onto = true };
	c->mapping_first = (uint32_t)to->mappings.cnt;
	c->functions = calloc(from->functions.cnt + 1, sizeof(*c->functions));
	c->locations = calloc(from->locations.cnt + 1, sizeof(*c->locations));
	err = c->functions && c->locations ? copy_mappings(c) : -ENOMEM;
	if (err)
		profile_copy_release(c);
	return err;
}

int profile_copy_begin(struct profile_copy *c, const struct profile *from, bool names_all)
{
	struct profile *to;
	int err = profile_new(&to);

	if (err)
		return err;
	err = profile_copy_onto(c, from, to);
	if (err) {
		profile_free(to);
		return err;
	}
	c->is_onto = false;
	c->names_all = names_all;
	err = copy_types(c);
	if (err)
		profile_copy_release(c);
	return err;
}

struct profile *profile_copy_take(struct profile_copy *c)
{
	struct profile *to = c->to;

	c->to = NULL;
	profile_copy_release(c);
	return to;
}

void profile_copy_release(struct profile_copy *c)
{
	if (!c->is_onto)
		profile_free(c->to);
	free(c->functions);
	free(c->locations);
	vec_release(&c->stack);
	vec_release(&c->labels);
	memset(c, 0, sizeof(*c));
}

static int copy_function(struct profile_copy *c, uint32_t index)
{
	struct profile_function f = c->from->functions.data[index];

	f.name_str = profile_copy_str(c, f.name_str);
	f.system_name_str = profile_copy_str(c, f.system_name_str);
	f.filename_str = profile_copy_str(c, f.filename_str);
	if (f.name_str < 0 || f.system_name_str < 0 || f.filename_str < 0 ||
	    vec_push(&c->to->functions, f))
		return -ENOMEM;
	c->functions[index] = c->to->functions.cnt;
	return 0;
}

static int copy_lines(struct profile_copy *c, const struct profile_location *l)
{
	for (uint32_t i = 0; i < l->line_cnt; i++) {
		struct profile_line line = c->from->lines.data[l->line_first + i];

		if (!c->functions[line.function] && copy_function(c, line.function))
			return -ENOMEM;
		line.function = c->functions[line.function] - 1;
		if (vec_push(&c->to->lines, line))
			return -ENOMEM;
	}
	return 0;
}

/* Add a function of that name, and a line in it. */
static int add_named_line(struct profile_copy *c, const char *name)
{
	struct profile_function f = { 0 };
	struct profile_line line = { .function = c->to->functions.cnt };

	f.name_str = f.system_name_str = profile_str(c->to, name);
	if (f.name_str < 0 || vec_push(&c->to->functions, f))
		return -ENOMEM;
	return vec_push(&c->to->lines, line);
}

static int add_bare_line(struct profile_copy *c, const struct profile_location *l)
{
	const char *file = "", *slash;
	char name[320];

	if (l->mapping != HT_NO_INDEX)
		file = profile_text(c->from, c->from->mappings.data[l->mapping].filename_str);
	slash = strrchr(file, '/');
	if (slash && slash[1])
		file = slash + 1;
	snprintf(name, sizeof(name), "%.255s%s0x%" PRIx64, file, *file ? "+" : "", l->address);
	return add_named_line(c, name);
}

static int copy_location(struct profile_copy *c, uint32_t index)
{
	const struct profile_location *from = &c->from->locations.data[index];
	struct profile_location l = *from;
	int err;

	l.line_first = c->to->lines.cnt;
	if (l.mapping != HT_NO_INDEX)
		l.mapping += c->mapping_first;
	if (!from->line_cnt && c->names_all) {
		err = add_bare_line(c, from);
		l.line_cnt = 1;
	} else {
		err = copy_lines(c, from);
	}
	if (err || vec_push(&c->to->locations, l))
		return -ENOMEM;
	c->locations[index] = c->to->locations.cnt;
	return 0;
}

int profile_copy_stack(struct profile_copy *c, const uint32_t *locs, size_t cnt)
{
	c->stack.cnt = 0;
	if (vec_reserve(&c->stack, cnt + 1))
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (!c->locations[locs[i]] && copy_location(c, locs[i]))
			return -ENOMEM;
		c->stack.data[i] = c->locations[locs[i]] - 1;
	}
	c->stack.cnt = cnt;
	return 0;
}

int profile_copy_labels(struct profile_copy *c, const struct profile_sample *row)
{
	c->labels.cnt = 0;
	for (uint32_t i = 0; i < row->label_cnt; i++) {
		struct profile_label l = c->from->labels.data[row->label_first + i];

		l.key_str = profile_copy_str(c, l.key_str);
		l.str = profile_copy_str(c, l.str);
		l.num_unit_str = profile_copy_str(c, l.num_unit_str);
		if (l.key_str < 0 || l.str < 0 || l.num_unit_str < 0 || vec_push(&c->labels, l))
			return -ENOMEM;
	}
	return 0;
}

/* Return the index of a location that is no address, such as "[other]". -ENOMEM. */
static int64_t profile_copy_named(struct profile_copy *c, const char *name)
{
	struct profile_location l = { .mapping = HT_NO_INDEX, .line_cnt = 1 };

	l.line_first = c->to->lines.cnt;
	if (add_named_line(c, name) || vec_push(&c->to->locations, l))
		return -ENOMEM;
	return c->to->locations.cnt - 1;
}

/* Deeper stacks are recursion, or frameworks whose outer layers are all alike. */
static const size_t depths[] = { 512, 128, 64 };
#define DEPTH_CNT (sizeof(depths) / sizeof(*depths))

struct shrink {
	const struct profile *p;
	int weight_type; /* type of the values by which rows are compared */
	uint32_t *by_size; /* rows, the largest first */
	int64_t *sums;
	VEC(uint32_t) set_of; /* for row i: the first row with the same labels */
};

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct shrink *s = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int64_t x = s->p->values.data[s->p->samples.data[i].value_first + s->weight_type];
	int64_t y = s->p->values.data[s->p->samples.data[k].value_first + s->weight_type];

	if (x != y)
		return x > y ? -1 : 1;
	return i < k ? -1 : i > k;
}

static bool same_labels(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct profile_sample *x = &p->samples.data[a], *y = &p->samples.data[b];

	if (x->label_cnt != y->label_cnt)
		return false;
	for (uint32_t i = 0; i < x->label_cnt; i++) {
		const struct profile_label *l = &p->labels.data[x->label_first + i];
		const struct profile_label *m = &p->labels.data[y->label_first + i];

		if (l->key_str != m->key_str || l->str != m->str || l->num != m->num)
			return false;
	}
	return true;
}

/* series_rows() places rows with the same labels side by side; where they are not, there are more rows "[other]"
 * than necessary. */
static int find_label_sets(struct shrink *s)
{
	if (vec_reserve(&s->set_of, s->p->samples.cnt + 1))
		return -ENOMEM;
	for (size_t i = 0; i < s->p->samples.cnt; i++)
		s->set_of.data[i] =
			i && same_labels(s->p, i - 1, i) ? s->set_of.data[i - 1] : (uint32_t)i;
	return 0;
}

static int add_row(struct shrink *s, struct profile_copy *c, uint32_t row, size_t depth,
		   int64_t *cut_loc, struct profile_limited *lost)
{
	const struct profile_sample *from = &s->p->samples.data[row];
	bool is_cut = from->loc_cnt > depth;
	size_t cnt = is_cut ? depth - 1 : from->loc_cnt;
	int err = profile_copy_labels(c, from);

	if (!err && is_cut && *cut_loc < 0) {
		*cut_loc = profile_copy_named(c, LIMIT_CUT);
		err = *cut_loc < 0 ? (int)*cut_loc : 0;
	}
	if (!err)
		err = profile_copy_stack(c, s->p->sample_locs.data + from->loc_first, cnt);
	if (!err && is_cut) {
		c->stack.data[cnt++] = *cut_loc; /* there is room for one more */
		lost->cut_stacks++;
	}
	return err ? err :
		     profile_add_sample(c->to, c->stack.data, cnt,
					s->p->values.data + from->value_first, c->labels.data,
					c->labels.cnt, NULL);
}

/* Add rows "[other]" for rows that are not kept: one for each run of the same labels. */
static int add_others(struct shrink *s, struct profile_copy *c, const bool *is_kept)
{
	const struct profile *p = s->p;
	int64_t loc = profile_copy_named(c, LIMIT_OTHER);
	uint32_t other = loc;
	int err = loc < 0 ? (int)loc : 0;

	for (size_t i = 0; i < p->samples.cnt && !err;) {
		size_t first = i, cnt = 0;

		memset(s->sums, 0, p->types.cnt * sizeof(*s->sums));
		for (; i < p->samples.cnt && s->set_of.data[i] == first; i++) {
			const int64_t *values = p->values.data + p->samples.data[i].value_first;

			cnt += !is_kept[i];
			for (size_t k = 0; k < p->types.cnt && !is_kept[i]; k++)
				if (__builtin_add_overflow(s->sums[k], values[k], &s->sums[k]))
					s->sums[k] = INT64_MAX;
		}
		if (!cnt)
			continue;
		err = profile_copy_labels(c, &p->samples.data[first]);
		if (!err)
			err = profile_add_sample(c->to, &other, 1, s->sums, c->labels.data,
						 c->labels.cnt, NULL);
	}
	return err;
}

static int make(struct shrink *s, size_t rows, size_t depth, struct profile **ret,
		struct profile_limited *lost)
{
	size_t cnt = s->p->samples.cnt;
	bool *is_kept = calloc(cnt + 1, sizeof(*is_kept));
	struct profile_copy c = { 0 };
	int64_t cut_loc = -1;
	int err = is_kept ? profile_copy_begin(&c, s->p, false) : -ENOMEM;

	*lost = (struct profile_limited){ .folded_rows = rows < cnt ? cnt - rows : 0 };
	for (size_t i = 0; i < cnt && i < rows && !err; i++)
		is_kept[s->by_size[i]] = true;
	/* Keep their order, so that the same labels stay side by side. */
	for (size_t i = 0; i < cnt && !err; i++)
		if (is_kept[i])
			err = add_row(s, &c, i, depth, &cut_loc, lost);
	if (!err && rows < cnt)
		err = add_others(s, &c, is_kept);
	if (!err)
		*ret = profile_copy_take(&c);
	profile_copy_release(&c);
	free(is_kept);
	return err;
}

/* Reduce the rows in proportion to the excess of bytes, at least by a tenth. */
static size_t fewer(size_t rows, uint64_t max, uint64_t bytes)
{
	size_t by_bytes = (size_t)((double)rows * (double)max / (double)bytes);
	size_t by_tenth = rows - rows / 10;

	if (by_tenth == rows)
		by_tenth = rows - 1;
	return by_bytes < by_tenth ? by_bytes : by_tenth;
}

static int shrink_until_it_fits(struct shrink *s, const struct profile_limits *limits,
				struct profile **ret, struct profile_limited *lost)
{
	size_t rows = s->p->samples.cnt, depth = 0;

	for (;;) {
		struct profile *p;
		uint64_t bytes;
		size_t others;
		int err = make(s, rows, depths[depth], &p, lost);

		if (err)
			return err;
		err = pprof_bytes(p, &bytes);
		if (!err && p->samples.cnt <= limits->row_max && bytes <= limits->bytes_max) {
			*ret = p;
			return 0;
		}
		others = p->samples.cnt - rows;
		profile_free(p);
		if (err)
			return err;
		if (!rows)
			return -E2BIG;
		if (others + rows > limits->row_max) {
			/* Folding may add a row to each set of labels: the next round will show. */
			size_t room = limits->row_max > others ? limits->row_max - others : 0;

			rows = room < rows ? room : rows - rows / 64 - 1;
		} else if (depth + 1 < DEPTH_CNT) {
			depth++;
		} else {
			rows = fewer(rows, limits->bytes_max, bytes);
		}
	}
}

int profile_limit(const struct profile *p, const struct profile_limits *limits,
		  struct profile **ret, struct profile_limited *ret_lost)
{
	struct shrink s = { .p = p };
	int err;

	if (!p->types.cnt)
		return -EINVAL;
	s.weight_type = profile_find_type(p, "inuse_space");
	if (s.weight_type < 0)
		s.weight_type = profile_find_type(p, "alloc_space");
	if (s.weight_type < 0)
		s.weight_type = 0;
	s.by_size = calloc(p->samples.cnt + 1, sizeof(*s.by_size));
	s.sums = calloc(p->types.cnt + 1, sizeof(*s.sums));
	err = s.by_size && s.sums ? find_label_sets(&s) : -ENOMEM;
	if (!err) {
		for (size_t i = 0; i < p->samples.cnt; i++)
			s.by_size[i] = i;
		qsort_r(s.by_size, p->samples.cnt, sizeof(*s.by_size), compare_rows, &s);
		err = shrink_until_it_fits(&s, limits, ret, ret_lost);
	}
	vec_release(&s.set_of);
	free(s.by_size);
	free(s.sums);
	return err;
}

static void *copy(const void *from, size_t cnt, size_t one_bytes)
{
	void *to = calloc(cnt + 1, one_bytes);

	if (to && cnt)
		memcpy(to, from, cnt * one_bytes);
	return to;
}

static void bare_mapping(struct profile_mapping *m)
{
	m->has_functions = m->has_filenames = m->has_line_numbers = m->has_inline_frames = false;
}

int profile_strip_begin(struct profile *p, bool (*is_held)(const void *ctx, const char *build_id),
			const void *ctx, struct profile_strip *ret)
{
	struct profile_strip b = {
		.locations = copy(p->locations.data, p->locations.cnt, sizeof(*b.locations)),
		.mappings = copy(p->mappings.data, p->mappings.cnt, sizeof(*b.mappings)),
	};
	bool *held = calloc(p->mappings.cnt + 1, sizeof(*held));
	struct profile_location *loc;

	if (!b.locations || !b.mappings || !held) {
		free(b.locations);
		free(b.mappings);
		free(held);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->mappings.cnt; i++) {
		struct profile_mapping *m = &p->mappings.data[i];

		held[i] = m->build_id_str && is_held(ctx, profile_text(p, m->build_id_str));
		if (held[i])
			bare_mapping(m);
	}
	vec_each(&p->locations, loc)
		if (loc->mapping != HT_NO_INDEX && held[loc->mapping])
			loc->line_cnt = 0;
	free(held);
	*ret = b;
	return 0;
}

void profile_strip_end(struct profile *p, struct profile_strip *b)
{
	if (b->locations && p->locations.cnt)
		memcpy(p->locations.data, b->locations, p->locations.cnt * sizeof(*b->locations));
	if (b->mappings && p->mappings.cnt)
		memcpy(p->mappings.data, b->mappings, p->mappings.cnt * sizeof(*b->mappings));
	free(b->locations);
	free(b->mappings);
	memset(b, 0, sizeof(*b));
}
