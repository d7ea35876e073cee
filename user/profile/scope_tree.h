/* SPDX-License-Identifier: MIT */
/*
 * scope_tree.h - the tree of scopes, made from their paths. Memory without a scope is put under SCOPE_NONE. What scopes hold
 * is its user's to sum up; peaks, which are no sums, come from outside, for whole paths.
 */
#ifndef HT_PROFILE_SCOPE_TREE_H
#define HT_PROFILE_SCOPE_TREE_H

#include "base/std.h"
#include "base/hmap.h"
#include "base/strset.h"
#include "base/vec.h"

#define SCOPE_NO_NODE UINT32_MAX

struct scope_node {
	uint32_t parent; /* SCOPE_NO_NODE at the top; else less than the node's own index */
	uint32_t depth; /* 0 at the top */
	int64_t name_str; /* in `names`, as shown */
	/* The largest bytes there ever were in it and below, and when, since the epoch (0 = not known). peak_cnt: number
	 * of paths that gave a peak; 0 = the peak is not known at all; more than 1: the scopes were folded into this
	 * one and their common peak is at least peak_bytes. */
	int64_t peak_bytes, peak_time_ns;
	uint32_t peak_cnt;
};

struct scope_tree {
	bool folds_repeated; /* A/B/A counts as A/B */
	struct strset *names;
	VEC(struct scope_node) nodes;
	struct hmap index; /* {parent, name} -> node */
};

int scope_tree_init(struct scope_tree *t, bool folds_repeated);
void scope_tree_release(struct scope_tree *t);

/* The node of path (NULL = SCOPE_NONE), which is made if it is new. A path deeper than SCOPE_DEPTH_MAX counts for its
 * ancestor. 0 or -ENOMEM. */
int scope_tree_add(struct scope_tree *t, const char *path, uint32_t *ret);
/* Note the peak of a path; a path that was not added is ignored. 0 or -ENOMEM. */
int scope_tree_add_peak(struct scope_tree *t, const char *path, int64_t bytes, int64_t time_ns,
			bool is_several);
/* Find the node of exactly this path; *ret = SCOPE_NO_NODE when there is none. 0 or -ENOMEM. */
int scope_tree_find(struct scope_tree *t, const char *path, uint32_t *ret);
/* Path of a node; the caller frees it. NULL = no memory. */
char *scope_tree_path(const struct scope_tree *t, uint32_t node);

/*
 * The path of a scope as it is shown, "Top/A/B", and the names in it.
 *
 * A '/' inside a name is written as "\/", a '\' as "\\". Names are returned as they stand in the path, with the
 * escapes: that is how they are shown, compared and typed.
 */

/* The recorder makes no deeper nodes. In other files a deeper scope counts for its ancestor of this depth. */
#define SCOPE_DEPTH_MAX 64
/* The scope of memory that was allocated under no scope. */
#define SCOPE_NONE "(none)"

struct scope_name {
	const char *text; /* in the path; not terminated */
	size_t len;
};

/* Walk the names from the top: start with *pos = path, until false. */
bool scope_path_next(const char **pos, struct scope_name *ret);
/* Is path `ancestor` or below it? */
bool scope_path_is_in(const char *path, const char *ancestor);
/*
 * Drop the names that occurred earlier in the path: A/B/A/C -> A/B/C. ret has room for all of path. At most
 * SCOPE_DEPTH_MAX names are kept.
 */
void scope_path_fold(const char *path, char *ret);
/* The last name of path. */
const char *scope_path_leaf(const char *path);

#endif
