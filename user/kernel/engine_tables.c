/* SPDX-License-Identifier: MIT */
/*
 * engine_tables.c - unwind rows, pages, files and mappings into the maps that the walk reads.
 *
 * Rows live in shards of HT_SHARD_ROWS (1 MiB each), inner arrays of the map `rows` that are
 * made when they are needed, filled through mmap and unmapped when full. The rows of one page
 * never straddle two shards. Files are appended and stay for the life of the engine.
 *
 * Order matters because probes read while this writes: rows, then pages, then the file, and only
 * then anything that leads to the file.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/unwind_table.h"
#include "kernel/engine_priv.h"

#define SHARD_BYTES (HT_SHARD_ROWS * sizeof(struct ht_row))

static void shard_unmap(struct engine *e)
{
	if (!e->shard)
		return;
	munmap(e->shard, SHARD_BYTES);
	close(e->shard_fd);
	e->shard = NULL;
}

void engine_tables_release(struct engine *e)
{
	const void *key;
	size_t pos = 0;
	uint64_t fd;

	while (hmap_next(&e->mapping_fds, &pos, &key, &fd))
		close((int)fd);
	hmap_release(&e->mapping_fds);
	shard_unmap(e);
}

static int shard_new(struct engine *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	uint32_t idx = e->shard_cnt;
	void *data;
	int fd, err;

	if (idx >= HT_SHARDS_CAP)
		return -ENOSPC;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ht_shard", sizeof(uint32_t), SHARD_BYTES, 1,
			    &opts);
	if (fd < 0)
		return -errno;
	data = mmap(NULL, SHARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED) {
		err = -errno;
		goto out;
	}
	if (bpf_map_update_elem(bpf_map__fd(e->skel->maps.rows), &idx, &fd, BPF_ANY)) {
		err = -errno;
		munmap(data, SHARD_BYTES);
		goto out;
	}
	shard_unmap(e);
	e->shard = data;
	e->shard_fd = fd;
	e->shard_rows = 0;
	e->shard_cnt++;
	return 0;
out:
	close(fd);
	return err;
}

/* See struct ht_page: block[i] is the last row whose pc is not beyond the start of block i. */
static void index_blocks(const struct ht_row *rows, uint32_t row_cnt, uint16_t *block)
{
	uint32_t row = 0;

	for (uint32_t i = 0; i < HT_BLOCK_CNT; i++) {
		while (row + 1 < row_cnt && rows[row + 1].pc_lo <= i << HT_BLOCK_SHIFT)
			row++;
		block[i] = row;
	}
	block[HT_BLOCK_CNT] = row_cnt - 1;
}

static int put_page(struct engine *e, const struct unwind_table *t, const struct unwind_page *from,
		    struct ht_page *ret)
{
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!from->row_cnt)
		return 0;
	if (!e->shard || e->shard_rows + from->row_cnt > HT_SHARD_ROWS) {
		err = shard_new(e);
		if (err)
			return err;
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): shard_new() has set it */
	memcpy(e->shard + e->shard_rows, t->rows + from->first, from->row_cnt * sizeof(*t->rows));
	ret->shard = e->shard_cnt - 1;
	ret->first = e->shard_rows;
	ret->row_cnt = from->row_cnt;
	index_blocks(t->rows + from->first, from->row_cnt, ret->block);
	e->shard_rows += from->row_cnt;
	return 0;
}

static int put_pages(struct engine *e, const struct unwind_table *t, uint32_t *ret_base)
{
	struct ht_page *page = NULL;
	uint32_t *key = NULL, cnt = t->page_cnt, base = e->next_page;
	int err = 0;

	if (cnt > HT_PAGES_CAP - base)
		return -ENOSPC;
	page = calloc(cnt, sizeof(*page));
	key = calloc(cnt, sizeof(*key));
	if (!page || !key) {
		err = -ENOMEM;
		goto out;
	}
	for (uint32_t i = 0; i < cnt; i++) {
		key[i] = base + i;
		err = put_page(e, t, &t->pages[i], &page[i]);
		if (err)
			goto out;
	}
	if (cnt && bpf_map_update_batch(bpf_map__fd(e->skel->maps.pages), key, page, &cnt, NULL)) {
		err = -errno;
		goto out;
	}
	e->next_page = base + t->page_cnt;
	*ret_base = base;
out:
	free(page);
	free(key);
	return err;
}

