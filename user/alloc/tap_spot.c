/* SPDX-License-Identifier: MIT */
/*
 * tap_spot.c - finds the instruction of a function that becomes the tap's jump (see tap_spot.h).
 *
 * Other tools' breakpoints. bcc, bpftrace and perf put theirs on the first instruction of a function, another heaptap
 * where placement.c says. When such a breakpoint goes, the kernel writes the file's first byte there. A jump whose
 * first byte differs is torn by that, and the process crashes. So on these instructions, called watched, the first
 * byte must stay: a REX prefix, which a jump may have too, or the opcode of a jump that gets another target. While the
 * breakpoint is there, calls go past the tap, so a watched instruction is the last choice. Before it comes a pair, for
 * functions that begin with a test (jemalloc's malloc, glibc's memalign): a conditional jump that gets another target,
 * and the instruction behind it. Every call passes one of the two.
 *
 * Why one instruction: the pc of a stopped thread, or of one that returns from a signal handler, is at the beginning
 * of an instruction, never inside the changed bytes.
 *
 * Why preferably no gap: a thread that is stopped between the two jumps has to be moved on before they are removed.
 *
 * Instructions before the spot. In a function that allocates they run twice: in place, and for a sampled call again,
 * from the state of the entry, in the copy that tap_code.c makes. So they write no memory, except by a push of a
 * callee-saved register, and only registers whose value at the entry is not needed: pushed ones, and those that the
 * function overwrites whole before it reads them, but no arguments. A function that frees does not run again: there
 * they must only leave the argument alone.
 *
 * What the way in needs (tap_code.c): the flags, r10, r11 and some bytes below the stack pointer. The function has
 * nothing below it, because no passed instruction writes memory. Flags that are set before the spot and read behind it
 * can be made again if one passed cmp or test made them and its operands have not changed.
 */
#include "alloc/tap_spot.h"

#include "alloc/placement_priv.h"
#include "elf/elf_file.h"
#include "elf/unwind_table.h"

#define SEARCH_INSNS 16
#define FLAG_INSNS 12
#define FUNCTION_ALIGN 16
#define NO_FUNCTION_BYTES 65536 /* nothing is that long: the table leaves out most functions */
#define RDI 7
#define CALLEE_SAVED (1U << 3 | 1U << 5 | 0xfU << 12) /* rbx, rbp, r12 to r15 */
#define SCRATCH (1U << 10 | 1U << 11)
#define NO_FLAGS 0 /* nothing before the spot set the flags */
#define LOST_FLAGS (-1) /* something did that cannot be repeated */

struct search {
	const struct elf_file *ef;
	const struct tap_spot_request *req;
	struct tap_gap_search gaps;
	struct code code;
	uint64_t jump_target; /* lowest target of a jump inside the function */
	uint64_t next_vaddr;
	csh h;
	cs_insn *in;
	uint32_t arg_regs; /* registers that hold needed arguments */
	/* Of the passed instructions: */
	struct tap_insn before[TAP_BEFORE_CAP];
	uint8_t before_cnt;
	uint8_t done[TAP_UNDO_CAP]; /* as tap_spot.undo, in the order of the code */
	uint8_t done_cnt;
	/* Registers, by number: pushed; overwritten before they were read; read first. */
	uint32_t saved_mask, own_mask, read_mask;
	int flags_insn; /* as in tap_spot, or LOST_FLAGS */
	uint32_t flags_regs; /* registers that it reads */
	bool tests_null; /* the flags say whether argument 0 is NULL */
};

static void say(struct tap_spot *s, const char *what, const struct search *sc)
{
	if (!s->why[0])
		snprintf(s->why, sizeof(s->why), "%s at +%u (%.12s %.24s)", what,
			 (unsigned int)(sc->in->address - sc->code.vaddr), sc->in->mnemonic,
			 sc->in->op_str);
}

