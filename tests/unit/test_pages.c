/* SPDX-License-Identifier: MIT */
/* The pages of `heaptap serve` for people, and their data: what is said, and that foreign names stay names. */
#include "unit.h"

#include "base/clock.h"
#include "http/pages.h"
#include "http/past.h"
#include "http/view.h"

#define NAMED(pid_, comm_, exe_) .pid = (pid_), .comm = (comm_), .exe = (exe_)

static char *index_text(const struct serve_view *v)
{
	return printed(out, assert_int_equal(page_write(v, NULL, true, out), 0));
}

/* Names are somebody else's bytes. */
TEST(test_index)
{
	const struct serve_process processes[] = {
		{ NAMED(17, "a\"<b>&\\\n", "/bin/<script>"), .overhead = 0.034, .overhead_step = 2,
		  .inuse_objects = NAN, .inuse_bytes = NAN, .is_inuse_unknown = true,
		  .inuse_words = "Tracking frees costs <53> %. To measure it: heaptap record" },
		{ NAMED(18, "b", "/bin/b"), .inuse_bytes = 2048, .overhead = NAN,
		  .inuse_words = "of what was allocated since 12:03:05" },
		{ NAMED(19, "c", "/bin/c"), .inuse_bytes = 0, .overhead = NAN, .inuse_words = "" },
	};
	const struct serve_kept kept[] = {
		{ .pid = 20, .comm = "d", .at = "last", .why = "out of memory", .inuse_bytes = NAN },
	};
	const struct serve_counter losses[] = { { "live_full", "map <full>", 5 },
						{ "stacks_full", "none of these", 0 } };
	const struct serve_view v = { .processes = processes,
				      .process_cnt = 3,
				      .losses = losses,
				      .keep = { .kept = kept, .kept_cnt = 1 },
				      .loss_cnt = 2,
				      .rate_bytes = 1,
				      .version = "1" };
	char *text = index_text(&v);

	assert_omits(text, "<script>");
	assert_omits(text, "<b>");
	assert_says(text, "a&quot;&lt;b&gt;&amp;\\\n<");
	assert_says(text, "\"name\":\"a\\\"\\u003cb>&\\\\");
	assert_says(text, "<a href=\"pid/17/\">");
	assert_omits(text, "none of these");
	assert_says(text, "<td>unknown<td><td>0 B<td>");
	assert_says(text, "heap in use is unknown: Tracking frees costs &lt;53&gt; %. To "
			  "measure it: heaptap record\n");
	assert_says(text, "<td>2.00 KiB<td>");
	assert_says(text, "in use: of what was allocated since 12:03:05");
	assert_says(text, "c</a><td>0 B<td>");
	assert_says(text, "<tr><td>20<td>d<td>unknown<td>");
}

