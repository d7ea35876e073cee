/* SPDX-License-Identifier: MIT */
/*
 * scope_cost.c - what the tags of heaptap/scope.h cost the program that has them.
 *
 *	scope_cost		one line of JSON per form: nanoseconds, the median of many rounds
 *	scope_cost check	TAP: a static tag at most 3 ns in and out as a block, 5 by hand, a
 *				task at most 5, and neither system calls nor allocations in any of
 *				them (the benchmark lets a tag by hand have 3, too)
 *
 * Each form stands around a call of an empty function, and what the bare call takes is subtracted;
 * rounds of the form and of the bare call take turns. Nobody is attached: then tags cost the same,
 * and the end of a task a trap.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heaptap/scope.h"

#define CALLS 20000
#define ROUNDS 201
#define TRIES 5

static heaptap_node task;
static heaptap_state carried;

#define FORM __attribute__((always_inline)) static inline

__attribute__((noinline)) static void work(void)
{
	__asm__ volatile("" ::: "memory");
}

FORM void bare(void)
{
	work();
}
FORM void static_tag(void)
{
	HEAPTAP_SCOPE("tag");
	work();
}
FORM void static_path(void)
{
	HEAPTAP_SCOPE("Top", "A", "B");
	work();
}
FORM void push_pop(void)
{
	HEAPTAP_PUSH("tag");
	work();
	heaptap_pop();
}
FORM void dynamic_tag(void)
{
	HEAPTAP_SCOPE_NAME("a dynamic name");
	work();
}
FORM void label(void)
{
	HEAPTAP_LABEL("tenant", "acme");
	work();
}
FORM void task_switch(void)
{
	heaptap_state before = heaptap_enter(task, 17);

	work();
	heaptap_leave(before);
}
FORM void task_block(void)
{
	HEAPTAP_TASK("query", 18);
	work();
}
FORM void state_switch(void)
{
	heaptap_state before = heaptap_set(carried);

	work();
	heaptap_set(before);
}
FORM void task_exit(void)
{
	work();
	heaptap_task_exit(task, 17);
}

static const struct form {
	const char *name;
	void (*call)(void);
	double limit_ns; /* 0: none */
} forms[] = {
	{ "static tag", static_tag, 3 }, { "static path of three", static_path, 3 },
	{ "push and pop", push_pop, 5 }, { "dynamic tag", dynamic_tag, 0 },
	{ "label", label, 0 },		 { "task in and out", task_switch, 5 },
	{ "task block", task_block, 5 }, { "state set and back", state_switch, 5 },
	{ "task exit", task_exit, 0 },
};
#define FORM_CNT (sizeof(forms) / sizeof(forms[0]))

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The loop must be compiled with the form in it: once per form, by inlining. */
#define ROUND(form)                                                \
	__attribute__((noinline)) static double round_##form(void) \
	{                                                          \
		double start = now_ns();                           \
                                                                   \
		for (int i = 0; i < CALLS; i++)                    \
			form();                                    \
		return (now_ns() - start) / CALLS;                 \
	}
ROUND(bare)
ROUND(static_tag)
ROUND(static_path)
ROUND(push_pop)
ROUND(dynamic_tag)
ROUND(label)
ROUND(task_switch)
ROUND(task_block)
ROUND(state_switch)
ROUND(task_exit)
static double (*const rounds[FORM_CNT])(void) = {
	round_static_tag,  round_static_path, round_push_pop,	  round_dynamic_tag, round_label,
	round_task_switch, round_task_block,  round_state_switch, round_task_exit,
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double measure(size_t form)
{
	static double with[ROUNDS], without[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		without[i] = round_bare();
		with[i] = rounds[form]();
	}
	qsort(with, ROUNDS, sizeof(*with), compare);
	qsort(without, ROUNDS, sizeof(*without), compare);
	return with[ROUNDS / 2] - without[ROUNDS / 2];
}

/* The C library's own, under another name: ours count. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t cnt, size_t size);
void *__libc_realloc(void *p, size_t size);
static unsigned malloc_cnt;

void *malloc(size_t size)
{
	malloc_cnt++;
	return __libc_malloc(size);
}
void *calloc(size_t cnt, size_t size)
{
	malloc_cnt++;
	return __libc_calloc(cnt, size);
}
void *realloc(void *p, size_t size)
{
	malloc_cnt++;
	return __libc_realloc(p, size);
}

/* The first time of every path, which may map memory, but takes none from malloc. */
static bool interns_without_malloc(void)
{
	unsigned before = malloc_cnt;

	for (size_t f = 0; f < FORM_CNT; f++)
		forms[f].call();
	for (char name[] = "name aa"; name[5] <= 'z'; name[5]++)
		for (name[6] = 'a'; name[6] <= 'z'; name[6]++) {
			heaptap_push(name);
			heaptap_pop();
		}
	return malloc_cnt == before;
}

/* In a child that the kernel kills at its next system call but read, write, exit and sigreturn. */
static bool is_quiet(void)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		if (prctl(PR_SET_SECCOMP, 1))
			_exit(2);
		for (int i = 0; i < CALLS; i++)
			for (size_t f = 0; f < FORM_CNT; f++)
				forms[f].call();
		syscall(SYS_exit, 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int check(void)
{
	bool has_no_malloc = interns_without_malloc(), has_no_calls = is_quiet();
	int failed = !has_no_malloc + !has_no_calls;
	double ns;

	printf("%s - no allocations\n", has_no_malloc ? "ok" : "not ok");
	printf("%s - no system calls once paths are known\n", has_no_calls ? "ok" : "not ok");

	for (size_t f = 0; f < FORM_CNT; f++) {
		if (!forms[f].limit_ns)
			continue;
		/* noise only adds */
		for (int tries = 0; tries < TRIES; tries++)
			if ((ns = measure(f)) <= forms[f].limit_ns)
				break;
		failed += ns > forms[f].limit_ns;
		printf("%s - %s: %.1f ns, limit %.0f\n", ns > forms[f].limit_ns ? "not ok" : "ok",
		       forms[f].name, ns, forms[f].limit_ns);
	}
	return failed;
}

int main(int argc, char **argv)
{
	{
		HEAPTAP_SCOPE("carried");
		carried = heaptap_get();
		task = heaptap_task("query");
	}
	if (argc > 1 && !strcmp(argv[1], "check"))
		return check() != 0;
	for (size_t f = 0; f < FORM_CNT; f++)
		printf("{\"bench\":\"scope\",\"form\":\"%s\",\"ns\":%.2f}\n", forms[f].name,
		       measure(f));
	return 0;
}
