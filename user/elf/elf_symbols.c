/* SPDX-License-Identifier: MIT */
/*
 * elf_symbols.c - address -> symbol, in a sorted array.
 *
 * Loading only finds the symbol tables: an attach looks through the names of hundreds of files once (elf_symbols_each)
 * and never asks for an address. The first lookup of an address sorts the file's code symbols: 16-byte keys by radix,
 * then a linear pass that keeps one symbol per address. Each lookup is a binary search. A gap between two symbols of
 * known size belongs to neither (a stripped library's private functions are not part of the exported one before them).
 *
 * Names point into the files; only names that must be edited (version suffix, "@plt") are copied.
 */
#include "elf/elf_symbols.h"

#include <lzma.h>

#include "elf/elf_budget.h"
#include "elf/elf_file.h"

/*
 * Names that a file exports or imports.
 */

static void note(const GElf_Sym *sym, struct dynamic_symbol *s)
{
	if (sym->st_shndx == SHN_UNDEF) {
		s->is_wanted = true;
		return;
	}
	s->is_defined = true;
	s->vaddr = sym->st_value;
}

void dynamic_symbols_find(struct elf_file *ef, struct dynamic_symbol *symbols, unsigned cnt)
{
	struct elf_symtab t;
	GElf_Sym sym;

	for (unsigned i = 0; i < cnt; i++)
		symbols[i] = (struct dynamic_symbol){ .name = symbols[i].name };
	if (!elf_file_symtab(ef, SHT_DYNSYM, &t))
		return;
	for (size_t at = 0; at < t.cnt; at++) {
		const char *name = elf_symtab_get(&t, at, &sym);

		for (unsigned i = 0; name && i < cnt; i++)
			if (!strcmp(name, symbols[i].name))
				note(&sym, &symbols[i]);
	}
}

/*
 * .gnu_debugdata.
 */

/* Memory for the decoder's own tables; xz -9 needs 65 MiB. */
#define XZ_MEMORY_BYTES (128ULL << 20)

static int xz_error(lzma_ret rc)
{
	if (rc == LZMA_MEM_ERROR)
		return -ENOMEM;
	return rc == LZMA_MEMLIMIT_ERROR ? -EFBIG : -ENOEXEC;
}

/* Unpack an .xz stream to at most cap_bytes; its size is found while unpacking. *ret is malloc'ed. -EFBIG, -ENOMEM. */
static int decompress_xz(const uint8_t *in, size_t in_bytes, uint64_t cap_bytes, uint8_t **ret,
			 size_t *ret_bytes)
{
	lzma_stream z = LZMA_STREAM_INIT;
	uint8_t *out = NULL, *p;
	size_t cap = 0;
	lzma_ret rc;
	int err;

	rc = lzma_stream_decoder(&z, XZ_MEMORY_BYTES, LZMA_CONCATENATED);
	if (rc != LZMA_OK)
		return xz_error(rc);
	z.next_in = in;
	z.avail_in = in_bytes;
	do {
		if (z.total_out == cap) {
			cap = cap ? cap * 2 : 64 * 1024;
			if (z.total_out >= cap_bytes) {
				err = -EFBIG;
				goto out;
			}
			if (cap > cap_bytes)
				cap = cap_bytes;
			p = realloc(out, cap);
			if (!p) {
				err = -ENOMEM;
				goto out;
			}
			out = p;
		}
		z.next_out = out + z.total_out;
		z.avail_out = cap - z.total_out;
		rc = lzma_code(&z, LZMA_FINISH);
	} while (rc == LZMA_OK);
	if (rc != LZMA_STREAM_END) {
		err = xz_error(rc);
		goto out;
	}
	*ret = out;
	*ret_bytes = z.total_out;
	out = NULL;
	err = 0;
out:
	lzma_end(&z);
	free(out);
	return err;
}

/*
 * The symbols of a file.
 */

