/* SPDX-License-Identifier: MIT */
/*
 * test_report_scopes.c - reports by scope, instance, label and pool: the rows add up to the total
 * whatever is filtered, folded or cut off; what notes say goes to the right rows; what is asked
 * for and not there is named.
 */
#include "made_profile.h"
#include "made_note.h"
#include "cmd/cmd.h"
#include "report/report_rows.h"
#include "profile/match_list.h"

static struct profile *p; /* of the test that runs */

struct made {
	const char *scope, *thread; /* NULL = none */
	int64_t task; /* 0 = none */
	bool is_exited;
	int64_t alloc, inuse;
};

static void add(const struct made *m)
{
	struct profile_label labels[5];
	struct profile_sample *s;
	size_t cnt = 0;

	if (m->thread)
		labels[cnt++] = text_label(p, "thread", m->thread);
	if (m->scope)
		labels[cnt++] = text_label(p, "scope", m->scope);
	if (m->task)
		labels[cnt++] = number_label(p, "task", m->task);
	if (m->is_exited)
		labels[cnt++] = text_label(p, "task_state", "exited");
	labels[cnt++] = (struct profile_label){ profile_str(p, "size"), 0, m->inuse,
						profile_str(p, "bytes") };
	assert_int_equal(
		profile_add_sample(p, NULL, 0,
				   (int64_t[]){ m->alloc / 10, m->alloc, m->inuse / 10, m->inuse },
				   labels, cnt, &s),
		0);
	s->has_error = true;
	s->inuse_samples = 1;
	s->inuse_bytes_variance = 25;
}

static int set_up(void **state)
{
	static const struct made samples[] = {
		{ "Top", "w-1", 0, false, 100, 100 },
		{ "Top/A", "w-1", 0, false, 100, 100 },
		{ "Top/A/B", "w-2", 0, false, 100, 100 },
		{ "Top/B", "w-2", 0, false, 100, 100 },
		{ "Top/B/Top", "net:low3", 0, false, 50, 10 },
		{ "conn", "net:low4", 0, false, 500, 0 },
		{ "conn", "net:low4", 1, false, 0, 40 },
		{ "conn", "net:low4", 1, false, 0, 20 },
		{ "conn", "main", 2, true, 0, 5 },
		{ NULL, "main", 0, false, 30, 30 },
		{ NULL, NULL, 0, false, 1, 1 },
	};

	p = made_profile(100);
	each_case(c, samples)
		add(c);
	return 0;
}
#define TOTAL 506
#define TOTAL_ALLOC 981

static const struct report_row *find_row(const struct report *r, const char *name)
{
	const struct report_row *row;

	vec_each(&r->rows, row)
		if (!strcmp(strset_get(r->names, row->name), name))
			return row;
	fail_msg("there is no row '%s'", name);
	return NULL;
}

/* What a tree must be: each scope is its own part and the rows right below it, if there are any. */
static void check_tree(const struct report *r)
{
	int64_t top = 0;

	for (size_t i = 0; i < r->rows.cnt; i++) {
		const struct report_row *row = &r->rows.data[i];
		int64_t below = 0;
		bool has_rows = false;

		if (!row->scope.depth)
			top += row->value;
		for (size_t k = i + 1; k < r->rows.cnt; k++) {
			if (r->rows.data[k].scope.depth <= row->scope.depth)
				break;
			if (r->rows.data[k].scope.depth == row->scope.depth + 1)
				below += r->rows.data[k].value;
			has_rows = true;
		}
		if (has_rows || !r->opts->row_cap)
			assert_int_equal(row->value, row->scope.exclusive.bytes + below);
	}
	assert_int_equal(top, r->total.value);
}

static void check_sums(const struct report *r)
{
	int64_t value = 0, alloc = 0;
	const struct report_row *row;
	double variance = 0;

	vec_each(&r->rows, row) {
		if (r->opts->by == REPORT_BY_SCOPE && row->scope.depth)
			continue;
		value += row->value;
		alloc += row->alloc;
		variance += row->estimate.bytes_variance;
	}
	assert_int_equal(value, r->total.value);
	assert_int_equal(alloc, r->total.alloc);
	/* what only notes say has an error of its own */
	if (r->opts->by == REPORT_BY_INSTANCE)
		assert_true(variance >= r->total.estimate.bytes_variance);
	else
		assert_true(variance == r->total.estimate.bytes_variance);
	if (r->opts->by == REPORT_BY_SCOPE)
		check_tree(r);
}

