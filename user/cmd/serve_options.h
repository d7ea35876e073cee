/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve_options.h - the options of `heaptap serve`, in a table.
 *
 * To add an option: a row in cmd/serve_options.c, and the member that it names, in struct daemon_options or
 * here. The command line, the file, --help and --check-config know it then.
 */
#ifndef HT_CMD_SERVE_OPTIONS_H
#define HT_CMD_SERVE_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"
#include "config/option.h"
#include "serve/daemon.h"
#include "push/push_message.h"
#include "push/push_target.h"
#include "proc/cgroup.h"

struct serve_settings {
	struct daemon_options daemon;
	char *config_file;
	struct option_limit max_overhead;
	double max_overhead_host; /* in percent */
	bool has_max_overhead, has_max_overhead_host; /* given, not the default */
	bool checks_config, is_quiet, is_verbose;
	struct option_numbers pids;
	struct texts cgroups, push_urls, labels;
	const char *config_path; /* of the arguments; NULL: there is no file */
	unsigned *lines; /* of the file, for each row of the table: 0 = not in it */
	/* what the daemon is given of these */
	VEC(pid_t) pid_list;
	VEC(struct cgroup_place) places;
	VEC(struct push_target) targets;
	VEC(struct push_label) label_list; /* names are ours */
};

extern const struct option_table serve_option_table;

#endif
