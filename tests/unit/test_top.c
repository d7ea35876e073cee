/* SPDX-License-Identifier: MIT */
/* What heaptap top shows: tables, rates, order, folds, search, and what fits on a screen of any size. */
#include "base/clock.h"
#include "made_profile.h"
#include "profile/resident_words.h"
#include "record/top_priv.h"

#define MIB (1 << 20)

static struct profile *p; /* of the test that runs */
static struct top_table *t;
static struct top_view v;
static struct top_rates rates;

static void add(const uint32_t *locs, size_t cnt, const char *scope, int64_t held, int64_t alloc)
{
	const struct profile_label label = text_label(p, "scope", scope);

	assert_int_equal(profile_add_sample(p, locs, cnt, (int64_t[]){ 1, alloc, 1, held }, &label,
					    scope[0] != 0, NULL),
			 0);
}

static void begin(void)
{
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_set_heap_types(p, 1), 0);
	p->recording = RECORDING_NONE;
	p->recording.is_known = true;
	p->recording.pid = 77;
	p->recording.comm_str = profile_str(p, "server");
	p->recording.duration_ns = 90 * NS_PER_S;
	p->recording.overhead_share = 0.012;
	p->recording.limit = (struct recording_limit){ .cpu_share = 0.25 };
}

static void renew(void)
{
	top_table_free(t);
	profile_free(p);
	t = NULL;
	p = NULL;
	begin();
}

static int set_up(void **state)
{
	t = NULL;
	begin();
	top_view_init(&v);
	v.pid = 77;
	return 0;
}

static int tear_down(void **state)
{
	top_view_release(&v);
	top_rates_release(&rates);
	top_table_free(t);
	profile_free(p);
	return 0;
}

static void make(enum top_what what)
{
	top_table_free(t);
	t = NULL;
	v.what = what;
	assert_int_equal(top_table_of_profile(p, what, &t), 0);
}

/* The names in their order, with a space between. */
static const char *order(void)
{
	static char text[1024];

	text[0] = '\0';
	assert_int_equal(top_view_arrange(&v, t), 0);
	for (size_t i = 0; i < v.order.cnt; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 t->rows.data[v.order.data[i]].name);
	return text;
}

static void type(const char *keys)
{
	for (; *keys; keys++)
		top_view_key(&v, t, (unsigned char)*keys);
}

/* A screen as text, a line each. */
static const char *draw_with(const struct top_news *news, size_t columns, size_t lines)
{
	static char text[200000];
	struct top_page page;
	size_t used = 0;

	assert_int_equal(top_page_draw(&v, t, news, columns, lines, &page), 0);
	assert_int_equal(page.line_cnt, lines);
	for (size_t i = 0; i < page.line_cnt; i++) {
		size_t width = 0;

		for (const char *s = page.lines[i].text; *s; s++) {
			assert_true((unsigned char)*s >= ' ');
			width += ((unsigned char)*s & 0xc0) != 0x80;
		}
		assert_true(width <= columns);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n",
					 page.lines[i].text);
	}
	top_page_release(&page);
	return text;
}

static const char *draw(size_t columns, size_t lines)
{
	return draw_with(&(struct top_news){ .message = "" }, columns, lines);
}

static void fill_stacks(void)
{
	uint32_t put = made_frame(p, "put", 3), run = made_frame(p, "run", 5),
		 start = made_frame(p, "main", 7);

	add((uint32_t[]){ put, run, start }, 3, "", 3 * MIB, 9 * MIB);
	add((uint32_t[]){ run, start }, 2, "", 5 * MIB, 5 * MIB);
}

