/* SPDX-License-Identifier: MIT */
/*
 * allocators.c - the entry points that one file defines, where to probe each, and the allocator's own code around them.
 *
 * Which names count. A file is an allocator when it defines, under one prefix, a function that allocates and one that
 * frees. Prefixes are those of the table, and those that the file itself uses for a family. operator
 * new and delete count only beside such functions: libstdc++ defines them on top of malloc, and probing both would cost
 * two traps a call. The loader's private malloc is left alone. Aliases are one site.
 *
 * Which of them are probed. A function that only jumps to another entry point is not: the jump leaves the caller's
 * return address in place, so the inner probe sees the right caller (jemalloc's operator delete, gperftools' valloc,
 * mimalloc's realloc, glibc's reallocarray, musl's memalign). A function that *calls* another is (posix_memalign,
 * jemalloc's aligned operator new), and the inner call is recognised as nested by its return address. Exception:
 * operator new in a program that also holds malloc (a static C++ program). There the inner probe alone is enough, and
 * operator new is shown as an allocator frame.
 *
 * Which calls are nested. Those that are made while another one is open: a probed function that allocates is on the
 * stack (track/files.c has its code marked), or it has jumped on and is followed to its return (HT_SITE_TAIL_CALLS). A
 * library in front of the allocator may do both, through pointers from dlsym() (alloc_tail.may_leave). Where neither
 * shows it, the return address does, in `inner`:
 *   the functions of an allocator that its entry points jump to and that call entry points;
 *   of a library that is nothing but an allocator, by its name: all its code, except exported functions that
 *     are no entry points and call one (mimalloc's realpath): their result belongs to their caller.
 * Any other code in a file with an allocator is a caller as any: strdup and fopen of libc, the rest of a
 * program, of a library like Arrow's, of a module in Rust.
 *
 * What the disassembly showed, Debian 12, x86-64, and what it is used for:
 *   glibc 2.36: realloc jumps to malloc when p is NULL (HT_SITE_NULL_DELEGATES). memalign,
 *     aligned_alloc, valloc and pvalloc jump to _mid_memalign, which jumps to malloc for small
 *     alignments (HT_SITE_TAIL_CALLS). posix_memalign calls _mid_memalign: nested by address.
 *     calloc, free and the rest use internal functions only.
 *   musl 1.2.3: malloc, free and realloc are jumps to local functions, and realloc uses those;
 *     calloc calls malloc, and posix_memalign calls aligned_alloc, through the PLT: nested by address.
 *   jemalloc 5.3: entry points use internal functions only; C++ ones jump to free and sdallocx,
 *     the aligned operator new calls aligned_alloc.
 *   gperftools 2.10: posix_memalign calls tc_memalign; valloc and pvalloc jump to it.
 *   mimalloc 2.0.9: most entry points fetch the thread's heap and jump to the mi_heap_ function.
 * Sanitizers allocate in functions of their own.
 *
 * Not seen: an allocator whose symbols are stripped (alloc_unseen.c names it); one that is inlined into its callers (a
 * program linked as a whole with it: alloc_inlined.c; and mimalloc's own mi_strdup).
 */
#include "alloc/allocators.h"

#include <elf.h>

#include "alloc/allocators_priv.h"
#include "alloc/placement_priv.h"
#include "elf/elf_file.h"
#include "heaptap/abi.h"

/*
 * A function of jemalloc that has no name, found by what its code does.
 *
 * A stripped Rust program exports malloc and free of its jemalloc, and frees by sdallocx(p, size, flags), which has no
 * name. What free() does when all goes well, it does as well (jemalloc 5.2 and 5.3): it puts its first argument on the
 * thread's stack of free blocks,
 *	mov %rdi,-8(%r9)
 * and then stores the sum of freed bytes, which is at a fixed place of the thread's data:
 *	mov %r11,%fs:0x348(%r8)
 * No function stores at this place but those that free: so one that stores there, after it has put its first argument
 * on a stack, frees that argument. It is told from copies of free() by the comparison of its second argument with the
 * largest size that has a fast way (4096).
 *
 * Searched is the code behind free(), as far as one object file reaches.
 */

