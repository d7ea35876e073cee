/* SPDX-License-Identifier: MIT */
/* heap_kind.c - see runtime_kind.h. */
#include "proc/runtime_kind.h"

#include <poll.h>

#include "base/sandbox.h"
#include "base/fd.h"
#include "elf/elf_file.h"
#include "proc/process.h"
#include "proc/reader_priv.h"

#define DATA_BYTES (96ULL << 20)
#define MAP_BYTES (8ULL << 30)
#define WALL_S 5

/* What an executable says; the answer of a job. */
struct executable {
	uint32_t is_go, is_static, has_names;
};

static void read_fd(int fd, struct executable *ret)
{
	struct elf_file *ef = NULL;

	*ret = (struct executable){ 0 };
	if (fd < 0 || elf_file_open_fd(fd, &ef))
		return;
	ret->is_go = elf_file_is_go(ef);
	ret->is_static = elf_file_is_static(ef);
	ret->has_names = elf_file_find(ef, ".symtab") != NULL;
	elf_file_close(ef);
}

static int open_path(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int heap_kind_run_job(const void *args, size_t args_bytes, int out_fd)
{
	const struct sandbox_limits limits = { .data_bytes = DATA_BYTES, .map_bytes = MAP_BYTES };
	const char *path = args;
	struct executable said;
	int fd;

	if (!args_bytes || path[args_bytes - 1])
		return 1;
	fd = open_path(path);
	if (fd < 0 || sandbox_seal(getppid(), &limits))
		return 1;
	read_fd(fd, &said);
	return write_all(out_fd, &said, sizeof(said)) ? 1 : 0;
}

/* false: the job could not be started, or said nothing in time. */
static bool ask_job(struct reader *reader, const char *path, struct executable *ret)
{
	struct pollfd p = { .events = POLLIN };
	bool has_said;

	if (reader_run_job(reader, UINT32_MAX, HEAP_KIND_JOB, -1, path, strlen(path) + 1, WALL_S,
			   &p.fd))
		return false;
	has_said =
		poll(&p, 1, READER_PATIENT_MS) > 0 && read(p.fd, ret, sizeof(*ret)) == sizeof(*ret);
	close(p.fd);
	return has_said;
}

static void read_executable(struct reader *reader, const char *path, struct heap_kind *k)
{
	struct executable exe = { 0 };
	int fd;

	if (reader_is_ours(reader)) {
		if (!ask_job(reader, path, &exe))
			exe = (struct executable){ 0 };
	} else {
		fd = open_path(path);
		read_fd(fd, &exe);
		if (fd >= 0)
			close(fd);
	}
	k->is_go = exe.is_go;
	k->is_static = exe.is_static;
	k->has_names = exe.has_names;
}

/* Read how the runtime was told to manage its memory. */
static void read_own_heap(struct reader *reader, const struct process_info *info,
			  struct heap_kind *k)
{
	char *text = NULL;
	size_t bytes = 0;

	if (!k->runtime)
		return;
	if (process_read_environ(reader, info->live_tid, &text, &bytes))
		text = NULL;
	runtime_words_heap(k->runtime, text, text ? bytes : 0, &k->own);
	free(text);
}

void heap_kind_read(struct reader *reader, const struct process_info *info, struct heap_kind *ret)
{
	const struct proc_map *m, *last = NULL;
	struct proc_maps maps;
	char path[64];

	*ret = (struct heap_kind){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/exe", info->live_tid);
	read_executable(reader, path, ret);
	if (proc_maps_read(reader, info->tgid, info->live_tid, &maps))
		return;
	vec_each(&maps.maps, m) {
		if (!m->is_exec || m->path[0] != '/' ||
		    (last && last->ino == m->ino && last->dev == m->dev))
			continue;
		last = m;
		ret->file_cnt++;
		if (!ret->runtime)
			ret->runtime = runtime_of_file(m->path);
	}
	proc_maps_release(&maps);
	read_own_heap(reader, info, ret);
}

/* Our environment as one piece, as it will be in /proc of what we start. */
static char *own_environ(size_t *ret_bytes)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_bytes);

	for (char **line = environ; f && *line; line++)
		fwrite(*line, 1, strlen(*line) + 1, f);
	if (f && fclose(f)) {
		free(text);
		return NULL;
	}
	return f ? text : NULL;
}

void heap_kind_of_files(struct reader *reader, const char *const *paths, size_t cnt,
			struct heap_kind *ret)
{
	size_t bytes = 0;
	char *text;

	*ret = (struct heap_kind){ .file_cnt = cnt };
	if (cnt)
		read_executable(reader, paths[0], ret);
	for (size_t i = 0; i < cnt && !ret->runtime; i++) {
		char *real = realpath(paths[i], NULL);

		ret->runtime = runtime_of_file(real ? real : paths[i]);
		free(real);
	}
	text = own_environ(&bytes);
	runtime_words_heap(ret->runtime, text, text ? bytes : 0, &ret->own);
	free(text);
}

void heap_words_none(const struct heap_kind *k, struct heap_words *ret)
{
	struct runtime_words go;
	char unread[64] = "";

	runtime_words_heap(RUNTIME_GO, NULL, 0, &go);
	if (k->unread_cnt)
		snprintf(unread, sizeof(unread), " (%zu of them could not be read)", k->unread_cnt);
	snprintf(ret->what, sizeof(ret->what),
		 "%sno known allocator found in its %zu mapped file%s%s",
		 k->is_go ? "a Go program, whose heap is not malloc's; " : "", k->file_cnt,
		 k->file_cnt == 1 ? "" : "s", unread);
	if (k->is_go)
		snprintf(ret->advice, sizeof(ret->advice),
			 "%s; in a program with cgo, heaptap sees the memory of C "
			 "code",
			 go.advice);
	else if (k->unread_cnt)
		snprintf(ret->advice, sizeof(ret->advice),
			 "it may be in a file that could not be read");
	else if (k->is_static && !k->has_names)
		snprintf(
			ret->advice, sizeof(ret->advice),
			"it is static and stripped, so its functions have no names: install its "
			"debug symbols (found by build id), or use a build that keeps its symbols");
	else
		snprintf(ret->advice, sizeof(ret->advice),
			 "it may get memory with mmap or brk directly, which heaptap cannot "
			 "attribute");
}

bool heap_words_partial(const struct heap_kind *k, struct heap_words *ret)
{
	struct runtime_words words = k->own;

	if (k->is_go)
		runtime_words_heap(RUNTIME_GO, NULL, 0, &words);
	if (!words.what)
		return false;
	snprintf(ret->what, sizeof(ret->what), "%s", words.what);
	snprintf(ret->advice, sizeof(ret->advice), "%s", words.advice);
	return true;
}
