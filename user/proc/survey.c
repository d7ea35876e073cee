/* SPDX-License-Identifier: MIT */
/*
 * survey.c - looks at everything that a recording would look at, and attaches nothing.
 *
 * Promises to use the same code as a recording: files are opened the same way, and the allocator table, the
 * placement and the unwind compiler are the same. So what is reported here is what will be done. Reads the
 * target's memory (its text) but never stops it.
 */
#include "proc/survey.h"

#include "alloc/file_sampler.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/names.h"
#include "elf/elf_symbols.h"
#include "elf/unwind_table.h"
#include "proc/jit_entry.h"
#include "proc/proc_text.h"
#include "symbol/debug_files.h"

/* Tags: one at a time (tag_sources.c), so that the state of each can be reported. */

static int add(struct survey_tags *ret, const struct survey_tag *tag)
{
	return vec_push(&ret->all, *tag);
}

/* An error of reading the process, unless it ends the survey. */
static int add_unread(struct survey_tags *ret, struct survey_tag *tag, int err)
{
	if (err == -ESRCH || err == -ENOMEM)
		return err;
	if (err == -EPERM || err == -EACCES)
		err_set_os(&tag->problem, err, "cannot read the memory of the process");
	return add(ret, tag);
}

static int add_scopes(pid_t tid, uint64_t addr, struct survey_tags *ret)
{
	struct survey_tag tag = { .kind = HT_TAG_SCOPE };
	struct scope_descriptor *d = &tag.descriptor;
	int err = scope_descriptor_read(NULL, tid, addr, d, &tag.problem);

	if (err)
		return add_unread(ret, &tag, err);
	tag.has_descriptor = true;
	tag.tls_mode = d->tls_mode;
	if (d->tls_mode == HT_TLS_STATIC)
		tag.tls_off = d->tls_off;
	if (d->tls_mode == HT_TLS_DTV) {
		tag.tls_off = (int64_t)d->dtv_off;
		tag.tls_module = d->dtv_module;
	}
	return add(ret, &tag);
}

/* file has only this pointer. */
static int add_pointer(pid_t tid, uint32_t kind, const struct tag_file *file, uint64_t bias,
		       uint32_t dtv_shift, struct survey_tags *ret)
{
	struct survey_tag tag = { .kind = kind };
	struct tag_sources found;
	int err = tag_sources_read(NULL, tid, file, bias, dtv_shift, &found);

	if (err)
		return add_unread(ret, &tag, err);
	if (found.cnt) {
		tag.tls_mode = found.source[0].tls_mode;
		tag.tls_off = found.source[0].tls_off;
		tag.tls_module = found.source[0].tls_module;
	}
	return add(ret, &tag);
}

/* Add a tag that is in the file but cannot be used, whatever the process does. */
static int add_problem(const struct tag_file *file, struct survey_tags *ret)
{
	struct survey_tag tag = { .kind = file->problem_kind };

	err_set(&tag.problem, 0, "%s", file->problem);
	return add(ret, &tag);
}

int survey_tags_read(pid_t tid, struct elf_file *ef, uint64_t bias, uint32_t dtv_shift,
		     struct survey_tags *ret)
{
	struct tag_file file, one;
	uint32_t i;
	int err = tag_file_scan(ef, &file);

	if (err)
		return err == -ENOMEM ? err : 0;
	for (i = 0; i < file.descriptor_cnt && !err; i++)
		err = add_scopes(tid, file.descriptor_vaddr[i] + bias, ret);
	if (!err && file.has_otel) {
		one = (struct tag_file){ .has_otel = true, .otel = file.otel };
		err = add_pointer(tid, HT_TAG_OTEL, &one, bias, dtv_shift, ret);
	}
	if (!err && file.has_custom) {
		one = (struct tag_file){ .has_custom = true, .custom = file.custom };
		err = add_pointer(tid, HT_TAG_CUSTOM, &one, bias, dtv_shift, ret);
	}
	if (!err && file.problem[0])
		err = add_problem(&file, ret);
	return err;
}

/* Enough at the entry of a function: a probe changes its first byte, or 5 (optimised nops). */
#define COMPARED_BYTES 5
#define VDSO_BYTES_CAP (1U << 20)
/* Code that the compiler's startup files put into every library, even one that holds only data. */
#define STARTUP_BYTES 512

struct surveyor {
	const struct process_info *info;
	struct proc_maps maps;
	struct survey *s;
	int mem_fd; /* /proc/TID/mem, < 0: may not be read */
	uint32_t dtv_shift;
	char root[PROC_ROOT_BYTES];
};

