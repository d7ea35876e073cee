/* SPDX-License-Identifier: MIT */
/* fuzz_maps.c - maps and cgroup texts and loader lists of any content. */
#include "fuzz.h"

#include "proc/launch.h"
#include "proc/process.h"

static void touch_path(void *ctx, const char *path)
{
	*(size_t *)ctx += strlen(path);
}

/* What the parser promises of every mapping that it lets through. */
static void check_maps(const struct proc_maps *maps)
{
	const struct proc_map *m;
	uint64_t last = 0;

	vec_each(&maps->maps, m) {
		if (m->end_addr <= m->start_addr || m->start_addr < last || !m->path)
			abort();
		if (strlen(m->path) > 1 << 20)
			abort();
		last = m->start_addr;
	}
	if (maps->maps.cnt == 1 &&
	    proc_maps_find(maps, maps->maps.data[0].start_addr) != maps->maps.data)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char id[CONTAINER_ID_BYTES], *text = fuzz_text(data, bytes);
	struct proc_maps maps = { 0 };
	size_t path_bytes = 0;

	container_id_from_cgroup(text, id);
	if (strlen(id) >= CONTAINER_ID_BYTES)
		abort();
	launch_parse_list(text, touch_path, &path_bytes);
	if (!proc_maps_parse(text, &maps)) {
		check_maps(&maps);
		proc_maps_release(&maps);
	}
	return 0;
}
