/* SPDX-License-Identifier: MIT */
/*
 * profile_stacks.c - see profile_build_priv.h.
 *
 * Every stack of the snapshot is read once and its distinct frames are collected. Then the frames
 * are symbolized, file by file.
 *
 * One address may have two locations: the full one, and one for the leaf, without allocator
 * functions that were inlined into the call site.
 */
#include "record/profile_build_priv.h"

#include "alloc/allocators.h"
#include "base/hmap.h"
#include "base/printable.h"
#include "kernel/engine.h"
#include "profile/profile.h"
#include "record/snapshot.h"
#include "track/file.h"
#include "track/files.h"
#include "track/instances.h"

struct frame {
	uint64_t word; /* HT_FRAME() */
	uint32_t location; /* HT_NO_INDEX until it is made */
	uint32_t allocator_lines; /* number of innermost lines of the allocator */
	uint32_t line_cnt;
	uint32_t trimmed; /* location without these, HT_NO_INDEX until it is made */
};

struct stack_ref {
	uint32_t first, cnt; /* in `words` */
	uint32_t end;
};

struct profile_stacks {
	const struct snapshot *s;
	struct engine *engine;
	const struct track_files *files;
	const struct profile_build_options *opts;
	const struct track_instance *main; /* or NULL */
	struct profile *p;
	struct hmap stack_by_id; /* stack id -> index in stacks */
	VEC(struct stack_ref) stacks;
	VEC(uint64_t) words; /* frames of the stacks, leaf first */
	VEC(struct frame) frames; /* sorted by word */
	struct hmap mapping_by_file; /* file id -> index of mapping */
	struct hmap function_by_name; /* struct function_key -> index */
	uint32_t truncated_location[HT_END_CNT];
	uint32_t no_stack_location, rest_location;
	size_t slow_cnt; /* files with places whose names are missing because they took too long */
	char slow_names[256]; /* names of some of these files */
};

/* The last frame of a stack says why it ends there. */
static const char *const end_names[HT_END_CNT] = {
	[HT_END_COMPLETE] = "[complete]",
	[HT_END_NO_MAPPING] = "[truncated: unknown mapping]",
	[HT_END_NO_TABLE] = "[truncated: no unwind table]",
	[HT_END_NO_ROW] = "[truncated: no unwind row]",
	[HT_END_UNSUPPORTED] = "[truncated: unsupported unwind rule]",
	[HT_END_READ_FAULT] = "[truncated: stack not readable]",
	[HT_END_TOO_DEEP] = "[truncated: too deep]",
	[HT_END_BAD_CFA] = "[truncated: stack pointer did not advance]",
	[HT_END_JIT] = "[truncated: JIT code without frame pointers]",
};
static const char no_stack_name[] = "[no stack]";
static const char rest_name[] = "[other stacks]";

const char *profile_marker_name(size_t i)
{
	if (i < HT_END_CNT)
		return end_names[i];
	if (i == HT_END_CNT)
		return no_stack_name;
	return i == HT_END_CNT + 1 ? rest_name : NULL;
}

/* Read the stack of an id, and collect its frames. */
static int collect_stack(struct profile_stacks *ps, uint64_t stack_id)
{
	struct stack_ref ref = { .first = ps->words.cnt };
	struct ht_stack stack;
	int err;

	if (!stack_id || stack_id == SNAPSHOT_STACK_REST || hmap_get(&ps->stack_by_id, &stack_id))
		return 0;
	err = engine_get_stack(ps->engine, stack_id, &stack);
	if (err)
		return err == -ENOENT ? 0 : err;
	ref.cnt = stack.frame_cnt;
	ref.end = stack.end < HT_END_CNT ? stack.end : HT_END_UNSUPPORTED;
	for (uint32_t i = 0; i < stack.frame_cnt; i++) {
		struct frame f = { stack.frame[i], HT_NO_INDEX, 0, 0, HT_NO_INDEX };

		if (vec_push(&ps->words, stack.frame[i]) || vec_push(&ps->frames, f))
			return -ENOMEM;
	}
	err = vec_push(&ps->stacks, ref);
	return err ? err : hmap_put(&ps->stack_by_id, &stack_id, ps->stacks.cnt - 1);
}