#define TABLES_CAP 6 /* two of the file, its .gnu_debugdata and its debug file */
#define NAME_BYTES_CAP 65536
#define NAME_BYTES_PER_STEP 64
/* Decompressed .gnu_debugdata; Fedora's largest are a few MiB. */
#define MINI_DEBUG_BYTES_CAP (256ULL << 20)
/* At most this many symbols may nest over an address (a hand-written entry inside a function). */
#define NESTED_CAP 16
#define COPY_BYTES 48 /* of a copied name, besides its characters */
/* Steps for a symbol that is passed to a caller, who compares its name with the one wanted. */
#define STEPS_EACH 4

struct symtab {
	struct elf_symtab t;
	bool is_dynamic;
};

/* Made when an address is first looked up. */
struct index {
	bool is_built;
	struct elf_symbol *syms;
	size_t cnt;
	VEC(char *) copies; /* of names */
};

struct elf_symbols {
	struct elf_file *ef;
	struct elf_file *mini; /* .gnu_debugdata, owned */
	struct symtab tables[TABLES_CAP];
	size_t table_cnt;
	struct index *index;
};

struct key {
	uint64_t vaddr;
	uint32_t sym;
	uint32_t table;
};

static void add_tables(struct elf_symbols *s, const struct elf_file *ef)
{
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };

	for (size_t i = 0; i < 2; i++) {
		struct symtab *table = &s->tables[s->table_cnt];

		table->is_dynamic = types[i] == SHT_DYNSYM;
		s->table_cnt += elf_file_symtab(ef, types[i], &table->t);
	}
}

/* Unpack .gnu_debugdata. Its size is known only afterwards. */
static int unpack_mini_debug(const struct elf_file *ef, const struct elf_section *sec,
			     uint8_t **ret, size_t *ret_bytes)
{
	const struct elf_budget *budget = elf_file_budget(ef);
	/* half of the rest: the image is another copy */
	uint64_t room = (budget->bytes_cap - budget->bytes) / 2;
	int err = decompress_xz(sec->data, sec->bytes,
				room < MINI_DEBUG_BYTES_CAP ? room : MINI_DEBUG_BYTES_CAP, ret,
				ret_bytes);

	if (err == -EFBIG)
		elf_file_fill(ef, UINT64_MAX);
	else if (!err)
		elf_file_fill(ef, 2 * *ret_bytes);
	return err;
}

static int add_mini_debug(struct elf_symbols *s)
{
	struct elf_section sec;
	uint8_t *image;
	size_t bytes;
	int err;

	if (elf_file_section(s->ef, ".gnu_debugdata", &sec))
		return 0;
	err = unpack_mini_debug(s->ef, &sec, &image, &bytes);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = elf_file_open_part(s->ef, image, bytes, &s->mini);
	free(image);
	if (err)
		return err == -ENOMEM ? err : 0;
	add_tables(s, s->mini);
	return 0;
}

int elf_symbols_load(struct elf_file *ef, struct elf_file *debug, struct elf_symbols **ret)
{
	struct elf_symbols *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return -ENOMEM;
	s->ef = ef;
	s->index = calloc(1, sizeof(*s->index));
	if (!s->index)
		goto out;
	add_tables(s, ef);
	err = add_mini_debug(s);
	if (err)
		goto out;
	if (debug)
		add_tables(s, debug);
	*ret = s;
	return 0;
out:
	elf_symbols_free(s);
	return err;
}

void elf_symbols_free(struct elf_symbols *s)
{
	char **b;

	if (!s)
		return;
	if (s->index) {
		vec_each(&s->index->copies, b)
			free(*b);
		vec_release(&s->index->copies);
		free(s->index->syms);
		free(s->index);
	}
	elf_file_close(s->mini);
	free(s);
}

