/* SPDX-License-Identifier: MIT */
/*
 * probes.c - see probes.h.
 *
 * Each probed file has its probes (file_probes.h) and their sharing (file_sharing.c). This module
 * handles processes that come, keep more or fewer probes, and go.
 */
#include "track/probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"
#include "guardian/guardian.h"
#include "guardian/held_links.h"
#include "kernel/engine.h"
#include "alloc/allocators.h"
#include "alloc/file_sampler.h"
#include "tap/tap.h"
#include "track/file_probes.h"
#include "track/probes_priv.h"
#include "track/files.h"
#include "track/leftovers.h"
#include "track/policy.h"
#include "track/probe_sites.h"

/* Each attached or detached link delays every fork of the machine for a moment; in a storm of forks
 * some 25 cleanings a second do. */
#define CLEANINGS_CAP 3

const char *const tap_wish_names[] = { "no", "yes", "only", NULL };
const char *const probes_source_names[] = { "auto", "probes", "usdt", NULL };

struct probed_file {
	const struct track_file *file;
	struct file_probes *probes;
	struct file_sharing *sharing;
};

struct probes {
	struct engine *engine;
	struct guardian *guardian;
	const struct track_policy *policy;
	struct kept_table *kept;
	VEC(struct probed_file) files;
	struct probes_counts counts;
};

