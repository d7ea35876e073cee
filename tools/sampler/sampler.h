/* SPDX-License-Identifier: MIT */
/*
 * sampler.h - samples allocations inside the program, and tells whoever looks: the core of
 * libheaptap-sampler. entries.c has malloc, free and their kin, which call it.
 *
 * Each thread counts the bytes that it allocates down to a random interval of mean R, exponentially
 * distributed: so a block of n bytes is kept with p = 1 - exp(-n/R), whatever came before it. Of a block that
 * is kept, and only of such a one, the program passes two nops, which a uprobe may be on:
 *
 *	otel_memory:alloc(ptr, size, weight)    weight = size / p: the bytes that it stands for
 *	otel_memory:free(ptr)
 *
 * That is the contract of OpenTelemetry's eBPF profiler (its design document 00003, memory profiling), so any
 * profiler that knows it can read them. While nobody looks, which the semaphore of the probes says (the kernel
 * counts it up with each uprobe), an allocation costs a load and a jump.
 *
 * What is kept is in a set of addresses, with a filter of 64 KiB in front of it that nearly all frees are
 * answered by. Bounded, no locks, no memory of its own but static one; safe in signal handlers, in forked
 * children and before main().
 */
#ifndef HEAPTAP_SAMPLER_H
#define HEAPTAP_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SAMPLER_LIKELY(x) __builtin_expect(!!(x), 1)
#define SAMPLER_TLS __thread __attribute__((tls_model("initial-exec")))

#define SAMPLER_FILTER_SHIFT 16

struct sampler_thread {
	uint64_t left_bytes; /* to the next block that is kept */
	uint64_t random; /* 0: not begun */
	pid_t pid; /* that has begun it */
	bool is_busy;
};
extern SAMPLER_TLS struct sampler_thread sampler_me __attribute__((visibility("hidden")));

/* In one word, so that free() looks at one: how many probes are in, counted by the kernel, and whether there may
 * be blocks that are kept. */
union sampler_state {
	struct {
		volatile uint16_t semaphore;
		volatile uint16_t may_have;
	};
	volatile uint32_t both;
};
extern union sampler_state sampler_state __attribute__((visibility("hidden")));
extern uint8_t sampler_filter[1 << SAMPLER_FILTER_SHIFT] __attribute__((visibility("hidden")));

static inline bool sampler_is_asleep(void)
{
	return sampler_state.semaphore == 0;
}

/* Nothing is kept: a free has nothing to tell. */
static inline bool sampler_is_empty(void)
{
	return sampler_state.both == 0;
}

/* false: this block is the end of the thread's interval, or it has none yet; see heaptap_sampler_take(). */
static inline bool sampler_passes(size_t bytes)
{
	struct sampler_thread *t = &sampler_me;

	if (bytes >= t->left_bytes) /* with a rate of 1 nothing passes, no bytes either */
		return false;
	t->left_bytes -= bytes;
	return true;
}

/* Blocks are 16 bytes apart at least, and lie close together: a multiplication would spread them no better. */
static inline uint32_t sampler_hash(const void *ptr)
{
	return (uint32_t)((uintptr_t)ptr >> 4) & ((1 << SAMPLER_FILTER_SHIFT) - 1);
}

static inline bool sampler_may_have(const void *ptr)
{
	return sampler_filter[sampler_hash(ptr)] != 0;
}

/* A block of so many bytes, of which sampler_passes() said false: is it kept? A new interval begins. */
bool heaptap_sampler_take(size_t bytes);
/* It is there. Tells of it. */
void heaptap_sampler_keep(void *ptr, size_t bytes);
/* It is about to go. Tells of that; *ret_bytes: of the block. false: it was not kept. */
bool heaptap_sampler_drop(void *ptr, size_t *ret_bytes);
/* It never was: a block of entries.c, whose frees have to be looked at. */
void heaptap_sampler_mark(const void *ptr);

#endif
