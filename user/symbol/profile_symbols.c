/* SPDX-License-Identifier: MIT */
/* profile_symbols.c - see symbol.h. */
#include "symbol/symbol.h"

#include "alloc/allocators.h"
#include "base/fd.h"
#include "base/hmap.h"
#include "base/names.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "profile/profile.h"
#include "symbol/debug_files.h"

/*
 * A file of a given build id in a folder of collected files.
 *
 * Tried in turn: the layout of /usr/lib/debug (.build-id/ab/cdef.debug and, for the program itself,
 * .build-id/ab/cdef), also when the folder is the root of a file system; the file's path below the folder; its
 * name alone. Only the build id decides.
 */
enum part { PART_ID, PART_PATH, PART_NAME };

/* Files with names and lines come first. */
static const struct {
	const char *folder;
	enum part part;
	const char *suffix;
} layouts[] = {
	{ "/.build-id/", PART_ID, ".debug" },
	{ "/usr/lib/debug/.build-id/", PART_ID, ".debug" },
	{ "/usr/lib/debug", PART_PATH, ".debug" },
	{ "", PART_PATH, ".debug" },
	{ "/", PART_NAME, ".debug" },
	{ "/.build-id/", PART_ID, "" },
	{ "", PART_PATH, "" },
	{ "/", PART_NAME, "" },
};

/* Is the file at the nth place split-off debug information? Its segments are those of the program in memory,
 * not in the file. */
static bool is_debug_file(unsigned nth)
{
	return nth < ARRAY_CNT(layouts) && layouts[nth].suffix[0];
}

/* It becomes a part of a path, and comes from a profile, which is not trusted. */
static bool is_build_id(const char *text)
{
	size_t len = strlen(text);

	return len > 2 && len <= 2 * BUILD_ID_BYTES_CAP &&
	       text[strspn(text, "0123456789abcdef")] == '\0';
}

