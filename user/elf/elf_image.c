/* SPDX-License-Identifier: MIT */
/*
 * elf_image.c - the bytes of a file, read when they are first asked for.
 *
 * Why not mmap: a mapped file that somebody truncates (a package upgrade that rewrites in place,
 * a target that wants to hurt us) raises SIGBUS in whoever reads it, and a profiler that dies
 * leaves its user without the recording. Why not read it all: a browser with debug information
 * is gigabytes, and identity, symbols and unwind tables are a few per cent of it.
 *
 * So an anonymous area of the file's size is reserved (address space only), and pieces of
 * CHUNK_BYTES are read into it with pread() when a caller asks for a range. Pointers never move.
 * Bytes that have vanished since open read as zeros, which the parsers refuse like any damage.
 * The price: what is read is private memory, not shared page cache, until the image is closed.
 *
 * elf_image_map() gives the other trade for the one user who needs a whole image at once (DWARF
 * readers): a private file mapping, shared with the page cache, which does fault when the file
 * shrinks. It belongs into a process whose death is expected, such as the symbol helper.
 */
#include "elf/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES (64 * 1024)
/* Far above any real program; below it the reservation and the bitmap are always affordable. */
#define FILE_BYTES_CAP (1ULL << 36)

struct elf_image {
	uint8_t *data;
	size_t bytes;
	int fd; /* -1: data is complete and on the heap */
	uint8_t *chunk_read; /* one byte per chunk */
	uint8_t *mapped; /* elf_image_map() */
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
	if (im->mapped)
		munmap(im->mapped, im->bytes);
	if (!im->chunk_read)
		free(im->data); /* a copy; a file without its bitmap has no data yet */
	else if (im->data)
		munmap(im->data, im->bytes);
	free(im->chunk_read);
	if (im->fd >= 0)
		close(im->fd);
	free(im);
}

size_t elf_image_bytes(const struct elf_image *im)
{
	return im->bytes;
}

/* Read chunks [first, last] that have not been read. What cannot be read stays zero. */
static void read_chunks(const struct elf_image *im, size_t first, size_t last)
{
	size_t i = first;

	while (i <= last) {
		size_t run = i, off, end;

		if (im->chunk_read[i]) {
			i++;
			continue;
		}
		while (run <= last && !im->chunk_read[run])
			im->chunk_read[run++] = 1;
		off = i * CHUNK_BYTES;
		end = run * CHUNK_BYTES < im->bytes ? run * CHUNK_BYTES : im->bytes;
		while (off < end) {
			ssize_t n = pread(im->fd, im->data + off, end - off, (off_t)off);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				break;
			off += (size_t)n;
		}
		i = run;
	}
}

const uint8_t *elf_image_get(const struct elf_image *im, uint64_t off, uint64_t bytes)
{
	if (off > im->bytes || bytes > im->bytes - off)
		return NULL;
	if (im->fd >= 0 && bytes)
		read_chunks(im, off / CHUNK_BYTES, (off + bytes - 1) / CHUNK_BYTES);
	return im->data + off;
}

const uint8_t *elf_image_map(struct elf_image *im)
{
	void *p;

	if (im->fd < 0)
		return im->data;
	if (!im->mapped) {
		p = mmap(NULL, im->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, im->fd, 0);
		if (p == MAP_FAILED)
			return NULL;
		im->mapped = p;
	}
	return im->mapped;
}
