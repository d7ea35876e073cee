/* SPDX-License-Identifier: MIT */
/*
 * map_delete.c - see map_delete.h. The kernel stops at the first key that it cannot delete, and says how many it has
 * deleted before.
 */
#include "kernel/map_delete.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>

int map_delete_keys(int fd, const void *keys, size_t key_bytes, size_t cnt,
		    map_deleted_fn on_deleted, void *ctx)
{
	const char *at = keys, *end = at + cnt * key_bytes;

	while (at < end) {
		uint32_t done = (uint32_t)((size_t)(end - at) / key_bytes);
		int err = bpf_map_delete_batch(fd, at, &done, NULL);

		if (err && err != -ENOENT)
			return err;
		for (; done--; at += key_bytes)
			on_deleted(ctx, at);
		if (err)
			at += key_bytes; /* somebody else has deleted it */
	}
	return 0;
}
