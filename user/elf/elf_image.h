/* SPDX-License-Identifier: MIT */
/*
 * elf_image.h - the bytes of a file, each read when it is first needed.
 */
#ifndef HT_ELF_IMAGE_H
#define HT_ELF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct elf_budget;

struct elf_image {
	uint8_t *data; /* zeros where nothing was read yet */
	size_t bytes;
	struct elf_budget *budget; /* pays for what is read; NULL: no limit */
	int fd; /* -1: all is read */
	uint8_t *chunk_read; /* one byte per chunk */
};

/* fd must be a regular file (-ENOEXEC otherwise); it is duplicated, not consumed. */
int elf_image_open_fd(int fd, struct elf_image *ret);
/* Copies the bytes. */
int elf_image_open_mem(const void *data, size_t bytes, struct elf_image *ret);
void elf_image_close(struct elf_image *im);
/* Read [off, off + bytes). NULL: the file is not that long, or too much of it was read. The bytes never move, change
 * or fault. */
uint8_t *elf_image_get(const struct elf_image *im, uint64_t off, uint64_t bytes);

#endif
