/* SPDX-License-Identifier: MIT */
/* test_series.c - profiles split into series, rows folded and cut to limits: the sums stay. */
#include "made_profile.h"
#include "http/series.h"
#include "profile/profile_copy.h"

static const char *const none_taken[] = { NULL };

/* An executable without lines at its locations, a library with them: location i has address i. */
static struct profile *new_profile(uint32_t loc_cnt)
{
	struct profile *p = made_profile(512);
	struct profile_mapping exe = { .limit = UINT64_MAX,
				       .filename_str = profile_str(p, "/bin/server"),
				       .build_id_str = profile_str(p, "00ff") };
	struct profile_mapping lib = { .limit = UINT64_MAX,
				       .filename_str = profile_str(p, "/lib/libx.so"),
				       .has_functions = true };

	p->time_ns = 1700000000000000000;
	assert_int_equal(vec_push(&p->mappings, exe), 0);
	assert_int_equal(vec_push(&p->mappings, lib), 0);
	for (uint32_t i = 0; i < loc_cnt; i++) {
		struct profile_location l = { .mapping = i & 1, .address = i };
		char name[32];

		if (i & 1) {
			struct profile_function f = { 0 };

			snprintf(name, sizeof(name), "function_%u", i);
			f.name_str = f.system_name_str = profile_str(p, name);
			l.line_first = p->lines.cnt;
			l.line_cnt = 1;
			assert_int_equal(vec_push(&p->lines,
						  (struct profile_line){ p->functions.cnt, 7 }),
					 0);
			assert_int_equal(vec_push(&p->functions, f), 0);
		}
		assert_int_equal(vec_push(&p->locations, l), 0);
	}
	return p;
}

struct row {
	const char *scope, *thread, *key, *value; /* NULL = none */
	int64_t task;
	uint32_t loc; /* the leaf, with the next one below it */
	int64_t inuse; /* the other values follow from it */
};

static void add(struct profile *p, const struct row *r)
{
	struct profile_label labels[5];
	size_t n = 0;

	if (r->scope)
		labels[n++] = text_label(p, "scope", r->scope);
	if (r->thread)
		labels[n++] = text_label(p, "thread", r->thread);
	if (r->key)
		labels[n++] = text_label(p, r->key, r->value);
	if (r->task) {
		labels[n++] = number_label(p, "task", r->task);
		labels[n++] = text_label(p, "task_state", "exited");
	}
	assert_int_equal(profile_add_sample(p, (uint32_t[]){ r->loc, r->loc + 1 }, 2,
					    (int64_t[]){ r->task ? 0 : 2 * r->inuse / 8,
							 r->task ? 0 : 2 * r->inuse, r->inuse / 8,
							 r->inuse },
					    labels, n, NULL),
			 0);
}

static const struct row rows[] = {
	{ "Top", "main", NULL, NULL, 0, 0, 800 },
	{ "Top", "worker-1", NULL, NULL, 0, 0, 80 },
	{ "Top", "worker-2", NULL, NULL, 0, 0, 160 }, /* the same row as the one before */
	{ "Top", "worker-2", NULL, NULL, 0, 2, 240 },
	{ "Top/conn", "net", NULL, NULL, 7, 4, 8 },
	{ "Top/conn", "net", NULL, NULL, 9, 4, 16 },
	{ "Top", "worker-9", "query", "select", 0, 2, 24 },
	{ NULL, "main", NULL, NULL, 0, 6, 4000 },
	{ NULL, NULL, NULL, NULL, 0, 6, 32 },
	{ "(unreadable)", "main", NULL, NULL, 0, 6, 40 },
	{ "Top", "idle", NULL, NULL, 0, 6, 0 }, /* holds nothing: no series of its own */
};

static struct profile *small_profile(void)
{
	struct profile *p = new_profile(10);

	each_case(c, rows)
		add(p, c);
	assert_true(profile_comment(p, "command: heaptap --secret") == 0);
	return p;
}

static void sums(const struct profile *p, int64_t to[PROFILE_VALUE_CNT])
{
	for (size_t i = 0; i < p->samples.cnt; i++)
		for (size_t k = 0; k < PROFILE_VALUE_CNT; k++)
			to[k] += p->values.data[p->samples.data[i].value_first + k];
}

