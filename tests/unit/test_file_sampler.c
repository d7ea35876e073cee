/* SPDX-License-Identifier: MIT */
/*
 * test_file_sampler.c - the sampler that this very program brings along: notes of both contracts, found in its
 * own file; and what a job says of it.
 */
#include "unit.h"

#include "alloc/allocators.h"
#include "alloc/file_sampler.h"
#include "elf/elf_file.h"
#include "track/file_content.h"

#if defined(__x86_64__)
#define FIRST_ARG "8@%rdi"
#define ALL_ARGS "8@%rdi 8@%rsi 8@%rdx"
#else
#define FIRST_ARG "8@x0"
#define ALL_ARGS "8@x0 8@x1 8@x2"
#endif

#define NOTE(provider, name, args)                   \
	"990: nop\n"                                 \
	".pushsection .note.stapsdt,\"\",\"note\"\n" \
	".balign 4\n"                                \
	".4byte 8, 992f - 991f, 3\n"                 \
	".asciz \"stapsdt\"\n"                       \
	"991: .8byte 990b, 0, 0\n"                   \
	".asciz \"" provider "\"\n"                  \
	".asciz \"" name "\"\n"                      \
	".asciz \"" args "\"\n"                      \
	"992: .balign 4\n"                           \
	".popsection\n"

/* Never called: it is there to be read. The one contract is whole, the other lacks its frees. */
__attribute__((used, noinline)) static void emit(void)
{
	__asm__ volatile(NOTE("otel_memory", "alloc", ALL_ARGS));
	__asm__ volatile(NOTE("otel_memory", "alloc", ALL_ARGS));
	__asm__ volatile(NOTE("otel_memory", "free", FIRST_ARG));
	__asm__ volatile(NOTE("otel_memory", "mmap", FIRST_ARG));
	__asm__ volatile(NOTE("ddheap", "alloc", ALL_ARGS));
}

TEST(the_program_has_one)
{
	struct file_sampler *s;
	struct elf_file *ef;
	int fd = keep_fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	assert_int_equal(file_sampler_scan(ef, false, &s), 0);
	assert_non_null(s);
	assert_string_equal(s->provider, "otel_memory");
	assert_string_equal(s->problem, "");
	assert_true(s->is_whole);
	assert_int_equal(s->sites.cnt, 3);
	assert_true(s->sites.data[0].is_free);
	assert_false(s->sites.data[1].is_free);
	assert_int_equal(s->sites.data[0].where.ptr.kind, HT_OPERAND_REG);
	assert_int_equal(s->sites.data[0].where.weight.kind, HT_OPERAND_NONE);
	assert_int_equal(s->sites.data[2].where.weight.kind, HT_OPERAND_REG);
	file_sampler_free(s);
	elf_file_close(ef);
}

TEST(libc_has_none)
{
	struct file_sampler *s;
	struct elf_file *ef;
	int fd = keep_fd(open("/bin/sh", O_RDONLY | O_CLOEXEC));

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	assert_int_equal(file_sampler_scan(ef, true, &s), 0);
	assert_null(s);
	elf_file_close(ef);
}

/* What was read of this program. */
static void read_self(struct file_content *c)
{
	const struct alloc_options opts = { 0 };
	const struct file_source source = { .path = "/proc/self/exe", .root = "" };
	struct elf_file *ef;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	assert_int_equal(file_content_read(ef, NULL, &source, &opts, c), 0);
	elf_file_close(ef);
	close(fd);
	assert_non_null(c->sampler);
}

TEST(a_job_says_it)
{
	struct file_content c = { 0 }, back = { 0 };
	uint8_t *said;
	size_t bytes;

	read_self(&c);
	assert_int_equal(file_job_say(0, &c, &said, &bytes), 0);
	assert_int_equal(file_job_read(said, bytes, &back), 0);
	assert_non_null(back.sampler);
	assert_string_equal(back.sampler->provider, "otel_memory");
	assert_true(back.sampler->is_whole);
	assert_int_equal(back.sampler->sites.cnt, 3);
	assert_memory_equal(back.sampler->sites.data, c.sampler->sites.data,
			    3 * sizeof(*c.sampler->sites.data));
	free(said);
	file_content_release(&back);
	file_content_release(&c);
}

/* A probe goes nowhere but into the file's code. */
TEST(a_job_that_lies_is_refused)
{
	struct file_content c = { 0 }, back = { 0 };
	uint8_t *said;
	size_t bytes;

	read_self(&c);
	c.sampler->sites.data[1].off = 1ULL << 40;
	assert_int_equal(file_job_say(0, &c, &said, &bytes), 0);
	assert_int_equal(file_job_read(said, bytes, &back), -EBADMSG);
	free(said);
	file_content_release(&back);
	file_content_release(&c);
}

RUN_TESTS()
