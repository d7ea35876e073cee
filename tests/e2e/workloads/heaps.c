/* SPDX-License-Identifier: MIT */
/*
 * heaps.c - heaps of which all is known: heaps HOW FILE. It prints READY, then answers each line:
 *
 *	info	writes malloc_info() into FILE
 *	trim	malloc_trim(0), and prints by how many KiB its anonymous memory fell
 *	end
 *
 * HOW is one of the plants below. What it does for an answer allocates nothing.
 */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plants.h"

#define SMALL_CNT 200000
#define POOL_BYTES (32 << 20)
#define STACK_CNT 200
#define ENDED_CNT 4000
#define THREAD_CNT 37
#define BIG_CNT 40
#define OWN_CNT 512 /* of a thread that is busy */

static void *blocks[SMALL_CNT];
static pthread_barrier_t barrier;
static unsigned int churns_each = 1; /* before a pause */
static size_t held_each = 8; /* of so many blocks of a thread one is held */

static void fill(size_t cnt, size_t bytes)
{
	for (size_t i = 0; i < cnt; i++)
		blocks[i] = filled(bytes);
}

/* 200,000 blocks of 200 bytes, all held. */
PLANT(live)
{
	fill(SMALL_CNT, 200);
}

/* 100,000 blocks of 1000 bytes freed, below one that is held. */
PLANT(trim)
{
	fill(SMALL_CNT / 2, 1000);
	filled(1000);
	for (size_t i = 0; i < SMALL_CNT / 2; i++)
		free(blocks[i]);
}

/* 30,000,000 bytes freed at the end of the heap, of which free() keeps twice as much as the largest mapped block that it saw. */
PLANT(top)
{
	free(filled(20 << 20));
	free(filled(1000)); /* from 2.43 on this makes the thread's cache: not at the end */
	fill(30000, 1000);
	for (size_t i = 0; i < 30000; i++)
		free(blocks[i]);
}

/* A GiB of blocks of 64 bytes, all held. */
PLANT(many)
{
	for (size_t i = 0; i < (1 << 30) / 64; i++)
		blocks[0] = filled(64);
}

/* Every second of 200,000 blocks of 64 bytes is freed. */
PLANT(pinned)
{
	fill(SMALL_CNT, 64);
	for (size_t i = 0; i < SMALL_CNT; i += 2)
		free(blocks[i]);
}

/* The same with 1000 bytes, which do not go into fastbins. */
PLANT(binned)
{
	fill(SMALL_CNT / 4, 1000);
	for (size_t i = 0; i < SMALL_CNT / 4; i += 2)
		free(blocks[i]);
}

static void *work(void *arg)
{
	const size_t per = SMALL_CNT / 40, at = (uintptr_t)arg * per;

	for (size_t i = 0; i < per; i++)
		blocks[at + i] = filled(100 + i % 400);
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < per; i++)
		if ((i + 1) % held_each)
			free(blocks[at + i]);
	pthread_barrier_wait(&barrier);
	pause();
	return NULL;
}

/* 37 threads with an arena each, seven eighths of it freed. */
PLANT(arenas)
{
	mallopt(M_ARENA_MAX, 64);
	pthread_barrier_init(&barrier, NULL, THREAD_CNT + 1);
	begin_threads(0, THREAD_CNT, work);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
}

/* The same, with all freed but the last block of each thread. */
PLANT(spread)
{
	held_each = SMALL_CNT / 40;
	plant_arenas();
}

static void *work_deep(void *arg)
{
	(void)arg;
	fill(SMALL_CNT, 700);
	for (size_t i = 0; i < SMALL_CNT; i++)
		if (i % 1000)
			free(blocks[i]);
	pthread_barrier_wait(&barrier);
	pause();
	return NULL;
}

/* An arena of three heaps, in which each thousandth of 200,000 blocks is held. */
PLANT(deep)
{
	pthread_barrier_init(&barrier, NULL, 2);
	begin_threads(0, 1, work_deep);
	pthread_barrier_wait(&barrier);
}

