/* SPDX-License-Identifier: MIT */
/*
 * tap_code.h - builds the code of a tap for one allocator in one process: the stub with its header filled, and
 * the way in of each site; and the list of allocator bytes to change.
 *
 * Pure: built before anything is touched, for an address chosen before.
 */
#ifndef HT_TAP_TAP_CODE_H
#define HT_TAP_TAP_CODE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tap/tap_layout.h"

struct alloc_file;
struct alloc_site;
struct err;

/* Code, control and data lie behind each other, and are mapped together or not at all. */
#define TAP_CODE_BYTES (16 * 4096)
#define TAP_CONTROL_BYTES 4096
#define TAP_FILE_BYTES (TAP_CODE_BYTES + TAP_CONTROL_BYTES) /* of the memory file */
#define TAP_DATA_BYTES ((sizeof(struct tap_data) + 4095) / 4096 * 4096)
#define TAP_BYTES (TAP_FILE_BYTES + TAP_DATA_BYTES)

struct tap_code_request {
	const struct alloc_file *alloc;
	uint64_t bias; /* address - vaddr */
	uint64_t code_addr; /* TAP_BYTES are free there, within 2 GiB of the allocator */
};

struct tap_code {
	uint8_t bytes[TAP_CODE_BYTES];
	size_t byte_cnt;
};

static inline const struct tap_header *tap_code_header(const struct tap_code *c)
{
	return (const struct tap_header *)c->bytes;
}

/* How much of a function is seen. */
enum tap_use {
	TAP_USE_WHOLE,
	TAP_USE_INSIDE, /* a function that it calls is tapped */
	/* the block that a realloc takes is seen; the block that it returns is not sampled */
	TAP_USE_FREES,
	TAP_USE_NOTHING, /* its allocations are not sampled; its blocks may be freed like others */
	/* refused: blocks would seem to be in use for ever, or most would be missing */
	TAP_USE_REFUSED,
};
/* why: a sentence, for the last three. */
enum tap_use tap_use_of(const struct alloc_site *site, struct err *why);
/* "mi_new_n, mi_heap_alloc_new and 2 more": the functions whose blocks are not sampled. "": none. */
void tap_code_missed(const struct alloc_file *alloc, char *buf, size_t buf_bytes);

/*
 * -ENOTSUP: the allocator cannot be tapped, and why has a sentence (the addresses of the request do not
 * matter); -ERANGE: code_addr is too far away.
 */
int tap_code_check(const struct alloc_file *alloc, struct err *why);
int tap_code_build(const struct tap_code_request *req, struct tap_code *ret, struct err *why);

#endif
