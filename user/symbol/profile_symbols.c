/* SPDX-License-Identifier: MIT */
/* profile_symbols.c - see profile_symbols.h. */
#include "symbol/profile_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hmap.h"
#include "base/regular_file.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "profile/profile.h"
#include "alloc/allocators.h"

/* A location to look up. */
struct wanted {
	uint64_t vaddr;
	uint32_t location;
};

struct namer {
	struct profile *p;
	const struct symbol_options *opts;
	struct hmap function_by_key;
	VEC(struct wanted) wanted; /* of the mapping at hand */
	size_t named_cnt, missing_cnt;
};

struct function_key {
	int64_t name, system_name, file, start_line;
};

static int get_function(struct namer *n, const struct symbol_frame *f, uint32_t *ret)
{
	struct function_key key = { profile_str(n->p, f->name), profile_str(n->p, f->system_name),
				    profile_str(n->p, f->file), f->start_line };
	struct profile_function fn = { key.name, key.system_name, key.file, key.start_line };
	const uint64_t *known;
	int err;

	if (key.name < 0 || key.system_name < 0 || key.file < 0)
		return -ENOMEM;
	known = hmap_get(&n->function_by_key, &key);
	if (known) {
		*ret = *known;
		return 0;
	}
	err = vec_push(&n->p->functions, fn);
	if (!err)
		err = hmap_put(&n->function_by_key, &key, n->p->functions.cnt - 1);
	if (!err)
		*ret = n->p->functions.cnt - 1;
	return err;
}

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* A mapping from 0 on is in the file's own addresses; others are at run time. */
static int collect_wanted(struct namer *n, uint32_t mapping, const struct elf_file *ef)
{
	const struct profile_mapping *m = &n->p->mappings.data[mapping];

	n->wanted.cnt = 0;
	for (uint32_t i = 0; i < n->p->locations.cnt; i++) {
		const struct profile_location *l = &n->p->locations.data[i];
		struct wanted w = { l->address, i };

		if (l->mapping != mapping || l->line_cnt)
			continue;
		if (m->start &&
		    elf_file_off_to_vaddr(ef, l->address - m->start + m->offset, &w.vaddr))
			continue;
		if (vec_push(&n->wanted, w))
			return -ENOMEM;
	}
	if (n->wanted.cnt)
		qsort(n->wanted.data, n->wanted.cnt, sizeof(*n->wanted.data), compare_wanted);
	return 0;
}

static int add_lines(struct namer *n, const struct symbol_frame *f, size_t cnt, uint32_t *ret_first)
{
	*ret_first = n->p->lines.cnt;
	for (size_t i = 0; i < cnt; i++) {
		struct profile_line line = { .line = f[i].line };
		int err = get_function(n, &f[i], &line.function);

		if (!err)
			err = vec_push(&n->p->lines, line);
		if (err)
			return err;
	}
	return 0;
}

/* Locations of one address share its lines. */
static int name_wanted(struct namer *n, const uint64_t *vaddr, const struct symbol_result *sym)
{
	uint32_t first = 0;

	for (size_t i = 0, k = 0; i < n->wanted.cnt; i++) {
		struct profile_location *l = &n->p->locations.data[n->wanted.data[i].location];
		int err = 0;

		while (vaddr[k] != n->wanted.data[i].vaddr)
			k++;
		if (!i || n->wanted.data[i - 1].vaddr != vaddr[k])
			err = add_lines(n, &sym->frames[sym->first[k]],
					sym->first[k + 1] - sym->first[k], &first);
		if (err)
			return err;
		l->line_first = first;
		l->line_cnt = sym->first[k + 1] - sym->first[k];
	}
	n->named_cnt += n->wanted.cnt;
	return 0;
}

static int look_up(struct namer *n, struct profile_mapping *m, int fd, const char *build_id_hex)
{
	struct symbol_file sf = { .fd = fd, .build_id_hex = build_id_hex, .root = "" };
	uint64_t *vaddr = calloc(n->wanted.cnt, sizeof(*vaddr));
	struct symbol_result *sym = NULL;
	size_t cnt = 0;
	int err;

	if (!vaddr)
		return -ENOMEM;
	sf.name = profile_text(n->p, m->filename_str);
	for (size_t i = 0; i < n->wanted.cnt; i++)
		if (!cnt || vaddr[cnt - 1] != n->wanted.data[i].vaddr)
			vaddr[cnt++] = n->wanted.data[i].vaddr;
	err = symbolize(n->opts, &sf, vaddr, cnt, &sym);
	if (!err) {
		m->has_functions |= sym->has_functions;
		m->has_filenames |= sym->has_lines;
		m->has_line_numbers |= sym->has_lines;
		m->has_inline_frames |= sym->has_inlines;
		err = name_wanted(n, vaddr, sym);
	}
	symbol_result_free(sym);
	free(vaddr);
	return err;
}

