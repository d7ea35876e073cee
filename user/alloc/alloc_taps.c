/* SPDX-License-Identifier: MIT */
/*
 * alloc_taps.c - see allocators_priv.h.
 *
 * Which registers are free. At the entry of a function that another file may call, or replace, r10 and r11 hold nothing
 * that is needed. A caller in the same file may know better: GCC (-fipa-ra, part of -O2) keeps values in every register
 * that the function does not write. So only exported functions of libraries are said to have free registers, and only
 * if their symbol can be replaced by another file's.
 *
 * Whose block is it. A function that calls another entry point for its block must not be counted as well. Within the
 * file alloc_inner.c sees that. A file of no known family may be a wrapper, whose functions reach the next file's
 * through pointers (dlsym) or by name: everything that they reach within the file is searched, and what cannot be
 * followed counts as reaching one.
 *
 * Functions that throw. Their sampled call is one of plain_functions[], since the tap's code cannot be on the stack
 * when an exception passes, and the form that does not throw calls the program's handler before it returns NULL.
 */
#include <elf.h>

#include "alloc/allocators_priv.h"
#include "base/names.h"
#include "elf/elf_file.h"
#include "heaptap/abi.h"

#define NEAR_BYTES 96 /* more than a spot is away from the entry */
#define REACHED_CAP 64

struct taps {
	const struct alloc_calls *ac;
	const struct alloc_lookup *lookup;
	const struct alloc_founds *all;
	struct alloc_file *af;
	bool is_lib;
	/* By site: */
	uint64_t *next_vaddr; /* the next symbol behind the function's own; 0: none near */
	bool *is_exported;
};

static const struct alloc_found *found_of(const struct taps *t, const struct alloc_site *site)
{
	return vec_get(t->all, vaddr, site->fn_vaddr);
}

/*
 * Symbols.
 */

static int note_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct taps *t = ctx;
	size_t low = vec_first_behind(&t->af->sites, fn_vaddr, sym->vaddr);
	uint64_t off;

	if (!low--)
		return 0;
	off = sym->vaddr - t->af->sites.data[low].fn_vaddr;
	if (!off)
		t->is_exported[low] |= sym->is_exported;
	else if (off < NEAR_BYTES && (!t->next_vaddr[low] || sym->vaddr < t->next_vaddr[low]))
		t->next_vaddr[low] = sym->vaddr;
	return 0;
}

static bool is_bound_to_itself(const struct elf_file *ef)
{
	uint64_t value;

	if (!elf_file_dynamic(ef, DT_SYMBOLIC, &value) ||
	    (!elf_file_dynamic(ef, DT_FLAGS, &value) && (value & DF_SYMBOLIC)))
		return true;
	return !elf_file_dynamic(ef, DT_FLAGS_1, &value) && (value & (DF_1_PIE | DF_1_DIRECT));
}

/*
 * Spots.
 */

static uint32_t arg_bit(uint8_t arg)
{
	return arg == HT_ARG_NONE ? 0 : 1U << arg;
}

/* Where a heaptap puts its probe: it depends on what the kernel can emulate. */
static int find_probes(const struct taps *t, const struct alloc_site *site, bool multibyte_nop_ok,
		       uint64_t *ret)
{
	const struct alloc_row *row = site->row;
	struct placement_request req = {
		.fn_vaddr = site->fn_vaddr,
		.fn_bytes = site->fn_bytes,
		.arg_mask =
			arg_bit(row->size_arg) | arg_bit(row->count_arg) | arg_bit(row->ptr_arg),
		.needs_entry_sp = row->op != HT_OP_FREE,
		.null_check_ok = row->op == HT_OP_FREE,
		.multibyte_nop_ok = !multibyte_nop_ok,
	};
	struct placement other;
	int err = placement_find(t->ac->ef, &req, &other);

	ret[0] = site->placement.vaddr;
	ret[1] = err ? 0 : other.vaddr;
	return err;
}

