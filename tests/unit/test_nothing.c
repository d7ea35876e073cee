/* SPDX-License-Identifier: MIT */
/* Why nothing was sampled, and the command that helps. */
#include "unit.h"

#include "base/clock.h"
#include "proc/runtime_kind.h"
#include "record/record_result.h"

static struct heap_kind kind;
static char *ls[] = { (char *)"ls", (char *)"-l", (char *)"/", NULL };

static struct nothing ordinary(void)
{
	return (struct nothing){
		.heap = &kind,
		.site_cnt = 8,
		.rate_bytes = 65536,
		.duration_ns = 2 * NS_PER_S,
		.pids = "12,13",
	};
}

static void expect(const struct nothing *n, int err, const char *part, const char *end)
{
	char text[NOTHING_BYTES];

	assert_int_equal(nothing_explain(n, "PID 12 (ls)", text), err);
	if (!strstr(text, part))
		fail_msg("no '%s' in '%s'", part, text);
	if (strlen(text) < strlen(end) || strcmp(text + strlen(text) - strlen(end), end) != 0)
		fail_msg("no '%s' at the end of '%s'", end, text);
}

TEST(test_too_little)
{
	struct nothing n = ordinary();

	n.call_cnt = 90;
	expect(&n, 0, "PID 12 (ls) called its allocator 90 times, for less than about 192 KiB",
	       ": heaptap record --rate 1 -p 12,13");
	n.argv = ls;
	expect(&n, 0, "one sample is taken per 64.0 KiB", ": heaptap record --rate 1 -- ls -l /");
	n.rate_bytes = 1;
	expect(&n, 0, "none of the 90 allocator calls of PID 12 (ls) returned memory", "memory");
}

/* Probes that the kernel did not take in time are not the absence of an allocator. */
TEST(test_failed)
{
	struct nothing n = ordinary();

	n.site_cnt = 0;
	n.failed_cnt = 8;
	n.failed_why = "the kernel was busy";
	expect(&n, -ENODATA,
	       "PID 12 (ls): 8 probe sites or files could not be probed (the kernel was busy)",
	       ": heaptap record -v -p 12,13");
}

/* What was not seen is not said to be nothing. */
TEST(test_untapped)
{
	struct nothing n = ordinary();

	n.is_untapped = true;
	n.argv = ls;
	expect(&n, 0, "PID 12 (ls) was not tapped yet when the recording ended",
	       ": heaptap record --rate 1 -- ls -l /");
}

/* A tap does not count calls: that there were none is not known. */
TEST(test_tapped)
{
	struct nothing n = ordinary();

	n.is_tapped = true;
	expect(&n, 0, "PID 12 (ls) allocated less than about 192 KiB in 2.0 s (one sample",
	       ": heaptap record --rate 1 -p 12,13");
	n.is_partly_tapped = true;
	expect(&n, 0, "in 2.0 s in tapped functions (one sample", "");
	n.late_ns = 1500000000;
	expect(&n, 0, "PID 12 (ls) ran for 2.0 s, 1.5 s of that before it was tapped",
	       ": heaptap record --rate 1 -p 12,13");
}

/* An allocator that is not seen is the reason, whether another one is probed or not. */
TEST(test_unseen)
{
	struct nothing n = ordinary();

	n.unseen = "/opt/x contains jemalloc, whose functions have no names";
	expect(&n, 0, "of PID 12 (ls): /opt/x contains jemalloc", "");
	n.site_cnt = 0;
	expect(&n, -ENODATA, "of PID 12 (ls): /opt/x contains jemalloc", "");
}

/* What a shell would read otherwise is not given as a command. */
TEST(test_quotes)
{
	char *hostile[] = { (char *)"sh", (char *)"-c", (char *)"rm $x; ls", (char *)"a", NULL };
	struct nothing n = ordinary();
	char *many[200], word[] = "a-word";

	n.call_cnt = 1;
	n.argv = hostile;
	expect(&n, 0, "called its allocator 1 time,", "heaptap record --rate 1 -- sh -c ...");
	for (size_t i = 0; i < 199; i++)
		many[i] = word;
	many[199] = NULL;
	n.argv = many;
	expect(&n, 0, "one sample", " a-word ...");
}

TEST(test_no_calls)
{
	struct nothing n = ordinary();

	expect(&n, 0, "made no malloc calls in 2.0 s", "heaptap record -d 5m -p 12,13");
	n.argv = ls;
	expect(&n, 0, "to record its children, too", "heaptap record --follow -- ls -l /");
	n.probes_went_out = true;
	expect(&n, 0, "the overhead limit stopped the recording",
	       "heaptap record --max-overhead off -d 10s -- ls -l /");
	n.paused_cnt = 1;
	expect(&n, 0, "heaptap_pause_all", ")");
}

TEST(test_no_allocator)
{
	struct nothing n = ordinary();

	n.site_cnt = 0;
	kind = (struct heap_kind){ .file_cnt = 2 };
	expect(&n, -ENODATA, "no known allocator found in its 2 mapped files",
	       "which heaptap cannot attribute");
	kind.unread_cnt = 1;
	expect(&n, -ENODATA, "in its 2 mapped files (1 of them could not be read)",
	       "it may be in a file that could not be read");
	kind.is_go = true;
	expect(&n, -ENODATA, "a Go program, whose heap is not malloc's",
	       "heaptap sees the memory of C code");
}

TEST(test_samplers)
{
	struct nothing n = ordinary();

	n.is_usdt = true;
	expect(&n, 0, "PID 12 (ls) has a sampler that reported nothing",
	       ": heaptap record --source probes -p 12,13");
	n.site_cnt = 0;
	expect(&n, -ENODATA, "PID 12 (ls) has no sampler of its own",
	       ": heaptap record --source probes -p 12,13");
}

RUN_TESTS()
