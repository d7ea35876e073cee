/* SPDX-License-Identifier: MIT */
/*
 * reclaim.c - see reclaim.h.
 *
 * A cycle is a mark and sweep while probes go on. Its order makes it safe:
 *
 *   1. The epoch is incremented. From now on asking for a stack or a label set moves it to the new epoch
 *      (bpf/reclaim.bpf.h), and it stays.
 *   2. RECLAIM_GRACE_NS: by then, hits that asked before have put the stack's id where it can be seen:
 *      into a call under way (`pending`), a sample, or a sum.
 *   3. The maps that refer to others are walked: entries of ended images are deleted or noted, stacks
 *      and labels of the other entries are marked. A sample may move between `pending` and `live`
 *      meanwhile (realloc), so the calls are looked at before and after.
 *   4. Contexts and scopes of ended images are deleted, after everything that refers to them. Their
 *      numbers wait for the end of the next cycle, which takes out what a hit under way left meanwhile.
 *   5. Wait for readers of snapshots that are older than the marks.
 *   6. Unmarked stacks and label sets of an older epoch are deleted, by a BPF program: only there the
 *      epoch and the deletion are one decision.
 *
 * A reader may take long (names of a large program), and meanwhile processes come and go. So while 5 waits, 2 to 4 are
 * done again for those that have ended since: a round that marks nothing and leaves the epoch as it is. Marks do not get
 * old: whatever was asked for since 1 has the new epoch.
 *
 * A walk over a hash map sees every entry that exists from the walk's beginning to its end, however long
 * it takes: the number of buckets never changes.
 */
#include "kernel/reclaim.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kernel/engine_priv.h"
#include "kernel/map_walk.h"

/*
 * While a cycle lasts, more processes end and leave something for the next one: the next cycle may take longer than
 * this one, and the one after it longer still, until the maps are full; and each snapshot reads what is left. So
 * slices are longer while a cycle finds many entries to delete.
 */
#define SLICE_GROWTH 4
/* Entries read for each one to be deleted: with more, what is left is little beside what is in use. */
#define READ_PER_DOOMED 4

enum phase {
	PHASE_IDLE,
	PHASE_GRACE,
	PHASE_CALLS,
	PHASE_CONTEXTS,
	PHASE_SCOPES,
	PHASE_LIVE,
	PHASE_IMAGES,
	PHASE_TOTALS,
	PHASE_BINS,
	PHASE_INSTANCES,
	PHASE_CALLS_AGAIN,
	PHASE_NUMBERS,
	PHASE_READERS,
	PHASE_STACKS,
	PHASE_LABELS,
	PHASE_END,
	PHASE_CNT
};

struct reclaim {
	struct engine *e;
	struct reclaim_ops ops;
	void *ctx;
	struct reclaim_counts counts;
	bool is_asked;
	enum phase phase;
	bool has_marks; /* those of this cycle are complete: this is a round while it waits for readers */
	bool had_rounds; /* ... and what that left to sweep is the next cycle's */
	uint64_t grace_ns, began_ns, marked_ns;
	struct map_cursor cursor; /* of the phase's map */
	VEC(char) doomed; /* keys to be deleted after this batch */
	uint64_t read_cnt, doomed_cnt; /* entries, in this cycle */
	/* of ended images: noted in this round, and waiting ones */
	struct hmap context_ids, slots;
	VEC(struct ht_context) contexts;
	VEC(uint32_t) new_context_ids; /* ids of `contexts` */
	VEC(struct ht_scope_key) scopes;
	VEC(uint32_t) new_slots;
	VEC(uint32_t) waiting_context_ids, waiting_slots;
	/* marks */
	struct hmap stacks, label_sets;
	struct reclaim_files files;
};

int reclaim_new(struct engine *e, const struct reclaim_ops *ops, void *ctx, uint64_t grace_ns,
		struct reclaim **ret)
{
	struct reclaim *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->e = e;
	r->ops = *ops;
	r->ctx = ctx;
	r->grace_ns = grace_ns;
	hmap_init(&r->context_ids, sizeof(uint32_t));
	hmap_init(&r->slots, sizeof(uint32_t));
	hmap_init(&r->stacks, sizeof(uint64_t));
	hmap_init(&r->label_sets, sizeof(uint64_t));
	*ret = r;
	return 0;
}