static bool has_section(const struct elf_file *ef, const char *name, uint64_t more_than_bytes)
{
	GElf_Shdr sh;

	return gelf_getshdr(elf_file_find(ef, name), &sh) && sh.sh_size > more_than_bytes;
}

/* A file without section headers tells nothing: it is assumed to have code. */
static bool has_code(const struct elf_file *ef)
{
	return elf_file_find(ef, ".text") ? has_section(ef, ".text", STARTUP_BYTES) :
					    !has_section(ef, ".shstrtab", 0);
}

/* .debug_abbrev stands for all of DWARF: it is always there, and small when compressed. */
static enum survey_debug find_debug(struct elf_file *ef, const char *path, const char *root,
				    struct elf_file **ret_debug)
{
	if (has_section(ef, ".debug_abbrev", 0))
		return SURVEY_DEBUG_OWN;
	if (debug_files_load(ef, path, root, ret_debug))
		*ret_debug = NULL;
	return *ret_debug ? SURVEY_DEBUG_SEPARATE : SURVEY_DEBUG_NONE;
}

static void survey_unwind(struct elf_file *ef, struct survey_file *file)
{
	struct unwind_table *table = NULL;

	file->unwind_err = unwind_table_build(ef, NULL, &table);
	if (file->unwind_err)
		return;
	file->row_cnt = table->row_cnt;
	file->unsupported_row_cnt = table->unsupported_row_cnt;
	file->bad_fde_cnt = table->bad_fde_cnt;
	unwind_table_free(table);
}

static int survey_symbols(struct elf_file *ef, const char *root, struct survey_file *file)
{
	struct alloc_options opts = { .naive = false };
	struct elf_symbols *syms = NULL;
	struct elf_file *debug = NULL;
	int err;

	file->has_symtab = has_section(ef, ".symtab", 0);
	file->has_mini_symtab = has_section(ef, ".gnu_debugdata", 0);
	file->debug = find_debug(ef, file->path, root, &debug);
	if (debug && has_section(debug, ".symtab", 0))
		file->has_symtab = true;
	err = elf_symbols_load(ef, debug, &syms);
	if (!err) {
		elf_symbols_all(syms, &file->symbol_cnt);
		err = alloc_file_scan(ef, syms, &opts, &file->alloc);
	}
	elf_symbols_free(syms);
	elf_file_close(debug);
	return err == -ENOMEM ? err : 0;
}

/* The executable mapping of the file that contains off, or NULL. */
static const struct proc_map *map_of_off(const struct surveyor *sv, const struct survey_file *file,
					 uint64_t off)
{
	const struct proc_map *m;

	vec_each(&sv->maps.maps, m)
		if (m->is_exec && m->ino == file->ino && m->dev == file->dev && off >= m->off &&
		    off - m->off < m->end_addr - m->start_addr)
			return m;
	return NULL;
}

static bool text_differs(const struct surveyor *sv, const struct survey_file *file,
			 const struct elf_file *ef, uint64_t vaddr)
{
	const struct proc_map *m;
	uint8_t now[COMPARED_BYTES];
	const uint8_t *bytes;
	uint64_t off;

	bytes = elf_file_read(ef, vaddr, sizeof(now));
	if (!bytes || elf_file_vaddr_to_off(ef, vaddr, &off))
		return false;
	m = map_of_off(sv, file, off);
	if (!m || process_memory_read(NULL, sv->info->live_tid, m->start_addr + off - m->off, now,
				      sizeof(now)))
		return false;
	return memcmp(now, bytes, sizeof(now)) != 0;
}

/* Look for probes at the entry, where other tools put them, and at our own site. */
static int find_probes(const struct surveyor *sv, struct survey_file *file,
		       const struct elf_file *ef)
{
	size_t i;

	if (!file->alloc || !file->alloc->sites.cnt || sv->mem_fd < 0)
		return 0;
	file->is_probed = calloc(file->alloc->sites.cnt, sizeof(*file->is_probed));
	if (!file->is_probed)
		return -ENOMEM;
	for (i = 0; i < file->alloc->sites.cnt; i++) {
		const struct alloc_site *site = &file->alloc->sites.data[i];

		file->is_probed[i] = text_differs(sv, file, ef, site->fn_vaddr) ||
				     text_differs(sv, file, ef, site->placement.vaddr);
		file->probed_cnt += file->is_probed[i];
	}
	return 0;
}

