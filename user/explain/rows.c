/* SPDX-License-Identifier: MIT */
/* explain/rows.c - see explain/rows.h. */
#include "explain/rows.h"

#include "base/names.h"

#define HUGE_BYTES (2ULL << 20)
#define HUGE_CNT 512
#define HUGE_SAMPLES 8
#define DESCRIPTOR_TID 0x2d0 /* in glibc's struct pthread, on x86-64 */
#define STACK_PAGES_CAP \
	64 /* from the end of a mapping, where a thread's descriptor is looked for */

static const struct {
	const char *name, *label;
} row_texts[ROW_CNT] = {
	[ROW_LIVE] = { "live", "malloc: live blocks" },
	[ROW_TRIM] = { "trimmable", "malloc: free, malloc_trim(0) would return it" },
	[ROW_PINNED] = { "pinned", "malloc: free, pinned by live blocks on the same pages" },
	[ROW_KEPT] = { "kept", "malloc: free, kept for future calls (arena tops, thread caches)" },
	[ROW_OWN] = { "own", "malloc: its own metadata" },
	[ROW_UNKNOWN] = { "unreadable", "malloc: parts of the heap that could not be read" },
	[ROW_JE_LIVE] = { "jemalloc_live", "jemalloc: live blocks" },
	[ROW_JE_PINNED] = { "jemalloc_pinned",
			    "jemalloc: free in slabs, pinned by live blocks of the same slab" },
	[ROW_JE_DIRTY] = { "jemalloc_dirty",
			   "jemalloc: free, dirty or muzzy pages not returned yet" },
	[ROW_JE_OWN] = { "jemalloc_own", "jemalloc: its own metadata" },
	[ROW_PY_LIVE] = { "python_live", "Python: objects (pymalloc, up to 512 bytes)" },
	[ROW_PY_FREE] = { "python_free", "Python: free in pymalloc's pools" },
	[ROW_JAVA] = { "java", "Java: heap" },
	[ROW_GO_LIVE] = { "go_live", "Go: heap and stacks, spans in use" },
	[ROW_GO_FREE] = { "go_free", "Go: heap, free and not returned yet" },
	[ROW_V8] = { "v8", "V8: pages of the JavaScript heap" },
	[ROW_BRK] = { "brk", "other brk heap memory" },
	[ROW_ANONYMOUS] = { "anonymous", "other anonymous memory" },
	[ROW_NAMED] = { "named", "named anonymous memory" },
	[ROW_CODE] = { "code", "code generated at run time" },
	[ROW_STACKS] = { "stacks", "stacks" },
	[ROW_SHARED] = { "shared", "shared memory (shm, tmpfs, memfd)" },
	[ROW_FILES] = { "files", "file pages (page cache)" },
	[ROW_DATA] = { "data", "program and library data (.data, .bss)" },
	[ROW_KERNEL] = { "kernel", "kernel pages (vdso, vvar)" },
	[ROW_MOVED] = { "moved", "changed during reading" },
};

/* All parts of the rows, before the largest are chosen. */
struct part {
	enum row_kind kind;
	struct row_part part;
};
struct parts {
	VEC(struct part) list;
};

const char *row_name(enum row_kind kind)
{
	return row_texts[kind].name;
}

const char *row_label(enum row_kind kind)
{
	return row_texts[kind].label;
}

const struct row *rows_find(const struct rows *r, enum row_kind kind)
{
	for (size_t i = 0; i < ROW_CNT; i++)
		if (r->list[i].kind == kind)
			return &r->list[i];
	return NULL;
}

static bool is_shared_memory(const char *path)
{
	return begins(path, "/dev/shm/") || begins(path, "/memfd:") || begins(path, "/SYSV") ||
	       begins(path, "/dev/zero") || begins(path, "[anon_shmem:");
}

/* A descriptor of glibc begins with its own address, and has it again two words on. Return that, or 0. */
static uint64_t find_descriptor(const uint64_t *page, uint64_t addr)
{
	for (uint64_t at = 0; at < MEMORY_PAGE; at += 64)
		if (page[at / 8] == addr + at && page[at / 8 + 2] == addr + at)
			return addr + at;
	return 0;
}

/* The descriptor of the thread whose stack it is, or 0. It has a guard below it, and the descriptor near its end. */
static uint64_t thread_of(struct memory *m, const struct mapping *map, const struct mapping *below)
{
	uint64_t page[MEMORY_PAGE / 8], at = map->map.end_addr, found = 0;

	if (!below || below->map.end_addr != map->map.start_addr || below->map.is_read ||
	    below->map.is_write || below->map.is_exec)
		return 0;
	for (int i = 0; i < STACK_PAGES_CAP && !found && at > map->map.start_addr; i++) {
		at -= MEMORY_PAGE;
		if (!memory_read(m, at, page, sizeof(page)))
			found = find_descriptor(page, at);
	}
	return found;
}

