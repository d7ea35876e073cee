/* SPDX-License-Identifier: MIT */
/* tracker_ask.c - answers what a tracker knows; see tracker.h. Changes nothing. */

#include "base/clock.h"
#include "kernel/engine.h"
#include "track/tracker_priv.h"

struct tracked_process *tracker_find(const struct tracker *t, pid_t pid)
{
	if (!pid)
		return t->list.cnt ? &t->list.data[0] : NULL;
	return tracked_find(t, pid);
}

/* Subtract the hits that were counted before it was tracked. */
static void subtract_before(const struct tracked_process *p, struct ht_hits *hits)
{
	hits->alloc_cnt -= p->hits_before.alloc_cnt;
	hits->free_cnt -= p->hits_before.free_cnt;
	hits->return_cnt -= p->hits_before.return_cnt;
	hits->stepped_cnt -= p->hits_before.stepped_cnt;
	hits->sample_cnt -= p->hits_before.sample_cnt;
	hits->stack_ns -= p->hits_before.stack_ns;
}

int tracker_read_hits(const struct tracker *t, pid_t pid, struct ht_hits *ret)
{
	const struct tracked_process *p = tracker_find(t, pid);
	int err = p ? engine_read_hits(t->engine, p->hits_idx, ret) : -ESRCH;

	if (!err)
		subtract_before(p, ret);
	return err;
}

int tracker_read_cpu(const struct tracker *t, pid_t pid, uint64_t *ret_ns)
{
	const struct tracked_process *p = tracked_find(t, pid);
	int err = p ? process_cpu_ns(pid, ret_ns) : -ESRCH;

	if (!err)
		*ret_ns -= *ret_ns < p->cpu_before_ns ? *ret_ns : p->cpu_before_ns;
	return err;
}

uint64_t tracker_followed_ns(const struct tracker *t, pid_t pid)
{
	const struct tracked_process *p = tracker_find(t, pid);

	return p ? p->followed_ns : now_ns();
}

uint32_t tracker_generation(const struct tracker *t, pid_t pid)
{
	const struct tracked_process *p = tracked_find(t, pid);

	return p ? p->generation : HT_GENERATION_NONE;
}

bool tracker_is_of(const struct tracker *t, pid_t pid, uint32_t generation)
{
	const struct tracked_process *p = tracked_find(t, pid);

	/* Within a life, generations only grow, by one for each exec; lives begin this far
	 * apart. */
	return p && generation / HT_GENERATION_STEP == p->generation / HT_GENERATION_STEP;
}

bool tracker_follows(const struct tracker *t, pid_t pid)
{
	return tracked_find(t, pid) != NULL;
}

int tracker_has_allocator(const struct tracker *t, pid_t pid)
{
	const struct tracked_process *p = tracked_find(t, pid);

	if (p && (p->is_waiting || p->has_busy_files))
		return -EAGAIN;
	return p && p->has_allocator;
}

pid_t tracker_running_at(const struct tracker *t, size_t i)
{
	return t->list.data[i].pid;
}

/* Generations wrap around. Right after an exec the old image counts until the new one is read. */
bool tracker_is_over(const struct tracker *t, pid_t pid, uint32_t generation)
{
	const struct tracked_process *p = tracked_find(t, pid);

	return !p || (int32_t)(generation - p->generation) < 0;
}

struct reclaim *tracker_reclaim(const struct tracker *t)
{
	return t->reclaim;
}

struct probes *tracker_probes(const struct tracker *t)
{
	return t->probes;
}

size_t tracker_running_cnt(const struct tracker *t)
{
	return t->list.cnt;
}

struct tracker_counts tracker_counts(const struct tracker *t)
{
	struct tracker_counts counts = { t->added_cnt, t->deleted_cnt, *probes_counts(t->probes) };
	struct probes_counts *c = &counts.probes;
	struct track_files_counts files;

	track_files_counts(t->files, &files);
	c->failed_cnt += t->failed_cnt + files.partly_read_cnt + files.given_up_cnt;
	if (t->failed_err)
		c->failed_err = t->failed_err;
	if (!c->failed_err && files.partly_read_cnt)
		c->failed_err = -EFBIG;
	if (!c->failed_err && files.given_up_cnt)
		c->failed_err = -ETIMEDOUT;
	return counts;
}

const char *tracker_most_unproven(const struct tracker *t, uint64_t *ret_cnt)
{
	const struct track_file *file = track_files_most_unproven(t->files, ret_cnt);

	return file ? file->path : NULL;
}

const struct instances *tracker_instances(const struct tracker *t)
{
	return &t->instances;
}