/* Functions that free a block of a known size, as sdallocx() does; more than these are not looked for. */
#define ALLOC_SHAPE_CAP 4
struct alloc_shape {
	uint64_t vaddr[ALLOC_SHAPE_CAP], bytes[ALLOC_SHAPE_CAP];
	size_t cnt;
	bool is_free; /* free() itself has that shape */
};

#define SEARCH_BYTES (64 << 10)
#define LOOKED_AT_BYTES 512 /* of a function */
#define FAST_SIZE_BYTES 4096
#define RSI 6
#define RDI 7

struct shape {
	uint32_t holders; /* bit n: register n holds the first argument */
	bool has_pushed; /* the first argument was put on a stack */
	bool compares_size;
	bool is_freed; /* stored at freed_disp after that */
	int64_t freed_disp; /* of the last store into the thread's data */
};

static bool holds_arg(const struct shape *sh, const cs_x86_op *op)
{
	int reg = op->type == X86_OP_REG && op->size == 8 ? insn_reg_number(op->reg) : -1;

	return reg >= 0 && sh->holders >> reg & 1;
}

/* A register is overwritten; by the first argument, if `from` holds that. */
static void look_at_target(const cs_insn *in, const cs_x86_op *from, int to, struct shape *sh)
{
	bool is_copy = in->id == X86_INS_MOV && holds_arg(sh, from);

	if (to < 0 || in->id == X86_INS_CMP || in->id == X86_INS_TEST)
		return;
	sh->holders &= ~(1U << to);
	sh->holders |= (uint32_t)is_copy << to;
}

/* Operands are in AT&T's order. */
static void look_at(const cs_insn *in, int64_t want_disp, struct shape *sh)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *from = &x->operands[0],
			*to = &x->operands[x->op_count ? x->op_count - 1 : 0];
	int reg = to->type == X86_OP_REG ? insn_reg_number(to->reg) : -1;
	bool is_store = in->id == X86_INS_MOV && x->op_count == 2 && from->type == X86_OP_REG &&
			to->type == X86_OP_MEM;

	if (in->id == X86_INS_CMP && from->type == X86_OP_IMM && from->imm == FAST_SIZE_BYTES &&
	    reg == RSI)
		sh->compares_size = true;
	if (x->op_count)
		look_at_target(in, from, reg, sh);
	if (!is_store || from->size != 8)
		return;
	if (to->mem.segment == X86_REG_INVALID && to->mem.disp == -8)
		sh->has_pushed |= holds_arg(sh, from);
	if (to->mem.segment != X86_REG_FS || !sh->has_pushed)
		return;
	sh->freed_disp = to->mem.disp;
	sh->is_freed |= to->mem.disp == want_disp;
}

static int read_shape(const struct elf_file *ef, uint64_t vaddr, uint64_t bytes, int64_t want_disp,
		      struct shape *ret)
{
	struct code code;
	const uint8_t *p;
	cs_insn *in;
	csh h;
	int err = code_open(ef, vaddr, bytes < LOOKED_AT_BYTES ? bytes : LOOKED_AT_BYTES, &code);

	*ret = (struct shape){ .holders = 1U << RDI, .freed_disp = INT64_MIN };
	if (!err)
		err = decoder_open(true, &h, &in);
	if (err)
		return err;
	p = code.bytes;
	while (cs_disasm_iter(h, &p, &code.cnt, &code.vaddr, in))
		look_at(in, want_disp, ret);
	decoder_close(h, in);
	return 0;
}

