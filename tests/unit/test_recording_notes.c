/* SPDX-License-Identifier: MIT */
/* test_recording_notes.c - which counters are losses, and what comments say of them and of in-use. */
#include "unit.h"

#include "profile/profile.h"
#include "record/recording_notes.h"

static struct profile *notes_of(const uint64_t stats[HT_STAT_CNT], bool *ret_is_lossy)
{
	struct ledger_lines ledger;
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	ledger_lines_read(&ledger, stats, NULL);
	assert_int_equal(ledger_notes_add(p, &ledger), 0);
	*ret_is_lossy = ledger_lines_are_lossy(&ledger);
	return p;
}

static const char *comment_at(const struct profile *p, size_t i)
{
	return i < p->comments.cnt ? profile_text(p, p->comments.data[i]) : "";
}

/* What was done is one line, however much it is; what is 0 is nowhere. */
TEST(activity_is_one_line)
{
	uint64_t stats[HT_STAT_CNT] = {
		[HT_STAT_HITS_ALLOC] = 90123, [HT_STAT_SAMPLES] = 40, [HT_STAT_END_COMPLETE] = 39
	};
	bool is_lossy;
	struct profile *p = notes_of(stats, &is_lossy);

	assert_int_equal(p->comments.cnt, 1);
	assert_string_equal(comment_at(p, 0),
			    "counters: alloc_hits=90123 samples=40 stacks_complete=39");
	assert_false(is_lossy);
	profile_free(p);
	memset(stats, 0, sizeof(stats));
	p = notes_of(stats, &is_lossy);
	assert_int_equal(p->comments.cnt, 0);
	profile_free(p);
	/* the longest that there can be */
	memset(stats, 0xff, sizeof(stats));
	p = notes_of(stats, &is_lossy);
	assert_says(comment_at(p, 0), " stacks_complete=18446744073709551615");
	assert_true(is_lossy);
	profile_free(p);
}

/* Each loss has its line, and makes a sum wrong or not. */
TEST(losses_are_told)
{
	static const struct {
		unsigned stat;
		const char *line;
		bool is_lossy;
	} cases[] = {
		{ HT_STAT_LIVE_FULL, "ledger: live_full 7 (samples not tracked: live map full)",
		  true },
		{ HT_STAT_TOTALS_FULL,
		  "ledger: totals_full 7 (samples missing from the cumulative sums: map full)",
		  true },
		{ HT_STAT_SCRATCH_BUSY,
		  "ledger: scratch_busy 7 (samples lost: no scratch space free)", true },
		{ HT_STAT_PENDING_FULL,
		  "ledger: pending_full 7 (samples lost: too many calls under way at once)", true },
		{ HT_STAT_EVENTS_LOST,
		  "ledger: events_lost 7 (process events lost: ring buffer full)", true },
		{ HT_STAT_MISSED_FREE,
		  "ledger: missed_frees 7 (blocks whose free was not seen: their address was allocated again)",
		  true },
		{ HT_STAT_STACKS_FULL,
		  "ledger: stacks_full 7 (samples without a stack: stack map full)", false },
		{ HT_STAT_END_TOO_DEEP,
		  "ledger: truncated_too_deep 7 (stacks cut: more frames than are kept)", false },
		{ HT_STAT_BINS_FULL,
		  "ledger: bins_full 7 (samples without their size or lifetime: map full)", false },
		{ HT_STAT_CONTEXTS_FULL,
		  "ledger: contexts_full 7 (samples without a thread: context map full)", false },
	};

	each_case(c, cases) {
		uint64_t stats[HT_STAT_CNT] = { [HT_STAT_SAMPLES] = 1 };
		bool is_lossy;
		struct profile *p;

		stats[c->stat] = 7;
		p = notes_of(stats, &is_lossy);
		assert_int_equal(p->comments.cnt, 2);
		assert_string_equal(comment_at(p, 1), c->line);
		assert_int_equal(is_lossy, c->is_lossy);
		profile_free(p);
	}
}

/* Calls that were left out for their place, and of how many the outer call was found: a misjudgement, or chance. */
/* The counters of BPF are of all processes that are followed: not of the one whose profile it is. */
TEST(a_loss_of_all_is_said_to_be_that)
{
	uint64_t stats[HT_STAT_CNT] = { [HT_STAT_LIVE_FULL] = 7 };
	struct ledger_lines ledger;
	struct profile *p;
	char want[] = "ledger: live_full 7 (samples not tracked: live map full; of all tracked "
		      "processes together)";

	assert_int_equal(profile_new(&p), 0);
	ledger_lines_read(&ledger, stats, NULL);
	ledger.is_of_all = true;
	assert_int_equal(ledger_notes_add(p, &ledger), 0);
	assert_string_equal(profile_text(p, p->comments.data[0]), want);
	profile_free(p);
}

TEST(misjudged_calls_are_told)
{
	static const struct {
		uint64_t due, found, unproven;
		bool is_lossy;
	} cases[] = {
		{ 0, 0, 0, false }, { 23, 0, 0, false },     { 24, 0, 0, true },
		{ 24, 5, 0, true }, { 24, 6, 0, false },     { 5000, 4950, 0, false },
		{ 0, 0, 1, true },  { 5000, 1000, 0, true },
	};

	each_case(c, cases) {
		uint64_t stats[HT_STAT_CNT] = {
			[HT_STAT_NESTED_DUE_16] = c->due << 16,
			[HT_STAT_NESTED_FOUND] = c->found,
			[HT_STAT_NESTED_UNPROVEN] = c->unproven,
		};
		bool is_lossy;
		struct profile *p = notes_of(stats, &is_lossy);

		assert_int_equal(is_lossy, c->is_lossy);
		profile_free(p);
	}
}

TEST(inuse_in_words)
{
	struct recording r = RECORDING_NONE;
	char buf[RECORDING_INUSE_BUF];

	r.pid = 6426;
	r.limit.cpu_share = 0.05;
	assert_string_equal(recording_inuse_words(&r, "server", 65536, false, buf), "");
	r.inuse = RECORDING_INUSE_SINCE;
	r.inuse_since_ns = 1700000000000000000;
	assert_string_equal(recording_inuse_words(&r, "server", 65536, false, buf),
			    "counted since 2023-11-14T22:13:20Z: frees were not tracked before");
	r.inuse = RECORDING_INUSE_UNKNOWN;
	r.full_share = 0.53;
	assert_string_equal(recording_inuse_words(&r, "server", 65536, false, buf),
			    "Tracking frees costs 53 % of server's CPU time; the limit is 5 %. To "
			    "measure it: heaptap record --tap -d 10s -p 6426");
	/* who has ended cannot be recorded */
	assert_string_equal(recording_inuse_words(&r, "server", 65536, true, buf),
			    "Tracking frees costs 53 % of server's CPU time; the limit is 5 %.");
	/* no limit of the overhead would help */
	r.has_nameless_frees = true;
	assert_string_equal(
		recording_inuse_words(&r, "server", 65536, false, buf),
		"The free function of its allocator has no name (a stripped program). To measure it: use a build that keeps the names of its allocator");
	assert_string_equal(recording_advice_tap(&r, buf), "");
	r.has_nameless_frees = false;
	r.has_no_tap = r.has_ended = true;
	snprintf(r.program, sizeof(r.program), "git gc");
	assert_string_equal(
		recording_inuse_words(&r, "git", 65536, false, buf),
		"No process was tapped before it ended. To measure it: heaptap record --max-overhead 80 -- git gc");
}

RUN_TESTS()
