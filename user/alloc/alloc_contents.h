/* SPDX-License-Identifier: MIT */
/* alloc_contents.h - allocators by the texts of their messages, which a stripped file still has. */
#ifndef HT_ALLOC_CONTENTS_H
#define HT_ALLOC_CONTENTS_H

#include <stdint.h>

struct elf_file;

/* A family whose messages are in the file, and that is not among those that are known (alloc_family_bit()); NULL: none. */
const char *alloc_contents(struct elf_file *ef, uint32_t known_bits);

#endif
