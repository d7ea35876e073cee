/* SPDX-License-Identifier: MIT */
/*
 * throw_limit.h - up to which size may the return of a throwing function be probed?
 *
 * A return probe replaces the return address on the stack. If an exception leaves the function, the unwinder meets
 * that address, knows nothing about it, and ends the program. So a call that is going to fail must not be probed:
 * sizes that the process cannot get any more are left out, with a margin for what it may take until the next look.
 */
#ifndef HT_RECORD_THROW_LIMIT_H
#define HT_RECORD_THROW_LIMIT_H

#include <stdint.h>
#include <sys/types.h>

/* Limit in bytes for the process as it is now. address_limit_bytes: its RLIMIT_AS, 0 = none. */
uint64_t throw_limit_bytes(pid_t pid, uint64_t address_limit_bytes);

#endif