TEST_WITH(a_screen_of_stacks, set_up, tear_down)
{
	const char *text;

	fill_stacks();
	make(TOP_STACKS);
	text = draw(120, 12);
	assert_says(text, "in use 8.00 MiB  server (PID 77), 1m 30s, every allocation\n");
	assert_says(text, "cost 1.2 % of its CPU time (limit: 25 %); no losses\n");
	assert_says(text, "IN USE ");
	assert_says(text, "5.00 MiB ");
	assert_says(text, "+ run app.c:5  < main app.c:7\n");
	assert_says(text, "+ put app.c:3  < run app.c:5 < main app.c:7\n");
	assert_says(draw(85, 12), "+ put app.c:3  < run app.c:5\n"); /* whole callers */
	assert_says(draw(70, 12), "  < run....c:5\n"); /* the first gives way */
	assert_says(text, "by in use");
	text = draw(120, 12);
	assert_says(text, "  62 % "); /* of all */
	assert_says(text, "  38 % ");
	assert_omits(text, "\u2588");
	assert_says(draw_with(&(struct top_news){ .message = "", .has_utf8 = true }, 130, 12),
		    "  62 % \u2588\u2588\u2588\u2588\u2588    ");
	assert_true(strstr(text, "+ run") < strstr(text, "+ put"));
	top_view_key(&v, t, TOP_KEY_ENTER); /* the first: its frames */
	text = draw(120, 12);
	assert_says(text, "- run app.c:5");
	assert_says(text, "    main app.c:7\n");
	top_view_key(&v, t, TOP_KEY_ENTER);
	assert_omits(draw(120, 12), "    main app.c:7\n");
}

/* A long name gives way to what may be all that tells two rows apart. */
TEST_WITH(a_long_name_leaves_room_for_its_caller, set_up, tear_down)
{
	uint32_t own = made_frame(p, "a_function_with_a_name_that_fills_all_columns_of_a_row", 3);
	const char *text;

	add((uint32_t[]){ own, made_frame(p, "upload", 5) }, 2, "", MIB, MIB);
	add((uint32_t[]){ own, made_frame(p, "download", 7) }, 2, "", MIB, MIB);
	make(TOP_STACKS);
	text = draw(100, 12);
	assert_says(text, "app.c:3  < uploa...p.c:5\n");
	assert_says(text, "app.c:3  < downl...p.c:7\n");
}

/* What rows cannot explain is said where losses are. */
TEST_WITH(growth_that_rows_do_not_explain_comes_first, set_up, tear_down)
{
	const char *text;

	fill_stacks();
	assert_int_equal(profile_comment(p, "ledger: live_full 12 (the live map was full)"), 0);
	p->recording.rss_begin_bytes = 10 * MIB;
	p->recording.rss_end_bytes = 110 * MIB;
	make(TOP_STACKS);
	text = draw(200, 12);
	assert_says(text, "in use 8.00 MiB, RSS 110 MiB  server (PID 77)");
	assert_says(
		text,
		"\nThe process grew by 100 MiB, of which 8 % is explained: 8.00 MiB is in use. The rest may be");
	assert_omits(text, "lost:");
	p->recording.rss_file_growth_bytes = 90 * MIB; /* of which files are most */
	make(TOP_STACKS);
	text = draw(200, 12);
	assert_omits(text, "grew by");
	assert_says(text, "lost: live_full 12");
}

/* By row, below the rows, if the screen has room. */
TEST_WITH(resident_memory_is_the_last_line, set_up, tear_down)
{
	struct resident_reading reading = { .is_known = true,
					    .is_proved = true,
					    .has_heap = true,
					    .rss_bytes = 9 * MIB,
					    .row_cnt = 1,
					    .rows = { { .name = "live",
							.label = "live",
							.kind = RESIDENT_LIVE,
							.bytes = 9 * MIB } } };
	const char *text;

	fill_stacks();
	make(TOP_STACKS);
	assert_omits(draw(100, 14), "Resident");
	assert_int_equal(resident_rows_set(p, &reading, &reading), 0);
	make(TOP_STACKS);
	text = draw(100, 14);
	assert_says(text, "\nResident 9.00 -> 9.00 MiB: live 9.00 MiB\n");
	assert_non_null(strchr(strstr(text, "Resident"), '\n')); /* the keys are below */
	assert_omits(draw(100, 11), "Resident");
}

