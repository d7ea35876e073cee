/* SPDX-License-Identifier: MIT */
/*
 * loaders.c - see tracker_priv.h.
 *
 * glibc's, musl's and other loaders call the empty function _dl_debug_state() when the program's
 * libraries are mapped, before any constructor runs, and after each dlopen() that has mapped some.
 * Debuggers put their breakpoint there.
 */
#include "track/tracker_priv.h"

#include <elf.h> /* AT_BASE */

#include "guardian/guardian.h"
#include "kernel/attach.h"
#include "kernel/engine.h"
#include "proc/process.h"

struct loaders {
	struct engine *engine;
	struct held_links *links;
	pid_t only_pid;
	VEC(const struct track_file *) probed; /* or probing it failed */
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
	vec_release(&l->probed);
	free(l);
}

void loaders_forget_file(struct loaders *l, const struct track_file *file)
{
	for (size_t i = 0; i < l->probed.cnt; i++)
		if (l->probed.data[i] == file)
			l->probed.data[i--] = l->probed.data[--l->probed.cnt];
}

static bool is_probed(const struct loaders *l, const struct track_file *file)
{
	for (size_t i = 0; i < l->probed.cnt; i++)
		if (l->probed.data[i] == file)
			return true;
	return false;
}

static int probe(struct loaders *l, const struct track_file *file)
{
	const struct attach_site site = { .off = file->loader.loaded_off,
					  .cookie = file->loader.to_state };
	const struct attach_request req = {
		.file_fd = file->fd,
		.pid = l->only_pid,
		.mode = engine_mode(l->engine),
		.kind = ATTACH_ENTRY,
		.prog_fd = engine_prog_fd(l->engine, ENGINE_LOADED),
		.sites = &site,
		.site_cnt = 1,
	};
	int err = vec_push(&l->probed, file);

	return err ? err : held_links_add(l->links, &req);
}

/* The file that is mapped where the kernel has put the loader. */
static const struct track_file *loader_of(struct reader *reader, const struct track_files *files,
					  pid_t pid)
{
	const struct track_file *file = NULL;
	struct proc_maps maps = { 0 };
	const struct proc_map *m;
	uint64_t addr;

	if (auxv_value(pid, AT_BASE, &addr) || !addr || proc_maps_read(reader, pid, pid, &maps))
		return NULL;
	m = proc_maps_find(&maps, addr);
	if (m)
		file = track_files_find(files, m);
	proc_maps_release(&maps);
	return file;
}

int loaders_add(struct loaders *l, struct reader *reader, const struct track_files *files,
		pid_t pid)
{
	const struct track_file *file = loader_of(reader, files, pid);

	if (!file || !file->loader.loaded_off || file->fd < 0)
		return -ENOENT;
	return is_probed(l, file) ? 0 : probe(l, file);
}
