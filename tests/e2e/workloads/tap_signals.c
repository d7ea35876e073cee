/* SPDX-License-Identifier: MIT */
/*
 * tap_signals - a program that looks closely at its signals.
 *
 *	tap_signals HOW
 *
 *	gap, jump	when told to "do" it steps through the allocator until it is at a jump out of its file (gap: to which a
 *		short jump led), says CAUGHT, and stays there, in the handler of a signal, until the jump is not there
 *		any more, for 4 s at the most
 *	steps	steps through everything that one of its threads does
 *	stack	a thread gets 10 000 signals a second; their handler allocates, on a stack of its own
 *	blocked, ignored	all signals are
 *	handled	none is expected, and each has a handler
 */
#include "tap_target.h"

#include <malloc.h>
#include <sys/mman.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100
#define WAIT_MS 4000

static volatile unsigned long step_cnt, handled_cnt;
static volatile enum { AT_REST, STEPPING, CAUGHT } state;
static unsigned long text_start, text_end, last_pc;
static int is_gap;

/* The executable mapping of the file that malloc() is in. */
static void find_text(void)
{
	unsigned long start, end, wanted = (unsigned long)&malloc;
	char line[512], mode[8];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && start <= wanted &&
		    wanted < end)
			text_start = start, text_end = end;
	if (f)
		fclose(f);
	if (!text_end)
		bad("the text of malloc is not found");
}

static int is_jump_out(unsigned long pc)
{
	const unsigned char *code = (const unsigned char *)pc;
	int32_t distance;
	unsigned long to;

	if (pc < text_start || pc + 5 > text_end || *code != 0xe9)
		return 0;
	memcpy(&distance, code + 1, sizeof(distance));
	to = pc + 5 + (unsigned long)distance;
	return to < text_start || to >= text_end;
}

static int is_short_jump(unsigned long pc)
{
	return pc >= text_start && pc < text_end && *(const unsigned char *)pc == 0xeb;
}

/* It makes system calls only: it may have interrupted the allocator. */
static void stay(unsigned long pc)
{
	state = CAUGHT;
	say("CAUGHT at %lx\n", pc);
	for (int ms = 0; ms < WAIT_MS && is_jump_out(pc); ms++)
		nap_us(1000);
	say("RETURNS, it is %s\n", is_jump_out(pc) ? "still there" : "gone");
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	unsigned long pc = (unsigned long)u->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	step_cnt++;
	if (state == STEPPING && is_jump_out(pc) && (!is_gap || is_short_jump(last_pc))) {
		stay(pc);
		u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	}
	last_pc = pc;
}

static void set_steps(int on)
{
	if (on)
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void be_caught(void)
{
	for (int i = 0; i < 8 && state != CAUGHT; i++) {
		void *block[5];

		state = STEPPING;
		set_steps(1);
		block[0] = malloc(100);
		block[1] = calloc(10, 10);
		block[2] = realloc(malloc(10), 100);
		block[3] = memalign(64, 100);
		block[4] = aligned_alloc(64, 128);
		for (int j = 0; j < 5; j++)
			free(block[j]);
		set_steps(0);
		if (state != CAUGHT)
			state = AT_REST;
	}
	if (state != CAUGHT)
		say("NOTHING is a jump out\n");
	state = AT_REST;
}

static void *step_always(void *arg)
{
	uint32_t random = 5;

	set_steps(1);
	for (;;) {
		do_pairs(8, &random);
		nap_us(2000);
	}
	return arg;
}

static void on_tick(int sig)
{
	unsigned char *block = filled(malloc(200), 200);

	(void)sig;
	check(block, 200, 200);
	free(block);
	handled_cnt++;
}

/* It allocates nothing itself, so no allocation is interrupted by another in the same thread. */
static void *take_ticks(void *arg)
{
	const struct itimerspec every = { { 0, 100000 }, { 0, 100000 } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART };
	stack_t stack = { .ss_sp = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			  .ss_size = 1 << 16 };
	timer_t timer;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, NULL))
		bad("timer");
	for (;;) {
		double x = 1;

		for (int i = 0; i < 1000; i++)
			x = x * 1.0000001 + 1e-9;
		if (x < 1.0001 || x > 1.001)
			bad("arithmetic");
		nap_us(20);
	}
	return arg;
}

static void on_unexpected(int sig)
{
	say("BAD signal %d\n", sig);
	_exit(3);
}

static void dispose(void (*handler)(int))
{
	for (int sig = 1; sig < 65; sig++)
		if (sig != SIGALRM)
			signal(sig, handler);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	sigset_t all;

	sigfillset(&all);
	find_text();
	is_gap = !strcmp(how, "gap");
	if (is_gap || !strcmp(how, "jump") || !strcmp(how, "steps"))
		sigaction(SIGTRAP, &action, NULL);
	if (!strcmp(how, "steps"))
		begin(step_always, NULL);
	else if (!strcmp(how, "stack"))
		begin(take_ticks, NULL);
	else if (!strcmp(how, "blocked"))
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	else if (!strcmp(how, "ignored"))
		dispose(SIG_IGN);
	else if (!strcmp(how, "handled"))
		dispose(on_unexpected);
	if (!is_gap && strcmp(how, "jump"))
		begin(allocate, (void *)1);
	be_ready();
	obey(is_gap || !strcmp(how, "jump") ? be_caught : NULL);
}
