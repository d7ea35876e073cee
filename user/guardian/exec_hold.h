/* SPDX-License-Identifier: MIT */
/*
 * exec_hold.h - programs wait at an exec until main has read them and put its probes in.
 *
 * A thread of the guardian traces them (tracer.c says how, and what they see of it). Main is told twice: when
 * a process has executed a program, of which nothing has run yet but whose libraries are not there; and
 * each time that its loader has mapped libraries, of which nothing has run either, where the loader is
 * probed and the process is marked for that (HT_TARGET_HELD). Each time main reads the process and then
 * says that it may go on. It does so by itself after HOLD_LIMIT_NS.
 *
 * For one thread.
 */
#ifndef HT_GUARDIAN_EXEC_HOLD_H
#define HT_GUARDIAN_EXEC_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "guardian/wire.h" /* HOLD_LIMIT_NS */

struct exec_hold;
struct guardian;

struct exec_hold_stop {
	pid_t tid; /* a thread of it; at an exec its only one, and the process's id */
	bool is_exec;
	uint64_t until_ns; /* it goes on by itself */
	uint64_t serial;
};

int exec_hold_new(struct guardian *g, struct exec_hold **ret);
/* Everybody goes on. NULL is fine. */
void exec_hold_free(struct exec_hold *h);

/* Once, before anybody is held. Of a process without other threads. is_family: with all threads and children
 * that it will have. -EPERM: it is traced by somebody else, or may not be traced. */
int exec_hold_begin(struct exec_hold *h, pid_t pid, bool is_family);
/* Readable when somebody is held, or the guardian is gone. */
int exec_hold_fd(const struct exec_hold *h);
/* -EAGAIN: nobody is held. -EPIPE: the guardian is gone, and nobody will be. */
int exec_hold_next(struct exec_hold *h, struct exec_hold_stop *ret);
void exec_hold_go_on(struct exec_hold *h, const struct exec_hold_stop *stop);
/* A process that is held goes on and is not traced any more, nor are children that it will have. */
void exec_hold_let_go(struct exec_hold *h, pid_t pid);

#endif
