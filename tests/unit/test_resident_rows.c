/* SPDX-License-Identifier: MIT */
/*
 * test_resident_rows.c - readings of resident memory in a profile: foreign ones are checked, what is not known is never 0, what
 * heaps that were not read hold is not called live or free, files keep all of it, and limits are judged by it.
 */
#include "made_rows.h"

#include <sys/mman.h>

#include "base/err.h"
#include "profile/pprof.h"
#include "profile/witness.h"
#include "report/limits.h"

TEST(test_check)
{
	struct resident_reading r = first();

	assert_int_equal(resident_reading_check(&r), 0);
	r.rows[0].label[0] = '\x1b';
	assert_int_equal(resident_reading_check(&r), 0);
	assert_string_equal(r.rows[0].label, "?ive");
	r.rss_bytes++;
	assert_int_equal(resident_reading_check(&r), -EINVAL);
	r = first();
	r.row_cnt = RESIDENT_ROW_CAP + 1;
	assert_int_equal(resident_reading_check(&r), -EINVAL);
	r = first();
	r.rows[1].kind = RESIDENT_KIND_CNT;
	assert_int_equal(resident_reading_check(&r), -EINVAL);
	r = first();
	r.rows[1].bytes = INT64_MIN;
	assert_int_equal(resident_reading_check(&r), -EINVAL);
	r = first();
	memset(r.rows[2].name, 'a', sizeof(r.rows[2].name));
	assert_int_equal(resident_reading_check(&r), -EINVAL);
	r = unknown("");
	memset(r.why, 'a', sizeof(r.why));
	assert_int_equal(resident_reading_check(&r), -EINVAL);
}

TEST(test_words)
{
	static const char *const none = "no glibc malloc or jemalloc in use was found";
	struct resident_reading unread_begin =
		READING(false, { "anonymous", "anonymous", RESIDENT_UNOWNED, 100 * MIB },
			{ "unreadable", "heap not read", RESIDENT_UNREAD, 41 * MIB });
	struct resident_reading small =
		READING(true, { "anonymous", "anonymous", RESIDENT_UNOWNED, 1 * MIB });
	struct {
		struct resident_reading begin, end;
		const char *words, *why;
	} cases[] = {
		{ first(), last(),
		  "Resident 141 -> 225 MiB: live +48.0 MiB, free kept by glibc +30.0 MiB, mapped directly +6.00 MiB",
		  "" },
		{ last(), first(),
		  "Resident 225 -> 141 MiB: live -48.0 MiB, free kept by glibc -30.0 MiB, mapped directly -6.00 MiB",
		  "" },
		{ first(), first(),
		  "Resident 141 -> 141 MiB: live 95.0 MiB, free kept by glibc 20.0 MiB, files 16.0 MiB, mapped directly 10.0 MiB",
		  "" },
		{ unknown("denied"), last(),
		  "Resident 141 -> 225 MiB, at the end: live 143 MiB, free kept by glibc 50.0 MiB, mapped directly 16.0 MiB, files 16.0 MiB",
		  "by row at the beginning: unknown (denied)" },
		{ first(), unknown("the process had ended"), "",
		  "by row at the end: unknown (the process had ended)" },
		{ unread_begin, last(),
		  "Resident 141 -> 225 MiB: heap and other anonymous memory +68.0 MiB, files +16.0 MiB",
		  "heap not read: an arena of malloc: torn" },
		{ small, last(), NULL,
		  "heap not read: no glibc malloc or jemalloc in use was found" },
	};
	char buf[RESIDENT_WORDS];

	cases[6].begin.is_proved = cases[6].begin.has_heap = false;
	cases[6].begin.has_brk = true;
	snprintf(cases[6].begin.why, sizeof(cases[6].begin.why), "%s", none);
	each_case(c, cases) {
		struct profile *p = profile_of(c->begin, c->end);

		if (c->words)
			assert_string_equal(resident_words(p, buf), c->words);
		assert_string_equal(resident_why_words(p, buf), c->why);
	}
}

/*
 * Two sentences of one report are of the same two moments: those of the rows, as long as the process grew little before and
 * after they were read; else the sizes of both are said.
 */
