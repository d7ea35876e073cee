/* SPDX-License-Identifier: MIT */
/*
 * symbol_helper.c - runs in the helper: open, seal, look up, answer, end.
 *
 * A fork without exec: the addresses and options are simply there. The files are found and opened with the
 * profiler's rights, by code that reads only identities and links; everything else is read after the seal
 * (sandbox.h). Answers are sent as they are found, so that they are not lost when the helper dies.
 */
#include "base/fd.h"
#include "symbol/symbol.h"
#include "symbol/symbol_wire.h"

#include <elfutils/libdw.h>
#include <sys/prctl.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "symbol/debug_files.h"
#include "symbol/dwarf_lookup.h"
#include "base/sandbox.h"

/* Limit of libdw's memory before its handle is reopened. */
#define DWARF_MEMORY_BYTES (128u << 20)
/* CPU time for a file: with 20 000 addresses real files take a second for 50 MB. The caller's limit counts as
 * well. */
#define CPU_SECONDS_BASE 3
#define CPU_BYTES_PER_SECOND (8u << 20)
#define CPU_ADDRESSES_PER_SECOND 20000

struct helper {
	const struct helper_job *job;
	struct wire_writer out;
	int file_fd, debug_fd, alt_fd;
	struct elf_file *file, *debug;
	struct elf_symbols *symbols;
	uint8_t *is_answered;
	uint32_t flags;
	/* Demangled names, indexed by the id of the linkage name in `names`. */
	struct strset *names;
	VEC(char *) demangled;
};

/* --- with privileges --- */