static int collect_frames(struct profile_stacks *ps)
{
	size_t kept = 0;

	for (size_t i = 0; i < ps->s->rows.cnt; i++) {
		int err = collect_stack(ps, ps->s->rows.data[i].stack_id);

		if (err)
			return err;
	}
	if (!ps->frames.cnt)
		return 0;
	vec_sort_by(&ps->frames, word);
	for (size_t i = 1; i < ps->frames.cnt; i++)
		if (ps->frames.data[i].word != ps->frames.data[kept].word)
			ps->frames.data[++kept] = ps->frames.data[i];
	ps->frames.cnt = kept + 1;
	return 0;
}

struct function_key {
	int64_t name, system_name, file, start_line;
};

static int get_function(struct profile_stacks *ps, const struct symbol_frame *f, uint32_t *ret)
{
	struct function_key key = { profile_str(ps->p, f->name), profile_str(ps->p, f->system_name),
				    profile_str(ps->p, f->file), f->start_line };
	const struct profile_function fn = { key.name, key.system_name, key.file, key.start_line };
	uint64_t i;

	if (key.name < 0 || key.system_name < 0 || key.file < 0 ||
	    hmap_add(&ps->function_by_name, &key, ps->p->functions.cnt, &i))
		return -ENOMEM;
	*ret = (uint32_t)i;
	return i < ps->p->functions.cnt ? 0 : vec_push(&ps->p->functions, fn);
}

/* Add lines, and a location that uses them. */
static int add_location(struct profile_stacks *ps, uint32_t mapping, uint64_t vaddr,
			const struct symbol_frame *f, size_t cnt, uint32_t *ret)
{
	struct profile_location loc = { .mapping = mapping, .address = vaddr };
	int err;

	loc.line_first = ps->p->lines.cnt;
	for (size_t i = 0; i < cnt; i++) {
		struct profile_line line = { .line = f[i].line };

		err = get_function(ps, &f[i], &line.function);
		if (!err)
			err = vec_push(&ps->p->lines, line);
		if (err)
			return err;
	}
	loc.line_cnt = cnt;
	err = vec_push(&ps->p->locations, loc);
	if (!err)
		*ret = ps->p->locations.cnt - 1;
	return err;
}

/* A location without an address: "[truncated: ...]". */
static int add_marker(struct profile_stacks *ps, const char *name, uint32_t *ret)
{
	struct symbol_frame f = { .name = name, .system_name = name, .file = "" };

	return *ret != HT_NO_INDEX ? 0 : add_location(ps, HT_NO_INDEX, 0, &f, 1, ret);
}

static int get_mapping(struct profile_stacks *ps, uint32_t file_id, const struct track_file *file,
		       uint32_t *ret)
{
	struct profile_mapping m = { .limit = UINT64_MAX };
	uint64_t i;

	if (file->is_jit) /* one mapping for the code of all processes */
		file_id = 0;
	if (hmap_add(&ps->mapping_by_file, &file_id, ps->p->mappings.cnt, &i))
		return -ENOMEM;
	*ret = (uint32_t)i;
	if (i < ps->p->mappings.cnt)
		return 0;
	m.filename_str = profile_str(ps->p, file->path);
	m.build_id_str = profile_str(ps->p, file->build_id_hex);
	return m.filename_str < 0 || m.build_id_str < 0 ? -ENOMEM : vec_push(&ps->p->mappings, m);
}

/* Is there a function at vaddr that is probed? A stack begins in one: whatever name and inlined functions it has there,
 * it is the allocator. */
static bool is_probed(const struct track_file *file, uint64_t vaddr)
{
	const struct alloc_site *site;

	if (!file->alloc)
		return false;
	vec_each(&file->alloc->sites, site)
		if (vaddr >= site->fn_vaddr && vaddr - site->fn_vaddr < site->fn_bytes)
			return true;
	return false;
}

/* Number of innermost lines that are inlined allocator functions; a leaf loses them. */
static uint32_t count_allocator_lines(const struct symbol_frame *f, size_t cnt)
{
	uint32_t n = 0;

	while (n < cnt &&
	       (alloc_is_allocator_frame(f[n].system_name) || alloc_is_allocator_frame(f[n].name)))
		n++;
	return n;
}

