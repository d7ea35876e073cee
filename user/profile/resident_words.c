/* SPDX-License-Identifier: MIT */
/* resident_words.c - see resident_words.h. */
#include "profile/resident_words.h"

#include "base/printable.h"
#include "profile/profile.h"

#define SHOWN_CNT 4
/* Less is no part of an answer: 64 KiB, and this part of RSS. */
#define SHOWN_BYTES (64 << 10)
#define SHOWN_PART 200
/* Outside of the readings it grew little: by this part of all, or of its size, or by so much. */
#define NEAR_GROWTH 0.1
#define NEAR_SIZE 0.01
#define NEAR_BYTES (1 << 20)
#define FILES_ROW "files" /* as explain/rows.c calls it */

/* Rows of one label together. */
struct sum {
	const char *label;
	int64_t begin_bytes, end_bytes; /* 0 in a reading that is not known */
};

static int set_look(struct profile *p, const struct resident_reading *from,
		    struct resident_look *ret)
{
	*ret = (struct resident_look){
		.is_known = from->is_known,
		.is_proved = from->is_proved,
		.is_counted = from->is_counted,
		.why_str = profile_str(p, from->why),
		.rss_bytes = from->rss_bytes,
		.took_ns = from->took_ns,
		.live_cnt = from->live_cnt,
		.live_bytes = from->live_bytes,
		.mmapped_cnt = from->mmapped_cnt,
		.hit_cnt = from->hit_cnt,
		.late_hit_cnt = from->late_hit_cnt,
		.coarsest_rate_bytes = from->coarsest_rate_bytes,
	};
	return ret->why_str < 0 ? -ENOMEM : 0;
}

/* Add to the row of that name; a later reading has the better label. */
static int add_row(struct profile *p, const struct resident_reading_row *from, bool at_end)
{
	struct resident_row row = { .name_str = profile_str(p, from->name),
				    .label_str = profile_str(p, from->label),
				    .kind = (enum resident_kind)from->kind };
	struct resident_row *to;

	if (row.name_str < 0 || row.label_str < 0)
		return -ENOMEM;
	vec_each(&p->resident.list, to)
		if (to->name_str == row.name_str)
			break;
	if (!to || to == p->resident.list.data + p->resident.list.cnt) {
		if (vec_push(&p->resident.list, row))
			return -ENOMEM;
		to = &p->resident.list.data[p->resident.list.cnt - 1];
	}
	to->label_str = row.label_str;
	*(at_end ? &to->end_bytes : &to->begin_bytes) += from->bytes;
	return 0;
}

static int add_class(struct profile *p, const struct resident_reading_class *from)
{
	struct resident_class c = { .name_str = profile_str(p, from->name),
				    .from_bytes = from->from_bytes,
				    .to_bytes = from->to_bytes,
				    .live_cnt = from->live_cnt,
				    .live_bytes = from->live_bytes,
				    .recorded = from->recorded,
				    .is_span = from->is_span != 0 };

	return c.name_str < 0 || vec_push(&p->resident.classes, c) ? -ENOMEM : 0;
}

int resident_rows_set(struct profile *p, const struct resident_reading *begin,
		      const struct resident_reading *end)
{
	int err = set_look(p, begin, &p->resident.begin);

	if (!err)
		err = set_look(p, end, &p->resident.end);
	/* A heap that was not there yet was empty. */
	if (begin->is_known && !begin->has_heap && !begin->has_brk && end->is_proved)
		p->resident.begin.is_proved = true;
	p->resident.is_asked = true;
	for (uint32_t i = 0; i < begin->row_cnt && begin->is_known && !err; i++)
		err = add_row(p, &begin->rows[i], false);
	for (uint32_t i = 0; i < end->row_cnt && end->is_known && !err; i++)
		err = add_row(p, &end->rows[i], true);
	for (uint32_t i = 0; i < end->class_cnt && end->is_counted && !err; i++)
		err = add_class(p, &end->classes[i]);
	return err;
}

int resident_rows_doubt(struct profile *p)
{
	int64_t label = profile_str(p, "anonymous");
	struct resident_row *row;

	vec_each(&p->resident.list, row)
		if (row->kind == RESIDENT_UNOWNED && label >= 0)
			row->label_str = label;
	return label < 0 ? -ENOMEM : 0;
}

int64_t resident_bytes(const struct profile *p, enum resident_kind kind, bool at_end)
{
	const struct resident_row *row;
	int64_t sum = 0;

	vec_each(&p->resident.list, row)
		if (row->kind == kind)
			sum += at_end ? row->end_bytes : row->begin_bytes;
	return sum;
}

static int compare_changes(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;
	int64_t of_x = llabs(x->end_bytes - x->begin_bytes);
	int64_t of_y = llabs(y->end_bytes - y->begin_bytes);

	return (of_x < of_y) - (of_x > of_y);
}

