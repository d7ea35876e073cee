/* SPDX-License-Identifier: MIT */
/* requests.c - what main asks of the guardian, see guardian.h: probes, taps, events; and links, which it holds. */
#include "guardian/guardian.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"
#include "guardian/guardian_priv.h"
#include "kernel/attach.h"

static void add_part(struct guardian_request *r, const struct attach_request *req)
{
	if (!r->fd_cnt)
		r->fds[r->fd_cnt++] = req->file_fd;
	r->fds[r->fd_cnt++] = req->prog_fd;
	r->head.parts[r->head.part_cnt++] = (struct wire_part){
		.mode = req->mode,
		.kind = req->kind,
		.site_cnt = (uint32_t)req->site_cnt,
		.pid = req->pid,
	};
	r->body[r->body_cnt++] =
		(struct iovec){ (void *)req->sites, req->site_cnt * sizeof(*req->sites) };
}

/* The guardian's sentence, or the system's text for err. */
static void take_why(const struct wire_reply *reply, int err, struct err *why)
{
	err_set(why, err, "%.*s", (int)sizeof(reply->why),
		reply->why[0] ? reply->why : strerror(-err));
}

/* At most WIRE_SITES_CAP sites. */
static int attach(struct guardian *g, const struct attach_request *req, uint64_t *ret_id)
{
	struct guardian_request r = { .head = { .kind = WIRE_ATTACH,
						.id = guardian_new_number(g) } };
	struct wire_reply reply;
	int err;

	add_part(&r, req);
	err = guardian_exchange(g, &r, &reply);
	if (!err)
		*ret_id = r.head.id;
	return err;
}

/* See tap/tap.h; req is for the probes of the tap, with the file of the order's seeds, or none. */
static int tap(struct guardian *g, const struct attach_request *req, const struct tap_order *order,
	       uint64_t *ret_id, struct tap_result *ret, struct err *why)
{
	struct guardian_request r = {
		.head = { .kind = WIRE_TAP, .id = guardian_new_number(g), .order_cnt = 1 }
	};
	struct attach_request part = *req;
	struct wire_reply reply = { 0 };
	int err;

	if (!order->has_seeds) /* some descriptor has to be there */
		part.file_fd = req->prog_fd;
	add_part(&r, &part);
	r.body[r.body_cnt++] = (struct iovec){ (void *)order, sizeof(*order) };
	err = guardian_exchange(g, &r, &reply);
	if (err)
		take_why(&reply, err, why);
	else
		*ret = reply.tap;
	if (!err)
		*ret_id = r.head.id;
	return err;
}

int guardian_set_tap(struct guardian *g, uint64_t id, uint64_t rate_bytes, struct tap_lost *ret)
{
	struct guardian_request r = {
		.head = { .kind = WIRE_SET_TAP, .id = id, .rate_bytes = rate_bytes }
	};
	struct wire_reply reply;
	int err = guardian_exchange(g, &r, &reply);

	if (!err)
		*ret = reply.lost;
	return err;
}

int guardian_clean(struct guardian *g, const struct attach_request *req)
{
	struct guardian_request r = { .head = { .kind = WIRE_CLEAN } };

	if (!req->site_cnt)
		return 0;
	if (req->site_cnt > WIRE_SITES_CAP)
		return -E2BIG;
	add_part(&r, req);
	return guardian_send_clean(g, &r);
}

int guardian_start_tracer(struct guardian *g, int fd)
{
	struct guardian_request r = { .head = { .kind = WIRE_START_TRACER },
				      .fds = { fd },
				      .fd_cnt = 1 };
	struct wire_reply reply;

	return guardian_exchange(g, &r, &reply);
}

/*
 * Events.
 */

int guardian_open_events(struct guardian *g, size_t *ret_removed_cnt, struct err *why)
{
	struct guardian_request r = { .head = { .kind = WIRE_OPEN_EVENTS } };
	struct wire_reply reply = { .cnt = 0 };
	int err = guardian_exchange(g, &r, &reply);

	*ret_removed_cnt = reply.cnt;
	if (err)
		take_why(&reply, err, why);
	return err;
}

int guardian_new_events(struct guardian *g, const struct attach_request *reqs, size_t req_cnt,
			uint64_t *ret_events)
{
	struct guardian_request r = { .head = { .kind = WIRE_NEW_EVENTS,
						.events_id = guardian_new_number(g) } };
	struct wire_reply reply;
	size_t site_cnt = 0;
	int err;

	for (size_t i = 0; i < req_cnt && i < WIRE_PARTS_CAP; i++) {
		add_part(&r, &reqs[i]);
		site_cnt += reqs[i].site_cnt;
	}
	if (req_cnt > WIRE_PARTS_CAP || site_cnt > WIRE_SITES_CAP)
		return -E2BIG;
	err = guardian_exchange(g, &r, &reply);
	if (!err)
		*ret_events = r.head.events_id;
	return err;
}

static int add_to_events(struct guardian *g, uint64_t events, pid_t tid, uint64_t *ret_id)
{
	struct guardian_request r = { .head = { .kind = WIRE_ADD_TO_EVENTS,
						.id = guardian_new_number(g),
						.events_id = events,
						.pid = tid } };
	struct wire_reply reply;
	int err = guardian_exchange(g, &r, &reply);

	if (!err)
		*ret_id = r.head.id;
	return err;
}

void guardian_free_events(struct guardian *g, uint64_t events)
{
	struct guardian_request r = { .head = { .kind = WIRE_FREE_EVENTS, .events_id = events } };

	if (events)
		(void)guardian_send(g, &r); /* when the guardian is gone, the events are gone */
}

/*
 * Links.
 */

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
			err = attach(links->guardian, &part, &links->ids.data[links->ids.cnt]);
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
		err = add_to_events(links->guardian, events, tid, &links->ids.data[links->ids.cnt]);
	if (!err)
		links->ids.cnt++;
	return err;
}

int held_links_add_tap(struct held_links *links, const struct attach_request *req,
		       const struct tap_order *order, struct tap_result *ret, struct err *why)
{
	int err = vec_reserve(&links->ids, links->ids.cnt + 1);

	if (!err)
		err = tap(links->guardian, req, order, &links->ids.data[links->ids.cnt], ret, why);
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
