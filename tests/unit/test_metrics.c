/* SPDX-License-Identifier: MIT */
/* The metrics page: both formats to the byte, foreign names, and who gets which format. */
#include "unit.h"

#include "base/clock.h"
#include "http/pages.h"
#include "http/past.h"
#include "http/view.h"

TEST(test_accept)
{
	static const struct {
		const char *accept;
		enum metric_format want;
	} cases[] = {
		{ NULL, METRIC_PROMETHEUS },
		{ "", METRIC_PROMETHEUS },
		{ ",;,;", METRIC_PROMETHEUS },
		{ "*/*", METRIC_PROMETHEUS },
		{ "text/html, */*;q=0.8", METRIC_PROMETHEUS },
		{ "application/openmetrics-text", METRIC_OPENMETRICS },
		{ "Application/OpenMetrics-Text ; Version = 1.0.0", METRIC_OPENMETRICS },
		{ "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8",
		  METRIC_OPENMETRICS },
		{ "application/openmetrics-text; version=0.0.1", METRIC_PROMETHEUS },
		{ "application/openmetrics-text; version=1.0.0.0", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=0", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=0.000", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=nan", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=0x1", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=1e3", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=0.5,text/plain;q=0.6", METRIC_PROMETHEUS },
		{ "text/plain;q=0.5 , application/openmetrics-text ; q=0.5", METRIC_OPENMETRICS },
		{ "application/openmetrics-textual", METRIC_PROMETHEUS },
		/* what Prometheus 2 and 3 send */
		{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
		  "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  METRIC_OPENMETRICS },
		{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
		  "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;"
		  "escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
		  METRIC_OPENMETRICS },
		{ "text/plain;version=0.0.4;q=1,*/*;q=0.1", METRIC_PROMETHEUS },
	};

	each_case(c, cases)
		if (metric_format_choose(c->accept) != c->want)
			fail_msg("wrong format for '%s'", c->accept);
}

static char *text_of(void (*fn)(struct metric_text *m), enum metric_format format)
{
	return printed(out, fn(&(struct metric_text){ .out = out, .format = format }));
}

static void one_of_each(struct metric_text *m)
{
	static const struct metric_family gauge = { "a_bytes", METRIC_GAUGE, "bytes", "A." };
	static const struct metric_family counter = { "b_seconds", METRIC_COUNTER, "seconds",
						      "B." };
	static const struct metric_family info = { "c", METRIC_INFO, NULL, "C." };

	metric_head(m, &gauge);
	metric_begin(m);
	metric_value(m, 1e15);
	metric_begin(m);
	metric_label(m, "none", "");
	metric_label(m, "x", "\xc3\xa4\xff\n\t\\\"\x7f\xed\xa0\x80");
	metric_label(m, "y", "2");
	metric_value(m, 0.1);
	metric_head(m, &counter);
	metric_begin(m);
	metric_value(m, 1.5e300);
	metric_head(m, &info);
	metric_begin(m);
	metric_label(m, "version", "1");
	metric_value(m, 1);
	metric_end(m);
}

static double shown_value;

static void one_value(struct metric_text *m)
{
	static const struct metric_family counter = { "c_bytes", METRIC_COUNTER, "bytes", "C." };

	metric_head(m, &counter);
	metric_begin(m);
	metric_value(m, shown_value);
}

static double shown(double value)
{
	char *text;
	double ret;

	shown_value = value;
	text = text_of(one_value, METRIC_PROMETHEUS);
	ret = strtod(strrchr(text, ' '), NULL);
	return ret;
}

/* What grows is never shown as less: it would be taken for a new beginning. */
TEST(test_growth)
{
	static const double from[] = {
		1,	123456789.125, 999999999999990.0, 1234567890123451.0, 9007199254740985.0,
		9.1e15, 1.5e300
	};

	each_case(c, from) {
		double value = *c, last = shown(value);

		for (int k = 0; k < 200; k++) {
			double grown =
				value + 0.125 > value ? value + 0.125 : nextafter(value, INFINITY);

			assert_true(shown(grown) >= last);
			last = shown(grown);
			value = grown;
		}
	}
	assert_true(shown(9007199254740991.0) == 9007199254740991.0);
	assert_true(shown(9.1e15 + 2) == 9.1e15 + 2);
}

TEST(test_formats)
{
	char *text = text_of(one_of_each, METRIC_PROMETHEUS);

	assert_string_equal(text, "# HELP a_bytes A.\n"
				  "# TYPE a_bytes gauge\n"
				  "a_bytes 1000000000000000\n"
				  "a_bytes{x=\"\xc3\xa4?\\n?\\\\\\\"????\",y=\"2\"} 0.1\n"
				  "# HELP b_seconds_total B.\n"
				  "# TYPE b_seconds_total counter\n"
				  "b_seconds_total 1.5e+300\n"
				  "# HELP c_info C.\n"
				  "# TYPE c_info gauge\n"
				  "c_info{version=\"1\"} 1\n");
	text = text_of(one_of_each, METRIC_OPENMETRICS);
	assert_string_equal(text, "# HELP a_bytes A.\n"
				  "# TYPE a_bytes gauge\n"
				  "# UNIT a_bytes bytes\n"
				  "a_bytes 1000000000000000\n"
				  "a_bytes{x=\"\xc3\xa4?\\n?\\\\\\\"????\",y=\"2\"} 0.1\n"
				  "# HELP b_seconds B.\n"
				  "# TYPE b_seconds counter\n"
				  "# UNIT b_seconds seconds\n"
				  "b_seconds_total 1.5e+300\n"
				  "# HELP c C.\n"
				  "# TYPE c info\n"
				  "c_info{version=\"1\"} 1\n"
				  "# EOF\n");
}

static const struct serve_scope scopes[] = {
	{ .scope = "Top/A", .thread = "worker-*", .inuse_bytes = 70, .alloc_bytes = 90 },
	{ .scope = "(other)", .thread = "(other)", .inuse_bytes = 30.5, .alloc_bytes = 40 },
};
#define NO_INUSE \
	.inuse_bytes = NAN, .inuse_objects = NAN, .inuse_error_bytes = NAN, .inuse_samples = NAN
static const struct serve_scope unknown_scopes[] = {
	{ .scope = "Top/B", .thread = "main", NO_INUSE, .alloc_bytes = 60 },
};
#define NOT_READ \
	.swap_bytes = NAN, .pss_bytes = NAN, .cgroup_limit_bytes = NAN, .cgroup_usage_bytes = NAN
static const struct serve_process processes[] = {
	{ .pid = 17,
	  .image = 1717,
	  .comm = "a\"b",
	  .exe = "/bin/a",
	  .container = "0123",
	  .inuse_bytes = 100.5,
	  .inuse_objects = 3,
	  .alloc_bytes = 130,
	  .rss_bytes = 4096,
	  NOT_READ,
	  .is_inuse_complete = 1,
	  .scopes = scopes,
	  .scope_cnt = 2 },
	/* its frees are not watched */
	{ .pid = 18,
	  .image = 1818,
	  .comm = "b",
	  .exe = "/bin/b",
	  .container = "",
	  NO_INUSE,
	  .alloc_bytes = 60,
	  .rss_bytes = 4096,
	  NOT_READ,
	  .is_inuse_unknown = true,
	  .scopes = unknown_scopes,
	  .scope_cnt = 1 },
};
static const struct serve_counter losses[] = { { "live_full", "none", 5 } };
static const struct serve_counter lost_bytes[] = { { "live_full", "none", 700 } };
static const struct serve_push pushes[] = { { .target = "http://x", .sent_cnt = 4 } };
static const struct serve_map maps[] = { { "live", 10, 100 } };
static const struct serve_named reclaimed[] = { { "stacks", 33 } };
static const struct serve_named fds[] = { { "link", 12 } };
static const struct serve_view view = {
	.processes = processes,
	.process_cnt = 2,
	.losses = losses,
	.loss_cnt = 1,
	.lost_bytes = lost_bytes,
	.lost_bytes_cnt = 1,
	.pushes = pushes,
	.push_cnt = 1,
	.maps = maps,
	.map_cnt = 1,
	.reclaimed = reclaimed,
	.reclaimed_cnt = 1,
	.fds = fds,
	.fd_cnt = 1,
	.own = { .cpu_seconds = 1.5, .profile_snapshot_seconds = NAN },
	.followed_cnt = 1,
	.began_cnt = 7,
	.ended_cnt = 6,
	.rate_bytes = 1,
	.version = "1",
};

static char *page_of(const struct serve_view *v, enum metric_format format)
{
	const bool is_open = format == METRIC_OPENMETRICS;
	const char *type;
	char *text = printed(out, type = metrics_page_write(
					  v, is_open ? "application/openmetrics-text" : NULL, out));

	assert_int_equal(strstr(type, "openmetrics") != NULL, is_open);
	return text;
}

static char *page(enum metric_format format)
{
	return page_of(&view, format);
}

static void has_line(const char *text, const char *line)
{
	size_t len = strlen(line);
	const char *at = text;

	while ((at = strstr(at, line))) {
		if ((at == text || at[-1] == '\n') && at[len] == '\n')
			return;
		at += len;
	}
	fail_msg("no line '%s' in:\n%s", line, text);
}

TEST(test_page)
{
	char *text = page(METRIC_PROMETHEUS);

	has_line(text, "heaptap_inuse_bytes{pid=\"17\",comm=\"a\\\"b\",exe=\"/bin/a\","
		       "container=\"0123\"} 100.5");
	has_line(text, "heaptap_scope_inuse_bytes{pid=\"17\",comm=\"a\\\"b\",scope=\"Top/A\","
		       "thread=\"worker-*\"} 70");
	has_line(text, "heaptap_scope_alloc_bytes_total{pid=\"17\",comm=\"a\\\"b\","
		       "scope=\"(other)\",thread=\"(other)\"} 40");
	has_line(text, "heaptap_losses_total{reason=\"live_full\"} 5");
	has_line(text, "heaptap_lost_bytes_total{reason=\"live_full\"} 700");
	has_line(text, "heaptap_push_sent_total{target=\"http://x\"} 4");
	has_line(text, "heaptap_map_entries{map=\"live\"} 10");
	has_line(text, "heaptap_map_capacity{map=\"live\"} 100");
	has_line(text, "heaptap_open_fds{kind=\"link\"} 12");
	has_line(text, "heaptap_reclaimed_total{what=\"stacks\"} 33");
	has_line(text, "heaptap_processes_followed_total 7");
	has_line(text, "heaptap_processes_ended_total 6");
	has_line(text, "heaptap_cpu_seconds_total 1.5");
	has_line(text, "heaptap_followed_processes 1");
	has_line(text, "heaptap_build_info{version=\"1\"} 1");
	/* not known: no sample, but the family is there */
	assert_omits(text, "\nheaptap_target_swap_bytes");
	assert_omits(text, "\nheaptap_profile_snapshot_seconds");
	has_line(text, "# TYPE heaptap_target_swap_bytes gauge");
	assert_omits(text, "# EOF");
	assert_omits(text, "# UNIT");

	text = page(METRIC_OPENMETRICS);
	has_line(text, "# TYPE heaptap_alloc_bytes counter");
	has_line(text, "# UNIT heaptap_alloc_bytes bytes");
	has_line(text, "# TYPE heaptap_build info");
	assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
}

/* An alert on growth takes 0 for 0. */
TEST(unknown_is_never_0)
{
	char *text = page(METRIC_PROMETHEUS);

	for (char *at = text; (at = strstr(at, "inuse_")); at++) {
		char *end = strchr(at, '\n');

		if (!strncmp(at, "inuse_complete", 14))
			continue;
		*end = '\0';
		if (strstr(at, "pid=\"18\""))
			fail_msg("heaptap_...%s", at);
		*end = '\n';
	}
	has_line(text, "heaptap_inuse_complete{pid=\"17\",comm=\"a\\\"b\",exe=\"/bin/a\","
		       "container=\"0123\"} 1");
	has_line(text, "heaptap_inuse_complete{pid=\"18\",comm=\"b\",exe=\"/bin/b\"}"
		       " 0");
	has_line(text, "heaptap_alloc_bytes_total{pid=\"18\",comm=\"b\",exe=\"/bin/b\"}"
		       " 60");
	has_line(text, "heaptap_scope_alloc_bytes_total{pid=\"18\",comm=\"b\",scope=\"Top/B\","
		       "thread=\"main\"} 60");
}

/* Every family: a unit ends its name, its help is a sentence that needs no escapes. */
TEST(test_families)
{
	char *text = page(METRIC_OPENMETRICS), *save = NULL, name[128], rest[512];
	size_t cnt = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "# UNIT %127s %511s", name, rest) == 2)
			assert_string_equal(name + strlen(name) - strlen(rest), rest);
		if (sscanf(line, "# HELP %127s %511[^\n]", name, rest) != 2)
			continue;
		cnt++;
		assert_int_equal(strncmp(name, "heaptap_", 8), 0);
		assert_null(strpbrk(rest, "\\\""));
		assert_int_equal(rest[strlen(rest) - 1], '.');
	}
	assert_true(cnt > 20);
}