/* false for a path that leads out of the folder. */
static bool is_inside(const char *path)
{
	return path[0] == '/' && !strstr(path, "/../") &&
	       (strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/.."));
}

/*
 * Open the nth place (from 0) where the file may be. Returns an fd (O_CLOEXEC), with its path in ret_path
 * (PATH_MAX bytes); -ENOENT: not there, go on with the next; -ERANGE: there are no more places. path: of the
 * file where it was recorded.
 */
static int open_of_build_id(const char *dir, const char *build_id_hex, const char *path,
			    unsigned nth, char *ret_path)
{
	const char *slash = strrchr(path, '/');
	int fd, len, err;

	if (nth >= ARRAY_CNT(layouts))
		return -ERANGE;
	if (!is_build_id(build_id_hex) || (layouts[nth].part != PART_ID && !is_inside(path)))
		return -ENOENT;
	if (layouts[nth].part == PART_ID)
		len = snprintf(ret_path, PATH_MAX, "%s%s%.2s/%s%s", dir, layouts[nth].folder,
			       build_id_hex, build_id_hex + 2, layouts[nth].suffix);
	else
		len = snprintf(ret_path, PATH_MAX, "%s%s%s%s", dir, layouts[nth].folder,
			       layouts[nth].part == PART_PATH ? path : slash + 1,
			       layouts[nth].suffix);
	if (len >= PATH_MAX)
		return -ENOENT;
	fd = regular_file_open(ret_path);
	if (fd < 0)
		return -ENOENT;
	err = build_id_check(fd, build_id_hex);
	if (err)
		close(fd);
	return err ? err : fd;
}

/* A function that passes allocations on, or the allocator's profiler. */
static bool is_allocator_name(const char *name)
{
	static const char *const profiler[] = { "je_prof_", "prof_backtrace_impl",
						"je_malloc_default", "tcmalloc::" };

	return begins_with_one_of(name, profiler, ARRAY_CNT(profiler)) ||
	       alloc_is_allocator_frame(name);
}

/* Code of the allocator's library may have no name, or the name of a function before it. */
static bool is_allocator_library(const struct profile *p, const struct profile_location *l)
{
	const char *file, *slash;

	if (l->mapping == HT_NO_INDEX)
		return false;
	file = profile_text(p, p->mappings.data[l->mapping].filename_str);
	slash = strrchr(file, '/');
	file = slash ? slash + 1 : file;
	return begins(file, "libjemalloc") || begins(file, "libtcmalloc");
}

static const char *line_name(const struct profile *p, uint32_t line)
{
	return profile_text(p, p->functions.data[p->lines.data[line].function].name_str);
}

/* Return how many lines of a location, from the innermost, are the allocator's. */
static uint32_t allocator_lines(const struct profile *p, const struct profile_location *l)
{
	uint32_t n = 0;

	if (is_allocator_library(p, l))
		return l->line_cnt;
	while (n < l->line_cnt) {
		if (!is_allocator_name(line_name(p, l->line_first + n)))
			break;
		n++;
	}
	return n;
}

/* Replace the leaf of a stack by one without the allocator's functions that were inlined into it. trimmed: for
 * each location, the index + 1 of its trimmed copy, once it is made. */
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

/* Remove the allocator's own functions at the leaf end, inlined ones as well. A stack of allocator functions only stays
 * whole. 0 or -ENOMEM. */
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

/* Does it have stacks with them? Then the recording was made to keep them. */
static bool has_allocator_leaf(const struct profile *p)
{
	const struct profile_sample *s;

	vec_each(&p->samples, s) {
		const struct profile_location *leaf;

		if (s->loc_cnt < 2) /* a stack of allocator functions only was left whole */
			continue;
		leaf = &p->locations.data[p->sample_locs.data[s->loc_first]];
		if (leaf->line_cnt && allocator_lines(p, leaf) == leaf->line_cnt)
			return true;
	}
	return false;
}

/* A location to look up. */
struct wanted {
	uint64_t vaddr;
	uint32_t location;
};

struct namer {
	struct profile *p;
	const struct symbol_options *opts;
	bool replaces; /* locations without lines may get better names */
	struct hmap function_by_key;
	VEC(struct wanted) wanted; /* of the current mapping */
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

/* Is it "module+0xvaddr" (symbol.h), so that no name was found? */
static bool is_place(const char *name)
{
	const char *plus = strrchr(name, '+');

	return plus && plus > name && !strncmp(plus, "+0x", 3) && plus[3] &&
	       plus[3 + strspn(plus + 3, "0123456789abcdef")] == '\0';
}

/* Has the location no names? Or, with `replaces`, no lines? */
static bool is_wanted(const struct namer *n, const struct profile_location *l)
{
	if (!n->replaces || !l->line_cnt)
		return !l->line_cnt;
	for (uint32_t i = 0; i < l->line_cnt; i++)
		if (n->p->lines.data[l->line_first + i].line)
			return false;
	return true;
}

/* Does the result say more than the location has? */
static bool is_better(const struct namer *n, const struct profile_location *l,
		      const struct symbol_frame *f, size_t cnt)
{
	const struct profile_function *fn;

	if (!l->line_cnt)
		return true;
	for (size_t i = 0; i < cnt; i++)
		if (f[i].line)
			return true;
	fn = &n->p->functions.data[n->p->lines.data[l->line_first].function];
	return is_place(profile_text(n->p, fn->name_str)) && cnt && !is_place(f[0].name);
}

/* A mapping that starts at 0 has the file's own addresses; others have run-time addresses. */
static int collect_wanted(struct namer *n, uint32_t mapping, const struct elf_file *ef)
{
	const struct profile_mapping *m = &n->p->mappings.data[mapping];

	n->wanted.cnt = 0;
	for (uint32_t i = 0; i < n->p->locations.cnt; i++) {
		const struct profile_location *l = &n->p->locations.data[i];
		struct wanted w = { l->address, i };

		if (l->mapping != mapping || !is_wanted(n, l))
			continue;
		if (m->start && !ef)
			continue;
		if (m->start &&
		    elf_file_off_to_vaddr(ef, l->address - m->start + m->offset, &w.vaddr))
			continue;
		if (vec_push(&n->wanted, w))
			return -ENOMEM;
	}
	vec_sort_by(&n->wanted, vaddr);
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

/* Locations with the same address share its lines. */
static int name_wanted(struct namer *n, const uint64_t *vaddr, const struct symbol_result *sym)
{
	uint32_t first = 0;
	size_t added = SIZE_MAX; /* the address whose lines begin at first */

	for (size_t i = 0, k = 0; i < n->wanted.cnt; i++) {
		struct profile_location *l = &n->p->locations.data[n->wanted.data[i].location];
		size_t cnt;
		int err = 0;

		while (vaddr[k] != n->wanted.data[i].vaddr)
			k++;
		cnt = sym->first[k + 1] - sym->first[k];
		if (!is_better(n, l, &sym->frames[sym->first[k]], cnt))
			continue;
		if (added != k)
			err = add_lines(n, &sym->frames[sym->first[k]], cnt, &first);
		if (err)
			return err;
		added = k;
		l->line_first = first;
		l->line_cnt = cnt;
		n->named_cnt++;
	}
	return 0;
}

/* name: the file's path, at which a debug file's relative links start. */
static int look_up(struct namer *n, struct profile_mapping *m, int fd, const char *name,
		   const char *build_id_hex)
{
	struct symbol_file sf = { .fd = fd, .name = name, .build_id_hex = build_id_hex, .root = "" };
	uint64_t *vaddr = calloc(n->wanted.cnt, sizeof(*vaddr));
	struct symbol_result *sym = NULL;
	size_t cnt = 0;
	int err;

	if (!vaddr)
		return -ENOMEM;
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
	if (err || !n->wanted.cnt)
		return err;
	return look_up(n, m, fd, profile_text(n->p, m->filename_str), build_id_hex);
}

static int name_mapping(struct namer *n, uint32_t mapping)
{
	const char *path = profile_text(n->p, n->p->mappings.data[mapping].filename_str);
	struct elf_file *ef = NULL;
	int fd, err = 0;

	if (path[0] != '/') /* [vdso], or a file of unknown place */
		return 0;
	fd = regular_file_open(path); /* the path is from somebody's dump: it may be a device */
	if (fd < 0 || elf_file_open_fd(fd, &ef))
		n->missing_cnt++;
	else
		err = name_in_file(n, mapping, fd, ef);
	elf_file_close(ef);
	if (fd >= 0)
		close(fd);
	return err;
}

/* --- elsewhere, by build id --- */

/* Remove functions that no location uses any more. */
static int drop_unused_functions(struct profile *p)
{
	uint32_t *now_at = calloc(p->functions.cnt + 1, sizeof(*now_at)), cnt = 0;
	const struct profile_location *l;

	if (!now_at)
		return -ENOMEM;
	vec_each(&p->locations, l)
		for (uint32_t i = 0; i < l->line_cnt; i++)
			now_at[p->lines.data[l->line_first + i].function] = 1;
	for (uint32_t i = 0; i < p->functions.cnt; i++) {
		if (!now_at[i])
			continue;
		p->functions.data[cnt] = p->functions.data[i];
		now_at[i] = cnt++;
	}
	p->functions.cnt = cnt;
	for (uint32_t i = 0; i < p->lines.cnt; i++)
		p->lines.data[i].function = now_at[p->lines.data[i].function];
	free(now_at);
	return 0;
}

static size_t count_wanted(const struct namer *n, uint32_t mapping)
{
	const struct profile_location *l;
	size_t cnt = 0;

	vec_each(&n->p->locations, l)
		cnt += l->mapping == mapping && is_wanted(n, l);
	return cnt;
}

/* Look the wanted locations up in one file. Takes fd; -1: use the installed debug file of that build id.
 * is_debug: its segments may lie elsewhere than the program's. */
static int try_file(struct namer *n, uint32_t mapping, int fd, const char *name, bool is_debug)
{
	struct profile_mapping *m = &n->p->mappings.data[mapping];
	const char *build_id_hex = profile_text(n->p, m->build_id_str);
	struct elf_file *ef = NULL;
	int err = 0;

	if (fd >= 0 && !is_debug && elf_file_open_fd(fd, &ef))
		goto out;
	err = collect_wanted(n, mapping, ef);
	if (!err && n->wanted.cnt)
		err = look_up(n, m, fd, name, build_id_hex);
out:
	elf_file_close(ef);
	if (fd >= 0)
		close(fd);
	return err;
}

static int try_dirs(struct namer *n, uint32_t mapping, const struct profile_symbol_places *places,
		    bool *is_found)
{
	const struct profile_mapping *m = &n->p->mappings.data[mapping];
	char path[PATH_MAX];
	int fd, err = 0;

	for (size_t i = 0; i < places->dir_cnt; i++) {
		for (unsigned nth = 0; !err && count_wanted(n, mapping); nth++) {
			fd = open_of_build_id(places->dirs[i], profile_text(n->p, m->build_id_str),
					      profile_text(n->p, m->filename_str), nth, path);
			if (fd == -ERANGE)
				break;
			if (fd < 0)
				continue;
			*is_found = true;
			err = try_file(n, mapping, fd, path, is_debug_file(nth));
		}
	}
	return err;
}

/* Try the file itself where it was recorded, and its installed debug information. */
static int try_here(struct namer *n, uint32_t mapping, bool *is_found)
{
	const struct profile_mapping *m = &n->p->mappings.data[mapping];
	const char *path = profile_text(n->p, m->filename_str);
	int fd = path[0] == '/' ? regular_file_open(path) : -1;

	if (fd >= 0 && build_id_check(fd, profile_text(n->p, m->build_id_str))) {
		close(fd);
		fd = -1;
	}
	*is_found |= fd >= 0;
	return try_file(n, mapping, fd, path, false);
}

static int try_fetched(struct namer *n, uint32_t mapping,
		       const struct profile_symbol_places *places, bool *is_found)
{
	const struct profile_mapping *m = &n->p->mappings.data[mapping];
	bool has_come = false;
	int err = 0;

	/* Debug information has everything that the program has: one file is enough. */
	for (unsigned nth = 0; places->fetch && !has_come && count_wanted(n, mapping); nth++) {
		int fd = places->fetch(places->ctx, profile_text(n->p, m->build_id_str), nth);

		if (fd == -ERANGE)
			break;
		if (fd < 0)
			continue;
		*is_found = has_come = true;
		err = try_file(n, mapping, fd, "", nth == 0);
	}
	return err;
}

/* A file without a build id can only be the one at the place where it was recorded. */
static int name_elsewhere(struct namer *n, uint32_t mapping,
			  const struct profile_symbol_places *places)
{
	const struct profile_mapping *m = &n->p->mappings.data[mapping];
	struct profile_symbol_file file = { .path = profile_text(n->p, m->filename_str),
					    .build_id_hex = profile_text(n->p, m->build_id_str),
					    .wanted_cnt = count_wanted(n, mapping) };
	size_t before = n->named_cnt;
	int err = 0;

	if (!file.wanted_cnt || (!file.build_id_hex[0] && file.path[0] != '/'))
		return 0;
	if (!file.build_id_hex[0])
		err = name_mapping(n, mapping);
	else
		err = try_dirs(n, mapping, places, &file.is_found);
	if (!err && file.build_id_hex[0])
		err = try_here(n, mapping, &file.is_found);
	if (!err && file.build_id_hex[0])
		err = try_fetched(n, mapping, places, &file.is_found);
	file.named_cnt = n->named_cnt - before;
	file.is_found |= file.named_cnt > 0;
	if (!err && places->on_file)
		places->on_file(places->ctx, &file);
	return err;
}

int profile_symbolize_elsewhere(struct profile *p, const struct symbol_options *opts,
				const struct profile_symbol_places *places)
{
	struct namer n = { .p = p, .opts = opts, .replaces = true };
	bool keeps_allocator = has_allocator_leaf(p);
	int err = 0;

	hmap_init(&n.function_by_key, sizeof(struct function_key));
	for (uint32_t i = 0; i < p->mappings.cnt && !err; i++)
		err = name_elsewhere(&n, i, places);
	if (!err && n.named_cnt && !keeps_allocator)
		err = trim_allocator(p);
	if (!err)
		err = drop_unused_functions(p);
	hmap_release(&n.function_by_key);
	vec_release(&n.wanted);
	return err;
}

int profile_symbolize(struct profile *p, const struct symbol_options *opts, size_t *ret_missing)
{
	struct namer n = { .p = p, .opts = opts };
	int err = 0;

	hmap_init(&n.function_by_key, sizeof(struct function_key));
	for (uint32_t i = 0; i < p->mappings.cnt && !err; i++)
		if (count_wanted(&n, i))
			err = name_mapping(&n, i);
	if (!err && n.named_cnt)
		err = trim_allocator(p);
	if (!err && ret_missing)
		*ret_missing = n.missing_cnt;
	hmap_release(&n.function_by_key);
	vec_release(&n.wanted);
	return err;
}
