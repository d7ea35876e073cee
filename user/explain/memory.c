/* SPDX-License-Identifier: MIT */
/* explain/memory.c - see explain/memory.h. */
#include "explain/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

int memory_init(struct memory *m)
{
	m->cache = calloc(MEMORY_CACHE_PAGES, sizeof(*m->cache));
	return m->cache ? 0 : -ENOMEM;
}

void memory_release(struct memory *m)
{
	free(m->cache);
	m->cache = NULL;
}

bool memory_is_late(const struct memory *m)
{
	return now_ns() >= m->deadline_ns;
}

static bool is_present(struct memory *m, uint64_t addr, uint64_t end)
{
	for (addr = page_down(addr); addr < end; addr += MEMORY_PAGE)
		if (m->page(m->ctx, addr) == PAGE_ABSENT)
			return false;
	return true;
}

int memory_read(struct memory *m, uint64_t addr, void *buf, size_t bytes)
{
	if (addr >= MEMORY_END || bytes > MEMORY_END - addr)
		return -EFAULT;
	if (memory_is_late(m))
		return -ETIMEDOUT;
	m->refresh(m->ctx, addr, bytes);
	if (!is_present(m, addr, addr + bytes))
		return -EFAULT;
	return m->read(m->ctx, addr, buf, bytes);
}

bool memory_word(struct memory *m, uint64_t addr, uint64_t *ret)
{
	uint64_t start = page_down(addr);
	struct memory_page *page = &m->cache[start / MEMORY_PAGE % MEMORY_CACHE_PAGES];

	if (addr % 8 || !start)
		return false;
	if (page->addr != start) {
		page->addr = 0;
		if (memory_read(m, start, page->words, MEMORY_PAGE))
			return false;
		page->addr = start;
	}
	*ret = page->words[addr % MEMORY_PAGE / 8];
	return true;
}

void memory_forget(struct memory *m)
{
	for (size_t i = 0; i < MEMORY_CACHE_PAGES; i++)
		m->cache[i].addr = 0;
}

void memory_forget_page(struct memory *m, uint64_t addr)
{
	m->cache[addr / MEMORY_PAGE % MEMORY_CACHE_PAGES].addr = 0;
}

size_t memory_window(struct memory *m, uint64_t addr, void *buf, size_t bytes)
{
	size_t done = 0, run;

	if (addr >= MEMORY_END || bytes > MEMORY_END - addr || memory_is_late(m))
		return 0;
	m->refresh(m->ctx, addr, bytes);
	while (done < bytes) {
		bool is_absent = m->page(m->ctx, addr + done) == PAGE_ABSENT;

		for (run = MEMORY_PAGE; done + run < bytes; run += MEMORY_PAGE)
			if (is_absent != (m->page(m->ctx, addr + done + run) == PAGE_ABSENT))
				break;
		if (is_absent)
			memset((char *)buf + done, 0, run);
		else if (m->read(m->ctx, addr + done, (char *)buf + done, run))
			break;
		done += run;
	}
	return done;
}
