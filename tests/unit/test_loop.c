/* SPDX-License-Identifier: MIT */
/* test_loop.c - what is ready is told once, to whom asked for it, until they ask no longer. */
#include "unit.h"

#include <signal.h>

#include "base/clock.h"
#include "base/loop.h"

struct end {
	struct loop *loop;
	int fd[2];
	int call_cnt;
	int taken_out; /* by the function: -1: nothing */
	bool asks_again;
};

static void on_ready(void *ctx, int fd)
{
	struct end *end = ctx;

	assert_int_equal(fd, end->fd[0]);
	end->call_cnt++;
	if (end->taken_out >= 0)
		loop_unwatch(end->loop, end->taken_out);
	if (end->asks_again)
		assert_int_equal(loop_watch_once(end->loop, fd, on_ready, end), 0);
}

static struct end make_end(struct loop *l, bool is_ready)
{
	struct end end = { .loop = l, .taken_out = -1 };

	assert_int_equal(pipe(end.fd), 0);
	if (is_ready)
		assert_int_equal(write(end.fd[1], "x", 1), 1);
	return end;
}

static void close_end(struct end *end)
{
	close(end->fd[0]);
	close(end->fd[1]);
}

static struct loop *make_loop(void)
{
	struct loop *l = NULL;

	assert_int_equal(loop_new(&l), 0);
	return l;
}

TEST(test_watch)
{
	struct loop *l = make_loop();
	struct end a = make_end(l, true), b = make_end(l, false);

	assert_int_equal(loop_watch(l, a.fd[0], on_ready, &a), 0);
	assert_int_equal(loop_watch(l, b.fd[0], on_ready, &b), 0);
	assert_int_equal(loop_watch(l, b.fd[0], on_ready, &b), -EEXIST);
	assert_int_equal(loop_turn(l, 1000), 0);
	assert_int_equal(loop_turn(l, 1000), 0); /* as long as it can be read */
	assert_int_equal(a.call_cnt, 2);
	assert_int_equal(b.call_cnt, 0);
	loop_unwatch(l, a.fd[0]);
	loop_unwatch(l, a.fd[0]);
	assert_int_equal(loop_turn(l, 0), 0);
	assert_int_equal(a.call_cnt, 2);
	loop_free(l);
	loop_free(NULL);
	close_end(&a);
	close_end(&b);
}

/* Both are ready; whoever is called first takes the other one out. */
TEST(test_taken_out_in_the_same_turn)
{
	struct loop *l = make_loop();
	struct end a = make_end(l, true), b = make_end(l, true);

	a.taken_out = b.fd[0];
	b.taken_out = a.fd[0];
	assert_int_equal(loop_watch(l, a.fd[0], on_ready, &a), 0);
	assert_int_equal(loop_watch(l, b.fd[0], on_ready, &b), 0);
	assert_int_equal(loop_turn(l, 1000), 0);
	assert_int_equal(a.call_cnt + b.call_cnt, 1);
	loop_free(l);
	close_end(&a);
	close_end(&b);
}

TEST(test_once)
{
	struct loop *l = make_loop();
	struct end a = make_end(l, true);

	assert_int_equal(loop_watch_once(l, a.fd[0], on_ready, &a), 0);
	keep_fd(dup(a.fd[0])); /* keeps what is closed in the kernel's set, if it is in it */
	assert_int_equal(loop_turn(l, 1000), 0);
	assert_int_equal(loop_turn(l, 0), 0);
	assert_int_equal(a.call_cnt, 1);
	a.asks_again = true;
	assert_int_equal(loop_watch_once(l, a.fd[0], on_ready, &a), 0);
	assert_int_equal(loop_turn(l, 1000), 0);
	assert_int_equal(loop_turn(l, 1000), 0);
	assert_int_equal(a.call_cnt, 3);
	loop_free(l);
	close_end(&a);
}

TEST(test_end)
{
	struct loop *l = make_loop();
	struct end a = make_end(l, true);
	int file = open("/proc/self/exe", O_RDONLY);

	assert_int_equal(loop_watch_end(l, a.fd[0], on_ready, &a), 0);
	assert_int_equal(loop_turn(l, 0), 0); /* that there is something to read is nothing to it */
	assert_int_equal(a.call_cnt, 0);
	close(a.fd[1]);
	assert_int_equal(loop_turn(l, 1000), 0);
	assert_int_equal(a.call_cnt, 1);
	assert_int_equal(loop_watch_end(l, file, on_ready, &a), -EPERM);
	close(file);
	loop_free(l);
	close(a.fd[0]);
}

static int last_signal;

static void on_signal(void *ctx, int signal)
{
	int *cnt = ctx;

	last_signal = signal;
	++*cnt;
}

TEST(test_signals)
{
	static const int signals[] = { SIGUSR1, SIGUSR2, 0 };
	struct loop *l = make_loop();
	sigset_t mask;
	int cnt = 0;

	assert_int_equal(loop_watch_signals(l, signals, on_signal, &cnt), 0);
	kill(getpid(), SIGUSR2); /* would end the program */
	assert_int_equal(loop_turn(l, 1000), 0);
	assert_int_equal(last_signal, SIGUSR2);
	assert_int_equal(cnt, 1);
	loop_free(l);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGUSR1));
}

static void count(void *ctx)
{
	++*(int *)ctx;
}

TEST(test_timer)
{
	struct loop *l = make_loop();
	int fast = 0, slow = 0;

	assert_int_equal(loop_every(l, NS_PER_MS, count, &fast), 0);
	assert_int_equal(loop_every(l, 3600 * NS_PER_S, count, &slow), 0);
	while (fast < 3)
		assert_int_equal(loop_turn(l, 1000), 0);
	assert_int_equal(slow, 0);
	loop_free(l);
}

RUN_TESTS()
