/* SPDX-License-Identifier: MIT */
/* explain/explain.c - see explain/explain.h. */
#include "explain/explain.h"

#include <sys/uio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "explain/explain_priv.h"
#include "proc/facts.h"
#include "proc/proc_text.h"
#include "proc/process.h"

/*
 * The files of a process for types.h.
 *
 * Even fstat() waits for the server of a file system. So a file is touched only if the mounts of the process, or ours, say
 * that its device has a file system of the kernel's own.
 */

#define OPEN_CAP 1000 /* files, one after another */

struct table {
	uint64_t vaddr;
	const char *name; /* in the file */
};

struct open_file {
	pid_t tid;
	uint64_t ino;
	uint32_t dev;
	int fd; /* or an error: it is not tried again */
	struct elf_file *elf; /* NULL: symbols were not looked for yet, or it is no such file */
	VEC(struct table) tables; /* symbols of vtables, sorted */
	uint32_t open_cnt;
};

static void close_file(struct open_file *f)
{
	vec_release(&f->tables);
	elf_file_close(f->elf);
	f->elf = NULL;
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -ENOENT;
}

/* proc_pid_mountinfo(5): "36 35 98:0 /root /mount options... - type source super-options" */
static bool is_local_in(pid_t pid, uint32_t dev)
{
	static const char types[] =
		" ext2 ext3 ext4 xfs btrfs f2fs bcachefs zfs overlay tmpfs ramfs rootfs squashfs erofs iso9660 vfat ";
	char type[32], *text, *line, *next;
	bool is_local = false, is_found = false;

	if (proc_text_read(pid, "mountinfo", &text))
		return false;
	for (line = text; line && !is_found; line = next) {
		unsigned int major, minor;
		const char *at;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		at = strstr(line, " - ");
		is_found = at && sscanf(line, "%*u %*u %u:%u", &major, &minor) == 2 &&
			   (major << 20 | minor) == dev;
		if (!is_found || sscanf(at + 3, "%29s", type + 1) != 1)
			continue;
		type[0] = ' ';
		memcpy(type + 1 + strlen(type + 1), " ", 2);
		is_local = strstr(types, type);
	}
	free(text);
	return is_local;
}

static int open_mapped(struct open_file *f, const struct mapping *map)
{
	int path_fd;

	if (f->ino == map->map.ino && f->dev == map->map.dev)
		return f->fd;
	close_file(f);
	f->ino = map->map.ino;
	f->dev = map->map.dev;
	if (f->open_cnt++ >= OPEN_CAP ||
	    !(is_local_in(f->tid, map->map.dev) || is_local_in(0, map->map.dev)))
		return f->fd;
	path_fd = process_open_map_here(f->tid, f->tid, &map->map, true, NULL);
	if (path_fd < 0)
		return path_fd;
	f->fd = regular_file_reopen(path_fd);
	close(path_fd);
	return f->fd;
}

static uint64_t offset_of(const struct mapping *map, uint64_t addr)
{
	return map->map.off + (addr - map->map.start_addr);
}

static int read_bytes(void *ctx, const struct mapping *map, uint64_t addr, void *buf, size_t bytes)
{
	int fd = open_mapped(ctx, map);
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, bytes, (off_t)offset_of(map, addr));

	return n >= 0 && (size_t)n == bytes ? 0 : -EIO;
}

