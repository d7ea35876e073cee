/* SPDX-License-Identifier: MIT */
/*
 * unwind_scan.c - unwind rows for code without frame information, by following its instructions.
 *
 * For musl above all: distributions ship it without .eh_frame. Every stack of an Alpine container would end at main()
 * with "no row", and a getline() that allocates would hide its caller. Compiled C moves rsp in few ways, all visible:
 * push, pop, add, sub, lea, a frame pointer.
 *
 * From each function's entry, where CFA = rsp + 8, all paths are followed. The state before an instruction is stored
 * when it is first reached. Calls leave rsp unchanged. A path ends at ret, at a jump out of the code (a tail call) and
 * where another function begins. Functions begin at symbols, at the targets of direct calls, and where unreached code
 * follows the end of another function. But after a computed jump, which may be a switch, unreached code gets the state
 * of the jump, because a switch's cases have no other way in.
 *
 * Two things are recognised on the way. A function that clears rbp without having saved it is the first one of a
 * thread: the ABI asks _start to do so, and clone() does it for new threads (HT_CFA_END). `mov $15, %eax; syscall` is
 * rt_sigreturn, to which signal handlers return (HT_CFA_SIGNAL); its row begins one byte early, because return
 * addresses are looked up at the byte before.
 *
 * Not proven, unlike frame information: code that moves rsp in other ways gives HT_CFA_NONE at best. Where there is
 * frame information to compare with, 0.01 to 1.3 % of the instructions are wrong (test_unwind_scan), mostly in parts
 * that gcc split off as unlikely.
 */
#include "elf/unwind_table_priv.h"

#include <capstone/capstone.h>
#include <elf.h>

#include "base/vec.h"

/*
 * The effect of one instruction on rsp and rbp. Only the ways in which compilers move rsp are followed. Any other
 * write makes rsp unknown until it is set from a frame pointer. The same happens when the return address is popped,
 * to put arguments below it.
 */
/* 256 KiB, in units of 8 bytes: larger frames are taken for an error. */
#define INSN_OFF_CAP 32768LL

/* Flags of struct insn_state: what is known. */
enum {
	INSN_IS_RSP_KNOWN = 2, /* CFA = rsp + rsp_off */
	INSN_IS_RBP_FRAME = 4, /* CFA = rbp + rbp_off */
	INSN_IS_RBP_SAVED = 8, /* caller's rbp at CFA + saved_off */
	INSN_IS_END = 16, /* the thread's first function */
};

/* The state before the instruction at one address. Offsets in bytes. */
struct insn_state {
	int32_t rsp_off, rbp_off, saved_off;
	uint32_t flags;
};

static bool is_reg(const cs_x86_op *op, x86_reg reg)
{
	return op->type == X86_OP_REG && op->reg == reg;
}

static void rsp_move(struct insn_state *st, int64_t bytes)
{
	if (bytes < -INSN_OFF_CAP * 8 || bytes > INSN_OFF_CAP * 8)
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
	else
		st->rsp_off -= (int32_t)bytes;
	if (st->rsp_off < 8 || st->rsp_off > INSN_OFF_CAP * 8)
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
	if (!(st->flags & INSN_IS_RSP_KNOWN))
		st->rsp_off = 0;
}

/* rsp = rbp + bytes */
static void rsp_from_rbp(struct insn_state *st, int64_t bytes)
{
	if (!(st->flags & INSN_IS_RBP_FRAME)) {
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
		return;
	}
	st->flags |= INSN_IS_RSP_KNOWN;
	st->rsp_off = st->rbp_off;
	rsp_move(st, bytes);
}

static void rbp_popped(struct insn_state *st)
{
	st->flags &= ~(uint32_t)(INSN_IS_RBP_FRAME | INSN_IS_RBP_SAVED);
	st->saved_off = 0;
}

static void do_push(struct insn_state *st, const cs_x86 *x)
{
	rsp_move(st, -8);
	if (x->op_count && is_reg(&x->operands[0], X86_REG_RBP) &&
	    (st->flags & INSN_IS_RSP_KNOWN) && !(st->flags & INSN_IS_RBP_SAVED) &&
	    st->rsp_off <= 8 * 120) {
		st->flags |= INSN_IS_RBP_SAVED;
		st->saved_off = -st->rsp_off;
	}
}

static void do_pop(struct insn_state *st, const cs_x86 *x)
{
	if (x->op_count && is_reg(&x->operands[0], X86_REG_RSP)) {
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
		return;
	}
	if (x->op_count && is_reg(&x->operands[0], X86_REG_RBP))
		rbp_popped(st);
	rsp_move(st, 8);
}

