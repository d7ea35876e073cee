/* SPDX-License-Identifier: MIT */
/*
 * test_report.c - rows add up, whatever is asked for; which values of a foreign profile are
 * taken; escapes; the command's options and messages.
 */
#include "made_profile.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "report/report_rows.h"
#include "report/report_text.h"

static struct profile *p; /* of the test that runs */

static uint32_t add_frame(const char *file, const char *function)
{
	return made_location(p, made_mapping(p, file),
			     (struct made_place){ function, .address = 0x10 });
}

static void add_sample(const uint32_t *locs, size_t cnt, const int64_t *values)
{
	assert_int_equal(profile_add_sample(p, locs, cnt, values, NULL, 0, NULL), 0);
}

/* Leaf malloc in libc, then lib, then app; recursion in app; one sample without a stack. */
static void fill(void)
{
	uint32_t libc = add_frame("/lib/libc.so.6", "strdup");
	uint32_t lib = add_frame("/lib/libmine.so.2", "mine_copy");
	uint32_t app = add_frame("/bin/app", "walk");
	uint32_t bare = add_frame("/bin/app", "");

	assert_int_equal(profile_set_heap_types(p, 1000), 0);
	add_sample((uint32_t[]){ libc, lib, app }, 3, (int64_t[]){ 9, 900, 3, 300 });
	add_sample((uint32_t[]){ libc, app, app }, 3, (int64_t[]){ 1, 70, 1, 70 });
	add_sample((uint32_t[]){ bare, app }, 2, (int64_t[]){ 2, 2000, 2, 2000 });
	add_sample((uint32_t[]){ libc, lib, app }, 3, (int64_t[]){ 1, 11, 1, 11 });
	add_sample(NULL, 0, (int64_t[]){ 1, 5, 1, 5 });
}

static int set_up(void **state)
{
	return profile_new(&p);
}

static int tear_down(void **state)
{
	profile_free(p);
	return 0;
}

TEST_WITH(rows_add_up_to_the_total, set_up, tear_down)
{
	static const char *const modules[] = { "libmine" };

	fill();
	for (int i = 0; i < 10 * 6 * 6 * 2; i++) {
		struct report_options o = { .by = i % 10,
					    .format = REPORT_JSON, /* text folds later */
					    .sort = i / 10 % 6,
					    .row_cap = i / 60 % 6,
					    .module = modules,
					    .module_cnt = i / 360,
					    .label_key = "x" };
		bool is_of_alloc = o.by == REPORT_BY_LIFETIME || o.by == REPORT_BY_SIZE;
		struct report *r;
		int64_t value = 0, objects = 0, alloc = 0;
		const struct report_row *row;

		r = open_report(p, &o);
		vec_each(&r->rows, row) {
			value += row->value;
			objects += row->objects;
			alloc += row->alloc;
		}
		assert_int_equal(value, is_of_alloc ? 2986 : 2386);
		assert_int_equal(value, r->total.value);
		assert_int_equal(objects, is_of_alloc ? r->total.objects : 8);
		assert_int_equal(alloc, report_is_by_class(&o) ? 0 : 2986);
		if (o.row_cap)
			assert_true(r->rows.cnt <= o.row_cap + 1);
	}
}

static const struct report_row *find_row(const struct report *r, const char *name)
{
	const struct report_row *row;

	vec_each(&r->rows, row)
		if (!strcmp(strset_get(r->names, row->name), name))
			return row;
	fail_msg("there is no row '%s'", name);
	return NULL;
}