TEST_WITH(losses_come_first, set_up, tear_down)
{
	const char *text;

	fill_stacks();
	assert_int_equal(profile_comment(p, "ledger: live_full 12 (the live map was full)"), 0);
	assert_int_equal(profile_comment(p, "ledger: stacks_full 3 (no room)"), 0);
	assert_int_equal(profile_comment(p, "ledger: tap_late 40 (largest, though last)"), 0);
	p->recording.inuse = RECORDING_INUSE_UNKNOWN;
	p->recording.full_share = 0.53;
	make(TOP_STACKS);
	text = draw(200, 12);
	assert_says(text, "lost: tap_late 40 (largest, though last), and 2 more; cost 1.2 %");
	assert_says(text, "In use is UNKNOWN: Tracking frees costs 53 %");
	assert_says(text, "in use unknown");
	assert_says(text, " unknown  ");
	assert_omits(text, " 0 B");
}

TEST_WITH(what_another_line_says_is_no_loss, set_up, tear_down)
{
	fill_stacks();
	assert_int_equal(profile_comment(p, "ledger: alloc_only_samples 900 (frees unwatched)"), 0);
	assert_int_equal(profile_comment(p, "ledger: paused 800 (by the program)"), 0);
	assert_int_equal(profile_comment(p, "ledger: live_full_bytes 700 (live map full)"), 0);
	assert_int_equal(profile_comment(p, "ledger: stacks_full 0 (no room)"), 0);
	make(TOP_STACKS);
	assert_says(draw(200, 12), "; no losses");
	assert_int_equal(profile_comment(p, "ledger: tap_never 3 (no tap)"), 0);
	make(TOP_STACKS);
	assert_says(draw(200, 12), "lost: tap_never 3 (no tap); cost");
}

TEST_WITH(scopes_fold_and_sort_among_brothers, set_up, tear_down)
{
	add(NULL, 0, "A/X", 1 * MIB, 50 * MIB);
	add(NULL, 0, "A/Y", 2 * MIB, 2 * MIB);
	add(NULL, 0, "B/Z", 9 * MIB, 9 * MIB);
	make(TOP_SCOPES);
	assert_string_equal(order(), "B Z A Y X");
	for (size_t i = 0; i < t->rows.cnt; i++)
		t->rows.data[i].alloc_per_s = t->rows.data[i].alloc_bytes;
	type("a");
	assert_string_equal(order(), "A X Y B Z");
	top_view_key(&v, t, TOP_KEY_ENTER); /* A */
	assert_string_equal(order(), "A B Z");
	type("/y");
	top_view_key(&v, t, TOP_KEY_ENTER);
	assert_string_equal(order(), "A Y"); /* found though it is folded, with what it lies in */
	top_view_key(&v, t, TOP_KEY_BACK);
	assert_string_equal(order(), "A B Z");
	top_view_key(&v, t, ' ');
	assert_string_equal(order(), "A X Y B Z");
	assert_says(draw(80, 12), " - A\n");
}

TEST_WITH(search_is_typed_and_taken_back, set_up, tear_down)
{
	fill_stacks();
	make(TOP_STACKS);
	type("/q"); /* does not quit */
	assert_true(v.is_typing);
	assert_string_equal(order(), "");
	assert_says(draw(80, 12), "no name matches");
	top_view_key(&v, t, TOP_KEY_ERASE);
	type("PUT");
	assert_string_equal(order(), "put app.c:3");
	assert_says(draw(80, 12), "/PUT_");
	top_view_key(&v, t, TOP_KEY_ENTER);
	assert_int_equal(top_view_key(&v, t, 'q'), TOP_QUIT);
	for (int i = 0; i < 1000; i++)
		type("/x");
	assert_true(strlen(v.search) < sizeof(v.search));
	type("\xc3\xa4");
	top_view_key(&v, t, TOP_KEY_BACK);
	assert_string_equal(v.search, "");
}

