/* SPDX-License-Identifier: MIT */
/*
 * bench_event_floor.c - the kernel's own share of what an allocation and its free cost: the same
 * probes as the profiler's, with programs that do nothing.
 *
 *	bench_event_floor SHARERS
 *
 * Two functions stand for malloc and free. `own`: the first has a session link that does not ask for
 * the return, the second an entry link, as a process has that is followed alone. `event`: the first
 * has an entry and a return event, the second an entry event, and SHARERS processes share them, this
 * one as the last that was added; `last` is the same when it was the first to be added. `apart`: this
 * process has links of its own, and SHARERS - 1 others share the events; `beside`: it shares them, as in
 * `event`, and one of the others has links of its own. Every line "run PAIRS" on stdin is answered with
 *   PLAIN OWN EVENT LAST APART BESIDE       ns of CPU time per pair of calls
 * The first line of the output is "ready", or "error: ...".
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "kernel/attach.h"
#include "kernel/uprobe_events.h"
#include "uprobe_link.h"

#define SHARERS_CAP 1000

#define FUNCTION(name)                                                                    \
	void name(void);                                                                  \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name \
		":\n	push %rbp\n	pop %rbp\n	ret\n.size " #name ", . - " #name "\n")

FUNCTION(plain_alloc);
FUNCTION(plain_free);
FUNCTION(own_alloc);
FUNCTION(own_free);
FUNCTION(event_alloc);
FUNCTION(event_free);
FUNCTION(last_alloc);
FUNCTION(last_free);
FUNCTION(apart_alloc);
FUNCTION(apart_free);
FUNCTION(beside_alloc);
FUNCTION(beside_free);

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static double time_pairs(void (*alloc)(void), void (*free_fn)(void), long pairs)
{
	uint64_t start_ns = cpu_ns();

	for (long i = 0; i < pairs; i++) {
		alloc();
		free_fn();
	}
	return (double)(cpu_ns() - start_ns) / pairs;
}

static int load_empty(void)
{
	const struct bpf_insn insn[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "empty", "Dual MIT/GPL", insn,
			       sizeof(insn) / sizeof(*insn), NULL);

	return fd < 0 ? -errno : fd;
}

static int locate(void (*fn)(void), uint64_t *ret_off)
{
	char path[4096];

	return ul_locate((const void *)fn, path, sizeof(path), ret_off);
}

static int probe_own(void (*fn)(void), enum ul_how how, pid_t pid)
{
	struct ul_link link;
	uint64_t off;
	int err = locate(fn, &off);

	return err ? err : ul_attach(how, "/proc/self/exe", off, pid, -1, 1, &link);
}

static int probe_pair(void (*alloc)(void), void (*free_fn)(void), pid_t pid)
{
	int err = probe_own(alloc, UL_SESSION, pid);

	return err ? err : probe_own(free_fn, UL_MULTI, pid);
}

#define GROUP_CNT 4

/* The groups of events, and those who share them. */
struct sharing {
	struct uprobe_events *ue;
	struct shared_probes *probes[GROUP_CNT];
	struct attach_links *links;
	pid_t pids[SHARERS_CAP];
	size_t cnt;
};

/* The processes from begin to before end, in this order. */
static int share(struct sharing *s, int group, size_t begin, size_t end, void (*alloc)(void),
		 void (*free_fn)(void))
{
	int file_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), prog_fd = load_empty();
	struct attach_site alloc_site = { 0 }, free_site = { 0 };
	const struct attach_request reqs[] = {
		{ .file_fd = file_fd,
		  .kind = ATTACH_RETURN,
		  .prog_fd = prog_fd,
		  .sites = &alloc_site,
		  .site_cnt = 1 },
		{ .file_fd = file_fd,
		  .kind = ATTACH_ENTRY,
		  .prog_fd = prog_fd,
		  .sites = &alloc_site,
		  .site_cnt = 1 },
		{ .file_fd = file_fd,
		  .kind = ATTACH_ENTRY,
		  .prog_fd = prog_fd,
		  .sites = &free_site,
		  .site_cnt = 1 },
	};
	int err = file_fd < 0 ? -errno : prog_fd < 0 ? prog_fd : 0;

	if (!err)
		err = locate(alloc, &alloc_site.off);
	if (!err)
		err = locate(free_fn, &free_site.off);
	if (!err)
		err = shared_probes_new(s->ue, reqs, sizeof(reqs) / sizeof(*reqs),
					&s->probes[group]);
	for (size_t i = begin; i < end && !err; i++)
		err = shared_probes_add(s->probes[group], s->pids[i], s->links);
	return err;
}

/* Ends with us. */
static pid_t start_sharer(void)
{
	pid_t pid = fork();

	if (pid)
		return pid < 0 ? -errno : pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static int prepare(struct sharing *s)
{
	struct err why = { 0 };
	int err = 0;

	s->pids[0] = getpid();
	for (size_t i = 1; i < s->cnt && !err; i++) {
		s->pids[i] = start_sharer();
		err = s->pids[i] < 0 ? s->pids[i] : 0;
	}
	if (!err)
		err = attach_links_new(&s->links);
	if (!err)
		err = uprobe_events_open(&s->ue, NULL, &why);
	if (!err)
		err = share(s, 0, 0, s->cnt, last_alloc, last_free);
	s->pids[0] = s->pids[s->cnt - 1];
	s->pids[s->cnt - 1] = getpid();
	if (!err)
		err = share(s, 1, 0, s->cnt, event_alloc, event_free);
	if (!err)
		err = share(s, 2, 0, s->cnt - 1, apart_alloc, apart_free);
	if (!err)
		err = share(s, 3, s->cnt > 1, s->cnt, beside_alloc, beside_free);
	if (!err)
		err = probe_pair(own_alloc, own_free, getpid());
	if (!err)
		err = probe_pair(apart_alloc, apart_free, getpid());
	return err || s->cnt < 2 ? err : probe_pair(beside_alloc, beside_free, s->pids[0]);
}

/* Definitions outlive who made them. */
static void release(struct sharing *s)
{
	attach_links_free(s->links);
	for (int i = 0; i < GROUP_CNT; i++)
		shared_probes_free(s->probes[i]);
	uprobe_events_close(s->ue);
}

int main(int argc, char **argv)
{
	struct sharing s = { .cnt = argc == 2 ? strtoul(argv[1], NULL, 10) : 0 };
	char line[128];
	long pairs;
	int err = s.cnt < 1 || s.cnt > SHARERS_CAP ? -EINVAL : prepare(&s);

	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	if (err) {
		printf("error: cannot attach the probes: %s\n", strerror(-err));
		release(&s);
		return 1;
	}
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		static const struct pair {
			void (*alloc)(void), (*free_fn)(void);
		} pairs_of[] = {
			{ plain_alloc, plain_free }, { own_alloc, own_free },
			{ event_alloc, event_free }, { last_alloc, last_free },
			{ apart_alloc, apart_free }, { beside_alloc, beside_free },
		};

		if (sscanf(line, "run %ld", &pairs) != 1 || pairs < 1) {
			printf("error: what?\n");
			continue;
		}
		for (size_t i = 0; i < sizeof(pairs_of) / sizeof(*pairs_of); i++)
			printf("%s%.2f", i ? " " : "",
			       time_pairs(pairs_of[i].alloc, pairs_of[i].free_fn, pairs));
		printf("\n");
	}
	release(&s);
	return 0;
}
