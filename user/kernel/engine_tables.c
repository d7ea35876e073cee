/* SPDX-License-Identifier: MIT */
/*
 * engine_tables.c - writes unwind rows, pages, files and mappings into the maps that the walk reads.
 *
 * Rows live in shards of HT_SHARD_ROWS (1 MiB each), inner arrays of the map `rows`. Shards are made when
 * needed, stay, and are filled through mmap. The rows of one page never straddle two shards. Space that a file
 * leaves behind (engine_del_file) is reused.
 *
 * Mapping sets are inner arrays too: `maps_of` has the set of each process. A set outlives its process and is
 * given to the next one, because entering a set in its outer map waits for a grace period: tens of
 * milliseconds, at times seconds. A thread waits (put_inner()).
 *
 * The walk remembers its results (bpf/step.bpf.h): every change that affects them ends with forget_steps().
 *
 * Order matters because probes read while this writes: rows, then pages, then the file, and only then anything
 * that leads to the file.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/unwind_table.h"
#include "kernel/engine_priv.h"
#include "kernel/slow_call.h"

#define SHARD_BYTES (HT_SHARD_ROWS * sizeof(struct ht_row))
/* As many sets are made at once as exist, but at most this many. */
#define SETS_AT_ONCE 16

int engine_tables_init(struct engine *e)
{
	int err = extents_init(&e->file_ids, 1, HT_FILES_CAP - 1);

	hmap_init(&e->mapping_set_of, sizeof(uint32_t));
	if (!err)
		err = slow_caller_new(&e->slow);
	return err ? err : extents_init(&e->pages, 0, HT_PAGES_CAP);
}

void engine_tables_release(struct engine *e)
{
	struct engine_shard *shard;
	int *fd;

	slow_caller_free(e->slow);
	vec_each(&e->mapping_set_fds, fd)
		close(*fd);
	vec_each(&e->shards, shard) {
		close(shard->fd);
		extents_release(&shard->rows);
	}
	vec_release(&e->mapping_set_fds);
	vec_release(&e->free_mapping_sets);
	vec_release(&e->shards);
	hmap_release(&e->mapping_set_of);
	extents_release(&e->file_ids);
	extents_release(&e->pages);
}

/* Call it after a change. */
static void forget_steps(struct engine *e)
{
	__atomic_fetch_add(&e->skel->bss->step_epoch, 1, __ATOMIC_SEQ_CST);
}

/* Inner maps that enter an outer map at these indexes. */
struct inner_maps {
	int outer_fd;
	uint32_t cnt;
	uint32_t idx[SETS_AT_ONCE];
	int fds[SETS_AT_ONCE];
};

/* All in one grace period; before Linux 5.19 each has its own. */
static int call_put_inner(void *args)
{
	struct inner_maps *in = args;
	uint32_t cnt = in->cnt;

	if (!bpf_map_update_batch(in->outer_fd, in->idx, in->fds, &cnt, NULL))
		return 0;
	for (uint32_t i = 0; i < in->cnt; i++)
		if (bpf_map_update_elem(in->outer_fd, &in->idx[i], &in->fds[i], BPF_ANY))
			return -errno;
	return 0;
}

/* All updates of outer maps go through this. On failure the caller's maps are closed, except those that a call may use yet. */
static int put_inner(struct engine *e, struct inner_maps *in)
{
	int err = slow_call(e->slow, call_put_inner, in, sizeof(*in));

	for (uint32_t i = 0; err && err != -ECANCELED && i < in->cnt; i++)
		close(in->fds[i]);
	return err;
}

void engine_while_waiting(struct engine *e, void (*fn)(void *ctx), void *ctx)
{
	slow_caller_while_waiting(e->slow, fn, ctx);
}

static int shard_new(struct engine *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct inner_maps in = { .outer_fd = bpf_map__fd(e->skel->maps.rows), .cnt = 1 };
	struct engine_shard shard = { 0 };
	int err;

	if (e->shards.cnt >= HT_SHARDS_CAP)
		return -ENOSPC;
	err = vec_reserve(&e->shards, e->shards.cnt + 1);
	if (!err)
		err = extents_init(&shard.rows, 0, HT_SHARD_ROWS);
	if (err)
		return err;
	shard.fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ht_shard", sizeof(uint32_t), SHARD_BYTES, 1,
				  &opts);
	in.idx[0] = e->shards.cnt;
	in.fds[0] = shard.fd;
	err = shard.fd < 0 ? -errno : put_inner(e, &in);
	if (err)
		extents_release(&shard.rows);
	else
		e->shards.data[e->shards.cnt++] = shard;
	return err;
}

