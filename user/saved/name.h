/* SPDX-License-Identifier: MIT */
/*
 * name.h - the file name of a saved profile: the time, the process and the reason. Pure.
 *
 * 	TAKEN-PID-COMM-REASON.pb.gz
 * 	20260131T093012.250Z-4711-server-oom.pb.gz
 *
 * Times are UTC: sorted as text, files are in order of time. The target chooses COMM: any byte but letters, digits,
 * '.', '_' or '+' becomes '_', so the name needs no quoting anywhere, has no '/' in it, and its parts can be told
 * apart.
 */
#ifndef HT_SAVED_NAME_H
#define HT_SAVED_NAME_H

#include <stdint.h>
#include <sys/types.h>

enum saved_reason {
	KEEP_PEAK, /* "peak": the process held more than ever before */
	KEEP_LIMIT, /* "limit": its cgroup came near its limit, or reached it */
	KEEP_OOM, /* "oom": killed because memory ran out */
	KEEP_SIGNAL, /* "signalN": ended by a signal */
	KEEP_EXIT, /* "exitN": ended with this status */
	KEEP_EXEC, /* "exec": became another program */
	KEEP_GONE, /* "gone": not followed any more, or its end was not seen */
};

#define KEEP_COMM_BYTES 17
#define KEEP_NAME_BYTES 128

struct saved_name {
	char comm[KEEP_COMM_BYTES];
	pid_t pid;
	enum saved_reason reason;
	uint32_t code; /* of KEEP_SIGNAL and KEEP_EXIT */
	int64_t taken_epoch_ms;
};

/* How a process ended, from the `other` of HT_EVENT_EXIT. */
void saved_name_set_end(struct saved_name *n, uint32_t exit_status);

/* Reason for people: "out of memory". Returns buf. */
char *saved_reason_words(const struct saved_name *n, char *buf, size_t buf_bytes);
/* "20260131T093012.250Z", without ".250" when ms < 0. Returns buf. */
#define KEEP_TIME_BYTES 32
char *saved_time_text(int64_t epoch_s, int ms, char buf[static KEEP_TIME_BYTES]);

void saved_name_format(const struct saved_name *n, char buf[static KEEP_NAME_BYTES]);
/* -EINVAL: not exactly what saved_name_format() writes, so not our file. */
int saved_name_parse(const char *file, struct saved_name *ret);

#endif
