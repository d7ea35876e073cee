/* SPDX-License-Identifier: MIT */
/* profile_strip.c - see profile_strip.h. */
#include "push/profile_strip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

static void *copy(const void *from, size_t cnt, size_t one_bytes)
{
	void *to = calloc(cnt + 1, one_bytes);

	if (to && cnt)
		memcpy(to, from, cnt * one_bytes);
	return to;
}

static void bare_mapping(struct profile_mapping *m)
{
	m->has_functions = m->has_filenames = m->has_line_numbers = m->has_inline_frames = false;
}

int profile_strip_begin(struct profile *p, bool (*is_held)(const void *ctx, const char *build_id),
			const void *ctx, struct profile_strip *ret)
{
	struct profile_strip b = {
		.locations = copy(p->locations.data, p->locations.cnt, sizeof(*b.locations)),
		.mappings = copy(p->mappings.data, p->mappings.cnt, sizeof(*b.mappings)),
	};
	bool *held = calloc(p->mappings.cnt + 1, sizeof(*held));
	struct profile_location *loc;

	if (!b.locations || !b.mappings || !held) {
		free(b.locations);
		free(b.mappings);
		free(held);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->mappings.cnt; i++) {
		struct profile_mapping *m = &p->mappings.data[i];

		held[i] = m->build_id_str && is_held(ctx, profile_text(p, m->build_id_str));
		if (held[i])
			bare_mapping(m);
	}
	vec_each(&p->locations, loc)
		if (loc->mapping != HT_NO_INDEX && held[loc->mapping])
			loc->line_cnt = 0;
	free(held);
	*ret = b;
	return 0;
}

void profile_strip_end(struct profile *p, struct profile_strip *b)
{
	if (b->locations && p->locations.cnt)
		memcpy(p->locations.data, b->locations, p->locations.cnt * sizeof(*b->locations));
	if (b->mappings && p->mappings.cnt)
		memcpy(p->mappings.data, b->mappings, p->mappings.cnt * sizeof(*b->mappings));
	free(b->locations);
	free(b->mappings);
	memset(b, 0, sizeof(*b));
}
