/* SPDX-License-Identifier: MIT */
/*
 * throw_limit.c - see throw_limit.h.
 *
 * Memory is refused (not just slow, or paid for by the OOM killer) for three reasons: the address space limit of
 * the process; the commit limit of a machine that does not overcommit; and, on one that does, a request larger than
 * the machine.
 */
#include "record/throw_limit.h"
#include "proc/proc_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a process may take between two looks; with less left, no throwing function is probed. */
#define MARGIN_BYTES (64ULL << 20)

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Return the address space in use. */
static uint64_t address_space_bytes(pid_t pid)
{
	uint64_t pages = 0;
	char text[64];

	proc_read_start(pid, text, sizeof(text), "statm");
	sscanf(text, "%" SCNu64, &pages);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* vm.overcommit_memory = 2: the kernel accounts for every byte of address space. */
static int never_overcommits(void)
{
	FILE *f = fopen("/proc/sys/vm/overcommit_memory", "re");
	int mode = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%d", &mode) != 1)
		mode = 0;
	fclose(f);
	return mode == 2;
}

static uint64_t commit_left_bytes(void)
{
	uint64_t limit_kib = UINT64_MAX >> 10, committed_kib = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	char line[256];

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CommitLimit: %" SCNu64, &limit_kib) != 1 &&
		    sscanf(line, "Committed_AS: %" SCNu64, &committed_kib) != 1)
			continue;
	}
	fclose(f);
	return minus(limit_kib, committed_kib) << 10;
}

uint64_t throw_limit_bytes(pid_t pid, uint64_t address_limit_bytes)
{
	uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE), left;

	if (address_limit_bytes) {
		left = minus(address_limit_bytes, address_space_bytes(pid));
		limit = left < limit ? left : limit;
	}
	if (never_overcommits()) {
		left = commit_left_bytes();
		limit = left < limit ? left : limit;
	}
	return minus(limit, MARGIN_BYTES);
}
