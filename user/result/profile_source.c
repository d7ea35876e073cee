/* SPDX-License-Identifier: MIT */
/* profile_source.c - see profile_source.h. */
#include "result/profile_source.h"

#include "base/clock.h"
#include "symbol/symbolizer.h"
#include "track/tracker.h"

uint64_t profile_names_share(uint64_t end_ns)
{
	uint64_t now = now_ns();

	return now < end_ns ? (end_ns - now) / 2 : 1;
}

uint64_t result_image(const struct profile_source *src, pid_t pid)
{
	return (uint64_t)pid << 32 | tracker_generation(src->tracker, pid);
}

struct symbol_options profile_symbol_options(const struct profile_source *src)
{
	uint64_t names_ns = src->names_ns ? src->names_ns : PROFILE_NAMES_NS;

	return (struct symbol_options){ .lines = true,
					.demangle = true,
					.end_ns = now_ns() + names_ns,
					.is_hurried = src->is_page,
					.wants_all = src->wants_names,
					.slow = src->slow,
					.names = src->names };
}
