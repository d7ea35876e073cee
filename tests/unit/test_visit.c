/* SPDX-License-Identifier: MIT */
/* test_visit.c - a visit goes before others, and waits for its accessor no longer than it should. Needs root. */
#include "child.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "tap/visit.h"

static int waits(void *ctx, struct visit_shared *shared)
{
	pause();
	return 0;
}

static void be_busy(uint64_t ns)
{
	uint64_t end_ns = now_ns() + ns;

	while (now_ns() < end_ns)
		;
}

static int is_busy(void *ctx, struct visit_shared *shared)
{
	be_busy(10 * NS_PER_S);
	return 0;
}

/* Longer than a page is waited for, but not at one go. */
static int is_slow(void *ctx, struct visit_shared *shared)
{
	usleep(200000);
	be_busy(150 * NS_PER_MS);
	usleep(200000);
	return 0;
}

/* Result: how far it is behind the highest precedence, alone and in its session. */
static int tell_precedence(void *ctx, struct visit_shared *shared)
{
	FILE *f = fopen("/proc/self/autogroup", "r");
	int group = -20;

	if (f && fscanf(f, "/autogroup-%*d nice %d", &group) != 1)
		group = 20;
	if (f)
		fclose(f);
	shared->result = (uint64_t)(getpriority(PRIO_PROCESS, 0) + 20 + group + 20);
	return 0;
}

static int stopped(void *ctx, struct visit *v, struct err *why)
{
	(void)ctx, (void)v, (void)why;
	return 0;
}

static int visit(pid_t pid, visit_step prepare, struct visit_report *report)
{
	const struct visit_work work = { prepare, stopped };

	return visit_process(pid, &work, NULL, report, NULL);
}

static pid_t begin_target(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	return pid;
}

/* The visitor is a session of its own, which the scheduler may treat as one among others. */
TEST(test_precedence)
{
	struct visit_report report;
	pid_t pid;

	if (geteuid())
		skip();
	pid = begin_target();
	assert_int_equal(visit(pid, tell_precedence, &report), 0);
	assert_int_equal(report.result, 0);
	end_child(pid);
}

TEST(test_accessor)
{
	struct visit_report report;
	uint64_t begin_ns;
	pid_t pid;

	if (geteuid())
		skip();
	pid = begin_target();
	assert_int_equal(visit(pid, is_slow, &report), 0);
	assert_int_equal(report.thread_cnt, 1);

	begin_ns = now_ns();
	assert_int_equal(visit(pid, waits, &report), -ETIMEDOUT);
	assert_string_equal(report.why.text, "its memory does not answer");
	assert_in_range(now_ns() - begin_ns, 250 * NS_PER_MS, NS_PER_S);

	/* Nothing has been done, so it may be visited again. */
	assert_int_equal(visit(pid, is_busy, &report), -ETIME);
	assert_string_equal(report.why.text, "heaptap gets no CPU time to read its memory");
	assert_int_equal(report.stopped_ns, 0);
	assert_int_equal(visit(pid, is_slow, &report), 0);
	end_child(pid);
}

RUN_TESTS()