/* A byte in each of 50 huge pages. */
PLANT(huge)
{
	const size_t huge = 2 << 20;
	char *p = mmap(NULL, 51 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	p = (char *)(((uintptr_t)p + huge - 1) / huge * huge);
	madvise(p, 50 * huge, MADV_HUGEPAGE);
	for (size_t i = 0; i < 50; i++)
		p[i * huge] = 1;
}

/* Blocks with a mapping of their own, a few of them aligned. */
PLANT(mmapped)
{
	for (size_t i = 0; i < BIG_CNT; i++) {
		blocks[i] = i % 8 ? malloc((1 << 20) + i * 4096) : memalign(1 << 14, 1 << 20);
		memset(blocks[i], 1, 1 << 20);
	}
}

/* The program splits their mappings behind the first page, as NumPy does for huge pages. */
PLANT(advised)
{
	for (size_t i = 0; i < 4; i++) {
		blocks[i] = filled(8 << 20);
		if (madvise((char *)blocks[i] - 16 + 4096, 8 << 20, MADV_DONTDUMP))
			exit(1);
	}
}

/* 200 MiB are free and were never touched again after a trim. */
PLANT(trimmed)
{
	plant_trim();
	malloc_trim(0);
}

/* Memory that malloc knows nothing of. */
PLANT(mapped)
{
	void *p = mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	memset(p, 1, 32 << 20);
}

/* Somebody else moves the break in the middle of the heap. */
PLANT(foreign)
{
	char *p;

	fill(SMALL_CNT / 8, 200);
	p = sbrk(40 << 10);
	memset(p, 0x5a, 40 << 10);
	for (size_t i = SMALL_CNT / 8; i < SMALL_CNT / 4; i++)
		blocks[i] = filled(200);
}

static void *churn(void *arg)
{
	static __thread void *own[OWN_CNT];
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (size_t i = 0; i < OWN_CNT; i++)
		own[i] = malloc(16 + (unsigned int)rand_r(&seed) % 3000);
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0;; i++) {
		unsigned int at = (unsigned int)rand_r(&seed);

		free(own[at % OWN_CNT]);
		own[at % OWN_CNT] = malloc(16 + at % 3000);
		if (i % churns_each == 0)
			usleep(20);
	}
	return NULL;
}

/* 200,000 blocks are held while two threads allocate and free: 50,000 times a second. */
PLANT(busy)
{
	plant_live();
	pthread_barrier_init(&barrier, NULL, 3);
	begin_threads(1, 2, churn);
	pthread_barrier_wait(&barrier);
}

/* The same, 3,000,000 times a second. */
PLANT(rush)
{
	churns_each = 100;
	plant_busy();
}

/* Memory that is only read is the kernel's page of zeros, and none of it resident. */
PLANT(zeros)
{
	volatile char *p = malloc(64 << 20);

	for (size_t i = 0; i < 64 << 20; i += 4096)
		(void)p[i];
	filled(8 << 20);
}

