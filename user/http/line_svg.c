/* SPDX-License-Identifier: MIT */
/* line_svg.c - see line_svg.h. */
#include "http/line_svg.h"

#include <math.h>
#include <stdbool.h>

#define PIXELS_A_POINT 2

float line_svg_top(const float *values, size_t cnt)
{
	float most = NAN;

	for (size_t i = 0; i < cnt; i++)
		if (isnan(most) || values[i] > most)
			most = values[i];
	return most;
}

void line_svg_write(const float *values, size_t cnt, size_t slot_cnt, unsigned width,
		    unsigned height, const char *label, FILE *out)
{
	size_t points = width / PIXELS_A_POINT, skipped = slot_cnt - cnt;
	float top = line_svg_top(values, cnt);
	bool is_drawing = false;

	fprintf(out,
		"<svg width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" role=\"img\" "
		"aria-label=\"%s\"><title>%s</title>",
		width, height, width, height, label, label);
	if (points > slot_cnt)
		points = slot_cnt;
	fputs("<path fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.5\" d=\"", out);
	for (size_t i = 0; i < points; i++) {
		size_t first = i * slot_cnt / points, end = (i + 1) * slot_cnt / points;
		float value;

		if (end <= skipped)
			continue;
		if (first < skipped)
			first = skipped;
		value = line_svg_top(values + first - skipped, end - first);
		if (isnan(value)) {
			is_drawing = false;
			continue;
		}
		/* draw a single point, too */
		fprintf(out, is_drawing ? "L%.0f %.1f" : "M%.0f %.1fh1",
			(double)i * width / (double)points,
			1 + (height - 2) * (top > 0 ? 1 - (double)(value / top) : 1.0));
		is_drawing = true;
	}
	fputs("\"/></svg>", out);
}
