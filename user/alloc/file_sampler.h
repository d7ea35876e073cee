/* SPDX-License-Identifier: MIT */
/*
 * file_sampler.h - a sampler of allocations that a file brings along: what it tells in USDT probes.
 *
 * Two contracts are read, which mean the same: alloc(ptr, size, weight) where an allocation was kept, with
 * the bytes that it stands for, and free(ptr) where a kept one is freed.
 *   otel_memory  OpenTelemetry's eBPF profiler, design document 00003 (memory profiling); weight = size / p
 *   ddheap       Datadog's libdatadog; weight = size / p, before 2026-08 samples * interval
 * Who tells of no frees says nothing of what is in use: its allocator is probed instead, as everyone's.
 */
#ifndef HT_ALLOC_FILE_SAMPLER_H
#define HT_ALLOC_FILE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "heaptap/abi.h"

struct elf_file;

struct sampler_site {
	uint64_t off; /* in the file */
	uint64_t semaphore_off; /* as of struct attach_site */
	uint32_t is_free;
	uint32_t reserved;
	struct ht_sampled_site where;
};

#define SAMPLER_SITES_CAP 1024
#define SAMPLER_PROVIDER_BYTES 16
#define SAMPLER_PROBLEM_BYTES 160

struct file_sampler {
	char provider[SAMPLER_PROVIDER_BYTES];
	/* It sees the whole program: it is the program's own file, or the one that defines its allocator. */
	bool is_whole;
	char problem[SAMPLER_PROBLEM_BYTES]; /* why it is not used, a sentence; "": it is */
	VEC(struct sampler_site) sites; /* frees first; none with a problem */
};

/* *ret is NULL where there is none. has_allocator: the file defines one. -ENOMEM is the only error. */
int file_sampler_scan(struct elf_file *ef, bool has_allocator, struct file_sampler **ret);
/* NULL is fine. */
void file_sampler_free(struct file_sampler *s);

#endif