static uint64_t file_bytes(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void open_alt(struct helper *h, struct elf_file *debug, const char *path)
{
	if (h->alt_fd < 0)
		h->alt_fd = debug_files_open_alt(debug, path, h->job->file->root);
}

/* Files that cannot be opened are missing, not an error. */
static void open_files(struct helper *h)
{
	const struct symbol_file *sf = h->job->file;
	char path[PATH_MAX];

	if (h->file_fd >= 0 && elf_file_open_fd(h->file_fd, &h->file) == 0) {
		h->debug_fd = debug_files_open(h->file, sf->name, sf->root, path);
	} else if (sf->build_id_hex[0]) {
		h->debug_fd = debug_files_open_id(sf->build_id_hex, sf->root, path);
	}
	if (h->debug_fd >= 0 && elf_file_open_fd(h->debug_fd, &h->debug)) {
		close(h->debug_fd);
		h->debug_fd = -1;
	}
	if (h->job->use_dwarf && h->debug)
		open_alt(h, h->debug, path);
	if (h->job->use_dwarf && h->file)
		open_alt(h, h->file, sf->name);
	/* The file is gone, but its debug file has all that is needed. */
	if (!h->file && h->debug) {
		h->file = h->debug;
		h->file_fd = h->debug_fd;
		h->debug = NULL;
		h->debug_fd = -1;
	}
}

/* --- names --- */

/* The demangled name, or linkage itself. Valid until the helper ends. */
static const char *demangled_name(struct helper *h, const char *linkage)
{
	int64_t id;
	size_t known;

	if (!h->job->opts->demangle || !linkage[0])
		return linkage;
	known = strset_cnt(h->names);
	id = strset_add(h->names, linkage);
	if (id < 0)
		return linkage;
	while (h->demangled.cnt < strset_cnt(h->names))
		if (vec_push(&h->demangled, NULL))
			return linkage;
	if ((size_t)id >= known)
		h->demangled.data[id] = demangle(linkage);
	return h->demangled.data[id] ? h->demangled.data[id] : linkage;
}

static const struct elf_symbol *symbol_at(const struct helper *h, uint64_t vaddr)
{
	const struct elf_symbol *s = h->symbols ? elf_symbols_find(h->symbols, vaddr) : NULL;

	return s && s->name && s->name[0] ? s : NULL;
}

static int answer_symbol(struct helper *h, size_t idx)
{
	const struct elf_symbol *s = symbol_at(h, h->job->vaddr[idx]);
	struct symbol_frame f = { .file = "" };

	if (!s)
		return 0;
	f.system_name = s->name;
	f.name = demangled_name(h, s->name);
	h->is_answered[idx] = 1;
	return wire_put_address(&h->out, (uint32_t)idx, WIRE_FROM_SYMBOL, &f, 1);
}

static bool is_mangled(const char *name)
{
	return name && (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0);
}

/* A linkage name that is not mangled is an assembler label of C ("__GI___libc_malloc"). */
static void name_frame(struct helper *h, const struct dwarf_frame *d, struct symbol_frame *f)
{
	f->system_name = d->linkage_name ? d->linkage_name : d->name;
	if (is_mangled(d->linkage_name))
		f->name = demangled_name(h, d->linkage_name);
	else if (h->job->opts->demangle && d->qualified_name)
		f->name = d->qualified_name;
	else
		f->name = d->name;
}

/* "f.part.0" of f */
static bool is_clone_of(const char *symbol, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	return n && strncmp(symbol, name, n) == 0 && symbol[n] == '.';
}

/*
 * The outermost frame is a real function: where DWARF has no mangled name for it, its symbol has the name. A C
 * function gets its symbol's name ("malloc" rather than glibc's own "__libc_malloc"), but not that of a clone.
 */
static void name_outermost(struct helper *h, uint64_t vaddr, const struct dwarf_frame *d,
			   struct symbol_frame *f)
{
	const struct elf_symbol *s = symbol_at(h, vaddr);

	if (!s || is_mangled(d->linkage_name))
		return;
	/* a label inside of the function */
	if (d->name && s->vaddr != d->range_vaddr)
		return;
	f->system_name = s->name;
	if (!d->name || !(is_clone_of(s->name, d->name) || is_clone_of(s->name, d->linkage_name)))
		f->name = demangled_name(h, s->name);
}

static int answer_dwarf(void *ctx, size_t idx, const struct dwarf_frame *d, size_t cnt)
{
	struct symbol_frame frames[WIRE_FRAMES_CAP];
	struct helper *h = ctx;
	enum wire_source source = WIRE_FROM_DWARF;

	if (h->is_answered[idx] || cnt == 0)
		return 0;
	cnt = cnt < WIRE_FRAMES_CAP ? cnt : WIRE_FRAMES_CAP;
	for (size_t i = 0; i < cnt; i++) {
		struct symbol_frame *f = &frames[i];

		name_frame(h, &d[i], f);
		if (i == cnt - 1)
			name_outermost(h, h->job->vaddr[idx], &d[i], f);
		if (!f->name || !f->name[0])
			f->name = f->system_name = cnt == 1 ? "" : "[inlined]";
		f->file = d[i].file;
		f->line = d[i].line;
		f->start_line = d[i].start_line;
	}
	/* cppcheck-suppress uninitvar ; cnt is not 0 */
	if (!frames[0].name[0])
		return 0;
	if (!d[cnt - 1].name)
		source = WIRE_FROM_SYMBOL;
	h->is_answered[idx] = 1;
	return wire_put_address(&h->out, (uint32_t)idx, source, frames, cnt);
}

/* --- sealed --- */

/* The DWARF is in the debug file, else in the file itself. */
static int run_dwarf(struct helper *h)
{
	struct dwarf_lookup *dl = NULL;
	int err = -ENOENT;

	if (h->debug_fd >= 0)
		err = dwarf_lookup_open(h->debug_fd, h->alt_fd, DWARF_MEMORY_BYTES, &dl);
	if (err && h->file_fd >= 0)
		err = dwarf_lookup_open(h->file_fd, h->alt_fd, DWARF_MEMORY_BYTES, &dl);
	if (err == -ENOMEM)
		return err;
	if (err) {
		h->flags |= err == -ENOENT ? WIRE_NO_DEBUG_INFO : WIRE_BAD_DEBUG_INFO;
		return 0;
	}
	err = dwarf_lookup_run(dl, h->job->vaddr, h->job->vaddr_cnt, answer_dwarf, h);
	if (dwarf_lookup_is_split(dl))
		h->flags |= WIRE_SPLIT_DEBUG_INFO;
	dwarf_lookup_free(dl);
	return err;
}

static int run_sealed(struct helper *h)
{
	int err = 0;

	if (!h->file) {
		h->flags |= WIRE_BAD_FILE;
		return wire_put_done(&h->out, h->flags);
	}
	if (elf_symbols_load(h->file, h->debug, &h->symbols)) {
		h->symbols = NULL;
		h->flags |= WIRE_NO_SYMBOLS;
	}
	if (h->job->use_dwarf)
		err = run_dwarf(h);
	for (size_t i = 0; i < h->job->vaddr_cnt && !err; i++)
		if (!h->is_answered[i])
			err = answer_symbol(h, i);
	return err ? err : wire_put_done(&h->out, h->flags);
}

static int prepare(struct helper *h, int out_fd)
{
	int err = wire_writer_init(&h->out, out_fd);

	if (!err)
		err = strset_new(&h->names);
	h->is_answered = calloc(h->job->vaddr_cnt + 1, 1);
	if (!err && !h->is_answered)
		err = -ENOMEM;
	for (size_t i = 0; i < h->job->vaddr_cnt && !err; i++)
		h->is_answered[i] = h->job->answers[i].cnt > 0;
	return err;
}

/* Linear in the size of the files and of the request, so that a small file that is made to be slow delays
 * nobody for long. */
static uint64_t cpu_seconds_for(const struct helper *h)
{
	uint64_t bytes = file_bytes(h->file_fd) + file_bytes(h->debug_fd) + file_bytes(h->alt_fd);

	return CPU_SECONDS_BASE + bytes / CPU_BYTES_PER_SECOND +
	       h->job->vaddr_cnt / CPU_ADDRESSES_PER_SECOND;
}

/* Nothing is released: the process ends. */
static int child(const struct helper_job *job, pid_t parent, int out_fd)
{
	struct sandbox_limits limits = { .data_bytes = job->memory_bytes };
	struct helper h = { .job = job, .file_fd = -1, .debug_fd = -1, .alt_fd = -1 };
	int keep[2] = { out_fd, job->file->fd };
	int err;

	err = sandbox_begin(parent, keep, job->file->fd >= 0 ? 2 : 1, job->cpu_seconds);
	if (!err && job->file->fd >= 0) /* O_PATH: see process_open_map() */
		h.file_fd = regular_file_reopen(job->file->fd);
	if (!err)
		err = prepare(&h, out_fd);
	if (err)
		return err;
	open_files(&h);
	/* Each reader maps the files for itself. */
	limits.map_bytes = job->memory_bytes + 2 * (file_bytes(h.file_fd) + file_bytes(h.debug_fd) +
						    file_bytes(h.alt_fd));
	limits.cpu_seconds = cpu_seconds_for(&h);
	err = sandbox_seal(parent, &limits);
	return err ? err : run_sealed(&h);
}

int helper_start(const struct helper_job *job, pid_t *ret_pid, int *ret_fd)
{
	pid_t parent = getpid(), pid;
	int pipe_fd[2];

	if (pipe2(pipe_fd, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(pipe_fd[0]);
		close(pipe_fd[1]);
		return err;
	}
	if (pid == 0) {
		int err;

		(void)prctl(PR_SET_NAME, "heaptap-symbols");
		err = child(job, parent, pipe_fd[1]);
		_exit(err == -ENOMEM ? DWARF_EXIT_NO_MEMORY : err ? 1 : 0);
	}
	close(pipe_fd[1]);
	*ret_pid = pid;
	*ret_fd = pipe_fd[0];
	return 0;
}
