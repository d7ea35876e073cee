/* SPDX-License-Identifier: MIT */
/* test_slow_call.c - who makes a slow call works meanwhile, learns what came of it, and may end before it does. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "kernel/slow_call.h"

struct call {
	int take_ms, err;
	int *said; /* what the call has written, if not NULL */
};

static int take_time(void *args)
{
	const struct call *c = args;

	usleep((useconds_t)c->take_ms * 1000);
	if (c->said)
		*c->said = c->take_ms;
	return c->err;
}

static void count(void *ctx)
{
	++*(int *)ctx;
}

TEST(others_work_meanwhile)
{
	struct slow_caller *s = NULL;
	int cnt = 0, said = 0;
	struct call c = { 1000, -EBUSY, &said };

	assert_int_equal(slow_caller_new(&s), 0);
	slow_caller_while_waiting(s, count, &cnt);
	assert_int_equal(slow_call(s, take_time, &c, sizeof(c)), -EBUSY);
	assert_int_equal(said, 1000);
	assert_in_range(cnt, 3, 12); /* ten, on a machine with nothing else to do */

	/* many short ones in a row count like a long one, and nobody need work */
	cnt = 0;
	c = (struct call){ 1, 0, NULL };
	for (int i = 0; i < 50; i++)
		assert_int_equal(slow_call(s, take_time, &c, sizeof(c)), 0);
	assert_in_range(cnt, 0, 25);
	slow_caller_while_waiting(s, NULL, NULL);
	c.take_ms = 150;
	assert_int_equal(slow_call(s, take_time, &c, sizeof(c)), 0);
	slow_caller_free(s);
}

TEST(args_are_bounded)
{
	char many[SLOW_CALL_ARGS_BYTES + 1] = { 0 };
	struct slow_caller *s = NULL;

	assert_int_equal(slow_caller_new(&s), 0);
	assert_int_equal(slow_call(s, take_time, many, sizeof(many)), -E2BIG);
	slow_caller_free(s);
	slow_caller_free(NULL);
}

/* In a child, which ends with the call under way. */
static int be_told_to_end(void)
{
	struct call c = { 5000, 0, NULL };
	struct slow_caller *s = NULL;
	uint64_t begin_ns = now_ns();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGTERM);
	if (slow_caller_new(&s) || slow_call(s, take_time, &c, sizeof(c)) != -ECANCELED)
		return 1;
	if (now_ns() - begin_ns < 250 * NS_PER_MS)
		return 2;
	c.take_ms = 0; /* the thread has no time */
	if (slow_call(s, take_time, &c, sizeof(c)) != -ECANCELED)
		return 3;
	slow_caller_free(s);
	return now_ns() - begin_ns < 3 * NS_PER_S ? 0 : 4;
}

TEST(who_is_told_to_end_does_not_wait)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(be_told_to_end());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void fork_and_reap(void *ctx)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	*(int *)ctx += waitpid(pid, NULL, 0) == pid;
}

TEST(children_may_be_forked_meanwhile)
{
	struct call c = { 350, 0, NULL };
	struct slow_caller *s = NULL;
	int cnt = 0;

	assert_int_equal(slow_caller_new(&s), 0);
	slow_caller_while_waiting(s, fork_and_reap, &cnt);
	assert_int_equal(slow_call(s, take_time, &c, sizeof(c)), 0);
	assert_true(cnt >= 1);
	slow_caller_free(s);
}

RUN_TESTS()
