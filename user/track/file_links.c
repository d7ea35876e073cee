/* SPDX-License-Identifier: MIT */
/*
 * file_links.c - see probes_priv.h.
 *
 * An attachment goes from the first site to the last. Sites that also free (realloc) come before
 * those that only allocate, so that no allocation is seen whose free could be missed.
 */
#include "track/probes_priv.h"

#include <asm/ptrace.h>

#include "alloc/file_sampler.h"
#include "guardian/guardian.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "tap/tap.h"
#include "track/file.h"
#include "track/file_content.h"
#include "track/tap_orders.h"

/* Each attached or detached link delays every fork of the machine for a moment; in a storm of forks
 * some 25 cleanings a second do. */
#define CLEANINGS_CAP 3

void file_links_free_events(struct file_probes *fp)
{
	guardian_free_events(fp->all->guardian, fp->alloc_events);
	guardian_free_events(fp->all->guardian, fp->free_events);
	fp->alloc_events = fp->free_events = 0;
}

/*
 * Sites.
 */

static bool is_left_alone(const struct file_probes *fp, const struct alloc_site *site)
{
	return alloc_site_is_left_alone(site, &fp->all->policy->alloc,
					engine_mode(fp->all->engine) == ATTACH_SESSION);
}

/* Does some probed site throw? Then shared events cannot be used, because their return probes always fire, too. */
static bool may_throw(const struct file_probes *fp)
{
	const struct alloc_site *site;

	vec_each(&fp->file->alloc->sites, site)
		if ((HT_COOKIE_FLAGS(site->cookie) & HT_SITE_THROWS) && !is_left_alone(fp, site))
			return !fp->all->policy->alloc.probe_throwing;
	return false;
}

bool file_links_has_event(const struct file_probes *fp)
{
	return fp->all->policy->has_events && fp->file->alloc && !may_throw(fp);
}

static size_t collect_sites(const struct file_probes *fp, enum sharing sharing, bool frees,
			    struct attach_site *ret)
{
	const uint64_t where = HT_COOKIE_AT(fp->file->id, sharing);
	const struct alloc_site *site;
	size_t cnt = 0;

	for (int only_allocates = 0; only_allocates < 2; only_allocates++) {
		vec_each(&fp->file->alloc->sites, site) {
			if ((site->row->op == HT_OP_FREE) == frees && !is_left_alone(fp, site) &&
			    (site->row->op == HT_OP_ALLOC) == only_allocates)
				ret[cnt++] = (struct attach_site){ site->probe_off,
								   site->cookie | where, 0 };
		}
	}
	return cnt;
}

/* Put the sites of the file's allocator that free, or those that allocate, into req. The caller frees
 * *ret after the request. -ENOMEM. */
static int sites_of_kind(const struct file_probes *fp, enum sharing sharing, bool frees,
			 struct attach_request *req, struct attach_site **ret)
{
	struct attach_site *sites = calloc(fp->file->alloc->sites.cnt + 1, sizeof(*sites));

	if (!sites)
		return -ENOMEM;
	req->sites = sites;
	req->site_cnt = collect_sites(fp, sharing, frees, sites);
	*ret = sites;
	return 0;
}

/* All sites of the file, tags included, with cookie 0: their hits do nothing. Otherwise as above. */
static int idle_sites(const struct file_probes *fp, struct attach_request *req,
		      struct attach_site **ret)
{
	const struct track_file *file = fp->file;
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
		cnt = collect_sites(fp, SHARING_OWN, true, sites);
		cnt += collect_sites(fp, SHARING_OWN, false, sites + cnt);
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

/*
 * Links and events.
 */

/* Common to all links to a file. */
static struct attach_request request_for(const struct file_probes *fp, const struct file_member *m)
{
	enum attach_mode mode = engine_mode(fp->all->engine);