TEST_WITH(rows_add_up_whatever_is_asked, set_up, NULL)
{
	static const char *const scopes[] = { NULL, "Top", "Top/A", "conn", "(none)" };
	static const char *const lists[] = { NULL, "Top", "A,-B", "-conn", "-*", "*/B", "none" };
	int cases = 0;

	for (int i = 0; i < 10 * 6 * 8 * 5 * 7 * 2; i++) {
		const char *list = lists[i / (10 * 6 * 8 * 5) % 7];
		struct report_options o = { .by = i % 10,
					    .sort = i / 10 % 6,
					    .row_cap = i / 60 % 8,
					    .scope = scopes[i / (60 * 8) % 5],
					    .folds_repeated = i / (60 * 8 * 5 * 7),
					    .groups_threads = i & 1,
					    .label_key = "thread" };
		bool is_of_alloc = o.by == REPORT_BY_LIFETIME || o.by == REPORT_BY_SIZE;
		int64_t total = is_of_alloc ? TOTAL_ALLOC : TOTAL;
		struct report *r;

		if (list)
			assert_int_equal(match_list_new(list, &o.match), 0);
		r = open_report(p, &o);
		check_sums(r);
		assert_int_equal(r->whole.value, total);
		if (!o.scope) {
			assert_int_equal(r->total.value, total);
			assert_int_equal(r->total.alloc, report_is_by_class(&o) ? 0 : TOTAL_ALLOC);
		}
		cases += r->has_unmatched;
		unit_drop(r);
		match_list_free(o.match);
	}
	assert_true(cases > 1000);
}

TEST_WITH(scopes_are_a_tree, set_up, NULL)
{
	static const struct {
		const char *name;
		uint32_t depth;
		int64_t inclusive, exclusive, alloc;
	} want[] = {
		{ "Top", 0, 410, 100, 450 }, { "A", 1, 200, 100, 200 }, { "B", 2, 100, 100, 100 },
		{ "B", 1, 110, 100, 150 },   { "Top", 2, 10, 10, 50 },	{ "conn", 0, 65, 65, 500 },
		{ "(none)", 0, 31, 31, 31 },
	};
	struct report_options o = { .by = REPORT_BY_SCOPE };
	struct report *r = open_report(p, &o);

	assert_int_equal(r->rows.cnt, sizeof(want) / sizeof(*want));
	for (size_t i = 0; i < r->rows.cnt; i++) {
		const struct report_row *row = &r->rows.data[i];

		if (strcmp(strset_get(r->names, row->name), want[i].name) != 0 ||
		    row->scope.depth != want[i].depth || row->value != want[i].inclusive ||
		    row->scope.exclusive.bytes != want[i].exclusive || row->alloc != want[i].alloc)
			fail_msg("row %zu is %s, %lld", i, strset_get(r->names, row->name),
				 (long long)row->value);
	}
}

TEST_WITH(the_largest_scopes_are_shown, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_SCOPE, .row_cap = 2 };
	struct report *r = open_report(p, &o);

	/* Top, A (of which nothing is shown), what is left below Top and at the top */
	assert_int_equal(r->rows.cnt, 4);
	assert_string_equal(strset_get(r->names, r->rows.data[1].name), "A");
	assert_int_equal(r->rows.data[2].value, 110);
	assert_int_equal(r->rows.data[3].value, 96);
	assert_int_equal(r->rows.data[3].row_cnt, 2);
	/* a scope that is asked for is the first, whatever it lies in */
	o.scope = "Top/A";
	o.row_cap = 1;
	r = open_report(p, &o);
	assert_int_equal(r->rows.cnt, 1);
	assert_string_equal(strset_get(r->names, r->rows.data[0].name), "Top/A");
}

