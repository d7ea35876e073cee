/* SPDX-License-Identifier: MIT */
/*
 * fuzz_events.c - a ring of records of mappings, with any content.
 *
 * The kernel writes the ring, and paths and addresses in it are what processes say. The input lies in the ring
 * from an offset on that its first two bytes say, over the ring's end if it reaches so far.
 */
#include "fuzz.h"

#include "proc/events.c" /* a ring is made here */

static void on_mmap(void *ctx, const struct process_events_map *map)
{
	if (!map->ino || strlen(map->path) > UINT16_MAX)
		abort();
}

static void on_lost(void *ctx, uint64_t cnt)
{
}

static void fill(uint8_t *ring, uint64_t at, const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		ring[(at + i) % RING_BYTES] = data[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct process_events_ops ops = { .on_mmap = on_mmap, .on_lost = on_lost };
	struct process_events ev = { .ops = &ops, .record = malloc(UINT16_MAX + 1) };
	struct cpu_ring ring = { .header = calloc(1, page_bytes() + RING_BYTES) };
	uint64_t tail;

	if (bytes < 2 || bytes > RING_BYTES || !ev.record || !ring.header)
		goto out;
	/* Records begin at multiples of 8, and so does what comes behind the last. */
	tail = ((uint64_t)data[0] << 8 | data[1]) * 8;
	data += 2;
	bytes = (bytes - 2) & ~(size_t)7;
	fill((uint8_t *)ring.header + page_bytes(), tail, data, bytes);
	ring.header->data_tail = tail;
	ring.header->data_head = tail + bytes;
	drain_ring(&ev, &ring);
	/* Whatever it was, it is over. */
	if (ring.header->data_tail != ring.header->data_head)
		abort();
out:
	free(ring.header);
	free(ev.record);
	return 0;
}
