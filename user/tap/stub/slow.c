/* SPDX-License-Identifier: MIT */
/*
 * slow.c - the slow path of the tap, in the process: handles blocks that are kept, or that may have been kept.
 *
 * It runs inside malloc and free of a program that knows nothing of it: no C library, no thread-locals, no
 * floating point, no stack protector, no relocations. entry.S calls it with all registers saved.
 *
 * The draw: a thread's counter starts at a number of bytes drawn from an exponential distribution with mean R.
 * The block that brings it below 0 is kept, so a block is kept with p = 1 - exp(-n / R), whatever went before.
 * Then the next number is drawn. A new rate counts from then on; each sample has the p of its own draw.
 *
 * A call inside another one (realloc that calls malloc) is not counted again. To know it, each slot lists the threads that
 * are in the slow path. Two threads may have the same slot: while one of them has the counter, the other draws for each of
 * its blocks alone, with the same p. (When the list was one mark for all, the other lost all that it allocated meanwhile.)
 */
#include <stdint.h>

#include "heaptap/abi.h"
#include "heaptap/draw.h"
#include "tap/tap_layout.h"

#define SATURATED 255
#define IMPOSSIBLE_BYTES (1ULL << 47) /* larger than the address space */
/* Without a rate: look for one after so many bytes. */
#define LOOK_BYTES (1 << 16)

enum after { AFTER_NOTHING, AFTER_TELL, AFTER_THROW };

/* Instead of a number of bytes: this call is a part of another one; the slot's counter is another thread's. */
#define LEFT_NESTED (1ULL << 62)
#define LEFT_GUEST (LEFT_NESTED + 1)

/* What entry.S has on the stack: the registers at the function's entry, then room for the results. */
struct tap_call {
	uint64_t arg[6];
	const struct tap_site *site;
	uint64_t saved_left; /* the counter before this call, LEFT_NESTED or LEFT_GUEST */
	uint64_t told_ptr, told_bytes, told_weight;
	uint64_t result;
	uint64_t told_free; /* a kept block that was freed; 0: none */
};
_Static_assert(sizeof(struct tap_call) == 104, "as in entry.S");
_Static_assert(sizeof(struct tap_header) == TAP_HEADER_BYTES, "as in the Makefile");

/* Called by entry.S. */
uint64_t tap_freed(uint64_t ptr);
void tap_before(struct tap_call *c);
enum after tap_after(struct tap_call *c);

extern const struct tap_header tap_header __attribute__((visibility("hidden")));

static inline struct tap_data *data(void)
{
	return (struct tap_data *)tap_header.data_addr;
}

static inline struct tap_control *control(void)
{
	return (struct tap_control *)tap_header.control_addr;
}

static inline uint64_t rate(void)
{
	return data()->mark ? control()->rate_bytes : 0;
}

static inline uint64_t thread_pointer(void)
{
	uint64_t tp;

	__asm__("mov %%fs:0, %0" : "=r"(tp));
	return tp;
}

static inline struct tap_slot *slot_of(struct tap_data *d, uint64_t tp)
{
	return (struct tap_slot *)((char *)d->slot + (tp * TAP_SLOT_FACTOR >> 32 & TAP_SLOT_MASK));
}

/*
 * The set of kept blocks, and the filter in front of it.
 */

static inline uint8_t *filter_of(struct tap_data *d, uint64_t ptr)
{
	return &d->filter[ptr >> 4 & (TAP_FILTER_CNT - 1)];
}

