/* SPDX-License-Identifier: MIT */
/* test_scope_note.c - notes about scopes are understood to the letter; others are left alone. */
#include "unit.h"

#include "profile/scope_note.h"

TEST(peaks)
{
	struct scope_note n;
	const char *path;
	char *text;

	assert_true(scope_note_parse(
		"scope_peak: bytes=4096 time=2026-11-21T22:01:02.123Z scope=Top/A B/x=1 ", &n,
		&path));
	assert_int_equal(n.kind, SCOPE_NOTE_PEAK);
	assert_int_equal(n.peak_bytes, 4096);
	assert_true(n.peak_time_ns == 1795298462123000000);
	assert_int_equal(n.pid, 0);
	assert_string_equal(path, "Top/A B/x=1 "); /* whatever it holds */
	assert_true(scope_note_parse("scope_peak: bytes=0 pid=17 later=x scope=", &n, &path));
	assert_int_equal(n.peak_bytes, 0);
	assert_int_equal(n.peak_time_ns, 0);
	assert_int_equal(n.pid, 17);
	assert_string_equal(path, "");
	assert_int_equal(n.scope_cnt, 0);
	assert_true(scope_note_parse("scope_peak: bytes=9 scope_cnt=3 scope=A", &n, &path));
	assert_int_equal(n.scope_cnt, 3);
	text = scope_note_text(&n, path);
	assert_string_equal(text, "scope_peak: bytes=9 scope_cnt=3 scope=A");
	free(text);
}

TEST(instances)
{
	struct scope_note n;
	const char *path;

	assert_true(scope_note_parse(
		"instance: task=17 state=exited inuse_bytes=5 inuse_objects=1 alloc_bytes=25 "
		"alloc_objects=4 alloc_samples=3 alloc_error=12 peak_bytes=20 peak_time=2026-11-21T22:01:02.000Z pid=9 scope=conn",
		&n, &path));
	assert_int_equal(n.kind, SCOPE_NOTE_INSTANCE);
	assert_int_equal(n.task, 17);
	assert_true(n.is_exited);
	assert_int_equal(n.inuse_bytes, 5);
	assert_int_equal(n.inuse_objects, 1);
	assert_int_equal(n.alloc_bytes, 25);
	assert_int_equal(n.alloc_objects, 4);
	assert_int_equal(n.alloc_samples, 3);
	assert_int_equal(n.alloc_error, 12);
	assert_int_equal(n.peak_bytes, 20);
	assert_true(n.peak_time_ns == 1795298462000000000);
	assert_int_equal(n.pid, 9);
	assert_string_equal(path, "conn");
	assert_true(scope_note_parse(
		"instance: task=18446744073709551615 state=live inuse_bytes=0 scope=c", &n, &path));
	assert_true(n.task == -1);
	assert_int_equal(n.alloc_error, -1); /* not said */
	assert_false(n.is_exited);
}

TEST(others_are_none)
{
	static const char *const cases[] = {
		"",
		"scope_peak:",
		"scope_peak: ",
		"scope_peak: scope=A",
		"scope_peak: bytes=1",
		"scope_peak: bytes=1 ",
		"scope_peak: bytes= scope=A",
		"scope_peak: bytes=-1 scope=A",
		"scope_peak: bytes=1x scope=A",
		"scope_peak: bytes=99999999999999999999 scope=A",
		"scope_peak: bytes=1 time=yesterday scope=A",
		"scope_peak: bytes=1 time=2026-11-21T22:01:02Z scope=A",
		"scope_peak: bytes=1 time=2026-11-21T22:01:02.123ZZ scope=A",
		"scope_peak: bytes=1 time=9999-11-21T22:01:02.123Z scope=A",
		"scope_peak: bytes=1  scope=A",
		"scope_peak: bytes 1 scope=A",
		"scope_peaks: bytes=1 scope=A",
		"instance: task=1 inuse_bytes=1 scope=A",
		"instance: task=1 state=dead inuse_bytes=1 scope=A",
		"instance: state=live inuse_bytes=1 scope=A",
		"instance: task=1 state=live scope=A",
		"instance: task=-1 state=live inuse_bytes=1 scope=A",
		"instance: task=1 state=live inuse_bytes=1 alloc_bytes=x scope=A",
		"ledger: bytes=1 scope=A",
	};
	struct scope_note n;
	const char *path;

	each_case(c, cases)
		if (scope_note_parse(*c, &n, &path))
			fail_msg("'%s'", *c);
}

RUN_TESTS()
