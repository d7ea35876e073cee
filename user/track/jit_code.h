/* SPDX-License-Identifier: MIT */
/*
 * jit_code.h - the code that one process made at run time, and its names.
 *
 * Names are in files that the program writes and that may have hundreds of megabytes
 * (proc/jit_entry.h). They are read where they have grown, to see whether memory that had code is given
 * to other code; kept are only names that were asked for.
 *
 * Lines of a map have no time. So that an address is named as what it was when it was sampled, its
 * place has periods: the first one, and another one from when memory was seen to be given to other code.
 * Frames in them have file ids of their own, so the walk says in which one it was. A name is the last one
 * that was written before the period's end; where there was none yet, the first one after it. What was
 * sampled between the change and the look that saw it (JIT_LOOK_NS) is named as before the change.
 *
 * Lives on after its process, as long as frames are in it: see track_files_add_jit().
 */
#ifndef HT_TRACK_JIT_CODE_H
#define HT_TRACK_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jit_code;
struct process_info;

#define JIT_LOOK_NS 200000000ULL

/*
 * One reference is the caller's. parent: of the process that forked it, whose code it has in its memory and
 * names in no file of its own; NULL: none.
 */
int jit_code_new(const struct process_info *info, struct jit_code *parent, struct jit_code **ret);
struct jit_code *jit_code_ref(struct jit_code *c);
void jit_code_unref(struct jit_code *c);

/* The process has ended, or is another one's program now: its number is not to be looked up any more. */
void jit_code_end(struct jit_code *c);
/* Whose it is. */
pid_t jit_code_pid(const struct jit_code *c);

/* The process maps a dump. fd is owned from here on. */
void jit_code_add_dump(struct jit_code *c, int fd);
bool jit_code_has_dump(const struct jit_code *c);

/*
 * See what was written since. true: there is a new period, so the process's mappings are to be given to
 * the walk anew. Does nothing when the last look was shorter ago than JIT_LOOK_NS.
 */
bool jit_code_look(struct jit_code *c);
/* Which period is it at addr now, and up to where is it the same? */
uint32_t jit_code_period(const struct jit_code *c, uint64_t addr, uint64_t *ret_end_addr);

/*
 * Names of sorted addresses that were sampled in a period: ret_name[i], NULL: none is known. They are valid
 * until c is freed. 0, -ENOMEM; files that cannot be read have no names.
 */
int jit_code_names(struct jit_code *c, uint32_t period, const uint64_t *addr, size_t cnt,
		   const char **ret_name);

#endif