/* So are those of threads and scopes; what is not known is said to be. */
TEST(test_process_page)
{
	const struct serve_scope scopes[] = {
		{ .scope = "<img src=x>/\"y\"",
		  .thread = "</table>\x1b[1m",
		  .inuse_bytes = NAN,
		  .inuse_error_bytes = NAN,
		  .alloc_bytes = 2048 },
	};
	const struct serve_process p = { NAMED(17, "</h1><b>", "/bin/\xff<i>"),
					 .inuse_bytes = NAN,
					 .inuse_objects = NAN,
					 .overhead = NAN,
					 .is_inuse_unknown = true,
					 .inuse_words = "<u>",
					 .scopes = scopes,
					 .scope_cnt = 1 };
	const struct serve_kept kept[] = {
		{ .pid = 17, .comm = "<s>", .at = "peak", .why = "peak" },
		{ .pid = 18, .comm = "another", .at = "peak", .why = "" }
	};
	const struct serve_counter losses[] = { { "a", "all is well", 0 }, { "b", "lost it", 3 } };
	struct serve_view v = { .processes = &p,
				.process_cnt = 1,
				.losses = losses,
				.loss_cnt = 1,
				.keep = { .kept = kept, .kept_cnt = 2 } };
	char *text = printed(out, {
		assert_int_equal(page_write(&v, &p, true, out), 0);
		v.loss_cnt = 2;
		assert_int_equal(page_write(&v, &p, false, out), 0);
	});

	for (size_t i = 0; i < 5; i++)
		assert_omits(text,
			     ((const char *const[]){ "<img", "<i>", "<u>", "<s>", "\x1b" })[i]);
	assert_says(text, "<title>&lt;/h1&gt;&lt;b&gt; (PID 17)</title>");
	assert_says(text, "In use: <b>unknown</b>");
	assert_says(text, "Growth is not known yet.");
	assert_says(text, "<td>&lt;/table&gt; [1m<td>&lt;img src=x&gt;/&quot;y&quot;");
	assert_says(text, "\"../17/viewer?at=peak\"");
	assert_omits(text, "another");
	assert_says(text, "<p>None.</p>");
	assert_says(text, "<li>3 lost it");
	assert_says(text, "http-equiv=\"refresh\" content=\"10\"");
	assert_says(text, "Paused: <a href=\"?live=1\">");
}

/* Of one for which there was no room growth will not be known later either. */
TEST(test_process_page_without_past)
{
	const struct serve_process p = {
		.pid = INUSE_PAST_PROCESSES_CAP + 1, .comm = "a", .exe = "", .inuse_words = ""
	};
	struct inuse_past *past;
	struct serve_view v = { .processes = &p, .process_cnt = 1 };
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(inuse_past_new(&past), 0);
	assert_true(inuse_past_begin(past, 0));
	v.past = past;
	page_write(&v, &p, false, out);
	fflush(out);
	assert_says(text, "Growth is not known yet.");
	rewind(out);
	for (pid_t pid = 1; pid <= INUSE_PAST_PROCESSES_CAP; pid++)
		assert_int_equal(inuse_past_add(past, pid, 1, (const double[]){ 1, 2 }), 0);
	page_write(&v, &p, false, out);
	fclose(out);
	assert_says(text, "is computed for at most 4096 processes.");
	assert_omits(text, "known yet.");
	free(text);
	inuse_past_free(past);
}

/* A page for 300 processes must stay within what a first look may cost. */
#define MANY 300
static struct inuse_past *past_of_many(void)
{
	struct inuse_past *past;

	assert_int_equal(inuse_past_new(&past), 0);
	for (int i = 0; i < INUSE_PAST_HOUR_CNT; i++) {
		assert_true(inuse_past_begin(past, (uint64_t)(i + 1) * 10 * NS_PER_S));
		for (pid_t pid = 1; pid <= MANY; pid++) {
			double bytes = pid * 1e6 + i * 1e5 + i * 7919 % 50 * 1e4;

			assert_int_equal(inuse_past_add(past, pid, 1,
							(const double[]){ bytes, 2 * bytes }),
					 0);
		}
		inuse_past_end(past);
	}
	return past;
}

TEST(test_page_of_many)
{
	static struct serve_process p[MANY];
	struct inuse_past *past = past_of_many();
	const struct serve_view v = { .processes = p,
				      .process_cnt = MANY,
				      .rate_bytes = 65536,
				      .version = "1",
				      .past = past };
	char *text;

	for (int i = 0; i < MANY; i++)
		p[i] = (struct serve_process){ .pid = i + 1,
					       .comm = "postgres-backend",
					       .exe = "/usr/lib/postgresql/16/bin/postgres",
					       .container = "",
					       .cgroup = "postgresql@16.service",
					       .inuse_bytes = 123456789,
					       .inuse_error_bytes = 123456,
					       .inuse_objects = 123456,
					       .alloc_bytes = 1234567890123,
					       .rss_bytes = 234567890,
					       .cgroup_limit_bytes = 8589934592,
					       .cgroup_usage_bytes = 4589934592,
					       .overhead = 0.0123,
					       .overhead_rate_bytes = 65536,
					       .inuse_words = "" };
	text = index_text(&v);
	assert_in_range(strlen(text), 100000, 200000);
	assert_says(text, "\"growth\":{\"trend\":\"grows\",\"bytes_per_min\":6");
	assert_says(text, "\"past\":{\"seconds\":3590,\"top_bytes\":");
	inuse_past_free(past);
}