/* Are its functions that only jump to a local one (musl: malloc, free, realloc) nothing else than that one, whoever
 * calls it? Elsewhere it may be a part of other functions as well. */
static bool has_plain_bodies(const struct alloc_family *family)
{
	return !strcmp(family->name, "musl");
}

static int find_spot(const struct taps *t, size_t i, bool multibyte_nop_ok, struct tap_gaps *gaps)
{
	struct alloc_site *site = &t->af->sites.data[i];
	const struct alloc_found *f = found_of(t, site);
	struct tap_spot_request req = {
		.fn_vaddr = site->fn_vaddr,
		.fn_bytes = site->fn_bytes,
		.arg_mask = arg_bit(site->row->size_arg) | arg_bit(site->row->count_arg) |
			    arg_bit(site->row->ptr_arg),
		.is_free = site->row->op == HT_OP_FREE,
		.follows = f && !f->tail.thunk_to && has_plain_bodies(f->family),
		.next_vaddr = t->next_vaddr[i],
	};
	int err = find_probes(t, site, multibyte_nop_ok, req.probe_vaddr);

	if (!err)
		err = tap_spot_find(t->ac->ef, &t->ac->fdes, t->ac->syms, &req, gaps, &site->tap);
	if (err == -EFBIG || err == -ENOENT) {
		site->tap = (struct tap_spot){ .why = "analysing its file takes too long" };
		err = 0; /* it can still be probed */
	}
	site->tap.uses_scratch |= !t->is_exported[i] || site->tap.fn_vaddr != site->fn_vaddr;
	return err;
}

/* Two functions that only jump to the same one have one spot. */
static void drop_doubles(struct alloc_file *af)
{
	for (size_t i = 0; i < af->sites.cnt; i++) {
		struct alloc_site *site = &af->sites.data[i];

		for (size_t k = 0; k < i && site->tap.vaddr; k++) {
			if (af->sites.data[k].tap.vaddr != site->tap.vaddr)
				continue;
			site->tap = (struct tap_spot){ .why = "its code belongs to another "
							      "function" };
			site->tap_is_inside = true;
		}
	}
}

/*
 * Whose block is it.
 */

/* Imports that give nobody a block. */
static bool is_harmless(const char *name)
{
	static const char *const names[] = {
		"memset",
		"memcpy",
		"memmove",
		"memcmp",
		"__memset_chk",
		"__memcpy_chk",
		"strlen",
		"mmap",
		"mmap64",
		"munmap",
		"mremap",
		"madvise",
		"mprotect",
		"sbrk",
		"brk",
		"syscall",
		"sysconf",
		"getpagesize",
		"sched_yield",
		"pthread_mutex_lock",
		"pthread_mutex_trylock",
		"pthread_mutex_unlock",
		"pthread_spin_lock",
		"pthread_spin_unlock",
		"pthread_self",
		"pthread_getspecific",
		"__tls_get_addr",
		"__errno_location",
		"__stack_chk_fail",
		"abort",
		"write",
	};

	return equals_one_of(name, names, ARRAY_CNT(names));
}

struct reach {
	const struct taps *t;
	struct {
		uint64_t vaddr, bytes;
	} fn[REACHED_CAP];
	size_t cnt;
	struct code_shape shape;
};

/* Add the local function that the branch leads to. false: it cannot be followed. */
static bool reach_local(struct reach *r, uint64_t vaddr)
{
	uint64_t bytes;

	for (size_t i = 0; i < r->cnt; i++)
		if (vaddr - r->fn[i].vaddr < r->fn[i].bytes)
			return true;
	bytes = alloc_calls_function_bytes(r->t->ac, vaddr);
	if (!bytes || r->cnt == REACHED_CAP)
		return false;
	r->fn[r->cnt].vaddr = vaddr;
	r->fn[r->cnt++].bytes = bytes;
	return true;
}