/* free_vaddr: jemalloc's free(). 0 or -ENOMEM. */
static int alloc_shape_find(const struct elf_file *ef, const struct fde_index *fdes,
			    uint64_t free_vaddr, uint64_t free_bytes, struct alloc_shape *ret)
{
	uint64_t at = free_vaddr + free_bytes, start, end;
	struct shape of_free, other;
	int err = read_shape(ef, free_vaddr, free_bytes, INT64_MIN, &of_free);

	ret->cnt = 0;
	ret->is_free = !err && of_free.freed_disp != INT64_MIN;
	if (err || of_free.freed_disp == INT64_MIN)
		return err == -ENOMEM ? err : 0;
	while (at < free_vaddr + SEARCH_BYTES && ret->cnt < ALLOC_SHAPE_CAP &&
	       fde_index_find(fdes, at, &start, &end)) {
		at = end;
		err = read_shape(ef, start, end - start, of_free.freed_disp, &other);
		if (err)
			break;
		if (!other.is_freed || !other.compares_size)
			continue;
		ret->vaddr[ret->cnt] = start;
		ret->bytes[ret->cnt++] = end - start;
	}
	return err == -ENOMEM ? err : 0;
}

/*
 * The entry points.
 */

/* Room for all rows with a few prefixes; a file with more is not a serious allocator. */
#define FOUND_CAP 1024

struct scan {
	struct elf_file *ef;
	const struct elf_symbols *syms;
	const struct alloc_options *opts;
	struct alloc_lookup lookup;
	const struct alloc_family *base; /* of names whose prefix tells no family */
	VEC(struct alloc_found) found;
	struct alloc_calls calls;
	bool is_lib;
	bool is_allocator; /* and nothing else */
	bool is_plain_jemalloc; /* with names for the C functions alone */
	struct alloc_shape shape; /* then: what was found by its shape */
	struct alloc_slow_ways slow;
	uint32_t inlined; /* ALLOC_INLINED_* */
};

struct first_pass {
	struct alloc_prefix_finder pf;
	struct alloc_slow_ways *slow;
};

/* The first of a family's names must be there, and one of the others. */
static const struct {
	const char *suffix;
	bool is_mimalloc;
	uint32_t bit;
} suffixes[] = {
	{ "mallctl", false, 1 },	{ "nallocx", false, 2 },  { "mallocx", false, 4 },
	{ "sdallocx", false, 8 },	{ "mi_malloc", true, 1 }, { "mi_heap_malloc", true, 2 },
	{ "mi_theap_malloc", true, 4 }, { "mi_zalloc", true, 8 },
};

/* A prefix is a word of its own: "duckdb_je_". Those of the table are known. */
static bool is_prefix(const char *name, size_t bytes)
{
	const char *const *known;
	size_t cnt;

	if (!bytes || bytes >= sizeof(((struct alloc_more_prefix *)NULL)->text) ||
	    name[bytes - 1] != '_')
		return false;
	known = alloc_prefixes(&cnt);
	for (size_t i = 0; i < cnt; i++)
		if (strlen(known[i]) == bytes && !strncmp(known[i], name, bytes))
			return false;
	return true;
}

static void note_prefix(struct alloc_prefix_finder *pf, const char *name, size_t bytes,
			size_t suffix)
{
	struct alloc_more_prefix prefix = { .is_mimalloc = suffixes[suffix].is_mimalloc };
	size_t i;

	memcpy(prefix.text, name, bytes);
	for (i = 0; i < pf->cnt; i++)
		if (pf->all[i].prefix.is_mimalloc == prefix.is_mimalloc &&
		    !strcmp(pf->all[i].prefix.text, prefix.text))
			break;
	if (i == ALLOC_CANDIDATES_CAP)
		return;
	if (i == pf->cnt) {
		pf->all[i].prefix = prefix;
		pf->all[i].seen = 0;
		pf->cnt++;
	}
	pf->all[i].seen |= suffixes[suffix].bit;
}

