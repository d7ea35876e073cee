/* SPDX-License-Identifier: MIT */
/* live_files.c - see live_files.h. */
#include "serve/live_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "track/files.h"
#include "track/probes.h"
#include "track/tracker.h"

static int by_processes(const void *a, const void *b)
{
	const struct serve_file *x = a, *y = b;

	if (x->process_cnt != y->process_cnt)
		return x->process_cnt < y->process_cnt ? 1 : -1;
	return strcmp(x->path, y->path);
}

/* The file may be forgotten before the page is shown: its path is copied. */
static int add(struct live_files *lf, const struct probes_file *file)
{
	struct serve_file row = {
		.path = strdup(file->file->path),
		.id = file->file->id,
		.way = plan_way_name(file->way),
		.process_cnt = (double)file->process_cnt,
		.hit_seconds = file->hit_ns / 1e9,
	};

	if (!row.path || vec_push(&lf->list, row)) {
		free((void *)row.path);
		return -ENOMEM;
	}
	return 0;
}

int live_files_make(const struct tracker *t, struct live_files *lf)
{
	const struct probes *probes = tracker_probes(t);
	struct live_files fresh = { 0 };
	struct probes_file file;

	for (size_t i = 0; i < probes_file_cnt(probes); i++) {
		if (probes_file_at(probes, i, &file) && add(&fresh, &file)) {
			live_files_release(&fresh);
			return -ENOMEM;
		}
	}
	if (fresh.list.cnt)
		qsort(fresh.list.data, fresh.list.cnt, sizeof(*fresh.list.data), by_processes);
	live_files_release(lf);
	*lf = fresh;
	return 0;
}

void live_files_release(struct live_files *lf)
{
	struct serve_file *row;

	vec_each(&lf->list, row)
		free((void *)row->path);
	vec_release(&lf->list);
}
