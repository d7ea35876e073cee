/* SPDX-License-Identifier: MIT */
/*
 * test_elf_cost.c - what reading a file may cost, whatever is in it.
 *
 * Files that ask for as much work as they can (costly_elf.h) go the whole way of an attach. Times are of the
 * processor, and of a build with sanitizers; without limits most of the files take minutes, or gigabytes.
 */
#include "unit.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../lib/find_row.h"
#include "costly_elf.h"
#include "whole.h"
#include "elf/elf_budget.h"
#include "elf/elf_file.h"
#include "elf/unwind_table.h"
#include "alloc/allocators.h"
#include "track/file_content.h"

#define SMALL_BYTES (2UL << 20)
#define LARGE_BYTES (32UL << 20)
#define SECONDS_CAP 8.0
#define MEMORY_KB_CAP (1L << 20) /* with what sanitizers keep */
/* Of its budget: what is far above all real files, of which none was found that took more than a quarter. */
#define REAL_PARTS 2

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct elf_budget read_file(struct elf_file *ef, struct file_content *ret)
{
	const struct file_source source = { "/none", "", false, true, true };
	const struct alloc_options opts = { 0 };

	struct elf_file *debug = file_content_open_debug(ef, &source);

	assert_int_equal(file_content_read(ef, debug, &source, &opts, ret), 0);
	elf_file_close(debug);
	return *elf_file_budget(ef);
}

static int file_of(const struct costly *c)
{
	int fd = memfd_create("costly", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, c->data, c->bytes), c->bytes);
	return fd;
}

/* In a child, whose memory and time are its own. Returns its status. */
static int read_costly(const struct costly_kind *kind, size_t size)
{
	struct file_content content = { 0 };
	struct elf_file *ef = NULL;
	struct elf_budget cost;
	struct rusage usage;
	struct costly c;
	double start;
	int fd;

	kind->make(&c, size);
	fd = file_of(&c);
	free(c.data);
	start = cpu_seconds();
	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	cost = read_file(ef, &content);
	elf_file_close(ef);
	getrusage(RUSAGE_SELF, &usage);
	print_message("%s, %zu MB: %.1f s, %.1f million steps, %.1f MB, peak %ld MB%s\n",
		      kind->name, c.bytes >> 20, cpu_seconds() - start, (double)cost.steps / 1e6,
		      (double)cost.bytes / 1e6, usage.ru_maxrss >> 10,
		      content.is_partly_read ? ", partly read" : "");
	if (cpu_seconds() - start > SECONDS_CAP || usage.ru_maxrss > MEMORY_KB_CAP)
		return 1;
	if (cost.steps > ELF_BASE_STEPS + c.bytes / ELF_BYTES_PER_STEP ||
	    cost.bytes > ELF_BASE_BYTES + ELF_BYTES_PER_BYTE * c.bytes)
		return 2;
	/* What was not read is said. */
	if (content.is_partly_read != (cost.is_over || c.phdr_cnt > 1170))
		return 3;
	file_content_release(&content);
	return 0;
}

static void check(const struct costly_kind *kind, size_t size)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(100); /* for those that would take hours */
		status = read_costly(kind, size);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("%s, %zu bytes: status %x", kind->name, size, (unsigned int)status);
}

TEST(test_small_files)
{
	for (size_t i = 0; i < COSTLY_KIND_CNT; i++)
		check(&costly_kinds[i], SMALL_BYTES);
}

TEST(test_large_files)
{
	for (size_t i = 0; i < COSTLY_KIND_CNT; i += is_whole() ? 1 : 2)
		check(&costly_kinds[i], LARGE_BYTES);
}

