/* SPDX-License-Identifier: MIT */
/*
 * test_limits.c - profiles against limits: what is kept, broken and not known, and why; a leak beside a cache that fills
 * up and one that is full; losses; a profile of before; what is written, with hostile names.
 */
#include "made_profile.h"
#include "report/limits.h"

#define MOMENTS 24
#define S_NS 1000000000LL
#define RATE 4096
#define life_of(first, last, samples) made_life(first, last, samples, RATE)
#define HOSTILE "a\x1b[2J<b>&\"\xff"

static struct profile *new_profile(void)
{
	struct profile *p = made_profile(RATE);

	p->recording = RECORDING_NONE;
	p->recording.is_known = true;
	p->recording.pid = 7;
	p->recording.comm_str = profile_str(p, HOSTILE);
	p->recording.duration_ns = MOMENTS * S_NS;
	for (int i = 0; i < MOMENTS; i++)
		assert_int_equal(vec_push(&p->moments_ns, (i + 1) * S_NS), 0);
	return p;
}

static void add_site(struct profile *p, const char *function, const struct history_life *lives,
		     size_t cnt)
{
	uint32_t loc = made_function(p, function);

	made_lives(p, &loc, 1, NULL, lives, cnt);
}

/* Grows by so many samples a second from one moment on, and each of them lives so long. */
static void add_growing(struct profile *p, const char *function, int from, int to, uint64_t samples,
			int lives_s)
{
	struct history_life lives[MOMENTS];
	size_t cnt = 0;

	for (int i = from; i < to; i++)
		lives[cnt++] =
			life_of(i, i + lives_s < MOMENTS ? i + lives_s - 1 : MOMENTS - 1, samples);
	add_site(p, function, lives, cnt);
}

static struct limit_options options(enum limit_kind kind, double limit)
{
	struct limit_options o = { .tail = 0.01, .row_cap = 2, .before_name = "before" };

	o.is_asked[kind] = true;
	o.limit[kind] = limit;
	return o;
}

/* What was judged last. All that was is there until the test ends. */
static struct limits *l;

static void release(void *judged)
{
	limits_release(judged);
	free(judged);
}

static void judge_all(const struct profile *p, const struct profile *before,
		      const struct limit_options *o)
{
	l = calloc(1, sizeof(*l));
	assert_non_null(l);
	assert_int_equal(limits_judge(p, before, o, l), 0);
	unit_keep(l, release);
}

/* The only result. */
static const struct limit_result *judge(const struct profile *p, const struct profile *before,
					struct limit_options o)
{
	judge_all(p, before, &o);
	assert_int_equal(l->cnt, 1);
	assert_int_equal(l->verdict, l->results[0].verdict);
	return &l->results[0];
}

static enum limit_verdict verdict_of(const struct profile *p, const struct profile *before,
				     struct limit_options o)
{
	return judge(p, before, o)->verdict;
}

TEST(test_growth)
{
	static const struct {
		const char *name;
		int from, to, lives_s;
		uint64_t samples; /* a second */
		double warm_up_s;
		enum limit_verdict verdict; /* of a limit of 5 samples a second */
		const char *why, *row;
	} cases[] = {
		{ "a leak", 0, MOMENTS, MOMENTS, 20, 0, LIMIT_BROKEN, "", "site" },
		{ "a small leak", 0, MOMENTS, MOMENTS, 1, 0, LIMIT_KEPT, "", NULL },
		{ "filled early", 0, 3, MOMENTS, 200, 0, LIMIT_KEPT, "", NULL },
		{ "fills for half of the time", 0, 12, MOMENTS, 100, 0, LIMIT_UNKNOWN, "", "site" },
		{ "fills for three quarters", 0, 18, MOMENTS, 100, 0, LIMIT_UNKNOWN, "warmed up",
		  "site" },
		{ "the same behind a warm-up", 0, 12, MOMENTS, 100, 12, LIMIT_KEPT, "", NULL },
		{ "full after 14 s, then replaced", 0, MOMENTS, 14, 100, 0, LIMIT_UNKNOWN, "",
		  "site" },
		{ "near to the limit", 0, MOMENTS, MOMENTS, 5, 0, LIMIT_UNKNOWN, "", "site" },
	};

	each_case(c, cases) {
		struct history_life table = life_of(0, MOMENTS - 1, 50);
		struct limit_options o = options(LIMIT_GROWTH, 5 * RATE);
		struct profile *p = new_profile();
		const struct limit_result *res;

		o.warm_up_ns = (uint64_t)(c->warm_up_s * 1e9);
		add_site(p, "table", &table, 1);
		add_growing(p, "site", c->from, c->to, c->samples, c->lives_s);
		res = judge(p, NULL, o);
		if (res->verdict != c->verdict || !strstr(res->why, c->why))
			fail_msg("%s: verdict %d, %.0f (%.0f to %.0f): '%s'", c->name, res->verdict,
				 res->value, res->low, res->high, res->why);
		assert_int_equal(res->rows.cnt, c->row != NULL);
		if (c->row)
			assert_string_equal(res->rows.data[0].name, c->row);
	}
}