int probes_new(struct engine *e, struct guardian *guardian, const struct track_policy *policy,
	       struct probes **ret)
{
	struct probes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->engine = e;
	p->guardian = guardian;
	p->policy = policy;
	if (kept_table_new(policy_is_shared(policy), &p->kept)) {
		free(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

const struct probes_counts *probes_counts(const struct probes *p)
{
	return &p->counts;
}

/*
 * Files.
 */

static void stop_file(struct probes *p, struct probed_file *pf)
{
	file_probes_free(pf->probes);
	file_sharing_free(pf->sharing);
	engine_set_sharings(p->engine, pf->file->id, 0);
}

void probes_stop_allocs(struct probes *p)
{
	struct held_links *all = NULL;
	struct probed_file *pf;

	if (held_links_new(p->guardian, &all))
		return;
	vec_each(&p->files, pf) {
		file_probes_gather_allocs(pf->probes, all);
		file_sharing_halt(pf->sharing);
	}
	held_links_free(all);
	guardian_wait_all_out(p->guardian); /* also what was let go before */
}

void probes_stop(struct probes *p)
{
	struct probed_file *pf;

	probes_stop_allocs(p);
	vec_each(&p->files, pf)
		stop_file(p, pf);
	vec_release(&p->files);
	guardian_wait_all_out(p->guardian);
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	probes_stop(p);
	kept_table_free(p->kept);
	free(p);
}

bool probes_use_sampler(const struct probes *p, const struct track_file *file)
{
	return file->sampler && !file->sampler->problem[0] && p->policy->source != SOURCE_PROBES &&
	       (file->sampler->is_whole || p->policy->source == SOURCE_USDT);
}

static void count_sites(struct probes *p, const struct track_file *file)
{
	const bool has_session = engine_mode(p->engine) == ATTACH_SESSION;
	const struct alloc_site *site;

	if (probes_use_sampler(p, file))
		p->counts.site_cnt += file->sampler->sites.cnt;
	if (!file->alloc || p->policy->source == SOURCE_USDT)
		return;
	vec_each(&file->alloc->sites, site) {
		if (alloc_site_is_left_alone(site, &p->policy->alloc, has_session)) {
			p->counts.throwing_cnt++;
			continue;
		}
		p->counts.site_cnt++;
		p->counts.stepped_cnt += !site->placement.is_emulated;
	}
}

static void count_failure(struct probes *p, const struct track_file *file, int err)
{
	p->counts.failed_cnt += file->alloc ? file->alloc->sites.cnt : 1;
	if (!p->counts.failed_err)
		p->counts.failed_err = err;
}

static struct probed_file *find_file(const struct probes *p, const struct track_file *file)
{
	struct probed_file *pf;

	vec_each(&p->files, pf)
		if (pf->file == file)
			return pf;
	return NULL;
}

static struct probed_file *add_file(struct probes *p, const struct track_file *file)
{
	struct probed_file pf = { .file = file };

	if (file_probes_new(p->engine, p->guardian, p->policy, p->kept, file, &pf.probes))
		return NULL;
	if (file_sharing_new(p->engine, p->policy, pf.probes, &pf.sharing) ||
	    vec_push(&p->files, pf)) {
		file_sharing_free(pf.sharing);
		file_probes_free(pf.probes);
		return NULL;
	}
	if (file_sharing_now(pf.sharing) == SHARING_ALL)
		file_probes_share_tags(pf.probes);
	if (probes_use_sampler(p, file))
		file_probes_use_sampler(pf.probes);
	if (p->policy->source == SOURCE_USDT)
		file_probes_leave_allocator(pf.probes);
	return &p->files.data[p->files.cnt - 1];
}

void probes_forget_file(struct probes *p, const struct track_file *file)
{
	struct probed_file *pf = find_file(p, file);

	if (!pf)
		return;
	stop_file(p, pf);
	*pf = p->files.data[--p->files.cnt];
}

/*
 * Moves between sharings.
 */

void probes_work(struct probes *p)
{
	struct probed_file *pf;

	vec_each(&p->files, pf)
		file_sharing_work(pf->sharing);
}

bool probes_are_moving(const struct probes *p)
{
	const struct probed_file *pf;

	vec_each(&p->files, pf)
		if (file_sharing_is_moving(pf->sharing))
			return true;
	return false;
}

void probes_plan_anew(struct probes *p)
{
	struct probed_file *pf;

	vec_each(&p->files, pf)
		file_sharing_note_change(pf->sharing);
}

static bool shares_event(const struct probed_file *pf)
{
	return !file_sharing_is_moving(pf->sharing) &&
	       file_sharing_now(pf->sharing) == SHARING_EVENT && pf->file->alloc &&
	       file_probes_cnt(pf->probes) > 1;
}

bool probes_share_events(const struct probes *p)
{
	const struct probed_file *pf;

	vec_each(&p->files, pf)
		if (shares_event(pf))
			return true;
	return false;
}

void probes_order(struct probes *p, const struct probes_activity *a)
{
	struct probed_file *pf;

	vec_each(&p->files, pf)
		if (shares_event(pf)) /* an ended process goes soon; others stay in place */
			(void)file_probes_order(pf->probes, a, p->policy->costs.hit_ns);
}

/*
 * Processes.
 */

/* Bring m to what it keeps, for each sharing that the file's probes have. is_sampled: it samples itself. */
static int keep(struct probed_file *pf, struct file_member *m, enum probes_kept kept,
		bool is_sampled, struct held_links *gone)
{
	int err = file_probes_sync_tags(pf->probes, m, kept, gone);

	if (!err)
		err = file_probes_sync_sampler(pf->probes, m, kept, gone);
	if (!err)
		err = file_probes_sync_tap(pf->probes, m, kept, gone);
	if (is_sampled)
		kept = PROBES_NONE;
	if (!err && file_sharing_is_moving(pf->sharing))
		err = file_probes_sync_sharing(pf->probes, m, file_sharing_old(pf->sharing), kept,
					       gone);
	return err ? err :
		     file_probes_sync_sharing(pf->probes, m, file_sharing_now(pf->sharing), kept,
					      gone);
}

void probes_pause_attaching(struct probes *p, bool pause)
{
	kept_table_hold(p->kept, pause);
}

/* Where the probes are for everyone, a process is exempted by moving the file to another sharing. */
static int apply_kept_to_file(struct probes *p, struct probed_file *pf, struct file_member *m,
			      pid_t pid, struct held_links *gone)
{
	enum probes_kept kept = kept_table_of(p->kept, pid);
	bool is_sampled = kept_table_allocator_of(p->kept, pid) != kept;
	int err;

	file_sharing_note_change(pf->sharing);
	if (policy_is_shared(p->policy))
		return keep(pf, m, kept, false, gone);
	if (file_sharing_now(pf->sharing) == SHARING_ALL ||
	    (file_sharing_is_moving(pf->sharing) && file_sharing_old(pf->sharing) == SHARING_ALL)) {
		if (file_probes_shares_tags(pf->probes))
			return 0;
		err = file_probes_sync_tags(pf->probes, m, kept, gone);
		if (!err)
			err = file_probes_sync_sampler(pf->probes, m, kept, gone);
		return err ? err : file_probes_sync_tap(pf->probes, m, kept, gone);
	}
	return keep(pf, m, kept, is_sampled, gone);
}

/* The member that stands for the process. Shared probes: the one for all, whether the process maps
 * the file or not. NULL: no probes of the file can be in. */
static struct file_member *find_member(struct probes *p, struct probed_file *pf, pid_t pid,
				       pid_t live_tid)
{
	struct file_member *m;

	if (policy_is_shared(p->policy)) {
		m = file_probes_everyone(pf->probes);
		return file_member_err(m) ? NULL : m;
	}
	m = file_probes_find(pf->probes, pid);
	if (!m || file_member_err(m))
		return NULL;
	file_member_set_thread(m, live_tid);
	return m;
}

/* Apply the changed table of kept probes. */
static int apply_kept(struct probes *p, pid_t pid, pid_t live_tid, uint64_t *ret_ticket)
{
	struct held_links *gone = NULL;
	struct probed_file *pf;
	int err = held_links_new(p->guardian, &gone);

	vec_each(&p->files, pf) {
		struct file_member *m = find_member(p, pf, pid, live_tid);

		if (!err && m)
			err = apply_kept_to_file(p, pf, m, pid, gone);
	}
	*ret_ticket = held_links_let_go(gone);
	return err;
}

int probes_keep(struct probes *p, pid_t pid, pid_t live_tid, enum probes_kept kept,
		uint64_t *ret_ticket)
{
	int err = kept_table_set(p->kept, pid, kept);

	*ret_ticket = 0;
	return err ? err : apply_kept(p, pid, live_tid, ret_ticket);
}

int probes_set_sampled(struct probes *p, pid_t pid, pid_t live_tid, bool is_sampled)
{
	uint64_t ticket;
	int err = kept_table_set_sampled(p->kept, pid, is_sampled);

	return err || policy_is_shared(p->policy) ? err : apply_kept(p, pid, live_tid, &ticket);
}

int probes_tap(struct probes *p, const struct track_file *file, pid_t pid, bool has_new_maps,
	       const struct tap_news **ret_news)
{
	struct probed_file *pf = find_file(p, file);
	struct file_member *m = pf ? file_probes_find(pf->probes, pid) : NULL;

	*ret_news = NULL;
	if (!m)
		return -ENOENT;
	if (file_member_is_tapped(m) && !has_new_maps)
		return 0;
	*ret_news = file_probes_tap_news(pf->probes);
	if (file_member_is_tapped(m))
		return file_probes_tap_copies(pf->probes, m);
	return file_probes_tap(pf->probes, m, kept_table_of(p->kept, pid));
}

void probes_untap(struct probes *p, pid_t pid)
{
	struct probed_file *pf;
	struct file_member *m;

	vec_each(&p->files, pf) {
		m = file_probes_find(pf->probes, pid);
		if (m)
			file_probes_untap(m);
	}
}

void probes_set_taps(const struct probes *p, pid_t pid, uint64_t rate_bytes, struct tap_lost *ret)
{
	const struct probed_file *pf;

	*ret = (struct tap_lost){ 0 };
	vec_each(&p->files, pf) {
		const struct file_member *m = file_probes_find(pf->probes, pid);
		struct tap_lost lost;

		if (!m || file_member_set_tap(m, rate_bytes, &lost))
			continue;
		ret->dropped_cnt += lost.dropped_cnt;
		ret->failed_cnt += lost.failed_cnt;
	}
}

/* Events are bound to a thread, which may end before the process. */
static void follow_thread(struct probes *p, struct probed_file *pf, struct file_member *m,
			  pid_t pid, pid_t live_tid)
{
	int err;

	if (!file_member_set_thread(m, live_tid) ||
	    file_sharing_now(pf->sharing) != SHARING_EVENT || !pf->file->alloc)
		return;
	file_probes_stop_member(m, SHARING_EVENT);
	err = file_probes_sync_sharing(pf->probes, m, SHARING_EVENT,
				       kept_table_allocator_of(p->kept, pid), NULL);
	if (err)
		count_failure(p, pf->file, err);
}

/* A file that cannot be probed must not end the recording of the others. Its member has no links,
 * so that attaching is not retried, and counted, at every refresh. */
int probes_add(struct probes *p, const struct track_file *file, pid_t pid, pid_t live_tid)
{
	struct probed_file *pf;
	struct file_member *known;
	bool is_new;
	int err;

	if (!file->alloc && !file->tags && !probes_use_sampler(p, file))
		return 0;
	pf = find_file(p, file);
	known = pf ? file_probes_find(pf->probes, pid) : NULL;
	if (known) {
		follow_thread(p, pf, known, pid, live_tid);
		return 0;
	}
	if (pf)
		file_sharing_plan(pf->sharing, file_probes_cnt(pf->probes) + 1);
	else
		pf = add_file(p, file);
	err = pf ? file_probes_reserve(pf->probes) : -ENOMEM;
	if (err)
		return err;
	err = file_probes_add(pf->probes, pid, live_tid, file_sharing_now(pf->sharing), &is_new);
	if (is_new)
		count_sites(p, file);
	if (err)
		count_failure(p, file, err);
	return err == -ENOMEM ? err : 0;
}

uint64_t probes_seen_ns(const struct probes *p, const struct track_file *file, pid_t pid)
{
	const struct probed_file *pf = find_file(p, file);
	const struct file_member *m = pf ? file_probes_find(pf->probes, pid) : NULL;

	return m ? file_member_seen_ns(m) : 0;
}

int probes_want_of_files(const struct probes *p, pid_t pid)
{
	const struct probed_file *pf;

	vec_each(&p->files, pf) {
		const struct file_member *m = file_probes_find(pf->probes, pid);
		int err = m ? file_member_err(m) : 0;

		if (err == -EMFILE || err == -ENFILE)
			return err;
	}
	return 0;
}

void probes_del_process(struct probes *p, pid_t pid, bool has_ended)
{
	kept_table_forget(p->kept, pid);
	for (size_t i = p->files.cnt; i-- > 0;) {
		struct probed_file *pf = &p->files.data[i];
		struct file_member *m = file_probes_find(pf->probes, pid);

		if (!m)
			continue;
		file_probes_del(pf->probes, m, has_ended);
		file_sharing_note_change(pf->sharing);
		if (file_probes_cnt(pf->probes) || policy_is_shared(p->policy))
			continue;
		stop_file(p, pf);
		*pf = p->files.data[--p->files.cnt];
	}
}

bool probes_clean_children(struct probes *p, pid_t pid)
{
	struct probed_file *pf;

	if (engine_mode(p->engine) == ATTACH_PERF)
		return true;
	if (guardian_cleaning_cnt(p->guardian) >= CLEANINGS_CAP)
		return false;
	vec_each(&p->files, pf) {
		const struct file_member *m = file_sharing_now(pf->sharing) == SHARING_OWN ?
						      file_probes_find(pf->probes, pid) :
						      NULL;

		if (m && file_probes_clean_children(pf->probes, m))
			break;
	}
	return true;
}

void probes_clean_leftovers(struct probes *p, const struct leftovers *l, pid_t pid, pid_t live_tid)
{
	const bool is_perf = engine_mode(p->engine) == ATTACH_PERF;
	const struct attach_request req = {
		.file_fd = l->file->fd,
		.pid = is_perf ? live_tid : pid,
		.mode = is_perf ? ATTACH_PERF : ATTACH_MULTI,
		.kind = ATTACH_ENTRY,
		.prog_fd = engine_prog_fd(p->engine, ENGINE_FREE),
		.sites = l->sites.data,
		.site_cnt = l->sites.cnt,
	};
	const struct probed_file *pf = find_file(p, l->file);
	int err;

	if (pf && file_sharing_now(pf->sharing) == SHARING_ALL)
		return; /* they are our own */
	err = guardian_clean(p->guardian, &req);
	if (err)
		log_warn("%zu breakpoints in %s of PID %d, perhaps left by a profiler that was "
			 "killed, stay: %s",
			 l->sites.cnt, l->file->path, pid, strerror(-err));
	else
		log_info(
			"PID %d: %zu breakpoints in %s are not in the file: if a killed profiler left "
			"them, they are removed now",
			pid, l->sites.cnt, l->file->path);
}

size_t probes_file_cnt(const struct probes *p)
{
	return p->files.cnt;
}

bool probes_file_at(const struct probes *p, size_t i, struct probes_file *ret)
{
	const struct probed_file *pf = &p->files.data[i];

	if (!pf->file->alloc || !file_probes_cnt(pf->probes))
		return false;
	*ret = (struct probes_file){
		.file = pf->file,
		.sharing = file_sharing_now(pf->sharing),
		.process_cnt = file_probes_cnt(pf->probes),
		.hit_ns = file_sharing_hit_ns(pf->sharing),
	};
	return true;
}
