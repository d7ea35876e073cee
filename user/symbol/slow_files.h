/* SPDX-License-Identifier: MIT */
/*
 * slow_files.h - what processes that look up symbols tell each other: which files were too slow, which
 * helpers hang, and when it is too late for names.
 *
 * It lies in memory that is shared with the children that are forked after it was made. No locks: any of
 * them may be killed at any moment. What is torn by that is one entry, which then is another file's or
 * nobody's.
 */
#ifndef HT_SYMBOL_SLOW_FILES_H
#define HT_SYMBOL_SLOW_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* So long a file that was too slow is not tried again. */
#define SLOW_FILES_NS (600ULL * 1000000000)
/* Helpers that a kill does not end, because the kernel waits for the file's answer: of one file system,
 * and in all. Then files of it, or any, are not tried while they hang. */
#define SLOW_FILES_HUNG_DEVICE 4
#define SLOW_FILES_HUNG 32

/* A file as it is now; all 0: it is not remembered. */
struct slow_file_key {
	uint32_t dev;
	uint64_t ino;
	int64_t changed_ns;
};

enum slow_file_part {
	SLOW_FILE_NOTHING,
	SLOW_FILE_DWARF, /* its symbol table may be read */
	SLOW_FILE_ALL,
};

struct slow_files;

int slow_files_new(struct slow_files **ret);
void slow_files_free(struct slow_files *s);
/* For a child, whose own children must not see it. */
void slow_files_hide(struct slow_files *s);

/* NULL is fine everywhere below: nothing is remembered then. */
void slow_files_put(struct slow_files *s, const struct slow_file_key *key, enum slow_file_part part,
		    uint64_t now_ns);
enum slow_file_part slow_files_find(const struct slow_files *s, const struct slow_file_key *key,
				    uint64_t now_ns);
/* A helper that does not end. */
void slow_files_put_hung(struct slow_files *s, uint32_t dev, pid_t pid);
/* As many hang as may. */
bool slow_files_is_full(const struct slow_files *s, uint32_t dev);
/* No name is looked up after this moment (CLOCK_MONOTONIC). */
void slow_files_end_at(struct slow_files *s, uint64_t end_ns);
/* UINT64_MAX: no such moment was said. */
uint64_t slow_files_end_ns(const struct slow_files *s);

#endif
