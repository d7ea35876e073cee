/* SPDX-License-Identifier: MIT */
/* own_cost.h - what heaptap itself costs: descriptors by kind, CPU time, memory. */
#ifndef HT_SERVE_OWN_COST_H
#define HT_SERVE_OWN_COST_H

#include "metrics/view.h"

enum { OWN_FD_KIND_CNT = 7 };

/* How many descriptors of each kind: each kind is there, also with 0, and their sum is all. */
int own_fds_count(struct serve_named ret[static OWN_FD_KIND_CNT]);
/* Fills cpu_seconds and rss_bytes. */
void own_cost_read(struct serve_own *ret);

#endif