static int compare_tables(const void *a, const void *b)
{
	const struct table *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void read_tables(struct open_file *f, uint32_t type)
{
	struct elf_symtab symbols;
	GElf_Sym symbol;

	if (!elf_file_symtab(f->elf, type, &symbols))
		return;
	for (size_t i = 0; i < symbols.cnt && elf_file_step(f->elf, 1); i++) {
		const char *name = elf_symtab_get(&symbols, i, &symbol);

		if (name && !strncmp(name, "_ZTV", 4) && symbol.st_value &&
		    elf_file_fill(f->elf, sizeof(struct table)) &&
		    vec_push(&f->tables, (struct table){ symbol.st_value, name }))
			return;
	}
}

static const char *find_symbol(void *ctx, const struct mapping *map, uint64_t addr)
{
	struct open_file *f = ctx;
	struct table key = { 0 }, *found = NULL;
	int fd = open_mapped(f, map);

	if (fd >= 0 && !f->elf && !elf_file_open_fd(fd, &f->elf)) {
		read_tables(f, SHT_SYMTAB);
		if (!f->tables.cnt)
			read_tables(f, SHT_DYNSYM);
		vec_sort(&f->tables, compare_tables);
	}
	if (f->tables.cnt && !elf_file_off_to_vaddr(f->elf, offset_of(map, addr), &key.vaddr))
		found = bsearch(&key, f->tables.data, f->tables.cnt, sizeof(key), compare_tables);
	return found ? found->name : NULL;
}

int type_files_open(pid_t tid, struct open_file **ret_open, struct type_files *ret)
{
	struct open_file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->tid = tid;
	f->fd = -ENOENT;
	*ret_open = f;
	*ret = (struct type_files){ .read = read_bytes, .symbol = find_symbol, .ctx = f };
	return 0;
}

void type_files_close(struct open_file *f)
{
	if (!f)
		return;
	close_file(f);
	free(f);
}

/*
 * A running process.
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

static int open_proc_file(pid_t tid, const char *name)
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
		err = t->mem_fd = open_proc_file(tid, "mem");
	if (err >= 0)
		err = t->pagemap_fd = open_proc_file(tid, "pagemap");
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
	int fd = open_proc_file(tid, "smaps"), err = 0, end_err;
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

/* The heaps, and then the rows, which get what the heaps leave. */
static int explain_heaps(struct explanation *x, struct memory *m)
{
	int err = glibc_find(m, &x->maps, &x->glibc);

	if (!err)
		err = glibc_walk(m, &x->maps, &x->glibc);
	if (!err)
		err = jemalloc_read(m, &x->maps, &x->jemalloc);
	if (!err)
		err = runtimes_read(m, &x->maps, &x->runtimes);
	return err ? err : rows_fill(&x->rows, m, &x->maps, &x->glibc, &x->jemalloc, &x->runtimes);
}

static int explain_with_types(struct explanation *x, pid_t tid, struct memory *m)
{
	struct open_file *files = NULL;
	struct type_files files_of;
	int err = type_files_open(tid, &files, &files_of);

	if (!err)
		err = types_new(m, &x->maps, &files_of, &x->types);
	x->glibc.types = x->jemalloc.types = x->types;
	if (!err)
		err = explain_heaps(x, m);
	if (!err)
		types_finish(x->types);
	type_files_close(files);
	return err;
}

/* tid: a thread that lives; the main one may have ended. */
static int explain_memory(struct explanation *x, pid_t tid, bool wants_types, uint64_t deadline_ns,
			  struct err *why)
{
	struct target *t = NULL;
	int err = target_read_mappings(tid, deadline_ns, &x->maps);

	if (!err)
		err = target_open(tid, &x->maps, deadline_ns, &t);
	if (err) /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without an error it was opened */
		return err == -ESRCH ?
			       err_set(why, err, "process %d (%s) has just ended", x->pid,
				       x->comm) :
		       err == -ETIMEDOUT ?
			       err_set(why, err,
				       "process %d (%s) has too many mappings to read them in time",
				       x->pid, x->comm) :
			       err_set_os(why, err,
					  "no permission to read the memory of process "
					  "%d (%s)",
					  x->pid, x->comm);
	err = wants_types ? explain_with_types(x, tid, target_memory(t)) :
			    explain_heaps(x, target_memory(t));
	if (err)
		err_set(why, err, "out of memory");
	else if (!target_is_there(t))
		err = err_set(
			why, -ESRCH,
			"process %d (%s) ended, or executed another program, during the reading",
			x->pid, x->comm);
	target_close(t);
	return err;
}

int explain_process(pid_t pid, bool wants_types, struct resident_pins *pins, uint64_t limit_ns,
		    struct explanation *ret, struct err *why)
{
	uint64_t start_ns = now_ns();
	struct process_info info;
	int err = process_glance(NULL, pid, &info);

	memset(ret, 0, sizeof(*ret));
	if (sysconf(_SC_PAGESIZE) != MEMORY_PAGE)
		return err_set(why, -ENOTSUP, "explain needs pages of 4 KiB");
	if (err)
		return err_set(why, err, "there is no process %d (ps -e lists them)", pid);
	/* No file of the process is opened here, which may wait for ever. Only if its main thread has ended, a living one is looked for. */
	info.live_tid = pid;
	if (info.is_zombie && process_info_read(NULL, pid, &info))
		return err_set(why, -ESRCH, "process %d has just ended", pid);
	err = process_check(&info, why);
	if (err)
		return err;
	ret->pid = pid;
	ret->glibc.pins = ret->jemalloc.pins = pins;
	ret->start_time_ticks = info.start_time_ticks;
	ret->looked_ns = start_ns;
	memcpy(ret->comm, info.comm, sizeof(ret->comm));
	err = explain_memory(ret, info.live_tid, wants_types, start_ns + limit_ns, why);
	if (err)
		return err;
	/* that no thread lives of a process with several is not so: in this glibc their ids are elsewhere */
	if (info.thread_cnt > 1 && ret->rows.dead_stack_cnt == ret->rows.stack_cnt)
		ret->rows.dead_stack_cnt = ret->rows.dead_stack_bytes = 0;
	verdict_find(&ret->verdict, pid, &ret->rows, &ret->glibc, &ret->jemalloc, &ret->runtimes);
	ret->took_ns = now_ns() - start_ns;
	return 0;
}

void explain_release(struct explanation *x)
{
	types_free(x->types);
	glibc_release(&x->glibc);
	mappings_release(&x->maps);
}
