/* SPDX-License-Identifier: MIT */
/* probes_priv.h - a part of probes.c: the sharing of a file's probes. */
#ifndef HT_TRACK_PROBES_PRIV_H
#define HT_TRACK_PROBES_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "track/plan.h"

struct engine;
struct file_probes;
struct file_sharing;
struct track_policy;

/*
 * file_sharing.c: the sharing of one file's probes, and moves to another.
 *
 * When processes come and go, a plan (plan.h) may find another sharing better. The new probes are
 * attached before the old ones go, no hit is missed or counted twice, and the program is never
 * stopped.
 */

/* Choose the first sharing, for one process. Attaches nothing yet. All must outlive it. -ENOMEM. */
int file_sharing_new(struct engine *e, const struct track_policy *policy, struct file_probes *fp,
		     struct file_sharing **ret);
/* Leaves the probes attached. NULL is fine. */
void file_sharing_free(struct file_sharing *fs);

/* The present sharing; during a move, the new one. */
enum sharing file_sharing_now(const struct file_sharing *fs);
bool file_sharing_is_moving(const struct file_sharing *fs);
/* During a move: the old sharing. */
enum sharing file_sharing_old(const struct file_sharing *fs);
/* ns per hit, as plan_hit_ns() says. */
double file_sharing_hit_ns(const struct file_sharing *fs);

/* Processes have changed, or what they keep: the next file_sharing_work() plans anew. */
void file_sharing_note_change(struct file_sharing *fs);
/* Plan now, if the file may move. process_cnt includes processes that are about to come. */
void file_sharing_plan(struct file_sharing *fs, size_t process_cnt);
/* Take the next step of a move, or plan if something changed. */
void file_sharing_work(struct file_sharing *fs);
/* Stop a move where it is, and forget changes: recording ends. */
void file_sharing_halt(struct file_sharing *fs);

#endif