void alloc_prefix_note(struct alloc_prefix_finder *pf, const char *name)
{
	size_t bytes, len;

	/* mangled names are the most, and have no such prefix */
	if (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R'))
		return;
	bytes = strlen(name);
	for (size_t i = 0; i < ARRAY_CNT(suffixes); i++) {
		len = strlen(suffixes[i].suffix);
		if (bytes > len && !strcmp(name + bytes - len, suffixes[i].suffix) &&
		    is_prefix(name, bytes - len))
			note_prefix(pf, name, bytes - len, i);
	}
}

void alloc_prefix_take(const struct alloc_prefix_finder *pf, struct alloc_lookup *lk)
{
	for (size_t i = 0; i < pf->cnt && lk->more_cnt < ALLOC_MORE_PREFIXES_CAP; i++)
		if (pf->all[i].seen & 1 && pf->all[i].seen & ~1U)
			lk->more[lk->more_cnt++] = pf->all[i].prefix;
}

static int note_first(void *ctx, const struct elf_symbol *sym)
{
	struct first_pass *pass = ctx;

	alloc_prefix_note(&pass->pf, sym->name);
	alloc_slow_note(pass->slow, sym);
	return 0;
}

/* Find out by which prefixes of its own the file calls an allocator. */
static int find_prefixes(struct scan *sc)
{
	struct first_pass pass = { .slow = &sc->slow };
	int err = elf_symbols_each(sc->syms, note_first, &pass);

	if (!err)
		alloc_prefix_take(&pass.pf, &sc->lookup);
	return err;
}

static int note_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct scan *sc = ctx;
	const struct alloc_row *row;
	struct alloc_found f;
	size_t prefix;

	if (!sc->base)
		sc->base = alloc_family_by_symbol(sym->name);
	row = alloc_lookup_find(&sc->lookup, sym->name, &prefix);
	if (!row || sc->found.cnt == FOUND_CAP)
		return 0;
	memset(&f, 0, sizeof(f));
	f.row = row;
	f.prefix = prefix;
	f.vaddr = sym->vaddr;
	f.bytes = sym->bytes;
	memcpy(f.symbol, sym->name, strnlen(sym->name, sizeof(f.symbol) - 1));
	return vec_push(&sc->found, f);
}

/* Sort by address, the best name first: plain before prefixed, then in the table's order. */
static int found_cmp(const void *a, const void *b)
{
	const struct alloc_found *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->prefix != y->prefix)
		return x->prefix < y->prefix ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Is it operator new or delete? They are implemented by the allocator itself, or on top of malloc. */
static bool alloc_row_is_cxx(const struct alloc_row *row)
{
	return !strncmp(row->name, "_Zn", 3) || !strncmp(row->name, "_Zd", 3);
}

/* Drop names of prefixes that do not both allocate and free. */
static void drop_incomplete(struct scan *sc)
{
	uint32_t allocs = 0, frees = 0;
	const struct alloc_found *f;
	size_t i, out = 0;

	vec_each(&sc->found, f) {
		if (alloc_row_is_cxx(f->row))
			continue;
		allocs |= (uint32_t)(f->row->op == HT_OP_ALLOC) << f->prefix;
		frees |= (uint32_t)(f->row->op == HT_OP_FREE) << f->prefix;
	}
	for (i = 0; i < sc->found.cnt; i++) {
		f = &sc->found.data[i];
		if ((allocs & frees) >> f->prefix & 1 ||
		    (alloc_row_is_cxx(f->row) && (allocs & frees)))
			sc->found.data[out++] = *f;
	}
	sc->found.cnt = out;
}

static int init_calls(struct alloc_calls *ac, struct elf_file *ef, const struct elf_symbols *syms)
{
	memset(ac, 0, sizeof(*ac));
	ac->ef = ef;
	ac->syms = syms;
	alloc_lookup_init(&ac->lookup);
	fde_index_init(ef, &ac->fdes);
	return plt_names_read(ef, &ac->plt);
}

/* They are sorted by address already. */
static int name_entries(struct scan *sc)
{
	const struct alloc_found *f;

	vec_each(&sc->found, f)
		if (vec_push(&sc->calls.names, (struct alloc_name){ f->vaddr, f->symbol }))
			return -ENOMEM;
	return 0;
}

