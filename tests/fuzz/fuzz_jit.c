/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jit.c - what a program says of its code: a perf map, a jitdump, a name. Read at once and in
 * pieces it says the same.
 */
#include "fuzz.h"

#include <sys/mman.h>

#include "base/hmap.h"
#include "proc/jit_entry.h"

typedef int (*read_fn)(int fd, uint64_t *off, uint64_t bytes_cap, jit_entry_fn fn, void *ctx);

static int on_entry(void *ctx, const struct jit_entry *e)
{
	uint64_t *hash = ctx, parts[4] = { *hash, e->start_addr, e->end_addr, e->code_index };

	if (e->end_addr <= e->start_addr || (e->name && !e->name_len) ||
	    e->name_len > JIT_NAME_BYTES_CAP)
		abort();
	*hash = hash_bytes(parts, sizeof(parts));
	if (e->name)
		*hash ^= hash_bytes(e->name, e->name_len);
	return 0;
}

static void check(read_fn read, int fd, size_t bytes)
{
	uint64_t whole = 1, pieces = 1, off = 0, before;
	int err = read(fd, &off, UINT64_MAX, on_entry, &whole);

	/* The last record of a dump may say more than it has. */
	if (off > bytes && !err)
		abort();
	off = 0;
	do {
		before = off;
		err = read(fd, &off, 1, on_entry, &pieces);
		if (off < before)
			abort();
	} while (!err && off != before);
	if (whole != pieces)
		abort();
}

static void check_name(const uint8_t *data, size_t bytes)
{
	struct jit_name parts;
	char *name = fuzz_text(data, bytes);

	jit_name_split(name, &parts);
	if (strlen(parts.function) + strlen(parts.file) > bytes + strlen("(anonymous)"))
		abort();
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		return 0;
	check(jit_map_read, fd, bytes);
	check(jit_dump_read, fd, bytes);
	check_name(data, bytes);
	return 0;
}