/* The kernel clears the thread's id when it ends; pthread_join() makes it negative. */
static void count_stack(struct rows *r, struct memory *m, const struct mapping *map,
			uint64_t descriptor)
{
	int32_t tid;

	r->stack_cnt++;
	if (memory_read(m, descriptor + DESCRIPTOR_TID, &tid, sizeof(tid)) || tid > 0)
		return;
	r->dead_stack_cnt++;
	r->dead_stack_bytes += map->rss_bytes;
}

/* The kernel merges .bss with what is mapped behind it, so only its own pages are counted. */
static uint64_t bss_bytes(struct memory *m, const struct mapping *map, const struct mapping *first)
{
	uint64_t end = bss_end(m, map, first), bytes = 0;

	if (!end || end >= map->map.end_addr)
		return map->rss_bytes;
	for (uint64_t at = map->map.start_addr; at < end && !memory_is_late(m); at += MEMORY_PAGE)
		if (m->page(m->ctx, at) == PAGE_RESIDENT)
			bytes += MEMORY_PAGE;
	return bytes;
}

/* *ret_thread: of a thread's stack, its descriptor. */
static enum row_kind kind_of(struct memory *m, const struct mapping *map,
			     const struct mapping *below, uint64_t *ret_thread)
{
	const char *path = map->map.path;

	if (!strcmp(path, "[heap]"))
		return ROW_BRK;
	if (!strcmp(path, "[stack]"))
		return ROW_STACKS;
	if (begins(path, "[anon:"))
		return ROW_NAMED;
	if (is_shared_memory(path) || (!path[0] && map->is_shared))
		return ROW_SHARED;
	if (path[0] == '[')
		return ROW_KERNEL;
	if (path[0])
		return ROW_FILES;
	if (map->map.is_exec)
		return ROW_CODE;
	*ret_thread = thread_of(m, map, below);
	return *ret_thread ? ROW_STACKS : ROW_ANONYMOUS;
}

/*
 * About how much of a mapping's huge pages is zeros, so probably never written: 8 pages are looked at of each of up to
 * HUGE_CNT huge ones, none twice. Any 2 MiB whose 8 pages are there counts as a huge page.
 */
static uint64_t zero_bytes(struct memory *m, const struct mapping *map)
{
	static const uint64_t zeros[MEMORY_PAGE / 8];
	uint64_t first = (map->map.start_addr + HUGE_BYTES - 1) / HUGE_BYTES;
	uint64_t end = map->map.end_addr / HUGE_BYTES, page[MEMORY_PAGE / 8];
	uint64_t step = end > first ? (end - first) / HUGE_CNT + 1 : 1, seen = 0, zero = 0;
	uint32_t random = 1;

	for (uint64_t i = first; i < end; i += step) {
		uint64_t here = 0, there = 0;

		for (uint64_t k = 0; k < HUGE_SAMPLES; k++) {
			random = random * 1103515245 + 12345;
			/* one of each eighth */
			if (memory_read(m,
					i * HUGE_BYTES + k * (HUGE_BYTES / HUGE_SAMPLES) +
						(random >> 16) % 64 * MEMORY_PAGE,
					page, sizeof(page)))
				break;
			there++;
			here += !memcmp(page, zeros, sizeof(page));
		}
		if (there == HUGE_SAMPLES) {
			seen += there;
			zero += here;
		}
	}
	return seen ? (uint64_t)((double)map->huge_bytes * (double)zero / (double)seen) : 0;
}

static int add_part(struct rows *r, struct parts *parts, enum row_kind kind, const char *name,
		    uint64_t bytes)
{
	const struct part part = { .kind = kind, .part = { .name = name, .bytes = bytes } };

	if (!bytes)
		return 0;
	r->list[kind].bytes += (int64_t)bytes;
	return vec_push(&parts->list, part);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* data_bytes of it are variables of the program or library data_name. */
static int add_mapping(struct rows *r, struct parts *parts, const struct mapping *map,
		       enum row_kind kind, uint64_t data_bytes, const char *data_name)
{
	uint64_t left = map->rss_bytes > map->taken_bytes ? map->rss_bytes - map->taken_bytes : 0;
	int err;

	r->rss_bytes += map->rss_bytes;
	r->pss_bytes += map->pss_bytes;
	r->swap_bytes += map->swap_bytes;
	r->hugetlb_bytes += map->hugetlb_bytes;
	r->huge_bytes += map->huge_bytes;
	if (mapping_is_anonymous(map) && !map->is_shared)
		r->forked_bytes += least(map->shared_bytes, map->anon_bytes);
	data_bytes = least(data_bytes, left);
	err = add_part(r, parts, kind, map->map.path, left - data_bytes);
	return err ? err : add_part(r, parts, ROW_DATA, data_name, data_bytes);
}

static int compare_names(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->part.name, y->part.name);
}