TEST_WITH(peaks_belong_to_whole_scopes, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_SCOPE };
	const struct report_row *row;
	struct report *r;

	made_note(p, "scope_peak: bytes=700 time=2026-11-21T22:01:02.123Z scope=Top");
	made_note(p, "scope_peak: bytes=300 time=2026-11-21T22:01:02.123Z scope=Top/A");
	made_note(p, "scope_peak: bytes=90 pid=1 scope=conn");
	made_note(p, "scope_peak: bytes=80 pid=2 scope=conn");
	made_note(p, "scope_peak: bytes=1 scope=not/there");
	r = open_report(p, &o);
	assert_int_equal(r->rows.cnt, 7);
	row = find_row(r, "Top");
	assert_true(row->peak.is_known && !row->peak.is_minimum);
	assert_int_equal(row->peak.bytes, 700);
	assert_true(row->peak.time_ns == 1795298462123000000);
	row = find_row(r, "conn"); /* of two processes */
	assert_true(row->peak.is_minimum);
	assert_int_equal(row->peak.bytes, 90);
	assert_false(find_row(r, "(none)")->peak.is_known);
	/* a part of Top has no peak that is known */
	assert_int_equal(match_list_new("A", &o.match), 0);
	r = open_report(p, &o);
	assert_false(find_row(r, "Top")->peak.is_known);
	assert_int_equal(find_row(r, "A")->peak.bytes, 300);
	match_list_free(o.match);
	/* nor has what matches without all that lies in it */
	assert_int_equal(match_list_new("*,-Top/A/B", &o.match), 0);
	r = open_report(p, &o);
	assert_false(find_row(r, "Top")->peak.is_known);
	assert_false(find_row(r, "A")->peak.is_known);
	assert_true(find_row(r, "conn")->peak.is_known);
	match_list_free(o.match);
}

/* Of several scopes that are one row the common peak is at least the higher one, and at least what they have now. */
TEST_WITH(peaks_of_folded_scopes_are_bounds, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_SCOPE, .folds_repeated = true };
	const struct report_row *row;
	struct report *r;

	add(&(struct made){ .scope = "A/B", .inuse = 10 });
	add(&(struct made){ .scope = "A/B/A", .inuse = 20 });
	add(&(struct made){ .scope = "A/B/C", .inuse = 30 });
	add(&(struct made){ .scope = "A/B/A/C", .inuse = 40 });
	add(&(struct made){ .scope = "L", .inuse = 80 });
	made_note(p, "scope_peak: bytes=50 time=2026-11-21T22:01:02.123Z scope_cnt=2 scope=L");
	made_note(p, "scope_peak: bytes=500 time=2026-11-21T22:01:02.123Z scope=A/B");
	made_note(p, "scope_peak: bytes=400 scope=A/B/A");
	made_note(p, "scope_peak: bytes=60 time=2026-11-21T22:01:02.123Z scope=A/B/C");
	made_note(p, "scope_peak: bytes=45 scope=A/B/A/C");
	r = open_report(p, &o);
	row = find_row(r, "L");
	assert_true(row->peak.is_minimum);
	assert_int_equal(row->peak.bytes, 80);
	assert_int_equal(row->peak.time_ns, 0);
	row = find_row(r, "C");
	assert_int_equal(row->value, 70);
	assert_true(row->peak.is_minimum);
	assert_int_equal(row->peak.bytes, 70); /* 60, but there are 70 now */
	assert_int_equal(row->peak.time_ns, 0);
	vec_each(&r->rows, row)
		if (!strcmp(strset_get(r->names, row->scope.path), "A/B"))
			break;
	assert_int_equal(row->value, 100);
	assert_int_equal(row->scope.exclusive.bytes, 30);
	assert_false(row->peak.is_minimum);
	assert_int_equal(row->peak.bytes, 500); /* A/B/A's is part of it */
	/* an interval of a sum is made from the sum of the variances */
	assert_true(row->estimate.bytes_variance == 100);
	assert_true(row->estimate.bytes == 100);
	assert_int_equal(row->estimate.samples, 4);
}

TEST_WITH(sums_of_scopes_saturate, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_SCOPE, .scope = "big" };
	struct report *r;

	for (int i = 0; i < 2; i++)
		add(&(struct made){ .scope = "big", .alloc = INT64_MIN, .inuse = INT64_MAX });
	add(&(struct made){ .scope = "big/below", .alloc = INT64_MIN, .inuse = INT64_MAX });
	r = open_report(p, &o);
	assert_true(r->rows.data[0].value == INT64_MAX);
	assert_true(r->rows.data[0].alloc == INT64_MIN);
}

