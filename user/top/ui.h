/* SPDX-License-Identifier: MIT */
/*
 * ui.h - screen, keys and table together; where the data comes from is record_source.c's or serve_source.c's.
 */
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
	pid_t pid; /* that is opened at once; 0: none */
	enum top_what what; /* of a process that is opened, to begin with */
	enum top_sort sort;
	bool is_of_one; /* there is only pid: its profile has all that is to be shown */
};

int top_ui_open(const struct top_ui_options *opts, struct top_ui **ret);
/* The terminal is as it was; what was said meanwhile is said again. */
void top_ui_close(struct top_ui *ui);
const struct top_view *top_ui_view(const struct top_ui *ui);

/* Works off the keys that were pressed. TOP_LOAD: another process, or all, are to be shown, and nothing of them is
 * known. Other views of one process need nothing: they are made of its profile. */
enum top_wish top_ui_keys(struct top_ui *ui);
/* From now on p, which is taken in any case, is what is shown. 0, -ENOMEM, -EINVAL. */
int top_ui_set_profile(struct top_ui *ui, struct profile *p);
/* The same with processes. */
int top_ui_set_processes(struct top_ui *ui, struct top_table *t);
/* Instead of the keys, until the next one; "": no more. */
void top_ui_say(struct top_ui *ui, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What is shown stays so: its process has ended. */
void top_ui_set_over(struct top_ui *ui, bool is_over);
/* Paused, and there is something to look at: what comes now is not shown. */
bool top_ui_is_frozen(const struct top_ui *ui);
/* When something has changed. 0 or -ENOMEM. */
int top_ui_draw(struct top_ui *ui);

#endif
