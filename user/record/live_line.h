/* SPDX-License-Identifier: MIT */
/* live_line.h - the text of the status line while a recording runs. Pure. */
#ifndef HT_RECORD_LIVE_LINE_H
#define HT_RECORD_LIVE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last seconds, for the rate. Zero-initialised. */
#define LIVE_LINE_POINTS 16
struct live_line {
	struct live_point {
		uint64_t time_ns;
		double held_bytes;
	} points[LIVE_LINE_POINTS];
	size_t cnt; /* ever added */
};

struct live_now {
	uint64_t time_ns, elapsed_ns;
	bool has_held; /* false: frees are not watched */
	double held_bytes;
	double cost; /* share of CPU time, or of one CPU; NAN: not known */
	bool is_of_one_cpu; /* cost is in one CPU, as the limit in force */
	bool is_largest_cost; /* the largest of several processes */
	const char *loss; /* loss to show at once; NULL: none */
};

#define LIVE_LINE_BYTES 128
/* "12.4 s: held 451 KiB (+110 KiB/s), cost 9 %", "... cost 4 % of one CPU" */
void live_line_text(struct live_line *l, const struct live_now *now,
		    char buf[static LIVE_LINE_BYTES]);

#endif
