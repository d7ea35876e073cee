/* SPDX-License-Identifier: MIT */
/*
 * heaptap/scope.h in C at its limits, checked by what a reader sees: depth, names and the table come to
 * their ends; threads, signals and forks come in between.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "header_rig.h"

static void go_deep(int pushes, int kept_pops)
{
	uint32_t truncated = truncations(), under = underflows();
	char at_64[1024];

	for (int i = 0; i < 64; i++)
		heaptap_push("d");
	assert_int_equal(truncations(), truncated);
	snprintf(at_64, sizeof(at_64), "%s", current());
	for (int i = 64; i < pushes; i++)
		push_numbered("deeper", i & 7);
	assert_string_equal(current(), at_64);
	assert_true(record(0) & UINT64_C(1) << 33);
	assert_int_equal(depth(), pushes < 65535 ? pushes : 65535);
	assert_int_equal(truncations(), truncated + pushes - 64);
	for (int i = 0; i < kept_pops - 64; i++)
		heaptap_pop();
	assert_string_equal(current(), at_64);
	assert_false(record(0) & UINT64_C(1) << 33);
	for (int i = 0; i < 64; i++)
		heaptap_pop();
	assert_int_equal(record(0), 0);
	assert_int_equal(underflows(), under);
	for (int i = kept_pops; i < pushes; i++)
		heaptap_pop();
	assert_int_equal(underflows(), under + pushes - kept_pops);
	assert_int_equal(record(0), 0);
}

static void recurse(int left)
{
	HEAPTAP_SCOPE("recursion");
	if (left > 1)
		recurse(left - 1);
}

TEST(depth_has_a_limit)
{
	uint32_t truncated = truncations(), cnt;

	go_deep(65, 65);
	cnt = node_cnt();
	go_deep(1000, 1000);
	go_deep(65535, 65535);
	go_deep(100000, 65535);
	assert_int_equal(node_cnt(), cnt);
	truncated = truncations();
	recurse(20000);
	assert_int_equal(truncations(), truncated + 20000 - 64);
	assert_int_equal(record(0), 0);
}

static void million_names(void)
{
	const int cap = 262144 - 16384;
	uint32_t before, fit = 0;

	heaptap_push("Top");
	heaptap_push("known");
	heaptap_pop();
	before = node_cnt();
	for (int i = 0; i < 1000000; i++) {
		push_numbered("name", i);
		CHILD_ASSERT(depth() == 2);
		fit += reader_u16(reader_node(desc, (uint32_t)record(0)) + 4) == 1;
		heaptap_pop();
		CHILD_ASSERT(depth() == 1);
	}
	CHILD_ASSERT(node_cnt() == (uint32_t)cap + 1);
	CHILD_ASSERT(fit == cap - before);
	CHILD_ASSERT(overflows() == 1000000 - fit);
	CHILD_ASSERT(!strcmp(current(), "Top"));
	heaptap_push("new");
	CHILD_ASSERT(!strcmp(current(), "Top/(other)"));
	heaptap_push("below");
	CHILD_ASSERT(!strcmp(current(), "Top/(other)") && depth() == 3);
	heaptap_pop();
	CHILD_ASSERT(!strcmp(current(), "Top/(other)") && depth() == 2);
	heaptap_pop();
	heaptap_push("known");
	CHILD_ASSERT(!strcmp(current(), "Top/known"));
	for (int i = 0; i < 3; i++) {
		uint32_t count = overflows();
		HEAPTAP_SCOPE("site");
		CHILD_ASSERT(!strcmp(current(), "Top/known/(other)"));
		CHILD_ASSERT(overflows() == count + 1);
	}
	CHILD_ASSERT(!strcmp(current(), "Top/known"));
	heaptap_pop();
	heaptap_pop();
	CHILD_ASSERT(record(0) == 0);
	CHILD_ASSERT(!reader_complaint(desc));
}

/* Names run out before nodes do; then so do the places for "(other)". */
static void long_names(void)
{
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	for (int i = 0; i < 100000; i++) {
		snprintf(name, 8, "%07d", i);
		name[7] = 'n';
		heaptap_push(name);
		heaptap_pop();
	}
	CHILD_ASSERT(overflows() > 30000);
	CHILD_ASSERT(heaptap_scope_pool_v1.names_bytes == 16 << 20);
	CHILD_ASSERT(record(0) == 0);
	CHILD_ASSERT(!reader_complaint(desc));
}

static void others_run_out(void)
{
	uint32_t count;

	for (int i = 0; i < 260000; i++) {
		push_numbered("p", i);
		heaptap_pop();
	}
	for (int i = 0; i < 20000; i++) {
		push_numbered("p", i);
		count = overflows();
		heaptap_push("one too many");
		CHILD_ASSERT(overflows() == count + 1);
		heaptap_pop();
		CHILD_ASSERT(depth() == 1);
		heaptap_pop();
		CHILD_ASSERT(record(0) == 0);
	}
	CHILD_ASSERT(node_cnt() == 262144);
	heaptap_push("p19999");
	heaptap_push("nowhere");
	CHILD_ASSERT(!strcmp(current(), "p19999") && depth() == 2);
	heaptap_pop();
	CHILD_ASSERT(!strcmp(current(), "p19999") && depth() == 1);
	CHILD_ASSERT(!reader_complaint(desc));
}