/* Release what is kept for one round. */
static void forget_round(struct reclaim *r)
{
	map_cursor_release(&r->cursor);
	vec_release(&r->doomed);
	hmap_release(&r->context_ids);
	hmap_release(&r->slots);
	vec_release(&r->contexts);
	vec_release(&r->new_context_ids);
	vec_release(&r->scopes);
	vec_release(&r->new_slots);
}

/* ... for one cycle. */
static void forget_cycle(struct reclaim *r)
{
	forget_round(r);
	hmap_release(&r->stacks);
	hmap_release(&r->label_sets);
	r->has_marks = r->had_rounds = false;
	r->phase = PHASE_IDLE;
}

void reclaim_free(struct reclaim *r)
{
	if (!r)
		return;
	forget_cycle(r);
	vec_release(&r->waiting_context_ids);
	vec_release(&r->waiting_slots);
	free(r);
}

void reclaim_ask(struct reclaim *r)
{
	r->is_asked = true;
}

const struct reclaim_counts *reclaim_counts(const struct reclaim *r)
{
	return &r->counts;
}

static bool is_over(const struct reclaim *r, uint32_t tgid, uint32_t generation)
{
	return r->ops.is_over(r->ctx, (pid_t)tgid, generation);
}

/* Delete the entry once the batch has been read. */
static int doom(struct reclaim *r, const void *key, size_t key_bytes)
{
	int err = vec_reserve(&r->doomed, r->doomed.cnt + key_bytes);

	if (err)
		return err;
	memcpy(r->doomed.data + r->doomed.cnt, key, key_bytes);
	r->doomed.cnt += key_bytes;
	r->doomed_cnt++;
	return 0;
}

static int mark(const struct reclaim *r, struct hmap *set, uint64_t id)
{
	return id && !r->has_marks ? hmap_put(set, &id, 0) : 0;
}

static int on_calls(void *ctx, const void *key, const void *value)
{
	const struct ht_calls *calls = value;
	struct reclaim *r = ctx;
	int err = 0;

	(void)key;
	for (size_t i = 0; i < HT_PENDING_CAP && !err; i++) {
		const struct ht_call *c = &calls->call[i];

		if (!c->sp)
			continue;
		/* Mark both, whatever the flags say: the call may be in the middle of being noted. */
		err = mark(r, &r->stacks, c->fresh.stack_id);
		if (!err)
			err = mark(r, &r->stacks, c->old.stack_id);
	}
	return err;
}

static int on_context(void *ctx, const void *key, const void *value)
{
	const struct ht_context_value *v = value;
	const struct ht_context *k = key;
	struct reclaim *r = ctx;
	int err;

	if (!is_over(r, k->tgid, k->generation))
		return mark(r, &r->label_sets, k->labels_id);
	err = hmap_put(&r->context_ids, &v->id, 0);
	if (!err)
		err = vec_push(&r->contexts, *k);
	return err ? err : vec_push(&r->new_context_ids, v->id);
}

static int on_scope(void *ctx, const void *key, const void *value)
{
	const struct ht_scope_key *k = key;
	const struct ht_scope *v = value;
	struct reclaim *r = ctx;
	int err;

	if (!is_over(r, k->tgid, k->generation))
		return 0;
	err = hmap_put(&r->slots, &v->slot, 0);
	if (!err)
		err = vec_push(&r->scopes, *k);
	return err ? err : vec_push(&r->new_slots, v->slot);
}

/* An entry of a shared table was taken out. The entry count of its image, which is over, does not matter any
 * more. */
static void give_share(struct engine *e, enum ht_shared table)
{
	if (e->skel->rodata->ht_share_cap[table])
		__atomic_fetch_sub(&e->skel->bss->share_used[table], 1, __ATOMIC_SEQ_CST);
}

/* The entry's slot, as filter_slot() in bpf/live.bpf.h. */
static uint32_t *filter_slot(struct engine *e, const struct ht_live_key *key)
{
	uint64_t h = ((key->addr >> 4) ^ ((uint64_t)key->tgid << 20)) * 0x9e3779b97f4a7c15ULL;

	return &e->skel->bss->live_filter[(h >> (64 - HT_FILTER_SHIFT)) & (HT_FILTER_CNT - 1)];
}

static int on_live(void *ctx, const void *key, const void *value)
{
	const struct ht_live_key *k = key;
	const struct ht_live *v = value;
	struct reclaim *r = ctx;

	if (!is_over(r, k->tgid, k->generation))
		return mark(r, &r->stacks, v->stack_id);
	return doom(r, k, sizeof(*k));
}