/* An instruction that writes rsp. */
static void write_rsp(struct insn_state *st, unsigned int id, const cs_x86 *x)
{
	const cs_x86_op *src = &x->operands[1];

	if (x->op_count == 2 && src->type == X86_OP_IMM && id == X86_INS_SUB)
		rsp_move(st, -src->imm);
	else if (x->op_count == 2 && src->type == X86_OP_IMM && id == X86_INS_ADD)
		rsp_move(st, src->imm);
	else if (id == X86_INS_LEA && src->mem.index == X86_REG_INVALID &&
		 src->mem.base == X86_REG_RSP)
		rsp_move(st, src->mem.disp);
	else if (id == X86_INS_LEA && src->mem.index == X86_REG_INVALID &&
		 src->mem.base == X86_REG_RBP)
		rsp_from_rbp(st, src->mem.disp);
	else if (id == X86_INS_MOV && is_reg(src, X86_REG_RBP))
		rsp_from_rbp(st, 0);
	else
		st->flags &= ~(uint32_t)INSN_IS_RSP_KNOWN;
}

/* An instruction that writes rbp, other than pop. */
static void write_rbp(struct insn_state *st, unsigned int id, const cs_x86 *x)
{
	const cs_x86_op *src = &x->operands[1];

	st->flags &= ~(uint32_t)INSN_IS_RBP_FRAME;
	if (id == X86_INS_MOV && is_reg(src, X86_REG_RSP) && (st->flags & INSN_IS_RSP_KNOWN)) {
		if (st->flags & INSN_IS_RBP_SAVED) {
			st->flags |= INSN_IS_RBP_FRAME;
			st->rbp_off = st->rsp_off;
		}
	} else if (id == X86_INS_XOR && x->op_count == 2 && src->type == X86_OP_REG &&
		   src->reg == x->operands[0].reg && !(st->flags & INSN_IS_RBP_SAVED)) {
		st->flags |= INSN_IS_END;
	}
}

static bool is_register(const cs_x86_op *op, x86_reg r64, x86_reg r32)
{
	return op->type == X86_OP_REG && (op->reg == r64 || op->reg == r32);
}

/* Change st to the state after the instruction. Jumps and calls change nothing. */
static void insn_apply(struct insn_state *st, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	switch (insn->id) {
	case X86_INS_PUSH:
		do_push(st, x);
		return;
	case X86_INS_POP:
		do_pop(st, x);
		return;
	case X86_INS_PUSHFQ:
		rsp_move(st, -8);
		return;
	case X86_INS_POPFQ:
		rsp_move(st, 8);
		return;
	case X86_INS_LEAVE:
		rsp_from_rbp(st, 8);
		rbp_popped(st);
		return;
	case X86_INS_CMP:
	case X86_INS_TEST:
		return;
	}
	if (!x->op_count || !(x->operands[0].access & CS_AC_WRITE))
		return;
	if (is_register(&x->operands[0], X86_REG_RSP, X86_REG_ESP))
		write_rsp(st, insn->id, x);
	else if (is_register(&x->operands[0], X86_REG_RBP, X86_REG_EBP))
		write_rbp(st, insn->id, x);
}

static bool insn_is_jump(csh cs, const cs_insn *insn)
{
	return insn->id != X86_INS_CALL && cs_insn_group(cs, insn, CS_GRP_JUMP);
}

/* Is it a jump to a computed address, not through a slot that the linker filled in (a PLT stub)? */
static bool insn_is_switch(csh cs, const cs_insn *insn)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	if (!insn_is_jump(cs, insn) || op->type == X86_OP_IMM)
		return false;
	return op->type == X86_OP_REG || op->mem.base != X86_REG_RIP;
}

/* Does execution end here? Does not ask about jumps. */
static bool insn_ends_path(const cs_insn *insn)
{
	switch (insn->id) {
	case X86_INS_RET:
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRETQ:
	case X86_INS_HLT:
	case X86_INS_UD2:
	case X86_INS_INT3:
		return true;
	}
	return false;
}

/* More flags, of struct packed. */
enum {
	IS_REACHED = 1, /* the state is known */
	IS_DONE = 32, /* an instruction begins here and has been looked at */
};

/* struct insn_state in a compact form, for every byte of the code. Offsets in units of 8 bytes. */
struct packed {
	int16_t rsp_off, rbp_off;
	int8_t saved_off;
	uint8_t flags;
	uint8_t entry; /* NOT_ENTRY, ... */
	uint8_t sigreturn; /* != 0: inside the trampoline */
};

