/* SPDX-License-Identifier: MIT */
/*
 * calibrate.c - what a probe costs on this machine now, so that the costs of profilers can be
 * given in traps instead of nanoseconds.
 *
 * Three identical functions but for their first instruction; two of them carry a uprobe with an
 * empty BPF program for the whole run: one on an instruction that the kernel emulates (push %rbp),
 * one on an instruction that it has to single-step (test %rdi,%rdi). Every line "run HITS" on
 * stdin is answered with
 *   PLAIN EMULATED STEPPED SESSION      ns of CPU time per call, SESSION 0 without session links
 * The attachment is the newest that the kernel has: the one the profiler uses. SESSION is an
 * emulated probe whose program runs as a session that does not ask for the return.
 * The first line of the output names the attachment, or is "error: ...".
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "uprobe_link.h"

#define STEPPED_SHARE 20 /* a stepped hit costs tens of emulated ones */

void plain_function(void *);
void emulated_function(void *);
void stepped_function(void *);
void session_function(void *);

#define PUSH "	push %rbp\n	test %rdi,%rdi\n	pop %rbp\n"
#define TEST "	test %rdi,%rdi\n	push %rbp\n	pop %rbp\n"
#define FUNCTION(name, body)                                                              \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name \
		":\n" body "	ret\n.size " #name ", . - " #name "\n")

FUNCTION(plain_function, PUSH);
FUNCTION(emulated_function, PUSH);
FUNCTION(stepped_function, TEST);
FUNCTION(session_function, PUSH);

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static double time_calls(void (*function)(void *), long calls)
{
	uint64_t start_ns = cpu_ns();

	for (long i = 0; i < calls; i++)
		function(&start_ns);
	return (double)(cpu_ns() - start_ns) / calls;
}

static int probe(enum ul_how how, void (*function)(void *), struct ul_link *link)
{
	char path[4096];
	uint64_t off;
	int err = ul_locate((const void *)function, path, sizeof(path), &off);

	return err ? err : ul_attach(how, path, off, getpid(), -1, 1, link);
}

int main(void)
{
	struct ul_link emulated, stepped, session;
	enum ul_how how = UL_MULTI;
	int have_session, err;
	char line[128];
	long hits;

	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	err = probe(how, emulated_function, &emulated);
	if (err) {
		how = UL_PERF;
		err = probe(how, emulated_function, &emulated);
	}
	if (!err)
		err = probe(how, stepped_function, &stepped);
	if (err) {
		printf("error: cannot attach a uprobe: %s\n", strerror(-err));
		return 1;
	}
	have_session = probe(UL_SESSION, session_function, &session) == 0;
	printf("%s%s\n", how == UL_MULTI ? "uprobe_multi" : "perf_event",
	       have_session ? " session" : "");
	while (fgets(line, sizeof(line), stdin)) {
		double plain_ns, emulated_ns, stepped_ns, session_ns = 0;

		if (sscanf(line, "run %ld", &hits) != 1 || hits < 1) {
			printf("error: what?\n");
			continue;
		}
		plain_ns = time_calls(plain_function, hits);
		emulated_ns = time_calls(emulated_function, hits);
		stepped_ns = time_calls(stepped_function, hits / STEPPED_SHARE + 1);
		if (have_session)
			session_ns = time_calls(session_function, hits);
		printf("%.2f %.2f %.2f %.2f\n", plain_ns, emulated_ns, stepped_ns, session_ns);
	}
	ul_detach(&emulated);
	ul_detach(&stepped);
	if (have_session)
		ul_detach(&session);
	return 0;
}
