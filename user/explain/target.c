/* SPDX-License-Identifier: MIT */
/*
 * explain/target.c - see explain/explain_priv.h.
 *
 * Anonymous memory is read through /proc/PID/mem, because process_vm_readv() pins pages, for which the kernel copies those
 * that are shared with a forked process. The price: such a read waits for a page with the lock of the process's memory, for
 * __access_remote_vm() asks for it without leave to drop the lock. Pages of files are not copied, and may have to be
 * fetched from a slow server if they are dropped between the look and the reading, so these are read by
 * process_vm_readv(), which waits without the lock.
 *
 * A danger stays: between the two a hostile process may put a page of its own FUSE file in the place of an anonymous one.
 * Then this child hangs with the lock until the file system answers or is aborted, and the process's own mmap(), and probes
 * into its libraries, wait for it. It cannot be closed from here. No system call reads the memory of another process
 * and gives up if a page is not there; a check of the mapping is as old as that of the page when the read begins; and
 * only a stop of all threads would keep them from remapping. (userfaultfd makes nobody wait: without leave to drop the
 * lock it gives an error.)
 */
#include "explain/explain_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/proc_text.h"

#define SMAPS_READ_BYTES 4096
#define SMAPS_PAUSE_US 50
#define MEM_PAUSE_US 20
#define MEM_PAUSE_BYTES (256u << 10) /* after so many bytes */
/* Of pagemap's entries a block is asked for at once, and the last ones are remembered. */
#define BLOCK_PAGES 64
#define BLOCK_BYTES (BLOCK_PAGES * MEMORY_PAGE)
#define BLOCK_CNT 256
/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_EXCLUSIVE (1ULL << 56)
#define PAGEMAP_FILE (1ULL << 61)
#define PAGEMAP_PRESENT (1ULL << 63)

struct block {
	uint64_t start; /* address; 0: empty */
	uint64_t entries[BLOCK_PAGES];
};

struct target {
	struct memory memory;
	struct mappings *maps;
	pid_t tid;
	int mem_fd, pagemap_fd;
	size_t read_bytes; /* since the last pause */
	struct block blocks[BLOCK_CNT];
};

static int open_file(pid_t tid, const char *name)
{
	int fd = proc_open(tid, O_RDONLY, "%s", name);

	return fd == -ENOENT ? -ESRCH : fd;
}

static struct block *block_of(struct target *t, uint64_t addr)
{
	return &t->blocks[addr / BLOCK_BYTES % BLOCK_CNT];
}

static void refresh_pages(void *ctx, uint64_t addr, size_t bytes)
{
	uint64_t start = addr / BLOCK_BYTES * BLOCK_BYTES;

	for (; start < addr + bytes; start += BLOCK_BYTES)
		block_of(ctx, start)->start = 0;
}

static uint64_t find_entry(struct target *t, uint64_t addr)
{
	uint64_t start = addr / BLOCK_BYTES * BLOCK_BYTES;
	struct block *b = block_of(t, addr);
	ssize_t n;

	if (b->start != start || !start) {
		b->start = start;
		n = pread(t->pagemap_fd, b->entries, sizeof(b->entries),
			  (off_t)(start / MEMORY_PAGE * 8));
		if (n < 0)
			n = 0;
		memset((char *)b->entries + n, 0, sizeof(b->entries) - (size_t)n);
	}
	return b->entries[(addr - start) / MEMORY_PAGE];
}

