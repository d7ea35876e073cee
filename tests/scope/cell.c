/* SPDX-License-Identifier: MIT */
/*
 * cell.c - the main unit of cell.h.
 *
 *	cell		the program alone, or with the library that it is linked with (CELL_LIB)
 *	cell FILE	dlopens FILE, twice, while threads are there that are older
 *
 * Exit status 0 when a reader of its ELF notes sees the paths that it is in.
 */
#include <pthread.h>
#ifdef CELL_DLOPEN
#include <dlfcn.h>
#endif

#include "heaptap/scope.h"

#include "cell.h"
#include "reader.h"

#ifndef CELL_NOTES
#define CELL_NOTES 1
#endif
static struct reader_notes notes;

int cell_expect(const void *inside, const char *expected)
{
	struct reader_notes theirs;
	char text[256];

	if (reader_image_of(inside, &theirs) || theirs.descriptor != notes.descriptor) {
		printf("# another unit has another descriptor\n");
		return 1;
	}
	if (!strcmp(reader_current(theirs.descriptor, text, sizeof(text)), expected))
		return 0;
	printf("# in '%s', not '%s'\n", text, expected);
	return 1;
}

static int check_notes(void)
{
	const char *complaint;

	if (reader_image_of(&notes, &notes) || notes.tls_cnt != CELL_NOTES ||
	    notes.node_cnt != CELL_NOTES || notes.task_exit_cnt != CELL_NOTES || notes.differ) {
		printf("# notes: %u, %u, %u\n", notes.tls_cnt, notes.node_cnt, notes.task_exit_cnt);
		return 1;
	}
	complaint = reader_complaint(notes.descriptor);
	if (complaint)
		printf("# descriptor: %s\n", complaint);
	return complaint != NULL;
}

static int check_paths(void)
{
	int bad;

	{
		HEAPTAP_SCOPE("Top");
		bad = cell_part();
		bad |= cell_expect(&notes, "Top");
	}
	return bad | cell_expect(&notes, "");
}

static void *in_thread(void *arg)
{
	return check_paths() ? NULL : arg;
}

#ifdef CELL_DLOPEN
static pthread_barrier_t opened;
static int (*lib)(unsigned long *);

static int call_lib(void)
{
	unsigned long theirs = 0;

	return lib(&theirs) || !theirs || theirs == notes.descriptor;
}
static void *older(void *arg)
{
	pthread_barrier_wait(&opened);
	return call_lib() ? NULL : arg;
}

static int check_dlopen(const char *file)
{
	pthread_t thread;
	void *handle, *ret;
	int bad;

	pthread_barrier_init(&opened, NULL, 2);
	if (pthread_create(&thread, NULL, older, &notes))
		return 1;
	handle = dlopen(file, RTLD_NOW);
	if (!handle) {
		printf("# %s\n", dlerror());
		exit(1);
	}
	*(void **)&lib = dlsym(handle, "cell_lib");
	bad = call_lib();
	pthread_barrier_wait(&opened);
	pthread_join(thread, &ret);
	dlclose(handle);
	return bad || !ret;
}
#endif

int main(int argc, char **argv)
{
	pthread_t thread;
	void *ret;
	int bad;

	(void)argc;
	(void)argv;
	if (check_notes() || check_paths())
		return 1;
	if (pthread_create(&thread, NULL, in_thread, &notes))
		return 1;
	pthread_join(thread, &ret);
	bad = !ret;
#if defined(CELL_DLOPEN)
	bad |= check_dlopen(argv[1]) || check_dlopen(argv[1]);
#elif defined(CELL_LIB)
	{
		unsigned long theirs = 0;

		bad |= cell_lib(&theirs) || theirs == notes.descriptor;
	}
#endif
	bad |= check_paths();
	return bad;
}
