/* SPDX-License-Identifier: MIT */
/*
 * profile_build.c - see profile_build.h.
 *
 * Three passes: every stack of the snapshot is read once and its distinct frames collected; the
 * frames are symbolised file by file; then each row becomes a sample. Rows whose stacks are equal
 * once the allocator's frames are off, and whose labels are equal, are one sample: estimates are
 * added before anything is rounded.
 *
 * A location may appear twice with one address: in full, and without the allocator's functions
 * that were inlined into the call site at the leaf.
 */
#include "snapshot/profile_build.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hmap.h"
#include "base/printable.h"
#include "base/vec.h"
#include "kernel/engine.h"
#include "profile/history.h"
#include "profile/profile.h"
#include "profile/tag_labels.h"
#include "profile/thread_pool.h"
#include "snapshot/scope_labels.h"
#include "snapshot/snapshot.h"
#include "alloc/allocators.h"
#include "track/file_symbols.h"
#include "track/files.h"
#include "track/tracker.h"

/* scope, task, task_state, thread, pid, comm, and those of the program */
#define LABELS_CAP (6 + TAG_LABELS_CAP)

struct frame {
	uint64_t word; /* HT_FRAME() */
	uint32_t location; /* HT_NO_INDEX until it is made */
	uint32_t allocator_lines; /* innermost lines that are the allocator's */
	uint32_t line_cnt;
	uint32_t trimmed; /* location without them, HT_NO_INDEX until it is made */
};

struct stack_ref {
	uint32_t first, cnt; /* in `words` */
	uint32_t end;
};

/* A sample in the making. */
struct row {
	uint32_t loc_first, loc_cnt;
	pid_t pid;
	uint32_t generation;
	char thread[HT_COMM_BYTES + 1];
	uint32_t label_set; /* of scope_labels.h */
	bool has_exited; /* the task */
	uint64_t instance;
	struct estimate inuse;
	struct estimate alloc;
	uint32_t from; /* index of a row of the snapshot with the same labels */
	uint32_t first_from; /* of a list of all rows of the snapshot that are in it, + 1: see next_from */
};

struct builder {
	const struct snapshot *s;
	struct engine *engine;
	const struct track_files *files;
	const struct tracker *tracker;
	const struct profile_build_options *opts;
	struct profile *p;
	struct hmap stack_by_id; /* stack id -> index in stacks */
	VEC(struct stack_ref) stacks;
	VEC(uint64_t) words; /* frames of the stacks, leaf first */
	VEC(struct frame) frames; /* sorted by word */
	struct hmap mapping_by_file; /* file id -> index of mapping */
	struct hmap function_by_name; /* struct function_key -> index */
	struct hmap row_by_key; /* hash pair -> index in rows */
	VEC(struct row) rows;
	/* Of each row of the snapshot: the next one of the same row, + 1. */
	VEC(uint32_t) next_from;
	VEC(struct history_life) lives; /* of the row that is being emitted */
	VEC(uint32_t) locs;
	struct scope_labels *labels;
	uint32_t truncated_location[HT_END_CNT];
	uint32_t no_stack_location, rest_location;
	size_t slow_cnt; /* files with places that have no names because that took too long */
	char slow_names[256]; /* of some of them */
};

/* A stack's last frame says why there are no more. */
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

static int compare_frames(const void *a, const void *b)
{
	const struct frame *x = a, *y = b;

	return x->word < y->word ? -1 : x->word > y->word;
}

/* Pass 1: the stack behind an id, its frames noted. */
static int collect_stack(struct builder *b, uint64_t stack_id)
{
	struct stack_ref ref = { .first = b->words.cnt };
	struct ht_stack stack;
	int err;

	if (!stack_id || stack_id == SNAPSHOT_STACK_REST || hmap_get(&b->stack_by_id, &stack_id))
		return 0;
	err = engine_get_stack(b->engine, stack_id, &stack);
	if (err)
		return err == -ENOENT ? 0 : err;
	ref.cnt = stack.frame_cnt;
	ref.end = stack.end < HT_END_CNT ? stack.end : HT_END_UNSUPPORTED;
	for (uint32_t i = 0; i < stack.frame_cnt; i++) {
		struct frame f = { stack.frame[i], HT_NO_INDEX, 0, 0, HT_NO_INDEX };

		if (vec_push(&b->words, stack.frame[i]) || vec_push(&b->frames, f))
			return -ENOMEM;
	}
	err = vec_push(&b->stacks, ref);
	return err ? err : hmap_put(&b->stack_by_id, &stack_id, b->stacks.cnt - 1);
}