/* What is resident by kind: of what was read, with a 0 for what has gone; nothing of what could not be read. */
TEST(test_rows)
{
	static const char *const families[] = { "heaptap_resident_bytes",
						"heaptap_resident_age_seconds" };
	struct resident_reading r = { .is_known = true, .row_cnt = 2, .rss_bytes = 4097 },
				failed = { .why = "denied" };
	struct rows_past *past;
	struct serve_view v = view;
	char *text;

	assert_int_equal(rows_past_new(&past), 0);
	v.rows = past;
	text = page_of(&v, METRIC_PROMETHEUS);
	assert_omits(text, "heaptap_resident_bytes{");
	snprintf(r.rows[0].name, sizeof(r.rows[0].name), "%s", row_name(ROW_LIVE));
	snprintf(r.rows[1].name, sizeof(r.rows[1].name), "%s", row_name(ROW_MOVED));
	r.rows[0].bytes = 4100;
	r.rows[1].bytes = -3;
	assert_int_equal(rows_past_add(past, 1717, now_ns(), 0, &r), 0);
	r.row_cnt = 1;
	r.rows[0].bytes = 40000000001;
	assert_int_equal(rows_past_add(past, 1717, now_ns(), 0, &r), 0);
	assert_int_equal(rows_past_add(past, 1818, now_ns(), 0, &r), 0);
	assert_int_equal(rows_past_add(past, 1818, now_ns(), 0, &failed), 0);
	text = page_of(&v, METRIC_PROMETHEUS);
	assert_says(
		text,
		"\nheaptap_resident_bytes{pid=\"17\",comm=\"a\\\"b\",exe=\"/bin/a\",container=\"0123\",kind=\"live\"} 40000000001\n"
		"heaptap_resident_bytes{pid=\"17\",comm=\"a\\\"b\",exe=\"/bin/a\",container=\"0123\",kind=\"moved\"} 0\n"
		"# HELP heaptap_resident_age_seconds ");
	assert_omits(text, "heaptap_resident_bytes{pid=\"18\"");
	assert_says(text, "\nheaptap_resident_age_seconds{pid=\"17\"");
	assert_omits(text, "heaptap_resident_age_seconds{pid=\"18\"");
	for (size_t i = 0; i < 2; i++) {
		char head[80];

		snprintf(head, sizeof(head), "# TYPE %s gauge\n", families[i]);
		assert_says(text, head);
		assert_omits(strstr(text, head) + 1, head);
	}
	text = page_of(&v, METRIC_OPENMETRICS);
	assert_says(text, "# UNIT heaptap_resident_bytes bytes\n");
	assert_says(text, "# UNIT heaptap_resident_age_seconds seconds\n");
	rows_past_free(past);
}

RUN_TESTS()
