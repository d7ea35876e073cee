/* SPDX-License-Identifier: MIT */
/*
 * jit_code.h - the code that one process made at run time, and its names.
 *
 * The program writes names to files that may have hundreds of megabytes (proc/jit_entry.h). What
 * was appended is read to see whether memory is reused for other code. Only names that were asked
 * for are kept.
 *
 * Lines of a map have no time. To name an address as what it was when it was sampled, memory has
 * periods: the first one, and a new one each time that reuse is seen. Frames of each period have
 * their own file id, so the walk records the period. The name of an address is the last one written
 * before the period's end; if there is none, the first one after it. Samples between the reuse and
 * the look that found it (JIT_REFRESH_NS) are named as before the reuse.
 *
 * It outlives its process as long as frames refer to it: see track_files_add_jit().
 */
#ifndef HT_TRACK_JIT_CODE_H
#define HT_TRACK_JIT_CODE_H

#include "base/std.h"

struct jit_code;
struct process_info;
struct reader;

#define JIT_REFRESH_NS 200000000ULL

/*
 * Returns one reference to the caller. parent: code of the process that forked this one, which has
 * that code in its memory but in no file of its own; NULL: none.
 */
int jit_code_new(struct reader *reader, const struct process_info *info, struct jit_code *parent,
		 struct jit_code **ret);
struct jit_code *jit_code_ref(struct jit_code *c);
void jit_code_unref(struct jit_code *c);

/* The process has ended or executed another program: do not look up its pid any more. */
void jit_code_end(struct jit_code *c);
/* The process that made it. */
pid_t jit_code_pid(const struct jit_code *c);

/* The process maps a dump. Takes ownership of fd. */
void jit_code_add_dump(struct jit_code *c, int fd);
bool jit_code_has_dump(const struct jit_code *c);

/*
 * Look at what was written since the last look. true: a new period began, so give the process's
 * mappings to the walk again. Does nothing within JIT_REFRESH_NS of the last look.
 */
bool jit_code_refresh(struct jit_code *c);
/* The present period at addr; *ret_end_addr: up to where it is the same. */
uint32_t jit_code_period(const struct jit_code *c, uint64_t addr, uint64_t *ret_end_addr);

/*
 * Find names for sorted addresses that were sampled in a period: ret_name[i], NULL: not known.
 * Valid until c is freed. 0 or -ENOMEM; unreadable files give no names.
 */
int jit_code_names(struct jit_code *c, uint32_t period, const uint64_t *addr, size_t cnt,
		   const char **ret_name);

#endif