/* A cache that is replaced hides no leak; memory that only changes its owner is none. */
TEST(test_growth_of_several)
{
	struct limit_options o = options(LIMIT_GROWTH, 5 * RATE);
	struct history_life gone = life_of(0, 16, 300);
	struct profile *p = new_profile();

	add_growing(p, "cache", 0, MOMENTS, 30, 11);
	add_growing(p, "leak", 0, MOMENTS, 40, MOMENTS);
	assert_int_equal(judge(p, NULL, o)->verdict, LIMIT_BROKEN);
	assert_string_equal(l->results[0].rows.data[0].name, "leak");

	p = new_profile();
	add_site(p, "giver", &gone, 1);
	add_growing(p, "taker", 12, 22, 30, MOMENTS);
	assert_true(verdict_of(p, NULL, o) != LIMIT_BROKEN);
}

TEST(test_inuse)
{
	struct history_life table = life_of(0, MOMENTS - 1, 400);
	struct profile *p = new_profile();
	const struct limit_result *res;

	add_site(p, "table", &table, 1);
	res = judge(p, NULL, options(LIMIT_INUSE, 300 * RATE));
	assert_int_equal(res->verdict, LIMIT_BROKEN);
	assert_true(res->low > 300 * RATE && res->low < 400 * RATE && res->high > 400 * RATE);
	assert_string_equal(res->rows.data[0].name, "table");
	assert_int_equal(judge(p, NULL, options(LIMIT_INUSE, 500 * RATE))->verdict, LIMIT_KEPT);
	assert_int_equal(l->results[0].rows.cnt, 0);
	res = judge(p, NULL, options(LIMIT_INUSE, 420 * RATE));
	assert_int_equal(res->verdict, LIMIT_UNKNOWN);
	assert_true(res->rate_bytes > 1 && res->rate_bytes < RATE);
	res = judge(p, NULL, options(LIMIT_INUSE, 400 * RATE));
	assert_int_equal(res->rate_bytes, 1);

	p->recording.is_lossy = true; /* what is lost may be what is more */
	res = judge(p, NULL, options(LIMIT_INUSE, 500 * RATE));
	assert_int_equal(res->verdict, LIMIT_UNKNOWN);
	assert_says(res->why, "has losses");
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_INUSE, 300 * RATE)), LIMIT_BROKEN);

	p = new_profile(); /* nothing was seen: not nothing */
	res = judge(p, NULL, options(LIMIT_INUSE, 0));
	assert_int_equal(res->verdict, LIMIT_UNKNOWN);
	assert_true(res->high > 3 * RATE && res->high < 5 * RATE);
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_INUSE, 5 * RATE)), LIMIT_KEPT);
}

/* Frees were not tracked: nothing is kept, and nothing is 0. */
TEST(test_unknown)
{
	static const enum limit_kind kinds[] = { LIMIT_GROWTH, LIMIT_INUSE, LIMIT_EXITED };
	struct profile *p = new_profile();

	p->recording.inuse = RECORDING_INUSE_UNKNOWN;
	each_case(c, kinds) {
		const struct limit_result *res = judge(p, NULL, options(*c, 1e9));

		assert_int_equal(res->verdict, LIMIT_UNKNOWN);
		assert_true(isnan(res->value) && isnan(res->high));
		assert_says(res->why, "--max-overhead");
		assert_null(strchr(res->why, '\x1b'));
	}
}