/* Take room for the rows of a page: in *ret_shard, from *ret_first on. */
static int take_rows(struct engine *e, uint32_t cnt, uint32_t *ret_shard, uint32_t *ret_first)
{
	int err;

	for (size_t i = 0; i < e->shards.cnt; i++) {
		*ret_shard = i;
		if (!extents_take(&e->shards.data[i].rows, cnt, ret_first))
			return 0;
	}
	err = shard_new(e);
	*ret_shard = e->shards.cnt - 1;
	return err ? err : extents_take(&e->shards.data[*ret_shard].rows, cnt, ret_first);
}

/* The shard being written, mapped. */
struct shard_view {
	uint32_t idx;
	struct ht_row *rows; /* NULL: none */
};

static void shard_unmap(struct shard_view *v)
{
	if (v->rows)
		munmap(v->rows, SHARD_BYTES);
	v->rows = NULL;
}

/* NULL and errno: it cannot be mapped. */
static struct ht_row *shard_map(struct engine *e, uint32_t idx, struct shard_view *v)
{
	void *data;

	if (v->rows && v->idx == idx)
		return v->rows;
	shard_unmap(v);
	data = mmap(NULL, SHARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, e->shards.data[idx].fd,
		    0);
	if (data == MAP_FAILED)
		return NULL;
	v->rows = data;
	v->idx = idx;
	return v->rows;
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
		    struct shard_view *view, struct ht_page *ret)
{
	uint32_t shard, first;
	struct ht_row *rows;
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!from->row_cnt)
		return 0;
	err = take_rows(e, from->row_cnt, &shard, &first);
	if (err)
		return err;
	ret->shard = shard;
	ret->first = first;
	ret->row_cnt = from->row_cnt;
	rows = shard_map(e, shard, view);
	if (!rows)
		return -errno;
	memcpy(rows + first, t->rows + from->first, from->row_cnt * sizeof(*t->rows));
	index_blocks(t->rows + from->first, from->row_cnt, ret->block);
	return 0;
}

/* Give back the rows of pages that no file has any more. */
static void give_rows(struct engine *e, const struct ht_page *page, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		if (page[i].row_cnt)
			extents_give(&e->shards.data[page[i].shard].rows, page[i].first,
				     page[i].row_cnt);
}

static int put_pages(struct engine *e, const struct unwind_table *t, uint32_t *ret_base)
{
	struct shard_view view = { 0 };
	struct ht_page *page = calloc(t->page_cnt, sizeof(*page));
	uint32_t *key = calloc(t->page_cnt, sizeof(*key)), cnt = t->page_cnt;
	int err = page && key ? extents_take(&e->pages, cnt, ret_base) : -ENOMEM;

	if (err)
		goto out;
	for (uint32_t i = 0; i < t->page_cnt && !err; i++) {
		key[i] = *ret_base + i;
		err = put_page(e, t, &t->pages[i], &view, &page[i]);
	}
	if (!err && bpf_map_update_batch(bpf_map__fd(e->skel->maps.pages), key, page, &cnt, NULL))
		err = -errno;
	if (err) {
		give_rows(e, page, t->page_cnt);
		extents_give(&e->pages, *ret_base, t->page_cnt);
	}
out:
	shard_unmap(&view);
	free(page);
	free(key);
	return err;
}

static void give_pages(struct engine *e, uint32_t base, uint32_t cnt)
{
	struct ht_page page;

	for (uint32_t i = base; i < base + cnt; i++)
		if (!bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.pages), &i, &page))
			give_rows(e, &page, 1);
	extents_give(&e->pages, base, cnt);
}

int engine_add_file(struct engine *e, const struct unwind_table *table,
		    const struct ht_range *inner, size_t inner_cnt, uint32_t flags,
		    uint32_t *ret_file_id)
{
	struct ht_file file = { .flags = flags };
	uint32_t id;
	int err = extents_take(&e->file_ids, 1, &id);

	if (err)
		return err;
	if (table && table->page_cnt) {
		err = put_pages(e, table, &file.pages_base);
		if (err)
			goto out;
		file.first_page = table->first_page;
		file.page_cnt = table->page_cnt;
	}
	file.inner_cnt = inner_cnt < HT_INNER_CAP ? inner_cnt : HT_INNER_CAP;
	if (file.inner_cnt)
		memcpy(file.inner, inner, file.inner_cnt * sizeof(*inner));
	if (bpf_map_update_elem(bpf_map__fd(e->skel->maps.files), &id, &file, BPF_ANY)) {
		err = -errno;
		give_pages(e, file.pages_base, file.page_cnt);
		goto out;
	}
	*ret_file_id = id;
out:
	if (err)
		extents_give(&e->file_ids, id, 1);
	return err;
}

