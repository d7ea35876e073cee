/* SPDX-License-Identifier: MIT */
/*
 * push_spool.h - requests that wait for a backend: first in, first out, bounded in number and bytes. When there is
 * no room, the oldest are dropped and counted.
 *
 * The newest requests are in memory, so that a backend that answers costs no disk. Older ones are in the folder,
 * one file each, and survive heaptap: push_spool_settle() writes those that are still in memory. Without a folder
 * all are in memory.
 *
 * A file is made under another name, then renamed: under its own name it is complete, unless the machine lost
 * power, which its checksum shows (nothing is synced: capture does not wait for disks). A damaged file is skipped,
 * removed and counted. The folder belongs to one process at a time.
 */
#ifndef HT_PUSH_SPOOL_H
#define HT_PUSH_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct push_spool;

struct push_spool_options {
	const char *dir; /* NULL: memory only; created if missing, its parent is not */
	size_t cnt_max;
	uint64_t bytes_max; /* of all requests, in memory and on disk */
	uint64_t memory_bytes_max; /* of those in memory, if there is a folder */
};

struct push_spool_stats {
	size_t cnt; /* waiting now */
	uint64_t bytes;
	uint64_t dropped_cnt, dropped_bytes; /* the oldest, for want of room */
	uint64_t unwritten_cnt; /* of these, because the folder took no more: disk full, ... */
	uint64_t corrupt_cnt; /* damaged or foreign files that were removed */
};

/* Requests that an earlier process left in the folder wait again. -EBUSY: another process uses the folder; -EPERM:
 * others can write to it (folder.h, FOLDER_OURS); -errno of making, opening or reading it. */
int push_spool_open(const struct push_spool_options *opts, struct push_spool **ret);
/* Calls push_spool_settle() first. */
void push_spool_close(struct push_spool *s);

/* Takes over data (malloc'd), also on failure: -ENOMEM, -E2BIG (larger than bytes_max; counted as dropped). */
int push_spool_add(struct push_spool *s, uint8_t *data, size_t bytes);
/* Return a copy of the oldest, which the caller frees, and the number for push_spool_drop(). -ENOENT: none waits;
 * -ENOMEM, -EMFILE. */
int push_spool_first(struct push_spool *s, uint8_t **ret, size_t *ret_bytes, uint64_t *ret_seq);
/* Remove the oldest, which was sent or refused, without counting it. false: it was already dropped for want of
 * room, and counted. */
bool push_spool_drop(struct push_spool *s, uint64_t seq);
/* Write the requests in memory to the folder. */
void push_spool_settle(struct push_spool *s);
void push_spool_stats(const struct push_spool *s, struct push_spool_stats *ret);

#endif
