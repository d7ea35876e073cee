/* SPDX-License-Identifier: MIT */
/*
 * exec_hold.h - holds programs at an exec until main has read them and attached its probes.
 *
 * A thread of the guardian traces them (tracer.c says how, and what they notice of it). Main is told twice.
 * First, when a process has executed a program: nothing of it has run yet, but its libraries are not mapped.
 * Second, each time that its loader has mapped libraries, of which nothing has run either; this needs a probe
 * on the loader and the mark HT_TARGET_HELD on the process. Each time main reads the process and then lets it
 * go on. After HOLD_LIMIT_NS it goes on by itself.
 *
 * Call it from one thread only.
 */
#ifndef HT_GUARDIAN_EXEC_HOLD_H
#define HT_GUARDIAN_EXEC_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "guardian/guardian_priv.h" /* HOLD_LIMIT_NS */

struct exec_hold;
struct guardian;

struct exec_hold_stop {
	pid_t tid; /* a thread of the process; at an exec its only one, whose id is the process's */
	bool is_exec;
	uint64_t until_ns; /* when the process goes on by itself */
	uint64_t serial;
};

int exec_hold_new(struct guardian *g, struct exec_hold **ret);
/* Let everybody go on. NULL is fine. */
void exec_hold_free(struct exec_hold *h);

/* Start tracing pid, which must have no other threads. Once, before anybody is held. is_family: with all
 * threads and children that it will have. -EPERM: it is traced by another process, or may not be traced. */
int exec_hold_begin(struct exec_hold *h, pid_t pid, bool is_family);
/* Readable when a process is held, or the guardian is gone. */
int exec_hold_fd(const struct exec_hold *h);
/* -EAGAIN: nobody is held. -EPIPE: the guardian is gone, and nobody will be held. */
int exec_hold_next(struct exec_hold *h, struct exec_hold_stop *ret);
void exec_hold_resume(struct exec_hold *h, const struct exec_hold_stop *stop);
/* Let a held process go on and stop tracing it and the children that it will have. */
void exec_hold_detach(struct exec_hold *h, pid_t pid);

#endif
