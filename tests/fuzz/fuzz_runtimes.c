/* SPDX-License-Identifier: MIT */
/*
 * fuzz_runtimes.c - heaps of the JVM, V8 and Go with words that a process has changed.
 *
 * The first byte chooses the heap, the rest is changes, of 12 bytes each: which word, and its value, or how far into a part of the
 * memory it leads. What is taken is never more than there is, and the reading ends.
 */
#include "fuzz.h"

#include "../unit/made_runtimes.h"

#define READ_CAP 1000000 /* calls */
#define HEAP_CNT 7

static void make(struct made *h, unsigned int which)
{
	static const uint32_t state_offs[] = { 99, 107 };

	if (which < 2)
		make_java(h, which);
	else if (which < 5)
		make_v8(h, 11 + (int)which - 2);
	if (which < 5)
		return;
	make_go(h, state_offs[which - 5]);
	h->list[0].rss_bytes = 2 * MIB; /* an input takes as long as there are pages */
}

/* Half of the changes are where a heap has its words: at the beginning of a part, or behind 128 KiB of it. */
static void change(struct made *h, const uint8_t *data)
{
	uint32_t where, part;
	uint64_t value, at;

	memcpy(&where, data, sizeof(where));
	memcpy(&value, data + 4, sizeof(value));
	part = (where >> 2) % PARTS;
	at = (where >> 4) % (where & 1 ? 128 : PART_BYTES / 8) * 8;
	if (h->parts[part] < MEMORY_PAGE) /* this heap has less */
		part = 0;
	if (where & 1 && where & 2)
		at += 128 * 1024;
	else if (where & 2)
		value = h->parts[value % PARTS] + (value >> 2) % PART_BYTES;
	set(h, h->parts[part] + at, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint64_t taken = 0;
	struct runtimes rt;
	struct made h;

	if (!bytes)
		return 0;
	make(&h, data[0] % HEAP_CNT);
	for (data++, bytes--; bytes >= 12; data += 12, bytes -= 12)
		change(&h, data);
	rt = found(&h);
	for (size_t i = 0; i < h.maps.list.cnt; i++) {
		if (h.list[i].taken_bytes > h.list[i].rss_bytes)
			abort();
		taken += h.list[i].taken_bytes;
	}
	if (h.read_cnt > READ_CAP || rt.v8.isolate_cnt > V8_ISOLATES ||
	    rt.python.live + rt.python.free + rt.java.resident + rt.go.live + rt.go.free +
			    rt.v8.resident !=
		    taken)
		abort();
	end(&h);
	return 0;
}
