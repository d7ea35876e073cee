/* SPDX-License-Identifier: MIT */
/* serve_source.h - heaptap top --connect: what a running heaptap serve follows. */
#ifndef HT_TOP_SERVE_SOURCE_H
#define HT_TOP_SERVE_SOURCE_H

#include <stdint.h>

#include "top/ui.h"

struct top_serve_options {
	struct top_ui_options ui;
	const char *url, *token_file; /* token_file: NULL: none is needed */
	uint64_t interval_ns;
};

/* What is wrong was said. */
int top_serve(const struct top_serve_options *opts);

#endif
