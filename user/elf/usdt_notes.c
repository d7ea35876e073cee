/* SPDX-License-Identifier: MIT */
/*
 * usdt_notes.c - the statically defined probes of a file.
 *
 * The section name is tried first, because the notes are usually not loaded: strip keeps the section, and no program
 * header covers it. A file without a section table has notes only if its maker put the section into the image; then
 * PT_NOTE tells where.
 *
 * The addresses in a note are those of link time. A tool that moves a finished file (prelink) does not know the notes,
 * but it does move the section .stapsdt.base, whose old address is in every note: the difference is added to the site
 * and to the semaphore. Without that section there is nothing to correct by.
 */
#include "elf/usdt_notes.h"

#include <asm/ptrace.h>

#include "base/vec.h"
#include "elf/elf_file.h"

/*
 * The operands.
 */

#define WORD_BYTES 8
#define NAME_BYTES 8

#if defined(__x86_64__)

/* Each register under all its names; of byte names only the low ones. */
static const struct {
	const char *names;
	uint16_t off;
} registers[] = {
	{ "rax eax ax al", offsetof(struct pt_regs, rax) },
	{ "rbx ebx bx bl", offsetof(struct pt_regs, rbx) },
	{ "rcx ecx cx cl", offsetof(struct pt_regs, rcx) },
	{ "rdx edx dx dl", offsetof(struct pt_regs, rdx) },
	{ "rsi esi si sil", offsetof(struct pt_regs, rsi) },
	{ "rdi edi di dil", offsetof(struct pt_regs, rdi) },
	{ "rbp ebp bp bpl", offsetof(struct pt_regs, rbp) },
	{ "rsp esp sp spl", offsetof(struct pt_regs, rsp) },
	{ "r8 r8d r8w r8b", offsetof(struct pt_regs, r8) },
	{ "r9 r9d r9w r9b", offsetof(struct pt_regs, r9) },
	{ "r10 r10d r10w r10b", offsetof(struct pt_regs, r10) },
	{ "r11 r11d r11w r11b", offsetof(struct pt_regs, r11) },
	{ "r12 r12d r12w r12b", offsetof(struct pt_regs, r12) },
	{ "r13 r13d r13w r13b", offsetof(struct pt_regs, r13) },
	{ "r14 r14d r14w r14b", offsetof(struct pt_regs, r14) },
	{ "r15 r15d r15w r15b", offsetof(struct pt_regs, r15) },
};

static bool has_name(const char *names, const char *name, size_t len)
{
	const char *at = names;

	while ((at = strstr(at, name))) {
		bool begins = at == names || at[-1] == ' ';

		if (begins && (at[len] == ' ' || !at[len]))
			return true;
		at++;
	}
	return false;
}

/* Take "%NAME" at *pos and move *pos behind it. */
static int take_register(const char **pos, uint16_t *ret_off)
{
	char name[NAME_BYTES];
	size_t len;

	if (**pos != '%')
		return -EINVAL;
	len = strcspn(++*pos, " ,)");
	if (!len || len >= sizeof(name))
		return -ENOTSUP;
	memcpy(name, *pos, len);
	name[len] = '\0';
	for (size_t i = 0; i < ARRAY_CNT(registers); i++) {
		if (!has_name(registers[i].names, name, len))
			continue;
		*pos += len;
		*ret_off = registers[i].off;
		return 0;
	}
	return -ENOTSUP; /* %rip, %xmm0, %ah */
}

static int take_scale(const char **pos, uint8_t *ret)
{
	*ret = 1;
	if (**pos != ',')
		return 0;
	++*pos;
	if (!strchr("1248", **pos) || !**pos)
		return -EINVAL;
	*ret = (uint8_t)(*(*pos)++ - '0');
	return 0;
}

