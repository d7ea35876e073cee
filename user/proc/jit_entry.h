/* SPDX-License-Identifier: MIT */
/*
 * jit_entry.h - what a program says of the code that it made at run time, read from its files.
 *
 * Two formats, both of Linux perf: the map, a text (tools/perf/Documentation/jit-interface.txt), and
 * the dump, which is binary and has times (jitdump-specification.txt).
 *
 * The files are somebody else's: whatever is in them, reading ends, and takes no more memory than a
 * buffer of JIT_BUF_BYTES. What is no entry is left out.
 */
#ifndef HT_PROC_JIT_ENTRY_H
#define HT_PROC_JIT_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_info;

#define JIT_BUF_BYTES (64 << 10)
#define JIT_NAME_BYTES_CAP 4096 /* longer ones are cut */

struct jit_entry {
	uint64_t start_addr, end_addr;
	uint64_t at; /* map: the line's offset in the file; dump: CLOCK_MONOTONIC, as a rule */
	uint64_t code_index; /* dump: which code this is */
	const char *name; /* not terminated; NULL: of the code that was loaded with that index */
	size_t name_len;
};

/* Not 0 ends the reading, which returns it. */
typedef int (*jit_entry_fn)(void *ctx, const struct jit_entry *e);

/*
 * All whole entries from *off on, until about bytes_cap of the file were read; *off is then behind the
 * last of them. A dump begins at offset 0 with its header. 0, -errno, -ENOMEM, -EBADMSG: no dump.
 */
int jit_map_read(int fd, uint64_t *off, uint64_t bytes_cap, jit_entry_fn fn, void *ctx);
int jit_dump_read(int fd, uint64_t *off, uint64_t bytes_cap, jit_entry_fn fn, void *ctx);

/*
 * /tmp/perf-PID.map below root, PID as the process itself knows it. Believed only when it is a regular
 * file of the process's user or of root that was written since the process began. fd or -errno.
 */
int jit_map_open(const char *root, const struct process_info *info);
/* Is this the path of a dump, as a program maps it to be found? */
bool jit_is_dump_path(const char *path);

/*
 * A name in the ways of V8 ("JS:*fn /path.js:3:1") and CPython ("py::fn:/path.py"), in its parts; others are
 * function names as a whole. The parts point into name, which is changed.
 */
struct jit_name {
	const char *function;
	const char *file; /* "": unknown */
	uint32_t line; /* where the function begins; 0: unknown */
};
void jit_name_split(char *name, struct jit_name *ret);

#endif
