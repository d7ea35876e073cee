/* SPDX-License-Identifier: MIT */
/*
 * process_text.h - one process in the form of gperftools' remote protocol: a heap profile in run-time addresses,
 * and the names of such addresses. Slow: run it in a child process.
 *
 * The addresses are those of the process as it is mapped now. A frame that is not in a file has an address below
 * the first page that a process may map, or is of code made at run time. See result/address_map.h.
 */
#ifndef HT_RESULT_PROCESS_TEXT_H
#define HT_RESULT_PROCESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct profile;
struct profile_source;

/*
 * Write p, a profile of that process alone, whose locations and mappings are replaced. -ESRCH: the process has
 * ended. is_growth: write what was allocated, whether it is still in use or not.
 */
int process_text_write(const struct profile_source *src, struct profile *p, pid_t pid,
		       bool is_growth, int fd);

/*
 * Write a line "0xADDR\tNAME" for each address. Names are demangled; inlined functions are written as
 * "CALLER--INLINED", as the protocol separates them.
 */
int process_names_write(const struct profile_source *src, pid_t pid, const uint64_t *addrs,
			size_t addr_cnt, int fd);

#endif