/* The child has all of it, too. */
PLANT(forked)
{
	plant_live();
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* A block was written beyond its end. */
PLANT(smashed)
{
	plant_live();
	memset((char *)blocks[SMALL_CNT / 2] + 200, 0x41, 40);
}

/* Bins of malloc lead nowhere. A chunk that is freed leads to the first of them. */
PLANT(torn)
{
	uintptr_t *volatile hole = malloc(5000), *bin;

	plant_live();
	free(hole);
	bin = (uintptr_t *)hole[0];
	for (size_t i = 40; i < 60; i++)
		bin[2 * i + 2] = bin[2 * i + 3] = 16;
}

static void *mapped(int flags, int protection, int fd)
{
	void *p = mmap(NULL, POOL_BYTES, protection, flags, fd, 0);

	if (p == MAP_FAILED)
		exit(1);
	return p;
}

/* Blocks, and a pool of the program's own. */
PLANT(pool)
{
	plant_live();
	memset(mapped(MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE, -1), 1, POOL_BYTES);
}

PLANT(code)
{
	memset(mapped(MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE | PROT_EXEC, -1), 0xc3,
	       POOL_BYTES);
}

PLANT(memfd)
{
	int fd = (int)syscall(SYS_memfd_create, "planted", 1); /* no function of it in old glibc */

	if (fd < 0 || ftruncate(fd, POOL_BYTES))
		exit(1);
	memset(mapped(MAP_SHARED, PROT_READ | PROT_WRITE, fd), 1, POOL_BYTES);
}

PLANT(shared)
{
	memset(mapped(MAP_SHARED | MAP_ANONYMOUS, PROT_READ | PROT_WRITE, -1), 1, POOL_BYTES);
}

/* A file of this folder that is read. */
PLANT(file)
{
	static char part[1 << 20];
	int fd = open("heaps.data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	volatile char *p;

	for (size_t i = 0; i < POOL_BYTES / sizeof(part); i++)
		if (write(fd, part, sizeof(part)) != sizeof(part))
			exit(1);
	p = mapped(MAP_SHARED, PROT_READ, fd);
	for (size_t i = 0; i < POOL_BYTES; i += 4096)
		(void)p[i];
}

/* A file and anonymous memory that are mapped and never touched. */
PLANT(untouched)
{
	int fd = open("heaps.untouched", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	static char part[1 << 20];

	plant_live();
	for (size_t i = 0; i < POOL_BYTES / sizeof(part); i++)
		if (write(fd, part, sizeof(part)) != sizeof(part))
			exit(1);
	mapped(MAP_PRIVATE, PROT_READ | PROT_WRITE, fd);
	for (int i = 0; i < 8; i++)
		mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, PROT_READ | PROT_WRITE, -1);
}

/* Two pages of 2 MiB of hugetlbfs. */
PLANT(hugetlb)
{
	const size_t bytes = 4 << 20;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	memset(p, 1, bytes);
	plant_live();
}

/* All but a part of it is swapped out. */
PLANT(swapped)
{
	char *p;

	plant_live();
	p = mapped(MAP_PRIVATE | MAP_ANONYMOUS, PROT_READ | PROT_WRITE, -1);
	memset(p, 1, POOL_BYTES);
	for (int i = 0; i < 50; i++) {
		madvise(p, POOL_BYTES, MADV_PAGEOUT);
		madvise((void *)((uintptr_t)blocks[1000] & ~4095ul), 16 << 20, MADV_PAGEOUT);
		usleep(20000);
	}
}

static char variables[POOL_BYTES];

PLANT(data)
{
	memset(variables, 1, sizeof(variables));
}

/* 256 KiB of a stack. */
static void *work_deep_stack(void *arg)
{
	char deep[256 << 10];

	memset(deep, 1, sizeof(deep));
	__asm__ volatile("" : : "r"(deep) : "memory");
	pthread_barrier_wait(&barrier);
	pause();
	return arg;
}

PLANT(stacks)
{
	pthread_barrier_init(&barrier, NULL, STACK_CNT + 1);
	begin_threads(0, STACK_CNT, work_deep_stack);
	pthread_barrier_wait(&barrier);
}

static void *end_now(void *arg)
{
	return arg;
}

/* Threads that have ended, and that nobody joins. */
PLANT(ended)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (int i = 0; i < ENDED_CNT; i++)
		if (pthread_create(&thread, &attr, end_now, NULL))
			exit(1);
	usleep(200000);
}

/* What a child has of its parent. */
PLANT(child)
{
	pid_t parent = getpid();

	plant_live();
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	for (; getpid() == parent;)
		pause();
}

static void *trickle(void *arg)
{
	for (;;) {
		filled(1000);
		usleep(1000);
	}
	return arg;
}

/* A leak of 1 MB a second: the end of the heap moves on to another page every few ms. */
PLANT(leak)
{
	mallopt(M_ARENA_MAX, 1);
	plant_live();
	begin_threads(0, 1, trickle);
}

static long anonymous_kb(void)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	static char text[8192];
	const char *at;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "RssAnon:");
	return at ? strtol(at + 8, NULL, 10) : -1;
}

static void trim(void)
{
	long before = anonymous_kb();

	malloc_trim(0);
	printf("DONE trimmed %ld\n", before - anonymous_kb());
}

static void write_info(FILE *f)
{
	if (fseek(f, 0, SEEK_SET) || malloc_info(0, f) || fflush(f) ||
	    ftruncate(fileno(f), ftell(f)))
		exit(1);
	puts("DONE");
}

int main(int argc, char **argv)
{
	static char line[512], in[4096], out[4096], file[1 << 16];
	FILE *info = fopen(argc > 2 ? argv[2] : "/dev/null", "we");

	if (!info)
		return 1;
	setvbuf(info, file, _IOFBF, sizeof(file));
	setvbuf(stdin, in, _IOFBF, sizeof(in));
	setvbuf(stdout, out, _IOLBF, sizeof(out));
	if (argc > 1)
		plant(argv[1]);
	puts("READY");
	while (fgets(line, sizeof(line), stdin) && strncmp(line, "end", 3) != 0)
		strncmp(line, "trim", 4) != 0 ? write_info(info) : trim();
	return 0;
}