/* Branches that insn_classify() does not recognise: loop, jrcxz, xbegin, far and 16-bit ones. */
static bool is_odd_branch(const struct search *sc, enum kind k)
{
	static const uint8_t groups[] = { X86_GRP_JUMP, X86_GRP_CALL, X86_GRP_RET,
					  X86_GRP_INT,	X86_GRP_IRET, X86_GRP_BRANCH_RELATIVE };

	for (size_t i = 0; k < KIND_JMP && i < sizeof(groups); i++)
		if (cs_insn_group(sc->h, sc->in, groups[i]))
			return true;
	return false;
}

/* What an instruction reads and writes, as far as a copy of it must know. */
struct insn_effect {
	uint32_t reads, writes; /* general registers, by number */
	bool reads_flags, writes_flags, writes_other, writes_memory, is_unknown;
};

/* xor %eax,%eax and the like. */
static bool is_zeroing(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	return (in->id == X86_INS_XOR || in->id == X86_INS_SUB) && x->op_count == 2 &&
	       x->operands[0].type == X86_OP_REG && x->operands[1].type == X86_OP_REG &&
	       x->operands[0].reg == x->operands[1].reg && x->operands[0].size >= 4;
}

/* in was decoded by h, with details. */
static struct insn_effect insn_effect(csh h, const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;
	cs_regs reads, writes;
	uint8_t read_cnt, write_cnt;
	struct insn_effect e = { 0 };

	if (cs_regs_access(h, in, reads, &read_cnt, writes, &write_cnt) != CS_ERR_OK)
		return (struct insn_effect){ .is_unknown = true,
					     .reads_flags = true,
					     .writes_flags = true };
	for (int i = 0; i < read_cnt; i++) {
		int reg = insn_reg_number(reads[i]);

		e.reads_flags |= reads[i] == X86_REG_EFLAGS;
		if (reg >= 0)
			e.reads |= 1U << reg;
	}
	for (int i = 0; i < write_cnt; i++) {
		int reg = insn_reg_number(writes[i]);

		if (writes[i] == X86_REG_EFLAGS)
			e.writes_flags = true;
		else if (reg >= 0)
			e.writes |= 1U << reg;
		else
			e.writes_other = true;
	}
	if (is_zeroing(in))
		e.reads = 0;
	for (int i = 0; i < x->op_count; i++)
		e.writes_memory |=
			x->operands[i].type == X86_OP_MEM && (x->operands[i].access & CS_AC_WRITE);
	return e;
}

/* Does it write the whole of the registers that it writes, whatever they held? */
static bool insn_overwrites(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	switch (in->id) {
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_LEA: /* AT&T order: the destination is the last one */
		return x->op_count == 2 && x->operands[1].type == X86_OP_REG &&
		       x->operands[1].size >= 4;
	case X86_INS_MUL:
		return x->op_count == 1 && x->operands[0].size >= 4;
	default:
		return is_zeroing(in);
	}
}

/* Does the code from `at` on read flags that it has not set? After a jump nothing is known. */
static bool flags_matter(const struct search *sc, const uint8_t *at, size_t left, uint64_t vaddr)
{
	cs_insn *in = cs_malloc(sc->h);
	bool matters = true;
	uint64_t target;

	for (int i = 0; in && i < FLAG_INSNS && cs_disasm_iter(sc->h, &at, &left, &vaddr, in);
	     i++) {
		enum kind k = insn_classify(in, &target);
		struct insn_effect e;

		matters = false;
		/* Neither a called function nor a caller reads the flags. */
		if (k == KIND_CALL || k == KIND_RET || k == KIND_SLOT_CALL || k == KIND_INDIRECT ||
		    k == KIND_SLOT_JMP)
			break;
		if (k == KIND_JMP &&
		    (target < sc->code.vaddr || target >= sc->code.vaddr + sc->code.cnt))
			break;
		matters = true;
		if (k == KIND_JMP || k == KIND_INDIRECT_JMP)
			break;
		e = insn_effect(sc->h, in);
		if (e.writes_flags && !e.reads_flags) {
			matters = false;
			break;
		}
		if (e.reads_flags)
			break;
	}
	if (in)
		cs_free(in, 1);
	return matters;
}