/* The error of what tasks allocated is in their notes; what is left is the others'. */
TEST_WITH(instances_have_the_error_of_alloc, set_up, NULL)
{
	struct report_options by_task = { .by = REPORT_BY_INSTANCE, .scope = "conn" };
	struct report_options by_scope = { .by = REPORT_BY_SCOPE };
	struct profile_sample *s;
	double low, high;
	struct report *r;

	vec_each(&p->samples, s) {
		int64_t alloc = p->values.data[s->value_first + PROFILE_ALLOC_SPACE];

		s->alloc_samples = (uint64_t)alloc / 10;
		s->alloc_bytes_variance = (double)alloc;
	}
	made_note(p, "instance: task=1 state=live inuse_bytes=61 alloc_bytes=200 "
		     "alloc_samples=20 alloc_error=15 scope=conn");
	made_note(p, "instance: task=2 state=exited inuse_bytes=5 alloc_bytes=25 "
		     "alloc_samples=2 alloc_error=0 scope=conn");
	r = open_report(p, &by_task);
	assert_true(r->has_alloc_samples);
	assert_true(find_row(r, "conn #1")->alloc_estimate.bytes_variance == 225);
	assert_int_equal(find_row(r, "conn #1")->alloc_estimate.samples, 20);
	assert_true(report_alloc_interval(r, find_row(r, "conn #2"), &low, &high));
	assert_true(low == 25 && high == 25);
	assert_true(find_row(r, "(no task)")->alloc_estimate.bytes_variance == 500 - 225);
	assert_true(find_row(r, "(no task)")->alloc_estimate.bytes == 500 - 200 - 25);
	assert_int_equal(find_row(r, "(no task)")->alloc_estimate.samples, 50 - 20 - 2);
	r = open_report(p, &by_scope);
	assert_true(find_row(r, "Top")->alloc_estimate.bytes_variance == 450);
	assert_int_equal(find_row(r, "Top")->scope.exclusive.alloc_bytes, 100);
	assert_true(r->total.alloc_estimate.bytes_variance == TOTAL_ALLOC);
	/* one that does not say it: it is not known, nor what is left */
	made_note(p, "instance: task=3 state=live inuse_bytes=0 alloc_bytes=8 scope=conn");
	r = open_report(p, &by_task);
	assert_false(report_alloc_interval(r, find_row(r, "conn #3"), &low, &high));
	assert_false(report_alloc_interval(r, find_row(r, "(no task)"), &low, &high));
	assert_true(report_alloc_interval(r, find_row(r, "conn #1"), &low, &high));
}

TEST_WITH(instances_take_what_notes_say, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_INSTANCE };
	const struct report_row *row;
	struct report *r;

	made_note(p, "instance: task=1 state=live inuse_bytes=61 inuse_objects=6 "
		     "alloc_bytes=200 alloc_objects=20 peak_bytes=70 scope=conn");
	made_note(p, "instance: task=2 state=exited inuse_bytes=5 inuse_objects=0 "
		     "alloc_bytes=25 alloc_objects=2 peak_bytes=15 scope=conn");
	/* one that no sample has, and one of another scope with the same number */
	made_note(p, "instance: task=3 state=exited inuse_bytes=0 alloc_bytes=8 "
		     "scope=conn");
	made_note(p, "instance: task=1 state=exited inuse_bytes=2 inuse_objects=1 "
		     "alloc_bytes=3 scope=Top/A");
	r = open_report(p, &o);
	check_sums(r);
	row = find_row(r, "conn #1");
	assert_int_equal(row->value, 60); /* the samples' */
	assert_int_equal(row->alloc, 200);
	assert_int_equal(row->peak.bytes, 70);
	assert_int_equal(row->task.state, REPORT_STATE_LIVE);
	row = find_row(r, "conn #2");
	assert_int_equal(row->value, 5);
	assert_int_equal(row->task.state, REPORT_STATE_EXITED);
	assert_int_equal(find_row(r, "conn #3")->alloc, 8);
	assert_int_equal(find_row(r, "Top/A #1")->value, 2);
	row = find_row(r, "(no task)");
	assert_int_equal(row->value, TOTAL - 60 - 5 - 2);
	assert_int_equal(row->alloc, TOTAL_ALLOC - 200 - 25 - 8 - 3);
	/* outstanding: not the one that is empty, not the one that lives */
	assert_int_equal(r->outstanding.cnt, 2);
	assert_int_equal(r->outstanding.data[0].value, 5);
	assert_int_equal(r->outstanding_total.value, 7);
	assert_int_equal(r->outstanding_total.row_cnt, 2);
	/* the filter is theirs too */
	o.scope = "Top";
	r = open_report(p, &o);
	assert_int_equal(r->rows.cnt, 2);
	find_row(r, "Top/A #1");
	assert_int_equal(r->outstanding_total.value, 2);
}

