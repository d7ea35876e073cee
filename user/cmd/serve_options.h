/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve_options.h - the table of options of `heaptap serve`.
 *
 * To add an option, add a row in cmd/serve_options.c, and the member that it names, to struct daemon_options or
 * struct serve_settings. Then the command line, the file, --help and --check-config know it.
 */
#ifndef HT_CMD_SERVE_OPTIONS_H
#define HT_CMD_SERVE_OPTIONS_H

#include "config/option.h"

/* Sets members of struct serve_settings. */
extern const struct option_table serve_option_table;

#endif
