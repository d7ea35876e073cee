/* SPDX-License-Identifier: MIT */
/* line_svg.h - a line of what was held, as SVG within a page: only shapes, no script, no style. Pure. */
#ifndef HT_HTTP_LINE_SVG_H
#define HT_HTTP_LINE_SVG_H

#include <stddef.h>
#include <stdio.h>

/*
 * values, the oldest first, fill the last cnt of slot_cnt places, so that lines of equal width cover equal times;
 * NAN is a gap. The line spans 0 to the largest value. Where there are more values than fit, the largest of
 * neighbours is drawn. label: a description for people who cannot see it: ASCII without markup.
 */
void line_svg_write(const float *values, size_t cnt, size_t slot_cnt, unsigned width,
		    unsigned height, const char *label, FILE *out);
/* The largest value, which is the top of the line; NAN: none is known. */
float line_svg_top(const float *values, size_t cnt);

#endif
