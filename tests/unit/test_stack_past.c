/* SPDX-License-Identifier: MIT */
/*
 * test_stack_past.c - what stacks held, against a list of all blocks: at any moment, in what two moments have in common, and
 * when there is not room for all; bounded, coarser with age; who comes after another; growth of a day in a minute.
 */
#include "unit.h"
#include "random.h"

#include "base/clock.h"
#include "http/past.h"
#include "profile/growth.h"

#define T0_NS (1000 * NS_PER_S)
#define IMAGE ((uint64_t)7 << 32 | 3)
#define BLOCKS 8000
#define STACKS 300

static struct stack_past *past;
static uint64_t seed = 88172645463325252ULL;

struct block {
	uint64_t begin_ns, end_ns; /* live from, and until before */
	uint64_t size, stack_id, image;
	double p;
};
static struct block blocks[BLOCKS];

static int set_up(void **state)
{
	return stack_past_new(10 * NS_PER_S, &past);
}

static int tear_down(void **state)
{
	stack_past_free(past);
	return 0;
}

static uint64_t at(double seconds)
{
	return T0_NS + (uint64_t)(seconds * 1e9);
}

static void begin(double seconds)
{
	const struct stack_past_moment now = { at(seconds), (int64_t)(seconds * 1e9) };

	stack_past_begin(past, &now);
}

static void add(uint64_t image, uint64_t stack_id, double since_s, uint64_t size, double p)
{
	const struct history_key key = { .stack_id = stack_id, .image = image, .context_id = 1 };

	assert_int_equal(stack_past_add(past, &key, at(since_s), size, p), 0);
}

static void end(void)
{
	assert_int_equal(stack_past_end(past, 0), 0);
}

/* All that is live then of the first cnt blocks. */
static void read_blocks(size_t cnt, double seconds)
{
	begin(seconds);
	assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
	for (size_t i = 0; i < cnt; i++) {
		const struct history_key key = { .stack_id = blocks[i].stack_id, .image = IMAGE };

		if (blocks[i].begin_ns <= at(seconds) && at(seconds) < blocks[i].end_ns)
			assert_int_equal(stack_past_add(past, &key, blocks[i].begin_ns,
							blocks[i].size, blocks[i].p),
					 0);
	}
	end();
}

struct pair {
	double bytes[2], variance[2], objects[2];
	uint64_t samples[2];
};
struct pairs {
	struct pair of[STACKS + 1], all; /* the last: the rest */
	bool has[STACKS + 1];
	size_t row_cnt;
};

static int on_pair(void *ctx, const struct history_key *key, const struct estimate e[2])
{
	struct pairs *p = ctx;
	size_t i = key->stack_id == STACK_PAST_REST ? STACKS : (size_t)key->stack_id;

	assert_true(i <= STACKS && !p->has[i]);
	p->has[i] = true;
	p->row_cnt++;
	for (int k = 0; k < 2; k++) {
		p->of[i].bytes[k] = e[k].bytes;
		p->of[i].variance[k] = e[k].bytes_variance;
		p->of[i].objects[k] = e[k].objects;
		p->of[i].samples[k] = e[k].samples;
		p->all.bytes[k] += e[k].bytes;
		p->all.samples[k] += e[k].samples;
	}
	return 0;
}

static struct pairs compared(uint64_t image, size_t before, size_t after)
{
	struct pairs p = { 0 };

	assert_int_equal(stack_past_compare(past, image, before, after, on_pair, &p), 0);
	return p;
}

/* The same from the list. stack_id 0: of all. */
static struct pair truth(size_t cnt, uint64_t stack_id, uint64_t before_ns, uint64_t after_ns)
{
	struct pair p = { 0 };

	for (size_t i = 0; i < cnt; i++) {
		const struct block *b = &blocks[i];
		bool is[2] = { b->begin_ns <= before_ns && before_ns < b->end_ns,
			       b->begin_ns <= after_ns && after_ns < b->end_ns };
		double n = (double)b->size;

		for (int k = 0; k < 2; k++) {
			if (!is[k] || (stack_id && b->stack_id != stack_id))
				continue;
			p.samples[k]++;
			p.bytes[k] += n / b->p;
			p.objects[k] += 1 / b->p;
			if (!is[!k])
				p.variance[k] += n * n * (1 - b->p) / (b->p * b->p);
		}
	}
	return p;
}