/* Copy the first len bytes of name, then suffix. NULL: out of memory. */
static const char *copy_name(struct index *ix, const char *name, size_t len, const char *suffix)
{
	char *p = NULL;

	if (vec_reserve(&ix->copies, ix->copies.cnt + 1) ||
	    asprintf(&p, "%.*s%s", (int)len, name, suffix) < 0)
		return NULL;
	ix->copies.data[ix->copies.cnt++] = p;
	return p;
}

/* Length without version. Names may overlap: reading one costs steps. */
static size_t bare_length(const struct elf_file *ef, const char *name)
{
	size_t len = strnlen(name, NAME_BYTES_CAP);
	const char *at = len ? memchr(name + 1, '@', len - 1) : NULL;

	elf_file_step(ef, len / NAME_BYTES_PER_STEP);
	return at ? (size_t)(at - name) : len;
}

static bool is_function(const GElf_Sym *sym)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

/* Does the symbol name code? */
static bool is_code(const GElf_Sym *sym, const char *name, const struct elf_file *ef)
{
	const struct elf_segment *seg;

	if (!name || sym->st_shndx == SHN_UNDEF ||
	    (!is_function(sym) && GELF_ST_TYPE(sym->st_info) != STT_NOTYPE))
		return false;
	/* Mapping symbols of arm64 mark where code and data begin; they name nothing. */
	if (name[0] == '$' && elf_file_ehdr(ef)->e_machine == EM_AARCH64)
		return false;
	seg = elf_file_segment_at(ef, sym->st_value);
	return seg && seg->is_exec;
}

/* Sort by vaddr, stable; scratch has room for cnt. The result is in keys. */
static void sort_keys(struct key *keys, struct key *scratch, size_t cnt)
{
	enum { BITS = 11, BUCKETS = 1 << BITS };
	size_t count[BUCKETS], i, sum;
	uint64_t differ = 0;
	struct key *from = keys, *to = scratch, *t;
	int shift;

	for (i = 1; i < cnt; i++)
		differ |= keys[i].vaddr ^ keys[0].vaddr;
	for (shift = 0; shift < 64; shift += BITS) {
		if (!(differ >> shift & (BUCKETS - 1)))
			continue;
		memset(count, 0, sizeof(count));
		for (i = 0; i < cnt; i++)
			count[from[i].vaddr >> shift & (BUCKETS - 1)]++;
		for (i = 0, sum = 0; i < BUCKETS; i++) {
			size_t c = count[i];

			count[i] = sum;
			sum += c;
		}
		for (i = 0; i < cnt; i++)
			to[count[from[i].vaddr >> shift & (BUCKETS - 1)]++] = from[i];
		t = from;
		from = to;
		to = t;
	}
	if (from != keys)
		memcpy(keys, from, cnt * sizeof(*keys));
}

/* Smaller is better: functions, then global, weak, local. */
static int rank(const GElf_Sym *sym)
{
	int r = is_function(sym) ? 0 : 4;

	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return r;
	case STB_WEAK:
		return r + 1;
	default:
		return r + 2;
	}
}

static bool is_better(const struct elf_file *ef, const GElf_Sym *a, const char *a_name,
		      const GElf_Sym *b, const char *b_name)
{
	size_t a_len, b_len;

	if (rank(a) != rank(b))
		return rank(a) < rank(b);
	a_len = bare_length(ef, a_name);
	b_len = bare_length(ef, b_name);
	if (a_len != b_len)
		return a_len < b_len;
	return strncmp(a_name, b_name, a_len) < 0;
}

