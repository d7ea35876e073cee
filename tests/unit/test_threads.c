/* SPDX-License-Identifier: MIT */
/*
 * test_threads.c - a process whose thread makes calls for heaptap gets its signals as ever, and goes on as if nothing had
 * happened when the tracer is killed: before and after each of its ptrace calls.
 */
#include "child.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

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

extern const char make_call[], end_handler[]; /* instructions */
__asm__("make_call:\n\tsyscall\n\tret\n"
	"end_handler:\n\tmov $15, %rax\n\tsyscall\n");

static void handle(int signal)
{
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
	*ret = 0;
	return 0;
}

static int exchange(void *ctx, uint64_t addr, void *bytes, size_t cnt)
{
	const pid_t *pid = ctx;
	char there[THREADS_FRAME_CAP];
	struct iovec local = { there, cnt }, remote = { (void *)(uintptr_t)addr, cnt };

	if (process_vm_readv(*pid, &local, 1, &remote, 1, 0) != (ssize_t)cnt)
		return -EFAULT;
	local.iov_base = bytes;
	if (process_vm_writev(*pid, &local, 1, &remote, 1, 0) != (ssize_t)cnt)
		return -EFAULT;
	memcpy(bytes, there, cnt);
	return 0;
}

static int begin_calls(struct threads *t, pid_t *pid)
{
	const struct threads_calls how = { (uintptr_t)make_call, (uintptr_t)end_handler,
					   read_nothing, exchange, pid };

	return threads_begin_calls(t, &how);
}

/* Send the signals between two calls of the target. */
static int run_tracer(pid_t pid, const int *signals)
{
	struct threads *t = NULL;
	int err = threads_start_timer();

	if (!err)
		err = threads_stop(pid, &t);
	if (!err)
		err = begin_calls(t, &pid);
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
		err = begin_calls(t, &pid);
	if (err)
		return err;
	shared->pid_by_call = threads_call(t, SYS_execve, (uintptr_t)path, (uintptr_t)args,
					   (uintptr_t)env, 0, 0, 0);
	threads_end_calls(t);
	threads_resume(t);
	threads_free(t);
	return 0;
}

TEST(test_execute)
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
		shared->err = execute_in_call(target);
		_exit(0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	assert_true(WIFEXITED(status));
	assert_int_equal(shared->err, 0);
	assert_int_equal(shared->pid_by_call, -ESRCH);
	usleep(100000);
	assert_int_equal(waitpid(target, &status, WNOHANG), 0);
	assert_int_equal(kill(target, 0), 0);
	end_child(target);
}

TEST(test_stop)
{
	pid_t target = send_in_calls((const int[]){ SIGSTOP, 0 });

	assert_true(becomes(target, true));
	kill(target, SIGCONT);
	assert_true(becomes(target, false));
	assert_true(goes_on());
	end_child(target);
}

TEST(test_stop_and_continue)
{
	pid_t target = send_in_calls((const int[]){ SIGSTOP, SIGCONT, 0 });

	assert_true(becomes(target, false));
	assert_true(goes_on());
	end_child(target);
}

/* A fault's signal that somebody has sent. */
TEST(test_handled)
{
	pid_t target = send_in_calls((const int[]){ SIGSEGV, 0 });

	assert_true(goes_on());
	assert_int_equal(shared->handled_cnt, 1);
	end_child(target);
}

/*
 * The tracer is killed.
 */

/* The tracer ends itself before, or after, its call of that number. 0: it does not. */
static unsigned int killed_at, call_cnt;
static bool is_killed_after;

/* Instead of the C library's. None of the requests that heaptap makes returns data by its result. */
long ptrace(enum __ptrace_request request, ...)
{
	va_list args;
	pid_t pid;
	void *addr, *data;
	long result;
	bool is_due = ++call_cnt == killed_at;

	va_start(args, request);
	pid = va_arg(args, pid_t);
	addr = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	if (is_due && !is_killed_after)
		kill(getpid(), SIGKILL);
	result = syscall(SYS_ptrace, request, pid, addr, data);
	if (is_due)
		kill(getpid(), SIGKILL);
	return result;
}

#define SPINS 200000

