/* SPDX-License-Identifier: MIT */
/* leftovers.c - see probes.h. */
#include "track/probes.h"

#include "alloc/allocators.h"
#include "base/fd.h"
#include "proc/process.h"
#include "track/file_content.h"
#include "track/files.h"

/* Only the beginning of a longer function is searched: probes are put near it. */
#define FUNCTION_BYTES_CAP 4096

/* The longest instruction: the bytes of one patch are no farther apart. */
#define PATCH_BYTES_CAP 15

/* Of what is read at once, and of what lies unsearched in between. */
#define WINDOW_BYTES (16 << 10)
#define GAP_BYTES_CAP 4096

/* The kernel's breakpoint: UPROBE_SWBP_INSN of asm/uprobes.h. */
#if defined(__x86_64__)
static const uint8_t breakpoint[] = { 0xcc };
#elif defined(__aarch64__)
static const uint8_t breakpoint[] = { 0xa0, 0x00, 0x20, 0xd4 }; /* brk #5 */
#endif

static bool has_site(const struct leftovers *l, uint64_t off)
{
	const struct attach_site *site;

	vec_each(&l->sites, site)
		if (site->off == off)
			return true;
	return false;
}

/*
 * Is there a breakpoint at `at`, in code that is otherwise the file's? A patch of several bytes (a tap's jump) may
 * contain a byte with the same value. Attaching and detaching there would write the file's byte into the patch, and the
 * process would crash at the next call.
 */
static bool is_breakpoint(const uint8_t *here, const uint8_t *there, size_t bytes, size_t at)
{
	const size_t step = sizeof(breakpoint);
	size_t from = at < PATCH_BYTES_CAP ? 0 : at - PATCH_BYTES_CAP;
	size_t to = bytes - at < PATCH_BYTES_CAP + step ? bytes : at + PATCH_BYTES_CAP + step;

	if (memcmp(there + at, breakpoint, step) || !memcmp(here + at, there + at, step))
		return false;
	for (size_t i = from; i < to && step == 1; i++)
		if (here[i] != there[i] && there[i] != breakpoint[0])
			return false;
	return true;
}

/* What is searched, as offsets of the file. */
struct place {
	uint64_t off, end_off;
};

struct search {
	struct reader *reader;
	pid_t tid;
	const struct proc_map *map;
	VEC(struct place) places;
	struct leftovers *found;
	/* The bytes from `from` on, in the file and in the process. */
	uint64_t from;
	uint8_t here[WINDOW_BYTES], there[WINDOW_BYTES];
};

static uint64_t map_end_off(const struct proc_map *map)
{
	return map->off + (map->end_addr - map->start_addr);
}

/* What is not in the mapping is left out. */
static int add_place(struct search *s, uint64_t off, uint64_t bytes)
{
	const uint64_t end_off = map_end_off(s->map);

	if (bytes > FUNCTION_BYTES_CAP)
		bytes = FUNCTION_BYTES_CAP;
	if (off < s->map->off || off > end_off || bytes > end_off - off)
		return 0;
	return vec_push(&s->places, (struct place){ off, off + bytes });
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

static int look(struct search *s, const struct place *place, size_t bytes)
{
	const size_t step = sizeof(breakpoint);
	int err = 0;

	for (uint64_t at = place->off; at + step <= place->end_off && !err; at += step)
		if (is_breakpoint(s->here, s->there, bytes, at - s->from) &&
		    !has_site(s->found, at))
			err = vec_push(&s->found->sites, (struct attach_site){ .off = at });
	return err;
}

/*
 * Each reading of a process is a message to the reader, and some 30 functions of an allocator lie side by side: what
 * is near is read at once, with what is around it. fd: the file.
 */
static int look_at_all(struct search *s, int fd)
{
	const struct place *place = s->places.data, *end = place + s->places.cnt, *next;
	int err = 0;

	for (; place < end && !err; place = next) {
		const uint64_t end_off = map_end_off(s->map);
		uint64_t to = place->off;
		size_t bytes;
		bool is_read;

		s->from = to -
			  (to - s->map->off < PATCH_BYTES_CAP ? to - s->map->off : PATCH_BYTES_CAP);
		for (next = place; next < end && next->off <= to + GAP_BYTES_CAP &&
				   next->end_off + PATCH_BYTES_CAP <= s->from + WINDOW_BYTES;
		     next++)
			to = next->end_off > to ? next->end_off : to;
		to += end_off - to < PATCH_BYTES_CAP ? end_off - to : PATCH_BYTES_CAP;
		bytes = to - s->from;
		is_read = pread(fd, s->here, bytes, (off_t)s->from) == (ssize_t)bytes &&
			  !process_memory_read(s->reader, s->tid,
					       s->map->start_addr + (s->from - s->map->off),
					       s->there, bytes);
		for (; is_read && place < next && !err; place++)
			err = look(s, place, bytes);
	}
	return err;
}

static bool find_off(const struct track_file *file, uint64_t vaddr, uint64_t *ret)
{
	const struct track_segment *s;

	vec_each(&file->exec, s) {
		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->bytes)
			continue;
		*ret = s->off + (vaddr - s->vaddr);
		return true;
	}
	return false;
}

static int add_places(struct search *s, const struct track_file *file)
{
	size_t alloc_cnt = file->alloc ? file->alloc->sites.cnt : 0;
	size_t ready_cnt = file->tags ? file->tags->readies.cnt : 0;
	size_t exit_cnt = file->tags ? file->tags->task_exits.cnt : 0;
	uint64_t off;
	int err = 0;

	for (size_t i = 0; i < alloc_cnt && !err; i++) {
		const struct alloc_site *site = &file->alloc->sites.data[i];

		err = add_place(s, site->probe_off, sizeof(breakpoint));
		if (!err && find_off(file, site->fn_vaddr, &off))
			err = add_place(s, off, site->fn_bytes);
	}
	for (size_t i = 0; i < ready_cnt && !err; i++)
		err = add_place(s, file->tags->readies.data[i].off, sizeof(breakpoint));
	for (size_t i = 0; i < exit_cnt && !err; i++)
		err = add_place(s, file->tags->task_exits.data[i].off, sizeof(breakpoint));
	return err;
}

int leftovers_find(struct reader *reader, pid_t tid, const struct proc_map *map,
		   const struct track_file *file, struct leftovers *ret)
{
	struct search s = { .reader = reader, .tid = tid, .map = map, .found = ret };
	int err = add_places(&s, file), fd = -1;

	ret->file = file;
	if (s.places.cnt && !err) {
		qsort(s.places.data, s.places.cnt, sizeof(*s.places.data), compare_places);
		fd = regular_file_reopen(file->fd);
	}
	if (fd >= 0) {
		err = look_at_all(&s, fd);
		close(fd);
	}
	vec_release(&s.places);
	return err;
}
