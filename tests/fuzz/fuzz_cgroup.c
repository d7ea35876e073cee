/* SPDX-License-Identifier: MIT */
/* fuzz_cgroup.c - cgroup and mountinfo files and names of cgroups of any content. */
#include "fuzz.h"

#include "base/err.h"
#include "base/printable.h"
#include "proc/cgroup.h"
#include "proc/facts.h"

static int count(void *ctx, const char *folder)
{
	if (folder[0] != '/' && folder[0] != '\0')
		*(size_t *)ctx += 1;
	return 0;
}

/* A part of the text, but for what is not printable. */
static void check_id(const char *id, const char *text)
{
	if (strlen(id) >= CONTAINER_ID_BYTES || (id[0] && !strchr(id, '?') && !strstr(text, id)))
		abort();
	for (const char *c = id; *c; c++)
		if (printable(*c) != *c)
			abort();
	if (id[0] && !container_id_matches(id, id) && !strstr(id, "://"))
		abort();
}

/* The first line is the name of a cgroup, the rest a file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char id[CONTAINER_ID_BYTES], *text = fuzz_text(data, bytes), *rest;
	struct err why;
	struct cgroup_place place;
	size_t odd_cnt = 0;

	container_id_from_cgroup(text, id);
	check_id(id, text);
	container_id_from_mountinfo(text, id);
	check_id(id, text);
	rest = text + strcspn(text, "\n");
	if (*rest)
		*rest++ = '\0';
	container_check_given(text, &why);
	for (int inner = 0; inner < 2; inner++) {
		if (cgroup_parse(text, rest, inner ? "/a/b" : "", &place))
			continue;
		if (place.path[0] != '/')
			abort();
		cgroup_holds(&place, rest);
		cgroup_each_folder(&place, rest, count, &odd_cnt);
		cgroup_release(&place);
	}
	free(text);
	return 0;
}
