/* SPDX-License-Identifier: MIT */
/* profile_trim.c - see profile_symbols_priv.h. */
#include "symbol/profile_symbols_priv.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/allocators.h"
#include "profile/profile.h"

/* A function that passes allocations on, or the allocator's profiler. */
static bool is_allocator_name(const char *name)
{
	static const char *const profiler[] = { "je_prof_", "prof_backtrace_impl",
						"je_malloc_default", "tcmalloc::" };

	for (size_t i = 0; i < sizeof(profiler) / sizeof(*profiler); i++)
		if (!strncmp(name, profiler[i], strlen(profiler[i])))
			return true;
	return alloc_is_allocator_frame(name);
}

/* Code of the allocator's library may have no name, or the name of a function before it. */
static bool is_allocator_library(const struct profile *p, const struct profile_location *l)
{
	const char *file, *slash;

	if (l->mapping == HT_NO_INDEX)
		return false;
	file = profile_text(p, p->mappings.data[l->mapping].filename_str);
	slash = strrchr(file, '/');
	file = slash ? slash + 1 : file;
	return !strncmp(file, "libjemalloc", 11) || !strncmp(file, "libtcmalloc", 11);
}

static const char *line_name(const struct profile *p, uint32_t line)
{
	return profile_text(p, p->functions.data[p->lines.data[line].function].name_str);
}

/* Return how many lines of a location, from the innermost, are the allocator's. */
static uint32_t allocator_lines(const struct profile *p, const struct profile_location *l)
{
	uint32_t n = 0;

	if (is_allocator_library(p, l))
		return l->line_cnt;
	while (n < l->line_cnt) {
		if (!is_allocator_name(line_name(p, l->line_first + n)))
			break;
		n++;
	}
	return n;
}

/* Replace the leaf of a stack by one without the allocator's functions that were inlined into it. trimmed: for
 * each location, the index + 1 of its trimmed copy, once it is made. */
static int trim_leaf(struct profile *p, uint32_t *loc, uint32_t *trimmed)
{
	struct profile_location l = p->locations.data[*loc];
	uint32_t own = allocator_lines(p, &l);

	if (!own || own == l.line_cnt)
		return 0;
	if (!trimmed[*loc]) {
		l.line_first += own;
		l.line_cnt -= own;
		if (vec_push(&p->locations, l))
			return -ENOMEM;
		trimmed[*loc] = p->locations.cnt;
	}
	*loc = trimmed[*loc] - 1;
	return 0;
}

int profile_trim_allocator(struct profile *p)
{
	uint32_t *trimmed = calloc(p->locations.cnt + 1, sizeof(*trimmed));
	struct profile_sample *s;
	int err = 0;

	if (!trimmed)
		return -ENOMEM;
	vec_each(&p->samples, s) {
		uint32_t *loc = p->sample_locs.data + s->loc_first, own = 0;

		for (; own < s->loc_cnt; own++) {
			const struct profile_location *l = &p->locations.data[loc[own]];

			if (allocator_lines(p, l) < l->line_cnt ||
			    (!l->line_cnt && !is_allocator_library(p, l)))
				break;
		}
		if (own == s->loc_cnt)
			continue;
		s->loc_first += own;
		s->loc_cnt -= own;
		err = trim_leaf(p, loc + own, trimmed);
		if (err)
			break;
	}
	free(trimmed);
	return err;
}

bool profile_has_allocator_leaf(const struct profile *p)
{
	const struct profile_sample *s;

	vec_each(&p->samples, s) {
		const struct profile_location *leaf;

		if (s->loc_cnt < 2) /* a stack of allocator functions only was left whole */
			continue;
		leaf = &p->locations.data[p->sample_locs.data[s->loc_first]];
		if (leaf->line_cnt && allocator_lines(p, leaf) == leaf->line_cnt)
			return true;
	}
	return false;
}
