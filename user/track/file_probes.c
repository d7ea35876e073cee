/* SPDX-License-Identifier: MIT */
/* file_probes.c - see probes_priv.h. */
#include "track/probes_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "guardian/guardian.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "track/file.h"

static bool shares_for_good(const struct file_probes *fp)
{
	return probes_are_shared(fp->all);
}

/* Probes for everyone stay while only one process is to keep less. */
static enum probes_kept kept_of_everyone(const struct file_probes *fp)
{
	return shares_for_good(fp) ? probes_kept_of(fp->all, 0) : PROBES_ALL;
}

/*
 * Detaching.
 */

static void take_over(struct held_links *all, struct held_links **links)
{
	if (*links)
		held_links_move(*links, all); /* what has no room is detached now */
	held_links_free(*links);
	*links = NULL;
}

static void gather(struct held_links *all, struct file_member *m, enum sharing sharing)
{
	take_over(all, &m->allocs[sharing]);
	take_over(all, &m->frees[sharing]);
}

static void stop_sharing_of(struct file_member *m, enum sharing sharing)
{
	held_links_free(m->allocs[sharing]);
	held_links_free(m->frees[sharing]);
	m->allocs[sharing] = m->frees[sharing] = NULL;
}

static void stop_member(struct file_member *m)
{
	for (enum sharing sharing = SHARING_OWN; sharing < HT_SHARING_CNT; sharing++)
		stop_sharing_of(m, sharing);
	held_links_free(m->tags);
	held_links_free(m->sampler);
	held_links_free(m->tap);
	m->tags = m->sampler = m->tap = NULL;
}

static void stop_sharing(struct file_probes *fp, enum sharing sharing)
{
	struct held_links *all = NULL;
	struct file_member *m;

	if (!held_links_new(fp->all->guardian, &all)) {
		vec_each(&fp->members, m)
			gather(all, m, sharing);
		gather(all, &fp->everyone, sharing);
		held_links_free(all);
	} else { /* slower */
		vec_each(&fp->members, m)
			stop_sharing_of(m, sharing);
		stop_sharing_of(&fp->everyone, sharing);
	}
	if (sharing == SHARING_ALL) {
		fp->everyone_is_probed = false;
		fp->everyone.seen_ns = 0;
	}
	if (sharing == SHARING_EVENT) {
		file_probes_detach_gone(fp->all);
		guardian_wait_all_detached(
			fp->all->guardian); /* links that still use an event keep it */
		file_links_free_events(fp);
	}
}

void file_probes_unshare(struct file_probes *fp)
{
	stop_sharing(fp, SHARING_ALL);
	stop_member(&fp->everyone);
	fp->has_shared_tags = false;
	fp->sharing = SHARING_AUTO;
	file_sharing_plan(fp, fp->members.cnt ? fp->members.cnt : 1);
}

void file_probes_gather_allocs(struct file_probes *fp, struct held_links *gone)
{
	struct file_member *m;

	for (enum sharing sharing = SHARING_OWN; sharing < HT_SHARING_CNT; sharing++) {
		vec_each(&fp->members, m)
			take_over(gone, &m->allocs[sharing]);
		take_over(gone, &fp->everyone.allocs[sharing]);
	}
}

void file_probes_release(struct file_probes *fp)
{
	struct file_member *m;

	for (enum sharing sharing = SHARING_OWN; sharing < HT_SHARING_CNT; sharing++)
		stop_sharing(fp, sharing);
	vec_each(&fp->members, m)
		stop_member(m);
	stop_member(&fp->everyone);
	vec_release(&fp->members);
	file_links_free_events(fp);
}

/*
 * Attaching: bring probes up to date, by kind. Attach those wanted and missing; move unwanted ones to `gone`, or close
 * them where that is NULL.
 */

static int sync_kind(struct file_probes *fp, const struct file_member *m, enum probe_kind kind,
		     enum sharing sharing, bool is_wanted, struct held_links **links,
		     struct held_links *gone)
{
	struct held_links *fresh = NULL;
	int err;