/* Written and checked as any reader would. */
static void assert_sound(const struct profile *p)
{
	struct err why = { 0 };
	int fd = memfd_create("profile", MFD_CLOEXEC);
	off_t n;
	void *data;

	assert_true(fd >= 0);
	assert_int_equal(pprof_write(p, fd), 0);
	n = lseek(fd, 0, SEEK_END);
	data = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(data != MAP_FAILED);
	if (pprof_check(data, n, &why))
		fail_msg("%s", why.text);
	munmap(data, n);
	close(fd);
}

static int64_t series_inuse(const struct series_set *set, const char *scope, const char *pool)
{
	for (size_t i = 0; i < set->list.cnt; i++) {
		int64_t total[PROFILE_VALUE_CNT] = { 0 };

		if (strcmp(set->list.data[i].scope, scope) != 0 ||
		    strcmp(set->list.data[i].pool, pool) != 0)
			continue;
		sums(set->list.data[i].profile, total);
		return total[PROFILE_INUSE_SPACE];
	}
	return -1;
}

static void assert_set_is_process(const struct series_set *set, const struct profile *p)
{
	int64_t all[PROFILE_VALUE_CNT] = { 0 }, parts[PROFILE_VALUE_CNT] = { 0 };

	sums(p, all);
	for (size_t i = 0; i < set->list.cnt; i++)
		sums(set->list.data[i].profile, parts);
	assert_memory_equal(all, parts, sizeof(all));
}

TEST(a_series_for_each_scope_and_pool)
{
	struct profile *p = small_profile();
	const struct profile *first;
	struct series_set set;

	assert_int_equal(series_split(p, 64, &set), 0);
	assert_int_equal(set.list.cnt, 6);
	assert_int_equal(set.folded_cnt, 0);
	assert_int_equal(series_inuse(&set, "(none)", "main"), 4000);
	assert_int_equal(series_inuse(&set, "Top", "main"), 800);
	assert_int_equal(series_inuse(&set, "Top", "worker-*"), 80 + 160 + 240 + 24);
	assert_int_equal(series_inuse(&set, "Top/conn", "net"), 24);
	assert_int_equal(series_inuse(&set, "(none)", "(none)"), 32);
	assert_int_equal(series_inuse(&set, "(unreadable)", "main"), 40);
	assert_set_is_process(&set, p);
	for (size_t i = 0; i < set.list.cnt; i++)
		assert_sound(set.list.data[i].profile);
	/* The largest first: one row, two locations, the mappings of the process, no comments. */
	assert_string_equal(set.list.data[0].scope, "(none)");
	first = set.list.data[0].profile;
	assert_int_equal(first->samples.cnt, 1);
	assert_int_equal(first->samples.data[0].label_cnt, 0);
	assert_int_equal(first->locations.cnt, 2);
	assert_int_equal(first->locations.data[0].address, 6);
	assert_int_equal(first->locations.data[0].line_cnt, 0);
	assert_int_equal(first->functions.cnt, 1);
	assert_string_equal(profile_text(first, first->functions.data[0].name_str), "function_7");
	assert_string_equal(profile_text(first, first->mappings.data[0].filename_str),
			    "/bin/server");
	assert_string_equal(profile_text(first, first->mappings.data[0].build_id_str), "00ff");
	assert_int_equal(first->comments.cnt, 0);
	assert_int_equal(first->time_ns, p->time_ns);
	assert_int_equal(first->period, 512);
	/* worker-1 and worker-2 at the same place are one row now. */
	assert_int_equal(set.list.data[2].profile->samples.cnt, 2);
	series_release(&set);
}

