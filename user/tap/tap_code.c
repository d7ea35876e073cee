/* SPDX-License-Identifier: MIT */
/*
 * tap_code.c - see tap_code.h.
 *
 * The way in of a function that allocates n bytes, n being an argument (malloc):
 *
 *	r11 = the slot of the entry's stack pointer; slot -= n; below 0, or it was already: slow
 *	the flags are made again, if they are read behind the spot
 *	the instruction that made room for the jump; back behind it
 *   (another way in, if the spot is a pair: the same, and then to where the branch led)
 *   slow:	the entry's registers and rsp are put back; push the number of the site; to the stub
 *   orig:	copies of the instructions from the function's entry up to the spot, that instruction, back behind it
 *
 * The stub calls orig, which is the untapped function. A function that may end in another one of the allocator
 * (realloc), or whose size is a product, always takes the slow way, which keeps calls inside it from being counted
 * again. A function that frees:
 *
 *	filter[address] is 0: go
 *	call the stub, which keeps all registers
 *   go:	the flags, the instruction; back behind it
 *
 * What the way in touches, of which tests/unit/test_tap_code.c has a test each:
 *   registers	r10 and r11, if tap_spot.uses_scratch says that nobody needs them; otherwise it saves them. With the slow
 *	way all general registers are those of the entry for the real call, and as that has left them for the caller. (Those that
 *	the function had overwritten before the spot are not put back: it overwrites them again.)
 *   flags	any, but those are put back that somebody may read (tap_spot.flags_insn)
 *   stack	16 bytes below rsp to save the registers. A free that finds something calls, and an allocation is called, with
 *	some 400 bytes below rsp. At the spot nothing of the function is there (alloc/tap_spot.c).
 *
 * Encodings: Intel's manual, volume 2.
 */
#include "tap/tap_code.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "alloc/allocators.h"
#include "base/err.h"
#include "heaptap/abi.h"

#define MISSED_NAMES_CAP 3

static const uint8_t stub[] = {
#include "tap_stub.h"
};

/*
 * Emitting.
 */

struct emit {
	struct tap_code *code;
	uint64_t code_addr;
	size_t at;
	int err; /* the first error */
};

static void put(struct emit *e, const void *bytes, size_t cnt)
{
	if (e->at + cnt > sizeof(e->code->bytes))
		e->err = e->err ? e->err : -ENOSPC;
	else
		memcpy(e->code->bytes + e->at, bytes, cnt);
	e->at += e->err ? 0 : cnt;
}

#define PUT(e, ...)                                             \
	do {                                                    \
		static const uint8_t bytes[] = { __VA_ARGS__ }; \
		put(e, bytes, sizeof(bytes));                   \
	} while (0)

static void put_u8(struct emit *e, uint8_t v)
{
	put(e, &v, 1);
}

static void put_u32(struct emit *e, uint32_t v)
{
	put(e, &v, 4);
}

static uint64_t here(const struct emit *e)
{
	return e->code_addr + e->at;
}

/* A 32-bit displacement, counted from `behind` bytes after it. */
static void put_rel32(struct emit *e, uint64_t target_addr, uint64_t behind)
{
	int64_t off = (int64_t)(target_addr - (here(e) + 4 + behind));

	if (off != (int32_t)off)
		e->err = e->err ? e->err : -ERANGE;
	put_u32(e, (uint32_t)off);
}

static void put_jump(struct emit *e, uint64_t target_addr)
{
	put_u8(e, 0xe9);
	put_rel32(e, target_addr, 0);
}

/* A conditional jump forward in the way in; land() fills in its target. Returns its place. */
static size_t put_branch(struct emit *e, uint8_t condition)
{
	const uint8_t bytes[] = { 0x0f, (uint8_t)(0x80 | condition) };

	put(e, bytes, sizeof(bytes));
	put_u32(e, 0);
	return e->at - 4;
}

static void land(struct emit *e, size_t branch)
{
	uint32_t off = (uint32_t)(e->at - (branch + 4));

	if (!e->err)
		memcpy(e->code->bytes + branch, &off, 4);
}

