/* SPDX-License-Identifier: MIT */
/*
 * push_spool.h - requests that wait for a backend: first in, first out, bounded in number and
 * bytes. When there is no room the oldest go, and are counted.
 *
 * The newest ones are in memory, so that a backend that answers costs no disk. What waits longer
 * than that is in the folder, one file each, and survives heaptap: push_spool_settle() writes what is
 * still in memory. Without a folder all of it is in memory.
 *
 * A file is made under another name, then renamed: under its own name it is whole, unless the
 * machine lost power, which its checksum tells (nothing is synced: capture does not wait for
 * disks). One that is damaged is passed over, removed and counted. The folder belongs to one
 * process at a time.
 */
#ifndef HT_PUSH_SPOOL_H
#define HT_PUSH_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct push_spool;

struct push_spool_options {
	const char *dir; /* NULL: memory only; made when it is not there, its parent is not */
	size_t cnt_max;
	uint64_t bytes_max; /* of all, wherever they are */
	uint64_t memory_bytes_max; /* of those in memory, when there is a folder */
};

struct push_spool_stats {
	size_t cnt; /* waiting now */
	uint64_t bytes;
	uint64_t dropped_cnt, dropped_bytes; /* the oldest, for want of room */
	uint64_t unwritten_cnt; /* of these, because the folder took no more: disk full, ... */
	uint64_t corrupt_cnt; /* damaged or foreign files that were removed */
};

/* What an earlier process left in the folder is there again. -EBUSY: another one has the folder;
 * -EPERM: others can write to it (folder.h, FOLDER_OURS); -errno of making, opening or reading it. */
int push_spool_open(const struct push_spool_options *opts, struct push_spool **ret);
/* Settles first. */
void push_spool_close(struct push_spool *s);

/* Takes data (malloc'd) over, also when it fails: -ENOMEM, -E2BIG (larger than all there may be;
 * counted as dropped). */
int push_spool_add(struct push_spool *s, uint8_t *data, size_t bytes);
/* A copy of the oldest, for the caller to free, and the number it is dropped by. -ENOENT: none
 * waits; -ENOMEM, -EMFILE. */
int push_spool_first(struct push_spool *s, uint8_t **ret, size_t *ret_bytes, uint64_t *ret_seq);
/* Sent, or refused: the oldest goes, uncounted. false: it has gone already, for want of room, and
 * has been counted as dropped. */
bool push_spool_drop(struct push_spool *s, uint64_t seq);
/* What is in memory goes to the folder. */
void push_spool_settle(struct push_spool *s);
void push_spool_stats(const struct push_spool *s, struct push_spool_stats *ret);

#endif
