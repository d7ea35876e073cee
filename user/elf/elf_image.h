/* SPDX-License-Identifier: MIT */
/*
 * elf_image.h - the bytes of a file, each read when it is first needed.
 */
#ifndef HT_ELF_IMAGE_H
#define HT_ELF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct elf_budget;
struct elf_image;

/* fd must be a regular file (-ENOEXEC otherwise); it is duplicated, not consumed. */
int elf_image_open_fd(int fd, struct elf_image **ret);
/* Copies the bytes. */
int elf_image_open_mem(const void *data, size_t bytes, struct elf_image **ret);
void elf_image_close(struct elf_image *im);

/* From now on, charge what is read to this budget; when it is over, elf_image_get() returns NULL. */
void elf_image_limit(struct elf_image *im, struct elf_budget *budget);
size_t elf_image_bytes(const struct elf_image *im);
/* [off, off + bytes). NULL: the file is not that long, or too much of it was read. The bytes never move or fault. */
const uint8_t *elf_image_get(const struct elf_image *im, uint64_t off, uint64_t bytes);

#endif
