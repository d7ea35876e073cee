/* SPDX-License-Identifier: MIT */
/*
 * probe_sites.h - what of a file is probed: the sites of its allocator, by kind, in the order in
 * which they are to be attached, with the cookies that tell BPF file and sharing.
 *
 * An attachment goes from the first site to the last, so what frees as well (realloc) comes before
 * what only allocates: no allocation is seen whose free could be missed.
 */
#ifndef HT_TRACK_PROBE_SITES_H
#define HT_TRACK_PROBE_SITES_H

#include <stdbool.h>
#include <stddef.h>

#include "track/plan.h"

struct alloc_file;
struct alloc_site;
struct attach_request;
struct attach_site;
struct track_file;

struct probe_rules {
	bool probe_throwing; /* see tracker_options */
	bool has_session; /* a return is probed only where the entry says so */
};

/* With return probes that always fire an exception from the function would end the program. */
bool probe_site_is_left_alone(const struct probe_rules *rules, const struct alloc_site *site);
/* Then shared events cannot be had, whose return probes always fire too. */
bool probe_sites_may_throw(const struct probe_rules *rules, const struct alloc_file *af);

/* The sites that free, or those that allocate, of a file's allocator: into req, and to be freed by the
 * caller after the request. -ENOMEM. */
int probe_sites_of_kind(const struct probe_rules *rules, const struct track_file *file,
			enum sharing sharing, bool frees, struct attach_request *req,
			struct attach_site **ret);
/* All sites of a file, tags included, with cookie 0: hits of theirs do nothing. As above. */
int probe_sites_idle(const struct probe_rules *rules, const struct track_file *file,
		     struct attach_request *req, struct attach_site **ret);

#endif