TEST_WITH(charges_whom_it_should, set_up, tear_down)
{
	static const char *const modules[] = { "mine_", "app", "libm" };
	static const char *const own[] = { "wal" };
	static const struct {
		struct report_options opts;
		const char *row;
		int64_t value, cumulative;
	} cases[] = {
		{ { .by = REPORT_BY_STACK }, "strdup", 311, 0 },
		{ { .by = REPORT_BY_STACK }, "app+0x10", 2000, 0 },
		{ { .by = REPORT_BY_STACK }, "(no stack)", 5, 0 },
		/* the C library's are not one's own */
		{ { .by = REPORT_BY_FUNCTION }, "strdup", 0, 381 },
		{ { .by = REPORT_BY_FUNCTION }, "mine_copy", 311, 311 },
		/* recursion counts once */
		{ { .by = REPORT_BY_FUNCTION }, "walk", 70, 2381 },
		{ { .by = REPORT_BY_FUNCTION }, "app+0x10", 2000, 2000 },
		{ { .by = REPORT_BY_FUNCTION, .own = own, .own_cnt = 1 }, "walk", 2381, 2381 },
		/* libmine is not libm */
		{ { .by = REPORT_BY_MODULE }, "libmine.so.2", 311, 0 },
		{ { .by = REPORT_BY_MODULE }, "app", 2070, 0 },
		{ { .by = REPORT_BY_MODULE }, "(no module)", 5, 0 },
		/* the longer prefix of one frame wins */
		{ { .by = REPORT_BY_MODULE, .module = modules, .module_cnt = 3 }, "mine_", 311, 0 },
		{ { .by = REPORT_BY_MODULE, .module = modules, .module_cnt = 3 }, "app", 2070, 0 },
		{ { .by = REPORT_BY_MODULE, .module = modules, .module_cnt = 1 },
		  "(no frame matches)",
		  2075,
		  0 },
		{ { .by = REPORT_BY_THREAD }, "(no thread)", 2386, 0 },
	};

	fill();
	each_case(c, cases) {
		const struct report_row *row;
		struct report *r = open_report(p, &c->opts);

		row = find_row(r, c->row);
		if (row->value != c->value || row->cumulative != c->cumulative)
			fail_msg("case %zu, %s: %lld, cumulative %lld", (size_t)(c - cases), c->row,
				 (long long)row->value, (long long)row->cumulative);
	}
}

static void set_types(const char *const (*types)[2], const char *default_type)
{
	for (; (*types)[0]; types++)
		assert_int_equal(vec_push(&p->types,
					  (struct profile_type){ profile_str(p, (*types)[0]),
								 profile_str(p, (*types)[1]) }),
				 0);
	p->default_type_str = profile_str(p, default_type);
}

TEST_WITH(takes_the_right_value, set_up, tear_down)
{
	static const char *const go[][2] = { { "inuse_space", "bytes" }, { "x", "count" }, { 0 } };
	static const char *const cpu[][2] = { { "samples", "count" },
					      { "cpu", "nanoseconds" },
					      { 0 } };
	static const char *const one[][2] = { { "alloc_objects", "count" },
					      { "alloc_space", "bytes" },
					      { "other", "bytes" },
					      { 0 } };
	static const struct {
		const char *const (*types)[2];
		const char *default_type;
		int want, objects;
	} cases[] = {
		{ go, "x", 0, -1 },	      { cpu, "", 1, -1 },	  { cpu, "samples", 0, -1 },
		{ one, "alloc_space", 1, 0 }, { one, "nonsense", 2, -1 },
	};

	each_case(c, cases) {
		struct report_options o = { 0 };
		struct report *r;

		tear_down(state);
		set_up(state);
		set_types(c->types, c->default_type);
		r = open_report(p, &o);
		assert_int_equal(r->value_type, c->want);
		assert_true(c->objects < 0 ? r->objects_type < 0 : r->objects_type == c->objects);
		assert_false(r->has_interval);
	}
}

/*
 * A large block and one small one that was seen: the variance is that of the small one alone, but
 * more small ones may have been missed, each worth a whole period. What was estimated when it was
 * sampled and what is read back must say the same.
 */
TEST_WITH(rows_of_mixed_sizes_have_the_interval_of_their_samples, set_up, tear_down)
{
	static const uint64_t rate = 512 << 10;
	struct estimate e = { 0 };
	struct report_options o = { 0 };
	struct profile_sample *s;
	uint32_t a = add_frame("/bin/a", "f");
	double low, high, want_low, want_high;
	const struct report_row *row;
	struct report *r;
	int64_t values[4];

	estimate_add(&e, 3 << 20, estimate_probability(3 << 20, rate));
	estimate_add(&e, 64, estimate_probability(64, rate));
	values[0] = values[2] = (int64_t)(e.objects + 0.5);
	values[1] = values[3] = (int64_t)(e.bytes + 0.5);
	assert_int_equal(profile_set_heap_types(p, rate), 0);
	assert_int_equal(profile_add_sample(p, &a, 1, values, NULL, 0, &s), 0);
	s->has_error = true;
	s->inuse_samples = (int64_t)e.samples;
	s->inuse_bytes_variance = e.bytes_variance;
	s->inuse_objects_variance = e.objects_variance;

	r = open_report(p, &o);
	row = find_row(r, "f");
	estimate_interval(&row->estimate, &low, &high);
	estimate_interval(&e, &want_low, &want_high);
	assert_true(fabs(low - want_low) < 1 + 1e-3 * want_low);
	assert_true(fabs(high - want_high) < 1e-3 * want_high);
	/* two small ones more must be thought possible */
	assert_true(high > e.bytes + 2.0 * rate);

	/* no period, or one of something else, is no size of what was missed */
	p->period = -1;
	r = open_report(p, &o);
	assert_true(find_row(r, "f")->estimate.rate_bytes == 0);
	p->period = rate;
	p->period_type.unit_str = profile_str(p, "nanoseconds");
	r = open_report(p, &o);
	assert_true(find_row(r, "f")->estimate.rate_bytes == 0);
}

