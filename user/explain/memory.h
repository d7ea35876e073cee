/* SPDX-License-Identifier: MIT */
/*
 * explain/memory.h - the memory of a process, as far as it can be read without changing it.
 *
 * A page is read only if it is present: reading another one brings it in, so it would be swapped in, or become
 * resident. Where the memory comes from is behind three functions, so tests make heaps of their own.
 */
#ifndef HT_EXPLAIN_MEMORY_H
#define HT_EXPLAIN_MEMORY_H

#include "base/std.h"
#include "base/vec.h"
#include "proc/facts.h"

#define MEMORY_PAGE 4096ULL
#define MEMORY_END (1ULL << 47) /* of a process's addresses */
#define MEMORY_CACHE_PAGES 512

enum page_state {
	PAGE_ABSENT, /* never touched, swapped out, or not mapped */
	PAGE_ZERO, /* the kernel's page of zeros: it can be read, and is not in RSS */
	PAGE_RESIDENT,
};

struct memory_page {
	uint64_t addr; /* 0: none */
	uint64_t words[MEMORY_PAGE / 8];
};

struct memory {
	/* Read all of the range, whose pages are present. 0 or a negative errno. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t bytes);
	enum page_state (*page)(void *ctx, uint64_t addr);
	/* What page() knows of these pages is old: ask again. */
	void (*refresh)(void *ctx, uint64_t addr, size_t bytes);
	void *ctx;
	uint64_t deadline_ns; /* of now_ns(): from then on nothing can be read */
	struct memory_page *cache; /* MEMORY_CACHE_PAGES of them; NULL until memory_init() */
};

int memory_init(struct memory *m);
void memory_release(struct memory *m);
bool memory_is_late(const struct memory *m);

/* Read the range if all its pages are present. -EFAULT: they are not; -ETIMEDOUT: it is late. */
int memory_read(struct memory *m, uint64_t addr, void *buf, size_t bytes);
/* The same as read some time ago: for lists that jump between many pages. addr is a multiple of 8. */
bool memory_word(struct memory *m, uint64_t addr, uint64_t *ret);
/* What memory_word() knows is read again when it is needed. */
void memory_forget(struct memory *m);
static inline void memory_forget_page(struct memory *m, uint64_t addr)
{
	m->cache[addr / MEMORY_PAGE % MEMORY_CACHE_PAGES].addr = 0;
}

/*
 * Read a window of whole pages for a walk. Pages that are absent are zeros. Return how many bytes from addr on were read; it
 * is less where reading failed.
 */
size_t memory_window(struct memory *m, uint64_t addr, void *buf, size_t bytes);

static inline uint64_t page_down(uint64_t addr)
{
	return addr & ~(MEMORY_PAGE - 1);
}

static inline uint64_t page_up(uint64_t addr)
{
	return page_down(addr + MEMORY_PAGE - 1);
}

/*
 * The mappings of a process with what is resident of each, from the text of smaps (proc_pid_smaps(5)).
 */

#define MAPPINGS_CAP (1u << 20)

struct mapping {
	struct proc_map map;
	/* RSS; what of it no file has; what of it another process has as well; huge pages of it */
	uint64_t rss_bytes, anon_bytes, shared_bytes, huge_bytes;
	uint64_t pss_bytes, swap_bytes;
	uint64_t hugetlb_bytes; /* not in RSS */
	uint64_t taken_bytes; /* what of rss_bytes was found to be an allocator's */
	bool is_shared; /* MAP_SHARED */
};

struct mappings {
	VEC(struct mapping) list; /* sorted by address */
	struct proc_maps maps; /* owns the paths */
	size_t last; /* where mappings_find() found something */
};

/* Reads the text piece by piece. Zero-initialised; released by mappings_finish(). */
struct mappings_reader {
	VEC(struct mapping) list;
	VEC(char) heads; /* the lines that maps has too */
	VEC(char) line; /* the beginning of one */
};

/* 0, -ENOMEM, -EINVAL: it is not such a text, -EFBIG. */
int mappings_feed(struct mappings_reader *r, const char *text, size_t bytes);
/* After the last piece, or, with ret NULL, after an error. */
int mappings_finish(struct mappings_reader *r, struct mappings *ret);
void mappings_release(struct mappings *m);

/* The mapping of an address, or NULL. */
struct mapping *mappings_find(struct mappings *m, uint64_t addr);

static inline bool mapping_is_anonymous(const struct mapping *m)
{
	return !m->map.path[0] || m->map.path[0] == '[';
}

/* The .bss of programs and libraries: anonymous memory behind their .data. */

/* It lies right behind the .data of a file. below: the mapping before, or NULL. */
bool is_bss(const struct mapping *map, const struct mapping *below);
/*
 * Where the .bss that begins the mapping ends: the kernel merges it with what is mapped behind it. 0: the file's program
 * headers are not there. first: of all mappings.
 */
uint64_t bss_end(struct memory *m, const struct mapping *map, const struct mapping *first);

#endif