static void same(double a, double b)
{
	assert_true(fabs(a - b) <= 1e-3 * fmax(fabs(a), fabs(b)) + 1e-3);
}

/* Blocks that come and go for hours; the larger its number, the longer a stack's blocks live. */
static void make_blocks(double hours)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		double begin_s = uniform(&seed) * hours * 3600;
		uint64_t stack = 1 + (uint64_t)(uniform(&seed) * (STACKS - 1));
		double lives_s = -log(uniform(&seed)) * 5 * (double)stack;

		blocks[i] = (struct block){ at(begin_s),
					    at(begin_s + lives_s),
					    1 + (uint64_t)(uniform(&seed) * 9000),
					    stack,
					    IMAGE,
					    0.1 + 0.9 * uniform(&seed) };
	}
}

TEST_WITH(any_two_moments_are_exact, set_up, tear_down)
{
	const struct stack_past_moment *moments;
	size_t cnt;

	make_blocks(2);
	for (double s = 10; s < 2 * 3600; s += 15 + 10 * uniform(&seed))
		read_blocks(BLOCKS, s);
	cnt = stack_past_moments(past, IMAGE, &moments);
	assert_in_range(cnt, 40, 200);
	for (int i = 0; i < 30; i++) {
		size_t before = (size_t)(uniform(&seed) * (double)(cnt - 1));
		size_t after = before + 1 + (size_t)(uniform(&seed) * (double)(cnt - before - 1));
		struct pairs got = compared(IMAGE, before, after);

		assert_false(got.has[STACKS]); /* there is room for all */
		for (uint64_t stack = 1 + (uint64_t)i; stack < STACKS; stack += 17) {
			struct pair want = truth(BLOCKS, stack, moments[before].time_ns,
						 moments[after].time_ns);

			for (int k = 0; k < 2; k++) {
				assert_int_equal(got.of[stack].samples[k], want.samples[k]);
				same(got.of[stack].bytes[k], want.bytes[k]);
				same(got.of[stack].variance[k], want.variance[k]);
				same(got.of[stack].objects[k], want.objects[k]);
			}
		}
	}
}

/* Two hundred other images of which each wants more than its part, from some moments on. */
static void take_all_room(uint64_t moment)
{
	for (uint64_t i = 0; i < 200; i++) {
		assert_int_equal(stack_past_name_image(past, i, 1), 0);
		for (uint64_t k = 0; k < 1500 && moment == 40 + i / 40; k++)
			add(i, k + 1, 0, 100, 1);
	}
}

TEST_WITH(what_does_not_fit_is_in_the_rest, set_up, tear_down)
{
	const struct stack_past_moment *moments;
	size_t cnt, named_cnt = 0, moment = 0;

	make_blocks(2);
	for (size_t i = 0; i < BLOCKS; i += 20) /* one that leaks */
		blocks[i] = (struct block){
			i ? blocks[i].begin_ns : T0_NS, UINT64_MAX, 50000, 77, IMAGE, 0.5
		};
	blocks[0].size = 10000000; /* from the begin on it is what holds most */
	for (double s = 10; s < 2 * 3600; s += s < 5400 ? 120 : 30) {
		begin(s);
		assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
		take_all_room(moment++);
		for (size_t i = 0; i < BLOCKS; i++) {
			const struct history_key key = { blocks[i].stack_id, IMAGE, 0 };

			if (blocks[i].begin_ns <= at(s) && at(s) < blocks[i].end_ns)
				assert_int_equal(stack_past_add(past, &key, blocks[i].begin_ns,
								blocks[i].size, blocks[i].p),
						 0);
		}
		end();
		assert_true(stack_past_bytes(past) <=
			    STACK_PAST_ENTRY_BYTES * STACK_PAST_ENTRIES_CAP + 100000);
	}
	cnt = stack_past_moments(past, IMAGE, &moments);
	for (int i = 0; i < 30; i++) {
		size_t before = (size_t)(uniform(&seed) * (double)(cnt - 1));
		size_t after = before + 1 + (size_t)(uniform(&seed) * (double)(cnt - before - 1));
		struct pairs got = compared(IMAGE, before, after);
		struct pair want =
			truth(BLOCKS, 0, moments[before].time_ns, moments[after].time_ns);

		assert_true(got.has[STACKS] && got.has[77]);
		assert_true(got.row_cnt > 1 && got.row_cnt < 400);
		for (int k = 0; k < 2; k++) { /* nothing is lost, nothing counts twice */
			assert_int_equal(got.all.samples[k], want.samples[k]);
			same(got.all.bytes[k], want.bytes[k]);
		}
		for (uint64_t stack = 1; stack < STACKS; stack += 4) {
			if (!got.has[stack])
				continue;
			named_cnt++;
			want = truth(BLOCKS, stack, moments[before].time_ns,
				     moments[after].time_ns);
			for (int k = 0; k < 2; k++)
				assert_int_equal(got.of[stack].samples[k], want.samples[k]);
		}
	}
	assert_true(named_cnt > 30);
}

