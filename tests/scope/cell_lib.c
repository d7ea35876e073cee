/* SPDX-License-Identifier: MIT */
/* Of cell.h: the library. Alone in checking itself, so that it can be dlopened by anything. */
#include <pthread.h>

#include "heaptap/scope.h"

#include "cell.h"
#include "reader.h"

static uintptr_t descriptor;

int cell_lib_expect(const char *expected)
{
	char text[256];

	if (!strcmp(reader_current(descriptor, text, sizeof(text)), expected))
		return 0;
	printf("# the library is in '%s', not '%s'\n", text, expected);
	return 1;
}

static void *in_thread(void *arg)
{
	HEAPTAP_SCOPE("Thread");

	return cell_lib_expect("Thread") ? NULL : arg;
}

int cell_lib(unsigned long *ret_descriptor)
{
	struct reader_notes notes;
	pthread_t thread;
	void *ret;
	int bad;

	HEAPTAP_SCOPE("Lib");
	if (reader_image_of(&descriptor, &notes) || notes.tls_cnt != 1 || notes.node_cnt != 1 ||
	    notes.task_exit_cnt != 1 || notes.differ || reader_complaint(notes.descriptor)) {
		printf("# the library's notes: %u, %u, %u\n", notes.tls_cnt, notes.node_cnt,
		       notes.task_exit_cnt);
		return 1;
	}
	descriptor = notes.descriptor;
	*ret_descriptor = descriptor;
	bad = cell_lib_part();
	if (pthread_create(&thread, NULL, in_thread, &bad))
		return 1;
	pthread_join(thread, &ret);
	return bad || !ret;
}
