/* SPDX-License-Identifier: MIT */
/*
 * fuzz_file_job.c - what a job says of a file, when the file has taken it over.
 *
 * The input is what it says; or, when it begins with 'p', changes of something sound: three bytes each, an offset
 * and a value.
 */
#include "fuzz.h"

#include "elf/unwind_table.h"
#include "alloc/allocators.h"
#include "track/file_content.h"

static void add_site(struct alloc_file *af, size_t row)
{
	struct alloc_site site = { .symbol = "malloc", .fn_vaddr = 0x1000, .probe_off = 0x1004 };
	size_t cnt;

	site.row = &alloc_table(&cnt)[row];
	if (vec_push(&af->sites, site))
		abort();
}

/* Everything that there can be, and little of it. */
static uint8_t *say_sound(size_t *ret_bytes)
{
	struct unwind_page pages[2] = { { 0, 2 }, { 2, 1 } };
	struct ht_row rows[3] = { { 0 } };
	struct unwind_table table = {
		.first_page = 1, .page_cnt = 2, .pages = pages, .rows = rows, .row_cnt = 3
	};
	struct alloc_file af = { .family = "glibc" };
	struct file_tags tags = { 0 };
	struct file_content c = { .alloc = &af, .tags = &tags, .table = &table };
	const struct track_segment segment = { 0, 4096, 0x1000 };
	const struct alloc_range range = { 0x1000, 0x2000 };
	const struct attach_site probe = { .off = 0x1500 };
	uint8_t *said;

	add_site(&af, 0);
	add_site(&af, 3);
	if (vec_push(&c.exec, segment) || vec_push(&af.inner, range) ||
	    vec_push(&tags.readies, probe) || vec_push(&tags.task_exits, probe) ||
	    file_job_say(0, &c, &said, ret_bytes))
		abort();
	vec_release(&c.exec);
	vec_release(&af.sites);
	vec_release(&af.inner);
	vec_release(&tags.readies);
	vec_release(&tags.task_exits);
	return said;
}

static void check(const struct file_content *c)
{
	if (strnlen(c->build_id_hex, sizeof(c->build_id_hex)) == sizeof(c->build_id_hex))
		abort();
	for (size_t i = 0; c->alloc && i < c->alloc->sites.cnt; i++)
		if (!c->alloc->sites.data[i].row->name ||
		    strlen(c->alloc->sites.data[i].symbol) > 63)
			abort();
	for (uint32_t i = 0; c->table && i < c->table->page_cnt; i++)
		if (c->table->pages[i].row_cnt &&
		    (uint64_t)c->table->pages[i].first + c->table->pages[i].row_cnt >
			    c->table->row_cnt)
			abort();
	if (c->tags && c->tags->where.descriptor_cnt > TAG_DESCRIPTORS_CAP)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct file_content c = { 0 };
	uint8_t *said = NULL;
	size_t said_bytes = bytes;

	if (bytes && data[0] == 'p') {
		said = say_sound(&said_bytes);
		for (size_t i = 1; i + 3 <= bytes; i += 3)
			said[(data[i] | (size_t)data[i + 1] << 8) % said_bytes] = data[i + 2];
	}
	if (!file_job_read(said ? said : data, said_bytes, &c))
		check(&c);
	else if (bytes == 1 && said)
		abort(); /* nothing was changed */
	file_content_release(&c);
	free(said);
	return 0;
}