/* The same, anywhere. */
static bool flags_matter_at(const struct search *sc, uint64_t vaddr)
{
	const uint64_t off = vaddr - sc->code.vaddr;

	return off >= sc->code.cnt ||
	       flags_matter(sc, sc->code.bytes + off, sc->code.cnt - off, vaddr);
}

/*
 * Candidates, from the best to the last choice.
 */

enum rank {
	RANK_LONG,
	RANK_LONG_FLAGS, /* flags must be made again */
	RANK_GAP,
	RANK_GAP_FLAGS,
	RANK_CALL,
	RANK_BRANCH,
	RANK_OWN_PROBE,
	RANK_WATCHED,
	RANK_NONE,
};

struct candidates {
	struct tap_spot best;
	enum rank rank;
	char why[TAP_WHY_BYTES]; /* the first obstacle behind the entry */
	char why_entry[TAP_WHY_BYTES];
};

/* Can the instruction be moved? Fills what is needed for that. */
static bool make_insn(const struct search *sc, struct tap_insn *ret)
{
	const cs_insn *in = sc->in;
	const cs_x86 *x = &in->detail->x86;
	uint64_t target;
	enum kind k = insn_classify(in, &target);

	*ret = (struct tap_insn){ .move = TAP_MOVE_COPY };
	if (in->size > TAP_INSN_CAP)
		return false;
	memcpy(ret->bytes, in->bytes, in->size);
	ret->byte_cnt = (uint8_t)in->size;
	if (k == KIND_JMP || k == KIND_JCC) {
		ret->move = k == KIND_JMP ? TAP_MOVE_JUMP : TAP_MOVE_BRANCH;
		ret->target_vaddr = target;
		ret->condition = in->bytes[in->size > 4 ? 1 : 0] & 0xf;
		/* jcc rel8 is 7x, jcc rel32 0f 8x; prefixes are hints, and rare. */
		return in->bytes[0] == 0xeb || in->bytes[0] == 0xe9 ||
		       (in->bytes[0] & 0xf0) == 0x70 || in->bytes[0] == 0x0f;
	}
	if ((k == KIND_CALL && in->size == 5) || (k == KIND_SLOT_CALL && in->size == 6)) {
		ret->move = k == KIND_CALL ? TAP_MOVE_CALL : TAP_MOVE_SLOT_CALL;
		ret->target_vaddr = target;
		return true;
	}
	if (k == KIND_SLOT_JMP && in->size == 6) {
		ret->move = TAP_MOVE_SLOT_JUMP;
		ret->target_vaddr = target;
		return true;
	}
	if (k >= KIND_CALL || is_odd_branch(sc, k))
		return false;
	for (int i = 0; i < x->op_count; i++) {
		if (x->operands[i].type != X86_OP_MEM || x->operands[i].mem.base != X86_REG_RIP)
			continue;
		if (x->encoding.disp_size != 4 || x->encoding.disp_offset + 4 > in->size)
			return false;
		ret->move = TAP_MOVE_RIP;
		ret->disp_at = x->encoding.disp_offset;
		ret->target_vaddr = in->address + in->size + (uint64_t)x->operands[i].mem.disp;
	}
	return true;
}

static bool is_own_probe(const struct search *sc)
{
	for (int i = 0; i < TAP_PROBES_CAP; i++)
		if (sc->req->probe_vaddr[i] == sc->in->address)
			return true;
	return false;
}

static bool is_rex(uint8_t byte)
{
	return (byte & 0xf0) == 0x40;
}

