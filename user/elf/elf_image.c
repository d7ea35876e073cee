/* SPDX-License-Identifier: MIT */
/*
 * elf_image.c - the bytes of a file, each read when it is first needed.
 *
 * libelf is given this memory (elf_memory()), not the file. What was measured with libelf 0.188:
 *   mapped (elf_memory() over mmap(), ELF_C_READ_MMAP): libelf checks a header in the mapping and uses it later. Whoever
 *     rewrites the file in between makes it read outside of the mapping (SIGSEGV). A file that is cut raises SIGBUS.
 *     Reading a hole of 512 MB on a tmpfs allocates 512 MB there, in our name; pread() allocates nothing.
 *   read by libelf (ELF_C_READ): a section is a private copy without limit, and code is only to be had as a copy of its
 *     segment: 236 MB for a browser, of which everything that is read takes 54 MB.
 *
 * So an anonymous area of the file's size is reserved (address space only), and pieces of CHUNK_BYTES are read into it
 * with pread() when a caller asks for a range. Bytes that have vanished since open read as zeros, which the parsers refuse
 * like any damage. Holes of a sparse file are zeros without being read: they cost their maker nothing, so they cost no
 * memory here. The price: the bytes that were read are private memory, not shared page cache, until the image is closed.
 */
#include "elf/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/elf_budget.h"

#define CHUNK_BYTES (16 * 1024)
#define READ_BYTES_CAP (1024 * 1024) /* per read: a hole is looked for after it */
/* Far above any real program; up to this size the reservation and the bitmap are always affordable. */
#define FILE_BYTES_CAP (1ULL << 36)

static int reserve(size_t bytes, struct elf_image *ret)
{
	void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return -ENOMEM;
	*ret = (struct elf_image){ .data = data, .bytes = bytes, .fd = -1 };
	return 0;
}

int elf_image_open_fd(int fd, struct elf_image *ret)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOEXEC;
	if ((uint64_t)st.st_size > FILE_BYTES_CAP)
		return -EFBIG;
	err = reserve((size_t)st.st_size, ret);
	if (err)
		return err;
	ret->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	err = ret->fd < 0 ? -errno : 0;
	ret->chunk_read = calloc(1, ret->bytes / CHUNK_BYTES + 1);
	if (!err && !ret->chunk_read)
		err = -ENOMEM;
	if (err)
		elf_image_close(ret);
	return err;
}

int elf_image_open_mem(const void *data, size_t bytes, struct elf_image *ret)
{
	int err = bytes ? reserve(bytes, ret) : -ENOEXEC;

	if (!err)
		memcpy(ret->data, data, bytes);
	return err;
}

void elf_image_close(struct elf_image *im)
{
	if (im->data)
		munmap(im->data, im->bytes);
	free(im->chunk_read);
	if (im->fd >= 0)
		close(im->fd);
}

/* Where data begins in [off, end); end if there is none. */
static size_t skip_hole(const struct elf_image *im, size_t off, size_t end)
{
	off_t data = lseek(im->fd, (off_t)off, SEEK_DATA);

	if (data < 0) /* no more data, or the file system cannot tell */
		return errno == ENXIO ? end : off;
	return (size_t)data < end ? (size_t)data : end;
}

/* Bytes that cannot be read stay zero. False: too much was read. */
static bool read_range(const struct elf_image *im, size_t off, size_t end)
{
	while ((off = skip_hole(im, off, end)) < end) {
		size_t bytes = end - off < READ_BYTES_CAP ? end - off : READ_BYTES_CAP;
		ssize_t n;

		if (im->budget && !elf_budget_fill(im->budget, bytes))
			return false;
		do {
			n = pread(im->fd, im->data + off, bytes, (off_t)off);
		} while (n < 0 && errno == EINTR);
		if (n <= 0)
			break;
		off += (size_t)n;
	}
	return true;
}

uint8_t *elf_image_get(const struct elf_image *im, uint64_t off, uint64_t bytes)
{
	size_t i, run, end;

	if (off > im->bytes || bytes > im->bytes - off)
		return NULL;
	for (i = off / CHUNK_BYTES; im->fd >= 0 && i * CHUNK_BYTES < off + bytes; i = run + 1) {
		for (run = i; run * CHUNK_BYTES < off + bytes && !im->chunk_read[run]; run++)
			;
		end = run * CHUNK_BYTES < im->bytes ? run * CHUNK_BYTES : im->bytes;
		if (run > i && !read_range(im, i * CHUNK_BYTES, end))
			return NULL;
		memset(im->chunk_read + i, 1, run - i);
	}
	return im->data + off;
}