TEST(test_moments)
{
	static const struct {
		int64_t begin, end; /* as the recording saw it, in MiB */
		const char *resident, *grew;
		double outside;
	} cases[] = {
		{ 141, 225, "Resident 141 -> 225 MiB: live",
		  "grew by 84.0 MiB, of which 0 B is in use. By row: live", 0 },
		{ 140, 230, "Resident 141 -> 225 MiB: live",
		  "grew by 84.0 MiB, of which 0 B is in use. By row: live", 0 },
		{ 121, 225, "Resident 121 -> 225 MiB, by row 141 -> 225 MiB: live",
		  "grew by 104 MiB, of which 0 B is in use. By row, 141 -> 225 MiB: live", 20 },
		{ 141, 245, "Resident 141 -> 245 MiB, by row 141 -> 225 MiB: live",
		  "grew by 104 MiB, of which 0 B is in use. By row, 141 -> 225 MiB: live", 20 },
		{ 121, 245, "Resident 121 -> 245 MiB, by row 141 -> 225 MiB: live",
		  "grew by 124 MiB, of which 0 B is in use. By row, 141 -> 225 MiB: live", 40 },
	};

	each_case(c, cases) {
		struct profile *p = profile_of(first(), last());
		char words[WITNESS_WORDS], buf[RESIDENT_WORDS];
		struct witness w;

		p->recording.rss_begin_bytes = (uint64_t)(c->begin * MIB);
		p->recording.rss_end_bytes = (uint64_t)(c->end * MIB);
		resident_words(p, buf);
		witness_find(p, &w);
		witness_words(&w, words);
		if (strncmp(buf, c->resident, strlen(c->resident)) != 0 || !strstr(words, c->grew))
			fail_msg("case %zu: %s / %s", (size_t)(c - cases), buf, words);
		assert_true(resident_growth_outside(p) == c->outside * MIB);
	}
}

/* The size alone may be known of a reading. */
TEST(test_size_alone)
{
	struct resident_reading begin = unknown("the recording ended before the reading");
	struct profile *p;
	char *text;

	begin.rss_bytes = 141 * MIB;
	p = profile_of(begin, last());
	text = report_of(p, REPORT_JSON);
	assert_says(text, "\"resident\":{\"begin_bytes\":147849216,\"end_bytes\":235929600,"
			  "\"begin_heap_is_read\":false,");
	assert_says(text, "\"label\":\"live\",\"begin_bytes\":null,");
	text = report_of(p, REPORT_TEXT);
	assert_says(text, "\nResident 141 -> 225 MiB, at the end: live 143 MiB");
}

/* Before the first call of malloc it has no heap, so that is known to be empty. */
TEST(test_new_heap)
{
	struct resident_reading begin =
		READING(false, { "anonymous", "anonymous", RESIDENT_UNOWNED, 1 * MIB });
	char buf[RESIDENT_WORDS];
	struct profile *p;

	begin.has_heap = false;
	p = profile_of(begin, last());
	assert_string_equal(
		resident_words(p, buf),
		"Resident 1.00 -> 225 MiB: live +143 MiB, free kept by glibc +50.0 MiB, "
		"files +16.0 MiB, mapped directly +15.0 MiB");
	assert_string_equal(resident_why_words(p, buf), "");
	assert_int_equal(resident_rows_doubt(p), 0);
	assert_says(resident_words(p, buf), ", anonymous +15.0 MiB");
}

static bool begins_with_unit(const char *line)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "%" };

	each_case(c, units)
		if (!strncmp(line, *c, strlen(*c)))
			return true;
	return false;
}

/* On a page of any width, no number stands apart from its unit. */
TEST(test_wrap)
{
	struct profile *p = profile_of(first(), last());

	p->recording.inuse = RECORDING_INUSE_SINCE;
	for (size_t columns = 40; columns < 140; columns++) {
		char *text = report_of_columns(p, REPORT_TEXT, columns);

		for (const char *at = text; (at = strstr(at, "\n  ")); at++)
			if (begins_with_unit(at + 3))
				fail_msg("%zu columns: %s", columns, at);
	}
}

