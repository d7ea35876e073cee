/* SPDX-License-Identifier: MIT */
/* ui.h - joins screen, keys and table; record_source.c or serve_source.c provides the data. */
#ifndef HT_TOP_UI_H
#define HT_TOP_UI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "top/table.h"
#include "top/view.h"

struct profile;
struct top_ui;

struct top_ui_options {
	pid_t pid; /* opened at once; 0: none */
	enum top_what what; /* first view of a process that is opened */
	enum top_sort sort;
	bool is_of_one; /* there is only pid: its profile has all data */
};

int top_ui_open(const struct top_ui_options *opts, struct top_ui **ret);
/* Restore the terminal; messages of the meantime are written again. */
void top_ui_close(struct top_ui *ui);
const struct top_view *top_ui_view(const struct top_ui *ui);

/* Handle the keys that were pressed. TOP_LOAD: another process, or all, must be shown, and their data is missing.
 * Other views of one process need no data: they are made from its profile. */
enum top_wish top_ui_keys(struct top_ui *ui);
/* Show p from now on; takes over p in any case. 0, -ENOMEM, -EINVAL. */
int top_ui_set_profile(struct top_ui *ui, struct profile *p);
/* The same for processes. */
int top_ui_set_processes(struct top_ui *ui, struct top_table *t);
/* Show a message in place of the keys, until the next one; "": none. */
void top_ui_say(struct top_ui *ui, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Keep the table as it is: its process has ended. */
void top_ui_set_over(struct top_ui *ui, bool is_over);
/* True if the user paused, and there is a table: new data is not shown. */
bool top_ui_is_frozen(const struct top_ui *ui);
/* Call when something has changed. 0 or -ENOMEM. */
int top_ui_draw(struct top_ui *ui);

#endif