static char *json_of(const struct serve_view *v, const struct serve_process *p)
{
	return printed(out, page_json(v, p, out));
}

/* What is not known is left out, and what is saved is bounded. */
TEST(test_json)
{
	static const char *const absent[] = { "\"inuse_bytes\"", "limit_bytes", "\"growth\"",
					      "\"past\"",	 "is_tapped",	"exec_ms",
					      "\"step\"" };
	static struct serve_kept kept[PAGE_JSON_SAVED_MAX + 5];
	struct serve_process p = { NAMED(17, "a", ""),	     .inuse_bytes = NAN,
				   .inuse_error_bytes = NAN, .cgroup_limit_bytes = NAN,
				   .overhead = NAN,	     .is_inuse_unknown = true,
				   .inuse_words = "why" };
	struct serve_view v = { .processes = &p,
				.process_cnt = 1,
				.version = "1",
				.keep = { .kept = kept, .kept_cnt = PAGE_JSON_SAVED_MAX + 5 } };
	char *text;

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		kept[i] = (struct serve_kept){ .pid = i ? 17 : 18,
					       .comm = "b",
					       .at = "peak",
					       .epoch_ms = 1795701900123,
					       .inuse_bytes = NAN };
	text = json_of(&v, NULL);
	each_case(c, absent)
		if (strstr(text, *c))
			fail_msg("%s in %s", *c, text);
	assert_says(text, "\"is_inuse_unknown\":true,\"inuse_note\":\"why\"");
	assert_says(text, "\"saved_omitted_cnt\":5");
	assert_says(text, "\"time_ms\":1795701900123");
	text = json_of(&v, &p); /* without the other process's */
	assert_says(text, "\"saved_omitted_cnt\":4");
	assert_says(text, "\"moments\":[],\"moments_note\":\"With --past-interval 0");
	assert_says(text, "\"is_past_full\":false");
	v.keep.file_cnt = NAN; /* nothing is ever saved */
	p.is_tapped = true;
	p.exec_ns = 1;
	text = json_of(&v, &p);
	assert_omits(text, "saved");
	assert_says(text, "\"is_tapped\":true");
	assert_says(text, "\"exec_ms\":");
}

/* What is resident by row: the words of explain, at the times of readings; null where one failed. */
TEST(test_json_rows)
{
	static const struct resident_reading failed = { .why = "denied" };
	struct resident_reading r = { .is_known = true, .is_proved = true, .row_cnt = 1 };
	struct serve_process p = { NAMED(17, "a", ""), .image = 1717, .inuse_words = "",
				   .inuse_bytes = NAN, .overhead = NAN };
	struct serve_view v = { .processes = &p, .process_cnt = 1, .version = "1" };
	struct rows_past *past;
	char *text = json_of(&v, &p);
	uint64_t now = now_ns();

	assert_omits(text, "\"rows\""); /* with --rows-interval 0 */
	assert_int_equal(rows_past_new(&past), 0);
	v.rows = past;
	text = json_of(&v, &p);
	assert_says(text, "\"rows\":{\"note\":\"Not read yet.\"}");
	snprintf(r.rows[0].name, sizeof(r.rows[0].name), "%s", row_name(ROW_LIVE));
	r.rows[0].bytes = 4097;
	r.rss_bytes = 4097;
	r.took_ns = 2500000;
	assert_int_equal(rows_past_add(past, 1717, now - 60 * NS_PER_S, 0, &failed), 0);
	assert_int_equal(rows_past_add(past, 1717, now, 0, &r), 0);
	text = json_of(&v, &p);
	assert_says(text, "\"took_ms\":2.5,\"rss_bytes\":4097,\"list\":[{\"row\":\"live\","
			  "\"what\":\"malloc: live blocks\",\"bytes\":4097}]");
	assert_says(text, "],\"bytes\":{\"live\":[null,4097]}}");
	assert_omits(text, "why_not");
	r.is_proved = false;
	snprintf(r.why, sizeof(r.why), "torn");
	assert_int_equal(rows_past_add(past, 1717, now + 1, 0, &r), 0);
	text = json_of(&v, &p);
	assert_says(text, "\"heap_why_not\":\"torn\"");
	assert_int_equal(rows_past_add(past, 1717, now + 2, 0, &failed), 0);
	text = json_of(&v, &p);
	assert_says(text, "\"rows\":{\"why_not\":\"denied\",\n\"hour\":{");
	assert_omits(text, "\"list\"");
	rows_past_free(past);
}

