/* SPDX-License-Identifier: MIT */
/*
 * jit_dump.c - reads perf's jitdump: a header, then records {u32 id, u32 bytes, u64 time, ...}. Two kinds name
 * code: JIT_CODE_LOAD and JIT_CODE_MOVE.
 */

#include "proc/jit_entry.h"

#define DUMP_MAGIC 0x4a695444U
#define CODE_LOAD 0
#define CODE_MOVE 1

struct dump_header {
	uint32_t magic, version, bytes, machine, reserved, pid;
	uint64_t time, flags;
};

struct record {
	uint32_t id, bytes;
	uint64_t time;
};

struct load { /* followed by the name, terminated, and the code */
	struct record r;
	uint32_t pid, tid;
	uint64_t vma, addr, code_bytes, code_index;
};

struct move {
	struct record r;
	uint32_t pid, tid;
	uint64_t vma, old_addr, new_addr, code_bytes, code_index;
};

bool jit_is_dump_path(const char *path)
{
	const char *name = strrchr(path, '/'), *p;

	if (!name || strncmp(name, "/jit-", 5) != 0)
		return false;
	for (p = name + 5; *p >= '0' && *p <= '9'; p++)
		;
	return p > name + 5 && !strcmp(p, ".dump");
}

/* buf has the first len bytes of the record. */
static int take_record(const uint8_t *buf, size_t len, jit_entry_fn fn, void *ctx)
{
	struct jit_entry e = { 0 };
	struct load load;
	struct move move;
	uint64_t bytes;

	memcpy(&load.r, buf, sizeof(load.r));
	e.at = load.r.time;
	if (load.r.id == CODE_LOAD && len > sizeof(load)) {
		memcpy(&load, buf, sizeof(load));
		e.start_addr = load.addr;
		e.code_index = load.code_index;
		bytes = load.code_bytes;
		e.name = (const char *)buf + sizeof(load);
		e.name_len = strnlen(e.name, len - sizeof(load));
	} else if (load.r.id == CODE_MOVE && len >= sizeof(move)) {
		memcpy(&move, buf, sizeof(move));
		e.start_addr = move.new_addr;
		e.code_index = move.code_index;
		bytes = move.code_bytes;
	} else {
		return 0;
	}
	if (!bytes || __builtin_add_overflow(e.start_addr, bytes, &e.end_addr) ||
	    (e.name && !e.name_len))
		return 0;
	return fn(ctx, &e);
}

/* 1: the header is not complete yet. */
static int skip_header(int fd, uint64_t end, uint64_t *off)
{
	struct dump_header h;
	ssize_t n = pread(fd, &h, sizeof(h), 0);

	if (n < (ssize_t)sizeof(h))
		return n < 0 ? -errno : 1;
	if (h.magic != DUMP_MAGIC || h.bytes < sizeof(h))
		return -EBADMSG;
	if (h.bytes > end)
		return 1;
	*off = h.bytes;
	return 0;
}

int jit_dump_read(int fd, uint64_t *off, uint64_t bytes_cap, jit_entry_fn fn, void *ctx)
{
	uint8_t buf[sizeof(struct load) + JIT_NAME_BYTES_CAP];
	off_t end = lseek(fd, 0, SEEK_END);
	uint64_t begin = *off;
	struct record r;
	int err = end < 0 ? -errno : *off ? 0 : skip_header(fd, (uint64_t)end, off);

	while (!err && *off - begin < bytes_cap) {
		ssize_t n = pread(fd, buf, sizeof(buf), (off_t)*off);

		if (n < (ssize_t)sizeof(r)) {
			err = n < 0 ? -errno : 0;
			break;
		}
		memcpy(&r, buf, sizeof(r));
		if (r.bytes < sizeof(r))
			return -EBADMSG;
		if (*off + r.bytes > (uint64_t)end) /* it is being written */
			break;
		err = take_record(buf, r.bytes < (size_t)n ? r.bytes : (size_t)n, fn, ctx);
		*off += r.bytes;
	}
	return err == 1 ? 0 : err;
}
