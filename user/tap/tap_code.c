/* SPDX-License-Identifier: MIT */
/*
 * tap_code.c - see tap_code.h.
 *
 * The way in of a function that allocates n bytes, n being an argument (malloc):
 *
 *	r11 = the thread's slot; slot -= n; below 0, or it was already: slow
 *   go:	the instruction that made room for the jump; back behind it
 *   slow:	was it the stub that called (its own real call)? go
 *	the entry's registers and rsp are put back; r11 = the site; to the stub
 *
 * A function that may end in another one of the allocator (realloc), or whose size is a product, always
 * takes the slow way, which keeps calls inside it from being counted again. A function that frees:
 *
 *	filter[address] is 0: go
 *	call the stub
 *   go:	...
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
#define COND_EQUAL 0x4
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
};

/* The moved instruction, adapted to its new place, and the jump back behind it. */
static void put_moved(struct emit *e, const struct way *w)
{
	const struct tap_spot *s = &w->site->tap;
	uint64_t back_addr = s->vaddr + w->bias + s->insn_bytes;

	switch ((enum tap_move)s->move) {
	case TAP_MOVE_JUMP:
		put_jump(e, s->target_vaddr + w->bias);
		return;
	case TAP_MOVE_BRANCH:
		put_u8(e, 0x0f);
		put_u8(e, (uint8_t)(0x80 | s->condition));
		put_rel32(e, s->target_vaddr + w->bias, 0);
		break;
	case TAP_MOVE_RIP:
		put(e, s->insn, s->disp_at);
		put_rel32(e, s->target_vaddr + w->bias, s->insn_bytes - s->disp_at - 4);
		put(e, s->insn + s->disp_at + 4, s->insn_bytes - s->disp_at - 4);
		break;
	case TAP_MOVE_COPY:
		put(e, s->insn, s->insn_bytes);
		break;
	}
	put_jump(e, back_addr);
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

		if (u >= TAP_UNDO_ADD) { /* add $n,%rsp */
			PUT(e, 0x48, 0x81, 0xc4);
			put_u32(e, (uint32_t)(u - TAP_UNDO_ADD) * 8);
			continue;
		}
		if (u >= 8) /* pop */
			put_u8(e, 0x41);
		put_u8(e, (uint8_t)(0x58 | (u & 7)));
	}
}

/* lea target(%rip),%r11 */
static void put_lea_r11(struct emit *e, uint64_t target_addr)
{
	PUT(e, 0x4c, 0x8d, 0x1d);
	put_rel32(e, target_addr, 0);
}

/* lea target(%rip),%r10 */
static void put_lea_r10(struct emit *e, uint64_t target_addr)
{
	PUT(e, 0x4c, 0x8d, 0x15);
	put_rel32(e, target_addr, 0);
}

/* Did the stub make this call? If so the flags say "equal". */
static void put_is_own_call(struct emit *e, const struct way *w)
{
	put_lea_r11(e, e->code_addr + w->header->alloc_return_off);
	PUT(e, 0x4c, 0x3b, 0x9c, 0x24); /* cmp n(%rsp),%r11 */
	put_u32(e, undo_bytes(&w->site->tap));
}

/* Subtract the size from the thread's counter; the flags say "below" when it has run out, and "sign" when it had. */
static void put_count(struct emit *e, uint64_t data_addr, uint8_t size_arg)
{
	static const uint8_t arg_reg[] = { 7, 6, 2, 1, 8, 9 };
	uint8_t reg = arg_reg[size_arg % sizeof(arg_reg)];

	PUT(e, 0x64, 0x4c, 0x8b, 0x1c, 0x25, 0, 0, 0, 0); /* mov %fs:0,%r11 */
	PUT(e, 0x4d, 0x69, 0xdb); /* imul $n,%r11,%r11 */
	put_u32(e, TAP_SLOT_FACTOR);
	PUT(e, 0x49, 0xc1, 0xeb, 32); /* shr $32,%r11 */
	PUT(e, 0x41, 0x81, 0xe3); /* and $n,%r11d */
	put_u32(e, TAP_SLOT_MASK);
	put_lea_r10(e, data_addr + offsetof(struct tap_data, slot) +
			       offsetof(struct tap_slot, left_bytes));
	put_u8(e, (uint8_t)(0x4b | (reg >= 8 ? 4 : 0))); /* sub %reg,(%r10,%r11) */
	put_u8(e, 0x29);
	put_u8(e, (uint8_t)(0x04 | (reg & 7) << 3));
	put_u8(e, 0x1a);
}

static void put_alloc_way(struct emit *e, const struct way *w, bool counts)
{
	size_t below, sign, own;

	if (counts) {
		put_count(e, w->data_addr, w->site->row->size_arg);
		below = put_branch(e, COND_BELOW);
		sign = put_branch(e, COND_SIGN);
		put_moved(e, w);
		land(e, below);
		land(e, sign);
	}
	put_is_own_call(e, w);
	own = put_branch(e, COND_EQUAL);
	put_undo(e, &w->site->tap);
	put_lea_r11(e, e->code_addr + offsetof(struct tap_header, site) +
			       w->site_idx * sizeof(struct tap_site));
	put_jump(e, e->code_addr + w->header->alloc_entry_off);
	land(e, own);
	put_moved(e, w);
}