/* A task that enters further scopes is one task; one of the same number inside is another. */
TEST_WITH(tasks_hold_what_lies_below, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_INSTANCE };
	const struct report_row *row;
	struct report *r;

	add(&(struct made){ .scope = "job", .alloc = 1000 });
	add(&(struct made){ .scope = "job/parse/sql", .task = 7, .inuse = 50 });
	add(&(struct made){ .scope = "job/run", .task = 7, .inuse = 30, .is_exited = true });
	add(&(struct made){ .scope = "job/run/sub/x", .task = 7, .inuse = 200 });
	add(&(struct made){ .scope = "jobs", .task = 7, .inuse = 3 });
	made_note(p, "instance: task=7 state=exited inuse_bytes=80 inuse_objects=8 "
		     "alloc_bytes=600 peak_bytes=90 scope=job");
	made_note(p, "instance: task=7 state=live inuse_bytes=200 alloc_bytes=300 "
		     "scope=job/run/sub");
	r = open_report(p, &o);
	check_sums(r);
	row = find_row(r, "job #7");
	assert_int_equal(row->value, 80);
	assert_int_equal(row->alloc, 600);
	assert_false(row->task.has_no_alloc);
	assert_int_equal(row->task.state, REPORT_STATE_EXITED);
	row = find_row(r, "job/run/sub #7");
	assert_int_equal(row->value, 200);
	assert_int_equal(row->task.state, REPORT_STATE_LIVE);
	assert_int_equal(find_row(r, "jobs #7")->value, 3);
	/* of a part of a task the sums are the samples' */
	o.scope = "job/parse";
	r = open_report(p, &o);
	check_sums(r);
	row = find_row(r, "job #7");
	assert_int_equal(r->rows.cnt, 1);
	assert_int_equal(row->value, 50);
	assert_true(row->task.has_no_alloc);
	assert_false(row->peak.is_known);
	assert_int_equal(row->task.state, REPORT_STATE_EXITED);
}

/* The same task of two processes is two. */
TEST_WITH(processes_have_their_own_tasks, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_INSTANCE };
	struct report *r;

	for (int pid = 8; pid < 10; pid++) {
		struct profile_label labels[] = {
			{ profile_str(p, "scope"), profile_str(p, "job/a"), 0, 0 },
			{ profile_str(p, "task"), 0, 7, 0 },
			{ profile_str(p, "pid"), profile_str(p, pid == 8 ? "8" : "9"), 0, 0 },
		};

		assert_int_equal(profile_add_sample(p, NULL, 0, (int64_t[]){ 0, 0, 1, pid }, labels,
						    3, NULL),
				 0);
		made_note(p,
			  "instance: task=7 state=live inuse_bytes=1 alloc_bytes=%d pid=%d "
			  "scope=job",
			  10 * pid, pid);
	}
	o.scope = "job";
	r = open_report(p, &o);
	assert_int_equal(r->rows.cnt, 3);
	assert_int_equal(r->rows.data[0].value, 9);
	assert_int_equal(r->rows.data[0].alloc, 90);
	assert_string_equal(strset_get(r->names, r->rows.data[0].task.pid), "9");
	assert_int_equal(r->rows.data[1].value, 8);
	assert_int_equal(r->rows.data[1].alloc, 80);
}

TEST_WITH(labels_and_pools_are_rows, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_LABEL, .label_key = "size" };
	struct report *r = open_report(p, &o);

	assert_int_equal(find_row(r, "100 bytes")->value, 400); /* a number with its unit */
	o.label_key = "scope";
	r = open_report(p, &o);
	assert_int_equal(find_row(r, "(none)")->value, 31);
	assert_int_equal(find_row(r, "Top/A")->value, 100);
	o = (struct report_options){ .by = REPORT_BY_THREAD, .groups_threads = true };
	r = open_report(p, &o);
	assert_int_equal(r->rows.cnt, 4);
	assert_int_equal(find_row(r, "w-*")->value, 400);
	assert_int_equal(find_row(r, "net:low*")->value, 70);
	o.thread_globs = "net:*,m*";
	r = open_report(p, &o);
	assert_int_equal(find_row(r, "w-1")->value, 200);
	assert_int_equal(find_row(r, "net:*")->value, 70);
	assert_int_equal(find_row(r, "m*")->value, 35);
}

