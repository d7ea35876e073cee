/* SPDX-License-Identifier: MIT */
/*
 * slow.c - the slow path of the tap, in the process: handles blocks that are kept, or that may have been kept.
 *
 * It runs inside malloc and free of a program that knows nothing of it: no C library, no thread-locals, no
 * floating point, no stack protector, no relocations. entry.S calls it with all registers saved. It reads the thread
 * pointer (rdfsbase), never what it points to: a thread may have none.
 *
 * The draw: a slot's counter starts at a number of bytes drawn from an exponential distribution with mean R.
 * The block that brings it below 0 is kept, so a block is kept with p = 1 - exp(-n / R), whatever went before.
 * Then the next number is drawn. A new rate counts from then on; each sample has the p of its own draw. That nothing
 * before it matters also means: which calls use which slot does not matter, nor bytes that are counted for nothing, nor
 * that a counter is drawn anew at any moment.
 *
 * A call inside another one (realloc that calls malloc) is not counted again. To know it, the threads that are in the slow
 * path are listed, in the data of each tapped file; a call is also inside one of another file's (a library in front
 * of malloc). Who is in leaves by returning. A thread that leaves otherwise, by longjmp, an exception or its end, stays
 * listed, with the stack pointer of that call: one at the same place or above it shows that it is over.
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

/* What entry.S has on the stack. */
struct tap_call {
	uint64_t arg[6], rax, r10, r11; /* at the function's entry */
	uint64_t out[8], result; /* after the real call: rdi, rsi, rdx, rcx, r8 to r11; rax */
	uint64_t real_addr, real_arg[2]; /* the real call, and its first two arguments */
	const struct tap_site *site;
	uint64_t rate_bytes; /* the block is kept, and was drawn with this rate; 0: it is not */
	uint64_t told_ptr, told_bytes, told_weight;
	uint64_t told_free; /* a kept block that was freed; 0: none */
	uint64_t is_in; /* the thread is listed for this call */
	uint64_t idx; /* of the site; at the end, the address to jump to */
};
_Static_assert(sizeof(struct tap_call) == 232, "as in entry.S");
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

	__asm__("rdfsbase %0" : "=r"(tp));
	return tp;
}

/* The stack pointer at the function's entry. */
static inline uint64_t entry_sp(const struct tap_call *c)
{
	return (uint64_t)(c + 1);
}

static inline struct tap_slot *slot_of(struct tap_data *d, uint64_t sp)
{
	uint32_t hash = (uint32_t)(sp >> TAP_STACK_SHIFT) * TAP_SLOT_FACTOR;

	return (struct tap_slot *)((char *)d->slot + (hash >> TAP_SLOT_SHIFT & TAP_SLOT_MASK));
}

/*
 * The set of kept blocks, and the filter in front of it.
 */

