/* SPDX-License-Identifier: MIT */
/* probes.c - see probes.h, and probes_priv.h for its parts. */
#include "track/probes_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "guardian/guardian.h"
#include "kernel/engine.h"
#include "alloc/file_sampler.h"
#include "tap/tap.h"
#include "track/file.h"

const char *const tap_wish_names[] = { "started", "yes", "only", "auto", "no", NULL };
const char *const probes_source_names[] = { "auto", "probes", "usdt", NULL };

int probes_new(struct engine *e, struct guardian *guardian, const struct track_policy *policy,
	       struct probes **ret)
{
	struct probes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->engine = e;
	p->guardian = guardian;
	p->policy = policy;
	p->seeds_fd = -1;
	hmap_init(&p->kept, sizeof(uint32_t));
	hmap_init(&p->sampled, sizeof(uint32_t));
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

static void stop_file(struct file_probes *fp)
{
	file_probes_release(fp);
	engine_set_sharings(fp->all->engine, fp->file->id, 0);
}

void probes_stop_allocs(struct probes *p)
{
	struct held_links *all = NULL;
	struct file_probes *fp;

	file_probes_detach_gone(p);
	if (held_links_new(p->guardian, &all))
		return;
	vec_each(&p->files, fp) {
		file_probes_gather_allocs(fp, all);
		fp->step = STEP_NONE; /* a move stops where it is */
		fp->has_changed = false;
	}
	held_links_free(all);
	guardian_wait_all_detached(p->guardian); /* also what was let go before */
}

void probes_stop(struct probes *p)
{
	struct file_probes *fp;

	probes_stop_allocs(p);
	vec_each(&p->files, fp)
		stop_file(fp);
	vec_release(&p->files);
	guardian_wait_all_detached(p->guardian);
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	probes_stop(p);
	hmap_release(&p->kept);
	hmap_release(&p->sampled);
	free(p);
}

bool probes_use_sampler(const struct probes *p, const struct track_file *file)
{
	enum probes_source source = p->policy->source;

	return file->sampler && !file->sampler->problem[0] && source != SOURCE_PROBES &&
	       (file->sampler->is_whole || source == SOURCE_USDT);
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

static struct file_probes *find_file(const struct probes *p, const struct track_file *file)
{
	struct file_probes *fp;

	vec_each(&p->files, fp)
		if (fp->file == file)
			return fp;
	return NULL;
}

static struct file_member *find_member(const struct probes *p, const struct track_file *file,
				       pid_t pid)
{
	const struct file_probes *fp = find_file(p, file);

	return fp ? file_probes_find(fp, pid) : NULL;
}

/* NULL: out of memory. */
static struct file_probes *add_file(struct probes *p, const struct track_file *file)
{
	struct file_probes fp = { .all = p, .file = file };

	file_sharing_plan(&fp, 1);
	fp.has_shared_tags = fp.sharing == SHARING_ALL;
	return vec_push(&p->files, fp) ? NULL : &p->files.data[p->files.cnt - 1];
}

static void del_file(struct probes *p, struct file_probes *fp)
{
	stop_file(fp);
	*fp = p->files.data[--p->files.cnt];
}

void probes_forget_file(struct probes *p, const struct track_file *file)
{
	struct file_probes *fp = find_file(p, file);

	if (fp)
		del_file(p, fp);
}

/*
 * Moves between sharings.
 */

/* What ends meanwhile is detached together. */
#define GONE_NS (500 * NS_PER_MS)

static void detach_gone_in_time(struct probes *p)
{
	if (!p->gone)
		p->gone_ns = now_ns();
	else if (now_ns() >= p->gone_ns + GONE_NS)
		file_probes_detach_gone(p);
}

void probes_work(struct probes *p)
{
	struct file_probes *fp;

	detach_gone_in_time(p);
	vec_each(&p->files, fp)
		file_sharing_work(fp);
}

bool probes_are_moving(const struct probes *p)
{
	const struct file_probes *fp;

	vec_each(&p->files, fp)
		if (fp->step)
			return true;
	return false;
}

void probes_plan_anew(struct probes *p)
{
	struct file_probes *fp;

	vec_each(&p->files, fp)
		fp->has_changed = true;
}

static bool shares_event(const struct file_probes *fp)
{
	return !fp->step && fp->sharing == SHARING_EVENT && fp->file->alloc && fp->members.cnt > 1;
}

bool probes_share_events(const struct probes *p)
{
	const struct file_probes *fp;

	vec_each(&p->files, fp)
		if (shares_event(fp))
			return true;
	return false;
}

void probes_order(struct probes *p, const struct probes_activity *a)
{
	struct file_probes *fp;

	vec_each(&p->files, fp)
		if (shares_event(fp)) /* an ended process goes soon; others stay in place */
			(void)file_probes_order(fp, a);
}

/*
 * What processes keep.
 */

static uint32_t kept_key(const struct probes *p, pid_t pid)
{
	return probes_are_shared(p) ? 0 : (uint32_t)pid;
}

enum probes_kept probes_kept_of(const struct probes *p, pid_t pid)
{
	uint32_t key = kept_key(p, pid);
	const uint64_t *kept = hmap_get(&p->kept, &key);

	if (kept)
		return (enum probes_kept) * kept;
	return p->is_paused ? PROBES_NONE : PROBES_ALL;
}

void probes_pause_attaching(struct probes *p, bool pause)
{
	p->is_paused = pause;
}

/* Apply what the process keeps from now on. */
static int apply_kept(struct probes *p, pid_t pid, pid_t live_tid, uint64_t *ret_ticket)
{
	struct held_links *gone = NULL;
	struct file_probes *fp;
	int err = held_links_new(p->guardian, &gone);

	vec_each(&p->files, fp)
		if (!err)
			err = file_probes_keep(fp, pid, live_tid, gone);
	*ret_ticket = held_links_detach(gone);
	return err;
}

int probes_keep(struct probes *p, pid_t pid, pid_t live_tid, enum probes_kept kept,
		uint64_t *ret_ticket)
{
	uint32_t key = kept_key(p, pid);
	int err = kept == PROBES_ALL ? 0 : hmap_put(&p->kept, &key, kept);

	if (kept == PROBES_ALL)
		hmap_del(&p->kept, &key);
	*ret_ticket = 0;
	return err ? err : apply_kept(p, pid, live_tid, ret_ticket);
}

int probes_set_sampled(struct probes *p, pid_t pid, pid_t live_tid, bool is_sampled)
{
	uint32_t key = (uint32_t)pid;
	int err = is_sampled ? hmap_put(&p->sampled, &key, 1) : 0;
	uint64_t ticket;

	if (!is_sampled)
		hmap_del(&p->sampled, &key);
	return err || probes_are_shared(p) ? err : apply_kept(p, pid, live_tid, &ticket);
}

/*
 * Taps.
 */

int probes_tap(struct probes *p, const struct track_file *file, pid_t pid, bool has_new_maps,
	       const struct tap_news **ret_news)
{
	struct file_probes *fp = find_file(p, file);
	struct file_member *m = fp ? file_probes_find(fp, pid) : NULL;

	*ret_news = NULL;
	if (!m)
		return -ENOENT;
	if (m->wants_tap && !has_new_maps)
		return 0;
	*ret_news = &fp->tap_news;
	return file_probes_tap(fp, m);
}

void probes_seed_taps(struct probes *p, int seeds_fd)
{
	p->seeds_fd = seeds_fd;
}

void probes_untap(struct probes *p, pid_t pid)
{
	struct file_probes *fp;

	vec_each(&p->files, fp) {
		struct file_member *m = file_probes_find(fp, pid);

		if (!m)
			continue;
		m->wants_tap = false;
		held_links_free(m->tap);
		m->tap = NULL;
	}
}

void probes_set_taps(const struct probes *p, pid_t pid, uint64_t rate_bytes, struct tap_lost *ret)
{
	const struct file_probes *fp;

	*ret = (struct tap_lost){ 0 };
	vec_each(&p->files, fp) {
		const struct file_member *m = file_probes_find(fp, pid);
		struct tap_lost lost;

		if (!m || !m->tap || held_links_set_tap(m->tap, rate_bytes, &lost))
			continue;
		ret->dropped_cnt += lost.dropped_cnt;
		ret->failed_cnt += lost.failed_cnt;
	}
}

bool probes_are_shared(const struct probes *p)
{
	return policy_is_shared(p->policy) && !p->is_unshared;
}

void probes_unshare(struct probes *p)
{
	struct file_probes *fp;

	if (!probes_are_shared(p))
		return;
	p->is_unshared = true;
	vec_each(&p->files, fp)
		file_probes_unshare(fp);
}

/*
 * Processes.
 */

/* A file that cannot be probed must not end the recording of the others. Its member has no links,
 * so that attaching is not retried, and counted, at every refresh. */
int probes_add(struct probes *p, const struct track_file *file, pid_t pid, pid_t live_tid)
{
	struct file_probes *fp;
	struct file_member *known;
	bool is_new;
	int err;

	if (!file->alloc && !file->tags && !probes_use_sampler(p, file))
		return 0;
	fp = find_file(p, file);
	known = fp ? file_probes_find(fp, pid) : NULL;
	if (known) {
		err = file_probes_follow_thread(fp, known, live_tid);
		if (err)
			count_failure(p, file, err);
		return 0;
	}
	if (fp)
		file_sharing_plan(fp, fp->members.cnt + 1);
	else
		fp = add_file(p, file);
	err = fp ? vec_reserve(&fp->members, fp->members.cnt + 1) : -ENOMEM;
	if (err)
		return err;
	err = file_probes_add(fp, pid, live_tid, &is_new);
	if (is_new)
		count_sites(p, file);
	if (err)
		count_failure(p, file, err);
	return err == -ENOMEM ? err : 0;
}

uint64_t probes_seen_ns(const struct probes *p, const struct track_file *file, pid_t pid)
{
	const struct file_member *m = find_member(p, file, pid);

	return m ? m->seen_ns : 0;
}

int probes_fd_error(const struct probes *p, pid_t pid)
{
	const struct file_probes *fp;

	vec_each(&p->files, fp) {
		const struct file_member *m = file_probes_find(fp, pid);

		if (m && (m->failed_err == -EMFILE || m->failed_err == -ENFILE))
			return m->failed_err;
	}
	return 0;
}

void probes_del_process(struct probes *p, pid_t pid, bool has_ended)
{
	uint32_t key = (uint32_t)pid;

	hmap_del(&p->sampled, &key);
	hmap_del(&p->kept, &key); /* a setting for all processes stays */
	for (size_t i = p->files.cnt; i-- > 0;) {
		struct file_probes *fp = &p->files.data[i];
		struct file_member *m = file_probes_find(fp, pid);

		if (!m)
			continue;
		file_probes_del(fp, m, has_ended);
		fp->has_changed = true;
		if (!fp->members.cnt && !probes_are_shared(p))
			del_file(p, fp);
	}
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
	const struct file_probes *fp = find_file(p, l->file);
	int err;

	if (fp && fp->sharing == SHARING_ALL)
		return; /* they are our own */
	err = guardian_clean(p->guardian, &req);
	if (err == -EPIPE)
		return; /* the guardian's end has its own line */
	if (err)
		log_warn("cannot remove %zu breakpoints in %s of PID %d, perhaps of a killed "
			 "profiler: %s",
			 l->sites.cnt, l->file->path, pid, strerror(-err));
	else
		log_info("PID %d: %zu breakpoints in %s are not in the file; those that a killed "
			 "profiler left are removed now",
			 pid, l->sites.cnt, l->file->path);
}

bool probes_next_file(const struct probes *p, size_t *i, struct probes_file *ret)
{
	for (; *i < p->files.cnt; ++*i) {
		const struct file_probes *fp = &p->files.data[*i];

		if (!fp->file->alloc || !fp->members.cnt)
			continue;
		*ret = (struct probes_file){
			.file = fp->file,
			.sharing = fp->sharing,
			.process_cnt = fp->members.cnt,
			.hit_ns = file_sharing_hit_ns(fp),
		};
		++*i;
		return true;
	}
	return false;
}