/* Does a function begin here? A guess is used only to end the path after a call that does not return. */
enum { NOT_ENTRY, GUESSED_ENTRY, KNOWN_ENTRY };

struct unwind_scanner {
	csh cs;
	cs_insn *insn;
};

struct scan {
	struct unwind_scanner *s;
	const struct unwind_code *code;
	struct packed *at; /* one for each byte */
	VEC(uint32_t) todo; /* offsets that were reached and are not done */
	VEC(uint32_t) functions; /* offsets of entries that were found */
};

int unwind_scanner_open(int machine, struct unwind_scanner **ret)
{
	struct unwind_scanner *s;

	if (machine != EM_X86_64)
		return -ENOTSUP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &s->cs)) {
		free(s);
		return -ENOMEM;
	}
	cs_option(s->cs, CS_OPT_DETAIL, CS_OPT_ON);
	s->insn = cs_malloc(s->cs);
	if (!s->insn) {
		unwind_scanner_close(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void unwind_scanner_close(struct unwind_scanner *s)
{
	if (!s)
		return;
	if (s->insn)
		cs_free(s->insn, 1);
	cs_close(&s->cs);
	free(s);
}

/* The state on entry to a function. */
static const struct insn_state initial = { .rsp_off = 8, .flags = INSN_IS_RSP_KNOWN };

static struct insn_state unpack(const struct packed *p)
{
	return (struct insn_state){
		.rsp_off = p->rsp_off * 8,
		.rbp_off = p->rbp_off * 8,
		.saved_off = p->saved_off * 8,
		.flags = p->flags & ~(uint32_t)IS_DONE,
	};
}

static bool is_packable(int32_t off)
{
	return off % 8 == 0 && off > -INSN_OFF_CAP * 8 && off < INSN_OFF_CAP * 8;
}

/* Note that off is reached with state st. The first state is kept. */
static int reach(struct scan *sc, uint64_t off, const struct insn_state *st)
{
	struct packed *p;

	if (off >= sc->code->bytes || (sc->at[off].flags & IS_REACHED))
		return 0;
	p = &sc->at[off];
	p->flags = (uint8_t)(st->flags | IS_REACHED);
	if (!is_packable(st->rsp_off))
		p->flags &= (uint8_t)~INSN_IS_RSP_KNOWN;
	if (!is_packable(st->rbp_off))
		p->flags &= (uint8_t)~INSN_IS_RBP_FRAME;
	p->rsp_off = (int16_t)(st->rsp_off / 8);
	p->rbp_off = (int16_t)(st->rbp_off / 8);
	p->saved_off = (int8_t)(st->saved_off / 8);
	return vec_push(&sc->todo, (uint32_t)off);
}

/* Follow a jump to its target. *ret_falls: the next instruction is reached too. */
static int jump(struct scan *sc, const cs_insn *insn, const struct insn_state *st, bool *ret_falls)
{
	const cs_x86 *x = &insn->detail->x86;
	uint64_t off;

	*ret_falls = insn->id != X86_INS_JMP && insn->id != X86_INS_LJMP;
	if (!x->op_count || x->operands[0].type != X86_OP_IMM)
		return 0;
	off = (uint64_t)x->operands[0].imm - sc->code->vaddr;
	/* A tail call to another function, which has its own state. */
	if (off < sc->code->bytes && sc->at[off].entry == KNOWN_ENTRY)
		return 0;
	return reach(sc, off, st);
}

/* Does the code save a callee-saved register or make room on the stack? Then it is not a switch's case. */
static bool looks_like_entry(const uint8_t *p, size_t bytes)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	if (bytes < 4)
		return false;
	return !memcmp(p, endbr64, 4) || p[0] == 0x53 || p[0] == 0x55 ||
	       (p[0] == 0x41 && p[1] >= 0x54 && p[1] <= 0x57) ||
	       (p[0] == 0x48 && (p[1] == 0x83 || p[1] == 0x81) && p[2] == 0xec);
}

/* Number of padding bytes at pos, which align what follows: 0 if it is code. */
static size_t padding(struct unwind_scanner *s, const uint8_t *pos, size_t left)
{
	uint64_t vaddr = 0;

	if (*pos == 0xcc || *pos == 0)
		return 1;
	if (!cs_disasm_iter(s->cs, &pos, &left, &vaddr, s->insn))
		return 1;
	if (s->insn->id != X86_INS_NOP && memcmp(s->insn->bytes, "\x66\x90", 2) != 0)
		return 0;
	return s->insn->size;
}

/* Note the target of a direct call, or of a `lea` of code, which somebody will call. */
static int note_function(struct scan *sc, const cs_insn *insn)
{
	const struct unwind_code *code = sc->code;
	const cs_x86 *x = &insn->detail->x86;
	uint64_t off;

	if (insn->id == X86_INS_CALL && x->operands[0].type == X86_OP_IMM)
		off = (uint64_t)x->operands[0].imm - code->vaddr;
	else if (insn->id == X86_INS_LEA && x->operands[1].mem.base == X86_REG_RIP)
		off = insn->address + insn->size + (uint64_t)x->operands[1].mem.disp - code->vaddr;
	else
		return 0;
	if (off >= code->bytes || sc->at[off].entry == KNOWN_ENTRY)
		return 0;
	sc->at[off].entry = KNOWN_ENTRY;
	return vec_push(&sc->functions, (uint32_t)off);
}

/* Is the call that ended at off one that does not return? Then another function follows. */
static bool is_noreturn(const struct scan *sc, uint64_t off)
{
	const struct unwind_code *code = sc->code;
	uint64_t start = off;
	size_t bytes;

	while (off < code->bytes) {
		bytes = padding(sc->s, code->data + off, code->bytes - off);
		if (!bytes)
			break;
		off += bytes;
	}
	if (off >= code->bytes || sc->at[off].entry)
		return true;
	return off > start && looks_like_entry(code->data + off, code->bytes - off);
}

/* Follow the path at off until it ends or meets one that was already followed. */
static int follow(struct scan *sc, uint64_t off)
{
	const struct unwind_code *code = sc->code;
	cs_insn *insn = sc->s->insn;
	bool falls = true, is_call;
	struct insn_state st;
	int err = 0;

	while (!err && off < code->bytes && !(sc->at[off].flags & IS_DONE)) {
		const uint8_t *pos = code->data + off;
		size_t left = code->bytes - off;
		uint64_t vaddr = code->vaddr + off;

		sc->at[off].flags |= IS_DONE;
		if (!cs_disasm_iter(sc->s->cs, &pos, &left, &vaddr, insn))
			break;
		st = unpack(&sc->at[off]);
		if (insn_ends_path(insn))
			break;
		insn_apply(&st, insn);
		err = note_function(sc, insn);
		if (!err && insn_is_jump(sc->s->cs, insn))
			err = jump(sc, insn, &st, &falls);
		off += insn->size;
		is_call = insn->id == X86_INS_CALL;
		if (err || !falls || off >= code->bytes || sc->at[off].entry == KNOWN_ENTRY)
			break;
		if (is_call && is_noreturn(sc, off))
			break;
		err = reach(sc, off, &st);
		/* it is followed right here, not later */
		if (!err && sc->todo.cnt && sc->todo.data[sc->todo.cnt - 1] == off)
			sc->todo.cnt--;
	}
	return err;
}

/* Follow everything that can be reached from off, and the functions that are called from there. */
static int follow_all(struct scan *sc, uint64_t off, const struct insn_state *st)
{
	int err = reach(sc, off, st);

	while (!err && (sc->todo.cnt || sc->functions.cnt)) {
		if (sc->todo.cnt)
			err = follow(sc, sc->todo.data[--sc->todo.cnt]);
		else
			err = reach(sc, sc->functions.data[--sc->functions.cnt], &initial);
	}
	return err;
}

static void mark_entries(struct scan *sc)
{
	const struct unwind_code *code = sc->code;
	uint64_t off, target;
	int32_t rel;
	size_t i;

	for (i = 0; i < code->entry_cnt; i++) {
		off = code->entries[i] - code->vaddr;
		if (off < code->bytes)
			sc->at[off].entry = KNOWN_ENTRY;
	}
	/*
	 * Look at every byte for a direct call into this code, or a `lea` of an address in it (a callback): chance
	 * hits are one in thousands.
	 */
	for (off = 0; off + 7 <= code->bytes; off++) {
		const uint8_t *p = code->data + off;
		size_t opcode_bytes = 0;

		if (p[0] == 0xe8)
			opcode_bytes = 1;
		else if ((p[0] & 0xfb) == 0x48 && p[1] == 0x8d && (p[2] & 0xc7) == 0x05)
			opcode_bytes = 3;
		if (!opcode_bytes)
			continue;
		memcpy(&rel, p + opcode_bytes, sizeof(rel));
		target = off + opcode_bytes + 4 + (uint64_t)(int64_t)rel;
		if (target < code->bytes && !sc->at[target].entry)
			sc->at[target].entry = GUESSED_ENTRY;
	}
}

static void mark_sigreturn(struct scan *sc)
{
	static const uint8_t with_rax[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t with_eax[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };
	const struct unwind_code *code = sc->code;
	size_t off, i, bytes;

	for (off = 1; off + sizeof(with_rax) <= code->bytes; off++) {
		if (!memcmp(code->data + off, with_rax, sizeof(with_rax)))
			bytes = sizeof(with_rax);
		else if (!memcmp(code->data + off, with_eax, sizeof(with_eax)))
			bytes = sizeof(with_eax);
		else
			continue;
		for (i = off - 1; i < off + bytes; i++)
			sc->at[i].sigreturn = 1;
	}
}

/* Follow the code that no call and no jump leads to, in order of address. */
static int follow_unreached(struct scan *sc)
{
	const struct unwind_code *code = sc->code;
	struct insn_state last_switch = { 0 }; /* of the function at off; flags 0: none */
	cs_insn *insn = sc->s->insn;
	uint64_t off = 0;
	int err;

	while (off < code->bytes) {
		const uint8_t *pos = code->data + off;
		size_t left = code->bytes - off;
		uint64_t vaddr = code->vaddr + off;

		if (sc->at[off].entry)
			last_switch.flags = 0;
		if (!(sc->at[off].flags & IS_DONE)) {
			size_t padding_bytes = padding(sc->s, pos, left);

			if (padding_bytes) {
				off += padding_bytes;
				continue;
			}
			if (looks_like_entry(pos, left))
				last_switch.flags = 0;
			err = follow_all(sc, off, last_switch.flags ? &last_switch : &initial);
			if (err)
				return err;
		}
		if (!cs_disasm_iter(sc->s->cs, &pos, &left, &vaddr, insn)) {
			off++;
			continue;
		}
		if (insn_is_switch(sc->s->cs, insn))
			last_switch = unpack(&sc->at[off]);
		off += insn->size;
	}
	return 0;
}

/* Follow certain functions first, so that their states win over later guesses. */
static int follow_functions(struct scan *sc)
{
	uint64_t off;
	int err;

	for (off = 0; off < sc->code->bytes; off++) {
		if (sc->at[off].entry != KNOWN_ENTRY)
			continue;
		err = follow_all(sc, off, &initial);
		if (err)
			return err;
	}
	return follow_unreached(sc);
}

static struct ht_row row_of(const struct packed *p)
{
	struct ht_row row = { .cfa = HT_CFA_NONE };

	if (p->sigreturn)
		return (struct ht_row){ .cfa = HT_CFA_SIGNAL };
	if (p->flags & INSN_IS_END)
		return (struct ht_row){ .cfa = HT_CFA_END };
	/* Prefer a frame pointer: a loop of pushes does not falsify it. */
	if (p->flags & INSN_IS_RBP_FRAME) {
		row.cfa = HT_CFA_RBP;
		row.cfa_off = p->rbp_off;
	} else if ((p->flags & INSN_IS_RSP_KNOWN) && p->rsp_off > 0) {
		row.cfa = HT_CFA_RSP;
		row.cfa_off = p->rsp_off;
	} else {
		return row;
	}
	if (p->flags & INSN_IS_RBP_SAVED) {
		row.rbp = HT_RBP_AT_CFA;
		row.rbp_off = p->saved_off;
	}
	return row;
}

static int emit(const struct scan *sc, unwind_scan_fn *fn, void *arg)
{
	uint64_t off;
	int err = 0;

	for (off = 0; off < sc->code->bytes && !err; off++) {
		struct ht_row row;

		if (!(sc->at[off].flags & IS_DONE) && !sc->at[off].sigreturn)
			continue;
		row = row_of(&sc->at[off]);
		err = fn(arg, sc->code->vaddr + off, &row);
	}
	return err;
}

int unwind_scan(struct unwind_scanner *s, const struct unwind_code *code, unwind_scan_fn *fn,
		void *arg)
{
	struct scan sc = { .s = s, .code = code };
	int err;

	if (code->bytes > UNWIND_SCAN_BYTES_CAP)
		return -EFBIG;
	sc.at = calloc(code->bytes + 1, sizeof(*sc.at));
	if (!sc.at)
		return -ENOMEM;
	mark_entries(&sc);
	mark_sigreturn(&sc);
	err = follow_functions(&sc);
	if (!err)
		err = emit(&sc, fn, arg);
	vec_release(&sc.todo);
	vec_release(&sc.functions);
	free(sc.at);
	return err;
}
