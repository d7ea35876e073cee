/* SPDX-License-Identifier: MIT */
/* nothing.c - see nothing.h. */
#include "record/nothing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "proc/runtime_kind.h"
#include "profile/recording.h"

#define COMMAND_BYTES 256

/* Write the same recording with other options: "heaptap record --rate 1 -- ls -l". */
static void command(const struct nothing *n, const char *options, char buf[static COMMAND_BYTES])
{
	char program[COMMAND_BYTES - 64];

	if (n->argv)
		snprintf(buf, COMMAND_BYTES, "heaptap record %s -- %s", options,
			 recording_program_text(n->argv, program, sizeof(program)));
	else
		snprintf(buf, COMMAND_BYTES, "heaptap record %s -p %s", options, n->pids);
}

static int explain_no_allocator(const struct nothing *n, const char *name,
				char buf[static NOTHING_BYTES])
{
	struct heap_words words = { 0 };

	heap_words_none(n->heap, &words);
	snprintf(buf, NOTHING_BYTES,
		 "nothing could be recorded of %s: %s (looked for " HEAP_KIND_LOOKED_FOR "); %s",
		 name, words.what, words.advice);
	return -ENODATA;
}

/* They are there: nothing is said of what the process has. */
static int explain_failed(const struct nothing *n, const char *name, char buf[static NOTHING_BYTES])
{
	char again[COMMAND_BYTES];

	command(n, "-v", again);
	snprintf(
		buf, NOTHING_BYTES,
		"nothing could be recorded of %s: %zu probe site%s or files could not be probed (%s); to "
		"try again, with details: %s",
		name, n->failed_cnt, n->failed_cnt == 1 ? "" : "s", n->failed_why, again);
	return -ENODATA;
}

static void explain_no_sampler(const struct nothing *n, const char *name,
			       char buf[static NOTHING_BYTES])
{
	char again[COMMAND_BYTES];

	command(n, "--source probes", again);
	snprintf(buf, NOTHING_BYTES, "nothing was recorded: %s %s; to probe its allocator: %s",
		 name,
		 n->site_cnt ?
			 "has a sampler that reported nothing (is it switched on?)" :
			 "has no sampler of its own (looked for USDT probes of otel_memory and "
			 "ddheap)",
		 again);
}

static void explain_too_little(const struct nothing *n, const char *name,
			       char buf[static NOTHING_BYTES])
{
	char calls[UNITS_BUF], rate[UNITS_BUF], most[UNITS_BUF], all[COMMAND_BYTES];

	command(n, "--rate 1", all);
	/* Allocating more than three times the rate without a sample happens once in twenty times. */
	snprintf(buf, NOTHING_BYTES,
		 "nothing was sampled: %s called its allocator %s time%s, for less than about %s "
		 "in all (one sample is taken per %s); to record every call: %s",
		 name, format_count((double)n->call_cnt, calls, sizeof(calls)),
		 n->call_cnt == 1 ? "" : "s",
		 format_bytes(3.0 * (double)n->rate_bytes, most, sizeof(most)),
		 format_bytes((double)n->rate_bytes, rate, sizeof(rate)), all);
}

static void explain_tapped(const struct nothing *n, const char *name, const char *duration,
			   char buf[static NOTHING_BYTES])
{
	char late[UNITS_BUF], rate[UNITS_BUF], most[UNITS_BUF], all[COMMAND_BYTES];

	command(n, "--rate 1", all);
	format_duration(n->late_ns, late, sizeof(late));
	format_bytes((double)n->rate_bytes, rate, sizeof(rate));
	/* See explain_too_little(). */
	format_bytes(3.0 * (double)n->rate_bytes, most, sizeof(most));
	if (n->late_ns >= n->duration_ns / 4)
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s ran for %s, %s of that before it was tapped; to "
			 "record it from the beginning, use probes: %s",
			 name, duration, late, all);
	else
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s allocated less than about %s in %s%s (one "
			 "sample is taken per %s); to record every call: %s",
			 name, most, duration, n->is_partly_tapped ? " in tapped functions" : "",
			 rate, all);
}

int nothing_explain(const struct nothing *n, const char *name, char buf[static NOTHING_BYTES])
{
	char duration[UNITS_BUF], again[COMMAND_BYTES];

	format_duration(n->duration_ns, duration, sizeof(duration));
	if (!n->site_cnt && n->failed_cnt)
		return explain_failed(n, name, buf);
	if (n->is_usdt && !n->call_cnt && !n->paused_cnt) {
		explain_no_sampler(n, name, buf);
		return n->site_cnt ? 0 : -ENODATA;
	}
	if (!n->call_cnt && n->unseen) {
		snprintf(buf, NOTHING_BYTES, "nothing was recorded of %s: %s", name, n->unseen);
		return n->site_cnt ? 0 : -ENODATA;
	}
	if (!n->site_cnt)
		return explain_no_allocator(n, name, buf);
	if (n->paused_cnt) {
		snprintf(buf, NOTHING_BYTES,
			 "nothing was recorded: %s has paused the recording (heaptap_pause_all)",
			 name);
	} else if (n->probes_went_out) {
		command(n, "--max-overhead off -d 10s", again);
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: the overhead limit stopped the recording of %s; "
			 "without a limit: %s",
			 name, again);
	} else if (!n->call_cnt && n->is_untapped) {
		command(n, "--rate 1", again);
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s %s when the recording ended, after %s; to record "
			 "it %s, use probes: %s",
			 name,
			 n->is_tapped ? "was tapped only in part (not all of its programs or "
					"processes)" :
					"was not tapped yet",
			 duration, n->argv ? "from the beginning" : "at once", again);
	} else if (n->is_tapped && !n->heap->own.what) {
		explain_tapped(n, name, duration, buf);
	} else if (!n->call_cnt && n->heap->own.what) {
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s did not call malloc in %s. %s; %s", name,
			 duration, n->heap->own.what, n->heap->own.advice);
	} else if (!n->call_cnt) {
		command(n, n->argv ? "--follow" : "-d 5m", again);
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: %s made no malloc calls in %s; %s: %s", name,
			 duration,
			 n->argv ? "to record its children, too" :
				   "record it while it works, or for longer",
			 again);
	} else if (n->rate_bytes > 1) {
		explain_too_little(n, name, buf);
	} else {
		snprintf(buf, NOTHING_BYTES,
			 "nothing was sampled: none of the %llu allocator calls of %s returned "
			 "memory",
			 (unsigned long long)n->call_cnt, name);
	}
	return 0;
}