void tap_spot_changed(const struct tap_spot *s, uint8_t *ret_off, uint8_t *ret_cnt)
{
	const uint8_t jump = s->gap_vaddr ? TAP_SHORT_JUMP_BYTES : TAP_LONG_JUMP_BYTES;

	*ret_off = s->keeps_prefix || s->keeps_opcode;
	*ret_cnt = (uint8_t)(jump - s->keeps_opcode);
	if (s->insn.move == TAP_MOVE_SLOT_JUMP)
		*ret_off = 2; /* its opcode has two bytes */
}

/* Of a conditional jump only the displacement. */
void tap_branch_changed(const struct tap_spot *s, uint8_t *ret_off, uint8_t *ret_cnt)
{
	*ret_cnt = s->branch_gap_vaddr ? 1 : 4;
	*ret_off = (uint8_t)(s->branch.byte_cnt - *ret_cnt);
}

static bool is_sound(const struct tap_insn *in)
{
	return in->byte_cnt <= TAP_INSN_CAP && in->move <= TAP_MOVE_SLOT_JUMP &&
	       in->condition <= 0xf &&
	       (in->move != TAP_MOVE_RIP || in->disp_at + 4 <= in->byte_cnt);
}

bool tap_spot_is_sound(const struct tap_spot *s)
{
	uint8_t off, cnt;

	if (s->keeps_prefix > 1 || s->keeps_opcode > 1 ||
	    (s->branch_vaddr && s->branch.byte_cnt != (s->branch_gap_vaddr ? 2 : 6)))
		return false;
	tap_spot_changed(s, &off, &cnt);
	for (int i = 0; i < TAP_BEFORE_CAP; i++)
		if (!is_sound(&s->before[i]))
			return false;
	if (!is_sound(&s->insn) || !is_sound(&s->branch))
		return false;
	for (int i = 0; i < TAP_UNDO_CAP; i++)
		if (s->undo[i] > TAP_UNDO_ADD + TAP_UNDO_BYTES_CAP / 8)
			return false;
	return s->before_cnt <= TAP_BEFORE_CAP && s->flags_insn <= s->before_cnt &&
	       s->undo_cnt <= TAP_UNDO_CAP && memchr(s->why, '\0', sizeof(s->why)) &&
	       (!s->vaddr || off + cnt <= s->insn.byte_cnt);
}

/* Where its jump begins, and whether it needs a gap. */
static void choose_form(const struct search *sc, struct tap_spot *s)
{
	const uint8_t first = s->insn.bytes[0], cnt = s->insn.byte_cnt;

	s->keeps_opcode = first == 0xe9 || first == 0xeb || s->insn.move == TAP_MOVE_SLOT_JUMP;
	s->keeps_prefix = is_rex(first) && cnt > TAP_SHORT_JUMP_BYTES &&
			  (cnt > TAP_LONG_JUMP_BYTES || cnt < TAP_LONG_JUMP_BYTES || s->is_watched);
	s->gap_vaddr = cnt >= TAP_LONG_JUMP_BYTES + s->keeps_prefix && first != 0xeb ?
			       0 :
			       sc->in->address + s->keeps_prefix + TAP_SHORT_JUMP_BYTES;
}

/* *gap_vaddr: 0, or where the short jump ends, which becomes where it leads. */
static bool take_gap(struct search *sc, uint64_t *gap_vaddr, uint8_t *bytes)
{
	const uint8_t *gap;

	if (!*gap_vaddr)
		return true;
	*gap_vaddr = tap_gap_find(&sc->gaps, *gap_vaddr);
	gap = *gap_vaddr ? elf_file_read(sc->ef, *gap_vaddr, TAP_LONG_JUMP_BYTES) : NULL;
	if (gap)
		memcpy(bytes, gap, TAP_LONG_JUMP_BYTES);
	return gap;
}

