/* SPDX-License-Identifier: MIT */
/* explain/bss.c - see explain/bss.h. */
#include "explain/bss.h"

#include <elf.h>
#include <string.h>

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
