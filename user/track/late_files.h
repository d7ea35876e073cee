/* SPDX-License-Identifier: MIT */
/*
 * late_files.h - files with an allocator that a recorded process mapped before they were probed. What it allocated through
 * them meanwhile is not seen. Its instance says so (late_file_cnt).
 */
#ifndef HT_TRACK_LATE_FILES_H
#define HT_TRACK_LATE_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct probes;
struct track_file;
struct track_instance;
struct tracked_process;

/* It has mapped a file executable. */
void late_files_note_mapped(struct tracked_process *p, uint64_t ino, uint64_t time_ns);
/*
 * Call it after the files of a reading were probed and tapped. Each late file is found once. It is noted in inst, or not if
 * the process did not run meanwhile (inst is NULL).
 */
void late_files_find(struct tracked_process *p, const struct probes *probes,
		     struct track_instance *inst);
/* The file cannot be tapped, so what is allocated through it stays unseen. */
void late_files_note_never(struct track_instance *inst, const struct track_file *file);

/* What is said of the late files of a process. */
#define LATE_FILES_WORDS 416
const char *late_files_words(const struct track_instance *inst, char buf[LATE_FILES_WORDS]);

#endif
