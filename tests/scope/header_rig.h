/* SPDX-License-Identifier: MIT */
/*
 * header_rig.h - heaptap/scope.h of the test program itself, as a reader sees it (reader.h). A test
 * runs its group with setup().
 */
#ifndef HT_TEST_HEADER_RIG_H
#define HT_TEST_HEADER_RIG_H

#include <stdint.h>
#include <sys/wait.h>

#include "heaptap/scope.h"

#include "../unit/unit.h"

#include "reader.h"

static struct reader_notes notes;
static uintptr_t desc;
static char text[1024];

static inline const char *current(void)
{
	return reader_current(desc, text, sizeof(text));
}
static inline uint64_t record(int off)
{
	return reader_u64(reader_record(desc) + off);
}
static inline unsigned depth(void)
{
	return (unsigned)(record(0) >> 48);
}
static inline uint32_t overflows(void)
{
	return reader_u32(desc + 60);
}
static inline uint32_t underflows(void)
{
	return reader_u32(desc + 72);
}
static inline uint32_t truncations(void)
{
	return reader_u32(desc + 76);
}
static inline uint32_t node_cnt(void)
{
	return reader_u32(desc + 52);
}

static inline void push_numbered(const char *prefix, int i)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%d", prefix, i);
	heaptap_push(name);
}

/* In a process of its own: what fills the table would spoil the other tests. */
static inline void in_child(void (*function)(void))
{
	pid_t pid = fork();
	int status = -1;

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(300);
		function();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
#define CHILD_ASSERT(x)                                                           \
	do {                                                                      \
		if (!(x)) {                                                       \
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #x); \
			_exit(1);                                                 \
		}                                                                 \
	} while (0)

static inline int setup(void **state)
{
	if (reader_image_of(&notes, &notes))
		return -1;
	desc = notes.descriptor;
	return desc ? 0 : -1;
}

#endif
