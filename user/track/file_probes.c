/* SPDX-License-Identifier: MIT */
/*
 * file_probes.c - see file_probes.h.
 */
#include "track/file_probes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/vec.h"
#include "guardian/guardian.h"
#include "guardian/held_links.h"
#include "heaptap/abi.h"
#include "track/files.h"

/* A file's probes in one process, or in all; no links if attaching failed. */
struct file_member {
	struct probe_target target;
	int failed_err; /* of attaching; 0: none */
	struct held_links *allocs[HT_SHARING_CNT], *frees[HT_SHARING_CNT]; /* by sharing */
	struct held_links *tags, *sampler, *tap;
	bool wants_tap;
	uint64_t seen_ns; /* when its allocator was first probed or tapped; 0: not yet */
	uint64_t event_turn; /* its turn of joining the event; the highest joined last */
};

struct file_probes {
	const struct track_file *file;
	const struct kept_table *kept;
	struct guardian *guardian;
	struct file_links *sharings;
	VEC(struct file_member) members; /* tracked processes that map the file */
	struct file_member everyone;
	bool everyone_is_probed; /* or was tried */
	bool has_shared_tags;
	bool uses_sampler, leaves_allocator;
	uint64_t event_turns;
};

int file_probes_new(struct engine *e, struct guardian *guardian, const struct track_policy *policy,
		    const struct kept_table *kept, const struct track_file *file,
		    struct file_probes **ret)
{
	struct file_probes *fp = calloc(1, sizeof(*fp));

	if (!fp)
		return -ENOMEM;
	fp->file = file;
	fp->kept = kept;
	fp->guardian = guardian;
	if (file_links_new(e, guardian, policy, file, &fp->sharings)) {
		free(fp);
		return -ENOMEM;
	}
	*ret = fp;
	return 0;
}

const struct track_file *file_probes_file(const struct file_probes *fp)
{
	return fp->file;
}

bool file_probes_has_event(const struct file_probes *fp)
{
	return file_links_has_event(fp->sharings);
}

void file_probes_share_tags(struct file_probes *fp)
{
	fp->has_shared_tags = true;
}

void file_probes_use_sampler(struct file_probes *fp)
{
	fp->uses_sampler = true;
}

void file_probes_leave_allocator(struct file_probes *fp)
{
	fp->leaves_allocator = true;
}

