/* SPDX-License-Identifier: MIT */
/* process_text.c - see make_priv.h. */
#include "record/make_priv.h"

#include "alloc/allocators.h"
#include "base/fd.h"
#include "http/endpoints.h"
#include "proc/process.h"
#include "profile/profile.h"
#include "report/report.h"
#include "record/make.h"
#include "record/profile_build.h"
#include "symbol/symbol.h"
#include "track/file.h"
#include "track/files.h"

/* Programs have addresses below 2^47 (2^56 if they ask for more). Readers want addresses below 2^63. */
#define MADE_SHIFT 48
#define MADE_ID_CAP 0x7ffeU
#define MADE_VADDR_MAX ((1ULL << MADE_SHIFT) - 1)
/* Markers lie below the addresses that a process may map. Some readers take 1 off an address: half the step to each
 * side still belongs to the marker. */
#define MARKER_BASE 0x100ULL
#define MARKER_STEP 16ULL
/* Longest name; C++ has some of many kilobytes. */
#define NAME_BYTES_MAX 1024

static int note_bias(struct address_map *a, const struct proc_map *map)
{
	const struct track_file *file = track_files_find(a->files, map);
	uint64_t bias;

	if (!file || hmap_get(&a->bias_by_file, &file->id) ||
	    track_file_bias(file, map->start_addr, map->off, &bias))
		return 0;
	return hmap_put(&a->bias_by_file, &file->id, bias);
}

int address_map_read(struct reader *reader, const struct track_files *files, pid_t pid,
		     struct address_map *ret)
{
	struct process_info info;
	size_t kept = 0;
	int err = process_info_read(reader, pid, &info);

	*ret = (struct address_map){ .files = files };
	hmap_init(&ret->bias_by_file, sizeof(uint32_t));
	if (!err)
		err = proc_maps_read(reader, pid, info.live_tid, &ret->maps);
	if (err)
		return err;
	ret->pid = info.tgid;
	for (size_t i = 0; i < ret->maps.maps.cnt && !err; i++) {
		const struct proc_map *map = &ret->maps.maps.data[i];

		/* [vsyscall] is in the kernel's half. */
		if (!map->is_exec || !*map->path || map->start_addr >> 63)
			continue;
		err = note_bias(ret, map);
		ret->maps.maps.data[kept++] = *map;
	}
	ret->maps.maps.cnt = kept;
	return err;
}

void address_map_release(struct address_map *a)
{
	proc_maps_release(&a->maps);
	hmap_release(&a->bias_by_file);
}

uint64_t address_map_addr(const struct address_map *a, const struct track_file *file,
			  uint64_t vaddr)
{
	const uint64_t *bias = hmap_get(&a->bias_by_file, &file->id);

	if (bias)
		return vaddr + *bias;
	if (file->id >= MADE_ID_CAP || vaddr > MADE_VADDR_MAX)
		return 0;
	return (file->id + 1ULL) << MADE_SHIFT | vaddr;
}

const struct track_file *address_map_place(const struct address_map *a, uint64_t addr,
					   uint64_t *ret_vaddr)
{
	const struct proc_map *map = proc_maps_find(&a->maps, addr);
	const struct track_file *file = map ? track_files_find(a->files, map) : NULL;
	uint64_t bias;

	*ret_vaddr = addr;
	if (file && !track_file_bias(file, map->start_addr, map->off, &bias)) {
		*ret_vaddr = addr - bias;
		return file;
	}
	if (!map && !(addr >> MADE_SHIFT))
		return track_files_jit_at(a->files, a->pid, addr);
	if (map || addr >> 63)
		return NULL;
	file = track_files_by_id(a->files, (uint32_t)(addr >> MADE_SHIFT) - 1);
	if (file)
		*ret_vaddr = addr & MADE_VADDR_MAX;
	return file;
}

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
		if (hmap_get(&a->bias_by_file, &file->id)) /* the process maps it */
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
		l->mapping = mapping_at(&a->maps, l->address);
	}
	free(file);
	return 0;
}

static int replace_mappings(const struct address_map *a, struct profile *p)
{
	const struct proc_map *map;
	int err = 0;

	p->mappings.cnt = 0;
	vec_each(&a->maps.maps, map) {
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

int process_text_write(const struct result_source *src, const struct result_request *r,
		       struct profile *p, int fd)
{
	const struct report_options opts = {
		.format = REPORT_HEAP,
		.heap_form = REPORT_HEAP_ADDRESSES,
		.heap_is_growth = r->endpoint == ENDPOINT_REMOTE_GROWTH,
	};
	struct address_map a;
	FILE *out;
	int err = address_map_read(src->reader, src->files, r->pid, &a);

	if (!err)
		err = place_locations(src->files, &a, p);
	if (!err)
		err = replace_mappings(&a, p);
	if (!err)
		err = fd_stream_open(fd, &out);
	if (!err)
		err = fd_stream_close(out, report_write(p, &opts, out));
	address_map_release(&a);
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

static int put_places(const struct symbol_options *opts, struct place *places, size_t cnt,
		      FILE *out)
{
	size_t first = 0, n;
	int err = 0;

	qsort(places, cnt, sizeof(*places), compare_places);
	for (; first < cnt && !err; first += n) {
		for (n = 1; first + n < cnt && places[first + n].file == places[first].file;)
			n++;
		if (places[first].file)
			err = put_file(opts, places + first, n, out);
		for (size_t i = first; i < first + n && !places[first].file; i++)
			put_bare(&places[i], out);
	}
	return err;
}

int process_names_write(const struct result_source *src, const struct result_request *r, int fd)
{
	const struct symbol_options opts = result_symbol_options(src, r);
	size_t addr_cnt = r->addrs.addr_cnt;
	struct place *places = calloc(addr_cnt + 1, sizeof(*places));
	struct address_map a;
	FILE *out;
	int err = address_map_read(src->reader, src->files, r->pid, &a);

	if (!err && !places)
		err = -ENOMEM;

	for (size_t i = 0; i < addr_cnt && !err; i++) {
		places[i].addr = r->addrs.addrs[i];
		places[i].file = address_map_place(&a, places[i].addr, &places[i].vaddr);
	}
	if (!err)
		err = fd_stream_open(fd, &out);
	if (!err)
		err = fd_stream_close(out, put_places(&opts, places, addr_cnt, out));
	address_map_release(&a);
	free(places);
	return err;
}
