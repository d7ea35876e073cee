/* SPDX-License-Identifier: MIT */
/* file_content.c - see file_content.h. */
#include "track/file_content.h"

#include <link.h>

#include "alloc/allocators.h"
#include "alloc/file_sampler.h"
#include "elf/elf_budget.h"
#include "elf/elf_symbols.h"
#include "elf/usdt_notes.h"
#include "symbol/debug_files.h"
#include "elf/unwind_table.h"

/*
 * Tags.
 */

#define PROVIDER "heaptap"

/* Where the probes have their arguments; bpf/tags.bpf.h reads them like those of a function. */
#if defined(__x86_64__)
#define TAG_READY_ARGS "8@%rdi"
#define TASK_EXIT_ARGS "8@%rdi 8@%rsi 8@%rdx"
#else
#define TAG_READY_ARGS "8@x0"
#define TASK_EXIT_ARGS "8@x0 8@x1 8@x2"
#endif

void file_tags_free(struct file_tags *tags)
{
	if (!tags)
		return;
	vec_release(&tags->readies);
	vec_release(&tags->task_exits);
	free(tags);
}

/* lld's ThinLTO keeps the note of every unit, all for the same probe. */
static bool has_site(const struct attach_site *sites, size_t cnt, uint64_t off)
{
	for (size_t i = 0; i < cnt; i++)
		if (sites[i].off == off)
			return true;
	return false;
}

static int add_note(struct file_tags *tags, const struct usdt_note *note)
{
	struct attach_site site = { .off = note->location_off,
				    .semaphore_off = note->semaphore_off };

	if (!note->semaphore_vaddr)
		return 0;
	if (!strcmp(note->name, "tls_v1") && !strcmp(note->args, TAG_READY_ARGS) &&
	    !has_site(tags->readies.data, tags->readies.cnt, site.off))
		return vec_push(&tags->readies, site);
	if (!strcmp(note->name, "task_exit") && !strcmp(note->args, TASK_EXIT_ARGS) &&
	    !has_site(tags->task_exits.data, tags->task_exits.cnt, site.off))
		return vec_push(&tags->task_exits, site);
	return 0;
}

static int scan_probes(struct elf_file *ef, struct file_tags *tags)
{
	struct usdt_note *notes;
	size_t cnt;
	int err = usdt_notes_find(ef, PROVIDER, &notes, &cnt);

	if (err)
		return err == -ENOENT ? 0 : err;
	for (size_t i = 0; i < cnt && !err; i++)
		err = add_note(tags, &notes[i]);
	free(notes);
	return err;
}

/* NULL in *ret: the file has none. -ENOMEM is the only error. */
static int file_tags_scan(struct elf_file *ef, struct file_tags **ret)
{
	struct file_tags *tags = calloc(1, sizeof(*tags));
	int err;

	*ret = NULL;
	if (!tags)
		return -ENOMEM;
	err = tag_file_scan(ef, &tags->where);
	if (!err)
		err = scan_probes(ef, tags);
	if (!err) {
		*ret = tags;
		return 0;
	}
	file_tags_free(tags);
	return err == -ENOMEM ? err : 0;
}

/*
 * The content.
 */

void file_content_drop_probes(struct file_content *c)
{
	if (c->alloc)
		c->unseen = (struct alloc_unseen){ ALLOC_UNSEEN_FOREIGN, "an allocator" };
	alloc_file_free(c->alloc);
	file_sampler_free(c->sampler);
	c->alloc = NULL;
	c->sampler = NULL;
	if (c->tags) {
		vec_release(&c->tags->readies);
		vec_release(&c->tags->task_exits);
	}
	c->loader.loaded_off = c->loader.to_state = 0;
}

void file_content_release(struct file_content *c)
{
	vec_release(&c->exec);
	alloc_file_free(c->alloc);
	file_tags_free(c->tags);
	file_sampler_free(c->sampler);
	unwind_table_free(c->table);
	c->alloc = NULL;
	c->tags = NULL;
	c->sampler = NULL;
	c->table = NULL;
}

static int note_segments(struct file_content *c, const struct elf_file *ef)
{
	size_t cnt;
	const struct elf_segment *seg = elf_file_segments(ef, &cnt);

	for (size_t i = 0; i < cnt; i++) {
		struct track_segment s = { seg[i].off, seg[i].file_bytes, seg[i].vaddr };

		if (seg[i].is_exec && vec_push(&c->exec, s))
			return -ENOMEM;
	}
	return 0;
}

static void note_cost(struct file_content *c, const struct elf_file *ef)
{
	c->steps += elf_file_budget(ef)->steps;
	c->is_partly_read |= elf_file_is_partly_read(ef);
}

