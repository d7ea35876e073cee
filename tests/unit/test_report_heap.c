/* SPDX-License-Identifier: MIT */
/* test_report_heap.c - the text form for jeprof and gperftools' pprof, read back by import.c. */
#include "made_profile.h"

#include "profile/match_list.h"

static uint32_t add_location(struct profile *p, uint32_t mapping, uint64_t address,
			     const char *const *names)
{
	struct profile_location l = { mapping, address, .line_first = p->lines.cnt };

	for (; names && *names; names++, l.line_cnt++) {
		struct profile_function f = { .name_str = profile_str(p, *names) };

		assert_int_equal(vec_push(&p->functions, f), 0);
		assert_int_equal(
			vec_push(&p->lines, (struct profile_line){ p->functions.cnt - 1, 0 }), 0);
	}
	assert_int_equal(vec_push(&p->locations, l), 0);
	return p->locations.cnt - 1;
}

static void add_sample(struct profile *p, const uint32_t *locs, size_t cnt, int64_t bytes)
{
	int64_t values[] = { 2, 2 * bytes, 1, bytes };

	assert_int_equal(profile_add_sample(p, locs, cnt, values, NULL, 0, NULL), 0);
}

/* What a reader of addresses could confuse: an address twice, none, in no file, too large. */
static struct profile *make_profile(void)
{
	static const char *const inlined[] = { "parse", "load", NULL };
	static const char *const trimmed[] = { "load", NULL };
	static const char *const decrement[] = { "T::operator--(int)", NULL };
	static const char *const marker[] = { "[truncated: too deep]", NULL };
	struct profile *p = made_profile(65536);
	uint32_t a, b, c, d, e, f, g;

	made_mapping(p, "/bin/server");
	made_mapping(p, "/lib/a--b\n.so");
	a = add_location(p, 0, 0x1234, inlined);
	b = add_location(p, 0, 0x1234, trimmed);
	c = add_location(p, 0, 0x1235, decrement);
	d = add_location(p, 1, 0x1234, NULL);
	e = add_location(p, HT_NO_INDEX, 0, marker);
	f = add_location(p, 1, UINT64_MAX, decrement);
	g = add_location(p, 0, 0, decrement);
	add_sample(p, (uint32_t[]){ a, c, d }, 3, 1000);
	add_sample(p, (uint32_t[]){ b, c, e }, 3, 200);
	add_sample(p, (uint32_t[]){ f, g }, 2, 30);
	add_sample(p, NULL, 0, 4);
	add_sample(p, (uint32_t[]){ b, c, e }, 3, 500); /* the same stack, another thread */
	return p;
}

/* "root;caller;leaf bytes" of all stacks. */
static const struct report_options collapsed_form = { .format = REPORT_COLLAPSED };

static struct profile *read_back(const char *text)
{
	struct profile *p = NULL;
	struct err why;

	if (pprof_read_mem(text, strlen(text), &p, &why))
		fail_msg("line %llu: %s in\n%s", (unsigned long long)why.line, why.text, text);
	return unit_keep(p, release_profile);
}

TEST(keeps_stacks_names_and_values)
{
	struct profile *p = make_profile(), *q;
	char *heap = report_text(p, &(struct report_options){ .format = REPORT_HEAP }), *collapsed;

	q = read_back(heap);
	collapsed = report_text(q, &collapsed_form);
	assert_string_equal(collapsed, "a- -b .so+0x1234;T::operator- -(int);load;parse 1000\n"
				       "[truncated: too deep];T::operator- -(int);load 700\n"
				       "T::operator- -(int);T::operator- -(int) 30\n"
				       "[no stack] 4\n");
	assert_int_equal(q->values.data[PROFILE_ALLOC_SPACE], 2000);
	assert_int_equal(q->values.data[PROFILE_ALLOC_OBJECTS], 2);
	assert_int_equal(q->values.data[PROFILE_INUSE_OBJECTS], 1);
	assert_int_equal(q->comments.cnt, 1); /* the first line's total is that of the stacks */
}

/* What --match leaves out has no stack; its bytes are there. */
TEST(keeps_what_is_not_matched)
{
	struct report_options opts = { .format = REPORT_HEAP };
	struct profile *p = make_profile(), *q;
	char *heap, *collapsed;

	assert_int_equal(match_list_new("Top", &opts.match), 0);
	heap = report_text(p, &opts);
	q = read_back(heap);
	collapsed = report_text(q, &collapsed_form);
	assert_string_equal(collapsed, "[not matched] 1734\n");
	match_list_free(opts.match);
}

