/* SPDX-License-Identifier: MIT */
/* started.c - see recorder_priv.h. */
#include "record/recorder_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "record/targets.h"
#include "proc/launch.h"
#include "track/tracker.h"

/* Paths that the program will map, from launch_libraries(). */
struct path_list {
	VEC(char *) path;
	int err;
};

static void on_library(void *ctx, const char *path)
{
	struct path_list *list = ctx;
	char *copy = strdup(path);

	if (!copy || vec_push(&list->path, copy)) {
		free(copy);
		list->err = -ENOMEM;
	}
}

int started_track(struct tracker *tracker, struct target *t, char *const argv[])
{
	struct path_list list = { 0 };
	int err = launch_libraries(argv, on_library, &list);

	if (err >= 0)
		err = list.err;
	if (!err) {
		const char *const *paths = (const char *const *)list.path.data;

		heap_kind_of_files(paths, list.path.cnt, &t->heap);
		err = tracker_add_launch(tracker, t->pid, paths, list.path.cnt);
	}
	for (size_t i = 0; i < list.path.cnt; i++)
		free(list.path.data[i]);
	vec_release(&list.path);
	return err;
}