static int collect_frames(struct builder *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->s->rows.cnt; i++) {
		int err = collect_stack(b, b->s->rows.data[i].stack_id);

		if (err)
			return err;
	}
	if (!b->frames.cnt)
		return 0;
	qsort(b->frames.data, b->frames.cnt, sizeof(*b->frames.data), compare_frames);
	for (size_t i = 1; i < b->frames.cnt; i++)
		if (b->frames.data[i].word != b->frames.data[kept].word)
			b->frames.data[++kept] = b->frames.data[i];
	b->frames.cnt = kept + 1;
	return 0;
}

static struct frame *find_frame(const struct builder *b, uint64_t word)
{
	struct frame key = { .word = word };

	return bsearch(&key, b->frames.data, b->frames.cnt, sizeof(key), compare_frames);
}

struct function_key {
	int64_t name, system_name, file, start_line;
};

static int get_function(struct builder *b, const struct symbol_frame *f, uint32_t *ret)
{
	struct function_key key = { profile_str(b->p, f->name), profile_str(b->p, f->system_name),
				    profile_str(b->p, f->file), f->start_line };
	const uint64_t *known;
	struct profile_function fn;

	if (key.name < 0 || key.system_name < 0 || key.file < 0)
		return -ENOMEM;
	known = hmap_get(&b->function_by_name, &key);
	if (known) {
		*ret = *known;
		return 0;
	}
	fn = (struct profile_function){ key.name, key.system_name, key.file, key.start_line };
	if (vec_push(&b->p->functions, fn) ||
	    hmap_put(&b->function_by_name, &key, b->p->functions.cnt - 1))
		return -ENOMEM;
	*ret = b->p->functions.cnt - 1;
	return 0;
}

/* Lines and a location that uses them. */
static int add_location(struct builder *b, uint32_t mapping, uint64_t vaddr,
			const struct symbol_frame *f, size_t cnt, uint32_t *ret)
{
	struct profile_location loc = { .mapping = mapping, .address = vaddr };
	int err;

	loc.line_first = b->p->lines.cnt;
	for (size_t i = 0; i < cnt; i++) {
		struct profile_line line = { .line = f[i].line };

		err = get_function(b, &f[i], &line.function);
		if (!err)
			err = vec_push(&b->p->lines, line);
		if (err)
			return err;
	}
	loc.line_cnt = cnt;
	err = vec_push(&b->p->locations, loc);
	if (!err)
		*ret = b->p->locations.cnt - 1;
	return err;
}

/* A location for something that is no address: "[truncated: ...]". */
static int add_marker(struct builder *b, const char *name, uint32_t *ret)
{
	struct symbol_frame f = { .name = name, .system_name = name, .file = "" };

	return *ret != HT_NO_INDEX ? 0 : add_location(b, HT_NO_INDEX, 0, &f, 1, ret);
}

static int get_mapping(struct builder *b, uint32_t file_id, const struct track_file *file,
		       uint32_t *ret)
{
	struct profile_mapping m = { .limit = UINT64_MAX };
	const uint64_t *known;
	int err;

	if (file->is_jit) /* one mapping for all, of all processes */
		file_id = 0;
	known = hmap_get(&b->mapping_by_file, &file_id);
	if (known) {
		*ret = *known;
		return 0;
	}
	m.filename_str = profile_str(b->p, file->path);
	m.build_id_str = profile_str(b->p, file->build_id_hex);
	if (m.filename_str < 0 || m.build_id_str < 0)
		return -ENOMEM;
	err = vec_push(&b->p->mappings, m);
	if (!err)
		err = hmap_put(&b->mapping_by_file, &file_id, b->p->mappings.cnt - 1);
	if (!err)
		*ret = b->p->mappings.cnt - 1;
	return err;
}

/* Inlined allocator functions at the innermost end: what a leaf loses. */
static uint32_t count_allocator_lines(const struct symbol_frame *f, size_t cnt)
{
	uint32_t n = 0;

	while (n < cnt &&
	       (alloc_is_allocator_frame(f[n].system_name) || alloc_is_allocator_frame(f[n].name)))
		n++;
	return n;
}