/* What was allocated has an error of its own, with more samples than what is in use. */
TEST_WITH(alloc_has_its_own_error, set_up, tear_down)
{
	const uint64_t rate = 1000;
	struct estimate e = { .rate_bytes = rate };
	struct report_options o = { 0 };
	uint32_t a = add_frame("/bin/a", "f");
	struct profile_sample *s;
	char text[REPORT_INTERVAL_BUF], want[UNITS_BUF + 2] = "+-";
	double low, high, want_low, want_high;
	struct report *r;

	assert_int_equal(profile_set_heap_types(p, rate), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(profile_add_sample(p, &a, 1, (int64_t[]){ 500, 50000, 0, 0 }, NULL,
						    0, &s),
				 0);
		s->has_error = true;
		s->alloc_samples = 50;
		s->alloc_bytes_variance = 49000000;
	}
	e.samples = 100;
	e.bytes = 100000;
	e.bytes_variance = 98000000;
	r = open_report(p, &o);
	assert_true(report_alloc_interval(r, &r->rows.data[0], &low, &high));
	estimate_interval(&e, &want_low, &want_high);
	assert_true(low == want_low && high == want_high && low < 81000 && high > 119000);
	assert_true(report_alloc_interval(r, &r->total, &low, &high) && low == want_low);
	assert_true(report_alloc_interval(r, &r->whole, &low, &high) && high == want_high);
	format_bytes(high - 100000, want + 2, UNITS_BUF);
	assert_string_equal(report_format_alloc_interval(r, &r->total, text), want);

	/* everything was kept */
	vec_each(&p->samples, s)
		s->alloc_bytes_variance = 0;
	r = open_report(p, &o);
	assert_true(report_alloc_interval(r, &r->total, &low, &high));
	assert_true(low == 100000 && high == 100000);
	assert_string_equal(report_format_alloc_interval(r, &r->total, text), "exact");

	/* a file that says nothing of it: blocks of 100 bytes */
	vec_each(&p->samples, s)
		s->alloc_samples = 0;
	e.bytes_variance = 2 * estimate_variance_from_sums(50000, 500, rate);
	r = open_report(p, &o);
	assert_true(report_alloc_interval(r, &r->total, &low, &high));
	estimate_interval(&e, &want_low, &want_high);
	assert_true(low == want_low && high == want_high && low < 85000);

	/* nor how it was sampled: not known */
	p->period = 0;
	r = open_report(p, &o);
	assert_false(report_alloc_interval(r, &r->total, &low, &high));
	assert_string_equal(report_format_alloc_interval(r, &r->total, text), "");
}

TEST_WITH(hostile_names_are_escaped, set_up, tear_down)
{
	uint32_t a = add_frame("/bin/a\"b", "x;\"\\\n\x1b[31m");
	char *text;

	assert_int_equal(profile_set_heap_types(p, 1), 0);
	add_sample(&a, 1, (int64_t[]){ 1, 8, 1, 8 });
	text = report_text(p, &(struct report_options){ .format = REPORT_JSON });
	assert_says(text, "\"x;\\\"\\\\\\u000a\\u001b[31m\"");
	text = report_text(p, &(struct report_options){ .format = REPORT_COLLAPSED });
	assert_string_equal(text, "x:\"\\  [31m 8\n");
	text = report_text(p, &(struct report_options){ .format = REPORT_TEXT });
	assert_null(strchr(text, '\x1b'));
	assert_says(text, "(exact)");
}

TEST_WITH(lines_fit_the_page, set_up, tear_down)
{
	static const char name[] =
		"std::map<std::string, std::vector<std::pair<int, long> > >::operator[](std::string "
		"const&, std::allocator<std::pair<int const, std::string> > const&) const";
	uint32_t a = add_frame("/bin/a", name);
	char *line, *rest;

	assert_int_equal(profile_set_heap_types(p, 1000), 0);
	add_sample(&a, 1, (int64_t[]){ 1, 1 << 20, 1, 1 << 20 });
	for (int by = 0; by < 7; by++) {
		rest = report_text(p, &(struct report_options){ .by = by, .label_key = name });
		while ((line = strsep(&rest, "\n")))
			if (strlen(line) > 100)
				fail_msg("%zu columns: %s", strlen(line), line);
	}
}

