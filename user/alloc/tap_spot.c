/* SPDX-License-Identifier: MIT */
/*
 * tap_spot.c - see tap_spot.h.
 *
 * Why not simply the entry: other tools put their breakpoint there, and later write "their" byte back over whatever is
 * there by then. So the first suitable instruction behind the entry is taken, and the entry only if there is none.
 *
 * Why one instruction: a stopped thread, also one that was interrupted by a signal and returns later, has its pc at the
 * beginning of an instruction, never inside the changed bytes.
 *
 * Why preferably no gap: a thread that is stopped between the two jumps when they are removed has to be moved on; one
 * whose signal handler interrupted it there cannot be found.
 *
 * The way in (tap/tap_code.c) uses r10, r11 and the flags. At a function's entry r10 and r11 hold nothing that is
 * needed. It is checked that no instruction before the spot writes them, and that no flags that were set before the
 * spot are read after it.
 */
#include "alloc/tap_spot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc/placement_priv.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "unwind/fde_index.h"

#define SEARCH_INSNS 16
#define FLAG_INSNS 12
#define RAX 0
#define RDI 7
#define CALLEE_SAVED (1U << 3 | 1U << 5 | 0xfU << 12) /* rbx, rbp, r12 to r15 */
#define R10 10
#define R11 11
#define GAP_FUNCTION_BYTES 8192 /* longer functions are not searched for a gap */
#define RUNS_CAP 64
#define SEARCH_BYTES 64 /* roughly the bytes of SEARCH_INSNS instructions */
#define SHORT_BACK 128
#define SHORT_AHEAD 127

struct run {
	uint64_t start, end;
};

struct search {
	const struct elf_file *ef;
	const struct fde_index *fdes;
	const struct elf_symbols *syms;
	const struct tap_spot_request *req;
	struct tap_gaps *gaps;
	struct code code;
	uint64_t jump_target; /* lowest target of a jump inside the function */
	csh h;
	cs_insn *in;
	/* Of the passed instructions: */
	uint8_t done[TAP_UNDO_CAP]; /* as tap_spot.undo, in the order of the code */
	uint8_t done_cnt;
	uint32_t saved_mask; /* registers, by number, that were pushed */
	bool tests_null; /* the flags say whether argument 0 is NULL */
	bool has_flags; /* flags were set that later code may read */
	/* Nearby bytes that are never executed. */
	struct run run[RUNS_CAP];
	size_t run_cnt;
	bool has_runs; /* run[] was filled */
};

static void say(struct tap_spot *s, const char *what, const struct search *sc)
{
	if (!s->why[0])
		snprintf(s->why, sizeof(s->why), "%s at +%u (%.12s %.24s)", what,
			 (unsigned int)(sc->in->address - sc->code.vaddr), sc->in->mnemonic,
			 sc->in->op_str);
}