static enum rank rank_of(const struct tap_spot *s, bool is_own)
{
	if (s->is_watched)
		return is_own ? RANK_OWN_PROBE : RANK_WATCHED;
	if (s->insn.move == TAP_MOVE_CALL || s->insn.move == TAP_MOVE_SLOT_CALL)
		return RANK_CALL;
	return (s->gap_vaddr ? RANK_GAP : RANK_LONG) + !!s->flags_insn;
}

/* The reason against this instruction, NULL: none. at: its place among the left bytes. */
static const char *examine(struct search *sc, const uint8_t *at, size_t left, struct tap_spot *s,
			   enum rank *ret_rank)
{
	const cs_insn *in = sc->in;
	const bool is_first = in->address == sc->code.vaddr, is_own = is_own_probe(sc);

	*s = (struct tap_spot){ .vaddr = in->address,
				.fn_vaddr = sc->code.vaddr,
				.is_watched = is_first || is_own };
	if (sc->jump_target < in->address + in->size)
		return "a jump goes back before";
	if (sc->next_vaddr && sc->next_vaddr < in->address + in->size)
		return "another function begins before";
	if (!make_insn(sc, &s->insn))
		return "cannot be moved: ";
	choose_form(sc, s);
	if (s->is_watched && !s->keeps_prefix && !s->keeps_opcode)
		return "other tools put breakpoints there: ";
	if (sc->flags_insn != NO_FLAGS && flags_matter(sc, at, left, in->address)) {
		if (sc->flags_insn == LOST_FLAGS)
			return "flags are in use";
		s->flags_insn = (uint8_t)sc->flags_insn;
	}
	*ret_rank = rank_of(s, is_own && !is_first);
	return take_gap(sc, &s->gap_vaddr, s->gap) ? NULL : "no gap within reach";
}

/* The gaps of a branch and of what is behind it must differ. */
static bool take_second_gap(struct search *sc, struct tap_spot *s)
{
	struct tap_gaps taken = *sc->gaps.gaps;
	const struct tap_gaps *before = sc->gaps.gaps;
	bool is_found;

	if (s->gap_vaddr && taken.cnt == TAP_GAPS_CAP)
		return false;
	if (s->gap_vaddr)
		taken.vaddr[taken.cnt++] = s->gap_vaddr;
	sc->gaps.gaps = &taken;
	is_found = take_gap(sc, &s->branch_gap_vaddr, s->branch_gap);
	sc->gaps.gaps = before;
	return is_found;
}

/* It is the best so far. */
static void keep(const struct search *sc, struct candidates *c, const struct tap_spot *s,
		 enum rank rank)
{
	if (rank >= c->rank)
		return;
	c->rank = rank;
	c->best = *s;
	for (int i = 0; i < sc->done_cnt; i++)
		c->best.undo[i] = sc->done[sc->done_cnt - 1 - i];
	c->best.undo_cnt = sc->done_cnt;
	c->best.before_cnt = sc->before_cnt;
	memcpy(c->best.before, sc->before, sc->before_cnt * sizeof(*sc->before));
	c->best.uses_scratch = (sc->own_mask & SCRATCH) != 0;
}

/* Take this instruction if it is better than what there is. */
static void accept(struct search *sc, const uint8_t *at, size_t left, struct candidates *c)
{
	enum rank rank = RANK_NONE;
	const char *why;
	struct tap_spot s;

	if (sc->in->size < TAP_SHORT_JUMP_BYTES)
		return;
	why = examine(sc, at, left, &s, &rank);
	if (why) {
		s.why[0] = '\0';
		say(&s, why, sc);
		if (sc->in->address != sc->code.vaddr && !c->why[0])
			memcpy(c->why, s.why, sizeof(c->why));
		else if (sc->in->address == sc->code.vaddr && !c->why_entry[0])
			memcpy(c->why_entry, s.why, sizeof(c->why_entry));
		return;
	}
	keep(sc, c, &s, rank);
}

/*
 * Take the conditional jump that was passed last, and what is behind it. in_left: the bytes from the jump on. Nothing
 * else may be between them, and the first byte of both stays.
 */
