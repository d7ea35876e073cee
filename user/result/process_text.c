/* SPDX-License-Identifier: MIT */
/* process_text.c - see process_text.h. */
#include "result/process_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd_stream.h"
#include "result/profile_source.h"
#include "report/report.h"
#include "profile/profile.h"
#include "snapshot/profile_build.h"
#include "symbol/symbolizer.h"
#include "alloc/allocators.h"
#include "proc/process.h"
#include "result/address_map.h"
#include "track/file_symbols.h"
#include "track/files.h"

/* Markers lie below the addresses that a process may map. Some readers take 1 off an address: half the step to each
 * side still belongs to the marker. */
#define MARKER_BASE 0x100ULL
#define MARKER_STEP 16ULL
/* Longest name; C++ has some of many kilobytes. */
#define NAME_BYTES_MAX 1024

static uint64_t marker_addr(const char *name)
{
	const char *known;
	size_t i;

	for (i = 0; (known = profile_marker_name(i)); i++)
		if (!strcmp(known, name))
			break;
	return MARKER_BASE + i * MARKER_STEP;
}

static const char *marker_at(uint64_t addr)
{
	uint64_t off = addr - MARKER_BASE + MARKER_STEP / 2;

	for (size_t i = 0; profile_marker_name(i); i++)
		if (off / MARKER_STEP == i)
			return profile_marker_name(i);
	return NULL;
}

/* Find the file behind a mapping of a profile that was made from files. Copies in two containers, or from before
 * and after an update, look alike: prefer the one that the process maps. */
static const struct track_file *file_of(const struct track_files *files,
					const struct address_map *a, const struct profile *p,
					const struct profile_mapping *m)
{
	const char *path = profile_text(p, m->filename_str);
	const char *build_id = profile_text(p, m->build_id_str);
	const struct track_file *alike = NULL;

	if (!strcmp(path, "[jit]")) /* these are the process's own addresses */
		return NULL;
	for (size_t i = 0; i < track_files_cnt(files); i++) {
		const struct track_file *file = track_files_at(files, i);

		if (!file || strcmp(file->path, path) || strcmp(file->build_id_hex, build_id))
			continue;
		if (address_map_has(a, file))
			return file;
		if (!alike)
			alike = file;
	}
	return alike;
}

static uint32_t mapping_at(const struct proc_maps *maps, uint64_t addr)
{
	const struct proc_map *map = proc_maps_find(maps, addr);

	return map ? (uint32_t)(map - maps->maps.data) : HT_NO_INDEX;
}

static int place_locations(const struct track_files *files, const struct address_map *a,
			   struct profile *p)
{
	const struct track_file **file = calloc(p->mappings.cnt + 1, sizeof(*file));
	struct profile_location *l;

	if (!file)
		return -ENOMEM;
	for (size_t i = 0; i < p->mappings.cnt; i++)
		file[i] = file_of(files, a, p, &p->mappings.data[i]);
	vec_each(&p->locations, l) {
		if (l->mapping != HT_NO_INDEX && file[l->mapping])
			l->address = address_map_addr(a, file[l->mapping], l->address);
		if (!l->address) {
			const struct profile_line *line = &p->lines.data[l->line_first];
			const char *name =
				l->line_cnt ?
					profile_text(p,
						     p->functions.data[line->function].name_str) :
					"";

			l->address = marker_addr(name);
		}
		l->mapping = mapping_at(address_map_maps(a), l->address);
	}
	free(file);
	return 0;
}

static int replace_mappings(const struct address_map *a, struct profile *p)
{
	const struct proc_maps *maps = address_map_maps(a);
	const struct proc_map *map;
	int err = 0;

	p->mappings.cnt = 0;
	vec_each(&maps->maps, map) {
		struct profile_mapping m = {
			.start = map->start_addr,
			.limit = map->end_addr,
			.offset = map->off,
		};

		m.filename_str = profile_str(p, map->path);
		err = m.filename_str < 0 ? -ENOMEM : vec_push(&p->mappings, m);
		if (err)
			break;
	}
	return err;
}

int process_text_write(const struct profile_source *src, struct profile *p, pid_t pid,
		       bool is_growth, int fd)
{
	const struct report_options opts = {
		.format = REPORT_HEAP,
		.heap_form = REPORT_HEAP_ADDRESSES,
		.heap_is_growth = is_growth,
	};
	struct address_map *a;
	FILE *out;
	int err = address_map_new(src->files, pid, &a);

	if (err)
		return err;
	err = place_locations(src->files, a, p);
	if (!err)
		err = replace_mappings(a, p);
	if (!err)
		err = fd_stream_open(fd, &out);
	if (!err)
		err = fd_stream_close(out, report_write(p, &opts, out));
	address_map_free(a);
	return err;
}

