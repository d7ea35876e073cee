/* SPDX-License-Identifier: MIT */
/*
 * loaders.c - see loaders.h.
 *
 * _dl_debug_state() is an empty function that glibc's, musl's and other loaders call when the libraries of the
 * program are mapped, before a constructor has run, and each time that some have come by dlopen().
 * Debuggers have their breakpoint there.
 */
#include "track/loaders.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "elf/dynamic_symbol.h"
#include "elf/elf_file.h"
#include "guardian/held_links.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "proc/auxv.h"
#include "proc/process.h"
#include "track/files.h"

enum { LOADED, STATE, TRACES, CHECKS_LEAKS, SYMBOL_CNT };

/* Of a file, looked up once. */
struct facts {
	const struct track_file *file;
	uint64_t loaded_off; /* 0: it is no loader */
	/* From there, when both are in memory, to the state of the list; 0: not known, as musl's is not
	 * exported, which calls only when it is settled. */
	uint64_t to_state;
	bool traces;
	bool is_probed; /* or could not be */
};

struct loaders {
	struct engine *engine;
	struct held_links *links;
	pid_t only_pid;
	VEC(struct facts) files;
};

int loaders_new(struct engine *e, struct guardian *g, pid_t only_pid, struct loaders **ret)
{
	struct loaders *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->engine = e;
	l->only_pid = only_pid;
	if (held_links_new(g, &l->links)) {
		free(l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

void loaders_free(struct loaders *l)
{
	if (!l)
		return;
	held_links_free(l->links);
	vec_release(&l->files);
	free(l);
}

static void look(const struct track_file *file, struct facts *f)
{
	struct dynamic_symbol symbols[SYMBOL_CNT] = {
		[LOADED] = { .name = "_dl_debug_state" },
		[STATE] = { .name = "_r_debug" },
		[TRACES] = { .name = "ptrace" },
		[CHECKS_LEAKS] = { .name = "__lsan_do_leak_check" },
	};
	struct elf_file *ef;

	if (file->fd < 0 || elf_file_open_fd(file->fd, &ef))
		return;
	dynamic_symbols_find(ef, symbols, SYMBOL_CNT);
	f->traces = symbols[TRACES].is_wanted || symbols[CHECKS_LEAKS].is_defined;
	if (symbols[LOADED].is_defined)
		(void)elf_file_vaddr_to_off(ef, symbols[LOADED].vaddr, &f->loaded_off);
	if (symbols[STATE].is_defined)
		f->to_state = symbols[STATE].vaddr + offsetof(struct r_debug, r_state) -
			      symbols[LOADED].vaddr;
	elf_file_close(ef);
}

static struct facts *facts_of(struct loaders *l, const struct track_file *file)
{
	struct facts *f, fresh = { .file = file };

	vec_each(&l->files, f)
		if (f->file == file)
			return f;
	look(file, &fresh);
	return vec_push(&l->files, fresh) ? NULL : &l->files.data[l->files.cnt - 1];
}

void loaders_forget_file(struct loaders *l, const struct track_file *file)
{
	for (size_t i = 0; i < l->files.cnt; i++)
		if (l->files.data[i].file == file)
			l->files.data[i--] = l->files.data[--l->files.cnt];
}

bool loaders_file_traces(struct loaders *l, const struct track_file *file)
{
	const struct facts *f = facts_of(l, file);

	return f && f->traces;
}

static int probe(struct loaders *l, struct facts *f)
{
	const struct attach_site site = { .off = f->loaded_off, .cookie = f->to_state };
	const struct attach_request req = {
		.file_fd = f->file->fd,
		.pid = l->only_pid,
		.mode = engine_mode(l->engine),
		.kind = ATTACH_ENTRY,
		.prog_fd = engine_prog_fd(l->engine, ENGINE_LOADED),
		.sites = &site,
		.site_cnt = 1,
	};

	f->is_probed = true;
	return held_links_add(l->links, &req);
}

/* The file of the mapping at the address where the kernel has put the loader. */
static const struct track_file *loader_of(const struct track_files *files, pid_t pid)
{
	const struct track_file *file = NULL;
	struct proc_maps maps = { 0 };
	const struct proc_map *m;
	uint64_t addr;

	if (auxv_value(pid, AT_BASE, &addr) || !addr || proc_maps_read(pid, pid, &maps))
		return NULL;
	m = proc_maps_find(&maps, addr);
	if (m)
		file = track_files_find(files, m);
	proc_maps_release(&maps);
	return file;
}

int loaders_add(struct loaders *l, const struct track_files *files, pid_t pid)
{
	const struct track_file *file = loader_of(files, pid);
	struct facts *f = file ? facts_of(l, file) : NULL;

	if (!f || !f->loaded_off)
		return -ENOENT;
	return f->is_probed ? 0 : probe(l, f);
}
