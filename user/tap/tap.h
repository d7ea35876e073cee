/* SPDX-License-Identifier: MIT */
/*
 * tap.h - puts a tap into a process, and takes it out.
 *
 * In: all threads are stopped, one of them maps the memory, the code is written, the allocator's few bytes are
 * changed; all threads go on. Nothing is sampled until tap_set_rate(). On any failure no code has changed, unless
 * tap_put_in() says otherwise; memory may stay mapped.
 *
 * Out: all threads are stopped, the bytes are put back; all threads go on. The memory stays mapped, because a
 * thread may be in it; nothing leads there any more, and the process's next tap uses it again.
 *
 * A tap belongs to a memory, not to a PID. Its code is in a memory file, which its owner has locked (flock());
 * so a heaptap in another PID namespace sees that it has an owner. A forked child has a copy of the allocator's
 * changed bytes, but its data is wiped: the copy has no owner, and anybody may take it out.
 *
 * Nothing here reads or writes the process's memory, or waits for it: visits do (visit.h), and they have an end.
 */
#ifndef HT_TAP_TAP_H
#define HT_TAP_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/facts.h"
#include "tap/tap_code.h"

struct err;
struct tap;

#define TAP_OLD_CAP 16

struct tap_order {
	pid_t pid;
	uint32_t is_mapped; /* the code is there already, from a tap that was taken out */
	uint64_t code_addr;
	uint64_t vdso_addr, vdso_bytes; /* contains a system call instruction */
	uint64_t rate_bytes;
	/* Places of tap memory. If one still has the tap of a heaptap that is gone, that tap is taken out
	 * first. */
	uint64_t old_addr[TAP_OLD_CAP];
	uint32_t old_cnt;
	uint32_t has_seeds; /* the tap begins with a struct tap_seeds */
	struct tap_code code;
};

struct tap_result {
	uint64_t stopped_ns;
	uint32_t thread_cnt, reserved;
};

/* The memory files of the caller's other taps, by inode number: taps in them are not somebody else's. */
struct tap_files {
	const uint64_t *ino;
	size_t cnt;
};

/*
 * *ret_fd: before, the file of the seeds, if the order has some; afterwards the file of the code, for probes. -EEXIST: something is mapped at code_addr by now: try another one.
 * -EALREADY: the same owner has tapped it. With any error why has a sentence. After an error *ret may be a tap that is perhaps in, because the
 * process did not answer: take it out later.
 */
int tap_put_in(const struct tap_order *order, const struct tap_files *own, struct tap **ret,
	       int *ret_fd, struct tap_result *result, struct err *why);
/* Take out what gone heaptaps have left at these places in the process's memory; *ret_cnt: their number. */
int tap_clear(pid_t pid, const uint64_t *old_addr, uint32_t cnt, uint32_t *ret_cnt,
	      struct err *why);
pid_t tap_pid(const struct tap *t);
uint64_t tap_ino(const struct tap *t);
/* Of its memory file; -1: it has none yet. */
int tap_fd(const struct tap *t);
int tap_set_rate(struct tap *t, uint64_t rate_bytes);
/* Losses that the stub has counted. */
struct tap_lost {
	uint64_t dropped_cnt; /* kept blocks for which its set had no room */
	uint64_t failed_cnt; /* kept blocks that a failed realloc left as they were */
};
void tap_read_lost(const struct tap *t, struct tap_lost *ret);
/*
 * 0: it is out, also when the process has ended or is another program. (Where a process that shares its memory lives on, it
 * stays there, without a rate; the next heaptap finds it.) -EUCLEAN: somebody else has changed the
 * same bytes, which were left as they are; why says where. Other errors: it is still in, or a signal handler will
 * return into it; try again.
 */
int tap_take_out(struct tap *t, struct tap_result *result, struct err *why);
void tap_free(struct tap *t);

#endif
