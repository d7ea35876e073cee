/* SPDX-License-Identifier: MIT */
/*
 * jvm_attach.h - asks a running HotSpot JVM to write /tmp/perf-PID.map, as `jcmd PID Compiler.perfmap`
 * does.
 *
 * The JVM opens its socket when it finds a file .attach_pidPID and gets a SIGQUIT. A process that does
 * not catch SIGQUIT dies of it, and a JVM that may not be attached to prints its threads: nothing is
 * sent to either.
 */
#ifndef HT_PROC_JVM_ATTACH_H
#define HT_PROC_JVM_ATTACH_H

#include <stdbool.h>

struct err;
struct process_info;

/* Does it run a HotSpot JVM? */
bool jvm_is_hotspot(const struct process_info *info);
/*
 * Waits until it is written: a tenth of a second as a rule, eleven seconds at the most. 0; else a negative
 * errno, and why in a sentence: -EPERM it would not be harmless, or the JVM refuses; -ETIMEDOUT, -ESRCH.
 */
int jvm_write_perfmap(const struct process_info *info, struct err *why);

#endif
