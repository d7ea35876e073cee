/* SPDX-License-Identifier: MIT */
/*
 * elf_section.c - the section table of an ELF file, and sections decompressed on demand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/decompress.h"
#include "elf/elf_file_priv.h"

#define SECTIONS_CAP (1U << 20)
/* Bytes that can be unpacked in the time of a step. */
#define UNPACKED_PER_STEP 8

bool elf_read_shdr(const struct elf_file *ef, uint64_t i, Elf64_Shdr *ret)
{
	size_t bytes = elf_file_is_64(ef) ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	uint64_t off;
	const void *p;
	Elf32_Shdr h;

	if (ef->eh.e_shentsize < bytes || ef->eh.e_shoff > elf_image_bytes(ef->im))
		return false;
	off = ef->eh.e_shoff + i * ef->eh.e_shentsize;
	p = ef->eh.e_shoff ? elf_bytes(ef, off, bytes) : NULL;
	if (!p)
		return false;
	if (elf_file_is_64(ef)) {
		memcpy(ret, p, sizeof(*ret));
		return true;
	}
	memcpy(&h, p, sizeof(h));
	*ret = (Elf64_Shdr){ .sh_name = h.sh_name,
			     .sh_type = h.sh_type,
			     .sh_flags = h.sh_flags,
			     .sh_addr = h.sh_addr,
			     .sh_offset = h.sh_offset,
			     .sh_size = h.sh_size,
			     .sh_link = h.sh_link,
			     .sh_info = h.sh_info,
			     .sh_entsize = h.sh_entsize };
	return true;
}

int elf_read_sections(struct elf_file *ef)
{
	uint64_t cnt = ef->eh.e_shnum, i;
	uint32_t names_idx = ef->eh.e_shstrndx;
	Elf64_Shdr sh, names = { 0 };

	if (!elf_read_shdr(ef, 0, &sh))
		return 0;
	if (!cnt)
		cnt = sh.sh_size;
	if (names_idx == SHN_XINDEX)
		names_idx = sh.sh_link;
	if (!cnt || cnt > SECTIONS_CAP || !elf_read_shdr(ef, cnt - 1, &sh))
		return 0;
	if (names_idx < cnt)
		elf_read_shdr(ef, names_idx, &names);
	if (names.sh_offset > elf_image_bytes(ef->im) ||
	    names.sh_size > elf_image_bytes(ef->im) - names.sh_offset)
		names.sh_size = 0;
	if (!elf_file_fill(ef, cnt * (sizeof(*ef->sections) + sizeof(*ef->unpacked) +
				      sizeof(*ef->unpacked_bytes))))
		return 0;
	ef->sections = calloc(cnt, sizeof(*ef->sections));
	ef->unpacked = calloc(cnt, sizeof(*ef->unpacked));
	ef->unpacked_bytes = calloc(cnt, sizeof(*ef->unpacked_bytes));
	if (!ef->sections || !ef->unpacked || !ef->unpacked_bytes)
		return -ENOMEM;
	for (i = 0; i < cnt && elf_file_step(ef, 1) && elf_read_shdr(ef, i, &sh); i++) {
		const char *name = elf_string(ef, names.sh_offset + sh.sh_name,
					      names.sh_offset + names.sh_size);

		ef->section_cnt = i + 1;
		ef->sections[i] = (struct elf_section_head){ .name = name ? name : "",
							     .type = sh.sh_type,
							     .link = sh.sh_link,
							     .info = sh.sh_info,
							     .flags = sh.sh_flags,
							     .vaddr = sh.sh_addr,
							     .off = sh.sh_offset,
							     .bytes = sh.sh_size,
							     .entry_bytes = sh.sh_entsize };
	}
	return 0;
}

const struct elf_section_head *elf_file_section_heads(const struct elf_file *ef, size_t *ret_cnt)
{
	*ret_cnt = ef->section_cnt;
	return ef->sections;
}

/* Unpack sections[idx]; in[0, in_bytes) are its compressed bytes in the file. */
static int unpack_section(struct elf_file *ef, size_t idx, const uint8_t *in, size_t in_bytes)
{
	uint64_t type, bytes;
	size_t head;
	int err;

	if (elf_file_is_64(ef)) {
		Elf64_Chdr ch;

		head = sizeof(ch);
		if (in_bytes < head)
			return -ENOEXEC;
		memcpy(&ch, in, head);
		type = ch.ch_type;
		bytes = ch.ch_size;
	} else {
		Elf32_Chdr ch;

		head = sizeof(ch);
		if (in_bytes < head)
			return -ENOEXEC;
		memcpy(&ch, in, head);
		type = ch.ch_type;
		bytes = ch.ch_size;
	}
	if (type == ELFCOMPRESS_ZLIB && bytes <= DECOMPRESS_BYTES_CAP &&
	    bytes > in_bytes * DECOMPRESS_ZLIB_RATIO_CAP)
		return -ENOEXEC; /* the size is not too large, but false */
	/* The same bytes may be claimed by any number of sections. */
	if (!elf_file_fill(ef, bytes) || !elf_file_step(ef, bytes / UNPACKED_PER_STEP))
		return -EFBIG;
	switch (type) {
	case ELFCOMPRESS_ZLIB:
		err = decompress_zlib(in + head, in_bytes - head, bytes, &ef->unpacked[idx]);
		break;
	case 2: /* ELFCOMPRESS_ZSTD, which elf.h lacks in glibc before 2.36 */
		err = decompress_zstd(in + head, in_bytes - head, bytes, &ef->unpacked[idx]);
		break;
	default:
		err = -ENOEXEC;
	}
	if (!err)
		ef->unpacked_bytes[idx] = bytes;
	return err;
}

int elf_file_section_at(struct elf_file *ef, size_t idx, struct elf_section *ret)
{
	const struct elf_section_head *s;
	const uint8_t *data;
	int err;

	if (idx >= ef->section_cnt || ef->sections[idx].type == SHT_NOBITS ||
	    ef->sections[idx].type == SHT_NULL)
		return -ENOENT;
	s = &ef->sections[idx];
	if (s->bytes > DECOMPRESS_BYTES_CAP)
		return -EFBIG;
	ret->vaddr = s->vaddr;
	if (ef->unpacked[idx]) {
		ret->data = ef->unpacked[idx];
		ret->bytes = ef->unpacked_bytes[idx];
		return 0;
	}
	data = elf_bytes(ef, s->off, s->bytes);
	if (!data)
		return -ENOEXEC;
	if (s->flags & SHF_COMPRESSED) {
		err = unpack_section(ef, idx, data, s->bytes);
		if (err)
			return err;
		ret->data = ef->unpacked[idx];
		ret->bytes = ef->unpacked_bytes[idx];
		return 0;
	}
	ret->data = data;
	ret->bytes = s->bytes;
	return 0;
}

int elf_file_section(struct elf_file *ef, const char *name, struct elf_section *ret)
{
	size_t i;

	for (i = 0; i < ef->section_cnt; i++) {
		const struct elf_section_head *s = &ef->sections[i];

		if (s->type != SHT_NOBITS && s->type != SHT_NULL && !strcmp(s->name, name))
			return elf_file_section_at(ef, i, ret);
	}
	return -ENOENT;
}
