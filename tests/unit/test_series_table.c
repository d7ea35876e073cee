/* SPDX-License-Identifier: MIT */
/* Which scopes are series, that they stay, that their sum is the process, and that counters never go back. */
#include "unit.h"

#include "http/series.h"

static struct series_cell cell(const char *scope, double inuse, double alloc)
{
	return (struct series_cell){
		.scope = scope,
		.pool = "t",
		.inuse = { .samples = 1, .bytes = inuse, .objects = 1, .bytes_variance = inuse },
		.alloc_bytes = alloc,
		.alloc_objects = alloc / 8,
	};
}

static const struct series_cell *find(const struct series_cell *rows, size_t cnt, const char *scope)
{
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(rows[i].scope, scope))
			return &rows[i];
	return NULL;
}

struct rig {
	struct series_table *b;
	struct series_process process;
	struct series_cell total;
	const struct series_cell *rows;
	size_t cnt;
};

/* Whatever happens: the rows sum up to the process, the rest is the last, names are distinct. */
static void check_sums(const struct rig *r, const struct series_cell *cells, size_t cnt)
{
	double inuse = 0, variance = 0, alloc = 0, objects = 0, want = 0;

	for (size_t i = 0; i < cnt; i++)
		want += cells[i].inuse.bytes;
	assert_true(r->total.inuse.bytes == want);
	for (size_t i = 0; i < r->cnt; i++) {
		inuse += r->rows[i].inuse.bytes;
		variance += r->rows[i].inuse.bytes_variance;
		alloc += r->rows[i].alloc_bytes;
		objects += r->rows[i].alloc_objects;
		assert_true(strcmp(r->rows[i].scope, SERIES_OTHER) || i + 1 == r->cnt);
		for (size_t k = 0; k < i; k++)
			assert_true(strcmp(r->rows[i].scope, r->rows[k].scope) ||
				    strcmp(r->rows[i].pool, r->rows[k].pool));
	}
	assert_true(inuse == want);
	assert_true(variance == want);
	assert_true(alloc == r->total.alloc_bytes);
	assert_true(objects - r->total.alloc_objects < 1e-6 &&
		    objects - r->total.alloc_objects > -1e-6);
}

static void update(struct rig *r, const struct series_cell *cells, size_t cnt)
{
	assert_int_equal(series_table_update(r->b, &r->process, cells, cnt, &r->total, &r->rows,
					     &r->cnt),
			 0);
}

static double alloc_of(const struct rig *r, const char *scope)
{
	const struct series_cell *row = find(r->rows, r->cnt, scope);

	assert_non_null(row);
	return row->alloc_bytes;
}

static void begin(struct rig *r, size_t max_cnt)
{
	memset(r, 0, sizeof(*r));
	assert_int_equal(series_table_new(max_cnt, &r->b), 0);
	r->process = (struct series_process){ 17, 1000, 0 };
}

TEST(test_largest)
{
	const struct series_cell cells[] = { cell("a", 10, 100), cell("b", 40, 80),
					     cell("c", 20, 70), cell("d", 30, 60) };
	struct rig r;

	begin(&r, 2);
	update(&r, cells, 4);
	check_sums(&r, cells, 4);
	assert_int_equal(r.cnt, 3);
	assert_string_equal(r.rows[0].scope, "b");
	assert_string_equal(r.rows[1].scope, "d");
	assert_string_equal(r.rows[2].scope, SERIES_OTHER);
	assert_string_equal(r.rows[2].pool, SERIES_OTHER);
	assert_true(r.rows[2].inuse.bytes == 30);
	assert_int_equal(r.rows[2].inuse.samples, 2);
	assert_true(alloc_of(&r, "b") == 80 && alloc_of(&r, SERIES_OTHER) == 170);
	series_table_free(r.b);

	begin(&r, 4);
	update(&r, cells, 4);
	assert_int_equal(r.cnt, 4);
	assert_null(find(r.rows, r.cnt, SERIES_OTHER));
	check_sums(&r, cells, 4);
	update(&r, NULL, 0);
	assert_true(r.total.alloc_bytes == 310); /* what was counted stays */
	series_table_free(r.b);

	begin(&r, 0);
	update(&r, cells, 4);
	assert_int_equal(r.cnt, 0);
	assert_true(r.total.inuse.bytes == 100 && r.total.alloc_bytes == 310);
	series_table_free(r.b);
}

