/* SPDX-License-Identifier: MIT */
/* top_ui.c - see top_ui.h. */
#include "record/top_ui.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/terminal.h"
#include "profile/profile.h"
#include "record/top_messages.h"
#include "record/top_page.h"
#include "record/top_rates.h"
#include "record/top_ui_priv.h"

struct top_ui {
	struct top_view view;
	struct top_rates *rates;
	struct top_screen *screen;
	struct top_messages *messages;
	struct profile *profile; /* shown in the table; NULL: nothing yet */
	uint64_t time_ns; /* the profile's */
	struct top_table *table;
	char said[TOP_TEXT_BUF], message[TOP_TEXT_BUF];
	bool is_over, is_changed;
};

int top_ui_open(const struct top_ui_options *opts, struct top_ui **ret)
{
	struct top_ui *ui = calloc(1, sizeof(*ui));
	int err;

	if (!ui)
		return -ENOMEM;
	top_view_init(&ui->view);
	ui->view.pid = opts->pid;
	ui->view.of_process = opts->what;
	ui->view.what = opts->what;
	ui->view.sort = opts->sort;
	ui->is_changed = true;
	err = top_rates_new(&ui->rates);
	if (!err)
		err = top_screen_open(terminal_has_color(STDOUT_FILENO, TERMINAL_COLOR_AUTO),
				      &ui->screen);
	if (!err)
		err = top_messages_begin(&ui->messages);
	if (err)
		top_ui_close(ui);
	else
		*ret = ui;
	return err;
}

void top_ui_close(struct top_ui *ui)
{
	if (!ui)
		return;
	top_screen_close(ui->screen);
	top_messages_end(ui->messages);
	top_table_free(ui->table);
	profile_free(ui->profile);
	top_rates_free(ui->rates);
	top_view_release(&ui->view);
	free(ui);
}

static int show_profile(struct top_ui *ui)
{
	struct top_table *t = NULL;
	int err = top_table_of_profile(ui->profile, ui->view.what, &t);

	if (err)
		return err;
	top_table_free(ui->table);
	ui->table = t;
	ui->is_changed = true;
	return top_rates_update(ui->rates, ui->time_ns, t);
}

int top_ui_set_profile(struct top_ui *ui, struct profile *p)
{
	top_table_free(ui->table);
	ui->table = NULL;
	profile_free(ui->profile);
	ui->profile = p;
	ui->time_ns = now_ns();
	return show_profile(ui);
}

enum top_wish top_ui_keys(struct top_ui *ui)
{
	enum top_wish all = TOP_NOTHING, wish;
	int key;

	while ((key = top_screen_key(ui->screen)) >= 0) {
		wish = top_view_key(&ui->view, ui->table, key);
		ui->is_changed |= wish != TOP_NOTHING;
		ui->said[0] = '\0';
		if (wish > all)
			all = wish;
		if (wish == TOP_QUIT)
			break;
		if (wish == TOP_LOAD && ui->profile && show_profile(ui))
			return TOP_QUIT;
		/* The meaning of the next key depends on the order. */
		if (ui->table && top_view_arrange(&ui->view, ui->table))
			return TOP_QUIT;
	}
	return all;
}

/* Show a message in place of the keys, until the next one; "": none. */
__attribute__((format(printf, 2, 3))) static void say(struct top_ui *ui, const char *fmt, ...)
{
	char text[TOP_TEXT_BUF];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ui->is_changed |= strcmp(text, ui->said) != 0;
	memcpy(ui->said, text, sizeof(text));
}

void top_ui_set_over(struct top_ui *ui, bool is_over)
{
	ui->is_changed |= ui->is_over != is_over;
	ui->is_over = is_over;
}

bool top_ui_is_frozen(const struct top_ui *ui)
{
	return ui->view.is_paused && ui->table;
}

int top_ui_draw(struct top_ui *ui)
{
	char message[TOP_TEXT_BUF];
	struct top_news news = { .message = ui->said, .is_over = ui->is_over };
	struct top_page page;
	size_t columns, lines;
	int err;

	top_messages_last(ui->messages, message, sizeof(message));
	if (strcmp(message, ui->message) != 0) {
		memcpy(ui->message, message, sizeof(message));
		say(ui, "%s", message);
	}
	if (!ui->is_changed)
		return 0;
	top_screen_size(ui->screen, &columns, &lines);
	err = top_page_draw(&ui->view, ui->table, &news, columns, lines, &page);
	if (err)
		return err;
	top_screen_draw(ui->screen, &page);
	top_page_release(&page);
	ui->is_changed = false;
	return 0;
}