#define COND_BELOW 0x2
#define COND_NOT_EQUAL 0x5
#define COND_SIGN 0x8

/*
 * A way in.
 */

struct way {
	const struct alloc_site *site;
	uint64_t bias;
	const struct tap_header *header;
	uint64_t data_addr;
	size_t site_idx; /* in the header */
	bool is_branch; /* for calls that take the branch before the spot */
};

/* jmp *slot(%rip) */
static void put_slot_jump(struct emit *e, uint64_t slot_addr)
{
	PUT(e, 0xff, 0x25);
	put_rel32(e, slot_addr, 0);
}

/* An instruction, adapted to its new place. */
static void put_insn(struct emit *e, const struct way *w, const struct tap_insn *in)
{
	switch ((enum tap_move)in->move) {
	case TAP_MOVE_JUMP:
		put_jump(e, in->target_vaddr + w->bias);
		return;
	case TAP_MOVE_BRANCH:
		put_u8(e, 0x0f);
		put_u8(e, (uint8_t)(0x80 | in->condition));
		put_rel32(e, in->target_vaddr + w->bias, 0);
		return;
	case TAP_MOVE_RIP:
		put(e, in->bytes, in->disp_at);
		put_rel32(e, in->target_vaddr + w->bias, in->byte_cnt - in->disp_at - 4);
		put(e, in->bytes + in->disp_at + 4, in->byte_cnt - in->disp_at - 4);
		return;
	case TAP_MOVE_COPY:
		put(e, in->bytes, in->byte_cnt);
		return;
	case TAP_MOVE_SLOT_JUMP:
		put_slot_jump(e, in->target_vaddr + w->bias);
		return;
	case TAP_MOVE_CALL:
	case TAP_MOVE_SLOT_CALL: /* only the last one is a call: put_moved() */
		e->err = e->err ? e->err : -EINVAL;
	}
}

/* A call that returns to back_addr, so that nobody who looks at the stack finds our code. */
static void put_call(struct emit *e, const struct way *w, const struct tap_insn *in,
		     uint64_t back_addr)
{
	put_u8(e, 0x68); /* push $n, which fills the upper half with the sign */
	put_u32(e, (uint32_t)back_addr);
	PUT(e, 0xc7, 0x44, 0x24, 4); /* movl $n,4(%rsp) */
	put_u32(e, (uint32_t)(back_addr >> 32));
	if (in->move == TAP_MOVE_CALL) {
		put_jump(e, in->target_vaddr + w->bias);
		return;
	}
	put_slot_jump(e, in->target_vaddr + w->bias);
}

/* The moved instruction, and the jump back behind it. */
static void put_moved(struct emit *e, const struct way *w)
{
	const struct tap_spot *s = &w->site->tap;
	const uint64_t back_addr = s->vaddr + w->bias + s->insn.byte_cnt;

	if (s->insn.move == TAP_MOVE_CALL || s->insn.move == TAP_MOVE_SLOT_CALL) {
		put_call(e, w, &s->insn, back_addr);
		return;
	}
	put_insn(e, w, &s->insn);
	if (s->insn.move != TAP_MOVE_JUMP && s->insn.move != TAP_MOVE_SLOT_JUMP)
		put_jump(e, back_addr);
}

/* What the function would do now, if the flags are not those that it has made. */
static void put_go(struct emit *e, const struct way *w)
{
	const struct tap_spot *s = &w->site->tap;

	if (s->flags_insn)
		put_insn(e, w, &s->before[s->flags_insn - 1]);
	if (w->is_branch)
		put_jump(e, s->branch.target_vaddr + w->bias);
	else
		put_moved(e, w);
}

/* The function, as if untapped. */
static void put_orig(struct emit *e, const struct way *w)
{
	const struct tap_spot *s = &w->site->tap;

	for (int i = 0; i < s->before_cnt; i++)
		put_insn(e, w, &s->before[i]);
	if (s->branch_vaddr)
		put_insn(e, w, &s->branch);
	put_moved(e, w);
}

