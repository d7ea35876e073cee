/* SPDX-License-Identifier: MIT */
/*
 * file_sampler.h - a file's own sampler of allocations, which reports samples in USDT probes.
 *
 * Two contracts are read, with the same meaning: alloc(ptr, size, weight) for an allocation that was kept, where weight
 * is the bytes that it stands for, and free(ptr) when a kept one is freed.
 *   otel_memory  OpenTelemetry's eBPF profiler, design document 00003 (memory profiling); weight = size / p
 *   ddheap       Datadog's libdatadog; weight = size / p, before 2026-08 samples * interval
 * A sampler that does not report frees cannot tell what is in use: then the allocator is probed instead, as usual.
 */
#ifndef HT_ALLOC_FILE_SAMPLER_H
#define HT_ALLOC_FILE_SAMPLER_H

#include "base/std.h"
#include "base/vec.h"
#include "heaptap/abi.h"

struct elf_file;

struct sampler_site {
	uint64_t off; /* in the file */
	uint64_t semaphore_off; /* as in struct attach_site */
	uint32_t is_free;
	uint32_t reserved;
	struct ht_sampled_site where;
};

#define SAMPLER_SITES_CAP 1024
#define SAMPLER_PROVIDER_BYTES 16
#define SAMPLER_PROBLEM_BYTES 160

struct file_sampler {
	char provider[SAMPLER_PROVIDER_BYTES];
	/* The sampler sees the whole program: it is in the program's own file, or in the one
	 * that defines its allocator. */
	bool is_whole;
	char problem[SAMPLER_PROBLEM_BYTES]; /* a sentence: why it is not used; "": it is used */
	VEC(struct sampler_site) sites; /* frees first; empty if there is a problem */
};

/* *ret is NULL if there is none. has_allocator: the file defines one. -ENOMEM is the only error. */
int file_sampler_scan(struct elf_file *ef, bool has_allocator, struct file_sampler **ret);
/* NULL is fine. */
void file_sampler_free(struct file_sampler *s);

#endif
