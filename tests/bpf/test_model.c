/* SPDX-License-Identifier: MIT */
/*
 * test_model.c - thousands of random calls of the allocator: what the kernel's map holds afterwards is what the
 * accounting rules say (ledger.h), in every attach mode that this kernel has.
 */
#include "rig.h"

#include <malloc.h>

#include "ledger.h"

#define SLOT_CNT 64
#define CALL_CNT 1000
#define SAMPLED_RATE_BYTES 700

enum call_kind { CALL_ALLOC, CALL_FREE, CALL_REALLOC };
/* One call, as the child writes it down. */
enum { WORD_KIND, WORD_OLD, WORD_SIZE, WORD_NEW, WORD_CNT };
_Static_assert(CALL_CNT *WORD_CNT <= RIG_OUT_CNT, "calls that are written down");

/* Hidden from the compiler, which knows malloc and free and would leave calls out. */
static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_calloc)(size_t, size_t) = calloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void *(*volatile do_memalign)(size_t, size_t) = memalign;
static void (*volatile do_free)(void *) = free;

static uint64_t random_below(uint64_t *seed, uint64_t bound)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*seed >> 33) % bound;
}

static void *allocate(uint64_t kind, size_t bytes)
{
	if (kind == 0)
		return do_calloc(1, bytes);
	if (kind == 1)
		return do_memalign(64, bytes);
	return do_malloc(bytes);
}

static void step_random_calls(volatile uint64_t *out)
{
	static void *slots[SLOT_CNT];
	uint64_t seed = 7;

	for (size_t i = 0; i < CALL_CNT; i++, out += WORD_CNT) {
		void **slot = &slots[random_below(&seed, SLOT_CNT)];
		/* One in 32 is more than there can be. */
		size_t bytes =
			random_below(&seed, 32) ? 1 + random_below(&seed, 3000) : PTRDIFF_MAX;
		uint64_t how = random_below(&seed, 8);
		void *fresh;

		out[WORD_OLD] = (uintptr_t)*slot;
		out[WORD_SIZE] = bytes;
		if (*slot && how < 4) {
			out[WORD_KIND] = CALL_FREE;
			do_free(*slot);
			*slot = NULL;
		} else if (*slot) {
			out[WORD_KIND] = CALL_REALLOC;
			fresh = do_realloc(*slot, bytes);
			out[WORD_NEW] = (uintptr_t)fresh;
			if (fresh)
				*slot = fresh;
		} else {
			out[WORD_KIND] = CALL_ALLOC;
			*slot = allocate(how, bytes);
			out[WORD_NEW] = (uintptr_t)*slot;
		}
	}
}

/* What must be outstanding when everything is kept. */
static struct ledger *replay(const volatile uint64_t *out)
{
	struct ledger *l = NULL;

	assert_int_equal(ledger_new(&l), 0);
	for (size_t i = 0; i < CALL_CNT; i++, out += WORD_CNT) {
		struct ledger_block block;
		bool was_held;

		if (out[WORD_KIND] == CALL_FREE) {
			ledger_release(l, out[WORD_OLD]);
		} else if (out[WORD_KIND] == CALL_REALLOC) {
			ledger_realloc_enter(l, out[WORD_OLD], &was_held, &block);
			assert_true(was_held);
			assert_int_equal(ledger_realloc_leave(l, was_held, &block, out[WORD_NEW],
							      out[WORD_SIZE], 0, 1),
					 0);
		} else {
			assert_int_equal(ledger_alloc(l, out[WORD_NEW], out[WORD_SIZE], 0, 1), 0);
		}
	}
	return l;
}

struct seen {
	const struct ledger *ledger;
	struct estimate inuse;
	size_t cnt, wrong_cnt;
};

static int compare_block(void *ctx, const struct ht_live_key *k, const struct ht_live *v)
{
	struct seen *seen = ctx;
	const struct ledger_block *block = ledger_find(seen->ledger, k->addr);

	seen->cnt++;
	if (!block || block->size_bytes != v->size_bytes)
		seen->wrong_cnt++;
	else
		estimate_add(&seen->inuse, v->size_bytes,
			     estimate_threshold_probability(v->threshold));
	return 0;
}

static struct rig *run(enum attach_mode mode, uint64_t rate_bytes, struct ledger **ret,
		       struct seen *seen)
{
	struct rig *rig = rig_open(mode, rate_bytes, 4096, 1024);

	rig_do(rig, step_random_calls);
	*ret = replay(rig->out);
	*seen = (struct seen){ .ledger = *ret };
	assert_int_equal(engine_each_live(rig->engine, compare_block, seen), 0);
	assert_int_equal(seen->wrong_cnt, 0);
	return rig;
}

TEST(test_every_block)
{
	struct ledger *l;
	struct seen seen;
	struct rig *rig = run(rig_mode(state), 1, &l, &seen);

	assert_true(ledger_block_cnt(l) > SLOT_CNT / 4);
	assert_int_equal(seen.cnt, ledger_block_cnt(l));
	assert_true(ledger_counts(l).failed_calls > 0);
	assert_int_equal(rig_stat(rig, HT_STAT_FAILED_CALLS), ledger_counts(l).failed_calls);
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), ledger_counts(l).missed_frees);
	ledger_free(l);
}

/* Of what is outstanding a part, with weights that come to the whole: by chance not, 1 in a million times. */
TEST(test_samples)
{
	struct ledger *l;
	struct seen seen;
	double held;
	struct rig *rig = run(rig_mode(state), SAMPLED_RATE_BYTES, &l, &seen);

	held = ledger_total(l).inuse.bytes;
	assert_true(seen.cnt > 0 && seen.cnt < ledger_block_cnt(l));
	assert_true(fabs(seen.inuse.bytes - held) < 5 * sqrt(seen.inuse.bytes_variance));
	assert_int_equal(rig_stat(rig, HT_STAT_MISSED_FREE), 0);
	ledger_free(l);
}

RUN_RIG_TESTS()
