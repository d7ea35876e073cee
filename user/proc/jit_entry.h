/* SPDX-License-Identifier: MIT */
/*
 * jit_entry.h - a program's description of the code that it made at run time, read from its files.
 *
 * Two formats, both of Linux perf: the map, a text (tools/perf/Documentation/jit-interface.txt), and the dump,
 * which is binary and has times (jitdump-specification.txt).
 *
 * The files are not trusted: whatever is in them, reading ends and takes no more memory than a buffer of
 * JIT_BUF_BYTES. Invalid entries are left out.
 */
#ifndef HT_PROC_JIT_ENTRY_H
#define HT_PROC_JIT_ENTRY_H

#include "base/std.h"

struct reader;
struct process_info;

#define JIT_BUF_BYTES (64 << 10)
#define JIT_NAME_BYTES_CAP 4096 /* longer ones are cut */

struct jit_entry {
	uint64_t start_addr, end_addr;
	uint64_t at; /* map: the line's offset in the file; dump: CLOCK_MONOTONIC, as a rule */
	uint64_t code_index; /* dump: which code this is */
	/* not terminated; NULL: use the name of the code that was loaded with code_index */
	const char *name;
	size_t name_len;
};

/* A non-zero result ends the reading, which returns it. */
typedef int (*jit_entry_fn)(void *ctx, const struct jit_entry *e);

/*
 * Read all whole entries from *off on, until about bytes_cap of the file are read; *off is then behind the last
 * entry. A dump begins at offset 0 with its header. 0, -errno, -ENOMEM, -EBADMSG: not a dump.
 */
int jit_map_read(int fd, uint64_t *off, uint64_t bytes_cap, jit_entry_fn fn, void *ctx);
int jit_dump_read(int fd, uint64_t *off, uint64_t bytes_cap, jit_entry_fn fn, void *ctx);

/*
 * Open /tmp/perf-PID.map below root, PID as the process itself knows it. The file is trusted only when it is a
 * regular file of the process's user or of root, written since the process began. fd or -errno.
 */
int jit_map_open(struct reader *reader, const char *root, const struct process_info *info);
/* Is this the path of a dump, in the form in which a program maps it to be found? */
bool jit_is_dump_path(const char *path);

/*
 * Split a name of V8 ("JS:*fn /path.js:3:1") or CPython ("py::fn:/path.py") into its parts; any other name is a
 * function name as a whole. The parts point into name, which is modified.
 */
struct jit_name {
	const char *function;
	const char *file; /* "": unknown */
	uint32_t line; /* where the function begins; 0: unknown */
};
void jit_name_split(char *name, struct jit_name *ret);

#endif
