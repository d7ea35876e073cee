/* SPDX-License-Identifier: MIT */
/*
 * file_links.c - see file_links.h.
 */
#include "track/file_links.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "guardian/guardian.h"
#include "guardian/held_links.h"
#include "heaptap/abi.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "alloc/file_sampler.h"
#include "track/file_tags.h"
#include "tap/tap.h"
#include "track/files.h"
#include "track/policy.h"
#include "track/tap_orders.h"

struct file_links {
	struct engine *engine;
	struct guardian *guardian;
	const struct track_policy *policy;
	const struct track_file *file;
	uint64_t alloc_events, free_events; /* events of the guardian; 0: none */
	struct tap_news tap_news;
};

int file_links_new(struct engine *e, struct guardian *guardian, const struct track_policy *policy,
		   const struct track_file *file, struct file_links **ret)
{
	struct file_links *fl = calloc(1, sizeof(*fl));

	if (!fl)
		return -ENOMEM;
	fl->engine = e;
	fl->guardian = guardian;
	fl->policy = policy;
	fl->file = file;
	*ret = fl;
	return 0;
}

void file_links_free_events(struct file_links *fl)
{
	guardian_free_events(fl->guardian, fl->alloc_events);
	guardian_free_events(fl->guardian, fl->free_events);
	fl->alloc_events = fl->free_events = 0;
}

void file_links_free(struct file_links *fl)
{
	if (!fl)
		return;
	file_links_free_events(fl);
	free(fl);
}

static bool has_session(const struct file_links *fl)
{
	return engine_mode(fl->engine) == ATTACH_SESSION;
}

bool file_links_has_event(const struct file_links *fl)
{
	return fl->policy->has_events && fl->file->alloc &&
	       !probe_sites_may_throw(fl->policy, has_session(fl), fl->file->alloc);
}

/* Common to all links to a file. */
static struct attach_request request_for(const struct file_links *fl,
					 const struct probe_target *target)
{
	enum attach_mode mode = engine_mode(fl->engine);

	return (struct attach_request){
		.file_fd = fl->file->fd,
		.pid = target->pid && mode == ATTACH_PERF ? target->live_tid : target->pid,
		.mode = mode,
		.kind = ATTACH_ENTRY,
	};
}

static int link_frees(const struct file_links *fl, enum sharing sharing,
		      const struct probe_target *target, struct held_links *links)
{
	struct attach_request req = request_for(fl, target);
	struct attach_site *sites;
	int err = probe_sites_of_kind(fl->policy, has_session(fl), fl->file, sharing, true, &req,
				      &sites);

	if (err)
		return err;
	req.prog_fd = engine_prog_fd(fl->engine, ENGINE_FREE);
	err = held_links_add(links, &req);
	free(sites);
	return err;
}

static int link_allocs(const struct file_links *fl, enum sharing sharing,
		       const struct probe_target *target, struct held_links *links)
{
	struct attach_request req = request_for(fl, target), ret_req;
	struct attach_site *sites;
	int err = probe_sites_of_kind(fl->policy, has_session(fl), fl->file, sharing, false, &req,
				      &sites);

	if (err)
		return err;
	req.prog_fd = engine_prog_fd(fl->engine, ENGINE_ALLOC);
	if (req.mode == ATTACH_SESSION) {
		req.kind = ATTACH_ENTRY_DECIDES;
	} else { /* Returns first: an entry without its return would wait for nothing. */
		ret_req = req;
		ret_req.kind = ATTACH_RETURN;
		ret_req.prog_fd = engine_prog_fd(fl->engine, ENGINE_ALLOC_RETURN);
		err = held_links_add(links, &ret_req);
	}
	if (!err)
		err = held_links_add(links, &req);
	free(sites);
	return err;
}

/* Split *all: sites with this cookie go to *apart, behind *rest. In *rest, frees of a realloc still
 * come before what only allocates. */
static void set_apart(const struct attach_request *all, struct attach_site *sites, uint64_t cookie,
		      struct attach_request *rest, struct attach_request *apart)
{
	size_t rest_cnt = all->site_cnt;

	for (size_t i = all->site_cnt; i-- > 0;) {
		struct attach_site site = sites[i];

		if (HT_COOKIE_SITE(site.cookie) != cookie)
			continue;
		sites[i] = sites[--rest_cnt];
		sites[rest_cnt] = site;
	}
	*rest = *apart = *all;
	rest->site_cnt = rest_cnt;
	apart->sites = sites + rest_cnt;
	apart->site_cnt = all->site_cnt - rest_cnt;
}

