/* SPDX-License-Identifier: MIT */
/*
 * tap_calls - a program whose system calls are watched: one that it would not make itself does harm.
 *
 *	tap_calls HOW
 *
 *	restart, trap, errno, notify	a seccomp filter has its list of calls; another one kills the process, raises SIGSYS,
 *			fails, or waits for a supervisor that never answers
 *	kill		as restart, but restart_syscall is not on the list
 *	allow		as restart, but a list of a few calls that are not allowed
 *	dispatch	what it calls is raised as SIGSYS, which its handler serves (as in Wine), but for the calls
 *			that it makes with the selector at "allow"
 *	dispatch-later	when told to "do" it
 *
 * One thread sleeps by a relative time all the time, which the kernel continues through restart_syscall after a stop.
 */
#include "tap_target.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define FLAG_TSYNC_ESRCH (1UL << 4)
#define DISPATCHED_NR 0xf000

static volatile char selector; /* 0: calls are made, 1: raised */
static volatile unsigned long served_cnt, foreign_cnt;

static void add_filter(struct sock_fprog program, unsigned long flags)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | flags,
		    &program) < 0)
		bad("seccomp");
}

static void forbid_little(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_acct, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	add_filter((struct sock_fprog){ sizeof(f) / sizeof(*f), f }, 0);
}

static void set_filter(uint32_t action, int with_restart)
{
	static const int listed[] = { SYS_read,		 SYS_write,  SYS_clock_nanosleep,
				      SYS_clock_gettime, SYS_exit,   SYS_exit_group,
				      SYS_brk,		 SYS_munmap, SYS_mremap,
				      SYS_madvise,	 SYS_futex,  SYS_rt_sigreturn,
				      SYS_sched_yield,	 SYS_gettid, SYS_getpid,
				      SYS_tgkill };
	struct sock_filter f[64];
	unsigned n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (unsigned i = 0; i < sizeof(listed) / sizeof(*listed); i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (uint32_t)listed[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	if (with_restart) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      SYS_restart_syscall, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	/* memory yes, code no */
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0);
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, args[2]));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
	add_filter((struct sock_fprog){ (unsigned short)n, f },
		   action == SECCOMP_RET_USER_NOTIF ?
			   SECCOMP_FILTER_FLAG_NEW_LISTENER | FLAG_TSYNC_ESRCH :
			   0);
}

static void *sleep_relative(void *arg)
{
	const struct timespec pause = { 0, 300000000 };

	for (;;)
		if (clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL))
			bad("clock_nanosleep");
	return arg;
}

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	selector = 0;
	served_cnt++;
	if (info->si_syscall != DISPATCHED_NR)
		foreign_cnt++;
}

static long call(long nr)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "0"(nr) : "rcx", "r11", "memory");
	return ret;
}

/* It has no other thread: whoever makes calls in it makes them where they are raised. */
static void dispatch(void)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	int rest_ms = (int)number_of("E2E_REST_MS", 0);
	uint32_t random = 1;
	char byte;

	do_pairs(800, &random); /* what it needs of the kernel's memory, it has then */
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0UL, 0UL, &selector))
		bad("prctl");
	for (unsigned long round = 1;; round++) {
		selector = 1;
		for (int i = 0; i < 100000; i++)
			free(malloc(100 + i % 100));
		call(DISPATCHED_NR);
		if (foreign_cnt)
			bad("a call was raised that is not the program's");
		if (served_cnt != round)
			bad("a call was not raised");
		do_pairs(8, &random);
		if (poll(&in, 1, rest_ms) > 0 && read(0, &byte, 1) == 0)
			_exit(7);
	}
}

static void dispatch_now(void)
{
	struct sigaction action = { .sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &action, NULL);
	say("DONE\n");
	dispatch();
}

static void on_unexpected(int sig)
{
	say("BAD signal %d\n", sig);
	_exit(3);
}

static void watch(const char *how)
{
	if (!strcmp(how, "allow"))
		forbid_little();
	else if (!strcmp(how, "trap"))
		set_filter(SECCOMP_RET_TRAP, 1);
	else if (!strcmp(how, "errno"))
		set_filter(SECCOMP_RET_ERRNO | EPERM, 1);
	else if (!strcmp(how, "notify"))
		set_filter(SECCOMP_RET_USER_NOTIF, 1);
	else
		set_filter(SECCOMP_RET_KILL_PROCESS, !strcmp(how, "restart"));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct sigaction action = { .sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO };

	be_ready(); /* its calls are not on the list */
	if (!strcmp(how, "dispatch-later"))
		obey(dispatch_now);
	if (!strcmp(how, "dispatch")) {
		sigaction(SIGSYS, &action, NULL);
		say("WATCHED\n");
		dispatch();
	}
	signal(SIGSYS, on_unexpected);
	begin(allocate, (void *)1);
	begin(sleep_relative, NULL);
	nap_us(20000); /* both have begun */
	watch(how);
	say("WATCHED\n");
	obey(NULL);
}
