/* SPDX-License-Identifier: MIT */
/* live_files.h - the probed files of the pages: in which way, for how many processes. */
#ifndef HT_SERVE_LIVE_FILES_H
#define HT_SERVE_LIVE_FILES_H

#include "base/vec.h"
#include "metrics/view.h"

struct tracker;

struct live_files {
	VEC(struct serve_file) list; /* most processes first */
};

/* In place of what is in *lf, which stays as it is on failure. */
int live_files_make(const struct tracker *t, struct live_files *lf);
void live_files_release(struct live_files *lf);

#endif
