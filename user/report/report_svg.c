/* SPDX-License-Identifier: MIT */
/*
 * report_svg.c - a flame graph as a still picture: the root on top, below each frame its callees,
 * as wide as what they hold, largest first. Frames narrower than half a pixel are left out. Each
 * frame shows its name, value and share under the pointer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/markup.h"
#include "base/utf8.h"
#include "report/report_rows.h"
#include "report/report_text.h"
#include "report/report_tree.h"

#define WIDTH 1200
#define ROW 18
#define HEAD 30
#define MARGIN 10
#define NARROWEST 0.5 /* pixels */
#define LETTER 7.0 /* pixels; width of the widest usual letters */

struct svg {
	const struct report *r;
	const struct report_tree *t;
	uint32_t *first, *next; /* lists of children, largest first; HT_NO_INDEX ends */
	double *x, *width;
	uint32_t *depth;
	FILE *out;
};

/* Write at most this many letters. */
static void put_shortened(const char *text, size_t letters, FILE *out)
{
	size_t left = strlen(text), used = 0;

	for (size_t len; used < left && letters; used += len, letters--) {
		len = utf8_len(text + used, left - used);
		len += !len;
	}
	markup_put(text, used, out);
	if (used < left)
		fputs("\xe2\x80\xa6", out);
}

static int by_value(const void *a, const void *b, void *ctx)
{
	const struct report_tree_node *nodes = ctx;
	double x = nodes[*(const uint32_t *)a].value, y = nodes[*(const uint32_t *)b].value;

	return x < y ? -1 : x > y;
}

/* Prepends the smallest child first, so that the largest ends up in front. */
static int link_children(struct svg *s)
{
	size_t cnt = s->t->nodes.cnt;
	uint32_t *order = malloc(cnt * sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		order[i] = (uint32_t)i;
		s->first[i] = s->next[i] = HT_NO_INDEX;
	}
	qsort_r(order, cnt, sizeof(*order), by_value, s->t->nodes.data);
	for (size_t i = 0; i < cnt; i++) {
		uint32_t parent = s->t->nodes.data[order[i]].parent;

		if (parent == HT_NO_INDEX)
			continue;
		s->next[order[i]] = s->first[parent];
		s->first[parent] = order[i];
	}
	free(order);
	return 0;
}

/* Compute places; return the number of rows. What is not drawn has width 0. */
static uint32_t lay_out(struct svg *s)
{
	double all = s->t->nodes.data[0].value;
	uint32_t rows = 1;

	s->x[0] = MARGIN;
	s->width[0] = WIDTH - 2 * MARGIN;
	/* a child comes after its parent */
	for (size_t i = 0; i < s->t->nodes.cnt; i++) {
		double x = s->x[i];

		if (s->width[i] <= 0)
			continue;
		rows = s->depth[i] + 1 > rows ? s->depth[i] + 1 : rows;
		for (uint32_t c = s->first[i]; c != HT_NO_INDEX; c = s->next[c]) {
			double width = s->t->nodes.data[c].value / all * (WIDTH - 2 * MARGIN);

			if (width < NARROWEST)
				break;
			s->x[c] = x;
			s->width[c] = width;
			s->depth[c] = s->depth[i] + 1;
			x += width;
		}
	}
	return rows;
}

static const char *name_of(const struct svg *s, size_t node)
{
	if (!node)
		return "everything";
	return strset_get(s->t->names, s->t->functions.data[s->t->nodes.data[node].function].name);
}

/* A name has the same shade in every picture. */
static void put_color(const struct svg *s, size_t node)
{
	const char *name = name_of(s, node);
	unsigned hash = 0;
	bool is_own = node && s->t->functions.data[s->t->nodes.data[node].function].is_own;

	for (const char *p = name; *p; p++)
		hash = hash * 31 + (unsigned char)*p;
	fprintf(s->out, "hsl(%u,%s,%u%%)", (is_own ? 16 : 32) + hash % 16, is_own ? "85%" : "45%",
		(is_own ? 59 : 75) + (hash >> 4) % 8);
}

static void put_node(const struct svg *s, size_t node)
{
	double y = HEAD + ROW * (double)s->depth[node], width = s->width[node];
	const struct report_tree_node *n = &s->t->nodes.data[node];
	char value[32], share[16];
	size_t letters = width > 3 * LETTER ? (size_t)((width - 6) / LETTER) : 0;

	fputs("<g><title>", s->out);
	put_shortened(name_of(s, node), 2000, s->out);
	fprintf(s->out,
		": %s%s%s</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"",
		report_format_value(s->r, n->value, value), node ? ", " : "",
		node ? report_format_share(s->r, (int64_t)n->value, share) : "", s->x[node], y,
		width > 0.6 ? width - 0.4 : width, ROW - 1);
	if (node)
		put_color(s, node);
	else
		fputs("#ccd2da", s->out);
	fputs("\"/>", s->out);
	if (letters) {
		fprintf(s->out, "<text x=\"%.2f\" y=\"%.0f\">", s->x[node] + 3, y + 13);
		put_shortened(name_of(s, node), letters, s->out);
		fputs("</text>", s->out);
	}
	fputs("</g>\n", s->out);
}

static void put_picture(struct svg *s)
{
	uint32_t rows = lay_out(s);
	char value[32];

	fprintf(s->out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" width=\"%d\" height=\"%u\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"20\" font-size=\"15\">",
		WIDTH, HEAD + ROW * rows + MARGIN, WIDTH, HEAD + ROW * rows + MARGIN, MARGIN);
	put_shortened(report_value_title(s->r), 100, s->out);
	fprintf(s->out, ": %s</text>\n",
		report_format_value(s->r, s->t->nodes.data[0].value, value));
	for (size_t i = 0; i < s->t->nodes.cnt; i++)
		if (s->width[i] > 0)
			put_node(s, i);
	fputs("</svg>\n", s->out);
}

int report_write_svg(const struct report *r, FILE *out)
{
	struct report_tree *t = NULL;
	struct svg s = { .r = r, .out = out };
	int err = report_tree_new(r, &t);
	size_t cnt;

	if (err)
		return err;
	s.t = t;
	cnt = t->nodes.cnt;
	s.first = calloc(cnt, sizeof(*s.first));
	s.next = calloc(cnt, sizeof(*s.next));
	s.x = calloc(cnt, sizeof(*s.x));
	s.width = calloc(cnt, sizeof(*s.width));
	s.depth = calloc(cnt, sizeof(*s.depth));
	err = s.first && s.next && s.x && s.width && s.depth ? link_children(&s) : -ENOMEM;
	if (!err)
		put_picture(&s);
	free(s.first);
	free(s.next);
	free(s.x);
	free(s.width);
	free(s.depth);
	report_tree_free(t);
	return err;
}