TEST_WITH(what_is_not_there_is_named, set_up, NULL)
{
	static const struct {
		struct report_options opts;
		const char *want; /* NULL = it is there */
	} cases[] = {
		{ { .scope = "Top/A" }, NULL },
		{ { .scope = "(none)" }, NULL },
		{ { .scope = "Top/B/Top" }, NULL },
		{ { .scope = "Top/B/Top", .folds_repeated = true }, "did you mean Top?" },
		{ { .scope = "Top/a" }, "there is no scope 'Top/a'; did you mean Top/A?" },
		{ { .scope = "Tpo/B" }, "did you mean Top/A/B, Top/B?" },
		{ { .scope = "B" }, "did you mean Top/A/B, Top/B?" },
		{ { .scope = "x/comn" }, "did you mean conn?" },
		{ { .scope = "something" }, "the top scopes are: Top, conn, (none)" },
		{ { .by = REPORT_BY_LABEL, .label_key = "task_state" }, NULL },
		{ { .by = REPORT_BY_LABEL, .label_key = "colour" },
		  "no sample has the label 'colour'; the labels are: thread, scope, size, task, "
		  "task_state" },
		{ { .by = REPORT_BY_SCOPE, .label_key = "colour" }, NULL },
	};

	each_case(c, cases) {
		struct err why = { 0 };
		int err = report_check(p, &c->opts, &why);

		assert_int_equal(err, c->want ? -ENOENT : 0);
		if (c->want && !strstr(why.text, c->want))
			fail_msg("case %zu: %s", (size_t)(c - cases), why.text);
	}
}

TEST_WITH(a_profile_without_scopes_says_so, set_up, NULL)
{
	struct report_options o = { .scope = "Top" };
	struct err why;

	p = made_profile(100);
	assert_int_equal(report_check(p, &o, &why), -ENOENT);
	assert_says(why.text, "no sample has a scope");
	add(&(struct made){ .inuse = 5 });
	assert_int_equal(report_check(p, &o, &why), -ENOENT);
	assert_says(why.text, "no sample has a scope");
}

TEST_WITH(hints_are_short, set_up, NULL)
{
	struct report_options o = { .by = REPORT_BY_LABEL, .label_key = "x" };
	char name[300];
	struct err why;

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "%03d%0*d/z", i, i, 0);
		add(&(struct made){ .scope = name });
	}
	assert_int_equal(report_check(p, &o, &why), -ENOENT);
	o = (struct report_options){ .scope = "elsewhere" };
	assert_int_equal(report_check(p, &o, &why), -ENOENT);
	assert_says(why.text, "Top, conn, (none), 0000, 0010, 00200, 003000, ");
	assert_string_equal(why.text + strlen(why.text) - 5, ", ...");
	o.scope = "z";
	assert_int_equal(report_check(p, &o, &why), -ENOENT);
	assert_string_equal(why.text + strlen(why.text) - 6, ", ...?");
}

TEST_WITH(hints_do_not_drive_the_terminal, set_up, NULL)
{
	struct report_options o = { .scope = "z" };
	struct err why;

	add(&(struct made){ .scope = "\x1b[2J/z\n" });
	add(&(struct made){ .scope = "\x1b[2J/z" });
	assert_int_equal(report_check(p, &o, &why), -ENOENT);
	assert_says(why.text, "did you mean ?[2J/z?");
	assert_null(strchr(why.text, '\x1b'));
}

/* The command on a file of the golden tests; what it says in all. */
static char *run(const char *const *args, int *ret_status)
{
	char *argv[8] = { "report" }, *text = unit_keep(calloc(1, 1 << 16), free);
	FILE *to = tmpfile();
	int argc = 1, out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);

	assert_non_null(text);
	assert_non_null(to);
	while (args[argc - 1]) {
		argv[argc] = (char *)args[argc - 1];
		argc++;
	}
	argv[argc++] = "tests/golden/report/scopes.pb.gz";
	fflush(stdout);
	dup2(fileno(to), STDOUT_FILENO);
	dup2(fileno(to), STDERR_FILENO);
	*ret_status = command_run(&command_report, argc, argv);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	rewind(to);
	assert_true(fread(text, 1, (1 << 16) - 1, to) > 0);
	fclose(to);
	return text;
}