static int read_pages(struct target *t, uint64_t addr, void *buf, size_t bytes, bool is_file)
{
	const struct iovec own = { buf, bytes };
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the other process */
	const struct iovec theirs = { (void *)(uintptr_t)addr, bytes };
	ssize_t n = is_file ? process_vm_readv(t->tid, &own, 1, &theirs, 1, 0) :
			      pread(t->mem_fd, buf, bytes, (off_t)addr);

	return n < 0 ? -errno : (size_t)n == bytes ? 0 : -EFAULT;
}

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t bytes)
{
	struct target *t = ctx;
	size_t done = 0, run;
	int err = 0;

	for (; !err && done < bytes; done += run) {
		bool is_file = find_entry(t, addr + done) & PAGEMAP_FILE;

		run = MEMORY_PAGE - (addr + done) % MEMORY_PAGE;
		while (done + run < bytes &&
		       !(find_entry(t, addr + done + run) & PAGEMAP_FILE) == !is_file)
			run += MEMORY_PAGE;
		run = run < bytes - done ? run : bytes - done;
		err = read_pages(t, addr + done, (char *)buf + done, run, is_file);
	}
	t->read_bytes += bytes;
	if (t->read_bytes >= MEM_PAUSE_BYTES) {
		t->read_bytes = 0;
		usleep(MEM_PAUSE_US);
	}
	return err;
}

static bool is_zero(struct target *t, uint64_t addr)
{
	static const char zeros[MEMORY_PAGE];
	char page[MEMORY_PAGE];

	return !read_memory(t, page_down(addr), page, sizeof(page)) &&
	       !memcmp(page, zeros, sizeof(page));
}

/*
 * The kernel's page of zeros is present, and nobody's alone; RSS does not count it. Any other page of an anonymous
 * mapping that is not exclusive is shared with a forked process. Where smaps says that both may be, its bytes tell.
 */
static enum page_state find_page(void *ctx, uint64_t addr)
{
	struct target *t = ctx;
	uint64_t entry = addr < MEMORY_END ? find_entry(t, addr) : 0;
	struct mapping *map;

	if (!(entry & PAGEMAP_PRESENT))
		return PAGE_ABSENT;
	if (entry & (PAGEMAP_EXCLUSIVE | PAGEMAP_FILE))
		return PAGE_RESIDENT;
	map = mappings_find(t->maps, addr);
	if (!map || !mapping_is_anonymous(map))
		return PAGE_RESIDENT;
	return !map->shared_bytes || is_zero(t, addr) ? PAGE_ZERO : PAGE_RESIDENT;
}

int target_open(pid_t tid, struct mappings *maps, uint64_t deadline_ns, struct target **ret)
{
	struct target *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->maps = maps;
	t->tid = tid;
	t->mem_fd = t->pagemap_fd = -1;
	t->memory = (struct memory){ .read = read_memory,
				     .page = find_page,
				     .refresh = refresh_pages,
				     .ctx = t,
				     .deadline_ns = deadline_ns };
	err = memory_init(&t->memory);
	if (!err)
		err = t->mem_fd = open_file(tid, "mem");
	if (err >= 0)
		err = t->pagemap_fd = open_file(tid, "pagemap");
	if (err < 0) {
		target_close(t);
		return err;
	}
	*ret = t;
	return 0;
}

void target_close(struct target *t)
{
	if (!t)
		return;
	memory_release(&t->memory);
	if (t->mem_fd >= 0)
		close(t->mem_fd);
	if (t->pagemap_fd >= 0)
		close(t->pagemap_fd);
	free(t);
}

struct memory *target_memory(struct target *t)
{
	return &t->memory;
}

/* The kernel gives no entry of a memory that is gone. */
bool target_is_there(struct target *t)
{
	uint64_t entry;

	return pread(t->pagemap_fd, &entry, sizeof(entry), 0) == sizeof(entry);
}

int target_read_mappings(pid_t tid, uint64_t deadline_ns, struct mappings *ret)
{
	struct mappings_reader reader = { 0 };
	char text[SMAPS_READ_BYTES];
	int fd = open_file(tid, "smaps"), err = 0, end_err;
	ssize_t n;

	if (fd < 0)
		return fd;
	while (!err && (n = read(fd, text, sizeof(text))) != 0) {
		err = n < 0 ? -errno : mappings_feed(&reader, text, (size_t)n);
		if (!err && now_ns() >= deadline_ns)
			err = -ETIMEDOUT;
		usleep(SMAPS_PAUSE_US);
	}
	close(fd);
	end_err = mappings_finish(&reader, err ? NULL : ret);
	return err ? err : end_err;
}
