/* SPDX-License-Identifier: MIT */
/* explain/heap_pages.c - see explain/glibc.h. */
#include "explain/glibc.h"

#define CHUNK_HEAD_BYTES \
	48 /* sizeof(struct malloc_chunk): malloc_trim() leaves so much of a free chunk */
#define LATE_BYTES (16u << 20) /* after so many it is asked how late it is */
#define TOP_LEFT_BYTES 33 /* MINSIZE + 1: systrim() leaves so much of the top */

uint32_t heap_class_of(uint64_t chunk_bytes)
{
	if (chunk_bytes / 16 < HEAP_CLASS_SMALL)
		return (uint32_t)(chunk_bytes / 16);
	return HEAP_CLASS_SMALL + 63 - (uint32_t)__builtin_clzll(chunk_bytes) - 16;
}

void heap_class_range(uint32_t class, uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t chunk =
		class < HEAP_CLASS_SMALL ? class * 16ULL : 1ULL << (class - HEAP_CLASS_SMALL + 16);

	/* a chunk is its block and 8 bytes, rounded up to 16, and 32 at least */
	*ret_to = (class < HEAP_CLASS_SMALL ? chunk : 2 * chunk - 16) - 8;
	*ret_from = chunk <= 32 ? 0 : chunk - 23;
}

static void forget_page(struct heap_pages *h)
{
	memset(h->on_page, 0, sizeof(h->on_page));
	h->live_cnt = 0;
}

static void charge_pinned(struct heap_pages *h, uint32_t free_bytes)
{
	const double each = (double)free_bytes / h->live_cnt;
	bool is_alone = true;

	h->sum->pinned += free_bytes;
	for (uint32_t i = 0; i < h->live_cnt; i++) {
		is_alone &= h->live[i].class == h->live[0].class;
		if (h->classes)
			h->classes[h->live[i].class].pinned_bytes += each;
		types_pin(h->types, h->live[i].type, each);
		resident_pins_add(h->pins, h->live[i].pin, each);
	}
	if (h->classes && is_alone)
		h->classes[h->live[0].class].alone_bytes += free_bytes;
}

static uint64_t run_pages_start(const struct heap_pages *h)
{
	return page_up(h->run_addr + CHUNK_HEAD_BYTES);
}

/* All pieces of the current page are known: divide it. */
static void end_page(struct heap_pages *h)
{
	const uint32_t *on = h->on_page;
	uint32_t free_bytes = on[HEAP_FREE] + on[HEAP_CACHED] + on[HEAP_TOP];
	uint32_t covered = free_bytes + on[HEAP_LIVE] + on[HEAP_OWN] + on[HEAP_UNKNOWN];
	struct mapping *map;

	if (covered && h->memory->page(h->memory->ctx, h->page) == PAGE_RESIDENT) {
		map = mappings_find(h->maps, h->page);
		if (map)
			map->taken_bytes += covered;
		h->sum->live += on[HEAP_LIVE];
		h->sum->own += on[HEAP_OWN];
		h->sum->unknown += on[HEAP_UNKNOWN];
		if (h->is_run && h->page >= run_pages_start(h) &&
		    on[HEAP_FREE] + on[HEAP_TOP] == MEMORY_PAGE)
			h->run_trim += MEMORY_PAGE;
		else if (h->live_cnt && free_bytes)
			charge_pinned(h, free_bytes);
		else
			h->sum->kept += free_bytes;
	}
	forget_page(h);
}

/* Resident bytes of a run that stay because the top is given back in steps larger than a page. */
static uint64_t kept_of_top(struct heap_pages *h)
{
	uint64_t bytes = h->run_end - h->run_addr, given = 0, kept = 0, from = run_pages_start(h);

	if (bytes > TOP_LEFT_BYTES)
		given = (bytes - TOP_LEFT_BYTES) / h->top_step * h->top_step;
	for (; from < h->run_end - given; from += MEMORY_PAGE)
		if (h->memory->page(h->memory->ctx, from) == PAGE_RESIDENT)
			kept += MEMORY_PAGE;
	return kept < h->run_trim ? kept : h->run_trim;
}

/* Free chunks beside the top become a part of it. */
static void end_run(struct heap_pages *h)
{
	uint64_t kept = 0;

	if (!h->is_run)
		return;
	if (h->run_has_top)
		kept = !h->top_is_given		 ? h->run_trim :
		       h->top_step > MEMORY_PAGE ? kept_of_top(h) :
						   0;
	h->sum->trim += h->run_trim - kept;
	h->sum->trim_top += h->run_has_top ? h->run_trim - kept : 0;
	h->sum->kept += kept;
	h->is_run = h->run_has_top = false;
	h->run_trim = 0;
}

static void begin_run(struct heap_pages *h, uint64_t addr, uint64_t end, bool is_top)
{
	if (!h->is_run)
		h->run_addr = addr;
	h->is_run = true;
	h->run_has_top |= is_top;
	h->run_end = end;
}

static void add_live(struct heap_pages *h, uint32_t class, size_t pin)
{
	if (h->live_cnt == sizeof(h->live) / sizeof(*h->live))
		return;
	h->live[h->live_cnt].class = class;
	h->live[h->live_cnt].pin = pin;
	h->live[h->live_cnt++].type = h->type;
}

/* Return its number among the pins, or 0. */
static size_t count_live(struct heap_pages *h, uint32_t class, uint64_t addr, uint64_t bytes)
{
	/* the program's block */
	size_t pin = resident_pins_found(h->pins, addr + h->lead_bytes + 16);
	double weight;

	types_add(h->types, h->type, bytes);
	if (h->classes) {
		h->classes[class].live_cnt++;
		h->classes[class].live_bytes += bytes;
	}
	if (pin) { /* few are */
		weight = resident_pins_weight(h->pins, pin);
		types_record(h->types, h->type, weight);
		if (h->classes)
			resident_recorded_add(&h->classes[class].recorded, weight);
	}
	return pin;
}

void heap_pages_add(struct heap_pages *h, uint64_t addr, uint64_t bytes, enum heap_use use)
{
	uint32_t class = use == HEAP_LIVE ? heap_class_of(bytes) : 0;
	uint64_t end = addr + bytes, part;
	size_t pin = 0;

	h->sum->cnt[use]++;
	h->sum->bytes[use] += bytes;
	if (use == HEAP_LIVE) {
		pin = count_live(h, class, addr, bytes);
		/* most are small ones behind each other */
		if (addr >= h->page && end < h->page + MEMORY_PAGE && !h->is_run) {
			h->on_page[HEAP_LIVE] += (uint32_t)bytes;
			add_live(h, class, pin);
			return;
		}
	}
	if (page_down(addr) != h->page) {
		end_page(h); /* of a heap before, or empty */
		h->page = page_down(addr);
	}
	if (use == HEAP_FREE || use == HEAP_TOP)
		begin_run(h, addr, end, use == HEAP_TOP);
	else
		end_run(h);
	for (; addr < end; addr += part) {
		part = h->page + MEMORY_PAGE - addr;
		if (part > end - addr)
			part = end - addr;
		h->on_page[use] += (uint32_t)part;
		if (use == HEAP_LIVE)
			add_live(h, class, pin);
		if (addr + part == h->page + MEMORY_PAGE) {
			end_page(h);
			h->page += MEMORY_PAGE;
			if (h->page % LATE_BYTES == 0 && memory_is_late(h->memory))
				return; /* a heap of nothing but holes can be very large */
		}
	}
}

void heap_pages_end(struct heap_pages *h)
{
	end_page(h);
	end_run(h);
}
