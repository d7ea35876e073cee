/* SPDX-License-Identifier: MIT */
/*
 * elf_image.c - the bytes of a file, each read when it is first needed.
 *
 * Why not mmap: when somebody truncates a mapped file (a package upgrade that rewrites in place, a target that wants to
 * hurt us), its reader gets SIGBUS, and a profiler that dies leaves its user without the recording. Why not read
 * everything: a browser with debug information is gigabytes, and identity, symbols and unwind tables are a few per cent
 * of it.
 *
 * So an anonymous area of the file's size is reserved (address space only), and pieces of CHUNK_BYTES are read into it
 * with pread() when a caller asks for a range. Pointers never move. Bytes that have vanished since open read as zeros,
 * which the parsers refuse like any damage. Holes of a sparse file are zeros without being read: they cost their maker
 * nothing, so they cost no memory here. The price: the bytes that were read are private memory, not shared page cache,
 * until the image is closed.
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

struct elf_image {
	uint8_t *data;
	size_t bytes;
	int fd; /* -1: data is complete and is on the heap */
	uint8_t *chunk_read; /* one byte per chunk */
	bool has_holes; /* the file may have holes */
	struct elf_budget *budget; /* NULL: no limit */
};

int elf_image_open_fd(int fd, struct elf_image **ret)
{
	struct elf_image *im;
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOEXEC;
	if ((uint64_t)st.st_size > FILE_BYTES_CAP)
		return -EFBIG;
	im = calloc(1, sizeof(*im));
	if (!im)
		return -ENOMEM;
	im->bytes = (size_t)st.st_size;
	im->has_holes = st.st_blocks < st.st_size / 512;
	im->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (im->fd < 0) {
		err = -errno;
		goto out;
	}
	im->chunk_read = calloc(1, im->bytes / CHUNK_BYTES + 1);
	if (!im->chunk_read) {
		err = -ENOMEM;
		goto out;
	}
	im->data = mmap(NULL, im->bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (im->data == MAP_FAILED) {
		im->data = NULL;
		err = -ENOMEM;
		goto out;
	}
	*ret = im;
	return 0;
out:
	elf_image_close(im);
	return err;
}

int elf_image_open_mem(const void *data, size_t bytes, struct elf_image **ret)
{
	struct elf_image *im = calloc(1, sizeof(*im));

	if (!im)
		return -ENOMEM;
	im->fd = -1;
	im->bytes = bytes;
	im->data = malloc(bytes ? bytes : 1);
	if (!im->data) {
		free(im);
		return -ENOMEM;
	}
	if (bytes)
		memcpy(im->data, data, bytes);
	*ret = im;
	return 0;
}

void elf_image_close(struct elf_image *im)
{
	if (!im)
		return;
	if (!im->chunk_read)
		free(im->data); /* a copy; if the bitmap is missing, data is not made yet */
	else if (im->data)
		munmap(im->data, im->bytes);
	free(im->chunk_read);
	if (im->fd >= 0)
		close(im->fd);
	free(im);
}

void elf_image_limit(struct elf_image *im, struct elf_budget *budget)
{
	im->budget = budget;
}

size_t elf_image_bytes(const struct elf_image *im)
{
	return im->bytes;
}

/* Where data begins in [off, end); end if there is none. */
static size_t skip_hole(const struct elf_image *im, size_t off, size_t end)
{
	off_t data = im->has_holes ? lseek(im->fd, (off_t)off, SEEK_DATA) : (off_t)off;

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

/* Read chunks [first, last] that have not been read. */
static bool read_chunks(const struct elf_image *im, size_t first, size_t last)
{
	size_t i = first;

	while (i <= last) {
		size_t run = i, end;

		if (im->chunk_read[i]) {
			i++;
			continue;
		}
		while (run <= last && !im->chunk_read[run])
			run++;
		end = run * CHUNK_BYTES < im->bytes ? run * CHUNK_BYTES : im->bytes;
		if (!read_range(im, i * CHUNK_BYTES, end))
			return false;
		memset(im->chunk_read + i, 1, run - i);
		i = run;
	}
	return true;
}

const uint8_t *elf_image_get(const struct elf_image *im, uint64_t off, uint64_t bytes)
{
	if (off > im->bytes || bytes > im->bytes - off)
		return NULL;
	if (im->fd >= 0 && bytes &&
	    !read_chunks(im, off / CHUNK_BYTES, (off + bytes - 1) / CHUNK_BYTES))
		return NULL;
	return im->data + off;
}