/* Keep the first name of each address, with the flags of all. Sorted by found_cmp. */
static void merge_aliases(struct scan *sc, struct alloc_founds *ret)
{
	size_t i;

	ret->cnt = 0;
	for (i = 0; i < sc->found.cnt; i++) {
		const struct alloc_found *f = &sc->found.data[i];
		struct alloc_found *last = ret->cnt ? &ret->data[ret->cnt - 1] : NULL;

		if (!last || last->vaddr != f->vaddr) {
			ret->data[ret->cnt] = *f;
			ret->data[ret->cnt].flags = f->row->flags;
			ret->cnt++;
			continue;
		}
		last->flags |= f->row->flags;
		if (f->bytes > last->bytes)
			last->bytes = f->bytes;
	}
}

static const struct alloc_found *entry_at(const struct alloc_founds *all, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < all->cnt; i++)
		if (all->data[i].vaddr == vaddr)
			return &all->data[i];
	return NULL;
}

/* Is the inner function's probe enough for f? The target of f may be a thunk too, but not f itself. */
static bool is_covered(const struct alloc_founds *all, const struct alloc_found *f)
{
	const struct alloc_found *to = f;
	int hops;

	if (f->row->adds_header)
		return false;
	for (hops = 0; hops < 8; hops++) {
		to = entry_at(all, to->tail.thunk_to);
		if (!to || to->row->op != f->row->op)
			return false;
		if (!to->tail.thunk_to)
			return true;
	}
	return false;
}

static bool allocates(const struct alloc_found *f)
{
	return f && f->row->op != HT_OP_FREE;
}

/* Does a function that it jumps to call an entry point? */
static bool tail_calls_entry(const struct alloc_tail *t)
{
	for (int i = 1; i < t->fn_cnt; i++)
		if (t->fn[i].calls_entry)
			return true;
	return false;
}

/* Set the flags that follow from the code, and decide what need not be probed. */
static void judge(const struct scan *sc, struct alloc_founds *all, struct alloc_found *f)
{
	const struct alloc_family *fam = f->family;
	bool is_realloc = f->row->op == HT_OP_REALLOC;
	int i;

	f->is_skipped = is_covered(all, f);
	if (!sc->is_lib && alloc_row_is_cxx(f->row) &&
	    (f->tail.fn[0].calls_entry || f->tail.entry_cnt))
		f->is_skipped = true;
	for (i = 0; i < f->tail.entry_cnt; i++) {
		const struct alloc_found *to = entry_at(all, f->tail.entry[i]);

		if (!allocates(to) || to == f)
			continue;
		if (is_realloc && to->row->op == HT_OP_ALLOC)
			f->flags |= HT_SITE_NULL_DELEGATES;
		else
			f->flags |= HT_SITE_TAIL_CALLS;
	}
	/* Known families: see alloc_inner.c. An unknown wrapper may jump to the function that it wraps, or to one
	 * that calls it. */
	if (fam == alloc_family_unknown() && allocates(f) &&
	    (f->tail.may_leave || tail_calls_entry(&f->tail)))
		f->flags |= HT_SITE_TAIL_CALLS;
	if (is_realloc && fam->zero_frees && !strncmp(f->row->name, "realloc", 7))
		f->flags |= HT_SITE_ZERO_FREES;
}

static int analyse(struct scan *sc, struct alloc_founds *all)
{
	size_t i;
	int err;

	for (i = 0; i < all->cnt; i++) {
		struct alloc_found *f = &all->data[i];

		f->family = alloc_family_by_prefix(&sc->lookup, f->prefix);
		if (!f->family)
			f->family = sc->base;
		if (!f->bytes)
			f->bytes = alloc_calls_function_bytes(&sc->calls, f->vaddr);
		err = alloc_calls_tail(&sc->calls, f->vaddr, f->bytes, f->row->op == HT_OP_FREE,
				       &f->tail);
		if (err)
			return err;
	}
	for (i = 0; i < all->cnt; i++)
		judge(sc, all, &all->data[i]);
	return 0;
}

static uint32_t arg_bit(uint8_t arg)
{
	return arg == HT_ARG_NONE ? 0 : 1U << arg;
}

static uint8_t arg_at(const struct placement *pl, uint8_t arg)
{
	return arg == HT_ARG_NONE ? HT_ARG_NONE : pl->arg_at[arg];
}

