/* SPDX-License-Identifier: MIT */
/* tap_priv.h - internal part of tap.c: what a visit does with the memory of the process, step by step. All of it
 * runs in the accessor (visit.h). */
#ifndef HT_TAP_TAP_PRIV_H
#define HT_TAP_TAP_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tap/tap.h"
#include "tap/visit.h"

#define TAP_MEMFD_NAME_BYTES 32

/* Pieces of code of the process, for calls. */
struct tap_gadgets {
	uint64_t syscall_addr; /* syscall; ret */
	uint64_t sigreturn_addr; /* mov $SYS_rt_sigreturn, %rax; syscall. 0: not both were found */
};

/* What a visit is about. Each of the processes of a visit has a copy of its own. */
struct tap_work {
	pid_t pid;
	const struct tap_order *order; /* to put a tap in; else NULL */
	const struct tap_files *own;
	const struct tap_seeds *seeds; /* NULL: none */
	const struct tap_header *header; /* of the tap that goes in or out */
	const uint64_t *old_addr;
	uint32_t old_cnt;
	/* Set by the steps, for later steps. */
	pid_t live_tid; /* a living thread, for paths in /proc */
	int mem_fd, file_fd;
	uint64_t shm_dev; /* device of memory files */
	struct tap_gadgets gadgets;
	uint64_t vdso_syscall_addr; /* without them */
	char name[TAP_MEMFD_NAME_BYTES];
	uint8_t below[TAP_MEMFD_NAME_BYTES]; /* what was where the name is */
};

/* tap_gadgets.c */

/* Look for them in the process's C library, which has both. */
void tap_find_gadgets(struct tap_work *w);
bool tap_are_gadgets(const uint8_t *syscall, const uint8_t *sigreturn);
#define TAP_SYSCALL_BYTES 3
#define TAP_SIGRETURN_BYTES 9

/* tap_files.c */

/* Of memory files; for the two below. */
int tap_find_device(struct tap_work *w);
/* Open the file of an O_PATH descriptor, which is closed, if it is a memory file with that name and size. -EPERM: it is
 * something else. seen: or a negative errno, which is returned. */
int tap_open_proved(const struct tap_work *w, int seen, int flags, const char *name, off_t bytes);
/* The file that is mapped as the code of a tap. */
int tap_open_mapped(const struct tap_work *w, uint64_t addr, int flags);
/* May who reads the page wait for a file system of FUSE? true also if that cannot be found out. */
bool tap_page_may_block(const struct tap_work *w, uint64_t addr);

/* Results in visit_shared: */
enum tap_file_need { TAP_FILE_THERE, TAP_FILE_NEW, TAP_FILE_REPLACE };

/* To put in: prepare; check (result: enum tap_file_need; arg: addresses of a system call instruction and, if a ret follows
 * that, of the call of rt_sigreturn, or 0);
 * write the file's name at arg[0], and put back what was there; fill the file that is the process's descriptor arg[0]; change
 * the allocator. Undo changes it back. */
int tap_step_prepare(void *work, struct visit_shared *s);
int tap_step_check(void *work, struct visit_shared *s);
int tap_step_name(void *work, struct visit_shared *s);
int tap_step_name_back(void *work, struct visit_shared *s);
int tap_step_fill(void *work, struct visit_shared *s);
int tap_step_change(void *work, struct visit_shared *s);
/* To read 8 bytes at arg[0]; result: their value. To exchange `bytes` for the arg[1] bytes at arg[0]. */
int tap_step_read(void *work, struct visit_shared *s);
int tap_step_exchange(void *work, struct visit_shared *s);

/* To take out: prepare (-EALREADY: there is nothing to be done); change back. */
int tap_step_prepare_out(void *work, struct visit_shared *s);
int tap_step_change_back(void *work, struct visit_shared *s);

/* To clear: prepare; take out what is nobody's (result: how many). */
int tap_step_prepare_clear(void *work, struct visit_shared *s);
int tap_step_clear(void *work, struct visit_shared *s);

#endif
