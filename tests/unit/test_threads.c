/* SPDX-License-Identifier: MIT */
/* test_threads.c - a process whose thread makes calls for heaptap gets its signals as ever. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tap/threads.h"

#define LIMIT_NS (5 * NS_PER_S)

/* What target and tracer tell. */
static struct shared {
	volatile int handled_cnt;
	volatile uint64_t round_cnt;
	int err;
	int64_t pid_by_call;
} * shared;

extern const char make_call[]; /* an instruction */
__asm__("make_call:\n\tsyscall\n\tret\n");

static void handle(int signal)
{
	(void)signal;
	shared->handled_cnt++;
}

static void __attribute__((noreturn)) run_target(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGSEGV, handle);
	for (;;) {
		usleep(100);
		shared->round_cnt++;
	}
}

static int read_nothing(void *ctx, uint64_t addr, uint64_t *ret)
{
	(void)ctx;
	(void)addr;
	*ret = 0;
	return 0;
}

/* Send the signals between two calls of the target. */
static int run_tracer(pid_t pid, const int *signals)
{
	struct threads *t = NULL;
	int err = threads_start_timer();

	if (!err)
		err = threads_stop(pid, &t);
	if (!err)
		err = threads_begin_calls(t, (uintptr_t)make_call, read_nothing, NULL);
	if (err)
		return err;
	threads_call(t, SYS_getpid, 0, 0, 0, 0, 0, 0);
	while (*signals)
		kill(pid, *signals++);
	shared->pid_by_call = threads_call(t, SYS_getpid, 0, 0, 0, 0, 0, 0);
	threads_end_calls(t);
	threads_resume(t);
	threads_free(t);
	return 0;
}

static bool becomes(pid_t pid, bool is_stopped)
{
	const uint64_t end_ns = now_ns() + LIMIT_NS;

	do {
		if ((threads_state(pid, pid) == 'T') == is_stopped)
			return true;
		usleep(1000);
	} while (now_ns() < end_ns);
	return false;
}

static bool goes_on(void)
{
	const uint64_t end_ns = now_ns() + LIMIT_NS, before = shared->round_cnt;

	while (shared->round_cnt < before + 2 && now_ns() < end_ns)
		usleep(1000);
	return shared->round_cnt >= before + 2;
}

/* Returns the target. */
static pid_t send_in_calls(const int *signals)
{
	pid_t target, tracer;
	int status;

	memset(shared, 0, sizeof(*shared));
	target = fork();
	if (!target)
		run_target();
	assert_true(goes_on());
	tracer = fork();
	if (!tracer) {
		shared->err = run_tracer(target, signals);
		_exit(0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFEXITED(status));
	assert_int_equal(shared->err, 0);
	assert_int_equal(shared->pid_by_call, target);
	return target;
}

/* In a call: another program has the thread now. */
static int execute_in_call(pid_t pid)
{
	static const char path[] = "/bin/sleep", arg[] = "1000";
	static const char *const args[] = { path, arg, NULL }, *const env[] = { NULL };
	struct threads *t = NULL;
	int err = threads_start_timer();

	if (!err)
		err = threads_stop(pid, &t);
	if (!err)
		err = threads_begin_calls(t, (uintptr_t)make_call, read_nothing, NULL);
	if (err)
		return err;
	shared->pid_by_call = threads_call(t, SYS_execve, (uintptr_t)path, (uintptr_t)args,
					   (uintptr_t)env, 0, 0, 0);
	threads_end_calls(t);
	threads_resume(t);
	threads_free(t);
	return 0;
}

static void test_execute(void **state)
{
	pid_t target, tracer;
	int status;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	target = fork();
	if (!target)
		run_target();
	assert_true(goes_on());
	tracer = fork();
	if (!tracer) {
		shared->err = execute_in_call(target);
		_exit(0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFEXITED(status));
	assert_int_equal(shared->err, 0);
	assert_int_equal(shared->pid_by_call, -ESRCH);
	usleep(100000);
	assert_int_equal(waitpid(target, &status, WNOHANG), 0);
	assert_int_equal(kill(target, SIGKILL), 0);
	waitpid(target, NULL, 0);
}

static void end(pid_t target)
{
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
}

static void test_stop(void **state)
{
	pid_t target = send_in_calls((const int[]){ SIGSTOP, 0 });

	(void)state;
	assert_true(becomes(target, true));
	kill(target, SIGCONT);
	assert_true(becomes(target, false));
	assert_true(goes_on());
	end(target);
}

static void test_stop_and_continue(void **state)
{
	pid_t target = send_in_calls((const int[]){ SIGSTOP, SIGCONT, 0 });

	(void)state;
	assert_true(becomes(target, false));
	assert_true(goes_on());
	end(target);
}

/* A fault's signal that somebody has sent. */
static void test_handled(void **state)
{
	pid_t target = send_in_calls((const int[]){ SIGSEGV, 0 });

	(void)state;
	assert_true(goes_on());
	assert_int_equal(shared->handled_cnt, 1);
	end(target);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_stop),
					    cmocka_unit_test(test_stop_and_continue),
					    cmocka_unit_test(test_handled),
					    cmocka_unit_test(test_execute) };

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