static int make_free_events(struct file_links *fl)
{
	struct attach_request all = { .file_fd = fl->file->fd, .kind = ATTACH_ENTRY }, req[2];
	struct attach_site *sites;
	int err = probe_sites_of_kind(fl->policy, has_session(fl), fl->file, SHARING_EVENT, true,
				      &all, &sites);

	if (err)
		return err;
	set_apart(&all, sites, HT_COOKIE_FREE, &req[0], &req[1]);
	req[0].prog_fd = engine_prog_fd(fl->engine, ENGINE_EVENT_FREE);
	req[1].prog_fd = engine_prog_fd(fl->engine, ENGINE_EVENT_FREE_PTR);
	err = guardian_new_events(fl->guardian, req, 2, &fl->free_events);
	free(sites);
	return err;
}

static int make_alloc_events(struct file_links *fl)
{
	struct attach_request all = { .file_fd = fl->file->fd, .kind = ATTACH_ENTRY }, req[3];
	struct attach_site *sites;
	int err = probe_sites_of_kind(fl->policy, has_session(fl), fl->file, SHARING_EVENT, false,
				      &all, &sites);

	if (err)
		return err;
	set_apart(&all, sites, HT_COOKIE_MALLOC, &req[1], &req[2]);
	req[0] = all;
	req[0].kind = ATTACH_RETURN;
	req[0].prog_fd = engine_prog_fd(fl->engine, ENGINE_EVENT_ALLOC_RETURN);
	req[1].prog_fd = engine_prog_fd(fl->engine, ENGINE_EVENT_ALLOC);
	req[2].prog_fd = engine_prog_fd(fl->engine, ENGINE_EVENT_MALLOC);
	err = guardian_new_events(fl->guardian, req, 3, &fl->alloc_events);
	free(sites);
	return err;
}

/* Make the events of a file. No process is on them yet. */
static int make_events(struct file_links *fl)
{
	int err = make_free_events(fl);

	if (!err)
		err = make_alloc_events(fl);
	if (err)
		file_links_free_events(fl);
	return err;
}

static int add_to_events(struct file_links *fl, bool frees, const struct probe_target *target,
			 struct held_links *links)
{
	int err = fl->alloc_events ? 0 : make_events(fl);

	return err ? err :
		     held_links_add_to_events(links, frees ? fl->free_events : fl->alloc_events,
					      target->live_tid);
}

static int link_tags(const struct file_links *fl, const struct probe_target *target,
		     struct held_links *links)
{
	struct attach_request req = request_for(fl, target);
	const struct file_tags *tags = fl->file->tags;
	int err;

	req.prog_fd = engine_prog_fd(fl->engine, ENGINE_TASK_EXIT);
	req.sites = tags->task_exits.data;
	req.site_cnt = tags->task_exits.cnt;
	err = held_links_add(links, &req);
	if (err)
		return err;
	req.prog_fd = engine_prog_fd(fl->engine, ENGINE_TAG_READY);
	req.sites = tags->readies.data;
	req.site_cnt = tags->readies.cnt;
	return held_links_add(links, &req);
}

static int sampler_sites(const struct file_links *fl, struct attach_site *ret)
{
	const struct file_sampler *s = fl->file->sampler;
	uint32_t idx;
	int err = 0;

	for (size_t i = 0; i < s->sites.cnt && !err; i++) {
		const struct sampler_site *site = &s->sites.data[i];

		err = engine_sampled_site(fl->engine, &site->where, &idx);
		ret[i] = (struct attach_site){
			site->off,
			HT_COOKIE_SAMPLED(site->is_free ? HT_OP_SAMPLED_FREE : HT_OP_SAMPLED, idx,
					  0),
			site->semaphore_off,
		};
	}
	return err;
}

static int link_sampler(const struct file_links *fl, const struct probe_target *target,
			struct held_links *links)
{
	struct attach_request req = request_for(fl, target);
	size_t cnt = fl->file->sampler->sites.cnt;
	struct attach_site *sites = calloc(cnt + 1, sizeof(*sites));
	int err;

	if (!sites)
		return -ENOMEM;
	req.prog_fd = engine_prog_fd(fl->engine, ENGINE_SAMPLED);
	req.sites = sites;
	req.site_cnt = cnt;
	err = req.prog_fd < 0 ? req.prog_fd : sampler_sites(fl, sites);
	if (!err)
		err = held_links_add(links, &req);
	free(sites);
	return err;
}

/* What the stub's registers hold where it reports: see tap/stub/entry.S. */
#define REG_OPERAND(reg)                                                                      \
	{                                                                                     \
		.kind = HT_OPERAND_REG, .bytes = 8, .base_off = offsetof(struct pt_regs, reg) \
	}
