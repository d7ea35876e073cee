/* SPDX-License-Identifier: MIT */
/*
 * heaptap/scope.h with its table from thread to record (for libraries whose TLS is at no fixed
 * offset): threads that begin, end, are too many, and are those of a forked child.
 */
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>

#define HEAPTAP_SCOPE_REGISTRY 1
#include "heaptap/scope.h"

#include "../unit/unit.h"
#include "reader.h"

static uintptr_t desc;

static int setup(void **state)
{
	struct reader_notes notes;

	if (reader_image_of(&desc, &notes))
		return -1;
	desc = notes.descriptor;
	return desc && !reader_complaint(desc) ? 0 : -1;
}

static unsigned entered_cnt(void)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < 1U << HEAPTAP_REGISTRY_SHIFT_; i++) {
		uint32_t tid = heaptap_scope_registry_v1.slot[i].tid;

		cnt += tid != 0 && tid != HEAPTAP_TID_LEFT_;
	}
	return cnt;
}

static void *pushes(void *arg)
{
	char text[64];
	int was_there = reader_record(desc) != 0;

	HEAPTAP_SCOPE("thread");
	if (was_there || strcmp(reader_current(desc, text, sizeof(text)), "thread"))
		return NULL;
	return reader_record(desc) == (uintptr_t)&heaptap_scope_record_v1 ? arg : NULL;
}
static void run_thread(void)
{
	pthread_t thread;
	void *ret;

	assert_int_equal(pthread_create(&thread, NULL, pushes, &desc), 0);
	pthread_join(thread, &ret);
	assert_ptr_equal(ret, &desc);
}

TEST(mode_is_published)
{
	assert_int_equal(*(const uint8_t *)(desc + 20), 3);
	assert_ptr_equal(reader_u64(desc + 88), &heaptap_scope_registry_v1);
}

TEST(threads_come_and_go)
{
	unsigned before;

	heaptap_push("main");
	heaptap_pop();
	before = entered_cnt();
	assert_int_equal(before, 1);
	/* three times as many as the table holds at once */
	for (int i = 0; i < 3 << HEAPTAP_REGISTRY_SHIFT_; i++)
		run_thread();
	assert_int_equal(entered_cnt(), before);
	assert_int_equal(reader_u32(desc + 60), 0);
}

static void *finds_no_room(void *arg)
{
	HEAPTAP_SCOPE("nobody sees this");

	return reader_record(desc) ? NULL : arg;
}
TEST(threads_may_be_too_many)
{
	static struct heaptap_registry_ saved;
	pthread_t thread;
	void *ret;

	saved = heaptap_scope_registry_v1;
	for (unsigned i = 0; i < 1U << HEAPTAP_REGISTRY_SHIFT_; i++)
		heaptap_scope_registry_v1.slot[i].tid = 0x7fffffff;
	assert_int_equal(pthread_create(&thread, NULL, finds_no_room, &saved), 0);
	pthread_join(thread, &ret);
	heaptap_scope_registry_v1 = saved;
	assert_ptr_equal(ret, &saved);
	assert_int_equal(reader_u32(desc + 60), 1);
	run_thread();
}

TEST(child_has_its_own_number)
{
	char text[64];
	int status = -1;
	pid_t pid;

	HEAPTAP_SCOPE("parent");
	pid = fork();
	if (pid == 0) {
		alarm(300);
		_exit(strcmp(reader_current(desc, text, sizeof(text)), "parent") ||
		      entered_cnt() != 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

RUN_TESTS_WITH(setup, NULL)