/* Can another file be reached by this branch that would give a block? */
static bool leads_out(struct reach *r, const struct branch_out *br)
{
	const char *import = plt_names_at(&r->t->ac->plt, br->target_vaddr);

	if (import)
		return !is_harmless(import);
	return br->is_slot || !reach_local(r, br->target_vaddr);
}

static int find_forwarding(const struct taps *t, struct alloc_site *site)
{
	struct reach *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->t = t;
	r->fn[r->cnt].vaddr = site->fn_vaddr;
	r->fn[r->cnt++].bytes = site->fn_bytes;
	for (size_t f = 0; f < r->cnt && !site->may_forward; f++) {
		const struct code_shape *sh = &r->shape;

		site->may_forward =
			placement_shape(t->ac->ef, r->fn[f].vaddr, r->fn[f].bytes, &r->shape) ||
			sh->has_indirect || sh->is_cut;
		for (size_t i = 0; i < sh->out_cnt && !site->may_forward; i++)
			site->may_forward = leads_out(r, &sh->out[i]);
	}
	free(r);
	return 0;
}

/* Does a function that this one reaches by jumps call the body of another site, past its entry? */
static int find_bodies(const struct taps *t, const struct alloc_found *f, struct alloc_site *site)
{
	struct code_shape *sh = malloc(sizeof(*sh));
	const struct alloc_site *other;

	if (!sh)
		return -ENOMEM;
	for (int k = 0; k < f->tail.fn_cnt; k++) {
		if (placement_shape(t->ac->ef, f->tail.fn[k].vaddr, f->tail.fn[k].bytes, sh))
			continue;
		for (size_t i = 0; i < sh->out_cnt; i++)
			vec_each(&t->af->sites, other)
				site->may_nest |= other != site && other->tap.vaddr &&
						  other->tap.fn_vaddr != other->fn_vaddr &&
						  other->row->op != HT_OP_FREE &&
						  sh->out[i].target_vaddr == other->tap.fn_vaddr;
	}
	free(sh);
	return 0;
}

static int find_nesting(const struct taps *t, struct alloc_site *site, bool has_bodies)
{
	const struct alloc_found *f = found_of(t, site);
	int err = 0;

	if (!f || site->row->op == HT_OP_FREE)
		return 0;
	for (int i = 0; i < f->tail.fn_cnt; i++)
		site->may_nest |= f->tail.fn[i].calls_entry;
	site->may_nest |= f->tail.entry_cnt != 0 || (f->flags & HT_SITE_TAIL_CALLS);
	if (has_bodies)
		err = find_bodies(t, f, site);
	if (!err && f->family == alloc_family_unknown() && site->row->op == HT_OP_ALLOC)
		err = find_forwarding(t, site);
	return err;
}

/*
 * Functions that throw.
 */

static const struct {
	const char *name; /* a row's; without its prefix */
	const char *plain[2]; /* the first one that the file has */
	bool swaps;
} plain_functions[] = {
	/* tcmalloc's malloc can be told to call the handler as well */
	{ "_Znwm", { "tc_malloc_skip_new_handler", "malloc" }, false },
	{ "_Znam", { "tc_malloc_skip_new_handler", "malloc" }, false },
	{ "_ZnwmSt11align_val_t", { "memalign", "aligned_alloc" }, true },
	{ "_ZnamSt11align_val_t", { "memalign", "aligned_alloc" }, true },
	{ "mi_new", { "malloc" }, false },
	{ "mi_new_n", { "mi_mallocn" }, false },
	{ "mi_new_aligned", { "mi_malloc_aligned" }, false },
	{ "mi_heap_alloc_new", { "mi_heap_malloc" }, false },
	{ "mi_heap_alloc_new_n", { "mi_heap_mallocn" }, false },
	{ "tc_new", { "tc_malloc_skip_new_handler", "malloc" }, false },
	{ "tc_newarray", { "tc_malloc_skip_new_handler", "malloc" }, false },
	{ "tc_new_aligned", { "memalign" }, true },
	{ "tc_newarray_aligned", { "memalign" }, true },
};

