/* SPDX-License-Identifier: MIT */
/* map_delete.h - deletes many entries of a hash map in one system call. */
#ifndef HT_KERNEL_MAP_DELETE_H
#define HT_KERNEL_MAP_DELETE_H

#include <stddef.h>

/*
 * Delete cnt entries, whose keys lie one behind the other. on_deleted is called once for each entry that was there and
 * that this call took out; a key without an entry is no error.
 */
typedef void (*map_deleted_fn)(void *ctx, const void *key);
int map_delete_keys(int fd, const void *keys, size_t key_bytes, size_t cnt,
		    map_deleted_fn on_deleted, void *ctx);

#endif