	if (!is_wanted) {
		if (*links && gone) {
			err = held_links_move(*links, gone);
			if (err)
				return err;
		}
		held_links_free(*links);
		*links = NULL;
		return 0;
	}
	if (*links)
		return 0;
	err = held_links_new(fp->all->guardian, &fresh);
	if (!err)
		err = file_links_add(fp, kind, sharing, m, fresh);
	if (err)
		held_links_free(fresh);
	else
		*links = fresh;
	return err;
}

static void note_seen(struct file_member *m)
{
	if (!m->seen_ns)
		m->seen_ns = now_ns();
}

static int sync_sharing(struct file_probes *fp, struct file_member *m, enum sharing sharing,
			enum probes_kept kept, struct held_links *gone)
{
	int err;

	if (!fp->file->alloc || fp->all->policy->source == SOURCE_USDT)
		return 0;
	if (sharing == SHARING_EVENT && !m->allocs[sharing])
		m->event_turn = ++fp->event_turns;
	err = sync_kind(fp, m, PROBE_FREES, sharing, kept <= PROBES_ALL, &m->frees[sharing], gone);
	if (!err)
		err = sync_kind(fp, m, PROBE_ALLOCS, sharing, kept <= PROBES_ALLOCS,
				&m->allocs[sharing], gone);
	if (m->allocs[sharing])
		note_seen(m);
	return err;
}

static int sync_tap(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
		    struct held_links *gone)
{
	return sync_kind(fp, m, PROBE_TAP, SHARING_OWN, m->wants_tap && kept <= PROBES_ALLOCS,
			 &m->tap, gone);
}

/* What has no sharing. */
static int sync_rest(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
		     struct held_links *gone)
{
	bool is_wanted = kept <= PROBES_ALLOCS;
	int err = 0;

	if (fp->file->tags)
		err = sync_kind(fp, m, PROBE_TAGS, SHARING_OWN, is_wanted, &m->tags, gone);
	if (!err && probes_use_sampler(fp->all, fp->file))
		err = sync_kind(fp, m, PROBE_SAMPLER, SHARING_OWN, is_wanted, &m->sampler, gone);
	return err ? err : sync_tap(fp, m, kept, gone);
}

static int attach_everyone(struct file_probes *fp)
{
	int err = sync_sharing(fp, &fp->everyone, SHARING_ALL, kept_of_everyone(fp), NULL);

	fp->everyone_is_probed = true;
	fp->everyone.failed_err = err;
	return err;
}

/* As probes_kept_of(), for the allocator's probes: a process that samples itself keeps none. Where probes are shared, BPF
 * ignores its hits. */
static enum probes_kept probes_allocator_kept_of(const struct probes *p, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	return !probes_are_shared(p) && hmap_get(&p->sampled, &key) ? PROBES_NONE :
								      probes_kept_of(p, pid);
}

/* Attach what each member keeps, with this sharing. Skips members that have just ended. */
static int attach_sharing(struct file_probes *fp, enum sharing sharing)
{
	struct file_member *m;
	int err = 0;

	if (sharing == SHARING_ALL)
		return attach_everyone(fp);
	vec_each(&fp->members, m) {
		if (m->failed_err)
			continue;
		err = sync_sharing(fp, m, sharing, probes_allocator_kept_of(fp->all, m->pid), NULL);
		if (err && err != -ESRCH)
			return err;
	}
	return 0;
}

int file_probes_follow_thread(struct file_probes *fp, struct file_member *m, pid_t live_tid)
{
	bool is_other = m->live_tid != live_tid;

	m->live_tid = live_tid;
	if (!is_other || fp->sharing != SHARING_EVENT || !fp->file->alloc)
		return 0;
	stop_sharing_of(m, SHARING_EVENT);
	return sync_sharing(fp, m, SHARING_EVENT, probes_allocator_kept_of(fp->all, m->pid), NULL);
}

/* The member that stands for the process. Shared probes: the one for all, whether the process maps
 * the file or not. NULL: no probes of the file can be in. */