/* No line is what another reader would take apart: each address has one name. */
TEST(names_each_address_once)
{
	struct profile *p = make_profile();
	char *heap = report_text(p, &(struct report_options){ .format = REPORT_HEAP }), *line,
	     *rest = heap, *seen[64];
	size_t cnt = 0;

	while ((line = strsep(&rest, "\n")) && strcmp(line, "---") != 0) {
		if (strncmp(line, "0x", 2) != 0)
			continue;
		assert_true(line[18] == ' ' && line[19]);
		line[18] = '\0';
		for (size_t i = 0; i < cnt; i++)
			assert_string_not_equal(line, seen[i]);
		assert_true(cnt < 64);
		seen[cnt++] = line;
	}
	assert_int_equal(cnt, 2 * (7 + 2));
}

/* The remote protocol: addresses as they are, callers one further, as all its readers expect. */
TEST(writes_addresses)
{
	struct report_options opts = { .format = REPORT_HEAP, .heap_form = REPORT_HEAP_ADDRESSES };
	struct profile_mapping m = { .start = 0x400000, .limit = 0x500000, .offset = 0x1000 };
	struct profile *p = made_profile(65536);
	char *text;
	uint32_t locs[2];

	m.filename_str = profile_str(p, "/bin/server");
	assert_int_equal(vec_push(&p->mappings, m), 0);
	locs[0] = add_location(p, 0, 0x401233, NULL);
	locs[1] = add_location(p, HT_NO_INDEX, 0x7f0000001000, NULL);
	add_sample(p, locs, 2, 1000);
	for (int is_growth = 0; is_growth < 2; is_growth++) {
		struct profile *q;

		opts.heap_is_growth = is_growth;
		text = report_text(p, &opts);
		assert_string_equal(
			text,
			is_growth ?
				"heap profile:      2:     2000 [     2:     2000] @ growthz\n"
				"     2:     2000 [     2:     2000] @ 0x0000000000401233 "
				"0x00007f0000001001\n\nMAPPED_LIBRARIES:\n"
				"0000000000400000-0000000000500000 r-xp 00001000 00:00 0   "
				"/bin/server\n" :
				"heap profile:      1:     1000 [     2:     2000] @ heapprofile\n"
				"     1:     1000 [     2:     2000] @ 0x0000000000401233 "
				"0x00007f0000001001\n\nMAPPED_LIBRARIES:\n"
				"0000000000400000-0000000000500000 r-xp 00001000 00:00 0   "
				"/bin/server\n");
		q = read_back(text);
		assert_int_equal(q->samples.cnt, 1);
	}
}

/* Parts that are much less than a sample each: none becomes a whole one, or together they would be much more. */
TEST(threads_are_no_more_than_all)
{
	const struct report_options opts = { .format = REPORT_HEAP_V2 };
	int64_t values[] = { 2, 2000, 1, 1000 };
	char name[8], *text, *stack;
	int all = 0, sum = 0, cnt, threads = 0, used;
	struct profile *p = made_profile(65536);
	uint32_t loc = add_location(p, HT_NO_INDEX, 0x401233, NULL);

	for (int i = 0; i < 40; i++) {
		struct profile_label label;

		snprintf(name, sizeof(name), "io%d", i);
		label = text_label(p, "thread", name);
		assert_int_equal(profile_add_sample(p, &loc, 1, values, &label, 1, NULL), 0);
	}
	text = report_text(p, &opts);
	stack = strstr(text, "\n@ ");
	assert_non_null(stack);
	stack = strchr(stack + 1, '\n') + 1;
	assert_int_equal(sscanf(stack, " t*: %d:", &all), 1);
	stack = strchr(stack, '\n') + 1;
	for (; sscanf(stack, " t%*d: %d: %*d [%*d: %*d]%n", &cnt, &used) == 1; stack += used) {
		sum += cnt;
		threads++;
	}
	assert_int_equal(threads, 40);
	assert_true(abs(sum - all) <= 40 / 2); /* half of a sample each */
}

RUN_TESTS()