/* "(BASE)", "(BASE,INDEX)", "(BASE,INDEX,SCALE)". */
static int take_address(const char **pos, struct ht_operand *op)
{
	int err;

	if (*(*pos)++ != '(')
		return -ENOTSUP; /* a symbol */
	err = take_register(pos, &op->base_off);
	if (!err && **pos == ',') {
		++*pos;
		err = take_register(pos, &op->index_off);
		if (!err)
			err = take_scale(pos, &op->scale);
	}
	if (err)
		return err;
	return *(*pos)++ == ')' ? 0 : -EINVAL;
}

static int take_place(const char **pos, struct ht_operand *op)
{
	const char *begin = *pos;
	char *end;

	if (*begin == '%') {
		op->kind = HT_OPERAND_REG;
		return take_register(pos, &op->base_off);
	}
	op->kind = *begin == '$' ? HT_OPERAND_CONST : HT_OPERAND_MEM;
	begin += *begin == '$';
	errno = 0;
	op->value = strtoll(begin, &end, 0);
	if (errno == ERANGE) { /* an unsigned number of the upper half */
		errno = 0;
		op->value = (int64_t)strtoull(begin, &end, 0);
	}
	*pos = end;
	if (op->kind == HT_OPERAND_CONST)
		return errno ? -EINVAL : end == begin ? -ENOTSUP : 0;
	return errno ? -EINVAL : take_address(pos, op);
}

#elif defined(__aarch64__)

static int take_register(const char **pos, uint16_t *ret_off)
{
	char *end;
	unsigned long n;

	if (!strncmp(*pos, "sp", 2)) {
		*pos += 2;
		*ret_off = offsetof(struct user_pt_regs, sp);
		return 0;
	}
	if (**pos != 'x' && **pos != 'w')
		return -ENOTSUP;
	n = strtoul(*pos + 1, &end, 10);
	if (end == *pos + 1 || n > 30)
		return -ENOTSUP;
	*pos = end;
	*ret_off = (uint16_t)(n * sizeof(uint64_t));
	return 0;
}

/* "[BASE]" and "[BASE, NUMBER]". */
static int take_address(const char **pos, struct ht_operand *op)
{
	char *end;
	int err;

	++*pos;
	err = take_register(pos, &op->base_off);
	if (!err && **pos == ',') {
		*pos += 1 + strspn(*pos + 1, " ");
		op->value = strtoll(*pos, &end, 0);
		if (end == *pos)
			return -ENOTSUP; /* an index */
		*pos = end;
	}
	if (err)
		return err;
	return *(*pos)++ == ']' ? 0 : -EINVAL;
}

static int take_place(const char **pos, struct ht_operand *op)
{
	char *end;

	if (**pos == '[') {
		op->kind = HT_OPERAND_MEM;
		return take_address(pos, op);
	}
	op->value = strtoll(*pos, &end, 0);
	if (end != *pos) {
		op->kind = HT_OPERAND_CONST;
		*pos = end;
		return 0;
	}
	op->kind = HT_OPERAND_REG;
	return take_register(pos, &op->base_off);
}

#else

static int take_place(const char **pos, struct ht_operand *op)
{
	(void)pos;
	(void)op;
	return -ENOTSUP;
}

#endif

/* Take "8@" or "-4@" at *pos and move *pos behind it; without it the size is the machine's word. */
static int take_size(const char **pos, struct ht_operand *op)
{
	const char *at = strchr(*pos, '@'), *space = strchr(*pos, ' ');
	char *end;
	long bytes;

	op->bytes = WORD_BYTES;
	if (!at || (space && space < at))
		return 0;
	bytes = strtol(*pos, &end, 10);
	if (*end == 'f')
		return -ENOTSUP;
	op->is_signed = bytes < 0;
	bytes = bytes < 0 ? -bytes : bytes;
	if (end != at || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8))
		return -EINVAL;
	op->bytes = (uint8_t)bytes;
	*pos = at + 1;
	return 0;
}

int usdt_operands_parse(const char *args, struct ht_operand *ret, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		args += strspn(args, " ");
		memset(&ret[i], 0, sizeof(ret[i]));
		if (!*args)
			return -EINVAL;
		err = take_size(&args, &ret[i]);
		if (!err)
			err = take_place(&args, &ret[i]);
		if (!err && *args && *args != ' ')
			err = -EINVAL;
	}
	return err;
}

