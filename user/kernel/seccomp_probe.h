/* SPDX-License-Identifier: MIT */
/* seccomp_probe.h - does a return probe kill a process that runs under a strict seccomp filter? */
#ifndef HT_KERNEL_SECCOMP_PROBE_H
#define HT_KERNEL_SECCOMP_PROBE_H

#include <stdbool.h>

/*
 * On some kernels (6.11 and later, until the fix "seccomp: passthrough uretprobe systemcall without filtering"
 * of 6.14 and stables) a return probe ends in a system call that the target's filter sees and refuses. Tried
 * with a child of our own: 0 with the answer, or a negative errno when it could not be tried.
 */
int seccomp_probe_returns(bool *ret_is_safe);

#endif