TEST_WITH(the_command_says_what_is_wrong, set_up, NULL)
{
	static const struct {
		const char *args[5];
		int status;
		const char *want;
	} cases[] = {
		{ { "--by=scope", "--match=Csd*,-B" }, 0, "the pattern 'Csd*' of --match" },
		{ { "--by=scope" }, 0, "  A\n" },
		{ { "--match=B" }, 0, "(not matched)" },
		{ { "--match=B", "-v" }, 0, "in scope Top/A/B" },
		{ { "--by=stack", "--frames", "1" }, 0, "#1  " },
		{ { "--by=stack", "--frames=1" }, 0, "#1  " },
		{ { "--by=stack", "--color=always" }, 0, "\033[1m" },
		{ { "--by=function", "--own=main" }, 0, " serve\n" },
		{ { "--value=alloc", "--by=stack" }, 0, "Total allocated: 758 KiB" },
		{ { "--notes" }, 0, "\nNotes\n  target: PID 42" },
		{ { "--match=B", "--by=stack" }, 0, "1  38.1 KiB" },
		{ { "--by", "label:query" }, 0, "LABEL query" },
		{ { "--group-threads" }, 0, "low-*" },
		{ { "--group-threads=l*" }, 0, "l*" },
		{ { "--scope=Top/a" }, 1, "did you mean Top/A?" },
		{ { "--by=label:colour" }, 1, "no sample has the label 'colour'" },
		{ { "--by=label:" }, 2, "instance, age, lifetime, size or label:KEY" },
		{ { "--by=age" }, 1, "the ages of its blocks are unknown" },
		{ { "--older-than=10m" }, 1, "the ages of its blocks are unknown" },
		{ { "--older-than=8m" }, 2, "the nearest bounds are 7 min and 10 min" },
		{ { "--by=age", "--value=alloc" }, 2, "--by age shows heap in use as text or json" },
		{ { "--sort=growth" }, 1, "growth is unknown" },
		{ { "--sort=growth", "--by=instance" }, 2, "--sort growth and pinned need" },
		{ { "--sort=pinned" }, 1, "it has no pinned_space: only heaptap record has it" },
		{ { "--sort=pinned", "--frames" }, 2, "--sort growth and pinned need" },
		{ { "--match=," }, 2, "empty pattern" },
		{ { "--by=scope", "-v" }, 2, "--verbose shows stacks" },
		{ { "--by=scope", "--group-threads" }, 2, "--group-threads needs --by thread" },
		{ { "--module=a", "--group-threads" }, 2, "--group-threads needs --by thread" },
	};

	each_case(c, cases) {
		int status;
		char *text = run(c->args, &status);

		if (status != c->status || !strstr(text, c->want))
			fail_msg("case %zu: status %d, no '%s' in: %s", (size_t)(c - cases), status,
				 c->want, text);
	}
}

TEST_WITH(lines_fit_the_page, set_up, NULL)
{
	static const char *const deep =
		"Service/Frontend Handler/Query Execution/Hash Join Build Side/Arena of strings";
	static const int by[] = { REPORT_BY_STACK, REPORT_BY_SCOPE, REPORT_BY_INSTANCE };
	char *line, *rest;

	add(&(struct made){ .scope = deep, .inuse = 1023 << 20, .thread = "w-1" });
	add(&(struct made){ .scope = deep, .inuse = 1023 << 20, .task = 1 << 30 });
	made_note(p, "scope_peak: bytes=1072693248 time=2026-11-21T22:01:02.123Z scope=%s", deep);
	each_case(c, by) {
		rest = report_text(p, &(struct report_options){ .by = *c, .scope = deep });
		while ((line = strsep(&rest, "\n")))
			if (strlen(line) > 100)
				fail_msg("%zu columns: %s", strlen(line), line);
		rest = report_text(p, &(struct report_options){ .by = *c });
		while ((line = strsep(&rest, "\n")))
			if (strlen(line) > 100)
				fail_msg("%zu columns: %s", strlen(line), line);
	}
}

RUN_TESTS()