static void put_free_way(struct emit *e, const struct way *w)
{
	size_t maybe;

	PUT(e, 0x49, 0x89, 0xfb); /* mov %rdi,%r11 */
	PUT(e, 0x49, 0xc1, 0xeb, 4); /* shr $4,%r11 */
	PUT(e, 0x45, 0x0f, 0xb7, 0xdb); /* movzwl %r11w,%r11d */
	put_lea_r10(e, w->data_addr + offsetof(struct tap_data, filter));
	PUT(e, 0x43, 0x80, 0x3c, 0x1a, 0); /* cmpb $0,(%r10,%r11) */
	maybe = put_branch(e, COND_NOT_EQUAL);
	put_moved(e, w);
	land(e, maybe);
	put_u8(e, 0xe8); /* call */
	put_rel32(e, e->code_addr + w->header->free_entry_off, 0);
	put_moved(e, w);
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
	static const char *const ends[] = { "malloc", "calloc", "_Znwm", "_Znam" };
	size_t len = strlen(s->symbol);

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t end_len = strlen(ends[i]);

		if (len >= end_len && !strcmp(s->symbol + len - end_len, ends[i]))
			return true;
	}
	return false;
}

enum tap_use tap_use_of(const struct alloc_site *s, struct err *why)
{
	const bool can_throw = throws(s) && !s->nothrow_vaddr;
	const uint8_t op = s->row->op;

	if (s->tap.vaddr && !can_throw)
		return TAP_USE_WHOLE;
	if (!s->tap.vaddr && may_be_left_out(s))
		return TAP_USE_INSIDE;
	if (can_throw)
		err_set(why, -ENOTSUP, "%s may throw, and has no form that returns NULL instead",
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
	return s->row->op == HT_OP_ALLOC && !s->may_nest && s->row->count_arg == HT_ARG_NONE &&
	       s->row->ret == HT_RET_VALUE;
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
		       "%zu entry points are more than the %d that there is room for", cnt,
		       TAP_SITES_CAP);
}

static void add_patch(struct tap_header *h, uint64_t addr, const uint8_t *original,
		      const uint8_t *patched, uint8_t byte_cnt)
{
	struct tap_patch *p = &h->patch[h->patch_cnt++];

	*p = (struct tap_patch){ .addr = addr, .byte_cnt = byte_cnt };
	memcpy(p->original, original, byte_cnt);
	memcpy(p->patched, patched, byte_cnt);
}

/* Add the jump to the way in. If it goes over a gap, the long jump there is the first patch. */
static int add_patches(struct tap_header *h, const struct tap_spot *s, uint64_t bias,
		       uint64_t way_addr)
{
	const uint64_t addr = s->vaddr + bias, gap_addr = s->gap_vaddr + bias;
	const uint64_t long_addr = s->gap_vaddr ? gap_addr : addr;
	int64_t off = (int64_t)(way_addr - (long_addr + TAP_LONG_JUMP_BYTES));
	uint8_t jump[TAP_LONG_JUMP_BYTES] = { 0xe9 }, hop[TAP_SHORT_JUMP_BYTES] = { 0xeb };
	int32_t off32 = (int32_t)off;

	if (off != off32)
		return -ERANGE;
	memcpy(jump + 1, &off32, 4);
	add_patch(h, long_addr, s->gap_vaddr ? s->gap : s->insn, jump, sizeof(jump));
	if (!s->gap_vaddr)
		return 0;
	hop[1] = (uint8_t)(gap_addr - (addr + TAP_SHORT_JUMP_BYTES));
	add_patch(h, addr, s->insn, hop, sizeof(hop));
	return 0;
}

static int add_site(struct emit *e, struct tap_header *h, const struct tap_code_request *req,
		    const struct alloc_site *s, bool frees_only)
{
	const struct alloc_row *row = s->row;
	const struct way w = { s, req->bias, h, h->data_addr, h->site_cnt };
	struct tap_site *site = &h->site[h->site_cnt++];
	uint64_t way_addr;

	*site = (struct tap_site){
		.real_addr = (throws(s) ? s->nothrow_vaddr : s->fn_vaddr) + req->bias,
		.entry_addr = s->fn_vaddr + req->bias,
		.op = row->op,
		.size_arg = row->size_arg,
		.count_arg = row->count_arg,
		.ptr_arg = row->ptr_arg,
		.ret = row->ret,
		.flags = (uint8_t)((counts(s) ? TAP_SITE_COUNTS : 0) |
				   (throws(s) ? TAP_SITE_THROWS : 0)),
	};
	e->at = (e->at + 15) & ~15ULL;
	way_addr = here(e);
	if (row->op == HT_OP_FREE || frees_only)
		put_free_way(e, &w);
	else
		put_alloc_way(e, &w, counts(s));
	return e->err ? e->err : add_patches(h, &s->tap, req->bias, way_addr);
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
			err = add_site(&e, h, req, s, use == TAP_USE_FREES);
		if (err)
			break;
	}
	ret->byte_cnt = e.at;
	if (err)
		err_set(why, err, "%s",
			err == -ERANGE ? "the free memory is too far from the allocator" :
					 "the code does not fit");
	return err;
}