/* All registers but rbp and rsp, and vector registers, keep their values for a while. */
static bool __attribute__((noinline, no_sanitize("address", "undefined"))) keeps_registers(void)
{
	static uint64_t spins;
	static uint8_t is_changed;

	spins = SPINS;
	__asm__ volatile(
		"mov $101, %%rax\n mov $102, %%rbx\n mov $103, %%rcx\n mov $104, %%rdx\n"
		"mov $105, %%rsi\n mov $106, %%rdi\n mov $108, %%r8\n mov $109, %%r9\n"
		"mov $110, %%r10\n mov $111, %%r11\n mov $112, %%r12\n mov $113, %%r13\n"
		"mov $114, %%r14\n mov $115, %%r15\n movq %%rax, %%xmm0\n movq %%r15, %%xmm15\n"
		"1: decq %1\n jnz 1b\n"
		"cmp $101, %%rax\n jne 2f\n movq %%xmm0, %%rax\n cmp $101, %%rax\n jne 2f\n"
		"cmp $102, %%rbx\n jne 2f\n cmp $103, %%rcx\n jne 2f\n cmp $104, %%rdx\n jne 2f\n"
		"cmp $105, %%rsi\n jne 2f\n cmp $106, %%rdi\n jne 2f\n cmp $108, %%r8\n jne 2f\n"
		"cmp $109, %%r9\n jne 2f\n cmp $110, %%r10\n jne 2f\n cmp $111, %%r11\n jne 2f\n"
		"cmp $112, %%r12\n jne 2f\n cmp $113, %%r13\n jne 2f\n cmp $114, %%r14\n jne 2f\n"
		"cmp $115, %%r15\n jne 2f\n movq %%xmm15, %%rax\n cmp $115, %%rax\n"
		"2: setne %0\n"
		: "=m"(is_changed), "+m"(spins)
		:
		: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
		  "r14", "r15", "xmm0", "xmm15", "cc", "memory");
	return !is_changed;
}

static bool sleeps_long_enough(void)
{
	const uint64_t begin_ns = now_ns();

	return !usleep(3000) && now_ns() - begin_ns >= 3 * NS_PER_MS;
}

static int event_fd;

/* Woken by the test from time to time. */
static bool waits_in_poll(void)
{
	struct pollfd p = { .fd = event_fd, .events = POLLIN };
	uint64_t value;

	return poll(&p, 1, -1) == 1 && read(event_fd, &value, sizeof(value)) == sizeof(value);
}

/* The kernel ends it at any stop, and the tracer begins it again if it lives. */
static bool waits_in_epoll(void)
{
	static int epoll_fd;
	struct epoll_event e = { .events = EPOLLIN };
	uint64_t value;

	if (!epoll_fd) {
		epoll_fd = epoll_create1(0);
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, event_fd, &e);
	}
	if (epoll_wait(epoll_fd, &e, 1, -1) != 1)
		return errno == EINTR;
	return read(event_fd, &value, sizeof(value)) == sizeof(value);
}

static bool waits_in_read(void)
{
	uint64_t value;

	return read(event_fd, &value, sizeof(value)) == sizeof(value);
}

static bool is_same_state(const stack_t *stack, const sigset_t *mask)
{
	stack_t stack_now;
	sigset_t mask_now;

	sigaltstack(NULL, &stack_now);
	sigprocmask(SIG_BLOCK, NULL, &mask_now);
	return stack_now.ss_sp == stack->ss_sp && stack_now.ss_size == stack->ss_size &&
	       stack_now.ss_flags == stack->ss_flags && !memcmp(&mask_now, mask, 8);
}

static void __attribute__((noreturn)) run_steadily(bool (*act)(void))
{
	static char memory[65536];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	sigset_t mask;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaltstack(&stack, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	for (;;) {
		if (!act() || !is_same_state(&stack, &mask))
			_exit(3);
		shared->round_cnt++;
	}
}

/* Some rounds more; what waits is woken. */
static bool goes_on_steadily(pid_t target)
{
	const uint64_t end_ns = now_ns() + LIMIT_NS, before = shared->round_cnt, one = 1;

	while (shared->round_cnt < before + 3 && now_ns() < end_ns &&
	       !waitpid(target, NULL, WNOHANG)) {
		if (write(event_fd, &one, sizeof(one)) != sizeof(one))
			return false;
		usleep(500);
	}
	return shared->round_cnt >= before + 3;
}

/* true: the tracer came to its end. */
static bool trace_until(pid_t target, unsigned int at, bool is_after)
{
	pid_t tracer = fork();
	int status;

	if (!tracer) {
		killed_at = at;
		is_killed_after = is_after;
		call_cnt = 0;
		shared->err = run_tracer(target, (const int[]){ 0 });
		_exit(0);
	}
	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	return WIFEXITED(status);
}

TEST(test_killed)
{
	static bool (*const acts[])(void) = { keeps_registers, sleeps_long_enough, waits_in_poll,
					      waits_in_epoll, waits_in_read };

	for (size_t i = 0; i < 2 * sizeof(acts) / sizeof(*acts); i++) {
		unsigned int at = 1;
		pid_t target;

		memset(shared, 0, sizeof(*shared));
		event_fd = eventfd(0, EFD_CLOEXEC);
		assert_true(event_fd >= 0);
		target = fork();
		if (!target)
			run_steadily(acts[i / 2]);
		assert_true(goes_on_steadily(target));
		while (!trace_until(target, at, i % 2)) {
			if (!goes_on_steadily(target))
				fail_msg("act %zu is harmed by a kill %s call %u", i / 2,
					 i % 2 ? "after" : "before", at);
			at++;
		}
		assert_true(at > 20);
		assert_int_equal(shared->err, 0);
		assert_true(goes_on_steadily(target));
		end_child(target);
		close(event_fd);
	}
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return unit_main(__FILE__, NULL, NULL);
}