/* Nothing is fetched from elsewhere, and foreign names never become markup. */
TEST(test_page_files)
{
	const char *const files[] = { page_files.style, page_files.script, page_files.index_script,
				      page_files.process_script };
	static const char *const never[] = {
		"https://", "innerHTML", "insertAdjacentHTML", "document.write", "eval(",
		"@import",  "url("
	};

	each_case(one, files)
		each_case(c, never)
			if (strstr(*one, *c))
				fail_msg("'%s' in file %zu", *c, (size_t)(one - files));
}

/* What is to be there of the page, or is not. */
static void check_page(const struct serve_view *v, bool is_live, const char *wanted,
		       const char *unwanted)
{
	char *text = printed(out, page_write(v, v->processes, is_live, out));

	assert_says(text, PROCESS_PAGE_STACKS);
	if (!strstr(text, wanted) || strstr(text, unwanted))
		fail_msg("wanted '%s', not '%s': %s", wanted, unwanted, text);
}

/* Links and, on a still page, a form; or why there are none. */
TEST(test_process_page_moments)
{
	static const double at_s[] = { 0, 3000, 3500, 3590, 3600 };
	struct serve_process p = { .pid = 3, .image = 7, .comm = "a", .exe = "", .inuse_words = "" };
	struct serve_view v = { .processes = &p, .process_cnt = 1 };
	struct stack_past *past;

	check_page(&v, false, "with --past-interval 0 nothing is stored.", "<form");
	assert_int_equal(stack_past_new(1, &past), 0);
	v.stacks = past;
	check_page(&v, false, "No changes by stack yet.", "<form");
	p.is_inuse_unknown = true;
	check_page(&v, false, "No changes by stack: heap in use is unknown.", "<form");
	p.is_inuse_unknown = false;
	for (size_t i = 0; i < 5; i++) {
		const struct stack_past_moment m = { (uint64_t)((1 + at_s[i]) * 1e9),
						     (int64_t)((1e9 + at_s[i]) * 1e9) };

		stack_past_begin(past, &m);
		assert_int_equal(stack_past_name_image(past, 7, 1), 0);
		assert_int_equal(stack_past_end(past, 0), 0);
	}
	check_page(&v, false, "<form action=\"diff\" method=\"get\"", "between any two");
	check_page(&v, false,
		   "<option value=\"2001-09-09T01:46:40Z\" selected>2001-09-09 01:46:40 UTC, ",
		   "http-equiv");
	check_page(
		&v, true,
		"<a href=\"diff?from=2001-09-09T02:45:00Z&amp;to=2001-09-09T02:46:40Z\">100 s</a>",
		"<form");
	check_page(&v, true, ">60 min</a>; <a href=\"?live=0#moments\">between any two moments</a>",
		   "6.0 h");
	stack_past_free(past);
}

RUN_TESTS()