static uint32_t undo_bytes(const struct tap_spot *s)
{
	uint32_t bytes = 0;

	for (int i = 0; i < s->undo_cnt; i++)
		bytes += s->undo[i] < TAP_UNDO_ADD ? 8 : (s->undo[i] - TAP_UNDO_ADD) * 8U;
	return bytes;
}

static void put_undo(struct emit *e, const struct tap_spot *s)
{
	for (int i = 0; i < s->undo_cnt; i++) {
		uint8_t u = s->undo[i];

		if (u >= TAP_UNDO_ADD) { /* lea n(%rsp),%rsp */
			PUT(e, 0x48, 0x8d, 0x64, 0x24);
			put_u8(e, (uint8_t)((u - TAP_UNDO_ADD) * 8));
			continue;
		}
		if (u >= 8) /* pop */
			put_u8(e, 0x41);
		put_u8(e, (uint8_t)(0x58 | (u & 7)));
	}
}
_Static_assert(TAP_UNDO_BYTES_CAP < 128, "8 bits in put_undo()");

#define SAVED_BYTES 16

static void put_save(struct emit *e, const struct way *w)
{
	if (w->site->tap.uses_scratch)
		PUT(e, 0x41, 0x52, 0x41, 0x53); /* push %r10; push %r11 */
}

/* The flags stay as they are. */
static void put_restore(struct emit *e, const struct way *w)
{
	if (w->site->tap.uses_scratch)
		PUT(e, 0x41, 0x5b, 0x41, 0x5a); /* pop %r11; pop %r10 */
}

/* lea target(%rip),%r10 */
static void put_lea_r10(struct emit *e, uint64_t target_addr)
{
	PUT(e, 0x4c, 0x8d, 0x15);
	put_rel32(e, target_addr, 0);
}

/* Subtract the size from the slot's counter; the flags say "below" when it has run out, and "sign" when it had. */
static void put_count(struct emit *e, const struct way *w)
{
	static const uint8_t arg_reg[] = { 7, 6, 2, 1, 8, 9 };
	const uint8_t reg = arg_reg[w->site->row->size_arg % sizeof(arg_reg)];
	const struct tap_spot *s = &w->site->tap;

	PUT(e, 0x4c, 0x8d, 0x9c, 0x24); /* lea n(%rsp),%r11 */
	put_u32(e, undo_bytes(s) + (s->uses_scratch ? SAVED_BYTES : 0));
	PUT(e, 0x49, 0xc1, 0xeb, TAP_STACK_SHIFT); /* shr $n,%r11 */
	PUT(e, 0x45, 0x69, 0xdb); /* imul $n,%r11d,%r11d */
	put_u32(e, TAP_SLOT_FACTOR);
	PUT(e, 0x41, 0xc1, 0xeb, TAP_SLOT_SHIFT); /* shr $n,%r11d */
	PUT(e, 0x41, 0x81, 0xe3); /* and $n,%r11d */
	put_u32(e, TAP_SLOT_MASK);
	put_lea_r10(e, w->data_addr + offsetof(struct tap_data, slot) +
			       offsetof(struct tap_slot, left_bytes));
	put_u8(e, (uint8_t)(0x4b | (reg >= 8 ? 4 : 0))); /* sub %reg,(%r10,%r11) */
	put_u8(e, 0x29);
	put_u8(e, (uint8_t)(0x04 | (reg & 7) << 3));
	put_u8(e, 0x1a);
}

static void put_alloc_way(struct emit *e, const struct way *w, bool counts)
{
	size_t below, sign;

	if (counts) {
		put_save(e, w);
		put_count(e, w);
		put_restore(e, w);
		below = put_branch(e, COND_BELOW);
		sign = put_branch(e, COND_SIGN);
		put_go(e, w);
		land(e, below);
		land(e, sign);
	}
	put_undo(e, &w->site->tap);
	PUT(e, 0x68); /* push $n */
	put_u32(e, (uint32_t)w->site_idx);
	put_jump(e, e->code_addr + w->header->alloc_entry_off);
}