static int place(const struct scan *sc, const struct alloc_found *f, struct alloc_site *ret)
{
	const struct alloc_row *row = f->row;
	struct placement_request req = {
		.fn_vaddr = f->vaddr,
		.fn_bytes = f->bytes,
		.arg_mask =
			arg_bit(row->size_arg) | arg_bit(row->count_arg) | arg_bit(row->ptr_arg),
		.needs_entry_sp = row->op != HT_OP_FREE,
		.null_check_ok = row->op == HT_OP_FREE,
		.entry_only = sc->opts->naive,
		.multibyte_nop_ok = sc->opts->multibyte_nop_ok,
	};
	uint32_t flags;
	int err;

	memset(ret, 0, sizeof(*ret));
	ret->row = row;
	memcpy(ret->symbol, f->symbol, sizeof(ret->symbol));
	ret->fn_vaddr = f->vaddr;
	ret->fn_bytes = f->bytes;
	ret->needs_return = row->op != HT_OP_FREE;
	err = placement_find(sc->ef, &req, &ret->placement);
	if (!err)
		err = elf_file_vaddr_to_off(sc->ef, ret->placement.vaddr, &ret->probe_off);
	if (err)
		return err;
	flags = f->flags | (ret->placement.is_emulated ? 0 : HT_SITE_STEPPED);
	ret->cookie = HT_COOKIE(row->op, arg_at(&ret->placement, row->size_arg),
				arg_at(&ret->placement, row->count_arg),
				arg_at(&ret->placement, row->ptr_arg), row->ret, flags);
	return 0;
}

static bool is_of(const struct alloc_found *f, const char *family)
{
	return alloc_family_bit(f->family->name) == alloc_family_bit(family);
}

static int fill_sites(const struct scan *sc, const struct alloc_founds *all, struct alloc_file *af)
{
	const struct alloc_found *f;
	struct alloc_site site;
	int err;

	af->family = sc->base->name;
	if (sc->is_plain_jemalloc)
		af->plain = sc->shape.cnt ? ALLOC_PLAIN_FREED : ALLOC_PLAIN_LEAKS;
	if (sc->inlined)
		af->inlined = strstr(sc->slow.way[0].name, "je_") ? "jemalloc" : "mimalloc";
	vec_each(all, f) {
		if (sc->inlined & ALLOC_INLINED_FREES && is_of(f, af->inlined))
			continue;
		af->family_bits |= alloc_family_bit(f->family->name);
		if (f->is_skipped)
			continue;
		err = place(sc, f, &site);
		if (err == -ENOENT || err == -EFBIG)
			continue; /* a symbol without code, or with too much of it */
		if (err)
			return err;
		if (vec_push(&af->sites, site))
			return -ENOMEM;
		/* The prefix tells the family although the rest of the file does not. */
		if (alloc_family_by_prefix(&sc->lookup, f->prefix) &&
		    sc->base == alloc_family_unknown())
			af->family = f->family->name;
	}
	return af->sites.cnt || af->inlined ? 0 : -ENOENT;
}

/* Programs, static ones included, have a flag; libraries have a soname or no interpreter. */
static bool is_library(const struct elf_file *ef)
{
	uint64_t flags;

	if (elf_file_ehdr(ef)->e_type != ET_DYN)
		return false;
	if (!elf_file_dynamic(ef, DT_FLAGS_1, &flags) && (flags & DF_1_PIE))
		return false;
	return elf_file_soname(ef) || !elf_file_interp(ef);
}

static const struct alloc_found *find_plain(const struct scan *sc, const char *name)
{
	const struct alloc_found *f;

	vec_each(&sc->found, f)
		if (!strcmp(f->symbol, name))
			return f;
	return NULL;
}

/* In a stripped program with a jemalloc of which only malloc, free and the like have names, find the function without a
 * name that frees. */
