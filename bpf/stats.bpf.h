/* SPDX-License-Identifier: MIT */
/* stats.bpf.h - counters and process events. */
#ifndef HT_STATS_BPF_H
#define HT_STATS_BPF_H

static __always_inline void stat_add(__u32 id, __u64 n)
{
	__u32 zero = 0;
	struct ht_counters *c = bpf_map_lookup_elem(&stats, &zero);

	/* Programs are preemptible: two of them may be on one CPU. */
	if (c && id < HT_STAT_CNT)
		__sync_fetch_and_add(&c->cnt[id], n);
}

static __always_inline void stat_inc(__u32 id)
{
	stat_add(id, 1);
}

/*
 * Hits are counted per process: user space sums them up for HT_STAT_HITS_*. A plain increment, several ns
 * cheaper on the path of every allocation. A preemption in between can lose one, which the overhead estimate
 * can bear.
 */
enum hit_kind { HIT_ALLOC, HIT_FREE };

/* returns: the return of this call is probed in any case. It is counted here, so that the return itself, which
 * the thread mostly does not wait for, need not look up its target. */
static __always_inline void hit_count(const struct ht_target *t, enum hit_kind kind, __u64 cookie,
				      bool returns)
{
	struct ht_hits *h = bpf_map_lookup_elem(&hits, &t->hits_idx);

	if (!h)
		return;
	if (kind == HIT_ALLOC)
		h->alloc_cnt++;
	else
		h->free_cnt++;
	if (returns)
		h->return_cnt++;
	if (HT_COOKIE_FLAGS(cookie) & HT_SITE_STEPPED)
		h->stepped_cnt++;
}

static __always_inline void hit_count_return(const struct ht_target *t)
{
	struct ht_hits *h = bpf_map_lookup_elem(&hits, &t->hits_idx);

	if (h)
		h->return_cnt++;
}

/* Count a sampled allocation, and the time that its stack took. */
static __always_inline void hit_sampled(const struct ht_target *t, __u64 stack_ns)
{
	struct ht_hits *h = bpf_map_lookup_elem(&hits, &t->hits_idx);

	if (!h)
		return;
	h->sample_cnt++;
	h->stack_ns += stack_ns;
}

static __always_inline void event_send(__u32 kind, __u32 tgid, __u32 generation, __u32 other,
				       __u64 addr)
{
	struct ht_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		stat_inc(HT_STAT_EVENTS_LOST);
		return;
	}
	e->kind = kind;
	e->tgid = tgid;
	e->generation = generation;
	e->other = other;
	e->time_ns = bpf_ktime_get_ns();
	e->addr = addr;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	bpf_ringbuf_submit(e, 0);
}

#endif