static void offer(struct row *row, struct row_part part)
{
	for (size_t i = 0; i < ROW_PARTS; i++) {
		struct row_part smaller = row->parts[i];

		if (part.bytes <= smaller.bytes)
			continue;
		row->parts[i] = part;
		part = smaller;
	}
}

/* One file has several mappings; those without a name stay apart. */
static void choose_parts(struct rows *r, struct parts *parts)
{
	struct part *list = parts->list.data;

	if (parts->list.cnt)
		qsort(list, parts->list.cnt, sizeof(*list), compare_names);
	for (size_t i = 0, next; i < parts->list.cnt; i = next) {
		struct row *row = &r->list[list[i].kind];
		struct row_part sum = list[i].part;

		for (next = i + 1;
		     next < parts->list.cnt && sum.name[0] && !compare_names(&list[i], &list[next]);
		     next++)
			sum.bytes += list[next].part.bytes;
		offer(row, sum);
		row->part_cnt++;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->kind < y->kind ? -1 : 1;
}

static void finish(struct rows *r, const struct glibc *g, const struct jemalloc *je,
		   const struct runtimes *rt)
{
	const struct glibc_arena *a;
	int64_t sum = 0;

	r->list[ROW_LIVE].bytes = (int64_t)g->sum.live;
	r->list[ROW_TRIM].bytes = (int64_t)g->sum.trim;
	r->list[ROW_PINNED].bytes = (int64_t)g->sum.pinned;
	r->list[ROW_KEPT].bytes = (int64_t)g->sum.kept;
	r->list[ROW_OWN].bytes = (int64_t)g->sum.own;
	r->list[ROW_UNKNOWN].bytes = (int64_t)g->sum.unknown;
	vec_each(&g->arenas, a)
		if (!a->is_proved)
			r->list[ROW_UNKNOWN].bytes += (int64_t)a->sum.unknown;
	r->list[ROW_JE_LIVE].bytes = (int64_t)je->sum.live;
	r->list[ROW_JE_PINNED].bytes = (int64_t)je->sum.pinned;
	r->list[ROW_JE_DIRTY].bytes = (int64_t)je->sum.dirty;
	r->list[ROW_JE_OWN].bytes = (int64_t)je->sum.own;
	r->list[ROW_PY_LIVE].bytes = (int64_t)rt->python.live;
	r->list[ROW_PY_FREE].bytes = (int64_t)rt->python.free;
	r->list[ROW_JAVA].bytes = (int64_t)rt->java.resident;
	r->list[ROW_GO_LIVE].bytes = (int64_t)rt->go.live;
	r->list[ROW_GO_FREE].bytes = (int64_t)rt->go.free;
	r->list[ROW_V8].bytes = (int64_t)rt->v8.resident;
	for (size_t i = 0; i < ROW_CNT; i++)
		sum += r->list[i].bytes;
	r->list[ROW_MOVED].bytes = (int64_t)r->rss_bytes - sum;
	qsort(r->list, ROW_CNT, sizeof(*r->list), compare_rows);
}

int rows_fill(struct rows *r, struct memory *m, const struct mappings *maps, const struct glibc *g,
	      const struct jemalloc *je, const struct runtimes *rt)
{
	const struct mapping *map, *below = NULL;
	struct parts parts = { 0 };
	int err = 0;

	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < ROW_CNT; i++)
		r->list[i].kind = (enum row_kind)i;
	vec_each(&maps->list, map) {
		uint64_t thread = 0;
		enum row_kind kind = kind_of(m, map, below, &thread);

		if (is_bss(map, below))
			err = add_mapping(r, &parts, map, kind, bss_bytes(m, map, maps->list.data),
					  below->map.path);
		else
			err = add_mapping(r, &parts, map, kind,
					  kind == ROW_FILES ? map->anon_bytes : 0, map->map.path);
		if (err)
			goto out;
		if (map->huge_bytes)
			r->huge_zero_bytes += zero_bytes(m, map);
		if (thread)
			count_stack(r, m, map, thread);
		below = map;
	}
	choose_parts(r, &parts);
	finish(r, g, je, rt);
out:
	vec_release(&parts.list);
	return err;
}