/* A sparse file that claims a table of gigabytes: its holes are not read into memory. */
TEST(test_holes)
{
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	struct file_content content = { 0 };
	struct elf_file *ef = NULL;
	struct elf_budget cost;
	struct costly c;
	Elf64_Shdr *sh;

	costly_segments_symbols(&c, 1 << 16);
	sh = (Elf64_Shdr *)(c.data + ((Elf64_Ehdr *)c.data)->e_shoff);
	for (size_t i = 0; i < c.shdr_cnt; i++)
		if (sh[i].sh_type == SHT_SYMTAB)
			sh[i].sh_size = 384UL << 20;
	assert_int_equal(write(fd, c.data, c.bytes), c.bytes);
	assert_int_equal(ftruncate(fd, 64L << 30), 0);
	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	close(fd);
	cost = read_file(ef, &content);
	assert_true(cost.bytes < 2UL << 30);
	assert_true(cost.steps <= ELF_STEPS_CAP);
	file_content_release(&content);
	elf_file_close(ef);
	free(c.data);
}

/* What is read as far as it got is right as far as it goes: the table ends, and nothing is made up. */
TEST(test_table_ends)
{
	struct unwind_table *whole = NULL, *part = NULL;
	struct elf_file *ef = NULL;
	uint64_t bytes, same = 0;
	struct costly c;
	int err;

	costly_begin(&c, 1);
	costly_section(&c, (Elf64_Shdr){ .sh_name = costly_name(".eh_frame"),
					 .sh_type = SHT_PROGBITS,
					 .sh_offset = costly_fdes(&c, 1 << 20, 8, &bytes),
					 .sh_size = bytes });
	c.shdrs[1].sh_size = bytes;
	costly_end(&c);
	assert_int_equal(elf_file_open_mem(c.data, c.bytes, &ef), 0);
	assert_int_equal(unwind_table_build(ef, NULL, &whole), 0);
	elf_file_close(ef);
	assert_int_equal(elf_file_open_mem(c.data, c.bytes, &ef), 0);
	/* leave a tenth of what it needs besides listing them */
	elf_file_step(ef, elf_file_budget(ef)->steps_cap - elf_file_budget(ef)->steps -
				  whole->fde_cnt * 13 / 10);
	err = unwind_table_build(ef, NULL, &part);
	assert_int_equal(err, 0);
	assert_true(elf_file_is_partly_read(ef));
	assert_true(part->row_cnt < whole->row_cnt);
	for (uint64_t pc = COSTLY_TEXT_VADDR; pc < COSTLY_TEXT_VADDR + 4UL * whole->fde_cnt;
	     pc += 2) {
		const struct ht_row *a = find_row(whole, pc);
		const struct ht_row *b = find_row(part, pc);

		if (!b || b->cfa == HT_CFA_NONE)
			continue;
		same++;
		assert_non_null(a);
		assert_int_equal(a->cfa, b->cfa);
		assert_int_equal(a->cfa_off, b->cfa_off);
	}
	assert_true(same > 100);
	unwind_table_free(whole);
	unwind_table_free(part);
	elf_file_close(ef);
	free(c.data);
}

/* Sound files are read as a whole. */
TEST(test_real_files)
{
	static const char *const paths[] = {
		"/proc/self/exe",
		"/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		"/usr/lib/x86_64-linux-gnu/libdav1d.so.6",
		"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
		"/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1",
		"/usr/bin/busybox",
		"/usr/bin/node",
	};

	each_case(c, paths) {
		struct file_content content = { 0 };
		struct elf_file *ef = NULL;
		struct elf_budget cost;

		if (strstr(*c, "LLVM-15") && !is_whole()) /* as LLVM-14 */
			continue;
		if (elf_file_open(*c, &ef))
			continue;
		cost = read_file(ef, &content);
		print_message("%s: %.1f %% of its steps, %.1f %% of its bytes\n", *c,
			      100.0 * (double)cost.steps / (double)cost.steps_cap,
			      100.0 * (double)cost.bytes / (double)cost.bytes_cap);
		assert_false(content.is_partly_read);
		assert_true(cost.steps < cost.steps_cap / REAL_PARTS);
		assert_true(cost.bytes < cost.bytes_cap / REAL_PARTS);
		file_content_release(&content);
		elf_file_close(ef);
	}
}

RUN_TESTS()