static bool writes_reg(const struct search *sc, int number)
{
	cs_regs reads, writes;
	uint8_t read_cnt, write_cnt;

	if (cs_regs_access(sc->h, sc->in, reads, &read_cnt, writes, &write_cnt) != CS_ERR_OK)
		return true;
	for (int i = 0; i < write_cnt; i++)
		if (insn_reg_number(writes[i]) == number)
			return true;
	return false;
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

/* Does it write to the frame? The call in the way in overwrites what is below the stack pointer. */
static bool writes_frame(const struct search *sc)
{
	const cs_x86 *x = &sc->in->detail->x86;

	for (int i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && (x->operands[i].access & CS_AC_WRITE) &&
		    (x->operands[i].mem.base == X86_REG_RSP ||
		     x->operands[i].mem.base == X86_REG_RBP))
			return true;
	return false;
}

static bool touches_flags(csh h, const cs_insn *in, bool *ret_reads)
{
	cs_regs reads, writes;
	uint8_t read_cnt, write_cnt;
	bool is_written = false;

	*ret_reads = false;
	if (cs_regs_access(h, in, reads, &read_cnt, writes, &write_cnt) != CS_ERR_OK) {
		*ret_reads = true;
		return true;
	}
	for (int i = 0; i < read_cnt; i++)
		*ret_reads |= reads[i] == X86_REG_EFLAGS;
	for (int i = 0; i < write_cnt; i++)
		is_written |= writes[i] == X86_REG_EFLAGS;
	return is_written;
}

/* Does the code from `at` on read flags that it has not set? After a jump nothing is known. */
static bool flags_matter(const struct search *sc, const uint8_t *at, size_t left, uint64_t vaddr)
{
	cs_insn *in = cs_malloc(sc->h);
	bool matters = true, reads;
	uint64_t target;

	for (int i = 0; in && i < FLAG_INSNS && cs_disasm_iter(sc->h, &at, &left, &vaddr, in);
	     i++) {
		enum kind k = insn_classify(in, &target);

		matters = false;
		/* Neither a called function nor a caller reads the flags. */
		if (k == KIND_CALL || k == KIND_RET || k == KIND_SLOT_CALL || k == KIND_INDIRECT)
			break;
		if (k == KIND_JMP &&
		    (target < sc->code.vaddr || target >= sc->code.vaddr + sc->code.cnt))
			break;
		matters = true;
		if (k == KIND_JMP || k == KIND_INDIRECT_JMP || k == KIND_SLOT_JMP)
			break;
		if (touches_flags(sc->h, in, &reads) && !reads) {
			matters = false;
			break;
		}
		if (reads)
			break;
	}
	if (in)
		cs_free(in, 1);
	return matters;
}

/*
 * Gaps.
 */

static bool is_padding(const cs_insn *in)
{
	return in->id == X86_INS_NOP || in->id == X86_INS_INT3 ||
	       (in->size == 2 && in->bytes[0] == 0x66 && in->bytes[1] == 0x90);
}

static bool is_taken(const struct tap_gaps *gaps, uint64_t vaddr)
{
	for (size_t i = 0; i < gaps->cnt; i++)
		if (vaddr < gaps->vaddr[i] + TAP_LONG_JUMP_BYTES &&
		    gaps->vaddr[i] < vaddr + TAP_LONG_JUMP_BYTES)
			return true;
	return false;
}

/* The first gap in the run that can be reached and is free. */
static uint64_t gap_in(const struct tap_gaps *gaps, const struct run *r, uint64_t from_vaddr)
{
	for (uint64_t v = r->start; v + TAP_LONG_JUMP_BYTES <= r->end; v++) {
		int64_t off = (int64_t)(v - from_vaddr);

		if (off >= -SHORT_BACK && off <= SHORT_AHEAD && !is_taken(gaps, v))
			return v;
	}
	return 0;
}

static void add_run(struct search *sc, uint64_t start, uint64_t end)
{
	if (start && end - start >= TAP_LONG_JUMP_BYTES && sc->run_cnt < RUNS_CAP)
		sc->run[sc->run_cnt++] = (struct run){ start, end };
}

/* Find runs in one function, and in the padding up to the next one. */
static void find_runs_of(struct search *sc, uint64_t start, uint64_t end)
{
	uint64_t vaddr, target, run = 0;
	bool is_dead = false;
	const uint8_t *p;
	struct code c;
	size_t left;
	cs_insn *in;
	csh h;

	if (end - start > GAP_FUNCTION_BYTES || code_open(sc->ef, start, end - start, &c) ||
	    decoder_open(false, &h, &in))
		return;
	p = c.bytes;
	left = c.cnt;
	vaddr = c.vaddr;
	while (cs_disasm_iter(h, &p, &left, &vaddr, in)) {
		enum kind k = insn_classify(in, &target);

		if (is_dead && is_padding(in)) {
			run = run ? run : in->address;
			continue;
		}
		add_run(sc, run, in->address);
		run = 0;
		is_dead = k == KIND_JMP || k == KIND_RET || k == KIND_INDIRECT_JMP ||
			  k == KIND_SLOT_JMP || in->id == X86_INS_UD2 || in->id == X86_INS_HLT;
	}
	add_run(sc, run, vaddr);
	decoder_close(h, in);
}

/* Find the function at vaddr. Static programs have no table of functions; their symbols serve as one. */
static bool function_at(const struct search *sc, uint64_t vaddr, uint64_t *ret_start,
			uint64_t *ret_end)
{
	const struct elf_symbol *all;
	size_t cnt, low = 0, high;

	if (sc->fdes->cnt)
		return fde_index_find(sc->fdes, vaddr, ret_start, ret_end);
	all = elf_symbols_all(sc->syms, &cnt);
	for (high = cnt; low < high;) { /* first symbol behind vaddr */
		size_t mid = low + (high - low) / 2;

		if (all[mid].vaddr > vaddr)
			high = mid;
		else
			low = mid + 1;
	}
	if (!low || low == cnt)
		return false;
	*ret_start = all[low - 1].vaddr;
	*ret_end = all[low].vaddr;
	return true;
}

/* Find all runs that a short jump of this function could reach, once: decoding is the cost. */
static void find_runs(struct search *sc)
{
	uint64_t vaddr = sc->code.vaddr - SHORT_BACK, start, end;

	sc->has_runs = true;
	while (vaddr <= sc->code.vaddr + SEARCH_BYTES + SHORT_AHEAD &&
	       function_at(sc, vaddr, &start, &end) && end > vaddr) {
		find_runs_of(sc, start, end);
		vaddr = end;
	}
}

static uint64_t find_gap(struct search *sc, uint64_t from_vaddr)
{
	uint64_t found = 0;

	if (!sc->has_runs)
		find_runs(sc);
	for (size_t i = 0; i < sc->run_cnt && !found; i++)
		found = gap_in(sc->gaps, &sc->run[i], from_vaddr);
	return found;
}

/*
 * Candidates.
 */

/* Can the instruction be moved? Fills what is needed for that. */
static bool can_move(struct search *sc, struct tap_spot *s)
{
	const cs_x86 *x = &sc->in->detail->x86;
	uint64_t target;
	enum kind k = insn_classify(sc->in, &target);

	s->move = TAP_MOVE_COPY;
	if (k == KIND_JMP || k == KIND_JCC) {
		s->move = k == KIND_JMP ? TAP_MOVE_JUMP : TAP_MOVE_BRANCH;
		s->target_vaddr = target;
		s->condition = sc->in->bytes[sc->in->size > 4 ? 1 : 0] & 0xf;
		/* jcc rel8 is 7x, jcc rel32 0f 8x; prefixes are hints, and rare. */
		return sc->in->bytes[0] == 0xeb || sc->in->bytes[0] == 0xe9 ||
		       (sc->in->bytes[0] & 0xf0) == 0x70 || sc->in->bytes[0] == 0x0f;
	}
	if (k >= KIND_CALL || is_odd_branch(sc, k))
		return false;
	for (int i = 0; i < x->op_count; i++) {
		if (x->operands[i].type != X86_OP_MEM || x->operands[i].mem.base != X86_REG_RIP)
			continue;
		if (x->encoding.disp_size != 4 || x->encoding.disp_offset + 4 > sc->in->size)
			return false;
		s->move = TAP_MOVE_RIP;
		s->disp_at = x->encoding.disp_offset;
		s->target_vaddr =
			sc->in->address + sc->in->size + (uint64_t)x->operands[i].mem.disp;
	}
	return true;
}

/* Take this instruction? at: its place among the left bytes. */
static bool accept(struct search *sc, const uint8_t *at, size_t left, struct tap_spot *s)
{
	const cs_insn *in = sc->in;
	struct tap_spot found = { .vaddr = in->address, .insn_bytes = (uint8_t)in->size };
	const uint8_t *gap;

	if (in->size < TAP_SHORT_JUMP_BYTES || in->size > TAP_INSN_CAP)
		return false;
	if (sc->jump_target < in->address + in->size) {
		say(s, "a jump goes back before", sc);
		return false;
	}
	if (!can_move(sc, &found)) {
		say(s, "cannot be moved: ", sc);
		return false;
	}
	if (sc->has_flags && flags_matter(sc, at, left, in->address)) {
		say(s, "flags are in use", sc);
		return false;
	}
	if (in->size < TAP_LONG_JUMP_BYTES) {
		found.gap_vaddr = find_gap(sc, in->address + TAP_SHORT_JUMP_BYTES);
		gap = found.gap_vaddr ?
			      elf_file_read(sc->ef, found.gap_vaddr, TAP_LONG_JUMP_BYTES) :
			      NULL;
		if (!gap) {
			say(s, "no gap within reach", sc);
			return false;
		}
		memcpy(found.gap, gap, sizeof(found.gap));
	}
	memcpy(found.insn, in->bytes, in->size);
	for (int i = 0; i < sc->done_cnt; i++)
		found.undo[i] = sc->done[sc->done_cnt - 1 - i];
	found.undo_cnt = sc->done_cnt;
	*s = found;
	return true;
}

static bool note_done(struct search *sc, uint8_t what)
{
	if (sc->done_cnt == TAP_UNDO_CAP)
		return false;
	sc->done[sc->done_cnt++] = what;
	return true;
}

/* May the instruction be run twice, and can the entry's state be restored after it? */
static bool keeps_entry(struct search *sc)
{
	const cs_x86 *x = &sc->in->detail->x86;
	cs_regs reads, writes;
	uint8_t read_cnt, write_cnt;

	if (cs_regs_access(sc->h, sc->in, reads, &read_cnt, writes, &write_cnt) != CS_ERR_OK)
		return false;
	for (int i = 0; i < write_cnt; i++) {
		int reg = insn_reg_number(writes[i]);

		if (writes[i] == X86_REG_EFLAGS)
			continue;
		if (reg != RAX && (reg < 0 || !(sc->saved_mask >> reg & 1)))
			return false;
	}
	for (int i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && (x->operands[i].access & CS_AC_WRITE))
			return false;
	return true;
}

static bool step_free(struct search *sc, enum kind k, bool was_null_test)
{
	if (was_null_test && k == KIND_JCC && sc->in->id == X86_INS_JE)
		return true;
	return k < KIND_JMP && !writes_frame(sc) && !writes_reg(sc, RDI) && !writes_reg(sc, R10) &&
	       !writes_reg(sc, R11) && !writes_reg(sc, RSP);
}

/* The register number in a push. */
static uint8_t pushed(const cs_insn *in)
{
	return (uint8_t)((in->bytes[in->size - 1] & 7) + (in->size == 2 ? 8 : 0));
}

/* Pass the instruction. false: nothing after it can be the spot. */
static bool step(struct search *sc, struct tap_spot *s)
{
	const cs_x86 *x = &sc->in->detail->x86;
	uint64_t target;
	enum kind k = insn_classify(sc->in, &target);
	bool was_null_test = sc->tests_null, is_fine;

	sc->tests_null = sc->in->id == X86_INS_TEST && x->op_count == 2 &&
			 x->operands[0].type == X86_OP_REG && x->operands[1].type == X86_OP_REG &&
			 x->operands[0].reg == X86_REG_RDI && x->operands[1].reg == X86_REG_RDI;
	if (sc->in->id == X86_INS_ENDBR64 || is_padding(sc->in))
		return true;
	if (k == KIND_PUSH) {
		uint8_t reg = pushed(sc->in);

		/* A register pushed again, or not callee-saved: room on the stack. */
		if ((CALLEE_SAVED & ~sc->saved_mask) >> reg & 1) {
			sc->saved_mask |= 1U << reg;
			return note_done(sc, reg);
		}
		return note_done(sc, TAP_UNDO_ADD + 1);
	}
	if (sc->in->id == X86_INS_SUB && x->op_count == 2 && x->operands[0].type == X86_OP_IMM &&
	    x->operands[1].type == X86_OP_REG && x->operands[1].reg == X86_REG_RSP &&
	    x->operands[0].imm > 0 && x->operands[0].imm < 128 && !(x->operands[0].imm & 7))
		return note_done(sc, (uint8_t)(TAP_UNDO_ADD + x->operands[0].imm / 8));
	sc->has_flags = true;
	is_fine = is_odd_branch(sc, k) ? false :
		  sc->req->is_free     ? step_free(sc, k, was_null_test) :
					 k < KIND_JMP && keeps_entry(sc);
	if (!is_fine)
		say(s,
		    sc->req->is_free ? "the argument or the way ends" : "the entry's state is lost",
		    sc);
	return is_fine;
}

/* Best behind the entry without a gap, else behind it with one, else at the entry. */
static void search(struct search *sc, struct tap_spot *ret)
{
	const uint8_t *p = sc->code.bytes;
	size_t left = sc->code.cnt;
	uint64_t vaddr = sc->code.vaddr;
	struct tap_spot at_entry = { 0 }, with_gap = { 0 }, found = { 0 };

	for (int i = 0; i < SEARCH_INSNS && cs_disasm_iter(sc->h, &p, &left, &vaddr, sc->in); i++) {
		struct tap_spot *to = !i ? &at_entry : with_gap.vaddr ? &found : &with_gap;
		bool is_nothing = sc->in->id == X86_INS_ENDBR64 || is_padding(sc->in);

		if (!is_nothing && !to->vaddr &&
		    accept(sc, p - sc->in->size, left + sc->in->size, to) && i && !to->gap_vaddr) {
			found = *to;
			break;
		}
		if (to == &found)
			found.vaddr = 0; /* another gap is no better than the first */
		if (!step(sc, &with_gap))
			break;
	}
	*ret = found.vaddr ? found : with_gap.vaddr ? with_gap : at_entry;
	if (!ret->vaddr)
		snprintf(ret->why, sizeof(ret->why), "%s",
			 with_gap.why[0] ? with_gap.why :
			 at_entry.why[0] ? at_entry.why :
					   "no instruction that would do");
}

int tap_spot_find(const struct elf_file *ef, const struct fde_index *fdes,
		  const struct elf_symbols *syms, const struct tap_spot_request *req,
		  struct tap_gaps *gaps, struct tap_spot *ret)
{
	struct search sc = { .ef = ef, .fdes = fdes, .syms = syms, .req = req, .gaps = gaps };
	int err = code_open(ef, req->fn_vaddr, req->fn_bytes, &sc.code);

	memset(ret, 0, sizeof(*ret));
	if (!err)
		err = code_lowest_jump_target(&sc.code, &sc.jump_target);
	if (!err)
		err = decoder_open(true, &sc.h, &sc.in);
	if (err)
		return err;
	search(&sc, ret);
	decoder_close(sc.h, sc.in);
	if (ret->gap_vaddr && gaps->cnt < TAP_GAPS_CAP)
		gaps->vaddr[gaps->cnt++] = ret->gap_vaddr;
	else if (ret->gap_vaddr)
		*ret = (struct tap_spot){ .why = "too many gaps are taken" };
	return 0;
}
