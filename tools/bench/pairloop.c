/* SPDX-License-Identifier: MIT */
/*
 * pairloop.c - the target of the benchmarks: a process that allocates on command and says what it
 * cost, so that one process can stay alive while profilers come and go.
 *
 * Commands on stdin, one answer line on stdout for each:
 *   run SIZE THREADS PAIRS     every thread does PAIRS malloc+free pairs -> ns per pair
 *   pace SIZE PER_SECOND SEC [US]  malloc+free pairs at a rate, for SEC seconds, in bursts that are
 *                              US (200) microseconds apart at least        -> pairs per second
 *   idle N                     N more threads that allocate a hundred times a second -> N
 *   hold N SIZE                N more live blocks, from 64 call paths       -> blocks held
 *   drop                       free all that is held                        -> 0
 *   map FILE                   map the executable segments of an ELF file   -> bytes mapped
 * A command that fails answers "error: ...".
 *
 * Costs are CPU time of the threads, not wall time: another process that takes the CPU for a while
 * must not be charged to the allocator. Calls go through the normal PLT (built with -fno-builtin),
 * below HT_DEPTH frames so that a stack walk has something to do.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 12
#define THREADS_CAP 256
#define PATHS 64

struct job {
	size_t size;
	long pairs;
	uint64_t cpu_ns;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static __attribute__((noinline)) void pairs_loop(size_t size, long pairs)
{
	for (long i = 0; i < pairs; i++) {
		char *p = malloc(size);

		__asm__ volatile("" : "+r"(p) : : "memory");
		free(p);
	}
}

static __attribute__((noinline)) void pairs_below(int depth, size_t size, long pairs)
{
	if (depth)
		pairs_below(depth - 1, size, pairs);
	else
		pairs_loop(size, pairs);
	__asm__ volatile("" : : : "memory"); /* no tail call: the frame stays */
}

static void *job_main(void *arg)
{
	struct job *job = arg;
	uint64_t start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

	pairs_below(DEPTH, job->size, job->pairs);
	job->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	return NULL;
}

static int command_run(size_t size, int threads, long pairs)
{
	pthread_t thread[THREADS_CAP];
	struct job job[THREADS_CAP];
	uint64_t cpu_ns = 0;
	int started = 0;

	if (threads < 1 || threads > THREADS_CAP || pairs < 1)
		return -EINVAL;
	for (int i = 0; i < threads; i++)
		job[i] = (struct job){ .size = size, .pairs = pairs };
	for (; started < threads - 1; started++)
		if (pthread_create(&thread[started], NULL, job_main, &job[started + 1]))
			break;
	job_main(&job[0]);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	if (started < threads - 1)
		return -EAGAIN;
	for (int i = 0; i < threads; i++)
		cpu_ns += job[i].cpu_ns;
	printf("%.2f\n", (double)cpu_ns / ((double)pairs * threads));
	return 0;
}

static int command_pace(size_t size, long per_second, long seconds, long least_us)
{
	uint64_t start_ns = now_ns(CLOCK_MONOTONIC), elapsed_ns = 0;
	long done = 0;

	if (per_second < 1 || seconds < 1)
		return -EINVAL;
	while (elapsed_ns < (uint64_t)seconds * 1000000000) {
		long due = (double)elapsed_ns * 1e-9 * per_second;
		double wait_us = (double)(done + 1) / per_second * 1e6 - (double)elapsed_ns / 1e3;

		if (due > done) {
			pairs_below(DEPTH, size, due - done);
			done = due;
		} else { /* no oftener than needed: hundreds of these may run */
			usleep(wait_us < least_us ? least_us : wait_us > 100000 ? 100000 : wait_us);
		}
		elapsed_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
	}
	printf("%.0f\n", done / (elapsed_ns * 1e-9));
	return 0;
}

static void *idle_main(void *arg)
{
	for (;;) {
		pairs_below(DEPTH, 64, 1);
		usleep(10000);
	}
	return arg;
}

static int command_idle(long cnt)
{
	pthread_t thread;

	for (long i = 0; i < cnt; i++)
		if (pthread_create(&thread, NULL, idle_main, NULL) || pthread_detach(thread))
			return -EAGAIN;
	printf("%ld\n", cnt);
	return 0;
}

struct held {
	struct held *next;
};

/* A chain of calls that differs with the bits of @path, so that 64 stacks are seen. */
static __attribute__((noinline)) void *alloc_on_path(unsigned int path, int bits, size_t size)
{
	void *p;

	if (!bits)
		return malloc(size);
	/* Different code on the two sides keeps the compiler from folding the calls into one. */
	if (path & 1) {
		p = alloc_on_path(path >> 1, bits - 1, size);
		__asm__ volatile("nop" : "+r"(p) : : "memory");
	} else {
		p = alloc_on_path(path >> 1, bits - 1, size);
		__asm__ volatile("" : "+r"(p) : : "memory");
	}
	return p;
}

static int command_hold(struct held **head, long *held_cnt, long cnt, size_t size)
{
	if (cnt < 0 || size < sizeof(struct held))
		return -EINVAL;
	for (long i = 0; i < cnt; i++) {
		struct held *h = alloc_on_path(i % PATHS, 6, size);

		if (!h)
			return -ENOMEM;
		h->next = *head;
		*head = h;
		(*held_cnt)++;
	}
	printf("%ld\n", *held_cnt);
	return 0;
}

static int command_drop(struct held **head, long *held_cnt)
{
	while (*head) {
		struct held *next = (*head)->next;

		free(*head);
		*head = next;
	}
	*held_cnt = 0;
	printf("0\n");
	return 0;
}

/* What the loader would map executable, without running the library's constructors. */
static int command_map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t page = sysconf(_SC_PAGESIZE), total = 0;
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	if (fd < 0)
		return -errno;
	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phentsize != sizeof(ph)) {
		close(fd);
		return -ENOEXEC;
	}
	for (int i = 0; i < eh.e_phnum; i++) {
		uint64_t slack;
		void *p;

		if (pread(fd, &ph, sizeof(ph), eh.e_phoff + i * sizeof(ph)) != sizeof(ph))
			break;
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || !ph.p_filesz)
			continue;
		slack = ph.p_offset % page;
		p = mmap(NULL, ph.p_filesz + slack, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			 ph.p_offset - slack);
		if (p != MAP_FAILED)
			total += ph.p_filesz;
	}
	close(fd);
	printf("%lu\n", (unsigned long)total);
	return 0;
}

int main(void)
{
	struct held *held = NULL;
	long held_cnt = 0, a, b, c, d;
	char path[3072], line[4096];

	setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
	while (fgets(line, sizeof(line), stdin)) {
		int err;

		if (sscanf(line, "run %ld %ld %ld", &a, &b, &c) == 3)
			err = command_run(a, b, c);
		else if (sscanf(line, "pace %ld %ld %ld %ld", &a, &b, &c, &d) == 4)
			err = command_pace(a, b, c, d);
		else if (sscanf(line, "pace %ld %ld %ld", &a, &b, &c) == 3)
			err = command_pace(a, b, c, 200);
		else if (sscanf(line, "idle %ld", &a) == 1)
			err = command_idle(a);
		else if (sscanf(line, "hold %ld %ld", &a, &b) == 2)
			err = command_hold(&held, &held_cnt, a, b);
		else if (strncmp(line, "drop", 4) == 0)
			err = command_drop(&held, &held_cnt);
		else if (sscanf(line, "map %3071[^\n]", path) == 1)
			err = command_map(path);
		else
			err = -EINVAL;
		if (err)
			printf("error: %s\n", strerror(-err));
	}
	return 0;
}
