/* SPDX-License-Identifier: MIT */
/* governor_tally.c - see governor_priv.h. */
#include "track/governor_priv.h"

#include <math.h>

#include "track/governor.h"

void governor_tally_add(struct governor_tally *t, const struct governor_view *v)
{
	if (isnan(v->overall.cpu_share) && v->cpu_ns > 0)
		t->is_cost_unknown = true;
	else if (v->cpu_ns > 0)
		t->cost_ns += v->overall.cpu_share * v->cpu_ns;
	t->overhead_one_cpu = v->overall.one_cpu;
	t->cpu_ns += v->cpu_ns;
	/* The limit is one for each process, so the most expensive one tells which limit would
	 * do. */
	if (v->full.cpu_share > t->full_share) {
		t->full_share = v->full.cpu_share;
		t->full_one_cpu = v->full.one_cpu;
	}
	t->limit.cpu_share = fmax(t->limit.cpu_share, v->limit.cpu_share);
	t->limit.one_cpu = fmax(t->limit.one_cpu, v->limit.one_cpu);
	if (!v->has_inuse)
		t->unknown_cnt++;
	else if (v->inuse_ns > t->inuse_ns)
		t->inuse_ns = v->inuse_ns;
	if (!t->cnt || v->watched_ns < t->watched_ns)
		t->watched_ns = v->watched_ns;
	if (!v->was_always_recorded)
		t->was_not_always_recorded = true;
	t->cnt++;
}

void governor_tally_fill(const struct governor_tally *t, int64_t epoch_off_ns, struct recording *r)
{
	bool has_cost = t->cpu_ns > 0 && !t->is_cost_unknown;
	int64_t watched_ns = (int64_t)t->watched_ns;

	r->overhead_share = has_cost ? t->cost_ns / t->cpu_ns : NAN;
	r->overhead_one_cpu = has_cost && t->cnt == 1 ? t->overhead_one_cpu : NAN;
	r->full_share = t->full_share > 0 ? t->full_share : NAN;
	r->full_one_cpu = t->full_share > 0 ? t->full_one_cpu : NAN;
	r->limit = t->limit;
	r->inuse = RECORDING_INUSE_ALL;
	r->inuse_since_ns = 0;
	if (t->cnt && t->unknown_cnt == t->cnt) {
		r->inuse = RECORDING_INUSE_UNKNOWN;
	} else if (t->inuse_ns) {
		r->inuse = RECORDING_INUSE_SINCE;
		r->inuse_since_ns = (int64_t)t->inuse_ns + epoch_off_ns;
	}
	if (t->unknown_cnt)
		r->is_lossy = true;
	r->watched_ns = r->duration_ns;
	if (t->was_not_always_recorded && watched_ns < r->duration_ns)
		r->watched_ns = watched_ns;
}
