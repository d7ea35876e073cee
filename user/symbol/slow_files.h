/* SPDX-License-Identifier: MIT */
/*
 * slow_files.h - shared notes of processes that look up symbols: which files were too slow, which helpers hang,
 * and when it is too late for names.
 *
 * It lies in memory shared with the children that are forked after it was made. No locks, because any of them
 * may be killed at any moment. A kill can tear one entry, which then is another file's or nobody's.
 */
#ifndef HT_SYMBOL_SLOW_FILES_H
#define HT_SYMBOL_SLOW_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* For so long a file that was too slow is not tried again. */
#define SLOW_FILES_NS (600ULL * 1000000000)
/* Limits of helpers that a kill does not end, because the kernel waits for the file's answer: for one file
 * system, and in total. At the limit, files of that file system, or all files, are not tried while the helpers
 * hang. */
#define SLOW_FILES_HUNG_DEVICE 4
#define SLOW_FILES_HUNG 32

/* Identity of a file's present content; all 0: the file is not remembered. */
struct slow_file_key {
	uint32_t dev;
	uint64_t ino;
	int64_t changed_ns;
};

enum slow_file_part {
	SLOW_FILE_NOTHING,
	SLOW_FILE_DWARF, /* too slow: only its DWARF; its symbol table may be read */
	SLOW_FILE_ALL,
};

struct slow_files;

int slow_files_new(struct slow_files **ret);
void slow_files_free(struct slow_files *s);
/* For a child whose own children must not see it. */
void slow_files_hide(struct slow_files *s);

/* NULL is fine in all functions below: then nothing is remembered. */
void slow_files_put(struct slow_files *s, const struct slow_file_key *key, enum slow_file_part part,
		    uint64_t now_ns);
enum slow_file_part slow_files_find(const struct slow_files *s, const struct slow_file_key *key,
				    uint64_t now_ns);
/* Note a helper that does not end. */
void slow_files_put_hung(struct slow_files *s, uint32_t dev, pid_t pid);
/* Is the limit of hanging helpers reached? */
bool slow_files_is_full(const struct slow_files *s, uint32_t dev);
/* Look up no name after this moment (CLOCK_MONOTONIC). */
void slow_files_end_at(struct slow_files *s, uint64_t end_ns);
/* UINT64_MAX: no moment was set. */
uint64_t slow_files_end_ns(const struct slow_files *s);

#endif