static void put_free_way(struct emit *e, const struct way *w)
{
	size_t maybe;

	put_save(e, w);
	PUT(e, 0x49, 0x89, 0xfb); /* mov %rdi,%r11 */
	PUT(e, 0x49, 0xc1, 0xeb, 4); /* shr $4,%r11 */
	PUT(e, 0x45, 0x0f, 0xb7, 0xdb); /* movzwl %r11w,%r11d */
	put_lea_r10(e, w->data_addr + offsetof(struct tap_data, filter));
	PUT(e, 0x43, 0x80, 0x3c, 0x1a, 0); /* cmpb $0,(%r10,%r11) */
	put_restore(e, w);
	maybe = put_branch(e, COND_NOT_EQUAL);
	put_go(e, w);
	land(e, maybe);
	put_u8(e, 0xe8); /* call */
	put_rel32(e, e->code_addr + w->header->free_entry_off, 0);
	put_go(e, w);
}
_Static_assert(TAP_FILTER_CNT == 1 << 16, "16 bits of the address in put_free_way()");

/*
 * All of it.
 */

/* The calls inside the function are counted: the function itself need not be. */
static bool may_be_left_out(const struct alloc_site *s)
{
	return s->may_nest && s->row->op != HT_OP_FREE;
}

static bool throws(const struct alloc_site *s)
{
	return HT_COOKIE_FLAGS(s->cookie) & HT_SITE_THROWS;
}

/* Without these functions the others are not worth much. */
static bool is_main(const struct alloc_site *s)
{
	static const char *const names[] = { "malloc", "calloc", "_Znwm", "_Znam" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(s->row->name, names[i]))
			return true;
	return false;
}

enum tap_use tap_use_of(const struct alloc_site *s, struct err *why)
{
	const bool can_throw = throws(s) && !s->plain_vaddr;
	const uint8_t op = s->row->op;

	if (s->tap.vaddr && !can_throw)
		return TAP_USE_WHOLE;
	if (!s->tap.vaddr && (s->tap_is_inside || may_be_left_out(s)))
		return TAP_USE_INSIDE;
	if (can_throw)
		err_set(why, -ENOTSUP, "%s may throw, and its file has no nothrow variant of it",
			s->symbol);
	else
		err_set(why, -ENOTSUP, "%s: %s", s->symbol, s->tap.why);
	if (s->tap.vaddr && op == HT_OP_REALLOC && s->row->ptr_arg == 0)
		return TAP_USE_FREES;
	return op == HT_OP_ALLOC && !is_main(s) ? TAP_USE_NOTHING : TAP_USE_REFUSED;
}

void tap_code_missed(const struct alloc_file *alloc, char *buf, size_t buf_bytes)
{
	const struct alloc_site *s;
	size_t cnt = 0, len = 0;

	buf[0] = '\0';
	vec_each(&alloc->sites, s) {
		enum tap_use use = tap_use_of(s, NULL);

		if (use != TAP_USE_FREES && use != TAP_USE_NOTHING)
			continue;
		if (++cnt <= MISSED_NAMES_CAP && len < buf_bytes)
			len += (size_t)snprintf(buf + len, buf_bytes - len, "%s%s",
						cnt > 1 ? ", " : "", s->symbol);
	}
	if (cnt > MISSED_NAMES_CAP && len < buf_bytes)
		snprintf(buf + len, buf_bytes - len, " and %zu more", cnt - MISSED_NAMES_CAP);
}

static bool counts(const struct alloc_site *s)
{
	return s->row->op == HT_OP_ALLOC && !s->may_nest && !s->may_forward &&
	       s->row->count_arg == HT_ARG_NONE && s->row->ret == HT_RET_VALUE;
}