/* Locations of frames[first..first + cnt), all of one file. */
static int add_file_frames(struct builder *b, uint32_t file_id, size_t first, size_t cnt,
			   const struct symbol_result *sym)
{
	const struct track_file *file = track_files_by_id(b->files, file_id);
	uint32_t mapping;
	int err = get_mapping(b, file_id, file, &mapping);

	if (err)
		return err;
	b->p->mappings.data[mapping].has_functions |= sym->has_functions;
	b->p->mappings.data[mapping].has_filenames |= sym->has_lines;
	b->p->mappings.data[mapping].has_line_numbers |= sym->has_lines;
	b->p->mappings.data[mapping].has_inline_frames |= sym->has_inlines;
	for (size_t i = 0; i < cnt; i++) {
		struct frame *f = &b->frames.data[first + i];
		const struct symbol_frame *lines = &sym->frames[sym->first[i]];

		f->line_cnt = sym->first[i + 1] - sym->first[i];
		f->allocator_lines = count_allocator_lines(lines, f->line_cnt);
		err = add_location(b, mapping, f->word & HT_FRAME_VADDR_MASK, lines, f->line_cnt,
				   &f->location);
		if (err)
			return err;
	}
	return 0;
}

static void note_slow(struct builder *b, const char *path)
{
	size_t n = strlen(b->slow_names);
	const char *slash = strrchr(path, '/');

	path = slash ? slash + 1 : path;
	b->slow_cnt++;
	if (n + strlen(path) + 3 < sizeof(b->slow_names))
		snprintf(b->slow_names + n, sizeof(b->slow_names) - n, "%s%s", n ? ", " : "", path);
	make_printable(b->slow_names);
}

/* How many, and which of them there was room for. */
static int add_slow_comment(const struct builder *b)
{
	if (!b->slow_cnt)
		return 0;
	return profile_comment(b->p, "names: missing of %zu file%s that took too long to read: %s",
			       b->slow_cnt, b->slow_cnt == 1 ? "" : "s", b->slow_names);
}

static int symbolize_file(struct builder *b, uint32_t file_id, size_t first, size_t cnt)
{
	const struct track_file *file = track_files_by_id(b->files, file_id);
	struct symbol_result *sym = NULL;
	uint64_t *vaddr = calloc(cnt, sizeof(*vaddr));
	int err;

	if (!vaddr)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		vaddr[i] = b->frames.data[first + i].word & HT_FRAME_VADDR_MASK;
	err = file_symbolize(&b->opts->symbols, file, vaddr, cnt, &sym);
	if (!err && sym->is_slow)
		note_slow(b, file->path);
	if (!err)
		err = add_file_frames(b, file_id, first, cnt, sym);
	symbol_result_free(sym);
	free(vaddr);
	return err;
}

/* Frames in no file (code made at run time): by address, each with a name. */
static int add_bare_frames(struct builder *b, size_t first, size_t cnt)
{
	int err = 0;

	for (size_t i = first; i < first + cnt && !err; i++) {
		struct frame *f = &b->frames.data[i];
		uint64_t addr = f->word & HT_FRAME_VADDR_MASK;
		char name[32];
		struct symbol_frame line = { .name = name, .system_name = name, .file = "" };

		snprintf(name, sizeof(name), "[jit]+0x%llx", (unsigned long long)addr);
		f->line_cnt = 1;
		err = add_location(b, HT_NO_INDEX, addr, &line, 1, &f->location);
	}
	return err;
}

/* Pass 2: frames are sorted, so those of one file are together. */
static int symbolize_frames(struct builder *b)
{
	size_t first = 0, cnt;

	for (; first < b->frames.cnt; first += cnt) {
		uint32_t id = b->frames.data[first].word >> HT_FRAME_VADDR_BITS;
		const struct track_file *file = track_files_by_id(b->files, id);
		int err;

		for (cnt = 1; first + cnt < b->frames.cnt; cnt++)
			if (b->frames.data[first + cnt].word >> HT_FRAME_VADDR_BITS != id)
				break;
		if (b->opts->on_progress)
			b->opts->on_progress(b->opts->ctx, file ? file->path : "[jit]", first,
					     b->frames.cnt);
		err = file ? symbolize_file(b, id, first, cnt) : add_bare_frames(b, first, cnt);
		if (err)
			return err;
	}
	return 0;
}

