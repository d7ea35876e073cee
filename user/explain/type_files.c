/* SPDX-License-Identifier: MIT */
/*
 * explain/type_files.c - see explain/explain_priv.h.
 *
 * Even fstat() waits for the server of a file system. So a file is touched only if the mounts of the process, or ours, say
 * that its device has a file system of the kernel's own.
 */
#include "explain/explain_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "proc/facts.h"
#include "proc/proc_text.h"

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
		if (f->tables.cnt)
			qsort(f->tables.data, f->tables.cnt, sizeof(key), compare_tables);
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