int tap_code_check(const struct alloc_file *alloc, struct err *why)
{
	const struct alloc_site *s;
	size_t cnt = 0;

	vec_each(&alloc->sites, s) {
		cnt++;
		if (tap_use_of(s, why) == TAP_USE_REFUSED)
			return -ENOTSUP;
	}
	if (cnt <= TAP_SITES_CAP)
		return 0;
	return err_set(why, -ENOTSUP,
		       "its allocator has %zu entry points, more than the limit of %d", cnt,
		       TAP_SITES_CAP);
}

static int add_patch(struct tap_header *h, const struct tap_patch *patch, const uint8_t *original,
		     const uint8_t *patched)
{
	struct tap_patch *p = &h->patch[h->patch_cnt];

	if (h->patch_cnt == TAP_PATCHES_CAP)
		return -ENOSPC;
	h->patch_cnt++;
	*p = *patch;
	memcpy(p->original, original, p->byte_cnt);
	memcpy(p->patched, patched, p->byte_cnt);
	return 0;
}

/* A jump at a site: its displacement changes, or its opcode as well. */
struct jump {
	const struct tap_insn *insn; /* the one there */
	uint64_t site_addr;
	uint64_t gap_addr; /* where the long jump is; 0: it is one itself */
	const uint8_t *gap; /* the original bytes there */
	uint8_t off, byte_cnt; /* of the bytes that change */
};

/* Add the jump to the way in. If it goes over a gap, the long jump there is the first patch. */
static int add_jump(struct tap_header *h, const struct jump *j, uint64_t way_addr)
{
	const uint64_t end_addr = j->site_addr + j->off + j->byte_cnt;
	const uint64_t long_end_addr = j->gap_addr ? j->gap_addr + TAP_LONG_JUMP_BYTES : end_addr;
	const int64_t off = (int64_t)(way_addr - long_end_addr);
	const int32_t off32 = (int32_t)off;
	uint8_t jump[TAP_LONG_JUMP_BYTES] = { 0xe9 };
	uint8_t hop[TAP_SHORT_JUMP_BYTES] = { 0xeb, (uint8_t)(j->gap_addr - end_addr) };
	const uint8_t *end = j->gap_addr ? hop + sizeof(hop) : jump + sizeof(jump);
	struct tap_patch p = { .addr = j->gap_addr,
			       .site_addr = j->site_addr,
			       .site_byte = j->insn->bytes[0],
			       .byte_cnt = TAP_LONG_JUMP_BYTES,
			       .is_gap = 1 };
	int err = 0;

	if (off != off32)
		return -ERANGE;
	memcpy(jump + 1, &off32, sizeof(off32));
	if (j->gap_addr)
		err = add_patch(h, &p, j->gap, jump);
	p.addr = j->site_addr + j->off;
	p.byte_cnt = j->byte_cnt;
	p.is_gap = 0;
	return err ? err : add_patch(h, &p, j->insn->bytes + j->off, end - j->byte_cnt);
}

static uint64_t gap_addr(uint64_t gap_vaddr, uint64_t bias)
{
	return gap_vaddr ? gap_vaddr + bias : 0;
}

/* branch_way_addr: 0 if there is none. */
static int add_jumps(struct tap_header *h, const struct tap_spot *s, uint64_t bias,
		     uint64_t way_addr, uint64_t branch_way_addr)
{
	struct jump at_spot = { &s->insn, s->vaddr + bias, gap_addr(s->gap_vaddr, bias), s->gap, 0,
				0 };
	struct jump at_branch = { &s->branch,
				  s->branch_vaddr + bias,
				  gap_addr(s->branch_gap_vaddr, bias),
				  s->branch_gap,
				  0,
				  0 };
	int err;

	tap_spot_changed(s, &at_spot.off, &at_spot.byte_cnt);
	tap_branch_changed(s, &at_branch.off, &at_branch.byte_cnt);
	err = add_jump(h, &at_spot, way_addr);
	return err || !branch_way_addr ? err : add_jump(h, &at_branch, branch_way_addr);
}

static uint64_t align(struct emit *e)
{
	e->at = (e->at + 15) & ~15ULL;
	return here(e);
}

static bool is_alloc(const struct alloc_site *s, enum tap_use use)
{
	return s->row->op != HT_OP_FREE && use == TAP_USE_WHOLE;
}

