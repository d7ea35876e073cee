/* SPDX-License-Identifier: MIT */
/*
 * fuzz_top.c - what a server that is none of ours answers heaptap top, and whatever keys are pressed: no line is wider
 * than the screen or commands the terminal, and rows are in their order.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "top/page.h"
#include "top/rates.h"
#include "top/table.h"
#include "top/view.h"

#define KEYS_CAP 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_line(const char *text, size_t columns)
{
	size_t width = 0, left = strlen(text), len;

	for (; left; text += len, left -= len, width++) {
		len = utf8_len(text, left);
		if (!len || (len == 1 && ((unsigned char)*text < ' ' || *text == 127)))
			abort();
	}
	if (width > columns)
		abort();
}

static void check_order(const struct top_view *v, const struct top_table *t)
{
	const struct top_row *before = NULL;

	for (size_t i = 0; i < v->order.cnt; i++) {
		const struct top_row *row = &t->rows.data[v->order.data[i]];

		if (before && v->sort == TOP_BY_HELD && row->held_bytes > before->held_bytes)
			abort();
		before = row;
	}
}

static void draw(struct top_view *v, const struct top_table *t, size_t columns, size_t lines)
{
	const struct top_news news = { .message = "" };
	struct top_page page;

	if (top_page_draw(v, t, &news, columns, lines, &page))
		abort();
	for (size_t i = 0; i < page.line_cnt; i++)
		check_line(page.lines[i].text, columns);
	top_page_release(&page);
	check_order(v, t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t key_cnt = bytes ? data[0] % KEYS_CAP : 0;
	struct top_table *t = NULL;
	struct top_rates *rates;
	struct top_view v;
	char *text;

	if (bytes < 1 + key_cnt)
		return 0;
	text = strndup((const char *)data + 1 + key_cnt, bytes - 1 - key_cnt);
	if (!text || top_rates_new(&rates))
		abort();
	top_view_init(&v);
	if (!top_table_of_metrics(text, &t)) {
		if (top_rates_update(rates, 0, NS_PER_S, t) ||
		    top_rates_update(rates, 0, 20 * NS_PER_S, t))
			abort();
		draw(&v, t, 80, 24);
		for (size_t i = 1; i <= key_cnt; i++) {
			int key = data[i] < 0xf0 ? data[i] : TOP_KEY_UP + data[i] - 0xf0;

			/* what another table is asked for is a new one */
			if (top_view_key(&v, t, key) == TOP_LOAD)
				break;
			draw(&v, t, 1 + data[i] % 130, 1 + data[i] % 30);
		}
	}
	top_table_free(t);
	top_view_release(&v);
	top_rates_free(rates);
	free(text);
	return 0;
}
