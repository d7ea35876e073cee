/* SPDX-License-Identifier: MIT */
/*
 * tap.h - puts a tap into a process, and takes it out.
 *
 * In: all threads are stopped, one of them maps the memory, the code is written, the allocator's few bytes are
 * changed; all go on. Nothing is sampled until tap_set_rate(). On any failure nothing has changed.
 * Out: all threads are stopped, the bytes are put back; all go on. The memory stays mapped, for a thread may be in it;
 * nothing leads there any more, and the next tap of the process uses it again.
 */
#ifndef HT_TAP_TAP_H
#define HT_TAP_TAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tap/tap_code.h"

struct err;
struct tap;

#define TAP_OLD_CAP 8

struct tap_order {
	pid_t pid;
	uint32_t is_mapped; /* the code is there already, of a tap that was taken out */
	uint64_t code_addr;
	uint64_t vdso_addr, vdso_bytes; /* has a system call instruction */
	uint64_t rate_bytes;
	/* Where there is memory of taps: if one of a heaptap that is gone is still in, it is taken out first. */
	uint64_t old_addr[TAP_OLD_CAP];
	uint32_t old_cnt, reserved;
	struct tap_code code;
};

struct tap_result {
	uint64_t stopped_ns;
	uint32_t thread_cnt, reserved;
};

#define TAP_NAME "heaptap"
#define TAP_PATH "/memfd:heaptap" /* in its maps, as a deleted file */

/*
 * is_first: its owner has no other tap in this process, so that one in its name came with a fork, and goes.
 * *ret_fd: the file of the code, for probes. -EEXIST: something is mapped there by now: with another code_addr;
 * else why has a sentence.
 */
int tap_put_in(const struct tap_order *order, bool is_first, struct tap **ret, int *ret_fd,
	       struct tap_result *result, struct err *why);
/*
 * Takes out what heaptaps that are gone have left at these places of its memory; how many they were. gone_pid: one
 * that may still be there, but holds nothing any more; 0: none.
 */
int tap_clear(pid_t pid, const uint64_t *old_addr, uint32_t cnt, pid_t gone_pid, uint32_t *ret_cnt,
	      struct err *why);
pid_t tap_pid(const struct tap *t);
int tap_set_rate(struct tap *t, uint64_t rate_bytes);
/* What the stub has counted. */
struct tap_lost {
	uint64_t dropped_cnt; /* kept blocks that its set had no room for */
	uint64_t failed_cnt; /* kept blocks that a failed realloc left as they were */
};
int tap_read_lost(const struct tap *t, struct tap_lost *ret);
/* -errno: it is still in, and may be tried again. Of a process that has ended, or is another program: 0. */
int tap_take_out(struct tap *t, struct tap_result *result);
void tap_free(struct tap *t);

#endif