/*
 * The notes.
 */

#define NOTE_NAME "stapsdt"
#define NOTE_TYPE 3
#define ADDRESSES_BYTES 24 /* site, base, semaphore */

struct search {
	const struct elf_file *ef;
	const char *provider;
	uint64_t base_vaddr; /* vaddr of .stapsdt.base; 0: no such section */
	uint32_t seen_cnt; /* notes of the provider, returned or not: bounds the work */
	VEC(struct usdt_note) notes;
};

static bool is_code(const struct elf_file *ef, uint64_t vaddr)
{
	const struct elf_segment *seg = elf_file_segment_at(ef, vaddr);

	return seg && seg->is_exec && vaddr - seg->vaddr < seg->file_bytes;
}

/* Take the string at *pos and move *pos behind it. NULL: it does not end before end. */
static const char *take_string(const uint8_t **pos, const uint8_t *end)
{
	const uint8_t *zero = memchr(*pos, 0, (size_t)(end - *pos));
	const char *str = (const char *)*pos;

	if (!zero)
		return NULL;
	*pos = zero + 1;
	return str;
}

/* Add a stapsdt note; desc[0, bytes) is its description. */
static int add_note(struct search *s, const uint8_t *desc, size_t bytes)
{
	const uint8_t *pos = desc + ADDRESSES_BYTES, *end = desc + bytes;
	struct usdt_note note = { 0 };
	uint64_t addr[3]; /* site, base, semaphore */

	if (bytes < ADDRESSES_BYTES || s->seen_cnt == USDT_NOTES_CAP)
		return 0;
	memcpy(addr, desc, sizeof(addr));
	note.provider = take_string(&pos, end);
	note.name = note.provider ? take_string(&pos, end) : NULL;
	note.args = note.name ? take_string(&pos, end) : NULL;
	if (!note.args || strcmp(note.provider, s->provider))
		return 0;
	s->seen_cnt++;
	note.location_vaddr = addr[0];
	note.semaphore_vaddr = addr[2];
	if (s->base_vaddr && addr[1]) {
		note.location_vaddr += s->base_vaddr - addr[1];
		if (addr[2])
			note.semaphore_vaddr += s->base_vaddr - addr[1];
	}
	if (!is_code(s->ef, note.location_vaddr) ||
	    elf_file_vaddr_to_off(s->ef, note.location_vaddr, &note.location_off))
		return 0;
	if (note.semaphore_vaddr &&
	    elf_file_vaddr_to_off(s->ef, note.semaphore_vaddr, &note.semaphore_off))
		note.semaphore_off = 0;
	return vec_push(&s->notes, note);
}

static int on_note(void *ctx, const GElf_Nhdr *note, const char *name, const uint8_t *desc)
{
	if (note->n_type != NOTE_TYPE || note->n_namesz != sizeof(NOTE_NAME) ||
	    memcmp(name, NOTE_NAME, sizeof(NOTE_NAME)) != 0)
		return 0;
	return add_note(ctx, desc, note->n_descsz);
}

int usdt_notes_find(struct elf_file *ef, const char *provider, struct usdt_note **ret,
		    size_t *ret_cnt)
{
	struct search s = { .ef = ef, .provider = provider };
	GElf_Shdr sh;
	int err;

	if (!elf_file_is_64(ef))
		return -ENOENT;
	if (gelf_getshdr(elf_file_find(ef, ".stapsdt.base"), &sh))
		s.base_vaddr = sh.sh_addr;
	err = elf_file_each_note(ef, false, on_note, &s);
	if (!err && !s.notes.cnt)
		err = elf_file_each_note(ef, true, on_note, &s);
	if (!err && !s.notes.cnt)
		err = -ENOENT;
	if (err) {
		vec_release(&s.notes);
		return err;
	}
	*ret = s.notes.data;
	*ret_cnt = s.notes.cnt;
	return 0;
}