/* Who came first stays, however small; who came later stays in (other), however large, also when others hold nothing. */
TEST(test_first_come)
{
	struct series_cell cells[] = { cell("a", 100, 100), cell("b", 50, 60), cell("c", 40, 50) };
	struct rig r;

	begin(&r, 2);
	update(&r, cells, 3);
	assert_true(alloc_of(&r, SERIES_OTHER) == 50);
	cells[2] = cell("c", 4000, 5000);
	update(&r, cells, 3);
	check_sums(&r, cells, 3);
	assert_null(find(r.rows, r.cnt, "c"));
	assert_true(alloc_of(&r, "b") == 60 && alloc_of(&r, SERIES_OTHER) == 5000);
	/* Only c is left: the others keep their series and what they have allocated. */
	update(&r, &cells[2], 1);
	check_sums(&r, &cells[2], 1);
	assert_int_equal(r.cnt, 3);
	assert_true(find(r.rows, r.cnt, "a")->inuse.bytes == 0);
	assert_true(alloc_of(&r, "a") == 100 && alloc_of(&r, SERIES_OTHER) == 5000);
	/* also when the process executes another program */
	r.process.generation++;
	cells[2] = cell("c", 7, 7);
	update(&r, &cells[2], 1);
	check_sums(&r, &cells[2], 1);
	assert_true(alloc_of(&r, "a") == 100 && alloc_of(&r, SERIES_OTHER) == 5007);
	series_table_free(r.b);
}

/* A pair that is new where every pair has a series shows all that it has allocated. */
TEST(test_new_pair)
{
	struct series_cell cells[] = { cell("a", 100, 100), cell("b", 50, 60) };
	struct rig r;

	begin(&r, 5);
	update(&r, cells, 1);
	update(&r, cells, 2);
	assert_true(alloc_of(&r, "b") == 60);
	check_sums(&r, cells, 2);
	series_table_free(r.b);
}

TEST(test_named_other)
{
	struct series_cell cells[] = { cell("a", 10, 10), cell(SERIES_OTHER, 50, 60),
				       cell(SERIES_OTHER, 5, 6) };
	struct rig r;

	cells[1].pool = SERIES_OTHER;
	begin(&r, 5);
	update(&r, cells, 3);
	assert_int_equal(r.cnt, 3); /* a; (other) of thread t; the rest */
	assert_string_equal(r.rows[2].pool, SERIES_OTHER);
	assert_true(r.rows[2].inuse.bytes == 50 && r.rows[2].alloc_bytes == 60);
	series_table_free(r.b);
}

TEST(test_lives)
{
	struct series_cell cells[] = { cell("a", 10, 1000) };
	struct rig r;

	begin(&r, 5);
	update(&r, cells, 1);
	/* another program in the process: its series go on */
	r.process.generation++;
	cells[0] = cell("a", 10, 30);
	update(&r, cells, 1);
	assert_true(alloc_of(&r, "a") == 1030 && r.total.alloc_bytes == 1030);
	cells[0] = cell("a", 10, 40);
	update(&r, cells, 1);
	assert_true(alloc_of(&r, "a") == 1040);
	/* another process with its pid */
	r.process.start++;
	update(&r, cells, 1);
	assert_true(alloc_of(&r, "a") == 40 && r.total.alloc_bytes == 40);
	/* seen before one sweep, not before the next */
	series_table_sweep(r.b);
	update(&r, cells, 1);
	series_table_sweep(r.b);
	series_table_sweep(r.b);
	cells[0] = cell("a", 10, 7);
	update(&r, cells, 1);
	assert_true(alloc_of(&r, "a") == 7);
	series_table_free(r.b);
}

#define SCOPES 40
#define KEPT 6

/* Scopes that grow and shrink at random, an exec now and then: no series that was there before is gone or goes back,
 * and the sums hold at every step. */
TEST(test_random)
{
	double inuse[SCOPES] = { 0 }, alloc[SCOPES] = { 0 }, before[SCOPES + 1];
	struct series_cell cells[SCOPES];
	char names[SCOPES][8];
	struct rig r;

	srand(1);
	begin(&r, KEPT);
	for (size_t i = 0; i <= SCOPES; i++)
		before[i] = -1;
	for (int step = 0; step < 3000; step++) {
		double total = r.total.alloc_bytes;
		size_t cnt = 0;

		if (rand() % 200 == 0) {
			r.process.generation++;
			memset(inuse, 0, sizeof(inuse));
			memset(alloc, 0, sizeof(alloc));
		}
		for (size_t i = 0; i < SCOPES; i++) {
			double grown = rand() % 4 ? 0 : rand() % 100000;

			alloc[i] += grown;
			inuse[i] += grown;
			if (rand() % 10 == 0)
				inuse[i] = rand() % 3 ? inuse[i] - rand() % ((int)inuse[i] + 1) : 0;
			snprintf(names[i], sizeof(names[i]), "s%zu", i);
			if (alloc[i] > 0)
				cells[cnt++] = cell(names[i], inuse[i], alloc[i]);
		}
		update(&r, cells, cnt);
		check_sums(&r, cells, cnt);
		assert_true(r.cnt <= KEPT + 1);
		assert_true(r.total.alloc_bytes >= total);
		for (size_t i = 0; i <= SCOPES; i++) {
			const struct series_cell *row =
				find(r.rows, r.cnt, i < SCOPES ? names[i] : SERIES_OTHER);

			assert_true(row ? row->alloc_bytes >= before[i] : before[i] < 0);
			before[i] = row ? row->alloc_bytes : -1;
		}
	}
	series_table_free(r.b);
}

RUN_TESTS()