TEST(test_more)
{
	static const struct {
		uint64_t before, after; /* samples */
		double limit;
		bool is_share;
		enum limit_verdict verdict;
	} cases[] = {
		{ 2000, 2000, 0.2, true, LIMIT_KEPT },
		{ 2000, 2800, 0.2, true, LIMIT_BROKEN },
		{ 2000, 2400, 0.2, true, LIMIT_UNKNOWN },
		{ 2000, 2800, 300. * RATE, false, LIMIT_BROKEN },
		{ 2000, 2800, 1200. * RATE, false, LIMIT_KEPT },
		{ 2000, 100, 0, true, LIMIT_KEPT },
	};

	each_case(c, cases) {
		struct history_life before = life_of(0, MOMENTS - 1, c->before);
		struct history_life after = life_of(0, MOMENTS - 1, c->after);
		struct limit_options o = options(LIMIT_MORE, c->limit);
		struct profile *p = new_profile(), *b = new_profile();
		const struct limit_result *res;

		o.is_share[LIMIT_MORE] = c->is_share;
		add_site(b, "table", &before, 1);
		add_site(p, "table", &after, 1);
		res = judge(p, b, o);
		if (res->verdict != c->verdict)
			fail_msg("%zu: verdict %d, %.0f (%.0f to %.0f), limit %.0f",
				 (size_t)(c - cases), res->verdict, res->value, res->low, res->high,
				 res->limit);
		assert_true(res->before == (double)c->before * RATE);
		if (res->verdict == LIMIT_BROKEN)
			assert_string_equal(res->rows.data[0].name, "table");
		b->recording.is_lossy = true; /* it may have held as much */
		assert_true(verdict_of(p, b, o) != LIMIT_BROKEN);
	}
}

static void text_has(enum limit_format format, const char *part, bool has)
{
	char *text = printed(out, assert_int_equal(limits_write(l, format, out), 0));

	if (!strstr(text, part) == has)
		fail_msg("'%s' is%s in: %s", part, has ? " not" : "", text);
}

/* What was allocated before frees were watched is in no sum: it may be what is more, or what was as much before. */
TEST(test_known_since)
{
	struct history_life table = life_of(0, MOMENTS - 1, 400),
			    more = life_of(0, MOMENTS - 1, 800);
	struct limit_options o = options(LIMIT_MORE, 0.2);
	struct profile *p = new_profile(), *larger = new_profile();
	const struct limit_result *res;

	o.is_share[LIMIT_MORE] = true;
	add_site(p, "table", &table, 1);
	add_site(larger, "table", &more, 1);
	assert_int_equal(verdict_of(p, larger, o), LIMIT_KEPT);
	assert_int_equal(verdict_of(larger, p, o), LIMIT_BROKEN);
	p->recording.inuse = RECORDING_INUSE_SINCE;
	res = judge(p, larger, o);
	assert_int_equal(res->verdict, LIMIT_UNKNOWN);
	assert_says(res->why, "last part");
	assert_int_equal(verdict_of(larger, p, o), LIMIT_UNKNOWN);
	res = judge(p, NULL, options(LIMIT_INUSE, 500 * RATE));
	assert_int_equal(res->verdict, LIMIT_UNKNOWN);
	assert_says(res->why, "last part");
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_INUSE, 300 * RATE)), LIMIT_BROKEN);
	/* growth is of what came meanwhile */
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_GROWTH, 5 * RATE)), LIMIT_KEPT);
}

/* Blocks so large that each is kept have no variance: smaller ones may be there all the same. */
TEST(test_certain_blocks)
{
	struct history_life blocks = { 0, MOMENTS - 1, 3, 3e6, 0 };
	struct profile *p = new_profile();
	const struct limit_result *res;

	add_site(p, "large", &blocks, 1);
	res = judge(p, NULL, options(LIMIT_INUSE, 3e6));
	assert_int_equal(res->verdict, LIMIT_UNKNOWN);
	assert_true(res->low == 3e6 && res->high > 3e6 + 3 * RATE && res->high < 3e6 + 5 * RATE);
	text_has(LIMIT_TEXT, "exactly", false);
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_INUSE, 3e6 + 5 * RATE)), LIMIT_KEPT);
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_INUSE, 3e6 - 1)), LIMIT_BROKEN);
}

