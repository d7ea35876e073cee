/* SPDX-License-Identifier: MIT */
/*
 * metrics_page.h - the page at "/metrics". Pure.
 *
 * All families of a process have the same labels pid, comm, exe and container, so that a query can divide one by
 * the other: heaptap_inuse_bytes / heaptap_target_resident_bytes. Families heaptap_scope_* have pid, comm, scope
 * and thread (the thread's pool).
 */
#ifndef HT_METRICS_PAGE_H
#define HT_METRICS_PAGE_H

#include <stdio.h>

#include "metrics/metric_text.h"

struct serve_view;

void metrics_page_write(const struct serve_view *v, enum metric_format format, FILE *out);

#endif