/* A file has all of it, and a report of it says the same. */
TEST(test_file)
{
	struct resident_reading begin = first(), end = last();
	struct profile *p, *back;
	char *text;

	end.live_cnt = 12345;
	end.live_bytes = 145 * MIB;
	end.is_counted = true;
	end.coarsest_rate_bytes = 65536;
	end.classes[0] =
		(struct resident_reading_class){ .from_bytes = 25, .live_cnt = 7, .is_span = true };
	end.class_cnt = 1;
	p = profile_of(begin, end);
	p->time_ns = 1;
	back = reread(p);
	assert_true(back->resident.is_asked && back->resident.begin.is_proved);
	assert_int_equal(back->resident.list.cnt, p->resident.list.cnt);
	assert_int_equal(back->resident.end.live_cnt, 12345);
	assert_int_equal(back->resident.end.coarsest_rate_bytes, 65536);
	assert_int_equal(back->resident.classes.cnt, 1);
	assert_true(back->resident.classes.data->is_span);
	assert_int_equal(back->resident.end.live_bytes, 145 * MIB);
	assert_true(back->resident.end.is_counted && !back->resident.begin.is_counted);
	assert_int_equal(resident_bytes(back, RESIDENT_FREE, false), 20 * MIB);
	assert_int_equal(resident_bytes(back, RESIDENT_FREE, true), 50 * MIB);
	text = report_of(back, REPORT_TEXT);
	assert_says(
		text,
		"By row: live +48.0 MiB, free kept by glibc\n  +30.0 MiB, mapped directly +6.00 MiB.\n");
	assert_says(text, "\nResident 141 -> 225 MiB\n");
	assert_omits(text, "account for");
	back->recording.inuse = RECORDING_INUSE_SINCE; /* what is held is not compared */
	text = report_of(back, REPORT_TEXT);
	assert_says(text, "\nResident 141 -> 225 MiB: live +48.0 MiB, free kept by glibc "
			  "+30.0 MiB, mapped directly");
	text = report_of(back, REPORT_JSON);
	assert_says(text,
		    "\"resident\":{\"begin_bytes\":147849216,\"end_bytes\":235929600,"
		    "\"begin_heap_is_read\":true,\"end_heap_is_read\":true,\"why_not\":null,");
	assert_says(text, "{\"row\":\"pinned\",\"label\":\"free kept by glibc\","
			  "\"begin_bytes\":12582912,\"end_bytes\":0}");
}

/* serve reads now and then: its last reading may be of some time before the end, and does not explain what came since. */
TEST(test_age)
{
	struct profile *p = profile_of(first(), last()), *back;
	char buf[RESIDENT_WORDS], *text;
	struct witness w;

	p->time_ns = 1;
	p->resident.end.age_ns = 42000000000;
	assert_says(resident_words(p, buf),
		    "Resident 141 -> 225 MiB, read 42.0 s before the end: live +48.0 MiB");
	back = reread(p);
	assert_true(back->resident.end.age_ns == 42000000000);
	text = report_of(p, REPORT_JSON);
	assert_says(text, "\"end_age_s\":42.0,");
	witness_find(p, &w);
	assert_true(w.is_unexplained && w.rows[0]);
	p->recording.rss_end_bytes = 425 * MIB;
	witness_find(p, &w);
	assert_true(w.is_unexplained && !w.rows[0]);
	text = report_of(p, REPORT_TEXT);
	assert_says(
		text,
		"\nResident 141 -> 425 MiB, by row 141 -> 225 MiB, read 42.0 s before the end:");
	assert_omits(text, "\nResident 141 -> 425 MiB\n");
}

TEST(test_unknown_in_reports)
{
	struct profile *p = profile_of(first(), unknown("the process had ended"));
	char *text = report_of(p, REPORT_TEXT);

	assert_non_null(
		strstr(text,
		       "\nResident 141 -> 225 MiB: blocks in use account for 0 % of the growth; by row at the end: "
		       "unknown (the process had ended)\n") ||
		strstr(text, "growth;\n  by row at the end: unknown (the process had ended)\n"));
	text = report_of(p, REPORT_JSON);
	assert_says(text, "\"end_bytes\":null");
	assert_omits(text, "\"end_bytes\":0");
}

