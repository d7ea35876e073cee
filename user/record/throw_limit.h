/* SPDX-License-Identifier: MIT */
/*
 * throw_limit.h - up to which size may a function that throws wait for its return?
 *
 * A return probe replaces the return address on the stack. An exception that leaves the function
 * makes the unwinder meet that address, know nothing about it, and end the program. So a call
 * that is going to fail must not be probed: sizes that cannot be had any more are left out, with a
 * margin for what the process may take until the next look.
 */
#ifndef HT_RECORD_THROW_LIMIT_H
#define HT_RECORD_THROW_LIMIT_H

#include <stdint.h>
#include <sys/types.h>

/* In bytes, for the process as it is now. address_limit_bytes: its RLIMIT_AS, 0 = none. */
uint64_t throw_limit_bytes(pid_t pid, uint64_t address_limit_bytes);

#endif
