/* SPDX-License-Identifier: MIT */
/* leftovers.c - see probes.h. */
#include "track/probes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/allocators.h"
#include "base/fd.h"
#include "proc/process.h"
#include "track/file_content.h"
#include "track/files.h"

/* Only the beginning of a longer function is searched: probes are put near it. */
#define FUNCTION_BYTES_CAP 4096

/* The longest instruction: the bytes of one patch are no farther apart. */
#define PATCH_BYTES_CAP 15

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

/*
 * Is there a breakpoint at `at`, in code that is otherwise the file's? A patch of several bytes (a tap's jump) may
 * contain a byte with the same value. Attaching and detaching there would write the file's byte into the patch, and the
 * process would crash at the next call.
 */
static bool is_breakpoint(const uint8_t *here, const uint8_t *there, size_t bytes, size_t at)
{
	const size_t step = sizeof(breakpoint);
	size_t from = at < PATCH_BYTES_CAP ? 0 : at - PATCH_BYTES_CAP;
	size_t to = bytes - at < PATCH_BYTES_CAP + step ? bytes : at + PATCH_BYTES_CAP + step;

	if (memcmp(there + at, breakpoint, step) || !memcmp(here + at, there + at, step))
		return false;
	for (size_t i = from; i < to && step == 1; i++)
		if (here[i] != there[i] && there[i] != breakpoint[0])
			return false;
	return true;
}

/* Search [off, off + bytes) of the file. */
static int look(pid_t tid, const struct proc_map *map, uint64_t off, size_t bytes,
		struct leftovers *ret)
{
	uint8_t here[FUNCTION_BYTES_CAP], there[FUNCTION_BYTES_CAP];
	const uint64_t map_end = map->off + (map->end_addr - map->start_addr);
	const size_t step = sizeof(breakpoint);
	uint64_t from = off, to;
	int err = 0, fd;
	bool is_read;

	if (bytes > FUNCTION_BYTES_CAP - 2 * PATCH_BYTES_CAP)
		bytes = FUNCTION_BYTES_CAP - 2 * PATCH_BYTES_CAP;
	to = off + bytes;
	if (off < map->off || to > map_end)
		return 0;
	/* with what is around it */
	from -= off - map->off < PATCH_BYTES_CAP ? off - map->off : PATCH_BYTES_CAP;
	to += map_end - to < PATCH_BYTES_CAP ? map_end - to : PATCH_BYTES_CAP;
	fd = regular_file_reopen(ret->file->fd);
	if (fd < 0)
		return 0;
	is_read = pread(fd, here, to - from, (off_t)from) == (ssize_t)(to - from);
	close(fd);
	if (!is_read ||
	    process_memory_read(tid, map->start_addr + (from - map->off), there, to - from))
		return 0;
	for (uint64_t at = off; at + step <= off + bytes && !err; at += step)
		if (is_breakpoint(here, there, to - from, at - from) && !has_site(ret, at))
			err = vec_push(&ret->sites, (struct attach_site){ .off = at });
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