static void filter_add(struct tap_data *d, uint64_t ptr, int step)
{
	uint8_t *at = filter_of(d, ptr), old = __atomic_load_n(at, __ATOMIC_RELAXED);

	/* A full counter says "perhaps" for good. */
	while (old != SATURATED && (step > 0 || old) &&
	       !__atomic_compare_exchange_n(at, &old, (uint8_t)(old + step), 1, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
}

static inline uint64_t first_slot(uint64_t ptr)
{
	return ((ptr >> 4) * 0xd6e8feb86659fd93ULL >> (64 - TAP_LINE_SHIFT)) * TAP_LINE_SLOTS;
}

/* In the block's line or the next one: change the first slot that is `from` to `to`. */
static int set_change(struct tap_data *d, uint64_t ptr, uint64_t from, uint64_t to)
{
	for (uint64_t i = 0, first = first_slot(ptr); i < 2 * TAP_LINE_SLOTS; i++) {
		uint64_t *at = &d->set[(first + i) & (TAP_SET_SLOTS - 1)], expected = from;

		if (__atomic_load_n(at, __ATOMIC_RELAXED) == from &&
		    __atomic_compare_exchange_n(at, &expected, to, 0, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return 1;
	}
	return 0;
}

/* The filter first: a thread that finds 0 there does not look into the set. */
static int set_insert(struct tap_data *d, uint64_t ptr)
{
	filter_add(d, ptr, 1);
	if (set_change(d, ptr, 0, ptr))
		return 1;
	filter_add(d, ptr, -1);
	__atomic_fetch_add(&control()->dropped_cnt, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Take the block of a freeing call out of the set. 0: there is nothing to report. */
uint64_t tap_freed(uint64_t ptr)
{
	struct tap_data *d = data();

	if (!ptr || !*filter_of(d, ptr) || !set_change(d, ptr, ptr, 0))
		return 0;
	filter_add(d, ptr, -1);
	return ptr;
}

/*
 * Calls that allocate.
 */

/* The requested bytes. */
static uint64_t size_of(const struct tap_call *c)
{
	const struct tap_site *site = c->site;
	uint64_t size = c->arg[site->size_arg];

	if (site->count_arg != HT_ARG_NONE &&
	    __builtin_mul_overflow(size, c->arg[site->count_arg], &size))
		return UINT64_MAX;
	return size;
}

/* Only when there is a rate, which comes with a seed. Mixed, or a thread would draw what the thread before it draws
 * next. */
static uint64_t new_random(void)
{
	uint64_t seed = __atomic_add_fetch(&control()->seed, 0x9e3779b97f4a7c15ULL, __ATOMIC_RELAXED);

	return draw_random(&seed);
}

static uint64_t next_left(struct tap_slot *s, uint64_t rate_bytes)
{
	s->rate_bytes = rate_bytes;
	if (!rate_bytes)
		return LOOK_BYTES;
	if (rate_bytes == 1) /* all of them */
		return 0;
	if (!s->random)
		s->random = new_random();
	return draw_interval(&s->random, rate_bytes);
}

/* Returns the guest's place; -1: tp is none. */
static int find_guest(const struct tap_slot *s, uint64_t tp)
{
	int i = TAP_GUESTS_CAP;

	while (i-- && __atomic_load_n(&s->guest[i], __ATOMIC_RELAXED) != tp)
		;
	return i;
}

/* Returns what is to be saved_left. */
static uint64_t enter_as_guest(struct tap_slot *s, uint64_t tp)
{
	uint64_t left = __atomic_load_n(&s->left_bytes, __ATOMIC_RELAXED);

	/* The way in has counted, and would get above 0 with a few sizes of 2^62. */
	if ((int64_t)left < 0)
		__atomic_compare_exchange_n(&s->left_bytes, &left, UINT64_MAX, 0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	if (__atomic_load_n(&s->owner, __ATOMIC_RELAXED) == tp || find_guest(s, tp) >= 0)
		return LEFT_NESTED;
	for (int i = 0; i < TAP_GUESTS_CAP; i++) {
		uint64_t expected = 0;

		if (__atomic_compare_exchange_n(&s->guest[i], &expected, tp, 0, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_add(&s->guest_cnt, 1, __ATOMIC_SEQ_CST);
			return LEFT_GUEST;
		}
	}
	__atomic_fetch_add(&control()->dropped_cnt, 1, __ATOMIC_RELAXED);
	return LEFT_NESTED;
}

/* As enter_as_guest(). Two threads that find the slot empty at the same instant both have the counter: their blocks are
 * counted right, but a call inside one of them may be counted as well. A locked instruction would prevent that and make the
 * slow path a third slower. */
static uint64_t enter(struct tap_slot *s, const struct tap_site *site)
{
	const uint64_t tp = thread_pointer();
	uint64_t left;

	if (__atomic_load_n(&s->owner, __ATOMIC_RELAXED) ||
	    (__atomic_load_n(&s->guest_cnt, __ATOMIC_RELAXED) && find_guest(s, tp) >= 0))
		return enter_as_guest(s, tp);
	__atomic_store_n(&s->owner, tp, __ATOMIC_RELAXED);
	left = s->left_bytes;
	s->left_bytes = UINT64_MAX;
	return site->flags & TAP_SITE_COUNTS ? 0 : left;
}

static int has_counter(const struct tap_call *c)
{
	return c->saved_left != LEFT_NESTED && c->saved_left != LEFT_GUEST;
}

static void leave(struct tap_slot *s, const struct tap_call *c)
{
	int i;

	if (has_counter(c))
		__atomic_store_n(&s->owner, 0, __ATOMIC_RELEASE);
	if (c->saved_left != LEFT_GUEST)
		return;
	i = find_guest(s, thread_pointer());
	if (i < 0)
		return;
	__atomic_fetch_sub(&s->guest_cnt, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->guest[i], 0, __ATOMIC_RELEASE);
}

/* Called before the real call. */
void tap_before(struct tap_call *c)
{
	struct tap_slot *s = slot_of(data(), thread_pointer());

	c->saved_left = enter(s, c->site);
	/* Before the call, because after it another thread may have the address. Not when the call can only
	 * fail. */
	c->told_free = c->site->op == HT_OP_REALLOC && size_of(c) < IMPOSSIBLE_BYTES ?
			       tap_freed(c->arg[c->site->ptr_arg]) :
			       0;
}

/* A draw for this block alone. */
static uint64_t draw_guest(uint64_t rate_bytes, uint64_t size)
{
	uint64_t random;

	if (rate_bytes <= 1)
		return rate_bytes;
	random = new_random();
	return draw_interval(&random, rate_bytes) < size ? rate_bytes : 0;
}

/* If a block of that size is kept, return the rate, else 0. The counter goes on from here. */
static uint64_t draw(const struct tap_call *c, struct tap_slot *s, uint64_t size)
{
	uint64_t rate_bytes = rate(), left = c->saved_left, drawn_rate = s->rate_bytes;
	int is_over;

	if (left == LEFT_NESTED)
		return 0;
	if (left == LEFT_GUEST)
		return draw_guest(rate_bytes, size);
	if (!drawn_rate && rate_bytes) { /* the first draw with a rate */
		left = next_left(s, rate_bytes);
		drawn_rate = rate_bytes;
		is_over = left < size;
	} else {
		is_over = c->site->flags & TAP_SITE_COUNTS || left < size || (int64_t)left < 0;
	}
	s->left_bytes = is_over ? next_left(s, rate_bytes) : left - size;
	return is_over && rate_bytes ? drawn_rate : 0;
}

/* Called after the real call. told_free is reported whatever this returns. */
enum after tap_after(struct tap_call *c)
{
	const uint64_t old_kept = c->told_free;
	const struct tap_site *site = c->site;
	uint64_t size = size_of(c), rate_bytes, ptr = c->result;
	struct tap_slot *s = slot_of(data(), thread_pointer());

	c->told_free = 0;
	rate_bytes = draw(c, s, size);
	leave(s, c);
	if (site->ret == HT_RET_OUT)
		ptr = (uint32_t)c->result ? 0 : *(const uint64_t *)c->arg[site->ptr_arg];
	if (site->op == HT_OP_RESIZE)
		ptr = c->result >= size ? c->arg[site->ptr_arg] : 0;
	if (site->op == HT_OP_RESIZE && ptr)
		c->told_free = tap_freed(ptr);
	if (!ptr) {
		if (old_kept && size) /* the old block was not freed after all */
			__atomic_fetch_add(&control()->failed_cnt, 1, __ATOMIC_RELAXED);
		if (!(site->flags & TAP_SITE_THROWS))
			return AFTER_NOTHING;
		if (has_counter(c)) /* it comes by again */
			s->left_bytes += size;
		return AFTER_THROW;
	}
	if (!rate_bytes || !size || !set_insert(data(), ptr))
		return AFTER_NOTHING;
	c->told_ptr = ptr;
	c->told_bytes = size;
	c->told_weight = draw_weight(size, rate_bytes);
	return AFTER_TELL;
}
