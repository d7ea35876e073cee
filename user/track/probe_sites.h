/* SPDX-License-Identifier: MIT */
/*
 * probe_sites.h - the sites of a file's allocator, by kind, in the order of attaching, with cookies
 * that tell BPF the file and the sharing.
 *
 * An attachment goes from the first site to the last. Sites that also free (realloc) come before
 * those that only allocate, so that no allocation is seen whose free could be missed.
 */
#ifndef HT_TRACK_PROBE_SITES_H
#define HT_TRACK_PROBE_SITES_H

#include <stdbool.h>
#include <stddef.h>

#include "track/plan.h"

struct alloc_file;
struct attach_request;
struct attach_site;
struct track_file;
struct track_policy;

/* Does some probed site throw? Then shared events cannot be used, because their return probes always fire, too. */
bool probe_sites_may_throw(const struct track_policy *policy, bool has_session,
			   const struct alloc_file *af);

/* Put the sites of a file's allocator that free, or those that allocate, into req. The caller frees
 * *ret after the request. -ENOMEM. */
int probe_sites_of_kind(const struct track_policy *policy, bool has_session,
			const struct track_file *file, enum sharing sharing, bool frees,
			struct attach_request *req, struct attach_site **ret);
/* All sites of a file, tags included, with cookie 0: their hits do nothing. Otherwise as above. */
int probe_sites_idle(const struct track_policy *policy, bool has_session,
		     const struct track_file *file, struct attach_request *req,
		     struct attach_site **ret);

#endif
