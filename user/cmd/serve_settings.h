/* SPDX-License-Identifier: MIT */
/*
 * cmd/serve_settings.h - what `heaptap serve` is told: made of defaults, a configuration file and the command line.
 *
 * What is to be checked or made of several options together belongs into finish() in serve_settings.c; what one
 * option alone has to be stands in the table, cmd/serve_options.c.
 */
#ifndef HT_CMD_SERVE_SETTINGS_H
#define HT_CMD_SERVE_SETTINGS_H

struct option_args;
struct serve_settings;

/*
 * Defaults, the file that args name, if any, and args -> settings. All errors are logged.
 * -EINVAL: something is wrong; -errno: the file cannot be read. Release it in any case.
 */
int serve_settings_make(const struct option_args *args, struct serve_settings *ret);
/*
 * Settings that were read again: of options that need a new start the old values are kept, which is
 * said of each.
 */
int serve_settings_keep_fixed(struct serve_settings *fresh, const struct serve_settings *old);
void serve_settings_release(struct serve_settings *s);

#endif
