/* SPDX-License-Identifier: MIT */
/* jit_areas.c - see tracker_priv.h. */
#include "track/tracker_priv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proc/process.h"
#include "tap/tap.h"

/* A tap is our own code: it has no names to look up, and no stack begins in it. */
static bool is_tap(const struct proc_map *m)
{
	return !strncmp(m->path, TAP_PATH, sizeof(TAP_PATH) - 1);
}

bool jit_can_be_in(const struct proc_map *m, const struct track_files *files)
{
	static const char *const kernels[] = { "[vdso]", "[vvar", "[vsyscall]", "[uprobes]" };

	if (is_tap(m))
		return false;
	if (m->ino)
		return track_files_is_other(files, m);
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
		if (!strncmp(m->path, kernels[i], strlen(kernels[i])))
			return false;
	return !(m->start_addr >> 63);
}

static int add(struct jit_areas *to, uint64_t start_addr, uint64_t end_addr)
{
	const struct jit_area area = { start_addr, end_addr };
	size_t cnt = to->area.cnt;

	if (cnt && to->area.data[cnt - 1].end_addr == start_addr) {
		to->area.data[cnt - 1].end_addr = end_addr;
		return 0;
	}
	return vec_push(&to->area, area);
}

/* Add the parts of a mapping that were code before. *next: the first area that may be in it, or behind it. */
static int add_known(struct jit_areas *to, const struct jit_areas *before, size_t *next,
		     const struct proc_map *m)
{
	int err = 0;

	while (*next < before->area.cnt && before->area.data[*next].end_addr <= m->start_addr)
		++*next;
	for (size_t i = *next; i < before->area.cnt && !err; i++) {
		const struct jit_area *area = &before->area.data[i];
		uint64_t start = area->start_addr, end = area->end_addr;

		if (start >= m->end_addr)
			break;
		start = start > m->start_addr ? start : m->start_addr;
		end = end < m->end_addr ? end : m->end_addr;
		err = add(to, start, end);
	}
	return err;
}

int jit_areas_update(struct jit_areas *a, const struct proc_maps *maps,
		     const struct track_files *files)
{
	struct jit_areas now = { 0 };
	const struct proc_map *m;
	size_t next = 0;
	int err = 0;

	vec_each(&maps->maps, m) {
		if (!jit_can_be_in(m, files))
			continue;
		err = m->is_exec ? add(&now, m->start_addr, m->end_addr) :
				   add_known(&now, a, &next, m);
		if (err)
			break;
	}
	if (err) {
		jit_areas_release(&now);
		return err;
	}
	jit_areas_release(a);
	*a = now;
	return 0;
}

void jit_areas_release(struct jit_areas *a)
{
	vec_release(&a->area);
}