static void on_live_gone(void *ctx, const void *key)
{
	struct reclaim *r = ctx;

	__atomic_fetch_sub(filter_slot(r->e, key), 1, __ATOMIC_SEQ_CST);
	give_share(r->e, HT_SHARED_LIVE);
	r->counts.samples++;
}

static int on_image(void *ctx, const void *key, const void *value)
{
	const struct ht_image_key *k = key;
	struct reclaim *r = ctx;

	(void)value;
	return is_over(r, k->tgid, k->generation) ? doom(r, k, sizeof(*k)) : 0;
}

static void on_image_gone(void *ctx, const void *key)
{
	(void)ctx, (void)key;
}

static int on_total(void *ctx, const void *key, const void *value)
{
	const struct ht_total_key *k = key;
	struct reclaim *r = ctx;

	(void)value;
	if (!hmap_get(&r->context_ids, &k->context_id))
		return mark(r, &r->stacks, k->stack_id);
	return doom(r, k, sizeof(*k));
}

static void on_total_gone(void *ctx, const void *key)
{
	struct reclaim *r = ctx;

	(void)key;
	give_share(r->e, HT_SHARED_TOTALS);
	r->counts.sums++;
}

/* The bin's stack is marked by the sum that the bin is a part of. */
static int on_bin(void *ctx, const void *key, const void *value)
{
	const struct ht_bin_key *k = key;
	struct reclaim *r = ctx;

	(void)value;
	return hmap_get(&r->context_ids, &k->context_id) ? doom(r, k, sizeof(*k)) : 0;
}

static void on_bin_gone(void *ctx, const void *key)
{
	struct reclaim *r = ctx;

	(void)key;
	give_share(r->e, HT_SHARED_BINS);
	r->counts.bins++;
}

/* key: in `contexts`. There is room in waiting_context_ids. */
static void on_context_gone(void *ctx, const void *key)
{
	struct reclaim *r = ctx;
	size_t i = (size_t)((const struct ht_context *)key - r->contexts.data);

	give_share(r->e, HT_SHARED_CONTEXTS);
	vec_push(&r->waiting_context_ids, r->new_context_ids.data[i]);
	r->counts.contexts++;
}

static void on_scope_gone(void *ctx, const void *key)
{
	struct reclaim *r = ctx;
	size_t i = (size_t)((const struct ht_scope_key *)key - r->scopes.data);

	give_share(r->e, HT_SHARED_SCOPES);
	vec_push(&r->waiting_slots, r->new_slots.data[i]);
	r->counts.scopes++;
}

static int on_instance(void *ctx, const void *key, const void *value)
{
	const struct ht_instance_key *k = key;
	struct reclaim *r = ctx;

	(void)value;
	if (hmap_get(&r->slots, &k->task_slot))
		r->counts.tasks += !engine_del_instance(r->e, k);
	return 0;
}

/* true: the entry has been taken out. */
static bool sweep(const struct reclaim *r, uint64_t what, uint64_t id)
{
	uint64_t args[3] = { what, id };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	return !bpf_prog_test_run_opts(bpf_program__fd(r->e->skel->progs.ht_sweep), &opts) &&
	       opts.retval == 1;
}

static void note_files(struct reclaim *r, const struct ht_stack *s)
{
	for (uint32_t i = 0; i < s->frame_cnt && i < HT_FRAMES_CAP; i++) {
		uint32_t id = s->frame[i] >> HT_FRAME_VADDR_BITS;

		if (id < HT_FILES_CAP)
			r->files.bits[id >> 3] |= 1 << (id & 7);
	}
}

static int on_stack(void *ctx, const void *key, const void *value)
{
	const struct ht_stack *s = value;
	struct reclaim *r = ctx;
	uint64_t id;

	memcpy(&id, key, sizeof(id));
	if (s->epoch != r->e->skel->bss->reclaim_epoch && !hmap_get(&r->stacks, &id) &&
	    sweep(r, HT_SWEEP_STACK, id))
		r->counts.stacks++;
	else
		note_files(r, s);
	return 0;
}