/* The location of a leaf without the allocator's lines; the frame has others. */
static int trimmed_location(struct builder *b, struct frame *f, uint32_t *ret)
{
	struct profile_location loc = b->p->locations.data[f->location];
	int err;

	if (f->trimmed == HT_NO_INDEX) {
		loc.line_first += f->allocator_lines;
		loc.line_cnt -= f->allocator_lines;
		err = vec_push(&b->p->locations, loc);
		if (err)
			return err;
		f->trimmed = b->p->locations.cnt - 1;
	}
	*ret = f->trimmed;
	return 0;
}

/* Locations of a stack, appended to b->locs. A stack of allocator frames only stays whole. */
static int stack_locations(struct builder *b, const struct stack_ref *ref)
{
	const uint64_t *word = b->words.data + ref->first;
	uint32_t skip = 0, loc;
	int err = 0;

	while (!b->opts->keep_allocator_frames && skip < ref->cnt) {
		const struct frame *f = find_frame(b, word[skip]);

		if (f->allocator_lines < f->line_cnt)
			break;
		skip++;
	}
	if (skip == ref->cnt)
		skip = 0;
	for (uint32_t i = skip; i < ref->cnt && !err; i++) {
		struct frame *f = find_frame(b, word[i]);

		loc = f->location;
		if (i == skip && f->allocator_lines && f->allocator_lines < f->line_cnt &&
		    !b->opts->keep_allocator_frames)
			err = trimmed_location(b, f, &loc);
		if (!err)
			err = vec_push(&b->locs, loc);
	}
	if (!err && ref->end != HT_END_COMPLETE) {
		uint32_t *marker = &b->truncated_location[ref->end];

		err = add_marker(b, end_names[ref->end], marker);
		if (!err)
			err = vec_push(&b->locs, *marker);
	}
	return err;
}

struct row_key {
	uint64_t hash[2];
};

/* Rows meet by a 128-bit hash of locations and labels: equal in practice means equal. */
static struct row_key key_of(const struct builder *b, const struct row *row)
{
	const uint32_t *loc = b->locs.data + row->loc_first;
	struct row_key key;

	key.hash[0] = hash_bytes(loc, row->loc_cnt * sizeof(*loc));
	key.hash[1] = hash_bytes(row->thread, sizeof(row->thread)) * 31 + row->loc_cnt;
	key.hash[0] ^= (row->instance ^ (uint64_t)row->has_exited << 63) * 0xc4ceb9fe1a85ec53ULL;
	key.hash[1] ^= (row->label_set ^ row->instance << 20) * 0xd6e8feb86659fd93ULL;
	for (uint32_t i = 0; i < row->loc_cnt; i++)
		key.hash[1] = (key.hash[1] ^ loc[i]) * 0x9e3779b97f4a7c15ULL;
	if (b->opts->label_processes) {
		key.hash[0] ^= (uint64_t)row->pid << 32;
		key.hash[1] ^= row->generation * 0xff51afd7ed558ccdULL;
	}
	return key;
}

/* What tells rows apart besides their stacks. */
static int note_labels(struct builder *b, const struct snapshot_row *from, struct row *row)
{
	const struct snapshot_instance *instance;
	char name[sizeof(row->thread)] = "";
	struct row_labels labels;
	int err = scope_labels_of(b->labels, from, &labels);

	if (err)
		return err;
	row->from = from - b->s->rows.data;
	row->label_set = labels.set;
	if ((b->opts->labels & LABEL_TASK) && from->instance) {
		instance = snapshot_instance(b->s, labels.task_slot, from->instance);
		row->instance = from->instance;
		row->has_exited = instance && instance->sums.has_exited;
	}
	if (b->opts->labels & LABEL_THREAD) {
		memcpy(name, from->comm, sizeof(from->comm));
		make_printable(name);
		memcpy(row->thread, name, sizeof(row->thread));
		if (b->opts->group_threads)
			thread_pool_name(name, row->thread, sizeof(row->thread));
	}
	return 0;
}