/* Collect the keys of all code symbols. *ret has room for twice as many (sorting space). */
static int collect_keys(const struct elf_symbols *s, struct key **ret, size_t *ret_cnt)
{
	size_t cap = 0, cnt = 0, t;
	struct key *keys;
	uint32_t i;

	for (t = 0; t < s->table_cnt; t++)
		cap += s->tables[t].t.cnt;
	if (!elf_file_fill(s->ef, cap * (2 * sizeof(*keys) + sizeof(struct elf_symbol))))
		return -EFBIG;
	keys = malloc(cap ? cap * 2 * sizeof(*keys) : 1);
	if (!keys)
		return -ENOMEM;
	for (t = 0; t < s->table_cnt; t++)
		for (i = 0; i < s->tables[t].t.cnt; i++) {
			GElf_Sym sym;
			const char *name = elf_symtab_get(&s->tables[t].t, i, &sym);

			if (!elf_file_step(s->ef, 2))
				break;
			if (is_code(&sym, name, s->ef))
				keys[cnt++] = (struct key){ sym.st_value, i, (uint32_t)t };
		}
	*ret = keys;
	*ret_cnt = cnt;
	return 0;
}

/* Pick the best of keys[0, cnt), which all have the same address. */
static int pick_symbol(const struct elf_symbols *s, const struct key *keys, size_t cnt,
		       struct elf_symbol *ret, bool *ret_is_function)
{
	const char *best_name;
	GElf_Sym best;
	uint64_t bytes;
	size_t i, len;

	best_name = elf_symtab_get(&s->tables[keys[0].table].t, keys[0].sym, &best);
	bytes = best.st_size;
	for (i = 1; i < cnt && elf_file_step(s->ef, 1); i++) {
		GElf_Sym sym;
		const char *name = elf_symtab_get(&s->tables[keys[i].table].t, keys[i].sym, &sym);

		if (sym.st_size > bytes)
			bytes = sym.st_size;
		if (is_better(s->ef, &sym, name, &best, best_name)) {
			best_name = name;
			best = sym;
		}
	}
	len = bare_length(s->ef, best_name);
	if (best_name[len] && !elf_file_fill(s->ef, COPY_BYTES + len))
		return -EFBIG;
	if (best_name[len])
		best_name = copy_name(s->index, best_name, len, "");
	if (!best_name)
		return -ENOMEM;
	*ret = (struct elf_symbol){ .vaddr = keys[0].vaddr, .bytes = bytes, .name = best_name };
	*ret_is_function = is_function(&best);
	return 0;
}

static int symbol_cmp(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (int)x->is_plt - (int)y->is_plt;
}

static int add_plt(const struct elf_symbols *s, const struct plt_stubs *plt)
{
	struct index *ix = s->index;
	const struct plt_stub *p;
	size_t i, out = 0;

	vec_each(&plt->stubs, p) {
		size_t len = bare_length(s->ef, p->name);
		const char *name;

		if (!elf_file_fill(s->ef, COPY_BYTES + len))
			break;
		name = copy_name(ix, p->name, len, "@plt");
		if (!name)
			return -ENOMEM;
		ix->syms[ix->cnt++] = (struct elf_symbol){
			.vaddr = p->vaddr, .bytes = p->bytes, .name = name, .is_plt = true
		};
	}
	if (!plt->stubs.cnt)
		return 0;
	qsort(ix->syms, ix->cnt, sizeof(*ix->syms), symbol_cmp);
	for (i = 0; i < ix->cnt; i++)
		if (!out || ix->syms[out - 1].vaddr != ix->syms[i].vaddr)
			ix->syms[out++] = ix->syms[i];
	ix->cnt = out;
	return 0;
}