TEST_WITH(bad_options_are_usage_errors, set_up, tear_down)
{
	static const char *const cases[][5] = {
		{ "report" },
		{ "report", "--by", "colour", "x" },
		{ "report", "--format", "xml", "x" },
		{ "report", "--sort", "size", "x" },
		{ "report", "-n", "-1", "x" },
		{ "report", "-n", "ten", "x" },
		{ "report", "--frames", "", "x" },
		{ "report", "--frames=x", "x" },
		{ "report", "--own", "a,,b", "x" },
		{ "report", "--value", "peak", "x" },
		{ "report", "--color", "sometimes", "x" },
		{ "report", "-v", "--by=thread", "x" },
		{ "report", "--nonsense", "x" },
		{ "report", "a", "b" },
		{ "report", "--format=collapsed", "--by=function", "x" },
		{ "report", "--module=a", "--by=thread", "x" },
		{ "report", "--module=a,,b", "x" },
		{ "report", "--by", "label", "x" },
		{ "report", "--by", "label:", "x" },
		{ "report", "--scope", "", "x" },
		{ "report", "--match", "a,,b", "x" },
		{ "report", "--match=a", "--match=-", "x" },
		{ "report", "--by=scope", "--group-threads", "x" },
		{ "report", "--group-threads=", "x" },
		{ "report", "--group-threads=a,,b", "x" },
		{ "report", "--format=collapsed", "--by=scope", "--top=1", "x" },
		{ "report", "-o", "y.pb.gz", "x" },
		{ "report", "-o", "y.html", "--by=thread", "x" },
		{ "report", "-o", "y.svg", "x" },
		{ "report", "-o", "y.speedscope.json", "x" },
		{ "report", "--format", "svg", "x" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *argv[6] = { NULL };
		int argc = 0;

		for (; argc < 5 && cases[i][argc]; argc++)
			argv[argc] = strdup(cases[i][argc]);
		assert_int_equal(command_run(&command_report, argc, argv), 2);
		/* getopt may have changed the order, not the pointers */
		for (int k = 0; k < argc; k++)
			free(argv[k]);
	}
}

static void report_text_of(const struct report_options *o, char *text, size_t text_bytes)
{
	FILE *out = fmemopen(text, text_bytes, "w");
	struct report *r;

	assert_non_null(out);
	r = open_report(p, o);
	assert_int_equal(o->format == REPORT_JSON ? report_write_json(r, out) :
						    report_write_text(r, out),
			 0);
	fclose(out);
}

/* Allocated bytes may be more than a value can hold, in one row or in the sum of all: they do not wrap. */
TEST_WITH(shows_more_than_64_bits, set_up, tear_down)
{
	struct report_options o = { .by = REPORT_BY_FUNCTION, .format = REPORT_JSON };
	uint32_t frame = add_frame("/bin/app", "churn"), other = add_frame("/bin/app", "most");
	struct profile_sample *s;
	char text[20000];

	assert_int_equal(profile_set_heap_types(p, 1000), 0);
	assert_int_equal(profile_add_sample(p, &frame, 1, (int64_t[]){ 9, INT64_MAX, 1, 64 }, NULL,
					    0, &s),
			 0);
	s->has_error = true;
	s->alloc_samples = s->inuse_samples = 1;
	s->alloc_bytes_beyond = 0x1p65;
	assert_int_equal(profile_add_sample(p, &other, 1, (int64_t[]){ 9, INT64_MAX / 2, 0, 0 },
					    NULL, 0, &s),
			 0);
	s->has_error = true;
	s->alloc_samples = 1;
	report_text_of(&o, text, sizeof(text));
	assert_says(text, "\"alloc_bytes\":46116860184273879040"); /* 2^63 + 2^65 */
	assert_says(text, "\"alloc_bytes\":4611686018427387903");
	assert_says(text, "\"alloc_bytes\":50728546202701266944"); /* and 2^62 */
	assert_omits(text, "\"alloc_bytes\":-");
	o.format = REPORT_TEXT;
	report_text_of(&o, text, sizeof(text));
	assert_says(text, "44.0 EiB");
	assert_says(text, "40.0 EiB");
	o.value = REPORT_VALUE_ALLOC;
	report_text_of(&o, text, sizeof(text));
	assert_says(text, "44.0 EiB");
	assert_says(text, "40.0 EiB");
}

RUN_TESTS()