/* What is in use is not there at all where it is not known: 0 would be taken for true. */
TEST(unknown_inuse_is_left_out)
{
	static const struct profile_limits limits = { PYROSCOPE_ROW_MAX, PYROSCOPE_BYTES_MAX };
	struct profile *p = small_profile(), *labelled, *made;
	struct profile_limited lost;
	struct series_set set;
	size_t folded_cnt;
	int64_t sum = 0, must = 0;

	p->recording.is_known = true;
	p->recording.inuse = RECORDING_INUSE_UNKNOWN;
	p->default_type_str = profile_str(p, "alloc_space");
	for (size_t i = 0; i < p->samples.cnt; i++) {
		int64_t *values = p->values.data + p->samples.data[i].value_first;

		values[PROFILE_INUSE_OBJECTS] = values[PROFILE_INUSE_SPACE] = 0;
		must += values[PROFILE_ALLOC_SPACE];
	}
	assert_int_equal(series_split(p, 64, &set), 0);
	for (size_t i = 0; i < set.list.cnt; i++) {
		const struct profile *q = set.list.data[i].profile;

		assert_int_equal(q->types.cnt, 2);
		assert_true(profile_find_type(q, "inuse_space") < 0);
		assert_string_equal(profile_text(q, q->default_type_str), "alloc_space");
		for (size_t k = 0; k < q->samples.cnt; k++)
			sum += q->values.data[q->samples.data[k].value_first + PROFILE_ALLOC_SPACE];
	}
	assert_int_equal(sum, must);
	series_release(&set);
	assert_int_equal(series_rows(p, 64, none_taken, &labelled, &folded_cnt), 0);
	assert_int_equal(profile_limit(labelled, &limits, &made, &lost), 0);
	assert_int_equal(made->types.cnt, 2);
	sum = 0;
	for (size_t k = 0; k < made->samples.cnt; k++)
		sum += made->values.data[made->samples.data[k].value_first + PROFILE_ALLOC_SPACE];
	assert_int_equal(sum, must);
	profile_free(made);
	profile_free(labelled);
}

TEST(the_rest_is_one_series)
{
	struct profile *p = small_profile();
	struct series_set set;

	assert_int_equal(series_split(p, 3, &set), 0);
	assert_int_equal(set.list.cnt, 3);
	assert_int_equal(set.folded_cnt, 5); /* with the pair that holds nothing */
	assert_int_equal(series_inuse(&set, "(none)", "main"), 4000);
	assert_int_equal(series_inuse(&set, "Top", "main"), 800);
	assert_int_equal(series_inuse(&set, "(other)", "(other)"), 504 + 24 + 32 + 40);
	assert_string_equal(set.list.data[2].scope, "(other)");
	assert_set_is_process(&set, p);
	series_release(&set);
	assert_int_equal(series_split(p, 1, &set), 0);
	assert_int_equal(set.list.cnt, 1);
	assert_set_is_process(&set, p);
	assert_sound(set.list.data[0].profile);
	series_release(&set);
}

/* Where the program itself has a scope of that name, it joins the rest. */
TEST(a_scope_that_is_called_other)
{
	static const struct row own = { "(other)", "(other)", NULL, NULL, 0, 8, 1 << 20 };
	struct profile *p = small_profile();
	struct series_set set;

	add(p, &own);
	assert_int_equal(series_split(p, 3, &set), 0);
	assert_true(set.list.cnt <= 3);
	assert_int_equal(series_inuse(&set, "(none)", "main"), 4000);
	assert_int_equal(series_inuse(&set, "(other)", "(other)"),
			 (1 << 20) + 800 + 504 + 24 + 32 + 40);
	assert_set_is_process(&set, p);
	series_release(&set);
}

TEST(an_empty_profile_has_no_series)
{
	struct profile *p = new_profile(2), *made;
	struct series_set set;
	size_t folded;

	assert_int_equal(series_split(p, 3, &set), 0);
	assert_int_equal(set.list.cnt, 0);
	series_release(&set);
	assert_int_equal(series_rows(p, 3, none_taken, &made, &folded), 0);
	assert_int_equal(made->samples.cnt, 0);
	profile_free(made);
}

static int64_t rows_inuse(const struct profile *p, const char *key, const char *value)
{
	int64_t total = 0;

	for (size_t i = 0; i < p->samples.cnt; i++) {
		const struct profile_sample *s = &p->samples.data[i];
		const char *text = profile_sample_label(p, s, key);

		if (value ? text && !strcmp(text, value) : !text)
			total += p->values.data[s->value_first + PROFILE_INUSE_SPACE];
	}
	return total;
}

