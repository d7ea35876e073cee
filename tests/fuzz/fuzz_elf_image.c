/* SPDX-License-Identifier: MIT */
/*
 * fuzz_elf_image.c - a file that is read by its descriptor: with holes, growing, becoming shorter while it is read,
 * within a budget.
 *
 * The input is its size, then what is done, six bytes each: what, where, how much. Beside it stands what the
 * file was when it was opened.
 */
#include "fuzz.h"

#include <sys/mman.h>

#include "elf/elf_budget.h"
#include "elf/elf_file.h"

#define STEP_BYTES 6
#define FILE_BYTES_CAP (1 << 19)

enum { WRITE, READ, SHORTEN, LIMIT, DO_CNT };

struct image {
	struct elf_image im;
	struct elf_budget budget;
	uint8_t *was; /* when it was opened */
	size_t bytes;
	int fd;
	bool is_changed; /* since */
};

static void fill(struct image *i, size_t off, size_t bytes)
{
	uint8_t block[256];

	memset(block, 0xa5, sizeof(block));
	if (off + sizeof(block) > FILE_BYTES_CAP || pwrite(i->fd, block, sizeof(block), off) < 0)
		return;
	for (size_t n = sizeof(block); n < bytes && off + n + sizeof(block) < FILE_BYTES_CAP;
	     n += sizeof(block))
		if (pwrite(i->fd, block, sizeof(block), off + n) < 0)
			return;
}

static void check_read(struct image *i, uint64_t off, uint64_t bytes)
{
	const uint8_t *got = elf_image_get(&i->im, off, bytes);
	bool is_inside = off <= i->bytes && bytes <= i->bytes - off;

	if (got && !is_inside)
		abort();
	if (!got && is_inside && !i->budget.is_over)
		abort();
	/* What has gone meanwhile is zeros. */
	for (uint64_t n = 0; got && n < bytes; n++)
		if (got[n] != i->was[off + n] && !(i->is_changed && (!got[n] || got[n] == 0xa5)))
			abort();
	if (got && elf_image_get(&i->im, off, bytes) != got)
		abort();
	if (i->budget.bytes > i->budget.bytes_cap)
		abort();
}

static int open_image(struct image *i)
{
	off_t end = lseek(i->fd, 0, SEEK_END);
	int err = elf_image_open_fd(i->fd, &i->im);

	if ((end > 0) != !err)
		abort();
	if (err)
		return err;
	i->bytes = (size_t)end;
	i->was = calloc(1, i->bytes);
	if (!i->was || pread(i->fd, i->was, i->bytes, 0) != end || i->im.bytes != i->bytes)
		abort();
	elf_budget_init(&i->budget, i->bytes);
	i->im.budget = &i->budget;
	return 0;
}

static void run_step(struct image *i, const uint8_t *step)
{
	uint64_t off = step[1] << 16 | step[2] << 8 | step[3];
	uint64_t bytes = step[4] << 8 | step[5];

	switch (step[0] % DO_CNT) {
	case READ:
		/* And what is far beyond any file. */
		if (step[0] & 0x80)
			off = UINT64_MAX - off;
		if (step[0] & 0x40)
			bytes = UINT64_MAX - bytes;
		check_read(i, off, bytes);
		break;
	case SHORTEN:
		i->is_changed = true;
		if (off < FILE_BYTES_CAP && ftruncate(i->fd, (off_t)off))
			abort();
		break;
	case LIMIT:
		if (i->budget.bytes < off)
			i->budget.bytes_cap = off;
		break;
	default:
		i->is_changed = true;
		fill(i, off, bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct image i = { .fd = memfd_create("fuzz", MFD_CLOEXEC) };
	size_t at = 2;

	if (bytes < 2 || i.fd < 0 || ftruncate(i.fd, (data[0] << 8 | data[1]) * 8))
		goto out;
	/* What is written before the first reading is there when it is opened. */
	for (; at + STEP_BYTES <= bytes && data[at] % DO_CNT == WRITE; at += STEP_BYTES)
		fill(&i, data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3],
		     data[at + 4] << 8 | data[at + 5]);
	if (open_image(&i))
		goto out;
	for (; at + STEP_BYTES <= bytes; at += STEP_BYTES)
		run_step(&i, data + at);
	elf_image_close(&i.im);
out:
	free(i.was);
	if (i.fd >= 0)
		close(i.fd);
	return 0;
}