/* "--" separates functions, so break it up in names, as in operator--. */
static void put_name(const char *name, FILE *out)
{
	for (size_t i = 0; i < NAME_BYTES_MAX && name[i]; i++) {
		fputc(iscntrl((unsigned char)name[i]) ? ' ' : name[i], out);
		if (name[i] == '-' && name[i + 1] == '-')
			fputc(' ', out);
	}
}

struct place {
	uint64_t addr, vaddr;
	const struct track_file *file; /* NULL: only addr is known */
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	uint32_t x_id = x->file ? x->file->id : 0, y_id = y->file ? y->file->id : 0;

	if (x_id != y_id)
		return x_id < y_id ? -1 : 1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void put_bare(const struct place *place, FILE *out)
{
	const char *name = marker_at(place->addr);

	if (name)
		fprintf(out, "0x%" PRIx64 "\t%s\n", place->addr, name);
	else
		fprintf(out, "0x%" PRIx64 "\t[unknown]+0x%" PRIx64 "\n", place->addr, place->addr);
}

/* Callers come first. Leave out the allocator's inlined functions: they are in no profile. */
static void put_frames(uint64_t addr, const struct symbol_frame *f, size_t cnt, FILE *out)
{
	size_t first = 0;

	while (first + 1 < cnt && (alloc_is_allocator_frame(f[first].system_name) ||
				   alloc_is_allocator_frame(f[first].name)))
		first++;
	fprintf(out, "0x%" PRIx64 "\t", addr);
	for (size_t i = cnt; i-- > first;) {
		put_name(f[i].name, out);
		if (i > first)
			fputs("--", out);
	}
	fputc('\n', out);
}

/* Write the names of places[0..cnt), sorted and all of one file. */
static int put_file(const struct symbol_options *opts, const struct place *places, size_t cnt,
		    FILE *out)
{
	const struct track_file *file = places->file;
	uint64_t *vaddrs = calloc(cnt, sizeof(*vaddrs));
	struct symbol_result *sym = NULL;
	size_t unique_cnt = 0, at = 0;
	int err;

	if (!vaddrs)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		if (!unique_cnt || vaddrs[unique_cnt - 1] != places[i].vaddr)
			vaddrs[unique_cnt++] = places[i].vaddr;
	err = file_symbolize(opts, file, NULL, vaddrs, unique_cnt, &sym);
	for (size_t i = 0; i < cnt && !err; i++) {
		at += vaddrs[at] != places[i].vaddr;
		put_frames(places[i].addr, &sym->frames[sym->first[at]],
			   sym->first[at + 1] - sym->first[at], out);
	}
	symbol_result_free(sym);
	free(vaddrs);
	return err;
}

static int put_places(const struct profile_source *src, struct place *places, size_t cnt, FILE *out)
{
	const struct symbol_options opts = profile_symbol_options(src);
	size_t first = 0, n;
	int err = 0;

	qsort(places, cnt, sizeof(*places), compare_places);
	for (; first < cnt && !err; first += n) {
		for (n = 1; first + n < cnt && places[first + n].file == places[first].file;)
			n++;
		if (places[first].file)
			err = put_file(&opts, places + first, n, out);
		for (size_t i = first; i < first + n && !places[first].file; i++)
			put_bare(&places[i], out);
	}
	return err;
}

int process_names_write(const struct profile_source *src, pid_t pid, const uint64_t *addrs,
			size_t addr_cnt, int fd)
{
	struct place *places = calloc(addr_cnt + 1, sizeof(*places));
	struct address_map *a = NULL;
	FILE *out;
	int err = places ? address_map_new(src->files, pid, &a) : -ENOMEM;

	for (size_t i = 0; i < addr_cnt && !err; i++) {
		places[i].addr = addrs[i];
		places[i].file = address_map_place(a, addrs[i], &places[i].vaddr);
	}
	if (!err)
		err = fd_stream_open(fd, &out);
	if (!err)
		err = fd_stream_close(out, put_places(src, places, addr_cnt, out));
	address_map_free(a);
	free(places);
	return err;
}