static int on_labels(void *ctx, const void *key, const void *value)
{
	const struct ht_labels *l = value;
	struct reclaim *r = ctx;
	uint64_t id;

	memcpy(&id, key, sizeof(id));
	if (l->epoch != r->e->skel->bss->reclaim_epoch && !hmap_get(&r->label_sets, &id))
		r->counts.label_sets += sweep(r, HT_SWEEP_LABELS, id);
	return 0;
}

/* The map that a phase walks; .fn NULL: none. */
static struct map_walk walk_of(struct reclaim *r)
{
	const struct map_walk calls = { bpf_map__fd(r->e->skel->maps.pending), sizeof(uint32_t),
					sizeof(struct ht_calls), on_calls, r };

	switch (r->phase) {
	case PHASE_CALLS:
	case PHASE_CALLS_AGAIN:
		return calls;
	case PHASE_CONTEXTS:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.contexts),
					  sizeof(struct ht_context),
					  sizeof(struct ht_context_value), on_context, r };
	case PHASE_SCOPES:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.scopes),
					  sizeof(struct ht_scope_key), sizeof(struct ht_scope),
					  on_scope, r };
	case PHASE_LIVE:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.live),
					  sizeof(struct ht_live_key), sizeof(struct ht_live),
					  on_live, r };
	case PHASE_IMAGES:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.images),
					  sizeof(struct ht_image_key), sizeof(struct ht_image),
					  on_image, r };
	case PHASE_TOTALS:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.totals),
					  sizeof(struct ht_total_key), sizeof(struct ht_total),
					  on_total, r };
	case PHASE_BINS:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.bins),
					  sizeof(struct ht_bin_key), sizeof(struct ht_bin), on_bin,
					  r };
	case PHASE_INSTANCES:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.instances),
					  sizeof(struct ht_instance_key),
					  sizeof(struct ht_instance), on_instance, r };
	case PHASE_STACKS:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.stacks), sizeof(uint64_t),
					  sizeof(struct ht_stack), on_stack, r };
	case PHASE_LABELS:
		return (struct map_walk){ bpf_map__fd(r->e->skel->maps.label_sets),
					  sizeof(uint64_t), sizeof(struct ht_labels), on_labels,
					  r };
	default:
		return (struct map_walk){ .fd = -1 };
	}
}

static int delete_doomed(struct reclaim *r, const struct map_walk *walk)
{
	static const map_deleted_fn fns[PHASE_CNT] = { [PHASE_LIVE] = on_live_gone,
						       [PHASE_IMAGES] = on_image_gone,
						       [PHASE_TOTALS] = on_total_gone,
						       [PHASE_BINS] = on_bin_gone };
	size_t cnt = r->doomed.cnt / walk->key_bytes;
	int err;

	if (!cnt)
		return 0;
	err = map_delete_keys(walk->fd, r->doomed.data, walk->key_bytes, cnt, fns[r->phase], r);
	r->doomed.cnt = 0;
	return err;
}

/* One batch of the phase's map. */
static int read_batch(struct reclaim *r, const struct map_walk *walk)
{
	uint32_t before_cnt = r->cursor.read_cnt;
	int err = map_cursor_next(&r->cursor, walk);

	r->read_cnt += r->cursor.read_cnt - before_cnt;
	return err ? err : delete_doomed(r, walk);
}

static int begin_round(struct reclaim *r)
{
	uint32_t *number;
	int err = 0;

	r->is_asked = false;
	r->began_ns = now_ns();
	r->read_cnt = r->doomed_cnt = 0;
	vec_each(&r->waiting_context_ids, number)
		if (!err)
			err = hmap_put(&r->context_ids, number, 0);
	vec_each(&r->waiting_slots, number)
		if (!err)
			err = hmap_put(&r->slots, number, 0);
	if (!err && r->ops.on_begin)
		r->ops.on_begin(r->ctx);
	return err;
}

static int begin(struct reclaim *r)
{
	uint32_t *epoch = &r->e->skel->bss->reclaim_epoch;

	memset(&r->files, 0, sizeof(r->files));
	__atomic_store_n(epoch, *epoch + 1 == HT_EPOCH_DEAD ? 0 : *epoch + 1, __ATOMIC_SEQ_CST);
	return begin_round(r);
}

