/* SPDX-License-Identifier: MIT */
/*
 * jvm_attach.h - asks a running HotSpot JVM to write /tmp/perf-PID.map, as `jcmd PID Compiler.perfmap`
 * does.
 *
 * The JVM opens its socket when it finds a file .attach_pidPID and gets a SIGQUIT. We send it neither to a
 * process that does not catch SIGQUIT, which would die, nor to a JVM that forbids attaching, which would print
 * its threads.
 */
#ifndef HT_PROC_JVM_ATTACH_H
#define HT_PROC_JVM_ATTACH_H

#include <stdbool.h>

struct err;
struct process_info;

/* Does the process run a HotSpot JVM? */
bool jvm_is_hotspot(const struct process_info *info);
/*
 * Write the map and wait for it: usually a tenth of a second, at most eleven seconds. 0; else a negative errno,
 * and why in a sentence: -EPERM: it would not be harmless, or the JVM refuses; -ETIMEDOUT, -ESRCH.
 */
int jvm_write_perfmap(const struct process_info *info, struct err *why);

#endif
