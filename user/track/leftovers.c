/* SPDX-License-Identifier: MIT */
/* leftovers.c - see leftovers.h. */
#include "track/leftovers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/allocators.h"
#include "proc/process.h"
#include "proc/process_memory.h"
#include "track/file_tags.h"
#include "track/files.h"

/* Only the beginning of a longer function is searched: probes are put near it. */
#define FUNCTION_BYTES_CAP 4096

/* The kernel's breakpoint: UPROBE_SWBP_INSN of asm/uprobes.h. */
#if defined(__x86_64__)
static const uint8_t breakpoint[] = { 0xcc };
#elif defined(__aarch64__)
static const uint8_t breakpoint[] = { 0xa0, 0x00, 0x20, 0xd4 }; /* brk #5 */
#endif

static bool has_site(const struct leftovers *l, uint64_t off)
{
	const struct attach_site *site;

	vec_each(&l->sites, site)
		if (site->off == off)
			return true;
	return false;
}

/* Search [off, off + bytes) of the file. */
static int look(pid_t tid, const struct proc_map *map, uint64_t off, size_t bytes,
		struct leftovers *ret)
{
	uint8_t here[FUNCTION_BYTES_CAP], there[FUNCTION_BYTES_CAP];
	const size_t step = sizeof(breakpoint);
	int err = 0;

	if (bytes > sizeof(here))
		bytes = sizeof(here);
	if (off < map->off || off + bytes > map->off + (map->end_addr - map->start_addr))
		return 0;
	if (pread(ret->file->fd, here, bytes, (off_t)off) != (ssize_t)bytes ||
	    process_memory_read(tid, map->start_addr + (off - map->off), there, bytes))
		return 0;
	for (size_t i = 0; i + step <= bytes && !err; i += step)
		if (!memcmp(there + i, breakpoint, step) && memcmp(here + i, there + i, step) &&
		    !has_site(ret, off + i))
			err = vec_push(&ret->sites, (struct attach_site){ .off = off + i });
	return err;
}

static bool find_off(const struct track_file *file, uint64_t vaddr, uint64_t *ret)
{
	const struct track_segment *s;

	vec_each(&file->exec, s) {
		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->bytes)
			continue;
		*ret = s->off + (vaddr - s->vaddr);
		return true;
	}
	return false;
}

int leftovers_find(pid_t tid, const struct proc_map *map, const struct track_file *file,
		   struct leftovers *ret)
{
	size_t alloc_cnt = file->alloc ? file->alloc->sites.cnt : 0;
	size_t ready_cnt = file->tags ? file->tags->readies.cnt : 0;
	size_t exit_cnt = file->tags ? file->tags->task_exits.cnt : 0;
	uint64_t off;
	int err = 0;

	ret->file = file;
	for (size_t i = 0; i < alloc_cnt && !err; i++) {
		const struct alloc_site *site = &file->alloc->sites.data[i];

		err = look(tid, map, site->probe_off, sizeof(breakpoint), ret);
		if (!err && find_off(file, site->fn_vaddr, &off))
			err = look(tid, map, off, site->fn_bytes, ret);
	}
	for (size_t i = 0; i < ready_cnt && !err; i++)
		err = look(tid, map, file->tags->readies.data[i].off, sizeof(breakpoint), ret);
	for (size_t i = 0; i < exit_cnt && !err; i++)
		err = look(tid, map, file->tags->task_exits.data[i].off, sizeof(breakpoint), ret);
	return err;
}
