/* SPDX-License-Identifier: MIT */
/* Test of user/tap/filter.c: its answer is the kernel's. Random filters are set in a child, which makes the call. */
#include "unit.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tap/threads_priv.h"

#define NR SYS_getppid
#define ARCH_X86_64 0xc000003e

static uint64_t random_state = 1;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(random_state >> 33) % below;
}

/* An instruction at pc of cnt, of which the last two are returns. */
static struct sock_filter make(size_t pc, size_t cnt)
{
	static const uint16_t codes[] = {
		BPF_LD | BPF_W | BPF_ABS,
		BPF_LD | BPF_IMM,
		BPF_LDX | BPF_IMM,
		BPF_LD | BPF_W | BPF_LEN,
		BPF_ST,
		BPF_STX,
		BPF_LD | BPF_MEM,
		BPF_LDX | BPF_MEM,
		BPF_ALU | BPF_ADD | BPF_K,
		BPF_ALU | BPF_SUB | BPF_X,
		BPF_ALU | BPF_MUL | BPF_K,
		BPF_ALU | BPF_AND | BPF_X,
		BPF_ALU | BPF_OR | BPF_K,
		BPF_ALU | BPF_XOR | BPF_X,
		BPF_ALU | BPF_NEG,
		BPF_JMP | BPF_JEQ | BPF_K,
		BPF_JMP | BPF_JGT | BPF_X,
		BPF_JMP | BPF_JGE | BPF_K,
		BPF_JMP | BPF_JSET | BPF_K,
		BPF_JMP | BPF_JA,
		BPF_MISC | BPF_TAX,
		BPF_MISC | BPF_TXA,
		BPF_ALU | BPF_DIV | BPF_K,
		BPF_ALU | BPF_LSH | BPF_K,
		BPF_ALU | BPF_RSH | BPF_K,
	};
	struct sock_filter f = { .code = codes[draw(sizeof(codes) / sizeof(*codes))] };
	uint32_t room = (uint32_t)(cnt - pc - 2);

	f.k = draw(4) ? draw(64) : draw(UINT32_MAX);
	if (f.code == (BPF_LD | BPF_W | BPF_ABS))
		f.k = draw(2) *
		      4; /* the number and the architecture: the rest of the data is the caller's */
	else if (BPF_CLASS(f.code) == BPF_ST || BPF_CLASS(f.code) == BPF_STX ||
		 BPF_MODE(f.code) == BPF_MEM)
		f.k = draw(4);
	else if (BPF_CLASS(f.code) == BPF_ALU)
		f.k = 1 + f.k % 31;
	if (BPF_CLASS(f.code) == BPF_JMP) {
		f.jt = (uint8_t)draw(room + 1);
		f.jf = (uint8_t)draw(room + 1);
		if (f.code == (BPF_JMP | BPF_JA))
			f.k = draw(room + 1);
	}
	return f;
}

/* Does the kernel allow the call with that filter? 2: it does not take the filter. */
static int kernel_allows(const struct sock_filter *code, size_t cnt)
{
	struct sock_fprog prog = { (unsigned short)cnt, (struct sock_filter *)code };
	pid_t child = fork();
	int status = 0;

	if (!child) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
			_exit(2);
		/* _exit() is a call as well: the filter's answer to it is an error, or nothing */
		status = syscall(NR) > 0;
		__asm__ volatile("syscall"
				 :
				 : "a"(SYS_exit_group), "D"(status)
				 : "rcx", "r11", "memory");
		_exit(3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(test_random)
{
	const struct seccomp_data data = { .nr = NR, .arch = ARCH_X86_64 };
	size_t taken = 0, allowed = 0;

	for (int round = 0; round < 400; round++) {
		struct sock_filter code[24];
		const size_t cnt = sizeof(code) / sizeof(*code);
		bool is_allowed;
		int got;

		/* Every other call is allowed, so that the child can end. */
		code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
		code[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR, 1, 0);
		code[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		/* The kernel takes no filter that reads a word of memory before it is written. */
		for (size_t i = 0; i < 4; i++)
			code[3 + i] = (struct sock_filter)BPF_STMT(BPF_ST, (uint32_t)i);
		for (size_t i = 7; i + 3 < cnt; i++)
			code[i] = make(i, cnt - 1);
		code[cnt - 3] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, draw(1000), 0, 1);
		code[cnt - 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		code[cnt - 1] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
		is_allowed = filter_run(code, cnt, &data) == SECCOMP_RET_ALLOW;
		got = kernel_allows(code, cnt);
		assert_int_not_equal(got, 3);
		if (got == 2)
			continue;
		taken++;
		allowed += (size_t)got;
		if (got != is_allowed)
			fail_msg("round %d: the kernel says %d", round, got);
	}
	assert_in_range(taken, 200, 400);
	assert_in_range(allowed, taken / 20, taken - taken / 20);
}

TEST(test_end)
{
	const struct sock_filter none = BPF_STMT(BPF_LD | BPF_IMM, 1);
	const struct seccomp_data data = { .nr = NR };

	assert_int_equal(filter_run(&none, 1, &data), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(filter_run(&none, 0, &data), SECCOMP_RET_KILL_PROCESS);
}

RUN_TESTS()