	return (struct attach_request){
		.file_fd = fp->file->fd,
		.pid = m->pid && mode == ATTACH_PERF ? m->live_tid : m->pid,
		.mode = mode,
		.kind = ATTACH_ENTRY,
	};
}

static int link_frees(const struct file_probes *fp, enum sharing sharing,
		      const struct file_member *m, struct held_links *links)
{
	struct attach_request req = request_for(fp, m);
	struct attach_site *sites;
	int err = sites_of_kind(fp, sharing, true, &req, &sites);

	if (err)
		return err;
	req.prog_fd = engine_prog_fd(fp->all->engine, ENGINE_FREE);
	err = held_links_add(links, &req);
	free(sites);
	return err;
}

static int link_allocs(const struct file_probes *fp, enum sharing sharing,
		       const struct file_member *m, struct held_links *links)
{
	struct attach_request req = request_for(fp, m), ret_req;
	struct attach_site *sites;
	int err = sites_of_kind(fp, sharing, false, &req, &sites);

	if (err)
		return err;
	req.prog_fd = engine_prog_fd(fp->all->engine, ENGINE_ALLOC);
	if (req.mode == ATTACH_SESSION) {
		req.kind = ATTACH_ENTRY_DECIDES;
	} else { /* Returns first: an entry without its return would wait for nothing. */
		ret_req = req;
		ret_req.kind = ATTACH_RETURN;
		ret_req.prog_fd = engine_prog_fd(fp->all->engine, ENGINE_ALLOC_RETURN);
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

static int make_free_events(struct file_probes *fp)
{
	struct attach_request all = { .file_fd = fp->file->fd, .kind = ATTACH_ENTRY }, req[2];
	struct attach_site *sites;
	int err = sites_of_kind(fp, SHARING_EVENT, true, &all, &sites);

	if (err)
		return err;
	set_apart(&all, sites, HT_COOKIE_FREE, &req[0], &req[1]);
	req[0].prog_fd = engine_prog_fd(fp->all->engine, ENGINE_EVENT_FREE);
	req[1].prog_fd = engine_prog_fd(fp->all->engine, ENGINE_EVENT_FREE_PTR);
	err = guardian_new_events(fp->all->guardian, req, 2, &fp->free_events);
	free(sites);
	return err;
}

static int make_alloc_events(struct file_probes *fp)
{
	struct attach_request all = { .file_fd = fp->file->fd, .kind = ATTACH_ENTRY }, req[3];
	struct attach_site *sites;
	int err = sites_of_kind(fp, SHARING_EVENT, false, &all, &sites);

	if (err)
		return err;
	set_apart(&all, sites, HT_COOKIE_MALLOC, &req[1], &req[2]);
	req[0] = all;
	req[0].kind = ATTACH_RETURN;
	req[0].prog_fd = engine_prog_fd(fp->all->engine, ENGINE_EVENT_ALLOC_RETURN);
	req[1].prog_fd = engine_prog_fd(fp->all->engine, ENGINE_EVENT_ALLOC);
	req[2].prog_fd = engine_prog_fd(fp->all->engine, ENGINE_EVENT_MALLOC);
	err = guardian_new_events(fp->all->guardian, req, 3, &fp->alloc_events);
	free(sites);
	return err;
}

/* Make the events of a file. No process is on them yet. */
static int make_events(struct file_probes *fp)
{
	int err = make_free_events(fp);

	if (!err)
		err = make_alloc_events(fp);
	if (err)
		file_links_free_events(fp);
	return err;
}

static int add_to_events(struct file_probes *fp, bool frees, const struct file_member *m,
			 struct held_links *links)
{
	int err = fp->alloc_events ? 0 : make_events(fp);

	return err ? err :
		     held_links_add_to_events(links, frees ? fp->free_events : fp->alloc_events,
					      m->live_tid);
}

static int link_tags(const struct file_probes *fp, const struct file_member *m,
		     struct held_links *links)
{
	struct attach_request req = request_for(fp, m);
	const struct file_tags *tags = fp->file->tags;
	int err;

	req.prog_fd = engine_prog_fd(fp->all->engine, ENGINE_TASK_EXIT);
	req.sites = tags->task_exits.data;
	req.site_cnt = tags->task_exits.cnt;
	err = held_links_add(links, &req);
	if (err)
		return err;
	req.prog_fd = engine_prog_fd(fp->all->engine, ENGINE_TAG_READY);
	req.sites = tags->readies.data;
	req.site_cnt = tags->readies.cnt;
	return held_links_add(links, &req);
}

static int sampler_sites(const struct file_probes *fp, struct attach_site *ret)
{
	const struct file_sampler *s = fp->file->sampler;
	uint32_t idx;
	int err = 0;

	for (size_t i = 0; i < s->sites.cnt && !err; i++) {
		const struct sampler_site *site = &s->sites.data[i];

		err = engine_sampled_site(fp->all->engine, &site->where, &idx);
		ret[i] = (struct attach_site){
			site->off,
			HT_COOKIE_SAMPLED(site->is_free ? HT_OP_SAMPLED_FREE : HT_OP_SAMPLED, idx,
					  0),
			site->semaphore_off,
		};
	}
	return err;
}

static int link_sampler(const struct file_probes *fp, const struct file_member *m,
			struct held_links *links)
{
	struct attach_request req = request_for(fp, m);
	size_t cnt = fp->file->sampler->sites.cnt;
	struct attach_site *sites = calloc(cnt + 1, sizeof(*sites));
	int err;

	if (!sites)
		return -ENOMEM;
	req.prog_fd = engine_prog_fd(fp->all->engine, ENGINE_SAMPLED);
	req.sites = sites;
	req.site_cnt = cnt;
	err = req.prog_fd < 0 ? req.prog_fd : sampler_sites(fp, sites);
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

static int tap_sites(const struct file_probes *fp, pid_t owner, const struct tap_order *order,
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
	int err = engine_sampled_site(fp->all->engine, &alloc_site, &alloc_idx);

	if (!err)
		err = engine_sampled_site(fp->all->engine, &tap_free_site, &free_idx);
	if (err)
		return err;
	ret[0] = (struct attach_site){ h->free_nop_off,
				       HT_COOKIE_SAMPLED(HT_OP_SAMPLED_FREE, free_idx, owner), 0 };
	ret[1] = (struct attach_site){ h->alloc_nop_off,
				       HT_COOKIE_SAMPLED(HT_OP_SAMPLED, alloc_idx, owner), 0 };
	return 0;
}

static int try_tap(struct file_probes *fp, const struct file_member *m,
		   const struct tap_order *order, struct held_links *links)
{
	struct attach_request req = request_for(fp, m);
	struct tap_news *news = &fp->tap_news;
	struct attach_site sites[2];
	struct tap_result result = { 0 };
	int err = tap_sites(fp, m->pid, order, sites);

	/* Of all processes: others may be in its memory. BPF leaves out those that are not. */
	req.pid = 0;
	req.prog_fd = engine_prog_fd(fp->all->engine, ENGINE_SAMPLED);
	req.sites = sites;
	req.site_cnt = 2;
	req.file_fd = fp->all->seeds_fd;
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

static int tap_copy(struct file_probes *fp, const struct file_member *m, unsigned int copy,
		    struct tap_order *order, struct held_links *links)
{
	struct tap_news *news = &fp->tap_news;
	int err = -EEXIST;

	for (unsigned int nth = 0; err == -EEXIST; nth++) {
		news->why.text[0] = '\0';
		err = tap_order_make(fp->all->policy->reader, fp->file, m->pid, m->live_tid,
				     fp->all->policy->tap_rate_bytes, copy, nth, order, &news->why);
		order->has_seeds = fp->all->seeds_fd >= 0;
		if (!err)
			err = try_tap(fp, m, order, links);
	}
	return err;
}

/* Tap all copies of the file in the process; those that are tapped stay as they are. */
static int link_tap(struct file_probes *fp, const struct file_member *m, struct held_links *links)
{
	struct tap_order *order = malloc(sizeof(*order));
	int err = order ? 0 : -ENOMEM;

	for (unsigned int copy = 0; !err; copy++) {
		err = tap_copy(fp, m, copy, order, links);
		if (err == -EALREADY)
			err = 0;
	}
	free(order);
	return err == -ENODATA ? 0 : err;
}

int file_links_add(struct file_probes *fp, enum probe_kind kind, enum sharing sharing,
		   const struct file_member *m, struct held_links *links)
{
	if (kind == PROBE_TAGS)
		return link_tags(fp, m, links);
	if (kind == PROBE_SAMPLER)
		return link_sampler(fp, m, links);
	if (kind == PROBE_TAP)
		return link_tap(fp, m, links);
	if (sharing == SHARING_EVENT)
		return add_to_events(fp, kind == PROBE_FREES, m, links);
	return kind == PROBE_FREES ? link_frees(fp, sharing, m, links) :
				     link_allocs(fp, sharing, m, links);
}

static int clean_children_of(const struct file_probes *fp, const struct file_member *m)
{
	struct attach_request req = request_for(fp, m);
	struct attach_site *sites;
	int err = idle_sites(fp, &req, &sites);

	if (err)
		return err;
	req.mode = ATTACH_MULTI;
	req.prog_fd = engine_prog_fd(fp->all->engine, ENGINE_FREE);
	err = guardian_clean(fp->all->guardian, &req);
	free(sites);
	return err;
}

bool probes_clean_children(struct probes *p, pid_t pid)
{
	struct file_probes *fp;

	if (engine_mode(p->engine) == ATTACH_PERF)
		return true;
	if (guardian_cleaning_cnt(p->guardian) >= CLEANINGS_CAP)
		return false;
	vec_each(&p->files, fp) {
		const struct file_member *m =
			fp->sharing == SHARING_OWN ? file_probes_find(fp, pid) : NULL;

		if (m && clean_children_of(fp, m))
			break;
	}
	return true;
}
