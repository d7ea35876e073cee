/* SPDX-License-Identifier: MIT */
/*
 * store.h - the saved profiles: files in a folder, or in memory, bounded in number and bytes.
 *
 * A profile comes as a file in memory, made by a child process. With a folder the child writes it
 * out too (saved_store_write(): under another name, synced, renamed, the folder synced), so that a
 * file under its own name is whole and survives a crash, and no slow disk holds up the daemon.
 * What the folder does not take stays in memory, within KEEP_MEMORY_MAX and, because each is an open
 * descriptor there, KEEP_MEMORY_FILES_MAX.
 *
 * Only files whose names name.h would give count, are served and are removed; everything else
 * in the folder is left alone. What an earlier process left counts too. The folder belongs to one
 * process at a time.
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
	const char *dir; /* NULL: memory only; made when it is not there, its parent is not */
	size_t file_max;
	uint64_t bytes_max; /* with a folder; else at most KEEP_MEMORY_MAX */
};

struct saved_store_stats {
	size_t cnt; /* now; memory and folder */
	uint64_t bytes;
	size_t memory_cnt;
	uint64_t memory_bytes;
	uint64_t added_cnt;
	uint64_t removed_cnt; /* for want of room */
	uint64_t unwritten_cnt; /* that the folder did not take: disk full, ... */
};

struct kept_file {
	struct saved_name name;
	uint64_t bytes;
	double inuse_bytes; /* < 0: not known, made by an earlier process */
	enum saved_rank rank;
	int fd; /* in memory; -1: in the folder */
};

/* -errno, with a sentence for the user in why. The folder must be there, writable by us, and by
 * nobody else. */
int saved_store_open(const struct saved_store_options *opts, struct saved_store **ret,
		     struct err *why);
/* The folder's files stay. */
void saved_store_close(struct saved_store *s);
bool saved_store_has_dir(const struct saved_store *s);

/* Other bounds, as in the options. What is beyond them goes now. */
void saved_store_set_bounds(struct saved_store *s, size_t file_max, uint64_t bytes_max);

/* In the child: the file fd to the folder, whole or not at all. -ENOSPC, ... */
int saved_store_write(const struct saved_store *s, const struct saved_name *name, int fd);
/* What a child has left of a file that was killed while it wrote it, and writes no more: half of one goes;
 * a whole one counts, as those of an earlier process, and true. */
bool saved_store_recover(struct saved_store *s, const struct saved_name *name);
/* Takes fd (in memory) over; write_err is what saved_store_write() said. May remove others. */
int saved_store_add(struct saved_store *s, const struct saved_name *name, int fd, int write_err,
		    double inuse_bytes, enum saved_rank rank);
/* A file of this name is not wanted any more (a newer peak has come). */
void saved_store_drop(struct saved_store *s, const struct saved_name *name);
/* What becomes of the files of a process that has ended. */
void saved_store_set_rank(struct saved_store *s, pid_t pid, int64_t start_epoch_s,
			  enum saved_rank rank);

/* The oldest first, in the order in which they came; holds until the next change. */
const struct kept_file *saved_store_files(const struct saved_store *s, size_t *ret_cnt);
/* A descriptor of the file, for the caller to close. -errno: it was removed by somebody. */
int saved_store_fetch(const struct saved_store *s, const struct kept_file *f);
void saved_store_stats(const struct saved_store *s, struct saved_store_stats *ret);

#endif
