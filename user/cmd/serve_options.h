/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve_options.h - the options of `heaptap serve`, in a table.
 *
 * To add an option: a row in cmd/serve_options.c, and the member that it names, in struct daemon_options or
 * in struct serve_settings. The command line, the file, --help and --check-config know it then.
 */
#ifndef HT_CMD_SERVE_OPTIONS_H
#define HT_CMD_SERVE_OPTIONS_H

#include "config/option.h"

/* Of struct serve_settings. */
extern const struct option_table serve_option_table;

#endif