static void accept_branch(struct search *sc, const uint8_t *in_left, size_t left,
			  struct candidates *c)
{
	const struct tap_insn *jump = &sc->before[sc->before_cnt - 1];
	const uint64_t vaddr = sc->in->address, end = vaddr + sc->in->size;
	const uint8_t *p = in_left + sc->in->size;
	const int flags_insn = sc->flags_insn;
	uint64_t next = end;
	enum rank rank;
	struct tap_spot s;

	left -= sc->in->size;
	if (c->rank <= RANK_BRANCH || jump->move != TAP_MOVE_BRANCH || sc->jump_target <= vaddr ||
	    (sc->next_vaddr && sc->next_vaddr < end) || flags_insn == NO_FLAGS ||
	    (jump->byte_cnt != 2 && jump->byte_cnt != 6) ||
	    (flags_insn == LOST_FLAGS && flags_matter_at(sc, jump->target_vaddr)))
		return;
	sc->before_cnt--;
	if (cs_disasm_iter(sc->h, &p, &left, &next, sc->in) &&
	    !examine(sc, p - sc->in->size, left + sc->in->size, &s, &rank) &&
	    (s.keeps_prefix || s.keeps_opcode)) {
		s.branch = *jump;
		s.branch_vaddr = vaddr;
		s.branch_gap_vaddr = jump->byte_cnt == 2 ? end : 0;
		s.flags_insn = (uint8_t)(flags_insn > 0 ? flags_insn : 0);
		s.is_watched = false;
		if (take_second_gap(sc, &s))
			keep(sc, c, &s, RANK_BRANCH);
	}
	sc->before_cnt++;
}

static bool note_done(struct search *sc, uint8_t what)
{
	if (sc->done_cnt == TAP_UNDO_CAP)
		return false;
	sc->done[sc->done_cnt++] = what;
	return true;
}

/* May the instruction be run twice, and can the entry's state be restored after it? */
static bool keeps_entry(struct search *sc, const struct insn_effect *e)
{
	uint32_t fresh = e->writes & ~(sc->saved_mask | sc->own_mask), read = e->reads;

	if (e->is_unknown || e->writes_memory || e->writes_other)
		return false;
	/* mul has rax as its source, and as half of its destination. */
	read &= ~(sc->own_mask | sc->saved_mask);
	if (fresh & (read | sc->read_mask | sc->arg_regs | CALLEE_SAVED | 1U << RSP))
		return false;
	if (fresh && !insn_overwrites(sc->in))
		return false;
	sc->read_mask |= read;
	sc->own_mask |= fresh;
	return true;
}

static bool step_free(struct search *sc, enum kind k, const struct insn_effect *e,
		      bool was_null_test)
{
	if (was_null_test && k == KIND_JCC && sc->in->id == X86_INS_JE)
		return true;
	if (k >= KIND_JMP || e->is_unknown || e->writes_memory ||
	    (e->writes & (1U << RDI | 1U << RSP)))
		return false;
	sc->own_mask |= e->writes;
	return true;
}

/* The register number in a push. */
static uint8_t pushed(const cs_insn *in)
{
	return (uint8_t)((in->bytes[in->size - 1] & 7) + (in->size == 2 ? 8 : 0));
}

/* Which instruction has the flags now? It can be repeated if it reads no memory that may change with the registers. */
static void note_flags(struct search *sc, const struct insn_effect *e)
{
	const cs_x86 *x = &sc->in->detail->x86;
	bool is_test = sc->in->id == X86_INS_CMP || sc->in->id == X86_INS_TEST;

	for (int i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].mem.base != X86_REG_RIP)
			is_test = false;
	if (e->writes_flags) {
		sc->flags_insn = is_test && !(e->reads & 1U << RSP) ? sc->before_cnt : LOST_FLAGS;
		sc->flags_regs = e->reads;
	} else if (sc->flags_insn > 0 && (e->writes & sc->flags_regs)) {
		sc->flags_insn = LOST_FLAGS;
	}
}