/* Add locations of frames[first..first + cnt), which are of one file. */
static int add_file_frames(struct profile_stacks *ps, uint32_t file_id, size_t first, size_t cnt,
			   const struct symbol_result *sym)
{
	const struct track_file *file = track_files_by_id(ps->files, file_id);
	uint32_t mapping;
	int err = get_mapping(ps, file_id, file, &mapping);

	if (err)
		return err;
	ps->p->mappings.data[mapping].has_functions |= sym->has_functions;
	ps->p->mappings.data[mapping].has_filenames |= sym->has_lines;
	ps->p->mappings.data[mapping].has_line_numbers |= sym->has_lines;
	ps->p->mappings.data[mapping].has_inline_frames |= sym->has_inlines;
	for (size_t i = 0; i < cnt; i++) {
		struct frame *f = &ps->frames.data[first + i];
		const struct symbol_frame *lines = &sym->frames[sym->first[i]];
		uint64_t vaddr = f->word & HT_FRAME_VADDR_MASK;

		f->line_cnt = sym->first[i + 1] - sym->first[i];
		f->allocator_lines = is_probed(file, vaddr) ?
					     f->line_cnt :
					     count_allocator_lines(lines, f->line_cnt);
		err = add_location(ps, mapping, vaddr, lines, f->line_cnt, &f->location);
		if (err)
			return err;
	}
	return 0;
}

static void note_slow(struct profile_stacks *ps, const char *path)
{
	size_t n = strlen(ps->slow_names);
	const char *slash = strrchr(path, '/');

	path = slash ? slash + 1 : path;
	ps->slow_cnt++;
	if (n + strlen(path) + 3 < sizeof(ps->slow_names))
		snprintf(ps->slow_names + n, sizeof(ps->slow_names) - n, "%s%s", n ? ", " : "",
			 path);
	make_printable(ps->slow_names);
}

/* Say how many files there were, and name those that had room. */
static int add_slow_comment(const struct profile_stacks *ps)
{
	if (!ps->slow_cnt)
		return 0;
	return profile_comment(ps->p, "names: missing of %zu file%s that took too long to read: %s",
			       ps->slow_cnt, ps->slow_cnt == 1 ? "" : "s", ps->slow_names);
}

static int symbolize_file(struct profile_stacks *ps, uint32_t file_id, size_t first, size_t cnt)
{
	const struct track_file *file = track_files_by_id(ps->files, file_id);
	const struct track_instance *inst = ps->main;
	bool is_called = inst && inst->called[0] && !strcmp(file->path, inst->exe);
	struct symbol_result *sym = NULL;
	uint64_t *vaddr = calloc(cnt, sizeof(*vaddr));
	int err;

	if (!vaddr)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		vaddr[i] = ps->frames.data[first + i].word & HT_FRAME_VADDR_MASK;
	err = file_symbolize(&ps->opts->symbols, file, is_called ? inst->called : NULL, vaddr, cnt,
			     &sym);
	if (!err && sym->is_slow)
		note_slow(ps, file->path);
	if (!err)
		ps->p->lacks_late_names |= sym->is_late;
	if (!err)
		err = add_file_frames(ps, file_id, first, cnt, sym);
	symbol_result_free(sym);
	free(vaddr);
	return err;
}

/* Frames outside files (code made at run time): by address, each with a name of its own. */
static int add_bare_frames(struct profile_stacks *ps, size_t first, size_t cnt)
{
	int err = 0;

	for (size_t i = first; i < first + cnt && !err; i++) {
		struct frame *f = &ps->frames.data[i];
		uint64_t addr = f->word & HT_FRAME_VADDR_MASK;
		char name[32];
		struct symbol_frame line = { .name = name, .system_name = name, .file = "" };

		snprintf(name, sizeof(name), "[jit]+0x%llx", (unsigned long long)addr);
		f->line_cnt = 1;
		err = add_location(ps, HT_NO_INDEX, addr, &line, 1, &f->location);
	}
	return err;
}

/* Frames are sorted, so those of one file are together. */
static int symbolize_frames(struct profile_stacks *ps)
{
	size_t first = 0, cnt;

	for (; first < ps->frames.cnt; first += cnt) {
		uint32_t id = ps->frames.data[first].word >> HT_FRAME_VADDR_BITS;
		const struct track_file *file = track_files_by_id(ps->files, id);
		int err;

		for (cnt = 1; first + cnt < ps->frames.cnt; cnt++)
			if (ps->frames.data[first + cnt].word >> HT_FRAME_VADDR_BITS != id)
				break;
		if (ps->opts->on_progress)
			ps->opts->on_progress(ps->opts->ctx, file ? file->path : "[jit]", first,
					      ps->frames.cnt);
		err = file ? symbolize_file(ps, id, first, cnt) : add_bare_frames(ps, first, cnt);
		if (err)
			return err;
	}
	return 0;
}