int engine_add_file(struct engine *e, const struct unwind_table *table,
		    const struct ht_range *inner, size_t inner_cnt, uint32_t *ret_file_id)
{
	struct ht_file file = { 0 };
	uint32_t id = e->next_file_id;
	int err;

	if (id >= HT_FILES_CAP)
		return -ENOSPC;
	if (table) {
		err = put_pages(e, table, &file.pages_base);
		if (err)
			return err;
		file.first_page = table->first_page;
		file.page_cnt = table->page_cnt;
	}
	file.inner_cnt = inner_cnt < HT_INNER_CAP ? inner_cnt : HT_INNER_CAP;
	if (file.inner_cnt)
		memcpy(file.inner, inner, file.inner_cnt * sizeof(*inner));
	if (bpf_map_update_elem(bpf_map__fd(e->skel->maps.files), &id, &file, BPF_ANY))
		return -errno;
	e->next_file_id++;
	*ret_file_id = id;
	return 0;
}

int engine_add_inode(struct engine *e, uint64_t ino, uint32_t dev, uint32_t file_id,
		     uint64_t vaddr_minus_off)
{
	struct ht_inode key = { .ino = ino, .dev = dev };
	struct ht_inode_file value = { .file_id = file_id, .vaddr_minus_off = vaddr_minus_off };

	return bpf_map_update_elem(bpf_map__fd(e->skel->maps.inodes), &key, &value, BPF_ANY) ?
		       -errno :
		       0;
}

/* A process's inner array, made at its first set. */
static int mappings_fd(struct engine *e, uint32_t tgid)
{
	const uint64_t *known = hmap_get(&e->mapping_fds, &tgid);
	int fd, err = 0;

	if (known)
		return (int)*known;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ht_mappings", sizeof(uint32_t),
			    sizeof(struct ht_mappings), 1, NULL);
	if (fd < 0)
		return -errno;
	if (bpf_map_update_elem(bpf_map__fd(e->skel->maps.maps_of), &tgid, &fd, BPF_ANY))
		err = -errno;
	if (!err)
		err = hmap_put(&e->mapping_fds, &tgid, (uint64_t)fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

/*
 * The array is overwritten in place: replacing it in the outer map would wait for a grace period,
 * tens of milliseconds in which the walk has to ask the kernel for every mapping. First with a
 * generation that nobody has, so that no walk that begins meanwhile believes it, then with the
 * right one over the same content. A walk that was inside its search already may see the change.
 */
int engine_put_mappings(struct engine *e, pid_t tgid, uint32_t generation,
			const struct ht_mapping *map, size_t cnt)
{
	struct ht_mappings *set;
	uint32_t zero = 0;
	int fd = mappings_fd(e, (uint32_t)tgid), err = 0;

	if (fd < 0)
		return fd;
	if (cnt > HT_MAPPINGS_CAP)
		cnt = HT_MAPPINGS_CAP;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -ENOMEM;
	set->mapping_cnt = (uint32_t)cnt;
	set->generation = HT_GENERATION_NONE;
	if (cnt)
		memcpy(set->mapping, map, cnt * sizeof(*map));
	if (bpf_map_update_elem(fd, &zero, set, BPF_ANY))
		err = -errno;
	set->generation = generation;
	if (!err && bpf_map_update_elem(fd, &zero, set, BPF_ANY))
		err = -errno;
	free(set);
	return err;
}

int engine_del_mappings(struct engine *e, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid;
	const uint64_t *fd = hmap_get(&e->mapping_fds, &key);

	if (!fd)
		return -ENOENT;
	close((int)*fd);
	hmap_del(&e->mapping_fds, &key);
	return bpf_map_delete_elem(bpf_map__fd(e->skel->maps.maps_of), &key) ? -errno : 0;
}

uint64_t engine_table_bytes(const struct engine *e)
{
	return (uint64_t)e->shard_cnt * SHARD_BYTES + e->next_page * sizeof(struct ht_page);
}
