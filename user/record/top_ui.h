/* SPDX-License-Identifier: MIT */
/* top_ui.h - joins screen, keys and table; top.c provides the data. */
#ifndef HT_RECORD_TOP_UI_H
#define HT_RECORD_TOP_UI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/top_table.h"
#include "record/top_view.h"

struct profile;
struct top_ui;

struct top_ui_options {
	pid_t pid;
	enum top_what what; /* the first view */
	enum top_sort sort;
};

int top_ui_open(const struct top_ui_options *opts, struct top_ui **ret);
/* Restore the terminal; messages of the meantime are written again. */
void top_ui_close(struct top_ui *ui);

/* Handle the keys that were pressed: other views are made from the profile that is shown. */
enum top_wish top_ui_keys(struct top_ui *ui);
/* Show p from now on; takes over p in any case. 0, -ENOMEM, -EINVAL. */
int top_ui_set_profile(struct top_ui *ui, struct profile *p);
/* Keep the table as it is: its process has ended. */
void top_ui_set_over(struct top_ui *ui, bool is_over);
/* True if the user paused, and there is a table: new data is not shown. */
bool top_ui_is_frozen(const struct top_ui *ui);
/* Call when something has changed. 0 or -ENOMEM. */
int top_ui_draw(struct top_ui *ui);

#endif
