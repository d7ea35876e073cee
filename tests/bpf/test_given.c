/* SPDX-License-Identifier: MIT */
/* test_given.c - a profile of what stacks held at another moment: their names, their threads, and what is not told apart. */
#include "rig.h"

#include "profile/profile.h"
#include "record/profile_build.h"
#include "record/scope_labels.h"
#include "record/snapshot.h"

static void *(*volatile do_malloc)(size_t) = malloc;

static void step_hold(volatile uint64_t *out)
{
	out[0] = (uint64_t)(uintptr_t)do_malloc(7001);
}

static const char *leaf_of(const struct profile *p, size_t sample)
{
	const struct profile_location *l =
		&p->locations.data[p->sample_locs.data[p->samples.data[sample].loc_first]];

	return profile_text(p, p->functions.data[p->lines.data[l->line_first].function].name_str);
}

TEST(test_given)
{
	struct rig_sum live;
	struct snapshot *s;
	struct profile *p;
	uint64_t image;
	struct rig *rig = rig_open(rig_mode(state), 1, 1024, 1024);

	rig_do(rig, step_hold);
	rig_settle(rig);
	live = rig_live(rig);
	assert_int_equal(live.cnt, 1);
	image = (uint64_t)rig->pid << 32 | tracker_generation(rig->tracker, rig->pid);
	{
		const struct snapshot_given given[] = {
			{ live.last.stack_id,
			  image,
			  live.last.context_id,
			  { .samples = 2, .bytes = 5000, .objects = 3, .bytes_variance = 9 } },
			{ SNAPSHOT_STACK_REST,
			  image,
			  0,
			  { .samples = 1, .bytes = 300, .objects = 1 } },
		};
		const struct profile_build_options opts = { .rate_bytes = 1,
							    .main_pid = rig->pid,
							    .labels = LABEL_ALL };

		assert_int_equal(snapshot_of(rig->engine, given, 2, &s), 0);
		assert_true(s->inuse.bytes == 5300 && s->inuse.samples == 3);
		assert_int_equal(profile_build(s, rig->engine, rig->files, rig->tracker, &opts, &p),
				 0);
	}
	assert_int_equal(p->samples.cnt, 2);
	assert_string_equal(leaf_of(p, 0), "step_hold");
	assert_non_null(profile_sample_label(p, &p->samples.data[0], "thread"));
	assert_int_equal(p->values.data[p->samples.data[0].value_first + PROFILE_INUSE_SPACE],
			 5000);
	assert_int_equal(p->values.data[p->samples.data[0].value_first + PROFILE_ALLOC_SPACE], 0);
	assert_true(p->samples.data[0].inuse_bytes_variance == 9);
	assert_string_equal(leaf_of(p, 1), "[other stacks]");
	assert_int_equal(p->values.data[p->samples.data[1].value_first + PROFILE_INUSE_SPACE], 300);
	profile_free(p);
	snapshot_free(s);
}

RUN_RIG_TESTS()