/* The location without the allocator's lines for a leaf; other frames keep theirs. */
static int trimmed_location(struct profile_stacks *ps, struct frame *f, uint32_t *ret)
{
	struct profile_location loc = ps->p->locations.data[f->location];
	int err;

	if (f->trimmed == HT_NO_INDEX) {
		loc.line_first += f->allocator_lines;
		loc.line_cnt -= f->allocator_lines;
		err = vec_push(&ps->p->locations, loc);
		if (err)
			return err;
		f->trimmed = ps->p->locations.cnt - 1;
	}
	*ret = f->trimmed;
	return 0;
}

/* A stack with only allocator frames stays whole. */
static int append_stack(struct profile_stacks *ps, const struct stack_ref *ref,
			struct location_list *to)
{
	const uint64_t *word = ps->words.data + ref->first;
	uint32_t skip = 0, loc;
	int err = 0;

	while (!ps->opts->keep_allocator_frames && skip < ref->cnt) {
		const struct frame *f = vec_get(&ps->frames, word, word[skip]);

		if (f->allocator_lines < f->line_cnt)
			break;
		skip++;
	}
	if (skip == ref->cnt)
		skip = 0;
	for (uint32_t i = skip; i < ref->cnt && !err; i++) {
		struct frame *f = vec_get(&ps->frames, word, word[i]);

		loc = f->location;
		if (i == skip && f->allocator_lines && f->allocator_lines < f->line_cnt &&
		    !ps->opts->keep_allocator_frames)
			err = trimmed_location(ps, f, &loc);
		if (!err)
			err = vec_push(&to->loc, loc);
	}
	if (!err && ref->end != HT_END_COMPLETE) {
		uint32_t *marker = &ps->truncated_location[ref->end];

		err = add_marker(ps, end_names[ref->end], marker);
		if (!err)
			err = vec_push(&to->loc, *marker);
	}
	return err;
}

/* pprof takes the first mapping as the main program. */
static int map_executable_first(struct profile_stacks *ps)
{
	size_t file_cnt = track_files_cnt(ps->files);
	uint32_t ignored;

	for (size_t i = 0; ps->main && i < file_cnt; i++) {
		const struct track_file *file = track_files_at(ps->files, i);

		if (file && !strcmp(file->path, ps->main->exe))
			return get_mapping(ps, file->id, file, &ignored);
	}
	return 0;
}

int profile_stacks_new(const struct snapshot *s, struct engine *e, const struct track_files *files,
		       const struct profile_build_options *opts, const struct track_instance *main,
		       struct profile *p, struct profile_stacks **ret)
{
	struct profile_stacks *ps = calloc(1, sizeof(*ps));
	int err;

	if (!ps)
		return -ENOMEM;
	*ps = (struct profile_stacks){
		.s = s, .engine = e, .files = files, .opts = opts, .main = main, .p = p
	};
	hmap_init(&ps->stack_by_id, sizeof(uint64_t));
	hmap_init(&ps->mapping_by_file, sizeof(uint32_t));
	hmap_init(&ps->function_by_name, sizeof(struct function_key));
	ps->no_stack_location = ps->rest_location = HT_NO_INDEX;
	for (size_t i = 0; i < HT_END_CNT; i++)
		ps->truncated_location[i] = HT_NO_INDEX;
	err = map_executable_first(ps);
	if (!err)
		err = collect_frames(ps);
	if (!err)
		err = symbolize_frames(ps);
	if (!err)
		err = add_slow_comment(ps);
	if (err)
		profile_stacks_free(ps);
	else
		*ret = ps;
	return err;
}

void profile_stacks_free(struct profile_stacks *ps)
{
	if (!ps)
		return;
	hmap_release(&ps->stack_by_id);
	hmap_release(&ps->mapping_by_file);
	hmap_release(&ps->function_by_name);
	vec_release(&ps->stacks);
	vec_release(&ps->words);
	vec_release(&ps->frames);
	free(ps);
}

int profile_stacks_append(struct profile_stacks *ps, uint64_t stack_id, struct location_list *to)
{
	const uint64_t *stack = hmap_get(&ps->stack_by_id, &stack_id);
	bool is_rest = stack_id == SNAPSHOT_STACK_REST;
	uint32_t *marker = is_rest ? &ps->rest_location : &ps->no_stack_location;
	int err;

	if (stack)
		return append_stack(ps, &ps->stacks.data[*stack], to);
	err = add_marker(ps, is_rest ? rest_name : no_stack_name, marker);
	return err ? err : vec_push(&to->loc, *marker);
}
