/* SPDX-License-Identifier: MIT */
/* nothing.h - explains a recording without a sample in one sentence: why, and what to do. Pure. */
#ifndef HT_RECORD_NOTHING_H
#define HT_RECORD_NOTHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_kind;

struct nothing {
	const struct heap_kind *heap;
	size_t site_cnt; /* probed sites */
	size_t failed_cnt; /* sites and files that could not be probed */
	const char *failed_why; /* of the last of them; NULL with failed_cnt 0 */
	uint64_t call_cnt; /* of allocators, seen by probes */
	uint64_t paused_cnt; /* allocations that the program excluded from recording */
	uint64_t rate_bytes, duration_ns;
	bool is_usdt; /* only reports of a sampler in the program were to be read */
	bool is_untapped; /* a process, or program that it executed, was to be tapped, and has ended before that, or the recording has */
	bool is_tapped; /* calls are not counted */
	bool is_partly_tapped; /* not all functions of its allocator are */
	uint64_t late_ns; /* how long it ran before it was tapped */
	const char *unseen; /* "FILE contains jemalloc, whose functions...", or NULL */
	bool probes_went_out; /* taken out to keep the overhead limit */
	char *const *argv; /* of the program that was started, or NULL */
	const char *pids; /* else: "12,13" */
};

#define NOTHING_BYTES 1024
/* name: "PID 12 (server)". -ENODATA: nothing could have been recorded, however long. */
int nothing_explain(const struct nothing *n, const char *name, char buf[static NOTHING_BYTES]);

#endif
