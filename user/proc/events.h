/* SPDX-License-Identifier: MIT */
/*
 * events.h - new executable mappings of processes, from perf side-band records (MMAP2), system-wide, one ring
 * per CPU. exec, exit and fork come from BPF (exact order).
 */
#ifndef HT_PROC_EVENTS_H
#define HT_PROC_EVENTS_H

#include "base/std.h"

struct process_events;

struct process_events_map {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	pid_t pid;
	uint32_t dev;
	uint64_t ino;
	uint64_t addr, bytes, off;
	const char *path; /* as the kernel printed it */
};

struct process_events_ops {
	/* a process mapped a file executable */
	void (*on_mmap)(void *ctx, const struct process_events_map *map);
	/* pid made memory executable that has no file, as run-time compilers do, some again and again */
	void (*on_code)(void *ctx, pid_t pid);
	/* records were lost: re-read every followed process */
	void (*on_lost)(void *ctx, uint64_t cnt);
};

int process_events_open(const struct process_events_ops *ops, void *ctx,
			struct process_events **ret);
/* One epoll fd to wait on. */
int process_events_fd(const struct process_events *ev);
/* Read all pending records; calls the ops. */
int process_events_drain(struct process_events *ev);
void process_events_close(struct process_events *ev);

#endif