TEST_WITH(keys_move_open_and_close, set_up, tear_down)
{
	fill_stacks();
	make(TOP_PROCESSES);
	v.pid = 0;
	assert_string_equal(order(), "server");
	assert_int_equal(top_view_key(&v, t, 't'), TOP_NOTHING); /* of whom? */
	assert_int_equal(top_view_key(&v, t, TOP_KEY_ENTER), TOP_LOAD);
	assert_int_equal(v.what, TOP_STACKS);
	assert_int_equal(v.pid, 77);
	make(TOP_STACKS);
	order();
	assert_int_equal(top_view_selected(&v, t), 0);
	top_view_key(&v, t, TOP_KEY_DOWN);
	assert_int_equal(top_view_selected(&v, t), 1);
	top_view_key(&v, t, TOP_KEY_DOWN);
	assert_int_equal(top_view_selected(&v, t), 1);
	top_view_key(&v, t, TOP_KEY_HOME);
	assert_int_equal(top_view_selected(&v, t), 0);
	top_view_key(&v, t, TOP_KEY_END);
	assert_int_equal(top_view_selected(&v, t), 1);
	assert_int_equal(top_view_key(&v, t, '\t'), TOP_LOAD);
	assert_int_equal(v.what, TOP_FUNCTIONS);
	assert_int_equal(top_view_key(&v, t, TOP_KEY_BACK), TOP_LOAD);
	assert_int_equal(v.what, TOP_PROCESSES);
	make(TOP_PROCESSES);
	order();
	assert_int_equal(top_view_key(&v, t, ' '), TOP_LOAD);
	assert_int_equal(v.what, TOP_FUNCTIONS); /* as it was chosen */
	assert_int_equal(top_view_key(&v, t, TOP_KEY_ERASE), TOP_LOAD);
	assert_int_equal(v.what, TOP_PROCESSES);
	assert_int_equal(top_view_key(&v, t, '?'), TOP_DRAW);
	assert_says(draw(80, 24), "quit");
	assert_int_equal(top_view_key(&v, t, 'x'), TOP_DRAW);
	assert_false(v.shows_help);
	assert_int_equal(top_view_key(&v, t, TOP_KEY_GONE), TOP_QUIT);
	assert_int_equal(top_view_key(&v, NULL, TOP_KEY_ENTER), TOP_NOTHING);
	assert_int_equal(top_view_key(&v, NULL, TOP_KEY_DOWN), TOP_NOTHING);
}

TEST_WITH(any_size_has_whole_numbers, set_up, tear_down)
{
	static char name[10001];
	const char *text;

	memset(name, 'n', sizeof(name) - 1);
	fill_stacks();
	add((uint32_t[]){ made_frame(p, name, 1) }, 1, "", 30 * MIB, MIB);
	add((uint32_t[]){ made_frame(p,
				     "\xff\x1b[31m\n\xe2\x80\xae"
				     "evil",
				     1) },
	    1, "", 20 * MIB, MIB);
	make(TOP_STACKS);
	for (size_t columns = 1; columns <= 140; columns++)
		for (size_t lines = 1; lines <= 9; lines++)
			draw(columns, lines);
	text = draw(40, 10);
	assert_says(text, "IN USE");
	assert_says(text, "30.0 MiB");
	assert_says(text, "...");
	text = draw(20, 8);
	assert_says(text, "30.0 MiB");
	assert_says(text, "+ ");
	text = draw(12, 1);
	assert_says(text, "30.0 MiB");
	draw(5000, 3);
}