/* Give back the numbers that have waited for a round. A number that cannot be given back is not reused. */
static void hand_back(struct reclaim *r)
{
	static const struct ht_scope_sums zero;
	uint32_t *number;

	vec_each(&r->waiting_context_ids, number)
		bpf_map_update_elem(bpf_map__fd(r->e->skel->maps.free_contexts), NULL, number,
				    BPF_ANY);
	vec_each(&r->waiting_slots, number)
		if (!bpf_map_update_elem(bpf_map__fd(r->e->skel->maps.scope_sums), number, &zero,
					 BPF_ANY))
			bpf_map_update_elem(bpf_map__fd(r->e->skel->maps.free_slots), NULL, number,
					    BPF_ANY);
	r->waiting_context_ids.cnt = r->waiting_slots.cnt = 0;
}

/* Nothing in the maps refers any more to contexts and scopes that were noted. */
static int delete_numbers(struct reclaim *r)
{
	int err;

	/* First of all: what has been deleted must find room. */
	if (vec_reserve(&r->waiting_context_ids, r->new_context_ids.cnt) ||
	    vec_reserve(&r->waiting_slots, r->new_slots.cnt))
		return -ENOMEM;
	hand_back(r);
	err = map_delete_keys(bpf_map__fd(r->e->skel->maps.scopes), r->scopes.data,
			      sizeof(*r->scopes.data), r->scopes.cnt, on_scope_gone, r);
	if (!err)
		err = map_delete_keys(bpf_map__fd(r->e->skel->maps.contexts), r->contexts.data,
				      sizeof(*r->contexts.data), r->contexts.cnt, on_context_gone,
				      r);
	if (err)
		return err;
	r->is_asked |= r->waiting_context_ids.cnt || r->waiting_slots.cnt;
	forget_round(r);
	r->has_marks = true;
	if (r->ops.on_gone)
		r->ops.on_gone(r->ctx);
	return 0;
}

static void end(struct reclaim *r)
{
	r->counts.cycles++;
	r->is_asked |= r->had_rounds;
	forget_cycle(r);
	if (r->ops.on_end)
		r->ops.on_end(r->ctx, &r->files);
}

/* Sweep, or wait for readers; what has ended meanwhile does not wait. */
static int pass_readers(struct reclaim *r, uint64_t readers_since_ns, bool *ret_waits)
{
	int err;

	if (readers_since_ns >= r->marked_ns) {
		r->phase++;
		return 0;
	}
	*ret_waits = !r->is_asked;
	if (*ret_waits)
		return 0;
	err = begin_round(r);
	r->had_rounds = true;
	r->phase = PHASE_GRACE;
	return err;
}

/* Do one batch, or step to the next phase. *ret_waits: there is nothing to do for now. */
static int step(struct reclaim *r, uint64_t readers_since_ns, bool *ret_waits)
{
	const struct map_walk walk = walk_of(r);
	int err = 0;

	switch (r->phase) {
	case PHASE_IDLE:
		*ret_waits = !r->is_asked;
		err = *ret_waits ? 0 : begin(r);
		break;
	case PHASE_GRACE:
		*ret_waits = now_ns() < r->began_ns + r->grace_ns;
		break;
	case PHASE_NUMBERS:
		err = delete_numbers(r);
		break;
	case PHASE_READERS:
		return pass_readers(r, readers_since_ns, ret_waits);
	case PHASE_END:
		end(r);
		return 0;
	default:
		err = read_batch(r, &walk);
		if (err || !r->cursor.at_end)
			return err;
		map_cursor_release(&r->cursor);
		if (r->phase == PHASE_CALLS_AGAIN && !r->has_marks)
			r->marked_ns = now_ns();
		break;
	}
	if (!err && !*ret_waits)
		r->phase++;
	return err;
}

/* By what the length of a slice is multiplied. */
static uint64_t slice_growth(const struct reclaim *r)
{
	bool is_little = r->doomed_cnt * READ_PER_DOOMED < r->read_cnt;

	return r->phase == PHASE_IDLE || is_little ? 1 : SLICE_GROWTH;
}

int reclaim_run(struct reclaim *r, uint64_t readers_since_ns, uint64_t budget_ns)
{
	/* Others that want the processor too would else take the slice, and what they leave behind would pile up. */
	uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + budget_ns * slice_growth(r);
	bool waits = false;
	int err;

	do {
		err = step(r, readers_since_ns, &waits);
	} while (!err && !waits && r->phase != PHASE_IDLE &&
		 clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns);
	if (err) { /* start again: deleted entries are gone already */
		forget_cycle(r);
		r->is_asked = true;
	}
	return err;
}