static int find_tags(const struct surveyor *sv, const struct proc_map *m, struct elf_file *ef,
		     struct survey_file *file)
{
	uint64_t vaddr;

	if (elf_file_code_vaddr(ef, m->off, &vaddr))
		return 0;
	file->bias = m->start_addr - vaddr;
	return survey_tags_read(sv->info->live_tid, ef, file->bias, sv->dtv_shift, &file->tags);
}

/* The vDSO has no file; its image is in the target's memory. */
static int open_vdso(const struct surveyor *sv, const struct proc_map *m, struct elf_file **ret)
{
	size_t bytes = m->end_addr - m->start_addr;
	uint8_t *image;
	int err;

	if (sv->mem_fd < 0)
		return -EACCES;
	if (bytes > VDSO_BYTES_CAP)
		return -EFBIG;
	image = malloc(bytes);
	if (!image)
		return -ENOMEM;
	err = process_memory_read(NULL, sv->info->live_tid, m->start_addr, image, bytes);
	if (!err)
		err = elf_file_open_mem(image, bytes, ret);
	free(image);
	return err;
}

static int open_map(const struct surveyor *sv, const struct proc_map *m, bool *ret_is_foreign,
		    struct elf_file **ret)
{
	struct file_facts facts;
	int path_fd, fd, err;

	if (!strcmp(m->path, "[vdso]"))
		return open_vdso(sv, m, ret);
	path_fd = process_open_map(NULL, sv->info->tgid, sv->info->live_tid, m, &facts);
	if (path_fd < 0)
		return path_fd;
	*ret_is_foreign = facts.is_foreign;
	fd = regular_file_reopen(path_fd);
	close(path_fd);
	if (fd < 0)
		return fd;
	err = elf_file_open_fd(fd, ret);
	close(fd);
	return err;
}

static int survey_file(const struct surveyor *sv, const struct proc_map *m,
		       struct survey_file *file)
{
	struct elf_file *ef = NULL;
	bool is_foreign = false;
	int err;

	file->open_err = open_map(sv, m, &is_foreign, &ef);
	if (file->open_err)
		return file->open_err == -ENOMEM ? -ENOMEM : 0;
	elf_file_build_id_hex(ef, file->build_id);
	file->is_go = elf_file_is_go(ef);
	file->is_static = elf_file_is_static(ef);
	file->has_code = has_code(ef);
	survey_unwind(ef, file);
	err = survey_symbols(ef, sv->root, file);
	if (!err)
		alloc_unseen_find(ef, file->alloc, &file->unseen);
	if (!err && is_foreign && file->alloc) { /* as file_content_drop_probes() */
		file->unseen = (struct alloc_unseen){ ALLOC_UNSEEN_FOREIGN, "an allocator" };
		alloc_file_free(file->alloc);
		file->alloc = NULL;
	}
	if (!err)
		err = file_sampler_scan(ef, file->alloc != NULL, &file->sampler);
	if (!err)
		err = find_probes(sv, file, ef);
	if (!err)
		err = find_tags(sv, m, ef, file);
	elf_file_close(ef);
	return err;
}

static struct survey_file *find_file(struct survey *s, const struct proc_map *m)
{
	struct survey_file *file;

	vec_each(&s->files, file)
		if (file->ino == m->ino && file->dev == m->dev && !strcmp(file->path, m->path))
			return file;
	return NULL;
}

static int add_map(struct surveyor *sv, const struct proc_map *m)
{
	struct survey_file file = {
		.ino = m->ino,
		.dev = m->dev,
		.is_deleted = m->is_deleted,
		.exec_bytes = m->end_addr - m->start_addr,
	};
	struct survey_file *known = find_file(sv->s, m);
	int err;

	if (known) {
		known->exec_bytes += file.exec_bytes;
		return 0;
	}
	err = vec_push(&sv->s->files, file);
	if (err)
		return err;
	known = &sv->s->files.data[sv->s->files.cnt - 1];
	known->path = strdup(m->path);
	return known->path ? survey_file(sv, m, known) : -ENOMEM;
}

/* Is it a file, not memory with a name like a file's? */
static bool is_file(const struct proc_map *m)
{
	static const char *const memory[] = { "/memfd:", "/dev/zero", "/SYSV", "/dev/shm/" };

	return !begins_with_one_of(m->path, memory, ARRAY_CNT(memory)) &&
	       (m->path[0] == '/' || !strcmp(m->path, "[vdso]"));
}

