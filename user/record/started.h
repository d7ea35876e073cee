/* SPDX-License-Identifier: MIT */
/* started.h - the files of a program that is to be started, probed before it runs. */
#ifndef HT_RECORD_STARTED_H
#define HT_RECORD_STARTED_H

struct target;
struct tracker;

/* Follows the process t that waits to execute argv; fills its heap. */
int started_track(struct tracker *tracker, struct target *t, char *const argv[]);

#endif
