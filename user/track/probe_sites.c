/* SPDX-License-Identifier: MIT */
/*
 * probe_sites.c - see probe_sites.h.
 */
#include "track/probe_sites.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/vec.h"
#include "heaptap/abi.h"
#include "kernel/attach.h"
#include "alloc/allocators.h"
#include "track/file_tags.h"
#include "track/file.h"
#include "track/policy.h"

bool probe_sites_may_throw(const struct track_policy *policy, bool has_session,
			   const struct alloc_file *af)
{
	const struct alloc_site *site;

	vec_each(&af->sites, site)
		if ((HT_COOKIE_FLAGS(site->cookie) & HT_SITE_THROWS) &&
		    !alloc_site_is_left_alone(site, &policy->alloc, has_session))
			return !policy->alloc.probe_throwing;
	return false;
}

static size_t collect_sites(const struct track_policy *policy, bool has_session,
			    const struct track_file *file, enum sharing sharing, bool frees,
			    struct attach_site *ret)
{
	const uint64_t where = HT_COOKIE_AT(file->id, sharing);
	const struct alloc_site *site;
	size_t cnt = 0;

	for (int only_allocates = 0; only_allocates < 2; only_allocates++) {
		vec_each(&file->alloc->sites, site) {
			if ((site->row->op == HT_OP_FREE) == frees &&
			    !alloc_site_is_left_alone(site, &policy->alloc, has_session) &&
			    (site->row->op == HT_OP_ALLOC) == only_allocates)
				ret[cnt++] = (struct attach_site){ site->probe_off,
								   site->cookie | where, 0 };
		}
	}
	return cnt;
}

int probe_sites_of_kind(const struct track_policy *policy, bool has_session,
			const struct track_file *file, enum sharing sharing, bool frees,
			struct attach_request *req, struct attach_site **ret)
{
	struct attach_site *sites = calloc(file->alloc->sites.cnt + 1, sizeof(*sites));

	if (!sites)
		return -ENOMEM;
	req->sites = sites;
	req->site_cnt = collect_sites(policy, has_session, file, sharing, frees, sites);
	*ret = sites;
	return 0;
}

int probe_sites_idle(const struct track_policy *policy, bool has_session,
		     const struct track_file *file, struct attach_request *req,
		     struct attach_site **ret)
{
	size_t cnt = 0, cap = 1;
	struct attach_site *sites;

	if (file->alloc)
		cap += file->alloc->sites.cnt;
	if (file->tags)
		cap += file->tags->readies.cnt + file->tags->task_exits.cnt;
	sites = calloc(cap, sizeof(*sites));
	if (!sites)
		return -ENOMEM;
	if (file->alloc) {
		cnt = collect_sites(policy, has_session, file, SHARING_OWN, true, sites);
		cnt += collect_sites(policy, has_session, file, SHARING_OWN, false, sites + cnt);
	}
	for (size_t i = 0; file->tags && i < file->tags->readies.cnt; i++)
		sites[cnt++].off = file->tags->readies.data[i].off;
	for (size_t i = 0; file->tags && i < file->tags->task_exits.cnt; i++)
		sites[cnt++].off = file->tags->task_exits.data[i].off;
	for (size_t i = 0; i < cnt; i++)
		sites[i].cookie = 0;
	req->sites = sites;
	req->site_cnt = cnt;
	*ret = sites;
	return 0;
}
