/* SPDX-License-Identifier: MIT */
/* made_frame.h - a frame of a profile that is made up: a function of /bin/app with a line of /src/app.c. */
#ifndef TEST_MADE_FRAME_H
#define TEST_MADE_FRAME_H

#include "profile/profile.h"

/* Its location, for profile_add_sample(). */
static inline uint32_t made_frame(struct profile *p, const char *function, int64_t line)
{
	struct profile_mapping m = { .filename_str = profile_str(p, "/bin/app") };
	struct profile_function f = { .name_str = profile_str(p, function),
				      .filename_str = profile_str(p, "/src/app.c") };
	struct profile_line at = { .function = p->functions.cnt, .line = line };
	struct profile_location loc = { .mapping = p->mappings.cnt,
					.line_first = p->lines.cnt,
					.line_cnt = 1 };

	assert_int_equal(vec_push(&p->mappings, m), 0);
	assert_int_equal(vec_push(&p->functions, f), 0);
	assert_int_equal(vec_push(&p->lines, at), 0);
	assert_int_equal(vec_push(&p->locations, loc), 0);
	return p->locations.cnt - 1;
}

#endif
