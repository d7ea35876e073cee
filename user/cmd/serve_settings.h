/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve_settings.h - the settings of `heaptap serve`, made of defaults, a configuration file and the command
 * line.
 *
 * Checks and settings that involve several options belong into finish() in serve_settings.c; the rule of a single
 * option stands in the table, cmd/serve_options.c.
 */
#ifndef HT_CMD_SERVE_SETTINGS_H
#define HT_CMD_SERVE_SETTINGS_H

struct option_args;
struct serve_settings;

/*
 * Make settings from defaults, the file that args name, if any, and args. All errors are logged. -EINVAL: something
 * is wrong; -errno: the file cannot be read. Release it in any case.
 */
int serve_settings_make(const struct option_args *args, struct serve_settings *ret);
/* Keep the old values of options that need a new start, after settings were read again; each is logged. */
int serve_settings_keep_fixed(struct serve_settings *fresh, const struct serve_settings *old);
void serve_settings_release(struct serve_settings *s);

#endif
