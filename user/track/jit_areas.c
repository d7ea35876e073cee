/* SPDX-License-Identifier: MIT */
/* jit_areas.c - see jit_areas.h. */
#include "track/jit_areas.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "target/process.h"
#include "track/files.h"

/* "[anon:name]" is memory that the program gave a name. The other names are the kernel's. */
static bool is_anonymous(const struct proc_map *m)
{
	return !m->ino &&
	       (!*m->path || !strncmp(m->path, "[anon:", 6) || !strcmp(m->path, "[heap]"));
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

/* The parts of a mapping that were code before. */
static int add_known(struct jit_areas *to, const struct jit_areas *before, const struct proc_map *m)
{
	const struct jit_area *area;
	int err = 0;

	vec_each(&before->area, area) {
		uint64_t start =
			m->start_addr > area->start_addr ? m->start_addr : area->start_addr;
		uint64_t end = m->end_addr < area->end_addr ? m->end_addr : area->end_addr;

		if (start < end && !err)
			err = add(to, start, end);
	}
	return err;
}

int jit_areas_update(struct jit_areas *a, const struct proc_maps *maps,
		     const struct track_files *files)
{
	struct jit_areas now = { 0 };
	const struct proc_map *m;
	int err = 0;

	vec_each(&maps->maps, m) {
		bool can_be = is_anonymous(m) || track_files_is_other(files, m);

		/* [vsyscall] is in the kernel's half. */
		if (!can_be || m->start_addr >> 63)
			continue;
		err = m->is_exec ? add(&now, m->start_addr, m->end_addr) : add_known(&now, a, m);
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
