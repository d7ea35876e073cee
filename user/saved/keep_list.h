/* SPDX-License-Identifier: MIT */
/*
 * keep_list.h - the kept profiles of a store, as endpoints and pages ask for them.
 */
#ifndef HT_SAVED_KEEP_LIST_H
#define HT_SAVED_KEEP_LIST_H

#include <sys/types.h>

#include "http/endpoints.h"

struct keep_store;
struct serve_keep;

/* As keeper_fetch(). */
int keep_list_fetch(const struct keep_store *s, pid_t pid, enum endpoint_moment at);

/* All but failed_cnt and skipped_cnt, which stay as they are. -ENOMEM; to be released. */
int keep_list_view(const struct keep_store *s, struct serve_keep *ret);
void keep_list_release(struct serve_keep *v);

#endif
