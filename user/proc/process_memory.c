/* SPDX-License-Identifier: MIT */
/* process_memory.c - reads the memory of another process. */
#include "proc/process_memory.h"

#include <errno.h>

#include "proc/facts.h"
#include "proc/reader.h"

int process_memory_read(pid_t tid, uint64_t addr, void *buf, size_t bytes)
{
	if (addr > INT64_MAX || bytes > INT64_MAX - addr)
		return -EFAULT;
	return reader_is_on() ? reader_memory(tid, addr, buf, bytes) :
				process_memory_here(tid, addr, buf, bytes);
}