TEST(table_has_an_end)
{
	in_child(million_names);
	in_child(long_names);
	in_child(others_run_out);
}

#define THREADS 8
#define NAMES 3000
static pthread_barrier_t barrier;

/* All want the same paths at the same time, each in another order. */
static void *intern_all(void *arg)
{
	unsigned start = (unsigned)(uintptr_t)arg * 7919, wrong = 0;
	char expected[64], found[128];

	pthread_barrier_wait(&barrier);
	heaptap_push("race");
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(expected, sizeof(expected), "race/%u", (i * 17 + start) % NAMES);
		heaptap_push(expected + 5);
		wrong += strcmp(reader_current(desc, found, sizeof(found)), expected) != 0;
		heaptap_pop();
	}
	heaptap_pop();
	return (void *)(uintptr_t)wrong;
}

TEST(threads_intern_at_once)
{
	uint32_t before = node_cnt(), over = overflows();
	pthread_t thread[THREADS];
	void *wrong;

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, intern_all, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(overflows(), over);
	assert_int_equal(node_cnt(), before + 1 + NAMES);
	assert_null(reader_complaint(desc));
}

/* What a signal handler meets that interrupted an addition in its own thread. */
TEST(own_lock_is_not_waited_for)
{
	uint32_t count = overflows(), truncated = truncations();

	heaptap_push("known before");
	heaptap_scope_pool_v1.lock = heaptap_me_();
	heaptap_push("never seen");
	assert_string_equal(current(), "known before");
	assert_int_equal(depth(), 2);
	assert_int_equal(overflows(), count + 1);
	heaptap_push("nor this");
	assert_int_equal(truncations(), truncated + 1);
	heaptap_pop();
	heaptap_pop();
	assert_string_equal(current(), "known before");
	assert_int_equal(depth(), 1);
	heaptap_pop();
	heaptap_push("known before"); /* needs no lock */
	assert_string_equal(current(), "known before");
	heaptap_scope_pool_v1.lock = 0;
	heaptap_push("never seen");
	assert_string_equal(current(), "known before/never seen");
	heaptap_pop();
	heaptap_pop();
}

static volatile sig_atomic_t signal_cnt;
static void on_signal(int number)
{
	uint64_t before = record(0);
	char name[32] = "signal......";
	int n = signal_cnt++;

	for (int i = 0; i < 6; i++, n /= 10)
		name[6 + i] = (char)('0' + n % 10);
	heaptap_push(name);
	heaptap_push("inner");
	heaptap_pop();
	heaptap_pop();
	if (record(0) != before)
		_exit(1);
}

static void push_while_signals_come(void)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } };
	struct sigaction action;
	int i;

	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 200000 && signal_cnt < 2000; i++) {
		push_numbered("main", i);
		CHILD_ASSERT(depth() == 1);
		heaptap_pop();
		CHILD_ASSERT(record(0) == 0);
	}
	often.it_interval.tv_usec = often.it_value.tv_usec = 0;
	setitimer(ITIMER_REAL, &often, NULL);
	CHILD_ASSERT(signal_cnt > 10);
	CHILD_ASSERT(!reader_complaint(desc));
}

TEST(signals_during_pushes)
{
	in_child(push_while_signals_come);
}

static void intern_in_child(void)
{
	uint32_t epoch = reader_u32(desc + 84);

	push_numbered("child", getpid());
	CHILD_ASSERT(depth() == 1 && !(record(0) & UINT64_C(1) << 33));
	heaptap_pop();
	CHILD_ASSERT(reader_u32(desc + 80) == (uint32_t)getpid());
	CHILD_ASSERT(reader_u32(desc + 84) == epoch + 1);
	CHILD_ASSERT(!reader_complaint(desc));
}

TEST(lock_of_the_parent_is_taken_over)
{
	heaptap_scope_pool_v1.lock = heaptap_me_() ^ 1; /* of another thread, which no child has */
	in_child(intern_in_child);
	heaptap_scope_pool_v1.lock = 0;
}

static int stop_interning;
static void *intern_on_and_on(void *arg)
{
	for (int i = 0; !__atomic_load_n(&stop_interning, __ATOMIC_RELAXED) && i < 100000; i++) {
		push_numbered("on and on", i);
		heaptap_pop();
	}
	return arg;
}

TEST(forks_while_others_intern)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, intern_on_and_on, NULL), 0);
	for (int i = 0; i < 100; i++)
		in_child(intern_in_child);
	__atomic_store_n(&stop_interning, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_null(reader_complaint(desc));
}

TEST(errno_is_kept)
{
	errno = 77;
	for (int i = 0; i < 5000; i++) {
		push_numbered("errno", i);
		heaptap_pop();
	}
	assert_int_equal(errno, 77);
}

RUN_TESTS_WITH(setup, NULL)