static int compare_ends(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	return (x->end_bytes < y->end_bytes) - (x->end_bytes > y->end_bytes);
}

static bool has_both(const struct profile *p)
{
	return p->resident.begin.is_known && p->resident.end.is_known;
}

static double growth_of_files(const struct profile *p)
{
	const struct resident_row *row;
	double sum = 0;

	vec_each(&p->resident.list, row)
		if (!strcmp(profile_text(p, row->name_str), FILES_ROW))
			sum += (double)row->end_bytes - (double)row->begin_bytes;
	return sum;
}

static bool is_near(const struct resident_growth *a, const struct resident_growth *b)
{
	double most =
		fmax(fabs(a->end_bytes - a->begin_bytes), fabs(b->end_bytes - b->begin_bytes));
	double least = fmax(fmax(NEAR_GROWTH * most, NEAR_SIZE * a->end_bytes), NEAR_BYTES);

	return fabs(a->begin_bytes - b->begin_bytes) <= least &&
	       fabs(a->end_bytes - b->end_bytes) <= least;
}

bool resident_growth(const struct profile *p, struct resident_growth *ret)
{
	const struct recording *r = &p->recording;
	bool is_known = r->is_known && r->rss_end_bytes && (r->rss_begin_bytes || r->is_from_start);
	const struct resident_growth recorded = { .begin_bytes = (double)r->rss_begin_bytes,
						  .end_bytes = (double)r->rss_end_bytes,
						  .file_bytes = (double)r->rss_file_growth_bytes };
	struct resident_growth rows = { .is_by_row = true };

	*ret = recorded;
	if (!has_both(p))
		return is_known;
	rows.begin_bytes = (double)p->resident.begin.rss_bytes;
	rows.end_bytes = (double)p->resident.end.rss_bytes;
	rows.file_bytes = growth_of_files(p);
	if (!is_known || is_near(&recorded, &rows))
		*ret = rows;
	return true;
}

double resident_growth_outside(const struct profile *p)
{
	struct resident_growth g;

	if (!resident_growth(p, &g) || g.is_by_row || !has_both(p))
		return 0;
	return fmax((double)p->resident.begin.rss_bytes - g.begin_bytes, 0) +
	       fmax(g.end_bytes - (double)p->resident.end.rss_bytes, 0);
}

static bool is_heap(enum resident_kind kind)
{
	return kind == RESIDENT_LIVE || kind == RESIDENT_FREE || kind == RESIDENT_UNREAD ||
	       kind == RESIDENT_METADATA;
}

/* If a heap was read in part, or in one of the readings, its rows and those of mappings cannot be told apart. */
static bool is_mixed(const struct profile *p)
{
	const struct resident_row *row;

	if (!has_both(p) || (p->resident.begin.is_proved && p->resident.end.is_proved))
		return false;
	vec_each(&p->resident.list, row)
		if (is_heap(row->kind))
			return true;
	return false;
}

static size_t sum_up(const struct profile *p, struct sum ret[RESIDENT_ROW_CAP],
		     int (*compare)(const void *, const void *))
{
	const struct resident_row *row;
	bool merges = is_mixed(p);
	size_t cnt = 0;

	vec_each(&p->resident.list, row) {
		const char *label = profile_text(p, row->label_str);
		size_t i = 0;

		if (merges && (is_heap(row->kind) || row->kind == RESIDENT_UNOWNED))
			label = "heap and other anonymous memory";
		while (i < cnt && strcmp(ret[i].label, label) != 0)
			i++;
		if (i == RESIDENT_ROW_CAP)
			continue;
		if (i == cnt)
			ret[cnt++] = (struct sum){ .label = label };
		ret[i].begin_bytes += row->begin_bytes;
		ret[i].end_bytes += row->end_bytes;
	}
	if (cnt)
		qsort(ret, cnt, sizeof(*ret), compare);
	return cnt;
}

static void add_part(char buf[RESIDENT_WORDS], const char *label, int64_t bytes, bool is_change)
{
	const char *sign = bytes < 0 ? "-" : is_change ? "+" : "";
	char text[UNITS_BUF];

	text_add(buf, RESIDENT_WORDS, "%s%s %s%s", buf[0] ? ", " : "", label, sign,
		 format_bytes((double)llabs(bytes), text, sizeof(text)));
}

/* The largest parts; what is left is one more, if it is as large. They are changes, or what is there at the end. */
static void add_parts(const struct profile *p, bool is_change, char buf[RESIDENT_WORDS])
{
	struct sum sums[RESIDENT_ROW_CAP];
	size_t cnt = sum_up(p, sums, is_change ? compare_changes : compare_ends);
	int64_t least = (int64_t)(p->resident.end.rss_bytes / SHOWN_PART), rest = 0;

	if (least < SHOWN_BYTES)
		least = SHOWN_BYTES;
	for (size_t i = 0; i < cnt; i++) {
		int64_t bytes = sums[i].end_bytes - (is_change ? sums[i].begin_bytes : 0);

		if (i < SHOWN_CNT && llabs(bytes) >= least)
			add_part(buf, sums[i].label, bytes, is_change);
		else
			rest += bytes;
	}
	if (llabs(rest) >= least)
		add_part(buf, "other", rest, is_change);
}