static bool is_null_test(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	return in->id == X86_INS_TEST && x->op_count == 2 && x->operands[0].type == X86_OP_REG &&
	       x->operands[1].type == X86_OP_REG && x->operands[0].reg == X86_REG_RDI &&
	       x->operands[1].reg == X86_REG_RDI;
}

static bool is_room(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	return in->id == X86_INS_SUB && x->op_count == 2 && x->operands[0].type == X86_OP_IMM &&
	       x->operands[1].type == X86_OP_REG && x->operands[1].reg == X86_REG_RSP &&
	       x->operands[0].imm > 0 && x->operands[0].imm <= TAP_UNDO_BYTES_CAP &&
	       !(x->operands[0].imm & 7);
}

static bool step_push(struct search *sc)
{
	uint8_t reg = pushed(sc->in);

	/* A register pushed again, or not callee-saved: room on the stack. */
	if ((CALLEE_SAVED & ~sc->saved_mask) >> reg & 1) {
		sc->saved_mask |= 1U << reg;
		return note_done(sc, reg);
	}
	sc->read_mask |= 1U << reg & ~sc->own_mask;
	return note_done(sc, TAP_UNDO_ADD + 1);
}

/* Pass the instruction. false: nothing after it can be the spot. */
static bool step(struct search *sc, const char **ret_why)
{
	uint64_t target;
	enum kind k = insn_classify(sc->in, &target);
	bool was_null_test = sc->tests_null, is_fine;
	struct insn_effect e = insn_effect(sc->h, sc->in);

	*ret_why = sc->req->is_free ? "the argument is lost, or the path "
				      "ends" :
				      "the state at the entry is lost";
	sc->tests_null = is_null_test(sc->in);
	if (sc->in->id == X86_INS_ENDBR64 || insn_is_nop(sc->in))
		return true;
	if (sc->before_cnt == TAP_BEFORE_CAP)
		return false;
	/* Of a free only the one that makes the flags is ever repeated. */
	is_fine = make_insn(sc, &sc->before[sc->before_cnt++]);
	if (!is_fine && !sc->req->is_free)
		return false;
	note_flags(sc, &e);
	if (!is_fine && sc->flags_insn == sc->before_cnt)
		sc->flags_insn = LOST_FLAGS;
	if (k == KIND_PUSH)
		return step_push(sc);
	if (is_room(sc->in))
		return note_done(sc,
				 (uint8_t)(TAP_UNDO_ADD + sc->in->detail->x86.operands[0].imm / 8));
	if (is_odd_branch(sc, k))
		return false;
	return sc->req->is_free ? step_free(sc, k, &e, was_null_test) :
				  k < KIND_JMP && keeps_entry(sc, &e);
}

/* The best instruction of the code. *ret_only_jumps: where the function goes if it does nothing else; else 0. */
static void search(struct search *sc, struct candidates *c, uint64_t *ret_only_jumps)
{
	const uint8_t *p = sc->code.bytes;
	size_t left = sc->code.cnt;
	uint64_t vaddr = sc->code.vaddr, target;
	const char *why;

	for (int i = 0; i < SEARCH_INSNS && cs_disasm_iter(sc->h, &p, &left, &vaddr, sc->in); i++) {
		if (sc->in->id != X86_INS_ENDBR64 && !insn_is_nop(sc->in)) {
			if (!sc->before_cnt && insn_classify(sc->in, &target) == KIND_JMP &&
			    (target < sc->code.vaddr || target >= sc->code.vaddr + sc->code.cnt))
				*ret_only_jumps = target;
			accept(sc, p - sc->in->size, left + sc->in->size, c);
		}
		if (c->rank == RANK_LONG)
			return;
		if (step(sc, &why))
			continue;
		if (sc->before_cnt && insn_classify(sc->in, &target) == KIND_JCC)
			accept_branch(sc, p - sc->in->size, left + sc->in->size, c);
		if (!c->why[0]) {
			struct tap_spot s = { 0 };

			say(&s, why, sc);
			memcpy(c->why, s.why, sizeof(c->why));
		}
		return;
	}
}