/* With rate 1 a sum is exact, unless something is missing in it. */
TEST(test_every_allocation)
{
	struct history_life blocks = { 0, MOMENTS - 1, 3, 3000, 0 };
	struct profile *p = new_profile();

	p->period = 1;
	add_site(p, "site", &blocks, 1);
	assert_int_equal(judge(p, NULL, options(LIMIT_INUSE, 3000))->verdict, LIMIT_KEPT);
	text_has(LIMIT_TEXT, "in use: 2.93 KiB exactly; limit 2.93 KiB\n", true);
	p->recording.is_lossy = true;
	assert_int_equal(judge(p, NULL, options(LIMIT_INUSE, 3000))->verdict, LIMIT_UNKNOWN);
	text_has(LIMIT_TEXT, "in use: 2.93 KiB or more; limit 2.93 KiB\n", true);
	assert_int_equal(judge(p, NULL, options(LIMIT_INUSE, 2999))->verdict, LIMIT_BROKEN);
	text_has(LIMIT_TEXT, "in use: 2.93 KiB or more; ", true);
}

/* Growth that what is held does not explain may be beyond the limit, unless it was in use and was freed. */
TEST(test_unexplained_growth)
{
	static const struct {
		int64_t begin_mib, end_mib, files_mib;
		uint64_t freed_samples; /* of RATE bytes, in the middle of the recording */
		enum limit_verdict verdict;
		const char *text;
	} cases[] = {
		{ 10, 41, 0, 0, LIMIT_KEPT, "pass" }, /* less than 32 MiB */
		{ 10, 110, 0, 0, LIMIT_UNKNOWN,
		  "The process grew by 100 MiB, of which 0 % is explained: 4.00 KiB is in use." },
		{ 400, 499, 0, 0, LIMIT_KEPT, "pass" }, /* less than a quarter */
		{ 400, 500, 0, 0, LIMIT_UNKNOWN, "memory that it mapped directly" },
		{ 10, 110, 80, 0, LIMIT_KEPT, "pass" },
		{ 10, 110, 60, 0, LIMIT_UNKNOWN, "grew by 40.0 MiB" },
		{ 10, 110, -60, 0, LIMIT_UNKNOWN, "grew by 160 MiB" },
		{ 10, 110, 0, 60 << 8, LIMIT_KEPT, "pass" },
		{ 10, 110, 0, 40 << 8, LIMIT_UNKNOWN, "freed blocks that its allocator keeps" },
		{ 0, 110, 0, 0, LIMIT_KEPT, "pass" }, /* what it was is not known */
	};

	each_case(c, cases) {
		struct profile *p = new_profile();
		struct history_life blocks[] = { life_of(0, MOMENTS - 1, 1),
						 life_of(5, 9, c->freed_samples) };

		p->period = 1;
		p->recording.rss_begin_bytes = (uint64_t)c->begin_mib << 20;
		p->recording.rss_end_bytes = (uint64_t)c->end_mib << 20;
		p->recording.rss_file_growth_bytes = c->files_mib * (1 << 20);
		add_site(p, "site", blocks, 2);
		assert_int_equal(judge(p, NULL, options(LIMIT_INUSE, 1 << 20))->verdict,
				 c->verdict);
		text_has(LIMIT_TEXT, c->text, true);
	}
}

