/* SPDX-License-Identifier: MIT */
/* explain/memory.c - see explain/memory.h. */
#include "explain/memory.h"

#include <elf.h>

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

/* The mappings. */

#define LINE_CAP (32u << 10) /* a path in which every byte is written as four */

static const struct {
	const char *name;
	size_t at;
} fields[] = {
#define FIELD(word, member)                            \
	{                                              \
		word, offsetof(struct mapping, member) \
	}
	FIELD("Rss:", rss_bytes),
	FIELD("Pss:", pss_bytes),
	FIELD("Shared_Clean:", shared_bytes),
	FIELD("Shared_Dirty:", shared_bytes),
	FIELD("Anonymous:", anon_bytes),
	FIELD("AnonHugePages:", huge_bytes),
	FIELD("Swap:", swap_bytes),
	FIELD("Shared_Hugetlb:", hugetlb_bytes),
	FIELD("Private_Hugetlb:", hugetlb_bytes),
#undef FIELD
};

/* "Rss:      132 kB"; a field that is named twice is a sum. */
static void read_field(struct mapping *m, const char *line)
{
	if (!strncmp(line, "VmFlags:", 8)) {
		m->is_shared = strstr(line + 8, " sh") != NULL;
		return;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		size_t len = strlen(fields[i].name);

		if (strncmp(line, fields[i].name, len) != 0)
			continue;
		*(uint64_t *)((char *)m + fields[i].at) += strtoull(line + len, NULL, 10) << 10;
		return;
	}
}

/* A mapping that grew between two pieces of the text is told again, and then it is what was told before and more. */
static void drop_after(struct mappings_reader *r, uint64_t start)
{
	while (r->list.cnt && r->list.data[r->list.cnt - 1].map.end_addr > start)
		r->heads.cnt = r->list.data[--r->list.cnt].map.off;
}

/* line ends with a NUL that counts. */
static int read_line(struct mappings_reader *r, const char *line, size_t bytes)
{
	struct mapping m = { 0 };
	char *end;

	if (line[0] >= 'A' && line[0] <= 'Z') {
		if (!r->list.cnt)
			return -EINVAL;
		read_field(&r->list.data[r->list.cnt - 1], line);
		return 0;
	}
	if (r->list.cnt >= MAPPINGS_CAP)
		return -EFBIG;
	m.map.start_addr = strtoull(line, &end, 16);
	m.map.end_addr = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;
	drop_after(r, m.map.start_addr);
	m.map.off = r->heads.cnt; /* until it is parsed */
	if (vec_push(&r->list, m) || vec_reserve(&r->heads, r->heads.cnt + bytes + 1))
		return -ENOMEM;
	memcpy(r->heads.data + r->heads.cnt, line, bytes);
	r->heads.cnt += bytes;
	r->heads.data[r->heads.cnt - 1] = '\n';
	r->heads.data[r->heads.cnt] = '\0';
	return 0;
}

int mappings_feed(struct mappings_reader *r, const char *text, size_t bytes)
{
	const char *end = text + bytes, *nl;
	int err = 0;

	for (; !err && text < end; text = nl ? nl + 1 : end) {
		size_t len;

		nl = memchr(text, '\n', (size_t)(end - text));
		len = (size_t)((nl ? nl : end) - text);
		if (r->line.cnt + len >= LINE_CAP)
			return -EINVAL;
		if (vec_reserve(&r->line, r->line.cnt + len + 1))
			return -ENOMEM;
		memcpy(r->line.data + r->line.cnt, text, len);
		r->line.cnt += len;
		if (!nl)
			break;
		r->line.data[r->line.cnt++] = '\0';
		err = read_line(r, r->line.data, r->line.cnt);
		r->line.cnt = 0;
	}
	return err;
}

static bool is_sorted(const struct proc_maps *maps)
{
	for (size_t i = 1; i < maps->maps.cnt; i++)
		if (maps->maps.data[i].start_addr < maps->maps.data[i - 1].end_addr)
			return false;
	return true;
}

int mappings_finish(struct mappings_reader *r, struct mappings *ret)
{
	struct proc_maps maps = { 0 };
	int err = 0;

	vec_release(&r->line);
	if (!ret || !r->heads.cnt) {
		vec_release(&r->heads);
	} else {
		err = proc_maps_parse(r->heads.data, &maps);
		r->heads.data = NULL;
		r->heads.cnt = r->heads.cap = 0;
	}
	/* It parsed each line, so the nth is of the nth in our list, unless it had to sort them. */
	if (ret && !err && (maps.maps.cnt != r->list.cnt || !is_sorted(&maps)))
		err = -EINVAL;
	if (!ret || err) {
		proc_maps_release(&maps);
		vec_release(&r->list);
		return err;
	}
	for (size_t i = 0; i < r->list.cnt; i++)
		r->list.data[i].map = maps.maps.data[i];
	*ret = (struct mappings){ .maps = maps };
	ret->list.data = r->list.data;
	ret->list.cnt = r->list.cnt;
	ret->list.cap = r->list.cap;
	return 0;
}

void mappings_release(struct mappings *m)
{
	vec_release(&m->list);
	proc_maps_release(&m->maps);
}

struct mapping *mappings_find(struct mappings *m, uint64_t addr)
{
	struct mapping *found;
	size_t low;

	if (m->last < m->list.cnt) {
		found = &m->list.data[m->last];
		if (addr >= found->map.start_addr && addr < found->map.end_addr)
			return found;
	}
	low = vec_first_behind(&m->list, map.start_addr, addr);
	if (!low || addr >= m->list.data[low - 1].map.end_addr)
		return NULL;
	m->last = low - 1;
	return &m->list.data[low - 1];
}

bool is_bss(const struct mapping *map, const struct mapping *below)
{
	return below && below->map.end_addr == map->map.start_addr && below->map.path[0] == '/' &&
	       below->map.is_write && !below->is_shared && !map->map.path[0] && !map->map.is_exec;
}

/* Where the file's last segment ends in memory, as its mapped program headers say; 0: they are not there. */
static uint64_t file_end(struct memory *m, const struct mapping *data, const struct mapping *first)
{
	uint64_t page[MEMORY_PAGE / 8], start = UINT64_MAX, end = 0;
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)page;
	const Elf64_Phdr *ph;

	while (data > first && data->map.off && data[-1].map.ino == data->map.ino &&
	       data[-1].map.dev == data->map.dev)
		data--;
	if (data->map.off || memory_read(m, data->map.start_addr, page, sizeof(page)) ||
	    memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_phoff % 8 ||
	    head->e_phoff > sizeof(page) ||
	    head->e_phnum > (sizeof(page) - head->e_phoff) / sizeof(*ph))
		return 0;
	ph = (const Elf64_Phdr *)((const char *)page + head->e_phoff);
	for (size_t i = 0; i < head->e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD || ph[i].p_memsz > MEMORY_END ||
		    ph[i].p_vaddr > MEMORY_END)
			continue;
		if (ph[i].p_vaddr < start)
			start = ph[i].p_vaddr;
		if (ph[i].p_vaddr + ph[i].p_memsz > end)
			end = ph[i].p_vaddr + ph[i].p_memsz;
	}
	return end > start ? page_up(data->map.start_addr + end - page_down(start)) : 0;
}

uint64_t bss_end(struct memory *m, const struct mapping *map, const struct mapping *first)
{
	return file_end(m, map - 1, first);
}