/* A stack that churns so much that its past does not fit, in an image that has only its part: the begin is cut off, and
 * is in the rest; since then all is exact. One that only holds keeps its past. */
TEST_WITH(a_past_that_does_not_fit_is_cut, set_up, tear_down)
{
	const struct stack_past_moment *moments;
	size_t cnt, known_cnt = 0, moment = 0;
	struct history *h;
	bool is_partial;
	double last_s = 0;

	for (size_t i = 0; i < BLOCKS; i++) {
		double begin_s = uniform(&seed) * 7200;
		double lives_s = 10 * exp(uniform(&seed) * log(360));

		blocks[i] = (struct block){ at(begin_s), at(begin_s + lives_s), 1000, 5, IMAGE, 1 };
	}
	blocks[0] = (struct block){ T0_NS, UINT64_MAX, 7, 6, IMAGE, 1 };
	for (double s = 10; s < 7200; s += 30) {
		begin(s);
		assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
		take_all_room(moment++);
		for (size_t i = 0; i < BLOCKS; i++) {
			const struct history_key key = { blocks[i].stack_id, IMAGE, 0 };

			if (blocks[i].begin_ns <= at(s) && at(s) < blocks[i].end_ns)
				assert_int_equal(stack_past_add(past, &key, blocks[i].begin_ns,
								blocks[i].size, 1),
						 0);
		}
		end();
		last_s = s;
	}
	cnt = stack_past_moments(past, IMAGE, &moments);
	for (size_t before = 0; before < cnt; before++) {
		struct pairs got = compared(IMAGE, before, cnt - 1);
		struct pair all = truth(BLOCKS, 0, moments[before].time_ns, at(last_s));
		struct pair want = truth(BLOCKS, 5, moments[before].time_ns, at(last_s));

		assert_true(got.has[6] && got.of[6].samples[0] == 1);
		assert_true(got.has[5] || !known_cnt); /* known from some moment on */
		known_cnt += got.has[5];
		for (int k = 0; k < 2; k++) {
			assert_int_equal(got.all.samples[k], all.samples[k]);
			if (!got.has[5])
				continue;
			assert_int_equal(got.of[5].samples[k], want.samples[k]);
			same(got.of[5].bytes[k], want.bytes[k]);
		}
	}
	assert_in_range(known_cnt, 5, cnt - 1);
	assert_int_equal(stack_past_history(past, IMAGE, 0, &h, &is_partial), 0);
	assert_true(is_partial);
	history_free(h);
	assert_int_equal(stack_past_history(past, IMAGE, moments[cnt - 1].time_ns, &h, &is_partial),
			 0);
	history_free(h);
}

TEST_WITH(moments_are_coarser_with_age, set_up, tear_down)
{
	const struct stack_past_moment *m;
	size_t cnt, most = 0;
	double now_s = 0;

	for (; now_s < 30 * 3600; now_s += 7.5 + 5 * uniform(&seed)) {
		begin(now_s);
		assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
		add(IMAGE, 1, 0, 100, 1);
		end();
		cnt = stack_past_moments(past, IMAGE, &m);
		most = cnt > most ? cnt : most;
	}
	assert_in_range(most, 90, 200);
	cnt = stack_past_moments(past, IMAGE, &m);
	assert_true(m[0].time_ns >= m[cnt - 1].time_ns - STACK_PAST_NS);
	assert_true(m[0].time_ns <= m[cnt - 1].time_ns - 22 * 3600 * NS_PER_S);
	for (size_t i = 0; i + 1 < cnt; i++) {
		double age_s = (double)(m[cnt - 1].time_ns - m[i].time_ns) / 1e9;
		double gap_s = (double)(m[i + 1].time_ns - m[i].time_ns) / 1e9;

		assert_true(gap_s <= fmax(12.6, age_s / 12));
	}
	/* hours of a second each */
	stack_past_forget(past);
	for (int s = 0; s < 20000; s++) {
		begin(now_s + s);
		assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
		end();
		assert_in_range(stack_past_moments(past, IMAGE, &m), 1, STACK_PAST_MOMENTS_CAP);
	}
}