/* A runtime's own heap may hold the excess, if the process grew by what was at no moment in use. */
TEST(test_not_seen)
{
	struct history_life table = life_of(0, MOMENTS - 1, 100), gone = life_of(3, 9, 1500);
	struct profile *p = new_profile();
	const struct limit_result *res;

	add_site(p, "table", &table, 1);
	p->recording.rss_begin_bytes = 10 << 20;
	p->recording.rss_end_bytes = 18 << 20;
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_INUSE, 500 * RATE)), LIMIT_KEPT);
	assert_int_equal(profile_comment(p, "not seen: objects of Ruby"), 0);
	res = judge(p, NULL, options(LIMIT_INUSE, 500 * RATE));
	assert_int_equal(res->verdict, LIMIT_UNKNOWN);
	assert_says(res->why, "objects of Ruby");
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_INUSE, 10 * RATE)), LIMIT_BROKEN);
	add_site(p, "gone", &gone, 1); /* 6 MB once, which malloc keeps */
	assert_int_equal(verdict_of(p, NULL, options(LIMIT_INUSE, 500 * RATE)), LIMIT_KEPT);
}

/* A part of what is not known is not 0. */
TEST(test_share_of_unknown)
{
	struct history_life table = life_of(0, MOMENTS - 1, 400);

	for (int i = 0; i < 2; i++) {
		struct profile *p = new_profile(), *before = new_profile();
		struct limit_options o = options(LIMIT_MORE, 0.2);
		const struct limit_result *res;

		o.is_share[LIMIT_MORE] = true;
		add_site(p, "table", &table, 1);
		add_site(before, "table", &table, 1);
		(i ? p : before)->recording.inuse = RECORDING_INUSE_UNKNOWN;
		res = judge(p, before, o);
		assert_int_equal(res->verdict, LIMIT_UNKNOWN);
		assert_true(isnan(res->limit) && isnan(res->value));
		text_has(LIMIT_JSON, "\"limit_bytes\":null,", true);
		text_has(LIMIT_TEXT, "unknown  more in use: not known\n", true);
		text_has(LIMIT_TEXT, "limit 0", false);
	}
}

/* One that is broken is what counts, before one that is not known; a command that failed counts more. */
TEST(test_written)
{
	struct limit_options o = options(LIMIT_INUSE, 1000);
	struct profile *p = new_profile();
	char *text;

	o.is_asked[LIMIT_EXITED] = true;
	for (int i = 0; i < 4; i++) {
		struct history_life table = life_of(0, MOMENTS - 1, 50);
		char name[64];

		snprintf(name, sizeof(name), HOSTILE "%d", i);
		add_site(p, name, &table, 1);
	}
	judge_all(p, NULL, &o);
	assert_int_equal(l->verdict, LIMIT_BROKEN);
	assert_int_equal(l->results[0].rows.cnt, 2);
	assert_int_equal(l->results[0].more_row_cnt, 2);
	text = printed(out, assert_int_equal(limits_write(l, LIMIT_TEXT, out), 0));
	assert_null(strchr(text, '\x1b'));
	assert_says(text, "(PID 7), 24.0 s, one sample per 4.00 KiB\n"
			  "FAIL     in use: 800 KiB, at least ");
	assert_says(text, "and 2 more\n");
	assert_says(text, "unknown  in use by ended tasks: not known; limit 0 B\n");
	assert_says(text, "\nFAIL (99 % confidence)\n");
	text = printed(out, assert_int_equal(limits_write(l, LIMIT_JSON, out), 0));
	assert_null(strchr(text, '\x1b'));
	assert_int_equal(
		strncmp(text, "{\"verdict\":\"broken\",\"failure\":null,\"confidence\":0.99,", 53),
		0);
	assert_says(text, "{\"limit\":\"exited_scope\",\"verdict\":\"unknown\",\"limit_bytes\":0,"
			  "\"inuse_bytes\":null,");
	text = printed(out, assert_int_equal(limits_write(l, LIMIT_JUNIT, out), 0));
	assert_null(strchr(text, '\x1b'));
	assert_omits(text, "<b>");
	assert_says(text, "tests=\"2\" failures=\"1\" errors=\"1\" time=\"24\">");

	limits_fail(l, "the command <failed>");
	assert_int_equal(l->verdict, LIMIT_UNKNOWN);
	text = printed(out, assert_int_equal(limits_write(l, LIMIT_JUNIT, out), 0));
	assert_says(text, "tests=\"3\" failures=\"1\" errors=\"2\"");
	assert_says(text, "message=\"the command &lt;failed&gt;\"/>");
}

RUN_TESTS()