TEST(rows_keep_labels_that_are_bounded)
{
	static const struct row odd[] = {
		{ "Top", "main", "my.key", "v", 0, 2, 8 },
		{ "Top", "main", "pid", "v", 0, 2, 16 },
		{ "Top", "main", "__name__", "v", 0, 2, 24 },
		{ "Top", "main", "9\xc3\xa4", "v", 0, 2, 32 },
		{ "Top", "main", "service.name", "v", 0, 2, 64 },
	};
	static const char *const taken[] = { "job", "pid", "service_name", NULL };
	int64_t all[PROFILE_VALUE_CNT] = { 0 }, now[PROFILE_VALUE_CNT] = { 0 };
	struct profile *p = small_profile(), *made;
	size_t folded;

	each_case(c, odd)
		add(p, c);
	assert_int_equal(series_rows(p, 64, taken, &made, &folded), 0);
	assert_sound(made);
	assert_int_equal(folded, 0);
	assert_int_equal(rows_inuse(made, "task_state", NULL), rows_inuse(made, "task", NULL));
	for (size_t i = 0; i < made->labels.cnt; i++)
		assert_true(made->labels.data[i].str != 0);
	assert_int_equal(rows_inuse(made, "thread", "worker-*"), 504);
	assert_int_equal(rows_inuse(made, "query", "select"), 24);
	assert_int_equal(rows_inuse(made, "scope", "Top/conn"), 24);
	assert_int_equal(rows_inuse(made, "scope", NULL), 4032);
	assert_int_equal(rows_inuse(made, "my_key", "v"), 8);
	assert_int_equal(rows_inuse(made, "exported_pid", "v"), 16);
	assert_int_equal(rows_inuse(made, "exported___name__", "v"), 24);
	assert_int_equal(rows_inuse(made, "exported____", "v"), 32);
	assert_int_equal(rows_inuse(made, "exported_service_name", "v"), 64);
	sums(p, all);
	sums(made, now);
	assert_memory_equal(all, now, sizeof(all));
	/* Every location has a line; the one of a bare address names the file. */
	for (size_t i = 0; i < made->locations.cnt; i++) {
		const struct profile_location *l = &made->locations.data[i];
		const char *name;

		assert_int_equal(l->line_cnt, 1);
		name = profile_text(
			made,
			made->functions.data[made->lines.data[l->line_first].function].name_str);
		if (l->address == 6)
			assert_string_equal(name, "server+0x6");
		if (l->address == 7)
			assert_string_equal(name, "function_7");
	}
	profile_free(made);
}

TEST(rows_of_too_many_labels_are_folded)
{
	int64_t all[PROFILE_VALUE_CNT] = { 0 }, now[PROFILE_VALUE_CNT] = { 0 };
	struct profile *p = new_profile(10), *made;
	char scope[32];
	size_t folded;

	for (int i = 0; i < 1000; i++) {
		const struct row r = { scope, "main", NULL, NULL, 0, i % 8, 8 * (i + 1) };

		snprintf(scope, sizeof(scope), "Top/%d", i);
		add(p, &r);
	}
	assert_int_equal(series_rows(p, 10, none_taken, &made, &folded), 0);
	assert_int_equal(folded, 991);
	assert_int_equal(rows_inuse(made, "scope", "Top/999"), 8000);
	assert_int_equal(rows_inuse(made, "scope", "Top/991"), 8 * 992);
	assert_int_equal(rows_inuse(made, "scope", "Top/990"), 0);
	assert_int_equal(rows_inuse(made, "scope", "(other)"), 8 * 991 * 992 / 2);
	assert_int_equal(made->samples.cnt, 9 + 8);
	sums(p, all);
	sums(made, now);
	assert_memory_equal(all, now, sizeof(all));
	profile_free(made);
}

TEST(what_fits_is_left_alone)
{
	static const struct profile_limits limits = { PYROSCOPE_ROW_MAX, PYROSCOPE_BYTES_MAX };
	struct profile *p = small_profile(), *made;
	struct profile_limited lost;
	uint64_t before, after;

	p->comments.cnt = 0;
	assert_int_equal(profile_limit(p, &limits, &made, &lost), 0);
	assert_int_equal(lost.folded_rows, 0);
	assert_int_equal(lost.cut_stacks, 0);
	assert_int_equal(made->samples.cnt, p->samples.cnt);
	assert_sound(made);
	assert_int_equal(pprof_bytes(p, &before), 0);
	assert_int_equal(pprof_bytes(made, &after), 0);
	assert_true(after <= before);
	profile_free(made);
}

/* As series_rows() leaves it: rows of a scope side by side. */
static struct profile *large_profile(int scope_cnt, int rows_each, uint32_t depth)
{
	struct profile *p = new_profile(50000);
	uint32_t *locs = calloc(depth, sizeof(*locs));
	char scope[32];