TEST_WITH(a_sleep_of_days, set_up, tear_down)
{
	const struct stack_past_moment *m;

	for (int i = 0; i < 100; i++) {
		begin(10 * i + 300000 * (i == 99));
		assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
		add(IMAGE, 1, 0, 100, 1);
		add(IMAGE, 2, 10 * i, 100, 1); /* of this moment alone */
		end();
	}
	assert_in_range(stack_past_moments(past, IMAGE, &m), 1, 2);
	assert_true(compared(IMAGE, 0, 0).has[1]);
}

/* The clock of people may say anything. */
TEST_WITH(clocks_that_jump, set_up, tear_down)
{
	static const int64_t epoch_s[] = { 5000, 5010, 1000, 1010, 9000 };
	const struct stack_past_moment *m;
	struct pairs got;

	for (int i = 0; i < 5; i++) {
		const struct stack_past_moment now = { at(10 * i), epoch_s[i] * 1000000000 };

		stack_past_begin(past, &now);
		assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
		for (int k = 0; k <= i; k++)
			add(IMAGE, 1, 10 * k - 1, 100, 1);
		end();
	}
	assert_int_equal(stack_past_moments(past, IMAGE, &m), 5);
	for (int i = 0; i < 5; i++)
		assert_true(m[i].epoch_ns == epoch_s[i] * 1000000000);
	got = compared(IMAGE, 1, 4);
	assert_true(got.of[1].bytes[0] == 200 && got.of[1].bytes[1] == 500);
}

TEST_WITH(another_has_the_pid, set_up, tear_down)
{
	const struct stack_past_moment *m;
	const uint64_t other = IMAGE + (UINT64_C(1) << 16);

	for (int i = 0; i < 3; i++) {
		begin(10 * i);
		assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
		add(IMAGE, 1, 0, 100, 1);
		end();
	}
	begin(30); /* the samples of the old one may still be there */
	assert_int_equal(stack_past_name_image(past, other, 2), 0);
	add(IMAGE, 1, 0, 100, 1);
	add(other, 2, 25, 30, 1);
	end();
	assert_int_equal(stack_past_moments(past, IMAGE, &m), 0);
	assert_int_equal(stack_past_compare(past, IMAGE, 0, 0, on_pair, NULL), -ENOENT);
	assert_int_equal(stack_past_moments(past, other, &m), 1);
	assert_true(m[0].time_ns == at(30));
	assert_true(compared(other, 0, 0).of[2].bytes[0] == 30);

	/* what is in use was not known for a while */
	begin(40);
	assert_int_equal(stack_past_name_image(past, other, at(35)), 0);
	add(other, 2, 25, 30, 1);
	end();
	assert_int_equal(stack_past_moments(past, other, &m), 1);
	assert_true(m[0].time_ns == at(40));
}

static int sum_up(void *ctx, const struct history_key *key, const struct estimate e[2])
{
	uint64_t *sum = ctx;

	*sum += e[1].samples;
	return 0;
}

