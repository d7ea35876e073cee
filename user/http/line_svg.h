/* SPDX-License-Identifier: MIT */
/* line_svg.h - a line of what was held, as SVG within a page: shapes alone, no script, no style. Pure. */
#ifndef HT_HTTP_LINE_SVG_H
#define HT_HTTP_LINE_SVG_H

#include <stddef.h>
#include <stdio.h>

/*
 * values, the oldest first, are the last cnt of slot_cnt places, so that lines of one width have one time; NAN is a
 * gap. From 0 up to the largest. Where there are more than fit, the largest of those side by side is drawn. label: what
 * it shows, for who cannot see it: ASCII without markup.
 */
void line_svg_write(const float *values, size_t cnt, size_t slot_cnt, unsigned width,
		    unsigned height, const char *label, FILE *out);
/* The largest of them, where the line ends at the top; NAN: none is known. */
float line_svg_top(const float *values, size_t cnt);

#endif