uint64_t engine_unproven_cnt(const struct engine *e, uint32_t file_id)
{
	struct ht_file file;

	return bpf_map_lookup_elem(bpf_map__fd(e->skel->maps.files), &file_id, &file) ?
		       0 :
		       file.unproven_cnt;
}

void engine_del_file(struct engine *e, uint32_t file_id)
{
	static const struct ht_file none;
	struct ht_file file;
	int fd = bpf_map__fd(e->skel->maps.files);

	if (bpf_map_lookup_elem(fd, &file_id, &file) ||
	    bpf_map_update_elem(fd, &file_id, &none, BPF_ANY))
		return;
	forget_steps(e);
	if (file.page_cnt)
		give_pages(e, file.pages_base, file.page_cnt);
	extents_give(&e->file_ids, file_id, 1);
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

int engine_del_inode(struct engine *e, uint64_t ino, uint32_t dev)
{
	struct ht_inode key = { .ino = ino, .dev = dev };

	return bpf_map_delete_elem(bpf_map__fd(e->skel->maps.inodes), &key) ? -errno : 0;
}

/* Double the number of sets, within bounds. One new set is enough for success. */
static int make_sets(struct engine *e)
{
	uint32_t cnt = e->mapping_set_fds.cnt, more = cnt > SETS_AT_ONCE ? SETS_AT_ONCE : cnt;
	struct inner_maps in = { .outer_fd = bpf_map__fd(e->skel->maps.mapping_sets) };
	int err = 0;

	more = more ? more : 1;
	if (more > HT_PROCESSES_CAP - cnt)
		more = HT_PROCESSES_CAP - cnt;
	if (!more)
		return -ENOSPC;
	if (vec_reserve(&e->mapping_set_fds, cnt + more) ||
	    vec_reserve(&e->free_mapping_sets, cnt + more))
		return -ENOMEM;
	for (; in.cnt < more && !err; in.cnt += !err) {
		in.idx[in.cnt] = cnt + in.cnt;
		in.fds[in.cnt] = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ht_mappings", sizeof(uint32_t),
						sizeof(struct ht_mappings), 1, NULL);
		if (in.fds[in.cnt] < 0)
			err = -errno;
	}
	if (in.cnt)
		err = put_inner(e, &in);
	for (uint32_t i = 0; i < in.cnt && !err; i++) {
		e->mapping_set_fds.data[e->mapping_set_fds.cnt++] = in.fds[i];
		e->free_mapping_sets.data[e->free_mapping_sets.cnt++] = in.idx[i];
	}
	return err;
}

/* Return a descriptor of the process's set; the process gets a set at the first call. */
static int mappings_fd(struct engine *e, uint32_t tgid)
{
	const uint64_t *known = hmap_get(&e->mapping_set_of, &tgid);
	uint32_t idx;
	int err;

	if (known)
		return e->mapping_set_fds.data[*known];
	err = e->free_mapping_sets.cnt ? 0 : make_sets(e);
	if (err)
		return err;
	idx = e->free_mapping_sets.data[e->free_mapping_sets.cnt - 1];
	err = hmap_put(&e->mapping_set_of, &tgid, idx);
	if (err)
		return err;
	if (bpf_map_update_elem(bpf_map__fd(e->skel->maps.maps_of), &tgid, &idx, BPF_ANY)) {
		err = -errno;
		hmap_del(&e->mapping_set_of, &tgid);
		return err;
	}
	e->free_mapping_sets.cnt--;
	return e->mapping_set_fds.data[idx];
}

/*
 * The array is overwritten in place: replacing it in the outer map would wait for a grace period, tens of
 * milliseconds in which the walk has to ask the kernel for every mapping. It is first written with a generation
 * that nobody has, so that no walk that begins meanwhile trusts it, then with the right generation and the same
 * content. A walk that was already inside its search may see the change.
 */
int engine_put_mappings(struct engine *e, pid_t tgid, uint32_t generation, uint32_t jit_file_id,
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
	set->jit_file_id = jit_file_id;
	set->jit_generation = generation;
	if (cnt)
		memcpy(set->mapping, map, cnt * sizeof(*map));
	if (bpf_map_update_elem(fd, &zero, set, BPF_ANY))
		err = -errno;
	set->generation = generation;
	if (!err && bpf_map_update_elem(fd, &zero, set, BPF_ANY))
		err = -errno;
	forget_steps(e);
	free(set);
	return err;
}

int engine_del_mappings(struct engine *e, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid;
	const uint64_t *idx = hmap_get(&e->mapping_set_of, &key);

	if (!idx)
		return -ENOENT;
	e->free_mapping_sets.data[e->free_mapping_sets.cnt++] = (uint32_t)*idx;
	hmap_del(&e->mapping_set_of, &key);
	return bpf_map_delete_elem(bpf_map__fd(e->skel->maps.maps_of), &key) ? -errno : 0;
}