TEST_WITH(there_are_not_too_many, set_up, tear_down)
{
	const struct stack_past_moment *m;
	uint64_t sum = 0;

	begin(1);
	for (uint64_t i = 1; i <= STACK_PAST_IMAGES_CAP; i++) {
		assert_false(stack_past_is_full(past));
		assert_int_equal(stack_past_name_image(past, i, 1), 0);
	}
	assert_true(stack_past_is_full(past));
	assert_int_equal(stack_past_name_image(past, 100000, 1), -ENOSPC);
	assert_int_equal(stack_past_name_image(past, 5, 1), 0);
	add(100000, 1, 0, 100, 1); /* is left out */
	/* stacks without end, of one that has its part of the room: each of them counts */
	for (uint64_t i = 0; i < 600000; i++)
		add(5, i % 300000 + 1, 0.5, 100, 1);
	end();
	assert_int_equal(stack_past_compare(past, 5, 0, 0, sum_up, &sum), 0);
	assert_int_equal(sum, 600000);
	assert_int_equal(stack_past_moments(past, 100000, &m), 0);
	assert_true(stack_past_bytes(past) <
		    STACK_PAST_ENTRY_BYTES * STACK_PAST_ENTRIES_CAP + 100000);
	begin(20);
	end();
	assert_false(stack_past_is_full(past));
	assert_int_equal(stack_past_moments(past, 5, &m), 0);
}

TEST_WITH(moments_that_are_dear_are_rare, set_up, tear_down)
{
	begin(0);
	assert_int_equal(stack_past_end(past, NS_PER_S), 0);
	assert_in_range(stack_past_due_ns(past), at(150), at(250));
	begin(200);
	end();
	assert_in_range(stack_past_due_ns(past), at(207.5), at(212.5));
}

/* A leak, a cache that churns, one that only holds: of the last hour and of the last day. */
static struct growth judged(uint64_t stack_id, double now_s, double seconds, bool *ret_is_partial)
{
	const struct history_key key = { .stack_id = stack_id, .image = IMAGE, .context_id = 1 };
	int64_t moment_ns[STACK_PAST_MOMENTS_CAP];
	const struct history_life *lives;
	struct growth_sums sums = { 0 };
	struct growth_plan plan;
	struct history *h;
	struct growth g;
	size_t cnt;

	assert_int_equal(stack_past_history(past, IMAGE, now_s > seconds ? at(now_s - seconds) : 0,
					    &h, ret_is_partial),
			 0);
	for (size_t i = 0; i < history_moments(h)->cnt; i++)
		moment_ns[i] = (int64_t)history_moments(h)->ns[i];
	growth_plan_init(&plan, moment_ns, history_moments(h)->cnt, moment_ns[0],
			 (int64_t)at(now_s), 65536);
	assert_true(plan.is_known);
	lives = history_lives(h, &key, &cnt);
	for (size_t i = 0; lives && i < cnt; i++)
		growth_add(&plan, &sums, &lives[i]);
	growth_judge(&plan, &sums, 1, &g);
	history_free(h);
	return g;
}

TEST_WITH(what_grows_is_told, set_up, tear_down)
{
	static const struct {
		double now_s, window_s;
	} cases[] = { { 600, 3600 }, { 3600, 3600 }, { 20000, 3600 }, { 100000, 86400 } };
	const double p = 1 - exp(-6000. / 65536), leaks_per_s = 6000 / p / 60;
	size_t next = 0;

	/* further apart when it takes a day */
	for (double now = 10; next < 4;
	     now += (now < 20000 ? 10 : 100) * (0.75 + uniform(&seed) / 2)) {
		begin(now);
		assert_int_equal(stack_past_name_image(past, IMAGE, 1), 0);
		/* 6 kB a minute, as sampled; 400 that live 5 to 60 s; 400 of the beginning */
		for (double s = 30; s < now; s += 60)
			add(IMAGE, 1, s, 6000, p);
		for (int i = 0; i < 400; i++)
			add(IMAGE, 2, now - (double)(i % 12) * 5 - uniform(&seed), 1000,
			    1 - exp(-1000. / 65536));
		for (int i = 0; i < 400; i++)
			add(IMAGE, 3, 0, 1000, 1 - exp(-1000. / 65536));
		end();
		if (now >= cases[next].now_s) {
			bool is_partial;
			struct growth leak = judged(1, now, cases[next].window_s, &is_partial);

			assert_false(is_partial);
			assert_int_equal(leak.verdict, GROWTH_GROWS);
			assert_true(leak.low < leaks_per_s && leak.high > leaks_per_s);
			assert_int_equal(judged(2, now, cases[next].window_s, &is_partial).verdict,
					 GROWTH_STEADY);
			assert_int_equal(judged(3, now, cases[next].window_s, &is_partial).verdict,
					 GROWTH_STEADY);
			next++;
		}
	}
}

RUN_TESTS()
