/* SPDX-License-Identifier: MIT */
/* option_priv.h - what the parts of option.h share. */
#ifndef HT_CONFIG_OPTION_PRIV_H
#define HT_CONFIG_OPTION_PRIV_H

#include "base/units.h"
#include "config/option.h"

__attribute__((format(printf, 3, 4))) void option_complain(option_error_fn on_error, void *ctx,
							   const char *fmt, ...);
const struct option_row *option_find(const struct option_table *t, const char *name);
/* n as an option of this type is written, exactly: "64k", "1500ms". Returns buf. */
char *option_format_number(enum option_type type, uint64_t n, char buf[UNITS_BUF]);

#endif