static int add_row(struct builder *b, const struct snapshot_row *from)
{
	const uint64_t *stack = hmap_get(&b->stack_by_id, &from->stack_id), *known;
	struct row row = { .pid = from->pid, .generation = from->generation };
	struct row *into = &row;
	struct row_key key;
	int err;

	err = note_labels(b, from, &row);
	if (err)
		return err;
	row.loc_first = b->locs.cnt;
	if (stack) {
		err = stack_locations(b, &b->stacks.data[*stack]);
	} else {
		bool is_rest = from->stack_id == SNAPSHOT_STACK_REST;
		uint32_t *marker = is_rest ? &b->rest_location : &b->no_stack_location;

		err = add_marker(b, is_rest ? rest_name : no_stack_name, marker);
		if (!err)
			err = vec_push(&b->locs, *marker);
	}
	if (err)
		return err;
	row.loc_cnt = b->locs.cnt - row.loc_first;
	key = key_of(b, &row);
	known = hmap_get(&b->row_by_key, &key);
	if (known) {
		into = &b->rows.data[*known];
		b->locs.cnt = row.loc_first;
	}
	estimate_merge(&into->inuse, &from->inuse);
	estimate_merge(&into->alloc, &from->alloc);
	if (vec_push(&b->next_from, into->first_from))
		return -ENOMEM;
	into->first_from = (uint32_t)b->next_from.cnt;
	if (known)
		return 0;
	err = vec_push(&b->rows, row);
	return err ? err : hmap_put(&b->row_by_key, &key, b->rows.cnt - 1);
}

static int add_label(struct builder *b, struct profile_label *labels, size_t *cnt, const char *key,
		     const char *value)
{
	int64_t key_str = profile_str(b->p, key), str = profile_str(b->p, value);

	if (key_str < 0 || str < 0)
		return -ENOMEM;
	labels[(*cnt)++] = (struct profile_label){ .key_str = key_str, .str = str };
	return 0;
}

static int process_labels(struct builder *b, const struct row *row, struct profile_label *labels,
			  size_t *cnt)
{
	const struct track_instance *inst;
	char text[HT_COMM_BYTES + 1];
	int err;

	snprintf(text, sizeof(text), "%d", row->pid);
	err = add_label(b, labels, cnt, "pid", text);
	inst = tracker_find_instance(b->tracker, row->pid, row->generation);
	snprintf(text, sizeof(text), "%.*s", HT_COMM_BYTES, inst ? inst->comm : "?");
	return err ? err : add_label(b, labels, cnt, "comm", text);
}

static int task_labels(struct builder *b, const struct row *row, struct profile_label *labels,
		       size_t *cnt)
{
	int64_t key_str = profile_str(b->p, "task");

	if (key_str < 0)
		return -ENOMEM;
	labels[(*cnt)++] =
		(struct profile_label){ .key_str = key_str, .num = (int64_t)row->instance };
	return row->has_exited ? add_label(b, labels, cnt, "task_state", "exited") : 0;
}

static int make_labels(struct builder *b, const struct row *row, struct profile_label *labels,
		       size_t *ret_cnt)
{
	struct row_labels of;
	size_t cnt = 0;
	int err = scope_labels_of(b->labels, &b->s->rows.data[row->from], &of);

	if (!err && of.scope_str)
		err = add_label(b, labels, &cnt, "scope", profile_text(b->p, of.scope_str));
	for (size_t i = 0; i < of.label_cnt && !err; i++)
		labels[cnt++] = of.labels[i];
	if (!err && row->instance)
		err = task_labels(b, row, labels, &cnt);
	if (!err && row->thread[0])
		err = add_label(b, labels, &cnt, "thread", row->thread);
	if (!err && b->opts->label_processes)
		err = process_labels(b, row, labels, &cnt);
	*ret_cnt = cnt;
	return err;
}

static int compare_lives(const void *a, const void *b)
{
	const struct history_life *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->last < y->last ? -1 : x->last > y->last;
}

/*
 * The history knows no tasks: a stack's lives are all with the row that is no task's, which there always is
 * (it has what was allocated). What a program held that has executed another one is in no value.
 */
static int collect_lives(struct builder *b, const struct row *row)
{
	b->lives.cnt = 0;
	for (uint32_t i = row->first_from; i; i = b->next_from.data[i - 1]) {
		const struct snapshot_row *from = &b->s->rows.data[i - 1];
		const struct history_key key = {
			.stack_id = from->stack_id,
			.image = (uint64_t)from->pid << 32 | from->generation,
			.context_id = from->context_id,
		};
		const struct history_life *life;
		size_t cnt = 0;

		if (from->instance || tracker_is_replaced(b->tracker, from->pid, from->generation))
			continue;
		life = history_lives(b->opts->history, &key, &cnt);
		for (size_t k = 0; k < cnt; k++)
			if (vec_push(&b->lives, life[k]))
				return -ENOMEM;
	}
	return 0;
}

