/* SPDX-License-Identifier: MIT */
/*
 * symbol_wire.h - messages of the symbol helper to its parent, through a pipe.
 *
 * A stream of records {u32 kind, u32 body bytes, body}, in the machine's byte order:
 *   STRING  bytes                    gets the next id, from 1; id 0 is ""
 *   ADDRESS u32 index, u32 source, then per frame (innermost first)
 *           u32 name, system_name, file (string ids), line, start_line
 *   DONE    u32 flags                nothing follows
 *
 * In the worst case a hostile ELF file has taken over the writer: so the reader checks every number against
 * what was announced, bounds the memory, and makes all strings valid UTF-8 without control characters.
 */
#ifndef HT_SYMBOL_WIRE_H
#define HT_SYMBOL_WIRE_H

#include "base/std.h"
#include "base/strset.h"
#include "base/vec.h"
#include "symbol/symbol.h"

struct wire_answer;

#define WIRE_STRING_BYTES_CAP 65536
#define WIRE_FRAMES_CAP 128
#define WIRE_BODY_BYTES_CAP 65536

enum wire_kind { WIRE_STRING = 1, WIRE_ADDRESS, WIRE_DONE };

/* Where the outermost name of an address came from. */
enum wire_source { WIRE_FROM_SYMBOL = 1, WIRE_FROM_DWARF };

/* Flags of WIRE_DONE: what is missing. */
#define WIRE_NO_DEBUG_INFO 1u
#define WIRE_BAD_DEBUG_INFO 2u
#define WIRE_SPLIT_DEBUG_INFO 4u
#define WIRE_NO_SYMBOLS 8u
#define WIRE_BAD_FILE 16u
#define WIRE_FLAGS_ALL 31u

/* --- the helper's side --- */

struct wire_writer {
	int fd;
	uint8_t *buf;
	size_t bytes;
	struct strset *sent; /* ids are those of the stream */
};

int wire_writer_init(struct wire_writer *w, int fd);
void wire_writer_release(struct wire_writer *w);
/* Longer strings and more frames than the bounds are cut. 0, -ENOMEM or the error of write(). */
int wire_put_address(struct wire_writer *w, uint32_t addr_idx, enum wire_source source,
		     const struct symbol_frame *frames, size_t frame_cnt);
int wire_put_done(struct wire_writer *w, uint32_t flags);

/* --- the parent's side --- */

struct wire_answer {
	uint32_t first, cnt; /* in frames; cnt 0 = not answered */
	uint32_t source; /* enum wire_source; 0 = not answered */
};

struct wire_reader {
	struct strset *strings; /* of all streams */
	struct wire_answer *answers; /* per address */
	size_t addr_cnt;
	VEC(struct symbol_frame) frames;
	uint32_t dwarf_cnt, symbol_cnt; /* addresses by source */

	/* the current stream */
	VEC(int64_t) ids; /* stream id -> id in strings */
	VEC(uint8_t) pending; /* an incomplete record */
	uint64_t stream_bytes;
	bool is_done;
	uint32_t done_flags;
};

int wire_reader_init(struct wire_reader *r, size_t addr_cnt);
void wire_reader_release(struct wire_reader *r);
/* Another stream about the same addresses begins; earlier answers stay. */
void wire_reader_restart(struct wire_reader *r);
/* 0, -ENOMEM, or -EBADMSG: the stream breaks the rules and must not be read any further. */
int wire_reader_feed(struct wire_reader *r, const void *bytes, size_t n);

/*
 * symbol_helper.c: the child process that reads the ELF file and its DWARF.
 */

struct helper_job {
	const struct symbol_options *opts;
	const struct symbol_file *file;
	const uint64_t *vaddr;
	size_t vaddr_cnt;
	/* of an earlier helper: addresses with an answer are not asked again */
	const struct wire_answer *answers;
	bool use_dwarf;
	uint64_t memory_bytes, cpu_seconds;
};

/* Fork the helper. *ret_fd is the read end of the pipe with its answers (symbol_wire.h). It exits with
 * DWARF_EXIT_NO_MEMORY when memory ran out, with 0 when all went well. */
int helper_start(const struct helper_job *job, pid_t *ret_pid, int *ret_fd);

#endif
