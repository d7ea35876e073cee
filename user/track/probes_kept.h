/* SPDX-License-Identifier: MIT */
/*
 * probes_kept.h - which of its probes each process keeps.
 */
#ifndef HT_TRACK_PROBES_KEPT_H
#define HT_TRACK_PROBES_KEPT_H

#include <stdbool.h>
#include <sys/types.h>

struct kept_table;

/* Which probes of a process stay attached. */
enum probes_kept {
	PROBES_ALL,
	PROBES_ALLOCS, /* not those on frees */
	PROBES_NONE,
};

/* is_shared: one setting for all processes, whichever pid it is set for. -ENOMEM. */
int kept_table_new(bool is_shared, struct kept_table **ret);
/* NULL is fine. */
void kept_table_free(struct kept_table *t);

/* -ENOMEM. */
int kept_table_set(struct kept_table *t, pid_t pid, enum probes_kept kept);
/*
 * The process samples itself: never keep its allocator's probes, whatever else is set. Where probes
 * are shared, BPF ignores its hits. -ENOMEM.
 */
int kept_table_set_sampled(struct kept_table *t, pid_t pid, bool is_sampled);
/* The process is gone. Shared settings stay. */
void kept_table_forget(struct kept_table *t, pid_t pid);
/* While held, processes without a setting keep PROBES_NONE; else PROBES_ALL. */
void kept_table_hold(struct kept_table *t, bool hold);

enum probes_kept kept_table_of(const struct kept_table *t, pid_t pid);
/* The same for the allocator's probes. */
enum probes_kept kept_table_allocator_of(const struct kept_table *t, pid_t pid);
/* Probes for everyone stay while only one process is to keep less. */
enum probes_kept kept_table_of_everyone(const struct kept_table *t);

#endif