/* Does delete of this family take a block of malloc? */
static bool is_mixed(const struct taps *t, const struct alloc_family *family)
{
	const char *soname = elf_file_soname(t->ac->ef);

	/* tcmalloc's debug libraries check by which function a block was made. */
	if (soname && !strncmp(soname, "libtcmalloc", 11) && strstr(soname, "_debug"))
		return false;
	return !strcmp(family->name, "jemalloc") || !strcmp(family->name, "rust-jemalloc") ||
	       !strcmp(family->name, "tcmalloc") || !strcmp(family->name, "mimalloc");
}

/* A function of the same family. A file may have two allocators: what has the family's prefix is its own. */
static uint64_t find_named(const struct taps *t, const struct alloc_family *family,
			   const char *name)
{
	const struct alloc_found *f, *best = NULL;

	for (size_t i = 0; i < t->all->cnt; i++) {
		const struct alloc_family *own;

		f = &t->all->data[i];
		own = alloc_family_by_prefix(t->lookup, f->prefix);
		if (f->family == family && !strcmp(f->row->name, name) &&
		    (own || !strcmp(f->symbol, name)) && (!best || own))
			best = f;
	}
	return best ? best->vaddr : 0;
}

static void find_plain(const struct taps *t, struct alloc_site *site)
{
	const struct alloc_found *f = found_of(t, site);

	if (!f || !(f->flags & HT_SITE_THROWS) || !is_mixed(t, f->family))
		return;
	for (size_t i = 0; i < ARRAY_CNT(plain_functions); i++) {
		if (strcmp(plain_functions[i].name, f->row->name) != 0)
			continue;
		for (size_t k = 0; k < 2 && !site->plain_vaddr && plain_functions[i].plain[k]; k++)
			site->plain_vaddr = find_named(t, f->family, plain_functions[i].plain[k]);
		site->plain_swaps = plain_functions[i].swaps;
	}
}

static int find_all(struct taps *t, bool multibyte_nop_ok)
{
	struct tap_gaps gaps = { 0 };
	struct alloc_site *site;
	bool has_bodies = false;
	int err;

	t->next_vaddr = calloc(t->af->sites.cnt, sizeof(*t->next_vaddr));
	t->is_exported = calloc(t->af->sites.cnt, sizeof(*t->is_exported));
	if (!t->next_vaddr || !t->is_exported)
		return -ENOMEM;
	err = elf_symbols_each(t->ac->syms, note_symbol, t);
	if (!t->is_lib || is_bound_to_itself(t->ac->ef))
		memset(t->is_exported, 0, t->af->sites.cnt * sizeof(*t->is_exported));
	for (size_t i = 0; i < t->af->sites.cnt && !err; i++)
		err = find_spot(t, i, multibyte_nop_ok, &gaps);
	drop_doubles(t->af);
	vec_each(&t->af->sites, site)
		has_bodies |= site->tap.vaddr && site->tap.fn_vaddr != site->fn_vaddr;
	for (size_t i = 0; i < t->af->sites.cnt && !err; i++) {
		err = find_nesting(t, &t->af->sites.data[i], has_bodies);
		find_plain(t, &t->af->sites.data[i]);
	}
	return err;
}

int alloc_taps_find(const struct alloc_calls *ac, const struct alloc_lookup *lookup, bool is_lib,
		    bool multibyte_nop_ok, const struct alloc_founds *all, struct alloc_file *af)
{
	struct taps t = { .ac = ac, .lookup = lookup, .all = all, .af = af, .is_lib = is_lib };
	int err = find_all(&t, multibyte_nop_ok);

	free(t.next_vaddr);
	free(t.is_exported);
	return err;
}