static int emit_lives(struct builder *b, const struct row *row)
{
	size_t kept = 0;
	int err = b->opts->history ? collect_lives(b, row) : 0;

	if (err || !b->opts->history || !b->lives.cnt)
		return err;
	qsort(b->lives.data, b->lives.cnt, sizeof(*b->lives.data), compare_lives);
	for (size_t i = 1; i < b->lives.cnt; i++) {
		struct history_life *to = &b->lives.data[kept], *from = &b->lives.data[i];

		if (compare_lives(to, from)) {
			b->lives.data[++kept] = *from;
			continue;
		}
		to->samples += from->samples;
		to->bytes += from->bytes;
		to->variance += from->variance;
	}
	return profile_add_lives(b->p, b->lives.data, kept + 1);
}

/* Where the ages of a row of the snapshot begin, which are sorted by row. */
static size_t first_age(const struct snapshot *s, uint32_t row)
{
	size_t low = 0, high = s->ages.cnt;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->ages.data[mid].row < row)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void add_age_part(struct age_part *to, const struct age_part *from)
{
	to->samples += from->samples;
	to->bytes += from->bytes;
	to->bytes_variance += from->bytes_variance;
	to->objects += from->objects;
	to->objects_variance += from->objects_variance;
}

static int emit_ages(struct builder *b, const struct row *row, struct profile_sample *sample)
{
	struct age_part parts[AGE_CLASS_CNT] = { 0 };
	int err = 0;

	for (uint32_t i = row->first_from; i; i = b->next_from.data[i - 1]) {
		const struct snapshot_row *from = &b->s->rows.data[i - 1];

		if (tracker_is_replaced(b->tracker, from->pid, from->generation))
			continue;
		for (size_t k = first_age(b->s, i - 1);
		     k < b->s->ages.cnt && b->s->ages.data[k].row == i - 1; k++) {
			const struct snapshot_age *age = &b->s->ages.data[k];

			add_age_part(&parts[age->part.age_class], &age->part);
			if (age->oldest_ns > sample->oldest_ns)
				sample->oldest_ns = age->oldest_ns;
		}
	}
	for (uint32_t c = 0; c < AGE_CLASS_CNT && !err; c++) {
		parts[c].age_class = c;
		if (parts[c].samples)
			err = profile_add_age(b->p, &parts[c]);
	}
	return err;
}

/* Of all rows of the snapshot that are in it. What a program has allocated stays when it executes another one. */
static int emit_bins(struct builder *b, const struct row *row, struct profile_sample *sample)
{
	struct bin_part parts[HT_BIN_CNT] = { 0 };
	int err = 0;

	for (uint32_t i = row->first_from; i; i = b->next_from.data[i - 1]) {
		const struct snapshot_row *from = &b->s->rows.data[i - 1];

		sample->freed_objects += from->freed_objects;
		sample->freed_bytes += from->freed_bytes;
		for (uint32_t k = 0; k < from->bin_cnt; k++) {
			const struct bin_part *part = &b->s->bins.data[from->bin_first + k];
			struct bin_part *to = &parts[part->bin];

			to->samples += part->samples;
			to->objects += part->objects;
			to->bytes += part->bytes;
			to->bytes_variance += part->bytes_variance;
		}
	}
	for (uint32_t bin = 0; bin < HT_BIN_CNT && !err; bin++) {
		parts[bin].bin = bin;
		if (parts[bin].samples)
			err = profile_add_bin(b->p, &parts[bin]);
	}
	return err;
}

static int add_moments(struct builder *b)
{
	const struct history *h = b->opts->history;
	int err = 0;

	for (size_t i = 0; h && i < history_moment_cnt(h) && !err; i++)
		err = vec_push(&b->p->moments_ns,
			       (int64_t)(history_moment_ns(h, i) - b->opts->begin_ns));
	if (h)
		b->p->is_history_partial = b->opts->is_history_partial || history_lost_cnt(h) ||
					   b->s->stats[HT_STAT_TOTALS_FULL];
	return err;
}