bool file_probes_shares_tags(const struct file_probes *fp)
{
	return fp->has_shared_tags;
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

void file_probes_stop_member(struct file_member *m, enum sharing sharing)
{
	held_links_free(m->allocs[sharing]);
	held_links_free(m->frees[sharing]);
	m->allocs[sharing] = m->frees[sharing] = NULL;
}

static void stop_member(struct file_member *m)
{
	for (enum sharing sharing = SHARING_OWN; sharing < HT_SHARING_CNT; sharing++)
		file_probes_stop_member(m, sharing);
	held_links_free(m->tags);
	held_links_free(m->sampler);
	held_links_free(m->tap);
	m->tags = m->sampler = m->tap = NULL;
}

void file_probes_stop_sharing(struct file_probes *fp, enum sharing sharing)
{
	struct held_links *all = NULL;
	struct file_member *m;

	if (!held_links_new(fp->guardian, &all)) {
		vec_each(&fp->members, m)
			gather(all, m, sharing);
		gather(all, &fp->everyone, sharing);
		held_links_free(all);
	} else { /* slower */
		vec_each(&fp->members, m)
			file_probes_stop_member(m, sharing);
		file_probes_stop_member(&fp->everyone, sharing);
	}
	if (sharing == SHARING_ALL) {
		fp->everyone_is_probed = false;
		fp->everyone.seen_ns = 0;
	}
	if (sharing == SHARING_EVENT) {
		guardian_wait_all_out(fp->guardian); /* links that still use an event keep it */
		file_links_free_events(fp->sharings);
	}
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

void file_probes_free(struct file_probes *fp)
{
	struct file_member *m;

	if (!fp)
		return;
	for (enum sharing sharing = SHARING_OWN; sharing < HT_SHARING_CNT; sharing++)
		file_probes_stop_sharing(fp, sharing);
	vec_each(&fp->members, m)
		stop_member(m);
	stop_member(&fp->everyone);
	vec_release(&fp->members);
	file_links_free(fp->sharings);
	free(fp);
}

/*
 * Attaching.
 */

/* Brings probes up to date, by kind: attach those wanted and missing; move unwanted ones to `gone`. */
struct sync {
	struct guardian *guardian;
	struct file_links *sharings;
	const struct probe_target *target;
	enum sharing sharing;
	struct held_links *gone;
};

static int sync_kind(const struct sync *b, bool is_wanted, enum probe_kind kind,
		     struct held_links **links)
{
	struct held_links *fresh = NULL;
	int err;

	if (!is_wanted) {
		if (*links && b->gone) {
			err = held_links_move(*links, b->gone);
			if (err)
				return err;
		}
		held_links_free(*links);
		*links = NULL;
		return 0;
	}
	if (*links)
		return 0;
	err = held_links_new(b->guardian, &fresh);
	if (!err)
		err = file_links_add(b->sharings, kind, b->sharing, b->target, fresh);
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

int file_probes_sync_sharing(struct file_probes *fp, struct file_member *m, enum sharing sharing,
			     enum probes_kept kept, struct held_links *gone)
{
	const struct sync b = { fp->guardian, fp->sharings, &m->target, sharing, gone };
	int err;

	if (!fp->file->alloc || fp->leaves_allocator)
		return 0;
	if (sharing == SHARING_EVENT && !m->allocs[sharing])
		m->event_turn = ++fp->event_turns;
	err = sync_kind(&b, kept <= PROBES_ALL, PROBE_FREES, &m->frees[sharing]);
	if (!err)
		err = sync_kind(&b, kept <= PROBES_ALLOCS, PROBE_ALLOCS, &m->allocs[sharing]);
	if (m->allocs[sharing])
		note_seen(m);
	return err;
}

int file_probes_sync_tags(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			  struct held_links *gone)
{
	const struct sync b = { fp->guardian, fp->sharings, &m->target, SHARING_OWN, gone };

	return fp->file->tags ? sync_kind(&b, kept <= PROBES_ALLOCS, PROBE_TAGS, &m->tags) : 0;
}

int file_probes_sync_sampler(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			     struct held_links *gone)
{
	const struct sync b = { fp->guardian, fp->sharings, &m->target, SHARING_OWN, gone };

	return fp->uses_sampler ? sync_kind(&b, kept <= PROBES_ALLOCS, PROBE_SAMPLER, &m->sampler) :
				  0;
}

int file_probes_sync_tap(struct file_probes *fp, struct file_member *m, enum probes_kept kept,
			 struct held_links *gone)
{
	const struct sync b = { fp->guardian, fp->sharings, &m->target, SHARING_OWN, gone };

	return sync_kind(&b, m->wants_tap && kept <= PROBES_ALLOCS, PROBE_TAP, &m->tap);
}

int file_probes_tap(struct file_probes *fp, struct file_member *m, enum probes_kept kept)
{
	int err;

	m->wants_tap = true;
	err = file_probes_sync_tap(fp, m, kept, NULL);
	m->wants_tap = !err;
	if (!err)
		note_seen(m);
	return err;
}

int file_probes_tap_copies(struct file_probes *fp, struct file_member *m)
{
	return m->tap ? file_links_add(fp->sharings, PROBE_TAP, SHARING_OWN, &m->target, m->tap) :
			0;
}

void file_probes_untap(struct file_member *m)
{
	m->wants_tap = false;
	held_links_free(m->tap);
	m->tap = NULL;
}

bool file_member_is_tapped(const struct file_member *m)
{
	return m->wants_tap;
}

int file_member_set_tap(const struct file_member *m, uint64_t rate_bytes, struct tap_lost *ret)
{
	return m->tap ? held_links_set_tap(m->tap, rate_bytes, ret) : -ENOENT;
}

const struct tap_news *file_probes_tap_news(const struct file_probes *fp)
{
	return file_links_tap_news(fp->sharings);
}

static int sync_everyone(struct file_probes *fp)
{
	int err = file_probes_sync_sharing(fp, &fp->everyone, SHARING_ALL,
					   kept_table_of_everyone(fp->kept), NULL);

	fp->everyone_is_probed = true;
	fp->everyone.failed_err = err;
	return err;
}

int file_probes_sync_all(struct file_probes *fp, enum sharing sharing)
{
	struct file_member *m;
	int err = 0;

	if (sharing == SHARING_ALL)
		return sync_everyone(fp);
	vec_each(&fp->members, m) {
		if (m->failed_err)
			continue;
		err = file_probes_sync_sharing(
			fp, m, sharing, kept_table_allocator_of(fp->kept, m->target.pid), NULL);
		if (err && err != -ESRCH)
			return err;
	}
	return 0;
}

/*
 * The order of members that share an event.
 */

/* Attach all probes of *m on the event once more, then detach the old ones. No hit is missed, and a
 * hit of a process that is on the event twice is seen once. */
static int move_to_front(struct file_probes *fp, struct file_member *m)
{
	const struct sync b = { fp->guardian, fp->sharings, &m->target, SHARING_EVENT, NULL };
	struct file_member fresh = { .event_turn = 0 };
	int err = sync_kind(&b, m->frees[SHARING_EVENT], PROBE_FREES, &fresh.frees[SHARING_EVENT]);

	if (!err)
		err = sync_kind(&b, m->allocs[SHARING_EVENT], PROBE_ALLOCS,
				&fresh.allocs[SHARING_EVENT]);
	if (err) {
		file_probes_stop_member(&fresh, SHARING_EVENT);
		return err;
	}
	file_probes_stop_member(m, SHARING_EVENT);
	m->frees[SHARING_EVENT] = fresh.frees[SHARING_EVENT];
	m->allocs[SHARING_EVENT] = fresh.allocs[SHARING_EVENT];
	m->event_turn = ++fp->event_turns;
	return 0;
}

int file_probes_order(struct file_probes *fp, const struct probes_activity *a, double hit_ns)
{
	struct plan_sharer *sharers = calloc(fp->members.cnt + 1, sizeof(*sharers));
	size_t cnt = fp->members.cnt, front;

	if (!sharers)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const struct file_member *m = &fp->members.data[i];

		if (m->allocs[SHARING_EVENT])
			sharers[i] = (struct plan_sharer){ a->hits_per_s(a->ctx, m->target.pid),
							   m->event_turn };
	}
	front = plan_front(sharers, cnt, hit_ns);
	free(sharers);
	return front < cnt ? move_to_front(fp, &fp->members.data[front]) : 0;
}

/*
 * Members.
 */

int file_probes_reserve(struct file_probes *fp)
{
	return vec_reserve(&fp->members, fp->members.cnt + 1);
}

/* *m is about to become a member. */
static int attach_new_member(struct file_probes *fp, struct file_member *m, enum sharing sharing,
			     bool *ret_is_new)
{
	enum probes_kept kept = kept_table_of(fp->kept, m->target.pid);
	bool is_first = sharing != SHARING_ALL || !fp->everyone_is_probed;
	struct file_member *of_tags = m;
	int err;

	if (fp->has_shared_tags) {
		of_tags = &fp->everyone;
		kept = kept_table_of_everyone(fp->kept);
	}
	err = file_probes_sync_tags(fp, of_tags, kept, NULL);
	if (!err)
		err = file_probes_sync_sampler(fp, of_tags, kept, NULL);
	*ret_is_new = !err && fp->uses_sampler;
	if (sharing == SHARING_ALL)
		m->seen_ns = fp->everyone.seen_ns;
	if (err || !fp->file->alloc || !is_first)
		return err;
	kept = kept_table_allocator_of(fp->kept, m->target.pid);
	if (sharing == SHARING_ALL) {
		err = sync_everyone(fp);
		m->seen_ns = fp->everyone.seen_ns;
	} else {
		err = file_probes_sync_sharing(fp, m, sharing, kept, NULL);
	}
	*ret_is_new |= !err;
	return err;
}

int file_probes_add(struct file_probes *fp, pid_t pid, pid_t live_tid, enum sharing sharing,
		    bool *ret_is_new)
{
	struct file_member m = { .target = { .pid = pid, .live_tid = live_tid } };
	int err;

	*ret_is_new = false;
	err = attach_new_member(fp, &m, sharing, ret_is_new);
	if (err) {
		m.failed_err = err;
		stop_member(&m);
		if (err == -ENOMEM)
			return err;
	}
	fp->members.data[fp->members.cnt++] = m;
	return err;
}

/* Detach without waiting: no code that its links could see runs any more. */
static void abandon_member(struct file_member *m)
{
	for (enum sharing sharing = SHARING_OWN; sharing < HT_SHARING_CNT; sharing++) {
		held_links_let_go(m->allocs[sharing]);
		held_links_let_go(m->frees[sharing]);
	}
	held_links_let_go(m->tags);
	held_links_let_go(m->sampler);
	held_links_let_go(m->tap);
}

void file_probes_del(struct file_probes *fp, struct file_member *m, bool has_ended)
{
	if (has_ended)
		abandon_member(m);
	else
		stop_member(m);
	*m = fp->members.data[--fp->members.cnt];
}

size_t file_probes_cnt(const struct file_probes *fp)
{
	return fp->members.cnt;
}

struct file_member *file_probes_find(const struct file_probes *fp, pid_t pid)
{
	struct file_member *m;

	vec_each(&fp->members, m)
		if (m->target.pid == pid)
			return m;
	return NULL;
}

struct file_member *file_probes_everyone(struct file_probes *fp)
{
	return &fp->everyone;
}

bool file_probes_is_anyone_limited(const struct file_probes *fp)
{
	const struct file_member *m;

	vec_each(&fp->members, m)
		if (kept_table_of(fp->kept, m->target.pid) != PROBES_ALL)
			return true;
	return false;
}

int file_member_err(const struct file_member *m)
{
	return m->failed_err;
}

uint64_t file_member_seen_ns(const struct file_member *m)
{
	return m->seen_ns;
}

bool file_member_set_thread(struct file_member *m, pid_t live_tid)
{
	bool is_other = m->target.live_tid != live_tid;

	m->target.live_tid = live_tid;
	return is_other;
}

int file_probes_clean_children(const struct file_probes *fp, const struct file_member *m)
{
	return file_links_clean_children(fp->sharings, &m->target);
}
