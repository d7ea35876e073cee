/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve_options.h - the table of options of `heaptap serve`.
 *
 * To add an option, add a row in cmd/serve_options.c, and the member that it names, to struct daemon_options or
 * struct serve_settings. Then the command line, the file, --help and --check-config know it.
 */
#ifndef HT_CMD_SERVE_OPTIONS_H
#define HT_CMD_SERVE_OPTIONS_H

#include "base/std.h"
#include "base/vec.h"
#include "cmd/option.h"
#include "proc/cgroup.h"
#include "serve/push_http.h"
#include "serve/push_message.h"
#include "serve/daemon.h"

struct serve_settings {
	struct daemon_options daemon;
	char *config_file;
	struct option_limit max_overhead;
	double max_overhead_host; /* in percent */
	bool has_max_overhead, has_max_overhead_host; /* given, not the default */
	bool checks_config, is_quiet, is_verbose;
	struct option_numbers pids;
	struct texts cgroups, push_urls, labels;
	const char *config_path; /* from the arguments; NULL: there is no file */
	unsigned *lines; /* in the file, for each row of the table: 0 = not in it */
	/* values made from these, for the daemon */
	VEC(pid_t) pid_list;
	VEC(struct cgroup_place) places;
	VEC(struct push_target) targets;
	VEC(struct push_label) label_list; /* we own the names */
};

/* Sets members of struct serve_settings. */
extern const struct option_table serve_option_table;

/*
 * serve.c: the settings of `heaptap serve`, made of defaults, a configuration file and the command line.
 *
 * Checks and settings that involve several options belong into finish() in serve.c; the rule of a single
 * option stands in the table, cmd/serve_options.c.
 */

/*
 * Make settings from defaults, the file that args name, if any, and args. All errors are logged. -EINVAL: something
 * is wrong; -errno: the file cannot be read. Release it in any case.
 */
int serve_settings_make(const struct option_args *args, struct serve_settings *ret);
/* Keep the old values of options that need a new start, after settings were read again; each is logged. */
int serve_settings_keep_fixed(struct serve_settings *fresh, const struct serve_settings *old);
void serve_settings_release(struct serve_settings *s);

#endif
