/* SPDX-License-Identifier: MIT */
/* test_ask_threads.c - what a stop or a return probe would harm in other processes, asked without stopping them. */
#include "rig.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/syscall.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define THREAD_CNT 300

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SKIP_UNLESS(value, cnt) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, cnt)
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)

static void add_filter(struct sock_filter *code, unsigned short cnt)
{
	const struct sock_fprog prog = { cnt, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		_exit(2);
}

static void forbid(unsigned int nr)
{
	struct sock_filter code[] = { LOAD(nr), SKIP_UNLESS(nr, 1),
				      ANSWER(SECCOMP_RET_KILL_PROCESS), ANSWER(SECCOMP_RET_ALLOW) };

	add_filter(code, 4);
}

/* With the argument 7 only, which restart_syscall() has not: but who asks does not know that. */
static void forbid_7(unsigned int nr)
{
	struct sock_filter code[] = {
		LOAD(nr),	   SKIP_UNLESS(nr, 3),	      LOAD(args),
		SKIP_UNLESS(7, 1), ANSWER(SECCOMP_RET_ERRNO), ANSWER(SECCOMP_RET_ALLOW)
	};

	add_filter(code, 6);
}

static void plain(void)
{
}

static void forbids_other(void)
{
	forbid(SYS_acct);
	forbid_7(SYS_personality);
}

static void forbids(void)
{
	forbid(SYS_restart_syscall);
}

static void forbade(void)
{
	forbids();
	forbids_other();
}

static void may_forbid(void)
{
	forbid_7(SYS_restart_syscall);
}

static void dispatches(void)
{
	static char selector; /* SYSCALL_DISPATCH_FILTER_ALLOW */

	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0UL, 0UL, &selector))
		_exit(3);
}

static void both(void)
{
	dispatches();
	forbids();
}

static int ready_fd;

static void *sleeps(void *arg)
{
	void (*const *be)(void) = arg;

	(*be)();
	if (write(ready_fd, "", 1) != 1)
		_exit(4);
	for (;;)
		pause();
	return NULL;
}

/* A process with that many threads besides the first one, the last of which is like that. */
static pid_t begin(void (*be)(void), int thread_cnt)
{
	static void (*const nothing)(void) = plain;
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_t thread;

		ready_fd = fds[1];
		for (int i = 1; i <= thread_cnt; i++)
			if (pthread_create(&thread, NULL, sleeps,
					   i == thread_cnt ? (void *)&be : (void *)&nothing))
				_exit(5);
		sleeps(thread_cnt ? (void *)&nothing : (void *)&be);
	}
	close(fds[1]);
	for (int i = 0; i <= thread_cnt; i++)
		assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

TEST(test_ask)
{
	static const struct {
		const char *name;
		void (*be)(void);
		uint32_t flags;
	} cases[] = {
		{ "plain", plain, 0 },
		{ "forbids other calls", forbids_other, 0 },
		{ "forbids it", forbids, HT_THREAD_MAY_NOT_RESTART },
		{ "its first filter forbids it", forbade, HT_THREAD_MAY_NOT_RESTART },
		{ "may forbid it", may_forbid, HT_THREAD_MAY_NOT_RESTART },
		{ "dispatches", dispatches, HT_THREAD_DISPATCHES },
		{ "both", both, HT_THREAD_DISPATCHES | HT_THREAD_MAY_NOT_RESTART },
	};
	uint32_t flags = ~0U;
	struct rig *rig = rig_open(rig_mode(state), 1, 1024, 1024);

	if (engine_ask_threads(rig->engine, getpid(), &flags) == -ENOTSUP)
		skip();
	assert_int_equal(flags, 0);
	each_case(c, cases)
		for (int thread_cnt = 0; thread_cnt <= THREAD_CNT; thread_cnt += THREAD_CNT) {
			pid_t pid = begin(c->be, thread_cnt);

			print_message("# %s, %d threads\n", c->name, thread_cnt);
			flags = ~0U;
			assert_int_equal(engine_ask_threads(rig->engine, pid, &flags), 0);
			assert_int_equal(flags, c->flags);
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
	flags = ~0U; /* one that has ended */
	assert_int_equal(engine_ask_threads(rig->engine, 0x3fffff, &flags), 0);
	assert_int_equal(flags, 0);
}

RUN_RIG_TESTS()