	for (int i = 0; i < scope_cnt; i++) {
		struct profile_label label;

		snprintf(scope, sizeof(scope), "Top/%d", i);
		label = text_label(p, "scope", scope);
		for (int k = 0; k < rows_each; k++) {
			int64_t v = 1 + (i * 7919 + k * 104729) % 1000003;

			for (uint32_t d = 0; d < depth; d++)
				locs[d] = ((uint32_t)(i * rows_each + k) * 31 + d * d) % 50000;
			assert_int_equal(profile_add_sample(p, locs, depth,
							    (int64_t[]){ v, 9 * v, v, 8 * v },
							    &label, 1, NULL),
					 0);
		}
	}
	free(locs);
	return p;
}

static void check_limits(struct profile *p, int scope_cnt, const struct profile_limits *limits,
			 struct profile_limited *lost)
{
	int64_t all[PROFILE_VALUE_CNT] = { 0 }, now[PROFILE_VALUE_CNT] = { 0 };
	struct profile *made;
	uint64_t bytes;
	char scope[32];

	assert_int_equal(profile_limit(p, limits, &made, lost), 0);
	assert_true(made->samples.cnt <= limits->row_max);
	assert_int_equal(pprof_bytes(made, &bytes), 0);
	assert_true(bytes <= limits->bytes_max);
	assert_sound(made);
	sums(p, all);
	sums(made, now);
	assert_memory_equal(all, now, sizeof(all));
	for (int i = 0; i < scope_cnt; i++) {
		snprintf(scope, sizeof(scope), "Top/%d", i);
		assert_int_equal(rows_inuse(p, "scope", scope), rows_inuse(made, "scope", scope));
	}
	profile_free(made);
}

TEST(too_many_rows_are_folded)
{
	static const struct profile_limits limits = { 2000, PYROSCOPE_BYTES_MAX };
	struct profile *p = large_profile(20, 300, 4);
	struct profile_limited lost;

	check_limits(p, 20, &limits, &lost);
	assert_int_equal(lost.folded_rows, 6000 - (2000 - 20));
	assert_int_equal(lost.cut_stacks, 0);
}

TEST(too_many_bytes_are_cut_and_folded)
{
	static const struct profile_limits deep = { PYROSCOPE_ROW_MAX, 1200 << 10 };
	static const struct profile_limits tight = { PYROSCOPE_ROW_MAX, 100 << 10 };
	struct profile *p = large_profile(5, 400, 400);
	struct profile_limited lost;

	check_limits(p, 5, &deep, &lost);
	assert_int_equal(lost.cut_stacks, 2000);
	assert_int_equal(lost.folded_rows, 0);
	check_limits(p, 5, &tight, &lost);
	assert_true(lost.folded_rows > 0 && lost.folded_rows < 2000);
}

TEST(the_leaf_is_never_cut)
{
	static const struct profile_limits limits = { 100, 60000 };
	struct profile *p = large_profile(1, 100, 600), *made;
	struct profile_limited lost;

	assert_int_equal(profile_limit(p, &limits, &made, &lost), 0);
	assert_true(lost.cut_stacks > 0);
	for (size_t i = 0; i < made->samples.cnt; i++) {
		const struct profile_sample *s = &made->samples.data[i];
		const uint32_t *locs = made->sample_locs.data + s->loc_first;
		const struct profile_location *root = &made->locations.data[locs[s->loc_cnt - 1]];
		uint32_t function = made->lines.data[root->line_first].function;

		if (s->loc_cnt == 1)
			continue; /* [other] */
		assert_int_equal(made->locations.data[locs[0]].address % 31, 0);
		assert_string_equal(profile_text(made, made->functions.data[function].name_str),
				    LIMIT_CUT);
	}
	profile_free(made);
}

TEST(what_can_never_fit_is_an_error)
{
	static const struct profile_limits tiny = { PYROSCOPE_ROW_MAX, 50 };
	static const struct profile_limits no_rows = { 10, PYROSCOPE_BYTES_MAX };
	struct profile *p = large_profile(20, 5, 2), *made = NULL;
	struct profile_limited lost;

	assert_int_equal(profile_limit(p, &tiny, &made, &lost), -E2BIG);
	assert_int_equal(profile_limit(p, &no_rows, &made, &lost), -E2BIG);
	assert_null(made);
}

RUN_TESTS()