static int build_index(const struct elf_symbols *s)
{
	struct index *ix = s->index;
	struct plt_stubs plt = { 0 };
	struct key *keys = NULL;
	uint64_t function_end = 0;
	size_t cnt, i, run;
	int err;

	err = collect_keys(s, &keys, &cnt);
	if (!err)
		err = plt_names_read(s->ef, &plt);
	if (err)
		goto out;
	sort_keys(keys, keys + cnt, cnt);
	ix->syms = calloc(cnt + plt.stubs.cnt + 1, sizeof(*ix->syms));
	if (!ix->syms) {
		err = -ENOMEM;
		goto out;
	}
	for (i = 0; i < cnt && elf_file_step(s->ef, 1); i += run) {
		struct elf_symbol *sym = &ix->syms[ix->cnt];
		bool is_fn;

		for (run = 1; i + run < cnt && keys[i + run].vaddr == keys[i].vaddr; run++)
			;
		err = pick_symbol(s, keys + i, run, sym, &is_fn);
		if (err == -EFBIG) /* too costly: the symbols until here count */
			break;
		if (err)
			goto out;
		/* A label inside a function would hide the name of the function. */
		if (!is_fn && sym->vaddr < function_end)
			continue;
		if (is_fn && sym->vaddr + sym->bytes > function_end)
			function_end = sym->vaddr + sym->bytes;
		ix->cnt++;
	}
	err = add_plt(s, &plt);
out:
	free(keys);
	plt_names_release(&plt);
	if (err)
		ix->cnt = 0;
	ix->is_built = true;
	return err;
}

const struct elf_symbol *elf_symbols_all(const struct elf_symbols *s, size_t *ret_cnt)
{
	if (!s->index->is_built)
		build_index(s);
	*ret_cnt = s->index->cnt;
	return s->index->syms;
}

/* Does sym cover vaddr >= sym->vaddr? next: the symbol after sym, or NULL. */
static bool covers(const struct elf_symbols *s, const struct elf_symbol *sym,
		   const struct elf_symbol *next, uint64_t vaddr)
{
	const struct elf_segment *seg;

	if (sym->bytes)
		return vaddr - sym->vaddr < sym->bytes;
	if (next && vaddr >= next->vaddr)
		return false;
	seg = elf_file_segment_at(s->ef, sym->vaddr);
	return seg && seg->is_exec && vaddr - seg->vaddr < seg->mem_bytes;
}

const struct elf_symbol *elf_symbols_find(const struct elf_symbols *s, uint64_t vaddr)
{
	const struct elf_symbol *syms;
	size_t cnt, lo, i;

	syms = elf_symbols_all(s, &cnt);
	lo = sorted_find(syms, cnt, sizeof(*syms), sorted_off(syms, vaddr), vaddr, true);
	for (i = lo; i-- > 0 && lo - i <= NESTED_CAP;)
		if (covers(s, &syms[i], i + 1 < cnt ? &syms[i + 1] : NULL, vaddr))
			return &syms[i];
	return NULL;
}

static bool is_preemptible(const GElf_Sym *sym)
{
	return GELF_ST_BIND(sym->st_info) != STB_LOCAL &&
	       GELF_ST_VISIBILITY(sym->st_other) == STV_DEFAULT;
}

int elf_symbols_each(const struct elf_symbols *s,
		     int (*fn)(void *ctx, const struct elf_symbol *sym), void *ctx)
{
	size_t t;
	uint32_t i;
	int rc;

	for (t = 0; t < s->table_cnt; t++)
		for (i = 0; i < s->tables[t].t.cnt; i++) {
			char bare[256];
			GElf_Sym sym;
			const char *name = elf_symtab_get(&s->tables[t].t, i, &sym);
			size_t len;

			if (!elf_file_step(s->ef, STEPS_EACH))
				return 0;
			if (!name || sym.st_shndx == SHN_UNDEF || !is_function(&sym))
				continue;
			len = bare_length(s->ef, name);
			if (name[len]) {
				if (len >= sizeof(bare))
					continue;
				memcpy(bare, name, len);
				bare[len] = '\0';
				name = bare;
			}
			rc = fn(ctx, &(struct elf_symbol){ .vaddr = sym.st_value,
							   .bytes = sym.st_size,
							   .name = name,
							   .is_local = GELF_ST_BIND(sym.st_info) ==
								       STB_LOCAL,
							   .is_exported = s->tables[t].is_dynamic &&
									  is_preemptible(&sym) });
			if (rc)
				return rc;
		}
	return 0;
}