/* What an allocator keeps for itself is no excess; what may be an allocator's that is not seen is. */
TEST(test_witness)
{
	struct resident_reading end =
		READING(true, { "live", "live", RESIDENT_LIVE, 95 * MIB },
			{ "trimmable", "free kept by glibc", RESIDENT_FREE, 104 * MIB },
			{ "anonymous", "mapped directly", RESIDENT_UNOWNED, 10 * MIB },
			{ "files", "files", RESIDENT_OTHER, 16 * MIB });
	struct profile *p = profile_of(first(), end);
	char words[WITNESS_WORDS];
	struct witness w;

	witness_find(p, &w);
	assert_true(w.is_unexplained && w.is_kept_free);
	assert_string_equal(
		witness_words(&w, words),
		"The process grew by 84.0 MiB, of which 0 B is in use. By row: free kept by glibc "
		"+84.0 MiB.");
	/* What is read says more than what is concluded of blocks that were freed. */
	assert_int_equal(vec_push(&p->moments_ns, 1), 0);
	assert_int_equal(vec_push(&p->moments_ns, 2), 0);
	assert_int_equal(vec_push(&p->lives, ((struct history_life){ .bytes = 90 * MIB })), 0);
	witness_find(p, &w);
	assert_true(w.is_kept_free && w.most_bytes == 90.0 * MIB);
	assert_says(witness_words(&w, words), "By row: free kept by glibc +84.0 MiB.");
	p->resident.begin.is_proved = false;
	witness_find(p, &w);
	assert_says(witness_words(&w, words), "its allocator keeps freed blocks");
	p->resident.begin.is_proved = true;
	p->lives.cnt = 0;
	p->recording.rss_begin_bytes = 121 * MIB; /* it grew while heaptap attached */
	witness_find(p, &w);
	assert_says(witness_words(&w, words),
		    "grew by 104 MiB, of which 0 B is in use. By row, 141 -> 225 MiB: free");
	p->resident.begin.is_proved = false;
	witness_find(p, &w);
	assert_false(w.is_kept_free);
	p = profile_of(first(), last());
	witness_find(p, &w);
	assert_true(w.is_unexplained && !w.is_kept_free);
	assert_int_equal(profile_comment(p, "not seen: /usr/lib/libx.so contains an allocator"), 0);
	witness_find(p, &w);
	assert_says(
		witness_words(&w, words),
		" Some of it may be blocks of an allocator that is not seen (/usr/lib/libx.so).");
}

