/* SPDX-License-Identifier: MIT */
/*
 * test_peak.c - what stacks held when most was held: exact at rate 1, whatever came before and after; when a program is
 * replaced by another; and of samples, whose parts add up to the peak.
 *
 * The test program itself is the image that is executed: with an argument it is not a test, but the target's second
 * life.
 */
#include "rig.h"

#include "record/snapshot.h"

#define SLOT_CNT 64
#define SITE_CNT 4
#define STACK_CNT (2 * SITE_CNT) /* a site calls malloc() or realloc() */
#define CALL_CNT 1000
#define SAMPLED_RATE_BYTES 700
#define OLD_BYTES 1000000
#define SECOND_BYTES 900000
#define THIRD_BYTES 300000
/* What a program allocates before its main(). */
#define STARTUP_BYTES 100000

static void *(*volatile do_malloc)(size_t) = malloc;
static void *(*volatile do_realloc)(void *, size_t) = realloc;
static void (*volatile do_free)(void *) = free;

static void *held[256];

#define SITE(name)                                                       \
	static __attribute__((noinline)) void *name(void *old, size_t n) \
	{                                                                \
		void *p = old ? do_realloc(old, n) : do_malloc(n);       \
                                                                         \
		__asm__ volatile("" : "+r"(p)); /* no tail call */       \
		return p;                                                \
	}
SITE(site_a)
SITE(site_b)
SITE(site_c)
SITE(site_d)

static void *(*const sites[SITE_CNT])(void *, size_t) = { site_a, site_b, site_c, site_d };

/* What one stack held. */
struct part {
	uint64_t bytes, blocks;
};

#define PARTS_CAP 64
struct parts {
	struct part part[PARTS_CAP]; /* ascending */
	size_t cnt;
	double bytes, variance;
	uint64_t time_ns;
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return (x->blocks > y->blocks) - (x->blocks < y->blocks);
}

static struct parts peak_parts(struct rig *rig)
{
	struct parts all = { 0 };
	const struct snapshot_row *row;
	struct snapshot *s;

	assert_int_equal(snapshot_take(rig->engine, NULL, &s), 0);
	vec_each(&s->rows, row) {
		all.bytes += row->peak.bytes;
		all.variance += row->peak.bytes_variance;
		if (!row->peak.samples)
			continue;
		assert_true(all.cnt < PARTS_CAP);
		all.part[all.cnt++] =
			(struct part){ (uint64_t)row->peak.bytes, (uint64_t)row->peak.objects };
	}
	all.time_ns = s->peak_ns;
	snapshot_free(s);
	qsort(all.part, all.cnt, sizeof(*all.part), compare_parts);
	return all;
}

static void expect_parts(struct rig *rig, const struct part *part, size_t cnt)
{
	struct parts got = peak_parts(rig);

	assert_int_equal(got.cnt, cnt);
	for (size_t i = 0; i < cnt; i++) {
		assert_int_equal(got.part[i].bytes, part[i].bytes);
		assert_int_equal(got.part[i].blocks, part[i].blocks);
	}
	assert_true(got.variance == 0);
	assert_true(got.time_ns > 0);
}

static void step_rise(volatile uint64_t *out)
{
	for (int i = 0; i < 100; i++)
		held[i] = site_a(NULL, 1000);
}

/* Less in all: some of those that were there, and others. */
static void step_fall(volatile uint64_t *out)
{
	for (int i = 40; i < 100; i++) {
		do_free(held[i]);
		held[i] = NULL;
	}
	for (int i = 100; i < 110; i++)
		held[i] = site_b(NULL, 100);
}

static void step_rise_again(volatile uint64_t *out)
{
	held[120] = site_c(NULL, 200000);
}

static void step_free_all(volatile uint64_t *out)
{
	each_case(c, held) {
		do_free(*c);
		*c = NULL;
	}
}

/* Stacks that changed since a peak, that did not, that are new, and that came back below it. */
TEST(test_moments)
{
	static const struct part first[] = { { 100000, 100 } };
	static const struct part second[] = { { 1000, 10 }, { 40000, 40 }, { 200000, 1 } };
	uint64_t first_ns;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	assert_int_equal(peak_parts(rig).time_ns, 0); /* nothing was held: not known */
	rig_do(rig, step_rise);
	expect_parts(rig, first, 1);
	first_ns = peak_parts(rig).time_ns;
	rig_do(rig, step_fall);
	expect_parts(rig, first, 1);
	assert_int_equal(peak_parts(rig).time_ns, first_ns);
	rig_do(rig, step_rise_again);
	expect_parts(rig, second, 3);
	assert_true(peak_parts(rig).time_ns > first_ns);
	rig_do(rig, step_free_all);
	expect_parts(rig, second, 3);
	rig_do(rig, step_rise); /* as high as the first, not as the second */
	expect_parts(rig, second, 3);
	assert_int_equal(rig_live(rig).bytes, 100000);
}

/* What is dropped because its frees will not be seen is in no peak: it begins anew. */
TEST(test_drop)
{
	static const struct part kept[] = { { 1000, 10 }, { 200000, 1 } };
	size_t cnt = 0;
	struct rig *rig = rig_open(rig_mode(state), 1, 4096, 1024);

	rig_do(rig, step_rise);
	assert_int_equal(engine_drop_live(rig->engine, rig->pid,
					  tracker_generation(rig->tracker, rig->pid), &cnt),
			 0);
	assert_int_equal(cnt, 100);
	assert_int_equal(peak_parts(rig).cnt, 0);
	rig_do(rig, step_fall);
	rig_do(rig, step_rise_again);
	rig_do(rig, step_free_all);
	expect_parts(rig, kept, 2);
}

