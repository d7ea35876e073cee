/* SPDX-License-Identifier: MIT */
/*
 * fuzz_attach.c - all that an attach reads of one file (track/file_content.h), without a kernel.
 *
 * The first byte says what the rest is. 0: a file as it stands. 1 and up: a file of megabytes perhaps, made by
 * costly_elf.h; the second byte is its size, the rest are words that are written over it: where and what.
 */
#include "fuzz.h"

#include <elf.h>
#include <sys/mman.h>

#include "../unit/costly_elf.h"
#include "cost.h"
#include "elf/unwind_table.h"
#include "alloc/allocators.h"
#include "track/file_content.h"

#define SIZE_MIN 16384
#define SIZES 9 /* each twice the one before: up to 4 MiB */
#define PATCH_BYTES 12

static void check(const struct file_content *c)
{
	const struct track_segment *s;

	vec_each(&c->exec, s)
		if (s->off + s->bytes < s->off)
			abort();
	if (c->alloc && !c->alloc->sites.cnt)
		abort();
	for (uint32_t i = 0; c->table && i < c->table->page_cnt; i++)
		if (c->table->pages[i].row_cnt &&
		    c->table->pages[i].first + c->table->pages[i].row_cnt > c->table->row_cnt)
			abort();
	if (strlen(c->build_id_hex) > 2 * BUILD_ID_BYTES_CAP)
		abort();
}

static void read_file(const void *data, size_t bytes)
{
	const struct file_source source = { "/none", "/none", false, true, true };
	const struct alloc_options opts = { 0 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct file_content content = { 0 };
	uint64_t start = cost_now_ns();
	struct elf_file *ef = NULL;

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	if (!elf_file_open_fd(fd, &ef)) {
		struct elf_file *debug = file_content_open_debug(ef, &source);

		if (file_content_read(ef, debug, &source, &opts, &content))
			abort();
		elf_file_close(debug);
		check(&content);
		if (elf_file_budget(ef)->is_over && !content.is_partly_read)
			abort();
		cost_check(ef, start, bytes);
	}
	file_content_release(&content);
	elf_file_close(ef);
	close(fd);
}

/* Small places first, where the headers are. */
static void patch(struct costly *c, const uint8_t *p)
{
	uint32_t at;

	memcpy(&at, p, sizeof(at));
	at = at & 1 ? (at >> 1) % 4096 : (at >> 1) % (uint32_t)(c->bytes - 8);
	memcpy(c->data + at, p + 4, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct costly c;
	size_t kind;

	if (bytes < 2)
		return 0;
	kind = data[0] % (COSTLY_KIND_CNT + 1);
	if (!kind) {
		read_file(data + 1, bytes - 1);
		return 0;
	}
	costly_kinds[kind - 1].make(&c, (size_t)SIZE_MIN << data[1] % SIZES);
	for (size_t at = 2; at + PATCH_BYTES <= bytes; at += PATCH_BYTES)
		patch(&c, data + at);
	read_file(c.data, c.bytes);
	free(c.data);
	return 0;
}