static int scan_symbols(struct file_content *c, const struct alloc_options *opts,
			struct elf_file *ef, struct elf_file *debug)
{
	struct elf_symbols *syms = NULL;
	int err = elf_symbols_load(ef, debug, &syms);

	if (!err)
		err = alloc_file_scan(ef, syms, opts, &c->alloc);
	elf_symbols_free(syms);
	return err;
}

struct elf_file *file_content_open_debug(struct elf_file *ef, const struct file_source *source)
{
	struct elf_file *debug;

	if (source->is_vdso || elf_file_find(ef, ".symtab") ||
	    debug_files_load(ef, source->path, source->root, &debug))
		return NULL;
	return debug;
}

/*
 * Find entry points of allocators, only in files that can be probed: not in the vDSO. If the file
 * exports its allocator, the debug file is not used, so that large ones are not read for nothing.
 */
static int scan_allocators(struct file_content *c, const struct alloc_options *opts,
			   struct elf_file *ef, struct elf_file *debug)
{
	int err = scan_symbols(c, opts, ef, NULL);

	if (err == -ENOENT && debug) {
		err = scan_symbols(c, opts, ef, debug);
		note_cost(c, debug);
	}
	return err == -ENOMEM ? err : 0;
}

/* The allocating functions that will be probed. */
static size_t collect_marks(const struct file_source *source, const struct alloc_options *opts,
			    const struct alloc_file *af, struct unwind_mark **ret)
{
	const struct alloc_site *site;
	size_t cnt = 0;

	*ret = af ? calloc(af->sites.cnt + 1, sizeof(**ret)) : NULL;
	if (!*ret)
		return 0;
	vec_each(&af->sites, site)
		if (site->row->op != HT_OP_FREE &&
		    !alloc_site_is_left_alone(site, opts, source->has_session))
			(*ret)[cnt++] = (struct unwind_mark){
				site->fn_vaddr, site->fn_vaddr + site->fn_bytes,
				HT_COOKIE_FLAGS(site->cookie) & HT_SITE_THROWS ? HT_ROW_THROWS :
										 HT_ROW_ALLOC
			};
	return cnt;
}

static int build_table(struct file_content *c, const struct file_source *source,
		       const struct alloc_options *opts, struct elf_file *ef)
{
	struct unwind_mark *marks = NULL;
	struct unwind_options how = { .mark_cnt = collect_marks(source, opts, c->alloc, &marks) };
	int err;

	how.marks = marks;
	err = c->alloc && !marks ? -ENOMEM : unwind_table_build(ef, &how, &c->table);

	free(marks);
	return err;
}

/* One pass over the file's exported and imported symbols. */
static void note_loader(struct file_content *c, struct elf_file *ef)
{
	enum { LOADED, STATE, TRACES, CHECKS_LEAKS, SYMBOL_CNT };
	struct dynamic_symbol symbols[SYMBOL_CNT] = {
		[LOADED] = { .name = "_dl_debug_state" },
		[STATE] = { .name = "_r_debug" },
		[TRACES] = { .name = "ptrace" },
		[CHECKS_LEAKS] = { .name = "__lsan_do_leak_check" },
	};
	struct track_loader *l = &c->loader;

	dynamic_symbols_find(ef, symbols, SYMBOL_CNT);
	l->traces = symbols[TRACES].is_wanted || symbols[CHECKS_LEAKS].is_defined;
	if (!symbols[LOADED].is_defined ||
	    elf_file_vaddr_to_off(ef, symbols[LOADED].vaddr, &l->loaded_off))
		return;
	if (symbols[STATE].is_defined)
		l->to_state = symbols[STATE].vaddr + offsetof(struct r_debug, r_state) -
			      symbols[LOADED].vaddr;
}

int file_content_read(struct elf_file *ef, struct elf_file *debug, const struct file_source *source,
		      const struct alloc_options *opts, struct file_content *ret)
{
	int err;

	elf_file_build_id_hex(ef, ret->build_id_hex);
	err = note_segments(ret, ef);
	if (!err && !source->is_vdso)
		err = scan_allocators(ret, opts, ef, debug);
	if (!err && !source->is_vdso)
		alloc_unseen_find(ef, ret->alloc, &ret->unseen);
	ret->is_go = elf_file_is_go(ef);
	if (!err && !source->is_vdso)
		err = file_tags_scan(ef, &ret->tags);
	if (!err && !source->is_vdso)
		err = file_sampler_scan(ef, ret->alloc != NULL, &ret->sampler);
	if (!err && !source->is_vdso)
		note_loader(ret, ef);
	if (!err && source->wants_table)
		err = build_table(ret, source, opts, ef);
	note_cost(ret, ef);
	return err == -ENOMEM ? err : 0;
}