static uint64_t random_below(uint64_t *seed, uint64_t bound)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*seed >> 33) % bound;
}

struct call {
	uint64_t slot, site, bytes; /* bytes 0: free() */
};

static struct call next_call(uint64_t *seed)
{
	struct call c = { .slot = random_below(seed, SLOT_CNT) };

	c.site = random_below(seed, SITE_CNT);
	c.bytes = random_below(seed, 5) < 2 ? 0 : 1 + random_below(seed, 5000);
	return c;
}

static void step_random_calls(volatile uint64_t *out)
{
	uint64_t seed = 11;

	for (int i = 0; i < CALL_CNT; i++) {
		struct call c = next_call(&seed);

		if (c.bytes) {
			held[c.slot] = sites[c.site](held[c.slot], c.bytes);
		} else {
			do_free(held[c.slot]);
			held[c.slot] = NULL;
		}
	}
}

/* The same calls, without a heap. */
static struct parts replay(void)
{
	struct {
		uint64_t bytes, stack;
	} slots[SLOT_CNT] = { 0 };
	struct part now[STACK_CNT] = { 0 };
	struct parts peak = { 0 };
	uint64_t seed = 11, sum = 0, most = 0;

	for (int i = 0; i < CALL_CNT; i++) {
		struct call c = next_call(&seed);
		bool was_held = slots[c.slot].bytes;

		if (was_held) {
			now[slots[c.slot].stack].bytes -= slots[c.slot].bytes;
			now[slots[c.slot].stack].blocks--;
			sum -= slots[c.slot].bytes;
		}
		slots[c.slot].bytes = c.bytes;
		if (!c.bytes)
			continue;
		slots[c.slot].stack = 2 * c.site + was_held;
		now[slots[c.slot].stack].bytes += c.bytes;
		now[slots[c.slot].stack].blocks++;
		sum += c.bytes;
		if (sum <= most)
			continue;
		most = sum;
		memcpy(peak.part, now, sizeof(now));
	}
	qsort(peak.part, STACK_CNT, sizeof(*peak.part), compare_parts);
	peak.cnt = STACK_CNT;
	peak.bytes = (double)most;
	return peak;
}

TEST(test_random)
{
	struct parts must = replay();
	struct rig *rig;

	for (size_t i = 0; i < must.cnt; i++)
		assert_true(must.part[i].blocks > 0);
	rig = rig_open(rig_mode(state), 1, 4096, 1024);
	rig_do(rig, step_random_calls);
	expect_parts(rig, must.part, must.cnt);
	rig_do(rig, step_free_all);
	expect_parts(rig, must.part, must.cnt);
}

/* Their parts add up to the peak of the samples, which is near the true one: by chance not, 1 in 10 million times. */
TEST(test_samples)
{
	struct parts must = replay(), got;
	struct rig *rig = rig_open(rig_mode(state), SAMPLED_RATE_BYTES, 4096, 1024);

	rig_do(rig, step_random_calls);
	rig_do(rig, step_free_all);
	got = peak_parts(rig);
	assert_true(got.variance > 0);
	assert_true(fabs(got.bytes - must.bytes) < 6 * sqrt(got.variance));
}

static void step_old(volatile uint64_t *out)
{
	held[0] = site_a(NULL, OLD_BYTES);
}

static void step_exec(volatile uint64_t *out)
{
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", rig_child_fd);
	fcntl(rig_child_fd, F_SETFD, 0);
	execl("/proc/self/exe", "second", fd, (char *)NULL);
}

/* Talks to the rig as the first image did, but its addresses are its own: it does its two steps in order. */
static int second_image(int fd)
{
	static const size_t bytes[] = { SECOND_BYTES, THIRD_BYTES };
	char go;

	if (write(fd, "", 1) != 1) /* the end of step_exec */
		return 1;
	for (int i = 0; i < 2; i++)
		if (read(fd, &go, 1) != 1 || !sites[i](NULL, bytes[i]) || write(fd, "", 1) != 1)
			return 1;
	pause();
	return 0;
}

static void do_next(struct rig *rig)
{
	char done;

	assert_int_equal(write(rig->fd, "", 1), 1);
	assert_int_equal(read(rig->fd, &done, 1), 1);
}

/* What a program held is gone when it executes another: it is in the peak only if that was before. */
static void check_exec(void **state, bool is_one_of_many)
{
	const struct rig_options opts = { rig_mode(state), 1, 4096, 1024, is_one_of_many };
	struct parts got;
	struct rig *rig = rig_open_with(&opts);

	rig_do(rig, step_old);
	rig_do(rig, step_exec);
	rig_settle(rig);
	do_next(rig);
	got = peak_parts(rig);
	assert_true(got.bytes == OLD_BYTES);
	assert_int_equal(got.cnt, 1);
	do_next(rig);
	got = peak_parts(rig);
	assert_true(got.bytes >= SECOND_BYTES + THIRD_BYTES);
	assert_true(got.bytes < SECOND_BYTES + THIRD_BYTES + STARTUP_BYTES);
	assert_true(got.part[got.cnt - 1].bytes >= SECOND_BYTES &&
		    got.part[got.cnt - 1].bytes < OLD_BYTES);
}

TEST(test_exec)
{
	check_exec(state, false);
}

TEST(test_exec_followed)
{
	check_exec(state, true);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[0], "second"))
		return second_image((int)strtol(argv[1], NULL, 10));
	return rig_run(__FILE__);
}
