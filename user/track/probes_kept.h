/* SPDX-License-Identifier: MIT */
/*
 * probes_kept.h - which of its probes each process is to keep.
 */
#ifndef HT_TRACK_PROBES_KEPT_H
#define HT_TRACK_PROBES_KEPT_H

#include <stdbool.h>
#include <sys/types.h>

struct kept_table;

/* What is left in of a process's probes. */
enum probes_kept {
	PROBES_ALL,
	PROBES_ALLOCS, /* without those on frees */
	PROBES_NONE,
};

/* is_shared: one wish for all processes, whichever pid it is said of. -ENOMEM. */
int kept_table_new(bool is_shared, struct kept_table **ret);
/* NULL is fine. */
void kept_table_free(struct kept_table *t);

/* -ENOMEM. */
int kept_table_set(struct kept_table *t, pid_t pid, enum probes_kept kept);
/*
 * It samples itself: its allocator's probes are kept no more, whatever else is said. Where probes are shared,
 * BPF lets its hits pass. -ENOMEM.
 */
int kept_table_set_sampled(struct kept_table *t, pid_t pid, bool is_sampled);
/* The process is gone; what is shared stays. */
void kept_table_forget(struct kept_table *t, pid_t pid);
/* While held, those of which nothing was said keep PROBES_NONE; else PROBES_ALL. */
void kept_table_hold(struct kept_table *t, bool hold);

enum probes_kept kept_table_of(const struct kept_table *t, pid_t pid);
/* ... of those of its allocator. */
enum probes_kept kept_table_allocator_of(const struct kept_table *t, pid_t pid);
/* Probes for everyone go on for everyone while one process alone is to keep less. */
enum probes_kept kept_table_of_everyone(const struct kept_table *t);

#endif