TEST_WITH(scrolls_to_what_is_selected, set_up, tear_down)
{
	char name[16];

	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "f%02d", i);
		add((uint32_t[]){ made_frame(p, name, i + 1) }, 1, "", (100 - i) * MIB, MIB);
	}
	make(TOP_STACKS);
	assert_says(draw(60, 10), "f05");
	assert_omits(draw(60, 10), "f06");
	top_view_key(&v, t, TOP_KEY_END);
	assert_says(draw(60, 10), "f49");
	assert_omits(draw(60, 10), "f43");
	top_view_key(&v, t, TOP_KEY_PAGE_UP);
	assert_says(draw(60, 10), "f43");
	top_view_key(&v, t, TOP_KEY_HOME);
	assert_says(draw(60, 10), "f00");
}

TEST_WITH(says_what_there_is_when_there_is_nothing, set_up, tear_down)
{
	const struct top_news news = { .message = "cannot connect" },
			      over = { .message = "", .is_over = true };

	assert_says(draw(80, 10), "waiting for the first samples");
	assert_says(draw_with(&news, 80, 10), "cannot connect");
	assert_says(draw_with(&news, 80, 1), "cannot connect");
	make(TOP_STACKS);
	assert_says(draw(80, 10), "nothing yet");
	assert_says(draw_with(&over, 80, 10), "ENDED  in use 0 B");
	type("p");
	assert_says(draw(80, 10), "PAUSED  in use");
}

TEST_WITH(rates_are_unknown_at_first, set_up, tear_down)
{
	struct top_row *row;

	top_rates_init(&rates);
	add((uint32_t[]){ made_frame(p, "put", 3) }, 1, "", 6 * MIB, 10 * MIB);
	make(TOP_STACKS);
	assert_int_equal(top_rates_update(&rates, 100 * NS_PER_S, t), 0);
	assert_true(isnan(t->rows.data[0].growth_per_min));
	assert_true(isnan(t->total.alloc_per_s));
	assert_says(draw(80, 8), " -  ");

	assert_omits(draw_with(&(struct top_news){ .message = "", .has_utf8 = true }, 80, 8),
		     "\u2588");

	renew();
	add((uint32_t[]){ made_frame(p, "put", 3) }, 1, "", 6 * MIB, 10 * MIB);
	make(TOP_STACKS);
	assert_int_equal(top_rates_update(&rates, 101 * NS_PER_S, t), 0);
	assert_true(isnan(t->rows.data[0].growth_per_min));
	assert_int_equal(top_rates_update(&rates, 102 * NS_PER_S, t), 0); /* the second refresh */
	assert_true(t->rows.data[0].growth_per_min == 0);

	renew();
	add((uint32_t[]){ made_frame(p, "put", 3) }, 1, "", 8 * MIB, 20 * MIB);
	make(TOP_STACKS);
	assert_int_equal(top_rates_update(&rates, 110 * NS_PER_S, t), 0);
	assert_says(draw_with(&(struct top_news){ .message = "", .has_utf8 = true }, 80, 8),
		    " \u2587\u2588"); /* 6 of 8 MiB */
	row = &t->rows.data[0];
	assert_true(fabs(row->growth_per_min - 12 * MIB) < 1);
	assert_true(fabs(row->alloc_per_s - 1 * MIB) < 1);
	assert_false(row->growth_is_weak); /* every allocation is recorded: nothing is chance */
	assert_says(draw(80, 8), "+12.0 MiB ");
	assert_says(draw(80, 8), "in use 8.00 MiB (+12.0 MiB/min), allocates 1.00 MiB/s");
	t->total.growth_is_weak = row->growth_is_weak = true;
	assert_says(draw(80, 8), "+12.0 MiB? ");
	assert_says(draw(80, 8), "(+12.0 MiB?/min)");
	type("g");
	assert_says(draw(24, 8), "+12.0 MiB? "); /* what the order is by has a column in any case */
}