static void put_way(struct emit *e, const struct way *w, enum tap_use use)
{
	if (is_alloc(w->site, use))
		put_alloc_way(e, w, counts(w->site));
	else
		put_free_way(e, w);
}

/* Add the ways of a site, and what its real call is if it is itself. */
static int add_site(struct emit *e, struct tap_header *h, const struct tap_code_request *req,
		    const struct alloc_site *s, enum tap_use use)
{
	const struct alloc_row *row = s->row;
	struct way w = { s, req->bias, h, h->data_addr, h->site_cnt, false };
	struct tap_site *site = &h->site[h->site_cnt++];
	uint64_t way_addr, branch_way_addr = 0;

	*site = (struct tap_site){
		.entry_addr = s->fn_vaddr + req->bias,
		.op = row->op,
		.size_arg = row->size_arg,
		.count_arg = row->count_arg,
		.ptr_arg = row->ptr_arg,
		.ret = row->ret,
		.flags = (uint8_t)((counts(s) ? TAP_SITE_COUNTS : 0) |
				   (throws(s) ? TAP_SITE_THROWS : 0) |
				   (throws(s) && s->plain_swaps ? TAP_SITE_SWAPS : 0)),
	};
	way_addr = align(e);
	put_way(e, &w, use);
	if (s->tap.branch_vaddr) {
		w.is_branch = true;
		branch_way_addr = align(e);
		put_way(e, &w, use);
	}
	if (is_alloc(s, use)) {
		site->real_addr = site->orig_addr = here(e);
		put_orig(e, &w);
	}
	if (s->tap.insn.move == TAP_MOVE_SLOT_JUMP) { /* it is led to another slot */
		uint64_t slot_addr = align(e);

		put(e, &way_addr, sizeof(way_addr));
		way_addr = slot_addr;
	}
	return e->err ? e->err : add_jumps(h, &s->tap, req->bias, way_addr, branch_way_addr);
}

/* The real call of a function that throws is another one of the file, past its tap. */
static void set_plain_calls(struct tap_header *h, const struct tap_code_request *req)
{
	const struct alloc_site *s;

	vec_each(&req->alloc->sites, s) {
		const uint64_t addr = s->fn_vaddr + req->bias, plain = s->plain_vaddr + req->bias;
		uint64_t orig_addr = plain;

		for (uint32_t i = 0; i < h->site_cnt; i++)
			if (h->site[i].entry_addr == plain && h->site[i].orig_addr)
				orig_addr = h->site[i].orig_addr;
		for (uint32_t i = 0; i < h->site_cnt; i++)
			if (h->site[i].entry_addr == addr && h->site[i].flags & TAP_SITE_THROWS)
				h->site[i].real_addr = orig_addr;
	}
}

int tap_code_build(const struct tap_code_request *req, struct tap_code *ret, struct err *why)
{
	struct emit e = { .code = ret, .code_addr = req->code_addr };
	struct tap_header *h = (struct tap_header *)ret->bytes;
	const struct alloc_site *s;
	int err = tap_code_check(req->alloc, why);

	if (err)
		return err;
	memset(ret->bytes, 0xcc, sizeof(ret->bytes));
	put(&e, stub, sizeof(stub));
	h->site_cnt = h->patch_cnt = 0;
	h->control_addr = req->code_addr + TAP_CODE_BYTES;
	h->data_addr = req->code_addr + TAP_FILE_BYTES;
	h->data_bytes = TAP_DATA_BYTES;
	vec_each(&req->alloc->sites, s) {
		enum tap_use use = tap_use_of(s, why);

		if (use == TAP_USE_WHOLE || use == TAP_USE_FREES)
			err = add_site(&e, h, req, s, use);
		if (err)
			break;
	}
	set_plain_calls(h, req);
	ret->byte_cnt = e.at;
	if (err)
		err_set(why, err, "%s",
			err == -ERANGE ? "the free memory is too far from the allocator" :
					 "the code does not fit");
	return err;
}
