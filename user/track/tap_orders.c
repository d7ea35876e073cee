/* SPDX-License-Identifier: MIT */
/*
 * tap_orders.c - see tap_orders.h.
 *
 * A tap is put below its allocator if there is room. Memory that grows there (the heap above a
 * program, a stack) grows away from the tap, or has its limit elsewhere.
 */
#include "track/tap_orders.h"

#include "base/err.h"
#include "proc/process.h"
#include "tap/tap.h"
#include "track/file.h"
#include "track/files.h"

#define PAGE 4096ULL
#define LOWEST_ADDR 0x10000ULL
#define REACH \
	(1ULL << 30) /* half a jump's reach; the rest is for offsets of the allocator's operands */

/* A process may map a file several times (dlmopen()): the copy with that number, from 0. */
static const struct proc_map *find_file(const struct proc_maps *maps, uint32_t dev, uint64_t ino,
					unsigned int copy)
{
	const struct proc_map *m;

	vec_each(&maps->maps, m)
		if (m->is_exec && m->dev == dev && m->ino == ino && !copy--)
			return m;
	return NULL;
}

static bool reaches(uint64_t addr, const struct proc_map *to)
{
	return addr < to->start_addr ? to->end_addr - addr < REACH :
				       addr + TAP_BYTES - to->start_addr < REACH;
}

static bool is_old_tap(const struct proc_map *m)
{
	return m->is_exec && m->is_deleted && m->end_addr - m->start_addr == TAP_CODE_BYTES &&
	       !strncmp(m->path, TAP_PATH, strlen(TAP_PATH));
}

/* The upper end of the nearest room below, else the lower end of the nearest room above. 0: no room. */
static uint64_t find_room(const struct proc_maps *maps, const struct proc_map *near)
{
	const uint64_t bytes = TAP_BYTES + 2 * PAGE;
	uint64_t end = LOWEST_ADDR, below = 0, above = 0;
	const struct proc_map *m, *last = NULL;

	vec_each(&maps->maps, m) {
		bool has_room = m->start_addr > end && m->start_addr - end >= bytes;

		if (has_room && m->start_addr <= near->start_addr)
			below = m->start_addr - PAGE - TAP_BYTES;
		else if (has_room && !above && (!last || strcmp(last->path, "[heap]") != 0))
			above = end + PAGE;
		end = m->end_addr;
		last = m;
	}
	if (below && reaches(below, near))
		return below;
	return above && reaches(above, near) ? above : 0;
}

static uint64_t find_place(const struct proc_maps *maps, const struct proc_map *near,
			   unsigned int nth, uint32_t *ret_is_mapped)
{
	const struct proc_map *m;

	*ret_is_mapped = 1;
	vec_each(&maps->maps, m)
		if (is_old_tap(m) && reaches(m->start_addr, near) && !nth--)
			return m->start_addr;
	*ret_is_mapped = 0;
	return find_room(maps, near);
}

static uint32_t find_old(const struct proc_maps *maps, uint64_t *ret_addr)
{
	const struct proc_map *m;
	uint32_t cnt = 0;

	vec_each(&maps->maps, m)
		if (is_old_tap(m) && cnt < TAP_OLD_CAP)
			ret_addr[cnt++] = m->start_addr;
	return cnt;
}

int tap_orders_clear(struct reader *reader, pid_t pid, pid_t live_tid, uint32_t *ret_cnt,
		     struct err *why)
{
	uint64_t old_addr[TAP_OLD_CAP];
	struct proc_maps maps = { 0 };
	int err = proc_maps_read(reader, pid, live_tid, &maps);
	uint32_t cnt = err ? 0 : find_old(&maps, old_addr);

	*ret_cnt = 0;
	if (err)
		err_set_os(why, err, "its mappings cannot be read");
	proc_maps_release(&maps);
	return err || !cnt ? err : tap_clear(pid, old_addr, cnt, ret_cnt, why);
}

static void find_vdso(const struct proc_maps *maps, struct tap_order *ret)
{
	const struct proc_map *m;

	ret->vdso_addr = ret->vdso_bytes = 0;
	vec_each(&maps->maps, m) {
		if (strcmp(m->path, "[vdso]") != 0)
			continue;
		ret->vdso_addr = m->start_addr;
		ret->vdso_bytes = m->end_addr - m->start_addr;
	}
}

/* Make the order for the nth place near the allocator's mapping. */
static int make_near(const struct proc_maps *maps, const struct proc_map *near, unsigned int nth,
		     struct tap_code_request *req, struct tap_order *ret, struct err *why)
{
	req->code_addr = find_place(maps, near, nth, &ret->is_mapped);
	if (!req->code_addr)
		return err_set(why, -ENOSPC,
			       "no free address space for the tap within 1 GiB of its allocator");
	ret->code_addr = req->code_addr;
	find_vdso(maps, ret);
	ret->old_cnt = find_old(maps, ret->old_addr);
	return tap_code_build(req, &ret->code, why);
}

int tap_order_make(struct reader *reader, const struct track_file *file, pid_t pid, pid_t live_tid,
		   uint64_t rate_bytes, unsigned int copy, unsigned int nth, struct tap_order *ret,
		   struct err *why)
{
	struct tap_code_request req = { .alloc = file->alloc };
	struct proc_maps maps = { 0 };
	const struct proc_map *m;
	int err = nth < TAP_TRIES ? proc_maps_read(reader, pid, live_tid, &maps) : -ENOENT;

	if (err)
		return err_set(why, err, "%s",
			       err == -ENOENT ?
				       "it maps memory faster than heaptap finds a place for the "
				       "tap" :
				       strerror(-err));
	m = find_file(&maps, file->dev, file->ino, copy);
	if (!m && copy)
		err = err_set(why, -ENODATA, "there is no other copy");
	else if (!m || track_file_bias(file, m->start_addr, m->off, &req.bias))
		err = err_set(why, -ESRCH, "it no longer maps its allocator");
	else
		err = make_near(&maps, m, nth, &req, ret, why);
	ret->pid = pid;
	ret->rate_bytes = rate_bytes;
	proc_maps_release(&maps);
	return err;
}

int tap_order_preview(struct reader *reader, const struct tap_order_file *file, pid_t pid,
		      pid_t live_tid, struct tap_order *ret, struct err *why)
{
	struct tap_code_request req = { .alloc = file->alloc, .bias = file->bias };
	struct proc_maps maps = { 0 };
	const struct proc_map *m;
	int err = proc_maps_read(reader, pid, live_tid, &maps);

	m = err ? NULL : find_file(&maps, file->dev, file->ino, 0);
	if (m)
		err = make_near(&maps, m, 0, &req, ret, why);
	else
		err = err_set_os(why, err ? err : -ESRCH, "its mappings cannot be read");
	ret->pid = pid;
	proc_maps_release(&maps);
	return err;
}