TEST_WITH(chance_is_told_from_growth, set_up, tear_down)
{
	struct top_row *row;

	top_rates_init(&rates);
	for (uint64_t i = 0; i < 3; i++) {
		renew();
		add((uint32_t[]){ made_frame(p, "put", 3) }, 1, "", (int64_t)(10 + 10 * i) * MIB,
		    99 * MIB);
		make(TOP_STACKS);
		row = &t->rows.data[0];
		row->held_variance = i ? 5.0 * MIB * MIB * MIB : 9.0 * MIB * MIB;
		if (i == 2)
			row->held_variance = 9.0 * MIB * MIB;
		assert_int_equal(top_rates_update(&rates, (100 + 10 * i) * NS_PER_S, t), 0);
		if (i) /* 10 MiB more is within, 20 MiB more is not: 1.96 * sqrt(9 + 9) is 8.3 */
			assert_int_equal(row->growth_is_weak, i == 1);
	}
}

TEST_WITH(growth_is_of_the_last_minute, set_up, tear_down)
{
	top_rates_init(&rates);
	for (uint64_t s = 0; s <= 300; s += 2) {
		renew();
		/* grows by 60 MiB a minute for two minutes, then no more */
		add((uint32_t[]){ made_frame(p, "put", 3) }, 1, "",
		    (int64_t)(s < 120 ? s : 120) * MIB + MIB, 1000 * MIB);
		make(TOP_STACKS);
		assert_int_equal(top_rates_update(&rates, (100 + s) * NS_PER_S, t), 0);
		if (s == 110)
			assert_true(fabs(t->rows.data[0].growth_per_min - 60 * MIB) < MIB);
	}
	assert_true(t->rows.data[0].growth_per_min == 0);
	assert_true(t->rows.data[0].alloc_per_s == 0);
}

/* At `at` seconds `held` MiB: the growth in MiB a minute. */
static double growth_at(uint64_t at, int64_t held)
{
	renew();
	add((uint32_t[]){ made_frame(p, "put", 3) }, 1, "", held * MIB, 1000 * MIB);
	make(TOP_STACKS);
	assert_int_equal(top_rates_update(&rates, (1000 + at) * NS_PER_S, t), 0);
	return t->rows.data[0].growth_per_min / MIB;
}

TEST_WITH(growth_of_seldom_looks_is_since_the_last_one, set_up, tear_down)
{
	top_rates_init(&rates);
	assert_true(isnan(growth_at(0, 10)));
	assert_true(growth_at(30, 40) == 60);
	assert_true(growth_at(150, 40) == 0); /* what was before the last look is no matter */
	assert_true(growth_at(270, 60) == 10);
	assert_true(growth_at(271, 60) != 0); /* 1 s is too little to compare: since 150 s */
	assert_true(growth_at(276, 60) == 0); /* the one of 270 s is old enough now */
}

/* Not known of one: what is held. Of all: growth, by which they are sorted. */
TEST_WITH(what_is_not_known_has_one_order, set_up, tear_down)
{
	static const int permutations[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					       { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	struct top_row rows[3];

	add(NULL, 0, "A", 5 * MIB, 9 * MIB);
	add(NULL, 0, "B", 3 * MIB, 7 * MIB);
	add(NULL, 0, "C", 4 * MIB, 8 * MIB);
	make(TOP_SCOPES);
	assert_string_equal(order(), "A C B");
	assert_int_equal(t->rows.cnt, 3);
	memcpy(rows, t->rows.data, sizeof(rows));
	for (size_t i = 0; i < 3; i++)
		if (!strcmp(rows[i].name, "B"))
			rows[i].held_bytes = NAN;
	v.sort = TOP_BY_GROWTH;
	for (size_t i = 0; i < sizeof(permutations) / sizeof(*permutations); i++) {
		for (size_t k = 0; k < 3; k++)
			t->rows.data[k] = rows[permutations[i][k]];
		assert_string_equal(order(), "A C B");
	}
}

RUN_TESTS()
