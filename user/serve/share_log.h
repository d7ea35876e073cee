/* SPDX-License-Identifier: MIT */
/*
 * share_log.h - says of a process, once, that it has used up its share of a table that all share (see
 * bpf/share.bpf.h), and what it loses by that. The others lose nothing.
 */
#ifndef HT_SERVE_SHARE_LOG_H
#define HT_SERVE_SHARE_LOG_H

struct engine;
struct share_log;

int share_log_new(struct engine *e, struct share_log **ret);
void share_log_free(struct share_log *s);
/* Now and then. */
int share_log_look(struct share_log *s);

#endif
