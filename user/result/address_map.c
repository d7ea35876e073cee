/* SPDX-License-Identifier: MIT */
/* address_map.c - see address_map.h. */
#include "result/address_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hmap.h"
#include "proc/process.h"
#include "track/files.h"

/* Programs have addresses below 2^47 (2^56 if they ask for more). Readers want addresses below 2^63. */
#define MADE_SHIFT 48
#define MADE_ID_CAP 0x7ffeU
#define MADE_VADDR_MAX ((1ULL << MADE_SHIFT) - 1)

struct address_map {
	const struct track_files *files;
	pid_t pid; /* 0: no process */
	struct proc_maps maps; /* executable mappings of files */
	struct hmap bias_by_file; /* file id -> bias of its first mapping */
};

static int note_bias(struct address_map *a, const struct proc_map *map)
{
	const struct track_file *file = track_files_find(a->files, map);
	uint64_t bias;

	if (!file || hmap_get(&a->bias_by_file, &file->id) ||
	    track_file_bias(file, map->start_addr, map->off, &bias))
		return 0;
	return hmap_put(&a->bias_by_file, &file->id, bias);
}

int address_map_of(const struct track_files *files, struct proc_maps *maps,
		   struct address_map **ret)
{
	struct address_map *a = calloc(1, sizeof(*a));
	size_t kept = 0;
	int err = 0;

	if (!a) {
		proc_maps_release(maps);
		return -ENOMEM;
	}
	a->files = files;
	a->maps = *maps;
	*maps = (struct proc_maps){ 0 };
	hmap_init(&a->bias_by_file, sizeof(uint32_t));
	for (size_t i = 0; i < a->maps.maps.cnt && !err; i++) {
		const struct proc_map *map = &a->maps.maps.data[i];

		/* [vsyscall] is in the kernel's half. */
		if (!map->is_exec || !*map->path || map->start_addr >> 63)
			continue;
		err = note_bias(a, map);
		a->maps.maps.data[kept++] = *map;
	}
	if (err) {
		address_map_free(a);
		return err;
	}
	a->maps.maps.cnt = kept;
	*ret = a;
	return 0;
}

int address_map_new(const struct track_files *files, pid_t pid, struct address_map **ret)
{
	struct process_info info;
	struct proc_maps maps = { 0 };
	int err = process_info_read(pid, &info);

	if (!err)
		err = proc_maps_read(pid, info.live_tid, &maps);
	if (!err)
		err = address_map_of(files, &maps, ret);
	if (!err)
		(*ret)->pid = info.tgid;
	return err;
}

void address_map_free(struct address_map *a)
{
	if (!a)
		return;
	proc_maps_release(&a->maps);
	hmap_release(&a->bias_by_file);
	free(a);
}

bool address_map_has(const struct address_map *a, const struct track_file *file)
{
	return hmap_get(&a->bias_by_file, &file->id);
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

const struct proc_maps *address_map_maps(const struct address_map *a)
{
	return &a->maps;
}
