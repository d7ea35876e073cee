/* SPDX-License-Identifier: MIT */
/* held_links.c - see held_links.h. */
#include "guardian/held_links.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "guardian/guardian_priv.h"
#include "guardian/wire.h"
#include "kernel/attach.h"

struct held_links {
	struct guardian *guardian;
	VEC(uint64_t) ids;
};

int held_links_new(struct guardian *g, struct held_links **ret)
{
	struct held_links *links = calloc(1, sizeof(*links));

	if (!links)
		return -ENOMEM;
	links->guardian = g;
	*ret = links;
	return 0;
}

static uint64_t detach_from(struct held_links *links, size_t first)
{
	uint64_t ticket =
		guardian_detach(links->guardian, links->ids.data + first, links->ids.cnt - first);

	links->ids.cnt = first;
	return ticket;
}

int held_links_add(struct held_links *links, const struct attach_request *req)
{
	size_t before = links->ids.cnt, done = 0;
	struct attach_request part = *req;
	int err = 0;

	while (done < req->site_cnt && !err) {
		part.sites = req->sites + done;
		part.site_cnt = req->site_cnt - done;
		if (part.site_cnt > WIRE_SITES_CAP)
			part.site_cnt = WIRE_SITES_CAP;
		err = vec_reserve(&links->ids, links->ids.cnt + 1);
		if (!err)
			err = guardian_attach(links->guardian, &part,
					      &links->ids.data[links->ids.cnt]);
		if (!err)
			links->ids.cnt++;
		done += part.site_cnt;
	}
	if (err)
		guardian_wait_detached(links->guardian, detach_from(links, before));
	return err;
}

int held_links_add_to_events(struct held_links *links, uint64_t events, pid_t tid)
{
	int err = vec_reserve(&links->ids, links->ids.cnt + 1);

	if (!err)
		err = guardian_add_to_events(links->guardian, events, tid,
					     &links->ids.data[links->ids.cnt]);
	if (!err)
		links->ids.cnt++;
	return err;
}

int held_links_add_tap(struct held_links *links, const struct attach_request *req,
		       const struct tap_order *order, struct tap_result *ret, struct err *why)
{
	int err = vec_reserve(&links->ids, links->ids.cnt + 1);

	if (!err)
		err = guardian_tap(links->guardian, req, order, &links->ids.data[links->ids.cnt],
				   ret, why);
	if (!err)
		links->ids.cnt++;
	return err;
}

int held_links_set_tap(const struct held_links *links, uint64_t rate_bytes, struct tap_lost *ret)
{
	struct tap_lost lost;
	int err = links->ids.cnt ? 0 : -ENOENT;

	*ret = (struct tap_lost){ 0 };
	for (size_t i = 0; i < links->ids.cnt && !err; i++) {
		err = guardian_set_tap(links->guardian, links->ids.data[i], rate_bytes, &lost);
		if (err)
			break;
		ret->dropped_cnt += lost.dropped_cnt;
		ret->failed_cnt += lost.failed_cnt;
	}
	return err;
}

int held_links_move(struct held_links *from, struct held_links *to)
{
	int err = vec_reserve(&to->ids, to->ids.cnt + from->ids.cnt);

	if (err)
		return err;
	for (size_t i = 0; i < from->ids.cnt; i++)
		to->ids.data[to->ids.cnt++] = from->ids.data[i];
	from->ids.cnt = 0;
	return 0;
}

uint64_t held_links_detach(struct held_links *links)
{
	uint64_t ticket;

	if (!links)
		return 0;
	ticket = detach_from(links, 0);
	vec_release(&links->ids);
	free(links);
	return ticket;
}

void held_links_free(struct held_links *links)
{
	struct guardian *g = links ? links->guardian : NULL;

	if (g)
		guardian_wait_detached(g, held_links_detach(links));
}