static inline uint8_t *filter_of(struct tap_data *d, uint64_t ptr)
{
	return &d->filter[tap_filter_idx(ptr)];
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

/* In the block's line or the next one: change the first slot that is `from` to `to`. */
static int set_change(struct tap_data *d, uint64_t ptr, uint64_t from, uint64_t to)
{
	for (uint64_t i = 0, first = tap_set_first(ptr); i < 2 * TAP_LINE_SLOTS; i++) {
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

/* Only when there is a rate, which comes with a seed. Mixed, or a slot would draw what the slot before it draws
 * next. */
static uint64_t new_random(void)
{
	uint64_t seed =
		__atomic_add_fetch(&control()->seed, 0x9e3779b97f4a7c15ULL, __ATOMIC_RELAXED);

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

/*
 * Who is in.
 */

static inline struct tap_inside *inside_line(struct tap_data *d, uint64_t tp)
{
	return d->inside[tp * 0xd6e8feb86659fd93ULL >> 32 & (TAP_INSIDE_LINES - 1)];
}

/* Is the thread in a call of this tap that is not over? */
static int is_in(struct tap_data *d, uint64_t tp, uint64_t sp)
{
	const struct tap_inside *line = inside_line(d, tp);

	for (int i = 0; i < TAP_INSIDE_LINE; i++)
		if (__atomic_load_n(&line[i].tp, __ATOMIC_RELAXED) == tp)
			return __atomic_load_n(&line[i].sp, __ATOMIC_RELAXED) > sp;
	return 0;
}

static int is_in_peer(const struct tap_data *d, uint64_t tp, uint64_t sp)
{
	for (int i = 0; i < TAP_PEERS_CAP; i++) {
		uint64_t addr = __atomic_load_n(&d->peer_addr[i], __ATOMIC_RELAXED);

		if (!addr)
			return 0;
		if (is_in((struct tap_data *)addr, tp, sp))
			return 1;
	}
	return 0;
}

enum enter { ENTER_IN, ENTER_ALONE, ENTER_NESTED, ENTER_NO_ROOM };

/* Two threads that find the same place empty at the same instant both take it: a call inside the one of them that loses
 * it may be counted as well. A locked instruction would prevent that and make the slow path a third slower. */
static enum enter enter(struct tap_data *d, uint64_t sp)
{
	const uint64_t tp = thread_pointer();
	struct tap_inside *line = inside_line(d, tp), *place = 0;

	if (!tp) /* cannot be told from others like it */
		return ENTER_ALONE;
	if (is_in(d, tp, sp) || is_in_peer(d, tp, sp))
		return ENTER_NESTED;
	for (int i = 0; i < TAP_INSIDE_LINE; i++) {
		uint64_t there = __atomic_load_n(&line[i].tp, __ATOMIC_RELAXED);

		if (there == tp) { /* of a call that is over */
			place = &line[i];
			break;
		}
		if (!there && !place)
			place = &line[i];
	}
	if (!place)
		return ENTER_NO_ROOM;
	/* In this order: a signal handler may come between. */
	__atomic_store_n(&place->sp, sp, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&place->tp, tp, __ATOMIC_RELAXED);
	return ENTER_IN;
}

/* Whatever stack pointer is there: of two threads that took the place at once it may be the other's. */
static void leave(struct tap_data *d)
{
	const uint64_t tp = thread_pointer();
	struct tap_inside *line = inside_line(d, tp);

	for (int i = 0; i < TAP_INSIDE_LINE; i++)
		if (__atomic_load_n(&line[i].tp, __ATOMIC_RELAXED) == tp)
			__atomic_store_n(&line[i].tp, 0, __ATOMIC_RELEASE);
}

/*
 * Draws.
 */

/* Is a block of that size kept? A draw for it alone. */
static int draw_alone(uint64_t rate_bytes, uint64_t size)
{
	uint64_t random;

	if (rate_bytes <= 1)
		return rate_bytes && size;
	random = new_random();
	return draw_interval(&random, rate_bytes) < size;
}

/* The rate by which a block of that size is kept; 0: it is not. The way in has taken the size of a call that it counts
 * from the slot. The call is not counted if it is nested. */
static uint64_t draw(struct tap_slot *s, uint64_t size, int is_counted, int is_nested)
{
	uint64_t rate_bytes = rate(), drawn_rate = s->rate_bytes;
	uint64_t left = __atomic_load_n(&s->left_bytes, __ATOMIC_RELAXED);
	int is_over;

	if (is_counted)
		left += size;
	if (is_nested || size >= IMPOSSIBLE_BYTES) {
		is_over = 0;
		/* Not below 0 for ever, where every call comes here. */
		if (is_counted && ((int64_t)left < 0 || left < size))
			s->left_bytes =
				(int64_t)left < 0 || is_nested ? next_left(s, rate_bytes) : left;
		return 0;
	}
	if (!drawn_rate && rate_bytes) { /* the first draw with a rate */
		left = next_left(s, rate_bytes);
		drawn_rate = rate_bytes;
		is_over = left < size;
	} else if ((int64_t)left < 0) { /* another thread has been over, and has not drawn yet */
		is_over = draw_alone(rate_bytes, size);
		drawn_rate = rate_bytes;
		left = size + next_left(s, rate_bytes);
	} else {
		is_over = left < size;
	}
	s->left_bytes = is_over ? next_left(s, rate_bytes) : left - size;
	return is_over && rate_bytes ? drawn_rate : 0;
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

/* Arguments for the real call. operator new gives a block for 0 bytes, too. */
static void set_real_call(struct tap_call *c)
{
	const struct tap_site *site = c->site;
	int swaps = !!(site->flags & TAP_SITE_SWAPS);

	c->real_addr = site->real_addr;
	c->real_arg[swaps] = c->arg[0];
	c->real_arg[!swaps] = c->arg[1];
	if (site->flags & TAP_SITE_THROWS && site->count_arg == HT_ARG_NONE && site->size_arg < 2 &&
	    !c->arg[site->size_arg])
		c->real_arg[site->size_arg ^ swaps] = 1;
}

/* Called before the real call. */
void tap_before(struct tap_call *c)
{
	struct tap_data *d = data();
	uint64_t size, sp = entry_sp(c);
	enum enter way;

	c->site = &tap_header.site[c->idx];
	set_real_call(c);
	size = size_of(c);
	way = enter(d, sp);
	c->is_in = way == ENTER_IN;
	c->rate_bytes =
		draw(slot_of(d, sp), size, c->site->flags & TAP_SITE_COUNTS, way == ENTER_NESTED);
	if (c->rate_bytes && way == ENTER_NO_ROOM) {
		__atomic_fetch_add(&control()->dropped_cnt, 1, __ATOMIC_RELAXED);
		c->rate_bytes = 0;
	}
	/* Before the call, because after it another thread may have the address. Not when the call can only
	 * fail. */
	c->told_free = c->site->op == HT_OP_REALLOC && size < IMPOSSIBLE_BYTES ?
			       tap_freed(c->arg[c->site->ptr_arg]) :
			       0;
}

/* Called after the real call. told_free is reported whatever this returns. */
enum after tap_after(struct tap_call *c)
{
	const uint64_t old_kept = c->told_free;
	const struct tap_site *site = c->site;
	uint64_t size = size_of(c), ptr = c->result;
	struct tap_data *d = data();

	c->told_free = 0;
	if (c->is_in)
		leave(d);
	if (site->ret == HT_RET_OUT)
		ptr = (uint32_t)c->result ? 0 : *(const uint64_t *)c->arg[site->ptr_arg];
	if (site->op == HT_OP_RESIZE)
		ptr = c->result >= size ? c->arg[site->ptr_arg] : 0;
	if (site->op == HT_OP_RESIZE && ptr)
		c->told_free = tap_freed(ptr);
	if (!ptr) {
		if (old_kept && size) /* the old block was not freed after all */
			__atomic_fetch_add(&control()->failed_cnt, 1, __ATOMIC_RELAXED);
		c->idx = site->orig_addr;
		return site->flags & TAP_SITE_THROWS ? AFTER_THROW : AFTER_NOTHING;
	}
	if (!c->rate_bytes || !size || !set_insert(d, ptr))
		return AFTER_NOTHING;
	c->told_ptr = ptr;
	c->told_bytes = size;
	c->told_weight = draw_weight(size, c->rate_bytes);
	return AFTER_TELL;
}