static int name_in_file(struct namer *n, uint32_t mapping, int fd, struct elf_file *ef)
{
	struct profile_mapping *m = &n->p->mappings.data[mapping];
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	const char *expected = profile_text(n->p, m->build_id_str);
	int err;

	elf_file_build_id_hex(ef, build_id_hex);
	if (expected[0] && strcmp(expected, build_id_hex) != 0) {
		n->missing_cnt++;
		return 0;
	}
	err = collect_wanted(n, mapping, ef);
	return err || !n->wanted.cnt ? err : look_up(n, m, fd, build_id_hex);
}

static int name_mapping(struct namer *n, uint32_t mapping)
{
	const char *path = profile_text(n->p, n->p->mappings.data[mapping].filename_str);
	struct elf_file *ef = NULL;
	int fd, err = 0;

	if (path[0] != '/') /* [vdso], or a file that nobody knows the place of */
		return 0;
	fd = regular_file_open(path); /* from somebody's dump: it may be a device */
	if (fd < 0 || elf_file_open_fd(fd, &ef))
		n->missing_cnt++;
	else
		err = name_in_file(n, mapping, fd, ef);
	elf_file_close(ef);
	if (fd >= 0)
		close(fd);
	return err;
}

/* A function that hands allocations on, or the allocator's profiler. */
static bool is_allocator_name(const char *name)
{
	static const char *const profiler[] = { "je_prof_", "prof_backtrace_impl",
						"je_malloc_default", "tcmalloc::" };

	for (size_t i = 0; i < sizeof(profiler) / sizeof(*profiler); i++)
		if (!strncmp(name, profiler[i], strlen(profiler[i])))
			return true;
	return alloc_is_allocator_frame(name);
}

/* Code of its library may have no name, or that of some function before it. */
static bool is_allocator_library(const struct profile *p, const struct profile_location *l)
{
	const char *file, *slash;

	if (l->mapping == HT_NO_INDEX)
		return false;
	file = profile_text(p, p->mappings.data[l->mapping].filename_str);
	slash = strrchr(file, '/');
	file = slash ? slash + 1 : file;
	return !strncmp(file, "libjemalloc", 11) || !strncmp(file, "libtcmalloc", 11);
}

/* How many lines of a location, from the innermost, are the allocator's. */
static uint32_t allocator_lines(const struct profile *p, const struct profile_location *l)
{
	uint32_t n = 0;

	if (is_allocator_library(p, l))
		return l->line_cnt;
	while (n < l->line_cnt) {
		const struct profile_line *line = &p->lines.data[l->line_first + n];

		if (!is_allocator_name(profile_text(p, p->functions.data[line->function].name_str)))
			break;
		n++;
	}
	return n;
}

/* The leaf of a stack, without the allocator's functions that were inlined into it. trimmed: by
 * location, the index + 1 of the one that is without, once it is made. */
static int trim_leaf(struct profile *p, uint32_t *loc, uint32_t *trimmed)
{
	struct profile_location l = p->locations.data[*loc];
	uint32_t own = allocator_lines(p, &l);

	if (!own || own == l.line_cnt)
		return 0;
	if (!trimmed[*loc]) {
		l.line_first += own;
		l.line_cnt -= own;
		if (vec_push(&p->locations, l))
			return -ENOMEM;
		trimmed[*loc] = p->locations.cnt;
	}
	*loc = trimmed[*loc] - 1;
	return 0;
}

/* A stack that is the allocator's only stays whole. */
static int trim_allocator(struct profile *p)
{
	uint32_t *trimmed = calloc(p->locations.cnt + 1, sizeof(*trimmed));
	struct profile_sample *s;
	int err = 0;

	if (!trimmed)
		return -ENOMEM;
	vec_each(&p->samples, s) {
		uint32_t *loc = p->sample_locs.data + s->loc_first, own = 0;

		for (; own < s->loc_cnt; own++) {
			const struct profile_location *l = &p->locations.data[loc[own]];

			if (allocator_lines(p, l) < l->line_cnt ||
			    (!l->line_cnt && !is_allocator_library(p, l)))
				break;
		}
		if (own == s->loc_cnt)
			continue;
		s->loc_first += own;
		s->loc_cnt -= own;
		err = trim_leaf(p, loc + own, trimmed);
		if (err)
			break;
	}
	free(trimmed);
	return err;
}

int profile_symbolize(struct profile *p, const struct symbol_options *opts, size_t *ret_missing)
{
	struct namer n = { .p = p, .opts = opts };
	bool *wants = calloc(p->mappings.cnt + 1, sizeof(*wants));
	const struct profile_location *l;
	int err = 0;

	if (!wants)
		return -ENOMEM;
	vec_each(&p->locations, l)
		if (l->mapping != HT_NO_INDEX && !l->line_cnt)
			wants[l->mapping] = true;
	hmap_init(&n.function_by_key, sizeof(struct function_key));
	for (uint32_t i = 0; i < p->mappings.cnt && !err; i++)
		if (wants[i])
			err = name_mapping(&n, i);
	if (!err && n.named_cnt)
		err = trim_allocator(p);
	if (!err && ret_missing)
		*ret_missing = n.missing_cnt;
	hmap_release(&n.function_by_key);
	vec_release(&n.wanted);
	free(wants);
	return err;
}