static int search_function(struct search *sc, uint64_t vaddr, uint64_t bytes, uint64_t next_vaddr,
			   struct candidates *c, uint64_t *ret_only_jumps)
{
	int err = code_open(sc->ef, vaddr, bytes, &sc->code);

	*ret_only_jumps = 0;
	if (!err)
		err = code_lowest_jump_target(&sc->code, &sc->jump_target);
	if (err)
		return err;
	sc->gaps.fn_vaddr = vaddr;
	sc->gaps.has_runs = false;
	sc->gaps.run_cnt = 0;
	sc->next_vaddr = next_vaddr;
	search(sc, c, ret_only_jumps);
	return 0;
}

/* Does a function begin there? *ret_bytes: its length, 0: not known. In a stripped file without a table of functions
 * (musl's) one that is aligned like a function is taken for one. */
static bool begins_function(const struct fde_index *fdes, const struct elf_symbols *syms,
			    uint64_t vaddr, uint64_t *ret_bytes)
{
	uint64_t start, end;
	bool is_found = tap_function_at(fdes, syms, vaddr, &start, &end);

	*ret_bytes = is_found && start == vaddr ? end - start : 0;
	if (*ret_bytes)
		return true;
	return !(vaddr & (FUNCTION_ALIGN - 1)) && (!is_found || end - start > NO_FUNCTION_BYTES);
}

int tap_spot_find(const struct elf_file *ef, const struct fde_index *fdes,
		  const struct elf_symbols *syms, const struct tap_spot_request *req,
		  struct tap_gaps *gaps, struct tap_spot *ret)
{
	static const uint8_t arg_reg[] = { 7, 6, 2, 1, 8, 9 }; /* rdi rsi rdx rcx r8 r9 */
	struct search sc = { .ef = ef,
			     .req = req,
			     .gaps = { .ef = ef, .fdes = fdes, .syms = syms, .gaps = gaps } };
	struct candidates c = { .rank = RANK_NONE };
	uint64_t target, bytes;
	int err = decoder_open(true, &sc.h, &sc.in);

	memset(ret, 0, sizeof(*ret));
	if (err)
		return err;
	for (size_t i = 0; i < sizeof(arg_reg); i++)
		if (req->arg_mask >> i & 1)
			sc.arg_regs |= 1U << arg_reg[i];
	err = search_function(&sc, req->fn_vaddr, req->fn_bytes, req->next_vaddr, &c, &target);
	if (!err && c.rank >= RANK_WATCHED && target && req->follows) {
		sc.before_cnt = 0; /* a jump, of which nothing is left */
		if (begins_function(fdes, syms, target, &bytes))
			err = search_function(&sc, target, bytes, 0, &c, &target);
	}
	decoder_close(sc.h, sc.in);
	if (err)
		return err;
	*ret = c.best;
	if (gaps->cnt + 2 > TAP_GAPS_CAP && (ret->gap_vaddr || ret->branch_gap_vaddr))
		*ret = (struct tap_spot){ .why = "too many gaps are in use" };
	if (ret->gap_vaddr)
		gaps->vaddr[gaps->cnt++] = ret->gap_vaddr;
	if (ret->branch_gap_vaddr)
		gaps->vaddr[gaps->cnt++] = ret->branch_gap_vaddr;
	if (!ret->vaddr && !ret->why[0])
		snprintf(ret->why, sizeof(ret->why), "%s",
			 c.why[0]	? c.why :
			 c.why_entry[0] ? c.why_entry :
					  "no suitable instruction");
	return 0;
}