static struct file_member *find_probed(struct file_probes *fp, pid_t pid, pid_t live_tid)
{
	struct file_member *m = shares_for_good(fp) ? &fp->everyone : file_probes_find(fp, pid);

	if (!m || m->failed_err)
		return NULL;
	if (m != &fp->everyone)
		m->live_tid = live_tid;
	return m;
}

/* Where the probes are for everyone, a process is exempted by moving the file to another sharing. */
int file_probes_keep(struct file_probes *fp, pid_t pid, pid_t live_tid, struct held_links *gone)
{
	struct file_member *m = find_probed(fp, pid, live_tid);
	enum probes_kept kept = probes_kept_of(fp->all, pid);
	bool is_for_everyone;
	int err;

	if (!m)
		return 0;
	fp->has_changed = true;
	is_for_everyone = !shares_for_good(fp) && (fp->sharing == SHARING_ALL ||
						   (fp->step && fp->old_sharing == SHARING_ALL));
	if (is_for_everyone && fp->has_shared_tags)
		return 0;
	err = sync_rest(fp, m, kept, gone);
	if (err || is_for_everyone)
		return err;
	kept = probes_allocator_kept_of(fp->all, pid);
	if (fp->step)
		err = sync_sharing(fp, m, fp->old_sharing, kept, gone);
	return err ? err : sync_sharing(fp, m, fp->sharing, kept, gone);
}

/*
 * Taps.
 */

int file_probes_tap(struct file_probes *fp, struct file_member *m)
{
	int err;

	if (m->wants_tap) /* its copies that are tapped stay as they are */
		return m->tap ? file_links_add(fp, PROBE_TAP, SHARING_OWN, m, m->tap) : 0;
	m->wants_tap = true;
	err = sync_tap(fp, m, probes_kept_of(fp->all, m->pid), NULL);
	m->wants_tap = !err;
	if (!err)
		note_seen(m);
	return err;
}

/*
 * The order of members that share an event.
 */

/* Attach all probes of *m on the event once more, then detach the old ones. No hit is missed, and a
 * hit of a process that is on the event twice is seen once. */
static int move_to_front(struct file_probes *fp, struct file_member *m)
{
	struct held_links *frees = NULL, *allocs = NULL;
	int err =
		sync_kind(fp, m, PROBE_FREES, SHARING_EVENT, m->frees[SHARING_EVENT], &frees, NULL);

	if (!err)
		err = sync_kind(fp, m, PROBE_ALLOCS, SHARING_EVENT, m->allocs[SHARING_EVENT],
				&allocs, NULL);
	if (err) {
		held_links_free(frees);
		return err;
	}
	stop_sharing_of(m, SHARING_EVENT);
	m->frees[SHARING_EVENT] = frees;
	m->allocs[SHARING_EVENT] = allocs;
	m->event_turn = ++fp->event_turns;
	return 0;
}

int file_probes_order(struct file_probes *fp, const struct probes_activity *a)
{
	struct plan_sharer *sharers = calloc(fp->members.cnt + 1, sizeof(*sharers));
	size_t cnt = fp->members.cnt, front;

	if (!sharers)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const struct file_member *m = &fp->members.data[i];

		if (m->allocs[SHARING_EVENT])
			sharers[i] = (struct plan_sharer){ a->hits_per_s(a->ctx, m->pid),
							   m->event_turn };
	}
	front = plan_front(sharers, cnt, fp->all->policy->costs.hit_ns);
	free(sharers);
	return front < cnt ? move_to_front(fp, &fp->members.data[front]) : 0;
}

/*
 * Members.
 */

