/* SPDX-License-Identifier: MIT */
/* probes_priv.h - what probes.c is made of: who shares the probes of a file. */
#ifndef HT_TRACK_PROBES_PRIV_H
#define HT_TRACK_PROBES_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "track/plan.h"

struct engine;
struct file_probes;
struct file_sharing;

/*
 * file_sharing.c: the sharing of one file's probes, and moving them to another.
 *
 * When processes come and go, a plan (plan.h) may find another sharing better. The new probes are in
 * place before the old ones go, no hit is missed or counted twice, and the program is never stopped.
 */

/* What all files have in common. */
struct sharing_policy {
	struct engine *engine;
	bool is_shared; /* one set of probes for every process that maps the file, for good */
	bool is_all_agreed; /* the planner may choose SHARING_ALL; may change */
	enum sharing wanted; /* SHARING_AUTO, or the one that is taken wherever it is possible */
	struct plan_costs costs;
};

/* Chooses the first sharing, for one process. Nothing is attached yet. policy and fp must outlive it.
 * -ENOMEM. */
int file_sharing_new(const struct sharing_policy *policy, struct file_probes *fp,
		     struct file_sharing **ret);
/* The probes stay. NULL is fine. */
void file_sharing_free(struct file_sharing *fw);

/* The sharing to which it moves, while it does. */
enum sharing file_sharing_now(const struct file_sharing *fw);
bool file_sharing_is_moving(const struct file_sharing *fw);
/* While it moves: from where. */
enum sharing file_sharing_old(const struct file_sharing *fw);
/* ns a hit, as plan_hit_ns() says. */
double file_sharing_hit_ns(const struct file_sharing *fw);

/* Processes, or what they keep, are others now: the next file_sharing_work() plans anew. */
void file_sharing_note_change(struct file_sharing *fw);
/* Plans now, if the file may move, for so many processes: with those that are about to come. */
void file_sharing_plan(struct file_sharing *fw, size_t process_cnt);
/* The next step of a move, or a plan when there was a change. */
void file_sharing_work(struct file_sharing *fw);
/* Ends a move where it is, and forgets changes: recording ends. */
void file_sharing_halt(struct file_sharing *fw);

#endif
