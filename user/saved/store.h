/* SPDX-License-Identifier: MIT */
/*
 * store.h - the saved profiles: files in a folder, or in memory, bounded in number and bytes.
 *
 * A profile comes as a file in memory, made by a child process. With a folder the child also writes it there
 * (saved_store_write(): under another name, synced, renamed, the folder synced), so that a file under its own name
 * is complete and survives a crash, and no slow disk holds up the daemon. Files that the folder does not take stay
 * in memory, within KEEP_MEMORY_MAX and, because each is an open descriptor there, KEEP_MEMORY_FILES_MAX.
 *
 * Only files with names of name.h count, are served and are removed; everything else in the folder is left alone.
 * Files of an earlier process count too. The folder belongs to one process at a time.
 */
#ifndef HT_SAVED_STORE_H
#define HT_SAVED_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "saved/name.h"
#include "saved/rules.h"

struct err;
struct saved_store;

#define KEEP_MEMORY_MAX ((uint64_t)32 << 20)
#define KEEP_MEMORY_FILES_MAX 64

struct saved_store_options {
	const char *dir; /* NULL: memory only; created if missing, its parent is not */
	size_t file_max;
	uint64_t bytes_max; /* of the folder; without one at most KEEP_MEMORY_MAX */
};

struct saved_store_stats {
	size_t cnt; /* now, in memory and folder */
	uint64_t bytes;
	size_t memory_cnt;
	uint64_t memory_bytes;
	uint64_t added_cnt;
	uint64_t removed_cnt; /* for want of room */
	uint64_t unwritten_cnt; /* not taken by the folder: disk full, ... */
};

struct kept_file {
	struct saved_name name;
	uint64_t bytes;
	double inuse_bytes; /* < 0: not known, made by an earlier process */
	enum saved_rank rank;
	int fd; /* in memory; -1: in the folder */
};

/* -errno, with a sentence for the user in why. The folder must exist and be writable by us, and by nobody else. */
int saved_store_open(const struct saved_store_options *opts, struct saved_store **ret,
		     struct err *why);
/* The folder's files stay. */
void saved_store_close(struct saved_store *s);
bool saved_store_has_dir(const struct saved_store *s);

/* Set other bounds, as in the options. Files beyond them are removed now. */
void saved_store_set_bounds(struct saved_store *s, size_t file_max, uint64_t bytes_max);

/* Runs in the child: write the file fd to the folder, complete or not at all. -ENOSPC, ... */
int saved_store_write(const struct saved_store *s, const struct saved_name *name, int fd);
/* Handle the file of a child that was killed while writing, and writes no more. Half a file is removed; a complete
 * one counts like those of an earlier process: true. */
bool saved_store_recover(struct saved_store *s, const struct saved_name *name);
/* Takes over fd (in memory); write_err is the result of saved_store_write(). May remove other files. */
int saved_store_add(struct saved_store *s, const struct saved_name *name, int fd, int write_err,
		    double inuse_bytes, enum saved_rank rank);
/* Remove a file of this name that is not needed any more (there is a newer peak). */
void saved_store_drop(struct saved_store *s, const struct saved_name *name);
/* Change the rank of the files of the running process pid, which has ended. */
void saved_store_set_rank(struct saved_store *s, pid_t pid, enum saved_rank rank);
/* Rank of a file whose process has ended. */
enum saved_rank saved_rank_of(const struct saved_name *n);

/* The files, the oldest first, in order of arrival; valid until the next change. */
const struct kept_file *saved_store_files(const struct saved_store *s, size_t *ret_cnt);
/* Return a descriptor of the file, which the caller closes. -errno: somebody has removed it. */
int saved_store_fetch(const struct saved_store *s, const struct kept_file *f);
void saved_store_stats(const struct saved_store *s, struct saved_store_stats *ret);

#endif