TEST(test_limits)
{
	static const struct {
		enum limit_kind kind;
		double limit;
		bool is_share;
		/* 1: end not proved, 2: begin unknown, 3: end unknown, 4: not asked, 5: 4 MiB moved, 6: 20 MiB came before */
		int damage;
		enum limit_verdict verdict;
		double value;
	} cases[] = {
		{ LIMIT_RETAINED, 50 * MIB, false, 0, LIMIT_KEPT, 50 * MIB },
		{ LIMIT_RETAINED, 49 * MIB, false, 0, LIMIT_BROKEN, 50 * MIB },
		{ LIMIT_RETAINED, 0.3, true, 0, LIMIT_KEPT, 50 * MIB },
		{ LIMIT_RETAINED, 0.2, true, 0, LIMIT_BROKEN, 50 * MIB },
		{ LIMIT_RETAINED, 60 * MIB, false, 1, LIMIT_UNKNOWN, 50 * MIB },
		{ LIMIT_RETAINED, 40 * MIB, false, 1, LIMIT_BROKEN, 50 * MIB },
		{ LIMIT_RETAINED, 60 * MIB, false, 2, LIMIT_KEPT, 50 * MIB },
		{ LIMIT_RETAINED, 60 * MIB, false, 3, LIMIT_UNKNOWN, NAN },
		{ LIMIT_RETAINED, 0.5, true, 3, LIMIT_UNKNOWN, NAN },
		{ LIMIT_RETAINED, 60 * MIB, false, 4, LIMIT_UNKNOWN, NAN },
		{ LIMIT_RETAINED, 52 * MIB, false, 5, LIMIT_UNKNOWN, 50 * MIB },
		{ LIMIT_UNEXPLAINED, 6 * MIB, false, 0, LIMIT_KEPT, 6 * MIB },
		{ LIMIT_UNEXPLAINED, 5 * MIB, false, 0, LIMIT_BROKEN, 6 * MIB },
		{ LIMIT_UNEXPLAINED, 0.03, true, 0, LIMIT_KEPT, 6 * MIB },
		{ LIMIT_UNEXPLAINED, 0.02, true, 0, LIMIT_BROKEN, 6 * MIB },
		{ LIMIT_UNEXPLAINED, 6 * MIB, false, 2, LIMIT_UNKNOWN, NAN },
		{ LIMIT_UNEXPLAINED, 90 * MIB, false, 1, LIMIT_KEPT, 84 * MIB },
		{ LIMIT_UNEXPLAINED, 6 * MIB, false, 1, LIMIT_UNKNOWN, 84 * MIB },
		{ LIMIT_UNEXPLAINED, 6 * MIB, false, 6, LIMIT_UNKNOWN, 6 * MIB },
		{ LIMIT_UNEXPLAINED, 26 * MIB, false, 6, LIMIT_KEPT, 6 * MIB },
		{ LIMIT_UNEXPLAINED, 5 * MIB, false, 6, LIMIT_BROKEN, 6 * MIB },
	};

	each_case(c, cases) {
		struct limit_options o = { .tail = 0.01 };
		struct resident_reading begin = first(), end = last();
		struct profile *p;
		struct limits l;

		o.is_asked[c->kind] = true;
		o.limit[c->kind] = c->limit;
		o.is_share[c->kind] = c->is_share;
		end.is_proved = c->damage != 1;
		if (c->damage == 2)
			begin = unknown("denied");
		if (c->damage == 3)
			end = unknown("denied");
		if (c->damage == 5) {
			end.rows[end.row_cnt] =
				(struct resident_reading_row){ .name = "moved",
							       .label = "changed",
							       .kind = RESIDENT_MOVED,
							       .bytes = -4 * MIB };
			end.row_cnt++;
		}
		p = profile_of(begin, end);
		p->resident.is_asked = c->damage != 4;
		if (c->damage == 6)
			p->recording.rss_begin_bytes -= 20 * MIB;
		assert_int_equal(limits_judge(p, NULL, &o, &l), 0);
		assert_int_equal(l.cnt, 1);
		if (l.verdict != c->verdict || (!isnan(c->value) && l.results[0].value != c->value))
			fail_msg("case %zu: verdict %d, value %f: %s", (size_t)(c - cases),
				 l.verdict, l.results[0].value, l.results[0].why);
		assert_int_equal(isnan(l.results[0].value), isnan(c->value));
		assert_int_equal(l.verdict == LIMIT_UNKNOWN, l.results[0].why[0] != '\0');
		for (int format = LIMIT_TEXT; format <= LIMIT_JUNIT; format++) {
			char *text =
				printed(out, assert_int_equal(limits_write(&l, format, out), 0));

			assert_says(text, c->kind == LIMIT_RETAINED ? format == LIMIT_TEXT ?
								      "free memory kept by malloc" :
								      "\"retained\"" :
					  format == LIMIT_TEXT	    ? "unexplained growth" :
								      "\"unexplained\"");
			assert_omits(text, "exactly");
		}
		limits_release(&l);
	}
}

/* A walk may go up or back, and a child may write anything: what is no part of pages is not known. */
TEST(test_pins)
{
	static const float bad[] = { NAN, -1, INFINITY, -INFINITY, 1 << 21 };
	struct resident_pins pins = { 0 };

	assert_int_equal(resident_pins_share(&pins), -ENODATA);
	assert_int_equal(resident_pins_found(&pins, 16) + resident_pins_found(NULL, 16), 0);
	for (uint64_t i = 100; i > 0; i--)
		assert_int_equal(vec_push(&pins.list, (struct resident_pin){ 32 * i, i, 1 }), 0);
	assert_int_equal(resident_pins_share(&pins), 0);
	for (uint64_t i = 0, at = 0; i < 4000; i++, at = i * 1601 % 400 * 16)
		assert_int_equal(resident_pins_found(&pins, at),
				 at % 32 || at > 3200 ? 0 : at / 32);
	resident_pins_add(&pins, resident_pins_found(&pins, 256), 0.5);
	resident_pins_add(&pins, 8, 2);
	resident_pins_add(&pins, 0, 1);
	assert_true(resident_pins_bytes(&pins, 256, 8) == 2.5);
	assert_true(isnan(resident_pins_bytes(&pins, 256, 9))); /* a later block there */
	each_case(c, bad) {
		pins.bytes[7] = *c;
		assert_true(isnan(resident_pins_bytes(&pins, 256, 8)));
	}
	resident_pins_release(&pins);
}

RUN_TESTS()