static int survey_maps(struct surveyor *sv)
{
	const struct proc_map *m;
	int err = 0;

	vec_each(&sv->maps.maps, m) {
		if (!strcmp(m->path, "[uprobes]")) {
			sv->s->has_uprobes_area = true;
		} else if (!m->is_exec || !strcmp(m->path, "[vsyscall]")) {
			continue;
		} else if (jit_is_dump_path(m->path)) {
			sv->s->has_jit_dump = true;
		} else if (is_file(m)) {
			err = add_map(sv, m);
		} else if (strncmp(m->path, TAP_PATH, strlen(TAP_PATH))) {
			/* not a tap's: that stays mapped when the tap is out */
			sv->s->jit_area_cnt++;
			sv->s->jit_bytes += m->end_addr - m->start_addr;
		}
		if (err)
			return err;
	}
	return 0;
}

static bool has_otel(const struct survey *s)
{
	const struct survey_file *file;
	const struct survey_tag *tag;

	vec_each(&s->files, file)
		vec_each(&file->tags.all, tag)
			if (tag->kind == HT_TAG_OTEL && !tag->problem.text[0])
				return true;
	return false;
}

static int survey_otel_keys(struct surveyor *sv)
{
	struct otel_process_ctx ctx;
	int err = -ENOENT;

	if (has_otel(sv->s))
		err = otel_process_ctx_read(NULL, sv->info->live_tid, &sv->maps, 0, &ctx);
	sv->s->otel_keys_err = err;
	if (err)
		return err == -ENOMEM || err == -ESRCH ? err : 0;
	sv->s->otel_key_cnt = ctx.keys.cnt;
	tag_keys_release(&ctx.keys);
	return 0;
}

/* Decided by the mapped files, arguments and environment. The caller sets has_jit and has_names. */
static void runtime_read(const struct process_info *info, const struct proc_maps *maps,
			 struct runtime *ret)
{
	const struct proc_map *m;

	*ret = (struct runtime){ 0 };
	vec_each(&maps->maps, m)
		if (m->is_exec && m->path[0] == '/' && !ret->kind)
			ret->kind = runtime_of_file(m->path);
	if (ret->kind == RUNTIME_JAVA)
		ret->was_told = runtime_has_option(info, "-XX:+PreserveFramePointer") == 1;
	else if (ret->kind == RUNTIME_NODE)
		ret->was_told = runtime_has_option(info, "--interpreted-frames-native-stack") == 1;
}

static void survey_runtime(struct surveyor *sv)
{
	int fd = jit_map_open(NULL, sv->root, sv->info);

	sv->s->has_jit_map = fd >= 0;
	if (fd >= 0)
		close(fd);
	runtime_read(sv->info, &sv->maps, &sv->s->runtime);
	sv->s->runtime.has_jit = sv->s->jit_area_cnt > 0;
	sv->s->runtime.has_names = sv->s->has_jit_map || sv->s->has_jit_dump;
}

int survey_process(const struct process_info *info, struct survey **ret)
{
	struct surveyor sv = { .info = info, .mem_fd = -1 };
	uint64_t start_ns = now_ns();
	int err = -ENOMEM;

	sv.s = calloc(1, sizeof(*sv.s));
	if (!sv.s)
		goto out;
	err = proc_maps_read(NULL, info->tgid, info->live_tid, &sv.maps);
	if (err)
		goto out;
	proc_root_path(info->live_tid, sv.root);
	sv.mem_fd = proc_open(info->live_tid, O_RDONLY, "mem");
	sv.dtv_shift = tag_dtv_shift(&sv.maps);
	err = survey_maps(&sv);
	if (!err)
		err = survey_otel_keys(&sv);
	if (err)
		goto out;
	survey_runtime(&sv);
	sv.s->took_ns = now_ns() - start_ns;
	*ret = sv.s;
	sv.s = NULL;
out:
	if (sv.mem_fd >= 0)
		close(sv.mem_fd);
	proc_maps_release(&sv.maps);
	survey_free(sv.s);
	return err;
}

void survey_free(struct survey *s)
{
	struct survey_file *file;

	if (!s)
		return;
	vec_each(&s->files, file) {
		free(file->path);
		free(file->is_probed);
		vec_release(&file->tags.all);
		alloc_file_free(file->alloc);
		file_sampler_free(file->sampler);
	}
	vec_release(&s->files);
	free(s);
}