/* Rounded once, here. */
static int emit_row(struct builder *b, const struct row *row)
{
	int64_t values[PROFILE_VALUE_CNT] = {
		[PROFILE_ALLOC_OBJECTS] = llround(row->alloc.objects),
		[PROFILE_ALLOC_SPACE] = llround(row->alloc.bytes),
		[PROFILE_INUSE_OBJECTS] = llround(row->inuse.objects),
		[PROFILE_INUSE_SPACE] = llround(row->inuse.bytes),
	};
	struct profile_label labels[LABELS_CAP];
	struct profile_sample *sample;
	size_t label_cnt = 0;
	int err = make_labels(b, row, labels, &label_cnt);

	if (err)
		return err;
	err = profile_add_sample(b->p, b->locs.data + row->loc_first, row->loc_cnt, values, labels,
				 label_cnt, &sample);
	if (err)
		return err;
	sample->has_error = true;
	sample->inuse_samples = row->inuse.samples;
	sample->inuse_bytes_variance = row->inuse.bytes_variance;
	sample->inuse_objects_variance = row->inuse.objects_variance;
	sample->alloc_samples = row->alloc.samples;
	sample->alloc_bytes_variance = row->alloc.bytes_variance;
	err = emit_ages(b, row, sample);
	if (!err && b->p->has_bins)
		err = emit_bins(b, row, sample);
	return err ? err : emit_lives(b, row);
}

/* Pass 3. */
static int emit_samples(struct builder *b)
{
	int err = 0;

	for (size_t i = 0; i < b->s->rows.cnt && !err; i++)
		err = add_row(b, &b->s->rows.data[i]);
	for (size_t i = 0; i < b->rows.cnt && !err; i++)
		err = emit_row(b, &b->rows.data[i]);
	return err;
}

/* pprof takes the first mapping for the main program's. */
static int map_executable_first(struct builder *b)
{
	size_t cnt, file_cnt = track_files_cnt(b->files);
	const struct track_instance *inst = tracker_instances(b->tracker, &cnt);
	uint32_t ignored;

	while (cnt && b->opts->main_pid && inst[cnt - 1].pid != b->opts->main_pid)
		cnt--;
	for (size_t i = 0; cnt && i < file_cnt; i++) {
		const struct track_file *file = track_files_at(b->files, i);

		if (file && !strcmp(file->path, inst[cnt - 1].exe))
			return get_mapping(b, file->id, file, &ignored);
	}
	return 0;
}

int profile_build(const struct snapshot *s, struct engine *e, const struct track_files *files,
		  const struct tracker *t, const struct profile_build_options *opts,
		  struct profile **ret)
{
	struct builder b = { .s = s, .engine = e, .files = files, .tracker = t, .opts = opts };
	int err = profile_new(&b.p);

	if (err)
		return err;
	hmap_init(&b.stack_by_id, sizeof(uint64_t));
	hmap_init(&b.mapping_by_file, sizeof(uint32_t));
	hmap_init(&b.function_by_name, sizeof(struct function_key));
	hmap_init(&b.row_by_key, sizeof(struct row_key));
	b.no_stack_location = b.rest_location = HT_NO_INDEX;
	for (size_t i = 0; i < HT_END_CNT; i++)
		b.truncated_location[i] = HT_NO_INDEX;

	b.p->has_bins = !opts->is_delta;
	err = profile_set_heap_types(b.p, opts->rate_bytes);
	if (!err)
		err = scope_labels_new(s, e, t, b.p, opts->labels, &b.labels);
	if (!err)
		err = map_executable_first(&b);
	if (!err)
		err = collect_frames(&b);
	if (!err)
		err = symbolize_frames(&b);
	if (!err)
		err = add_slow_comment(&b);
	if (!err)
		err = add_moments(&b);
	if (!err)
		err = emit_samples(&b);
	if (!err) {
		*ret = b.p;
		b.p = NULL;
	}
	scope_labels_free(b.labels);
	profile_free(b.p);
	hmap_release(&b.stack_by_id);
	hmap_release(&b.mapping_by_file);
	hmap_release(&b.function_by_name);
	hmap_release(&b.row_by_key);
	vec_release(&b.stacks);
	vec_release(&b.words);
	vec_release(&b.frames);
	vec_release(&b.rows);
	vec_release(&b.next_from);
	vec_release(&b.lives);
	vec_release(&b.locs);
	return err;
}
