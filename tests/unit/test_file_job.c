/* SPDX-License-Identifier: MIT */
/*
 * test_file_job.c - what a job says of a file comes back as it was read, and what is wrong in it is refused.
 */
#include "unit.h"

#include "elf/elf_file.h"
#include "elf/unwind_table.h"
#include "alloc/allocators.h"
#include "proc/process.h"
#include "proc/reader.h"
#include "track/file_content.h"

static struct reader *by_reader;

static const struct alloc_options opts;

static int open_libc(char *path, size_t path_bytes)
{
	struct proc_maps maps;
	const struct proc_map *m;
	int fd = -1;

	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	vec_each(&maps.maps, m)
		if (fd < 0 && strstr(m->path, "/libc.so")) {
			strncpy(path, m->path, path_bytes - 1);
			fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	proc_maps_release(&maps);
	assert_true(fd >= 0);
	return fd;
}

static void read_here(int fd, const char *path, struct file_content *ret)
{
	const struct file_source source = { path, "", false, true, true };
	struct elf_file *ef, *debug;

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	debug = file_content_open_debug(ef, &source);
	assert_int_equal(file_content_read(ef, debug, &source, &opts, ret), 0);
	elf_file_close(debug);
	elf_file_close(ef);
}

static void assert_same(const struct file_content *a, const struct file_content *b)
{
	assert_string_equal(a->build_id_hex, b->build_id_hex);
	assert_int_equal(a->exec.cnt, b->exec.cnt);
	assert_memory_equal(a->exec.data, b->exec.data, a->exec.cnt * sizeof(*a->exec.data));
	assert_non_null(a->alloc);
	assert_non_null(b->alloc);
	assert_string_equal(a->alloc->family, b->alloc->family);
	assert_int_equal(a->alloc->sites.cnt, b->alloc->sites.cnt);
	for (size_t i = 0; i < a->alloc->sites.cnt; i++) {
		const struct alloc_site *x = &a->alloc->sites.data[i];
		const struct alloc_site *y = &b->alloc->sites.data[i];

		assert_ptr_equal(x->row, y->row);
		assert_string_equal(x->symbol, y->symbol);
		assert_true(x->probe_off == y->probe_off && x->cookie == y->cookie &&
			    x->fn_vaddr == y->fn_vaddr && x->needs_return == y->needs_return);
		assert_memory_equal(&x->placement, &y->placement, sizeof(x->placement));
	}
	assert_true(a->loader.loaded_off == b->loader.loaded_off &&
		    a->loader.to_state == b->loader.to_state &&
		    a->loader.traces == b->loader.traces);
	assert_int_equal(a->alloc->inner.cnt, b->alloc->inner.cnt);
	assert_non_null(a->table);
	assert_non_null(b->table);
	assert_true(a->table->first_page == b->table->first_page);
	assert_int_equal(a->table->page_cnt, b->table->page_cnt);
	assert_int_equal(a->table->row_cnt, b->table->row_cnt);
	assert_memory_equal(a->table->rows, b->table->rows,
			    a->table->row_cnt * sizeof(struct ht_row));
	assert_memory_equal(a->table->pages, b->table->pages,
			    a->table->page_cnt * sizeof(struct unwind_page));
}

TEST(it_comes_back)
{
	struct file_content here = { 0 }, back = { 0 };
	char path[4096] = "";
	uint8_t *said;
	size_t bytes;
	int fd = open_libc(path, sizeof(path));

	read_here(fd, path, &here);
	close(fd);
	assert_int_equal(file_job_say(0, &here, &said, &bytes), 0);
	assert_int_equal(file_job_read(said, bytes, &back), 0);
	assert_same(&here, &back);
	free(said);
	file_content_release(&here);
	file_content_release(&back);
}

static bool is_code(const struct file_content *c, uint64_t off)
{
	for (size_t i = 0; i < c->exec.cnt; i++)
		if (off >= c->exec.data[i].off && off - c->exec.data[i].off < c->exec.data[i].bytes)
			return true;
	return false;
}

/* A probe is put where a loader is said to tell debuggers: code, and nothing without one. */
TEST(a_loader_is_one)
{
	struct file_content c = { 0 }, back = { 0 };
	const struct track_loader cases[] = {
		{ 0 },
		{ 0x1000, 16, false },
		{ 0x1fff, 0, true },
		{ 0xfff, 0, false },
		{ 0x2000, 0, false },
		{ 0, 16, false },
		{ UINT64_MAX, 0, true },
	};

	assert_int_equal(vec_push(&c.exec, ((struct track_segment){ 0x1000, 0x1000, 0x401000 })),
			 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint8_t *said;
		size_t bytes;

		c.loader = cases[i];
		assert_int_equal(file_job_say(0, &c, &said, &bytes), 0);
		assert_int_equal(file_job_read(said, bytes, &back), i < 3 ? 0 : -EBADMSG);
		if (i < 3)
			assert_true(back.loader.loaded_off == cases[i].loaded_off &&
				    back.loader.to_state == cases[i].to_state &&
				    back.loader.traces == cases[i].traces);
		file_content_release(&back);
		memset(&back, 0, sizeof(back));
		free(said);
	}
	file_content_release(&c);
}

/* Whatever is said, what is believed of it is sound. */
TEST(what_is_wrong_is_refused)
{
	struct file_content here = { 0 }, back = { 0 };
	char path[4096] = "";
	uint8_t *said, *copy;
	size_t bytes, refused = 0;
	int fd = open_libc(path, sizeof(path));
	unsigned int seed = 1;

	read_here(fd, path, &here);
	close(fd);
	here.table->row_cnt = here.table->row_cnt < 64 ? here.table->row_cnt : 64;
	for (uint32_t i = 0; i < here.table->page_cnt; i++)
		here.table->pages[i].row_cnt = 0;
	assert_int_equal(file_job_say(0, &here, &said, &bytes), 0);
	copy = malloc(bytes + 8);
	assert_non_null(copy);
	/* Cut anywhere, it is not whole; nor with something behind it. */
	for (size_t n = 0; n < bytes; n += n < 4096 ? 1 : 97) {
		assert_int_equal(file_job_read(said, n, &back), -EBADMSG);
		file_content_release(&back);
		memset(&back, 0, sizeof(back));
	}
	memcpy(copy, said, bytes);
	assert_int_equal(file_job_read(copy, bytes + 8, &back), -EBADMSG);
	file_content_release(&back);
	for (int i = 0; i < 20000; i++) {
		memset(&back, 0, sizeof(back));
		memcpy(copy, said, bytes);
		for (int k = 0; k < 4; k++)
			copy[(size_t)rand_r(&seed) % (i & 1 ? bytes : 400)] =
				(uint8_t)rand_r(&seed);
		if (file_job_read(copy, bytes, &back)) {
			refused++;
		} else {
			for (size_t k = 0; back.alloc && k < back.alloc->sites.cnt; k++)
				assert_true(strlen(back.alloc->sites.data[k].row->name) > 0);
			for (uint32_t k = 0; back.table && k < back.table->page_cnt; k++)
				assert_true(!back.table->pages[k].row_cnt ||
					    (uint64_t)back.table->pages[k].first +
							    back.table->pages[k].row_cnt <=
						    back.table->row_cnt);
			assert_true(strlen(back.build_id_hex) < sizeof(back.build_id_hex));
			assert_true(!back.loader.loaded_off ||
				    is_code(&back, back.loader.loaded_off));
		}
		file_content_release(&back);
	}
	assert_true(refused > 1000);
	free(copy);
	free(said);
	file_content_release(&here);
}

static size_t read_all(int fd, uint8_t **ret)
{
	VEC(uint8_t) all = { 0 };
	ssize_t n;

	do {
		assert_int_equal(vec_reserve(&all, all.cnt + 65536), 0);
		n = read(fd, all.data + all.cnt, 65536);
		all.cnt += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	close(fd);
	*ret = all.data;
	return all.cnt;
}

TEST(by_a_job)
{
	struct file_content here = { 0 }, back = { 0 };
	char path[4096] = "";
	int fd = open_libc(path, sizeof(path)), said_fd;
	const struct file_source source = { path, "", false, true, true };
	uint8_t *said;
	size_t bytes;

	assert_int_equal(reader_start(READER_PATIENT_MS, file_job_run, &by_reader), 0);
	read_here(fd, path, &here);
	assert_int_equal(file_job_start(by_reader, 0, fd, 1 << 20, &source, &opts, &said_fd), 0);
	bytes = read_all(said_fd, &said);
	assert_int_equal(file_job_read(said, bytes, &back), 0);
	assert_same(&here, &back);
	free(said);
	close(fd);
	file_content_release(&back);
	file_content_release(&here);
	/* What is no ELF file. */
	memset(&back, 0, sizeof(back));
	fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	assert_int_equal(file_job_start(by_reader, 0, fd, 1000, &source, &opts, &said_fd), 0);
	close(fd);
	bytes = read_all(said_fd, &said);
	assert_int_equal(file_job_read(said, bytes, &back), -ENOEXEC);
	free(said);
	file_content_release(&back);
	reader_end(by_reader);
}

/* The size of a file is whatever its owner says. */
TEST(the_time_is_bounded)
{
	uint64_t last = 0;

	for (uint32_t bits = 0; bits < 64; bits++) {
		uint64_t limit_ns = file_reading_limit_ns(UINT64_MAX >> (63 - bits));

		assert_true(limit_ns >= last && limit_ns < 2 * 3600 * 1000000000ULL);
		last = limit_ns;
	}
}

RUN_TESTS()
