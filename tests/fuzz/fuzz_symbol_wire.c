/* SPDX-License-Identifier: MIT */
/*
 * fuzz_symbol_wire.c - what a helper that was taken over may send, in pieces of any size.
 *
 * The first byte says how large the pieces are; the second ends the first stream early.
 */
#include "fuzz.h"

#include "symbol/symbol_wire.h"

#define ADDR_CNT 50

static void check(const struct wire_reader *r)
{
	for (size_t i = 0; i < ADDR_CNT; i++) {
		const struct wire_answer *a = &r->answers[i];

		if (a->cnt > WIRE_FRAMES_CAP || (uint64_t)a->first + a->cnt > r->frames.cnt)
			abort();
		for (uint32_t k = a->first; k < a->first + a->cnt; k++) {
			const struct symbol_frame *f = &r->frames.data[k];

			if (!strlen(f->name) ||
			    strlen(f->system_name) + strlen(f->file) > SIZE_MAX / 2)
				abort();
		}
	}
}

static void feed(struct wire_reader *r, const uint8_t *data, size_t bytes, size_t piece)
{
	for (size_t at = 0; at < bytes; at += piece) {
		int err = wire_reader_feed(r, data + at, bytes - at < piece ? bytes - at : piece);

		if (err && err != -EBADMSG && err != -ENOMEM)
			abort();
		if (err)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wire_reader r;
	size_t piece, first;

	if (bytes < 2 || wire_reader_init(&r, ADDR_CNT))
		return 0;
	piece = (size_t)data[0] + 1;
	first = (bytes - 2) * data[1] / 255;
	feed(&r, data + 2, first, piece);
	wire_reader_restart(&r);
	feed(&r, data + 2 + first, bytes - 2 - first, piece);
	check(&r);
	wire_reader_release(&r);
	return 0;
}