static const struct ht_sampled_site tap_free_site = { .ptr = REG_OPERAND(rdi) };

static int tap_sites(const struct file_links *fl, pid_t owner, const struct tap_order *order,
		     struct attach_site *ret)
{
	const struct tap_header *h = tap_code_header(&order->code);
	const struct ht_sampled_site alloc_site = {
		.ptr = REG_OPERAND(rdi),
		.size = REG_OPERAND(rsi),
		.weight = REG_OPERAND(rdx),
		.entry = REG_OPERAND(rcx),
		.stack_bytes = h->alloc_frame_bytes,
	};
	uint32_t alloc_idx, free_idx;
	int err = engine_sampled_site(fl->engine, &alloc_site, &alloc_idx);

	if (!err)
		err = engine_sampled_site(fl->engine, &tap_free_site, &free_idx);
	if (err)
		return err;
	ret[0] = (struct attach_site){ h->free_nop_off,
				       HT_COOKIE_SAMPLED(HT_OP_SAMPLED_FREE, free_idx, owner), 0 };
	ret[1] = (struct attach_site){ h->alloc_nop_off,
				       HT_COOKIE_SAMPLED(HT_OP_SAMPLED, alloc_idx, owner), 0 };
	return 0;
}

static int try_tap(struct file_links *fl, const struct probe_target *target,
		   const struct tap_order *order, struct held_links *links)
{
	struct attach_request req = request_for(fl, target);
	struct tap_news *news = &fl->tap_news;
	struct attach_site sites[2];
	struct tap_result result = { 0 };
	int err = tap_sites(fl, target->pid, order, sites);

	/* Of all processes: others may be in its memory. BPF leaves out those that are not. */
	req.pid = 0;
	req.prog_fd = engine_prog_fd(fl->engine, ENGINE_SAMPLED);
	req.sites = sites;
	req.site_cnt = 2;
	if (!err && req.prog_fd < 0)
		err = req.prog_fd;
	if (!err)
		err = held_links_add_tap(links, &req, order, &result, &news->why);
	if (result.stopped_ns) {
		news->stopped_ns = result.stopped_ns;
		news->thread_cnt = result.thread_cnt;
	}
	return err;
}

static int tap_copy(struct file_links *fl, const struct probe_target *target, unsigned int copy,
		    struct tap_order *order, struct held_links *links)
{
	struct tap_news *news = &fl->tap_news;
	int err = -EEXIST;

	for (unsigned int nth = 0; err == -EEXIST; nth++) {
		news->why.text[0] = '\0';
		err = tap_order_make(fl->file, target->pid, target->live_tid,
				     fl->policy->tap_rate_bytes, copy, nth, order, &news->why);
		if (!err)
			err = try_tap(fl, target, order, links);
	}
	return err;
}

/* Tap all copies of the file in the process; those that are tapped stay as they are. */
static int link_tap(struct file_links *fl, const struct probe_target *target,
		    struct held_links *links)
{
	struct tap_order *order = malloc(sizeof(*order));
	int err = order ? 0 : -ENOMEM;

	for (unsigned int copy = 0; !err; copy++) {
		err = tap_copy(fl, target, copy, order, links);
		if (err == -EALREADY)
			err = 0;
	}
	free(order);
	return err == -ENODATA ? 0 : err;
}

const struct tap_news *file_links_tap_news(const struct file_links *fl)
{
	return &fl->tap_news;
}

int file_links_add(struct file_links *fl, enum probe_kind kind, enum sharing sharing,
		   const struct probe_target *target, struct held_links *links)
{
	if (kind == PROBE_TAGS)
		return link_tags(fl, target, links);
	if (kind == PROBE_SAMPLER)
		return link_sampler(fl, target, links);
	if (kind == PROBE_TAP)
		return link_tap(fl, target, links);
	if (sharing == SHARING_EVENT)
		return add_to_events(fl, kind == PROBE_FREES, target, links);
	return kind == PROBE_FREES ? link_frees(fl, sharing, target, links) :
				     link_allocs(fl, sharing, target, links);
}

int file_links_clean_children(const struct file_links *fl, const struct probe_target *target)
{
	struct attach_request req = request_for(fl, target);
	struct attach_site *sites;
	int err = probe_sites_idle(fl->policy, has_session(fl), fl->file, &req, &sites);

	if (err)
		return err;
	req.mode = ATTACH_MULTI;
	req.prog_fd = engine_prog_fd(fl->engine, ENGINE_FREE);
	err = guardian_clean(fl->guardian, &req);
	free(sites);
	return err;
}