/* *m is about to become a member. */
static int attach_new_member(struct file_probes *fp, struct file_member *m, bool *ret_is_new)
{
	bool is_first = fp->sharing != SHARING_ALL || !fp->everyone_is_probed;
	int err = fp->has_shared_tags ? sync_rest(fp, &fp->everyone, kept_of_everyone(fp), NULL) :
					sync_rest(fp, m, probes_kept_of(fp->all, m->pid), NULL);

	*ret_is_new = !err && probes_use_sampler(fp->all, fp->file);
	if (fp->sharing == SHARING_ALL)
		m->seen_ns = fp->everyone.seen_ns;
	if (err || !fp->file->alloc || !is_first)
		return err;
	if (fp->sharing == SHARING_ALL) {
		err = attach_everyone(fp);
		m->seen_ns = fp->everyone.seen_ns;
	} else {
		err = sync_sharing(fp, m, fp->sharing, probes_allocator_kept_of(fp->all, m->pid),
				   NULL);
	}
	*ret_is_new |= !err;
	return err;
}

int file_probes_add(struct file_probes *fp, pid_t pid, pid_t live_tid, bool *ret_is_new)
{
	struct file_member m = { .pid = pid, .live_tid = live_tid };
	int err;

	*ret_is_new = false;
	err = attach_new_member(fp, &m, ret_is_new);
	if (err) {
		m.failed_err = err;
		stop_member(&m);
		if (err == -ENOMEM)
			return err;
	}
	fp->members.data[fp->members.cnt++] = m;
	return err;
}

static void join(struct held_links *links, struct held_links **all)
{
	if (*all && links)
		held_links_move(links, *all); /* what has no room is detached by itself */
	if (*all)
		held_links_detach(links);
	else
		*all = links;
}

void file_probes_detach_gone(struct probes *p)
{
	held_links_detach(p->gone);
	p->gone = NULL;
}

/* Without waiting: no code that its links could see runs any more. Each message to the guardian costs it threads, and a
 * grace period, so those of many ended processes are detached together (probes_work()). A tap goes at once: its process is
 * known by its pid. */
static void abandon_member(struct probes *p, const struct file_member *m)
{
	for (enum sharing sharing = SHARING_OWN; sharing < HT_SHARING_CNT; sharing++) {
		join(m->allocs[sharing], &p->gone);
		join(m->frees[sharing], &p->gone);
	}
	join(m->tags, &p->gone);
	join(m->sampler, &p->gone);
	held_links_detach(m->tap);
}

void file_probes_del(struct file_probes *fp, struct file_member *m, bool has_ended)
{
	if (has_ended)
		abandon_member(fp->all, m);
	else
		stop_member(m);
	*m = fp->members.data[--fp->members.cnt];
}

struct file_member *file_probes_find(const struct file_probes *fp, pid_t pid)
{
	struct file_member *m;

	vec_each(&fp->members, m)
		if (m->pid == pid)
			return m;
	return NULL;
}

/*
 * Moves to another sharing.
 *
 * A move has three steps. First the probes of the new sharing are attached for all processes, while
 * only the old ones count. Then both count, and BPF makes a hit count once (bpf/sharing.bpf.h).
 * Last, only the new ones count; the old ones stay until the calls whose entry they have seen have
 * returned. Some time passes between the steps, so that no hit meets two of them. A file that is
 * not moving has probes of one sharing, and while no file is moving, no hit checks which sharing
 * counts.
 */

/* No handler of a hit runs this long, unless its thread is stopped in it. */
#define STEP_NS (20 * NS_PER_MS)
/* A call that has not returned by then is assumed never to return. */
#define LAST_CALL_NS (5 * NS_PER_S)
/* Minimum time between two moves of a file. */
#define DWELL_NS (2 * NS_PER_S)
/* Wait after events could not be had. */
#define RETRY_NS (60 * NS_PER_S)

/* Links for everyone cannot exclude one process. */
static bool is_anyone_limited(const struct file_probes *fp)
{
	const struct file_member *m;

	vec_each(&fp->members, m)
		if (probes_kept_of(fp->all, m->pid) != PROBES_ALL)
			return true;
	return false;
}

static struct plan_input plan_input_of(const struct file_probes *fp, size_t process_cnt)
{
	const struct track_policy *policy = fp->all->policy;
	const bool is_shared = probes_are_shared(fp->all);