char *resident_growth_words(const struct profile *p, char buf[RESIDENT_WORDS])
{
	buf[0] = '\0';
	if (has_both(p))
		add_parts(p, true, buf);
	make_printable(buf);
	return buf;
}

char *resident_range_words(double begin_bytes, double end_bytes, char buf[RESIDENT_RANGE])
{
	char before[UNITS_BUF], after[UNITS_BUF], *unit;

	format_bytes(begin_bytes, before, sizeof(before));
	format_bytes(end_bytes, after, sizeof(after));
	unit = strchr(before, ' ');
	if (unit && strchr(after, ' ') && !strcmp(unit, strchr(after, ' ')))
		*unit = '\0';
	snprintf(buf, RESIDENT_RANGE, "%s -> %s", before, after);
	return buf;
}

char *resident_words(const struct profile *p, char buf[RESIDENT_WORDS])
{
	const struct resident_look *begin = &p->resident.begin, *end = &p->resident.end;
	char range[RESIDENT_RANGE], parts[RESIDENT_WORDS], age[UNITS_BUF];
	struct resident_growth g;
	bool is_known;

	buf[0] = '\0';
	if (!end->is_known)
		return buf;
	is_known = resident_growth(p, &g);
	text_add(buf, RESIDENT_WORDS, "Resident %s",
		 is_known ? resident_range_words(g.begin_bytes, g.end_bytes, range) :
			    format_bytes((double)end->rss_bytes, range, UNITS_BUF));
	if (begin->is_known && !g.is_by_row)
		text_add(buf, RESIDENT_WORDS, ", by row %s",
			 resident_range_words((double)begin->rss_bytes, (double)end->rss_bytes,
					      range));
	if (end->age_ns)
		text_add(buf, RESIDENT_WORDS, ", read %s before the end",
			 format_duration(end->age_ns, age, sizeof(age)));
	else if (!begin->is_known)
		text_add(buf, RESIDENT_WORDS, "%s at the end", is_known ? "," : "");
	/* Without a change, what is there is the answer. */
	if (!resident_growth_words(p, parts)[0])
		add_parts(p, false, parts);
	text_add(buf, RESIDENT_WORDS, ": %.900s", parts);
	make_printable(buf); /* a file may have any labels */
	return buf;
}

char *resident_list_words(const struct profile *p, char buf[RESIDENT_WORDS])
{
	bool has_begin = p->resident.begin.is_known, has_end = p->resident.end.is_known;
	struct sum sums[RESIDENT_ROW_CAP];
	size_t cnt = has_begin || has_end ? sum_up(p, sums, compare_ends) : 0;
	char range[RESIDENT_RANGE];

	buf[0] = '\0';
	for (size_t i = 0; i < cnt; i++) {
		if (has_begin && has_end)
			resident_range_words((double)sums[i].begin_bytes, (double)sums[i].end_bytes,
					     range);
		else
			format_bytes((double)(has_end ? sums[i].end_bytes : sums[i].begin_bytes),
				     range, UNITS_BUF);
		text_add(buf, RESIDENT_WORDS, "%s%s %s", i ? ", " : "", sums[i].label, range);
	}
	make_printable(buf);
	return buf;
}

static void add_why(const struct profile *p, const struct resident_look *look, const char *when,
		    char buf[RESIDENT_WORDS])
{
	const char *why = profile_text(p, look->why_str);

	if (!look->is_known)
		text_add(buf, RESIDENT_WORDS, "%sby row %s: unknown (%s)", buf[0] ? "; " : "", when,
			 why);
	else if (!look->is_proved && !strstr(buf, why))
		text_add(buf, RESIDENT_WORDS, "%sheap not read: %s", buf[0] ? "; " : "", why);
}

char *resident_why_words(const struct profile *p, char buf[RESIDENT_WORDS])
{
	buf[0] = '\0';
	if (!p->resident.is_asked)
		return buf;
	if (!p->resident.begin.is_known && !p->resident.end.is_known &&
	    p->resident.begin.why_str == p->resident.end.why_str)
		text_add(buf, RESIDENT_WORDS, "by row: unknown (%s)",
			 profile_text(p, p->resident.end.why_str));
	if (!buf[0]) {
		add_why(p, &p->resident.begin, "at the beginning", buf);
		add_why(p, &p->resident.end, "at the end", buf);
	}
	make_printable(buf);
	return buf;
}