static int find_nameless(struct scan *sc)
{
	const struct alloc_found *plain = find_plain(sc, "free");
	struct alloc_found f = { 0 };
	const char *contents;
	uint64_t bytes;
	int err;

	if (sc->base || !plain || !find_plain(sc, "malloc"))
		return 0;
	contents = alloc_contents(sc->ef, 0);
	if (!contents || strcmp(contents, "jemalloc") != 0)
		return 0;
	sc->is_plain_jemalloc = true;
	bytes = alloc_calls_function_bytes(&sc->calls, plain->vaddr);
	err = alloc_shape_find(sc->ef, &sc->calls.fdes, plain->vaddr, bytes, &sc->shape);
	if (sc->shape.is_free)
		sc->base = alloc_family_by_symbol("mallctl");
	f.row = alloc_lookup_find(&sc->lookup, "sdallocx", &f.prefix);
	memcpy(f.symbol, "sdallocx", sizeof("sdallocx"));
	for (size_t i = 0; i < sc->shape.cnt && !err; i++) {
		f.vaddr = sc->shape.vaddr[i];
		f.bytes = sc->shape.bytes[i];
		err = vec_push(&sc->found, f);
	}
	return err;
}

static int scan_file(struct scan *sc, struct alloc_file *af)
{
	struct alloc_founds all = { 0 };
	int err = find_prefixes(sc);

	if (!err)
		err = elf_symbols_each(sc->syms, note_symbol, sc);
	if (err)
		return err;
	drop_incomplete(sc);
	if (!sc->found.cnt)
		return -ENOENT;
	err = init_calls(&sc->calls, sc->ef, sc->syms);
	if (!err)
		err = find_nameless(sc);
	if (!sc->base)
		sc->base = alloc_family_unknown();
	qsort(sc->found.data, sc->found.cnt, sizeof(struct alloc_found), found_cmp);
	if (!err)
		err = name_entries(sc);
	if (err)
		return err;
	all.data = calloc(sc->found.cnt, sizeof(*all.data));
	if (!all.data)
		return -ENOMEM;
	merge_aliases(sc, &all);
	err = analyse(sc, &all);
	if (!err && !sc->is_allocator && sc->slow.cnt)
		sc->inlined = alloc_inlined_find(sc->ef, &sc->calls.plt, &sc->slow);
	if (!err)
		err = fill_sites(sc, &all, af);
	if (!err)
		err = alloc_taps_find(&sc->calls, &sc->lookup, sc->is_lib,
				      sc->opts->multibyte_nop_ok, &all, af);
	if (!err)
		err = alloc_inner_find(&sc->calls, sc->ef, sc->is_allocator, &all, &af->inner);
	free(all.data);
	return err;
}

bool alloc_is_loader(const char *soname)
{
	return soname && (!strncmp(soname, "ld-linux", 8) || !strncmp(soname, "ld64.so", 7));
}

int alloc_file_scan(struct elf_file *ef, const struct elf_symbols *syms,
		    const struct alloc_options *opts, struct alloc_file **ret)
{
	struct scan sc = { .ef = ef, .syms = syms, .opts = opts };
	struct alloc_file *af;
	int err;

	if (!elf_file_is_64(ef) || alloc_is_loader(elf_file_soname(ef)))
		return -ENOENT;
	af = calloc(1, sizeof(*af));
	if (!af)
		return -ENOMEM;
	alloc_lookup_init(&sc.lookup);
	sc.base = alloc_family_by_soname(elf_file_soname(ef));
	sc.is_allocator = sc.base && !sc.base->is_libc;
	sc.is_lib = is_library(ef);
	err = scan_file(&sc, af);
	plt_names_release(&sc.calls.plt);
	vec_release(&sc.calls.names);
	vec_release(&sc.found);
	if (err)
		alloc_file_free(af);
	else
		*ret = af;
	return err;
}

void alloc_file_free(struct alloc_file *af)
{
	if (!af)
		return;
	vec_release(&af->sites);
	vec_release(&af->inner);
	free(af);
}

bool alloc_site_is_left_alone(const struct alloc_site *site, const struct alloc_options *opts,
			      bool has_session)
{
	return (HT_COOKIE_FLAGS(site->cookie) & HT_SITE_THROWS) && !opts->probe_throwing &&
	       !has_session;
}