	return (struct plan_input){
		.process_cnt = process_cnt,
		.now = fp->sharing,
		.wanted = is_shared ? SHARING_ALL : policy->sharing,
		.is_all_agreed = is_shared || (policy->is_all_agreed && !is_anyone_limited(fp)),
		.has_event = now_ns() >= fp->may_have_event_ns && file_links_has_event(fp),
		.has_session = engine_mode(fp->all->engine) == ATTACH_SESSION,
		.costs = policy->costs,
	};
}

double file_sharing_hit_ns(const struct file_probes *fp)
{
	const struct plan_input in = plan_input_of(fp, fp->members.cnt);

	return plan_hit_ns(&in, fp->sharing);
}

static void say_sharing(const struct file_probes *fp, size_t process_cnt)
{
	const struct plan_input in = plan_input_of(fp, process_cnt);

	log_info("%s: probes moved from '%s' to '%s' for %zu processes: about %.0f ns per hit "
		 "instead of %.0f ns",
		 fp->file->path, sharing_name(fp->old_sharing), sharing_name(fp->sharing),
		 process_cnt, plan_hit_ns(&in, fp->sharing), plan_hit_ns(&in, fp->old_sharing));
}

static void set_sharings(const struct file_probes *fp, uint32_t sharings)
{
	engine_set_sharings(fp->all->engine, fp->file->id, sharings);
}

static void begin_step(struct file_probes *fp, enum move_step step)
{
	fp->step = step;
	fp->step_ns = now_ns();
}

/* process_cnt includes processes that are about to come. */
static void begin_move(struct file_probes *fp, enum sharing sharing, size_t process_cnt)
{
	int err;

	set_sharings(fp, 1U << fp->sharing);
	err = attach_sharing(fp, sharing);
	if (err) {
		if (err != -EPIPE) /* the guardian's end has its own line */
			log_warn("probes of %s stay '%s': they cannot be attached as '%s': %s",
				 fp->file->path, sharing_name(fp->sharing), sharing_name(sharing),
				 strerror(-err));
		stop_sharing(fp, sharing);
		set_sharings(fp, 0);
		fp->may_move_ns = fp->may_have_event_ns = now_ns() + RETRY_NS;
		return;
	}
	fp->old_sharing = fp->sharing;
	fp->sharing = sharing;
	set_sharings(fp, 1U << fp->old_sharing | 1U << sharing);
	begin_step(fp, STEP_BOTH);
	say_sharing(fp, process_cnt);
}

void file_sharing_plan(struct file_probes *fp, size_t process_cnt)
{
	const struct plan_input in = plan_input_of(fp, process_cnt);
	enum sharing sharing;

	if (fp->sharing == SHARING_AUTO) {
		fp->sharing = plan_choose(&in);
		return;
	}
	if (fp->step || !fp->file->alloc || now_ns() < fp->may_move_ns)
		return;
	sharing = plan_choose(&in);
	fp->has_changed = false;
	if (sharing != fp->sharing)
		begin_move(fp, sharing, process_cnt);
}

static void end_move(struct file_probes *fp)
{
	stop_sharing(fp, fp->old_sharing);
	set_sharings(fp, 0);
	fp->step = STEP_NONE;
	fp->may_move_ns = now_ns() + DWELL_NS;
	fp->has_changed = true; /* it may have, during the move */
}

static void go_on(struct file_probes *fp)
{
	uint64_t passed_ns = now_ns() - fp->step_ns;

	if (passed_ns < STEP_NS)
		return;
	if (fp->step == STEP_BOTH) {
		set_sharings(fp, 1U << fp->sharing);
		begin_step(fp, STEP_LAST_CALLS);
	} else if (passed_ns > LAST_CALL_NS ||
		   !engine_has_calls(fp->all->engine, fp->file->id, fp->old_sharing)) {
		end_move(fp);
	}
}

void file_sharing_work(struct file_probes *fp)
{
	if (fp->step)
		go_on(fp);
	else if (fp->has_changed)
		file_sharing_plan(fp, fp->members.cnt);
}
