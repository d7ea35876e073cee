/* SPDX-License-Identifier: MIT */
/* test_survey_tags.c - what is said of the tags of a process: of this one, which has all kinds. */
#include "unit.h"

#include <sys/wait.h>

#include "elf/elf_file.h"
#include "heaptap/scope.h"
#include "proc/process.h"
#include "proc/survey.h"
#include "proc/tag_sources.h"

#define EXPORTED extern __attribute__((visibility("default")))
EXPORTED __thread void *volatile otel_thread_ctx_v1, *volatile custom_labels_current_set;
__thread void *volatile otel_thread_ctx_v1, *volatile custom_labels_current_set;
/* A version that nobody has written yet. */
EXPORTED uint32_t custom_labels_abi_version;
uint32_t custom_labels_abi_version = 9;

static uintptr_t thread_pointer(void)
{
	uintptr_t tp;

#ifdef __x86_64__
	__asm__ volatile("mov %%fs:0, %0" : "=r"(tp));
#else
	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(tp));
#endif
	return tp;
}

static struct elf_file *open_self(uint64_t *ret_bias)
{
	struct proc_maps maps = { 0 };
	const struct proc_map *m;
	struct elf_file *ef;
	uint64_t vaddr;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(elf_file_open_fd(fd, &ef), 0);
	close(fd);
	assert_int_equal(proc_maps_read(NULL, getpid(), 0, &maps), 0);
	m = proc_maps_find(&maps, (uintptr_t)open_self);
	assert_non_null(m);
	assert_int_equal(elf_file_code_vaddr(ef, m->off, &vaddr), 0);
	*ret_bias = m->start_addr - vaddr;
	proc_maps_release(&maps);
	return ef;
}

static int survey(pid_t pid, struct survey_tags *ret)
{
	uint64_t bias = 0;
	struct elf_file *ef = open_self(&bias);
	int err = survey_tags_read(pid, ef, bias, 4, ret);

	elf_file_close(ef);
	return err;
}

TEST(test_all_kinds)
{
	struct survey_tags tags = { 0 };
	const struct survey_tag *tag;
	int64_t otel_off;

	HEAPTAP_SCOPE("one", "two");
	assert_int_equal(survey(getpid(), &tags), 0);
	assert_int_equal(tags.all.cnt, 3);
	tag = &tags.all.data[0];
	assert_int_equal(tag->kind, HT_TAG_SCOPE);
	assert_string_equal(tag->problem.text, "");
	assert_true(tag->has_descriptor);
	assert_int_equal(tag->tls_mode, heaptap_scope_v1.tls_mode);
	assert_int_equal(tag->tls_off, heaptap_scope_v1.tls_off);
	assert_int_equal(tag->descriptor.node_cnt, 3); /* with the root */
	tag = &tags.all.data[1];
	assert_int_equal(tag->kind, HT_TAG_OTEL);
	assert_string_equal(tag->problem.text, "");
	assert_int_equal(tag->tls_mode, HT_TLS_STATIC);
	otel_off = (int64_t)((uintptr_t)&otel_thread_ctx_v1 - thread_pointer());
	assert_int_equal(tag->tls_off, otel_off);
	tag = &tags.all.data[2];
	assert_int_equal(tag->kind, HT_TAG_CUSTOM);
	assert_says(tag->problem.text, "unknown ABI version");
	vec_release(&tags.all);
}

/* The descriptor of a program that was built with a later header, or is not ready. */
TEST(test_descriptor)
{
	static const struct {
		uint16_t major;
		const char *magic, *problem;
		bool has_descriptor;
	} cases[] = {
		{ 1, "HEAPTAP", "", true },
		{ 2, "HEAPTAP", "version 2.0", false },
		{ 1, "HEAPPAT", "no scope descriptor", false },
	};
	uint8_t *raw = (uint8_t *)&heaptap_scope_v1, saved[SCOPE_DESCRIPTOR_BYTES];
	struct survey_tags tags = { 0 };

	memcpy(saved, raw, sizeof(saved));
	each_case(c, cases) {
		const struct survey_tag *tag;

		memcpy(raw + 2, &c->major, 2);
		memcpy(raw + 8, c->magic, 8);
		assert_int_equal(survey(getpid(), &tags), 0);
		tag = &tags.all.data[0];
		assert_int_equal(tag->has_descriptor, c->has_descriptor);
		assert_says(tag->problem.text, c->problem);
		assert_int_equal(!tag->problem.text[0], c->has_descriptor);
		vec_release(&tags.all);
	}
	memset(raw, 0, sizeof(saved));
	assert_int_equal(survey(getpid(), &tags), 0);
	assert_false(tags.all.data[0].has_descriptor);
	assert_string_equal(tags.all.data[0].problem.text, "");
	assert_int_equal(tags.all.data[0].tls_mode, HT_TLS_NOT_READY);
	vec_release(&tags.all);
	memcpy(raw, saved, sizeof(saved));
}

TEST(test_gone)
{
	struct survey_tags tags = { 0 };
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(survey(pid, &tags), -ESRCH);
	vec_release(&tags.all);
}

RUN_TESTS()
