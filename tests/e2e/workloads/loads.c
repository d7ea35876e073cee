/* SPDX-License-Identifier: MIT */
/*
 * loads - a server whose load has a shape: a target for the overhead limit, and for what is stated of it.
 *
 *	loads steady|burst2|burst100|second UNIT_US
 *
 * A unit of its work takes so long and has 40 blocks or one more, of sites that are unlike each other. Units
 * come one after the other, in bursts of 2 or of 100 ms, or in one burst a second; about an eighth of the time
 * it works. Of each site the blocks that were allocated last are held, of one all are.
 *
 * Says READY, and answers each line of its input between two units, so that what it says is of one moment:
 *	AT <CPU time in ns> <of it, for work without an allocation> <allocations>
 *	SITE <name> <allocated bytes> <held bytes>
 *	DONE
 * After the answer to "hold" it does nothing until the next line, which is not answered; what is held counts from
 * there on. Ends with its input.
 *
 * Work without an allocation takes the same with probes and without: how much more the rest takes is the
 * overhead, whatever else the machine does meanwhile.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ULL
#define DUTY 0.125
#define RARE_UNITS 16 /* of which one has a huge block */
#define WARM_UNITS 400 /* until each site frees what it allocated before */
#define LIFE_S 300

struct site {
	const char *name;
	void *(*alloc)(size_t);
	unsigned per_unit; /* 0: one in RARE_UNITS */
	unsigned bytes[4]; /* in turn */
	unsigned held_cnt; /* the last ones; 0: all */
	struct block {
		void *p;
		size_t bytes;
	} * ring;
	uint64_t cnt, alloc_bytes, held_bytes;
};

#define SITE(name)                                                \
	static __attribute__((noinline)) void *name(size_t bytes) \
	{                                                         \
		void *p = malloc(bytes);                          \
                                                                  \
		__asm__ volatile("" : : "r"(p) : "memory");       \
		return p;                                         \
	}
SITE(site_tiny)
SITE(site_small)
SITE(site_mixed)
SITE(site_large)
SITE(site_huge)
SITE(site_kept)

static struct site sites[] = {
	{ "site_tiny", site_tiny, 20, { 64, 64, 64, 64 }, 64, NULL, 0, 0, 0 },
	{ "site_small", site_small, 12, { 200, 200, 200, 200 }, 4000, NULL, 0, 0, 0 },
	{ "site_mixed", site_mixed, 6, { 32, 200, 700, 2000 }, 2000, NULL, 0, 0, 0 },
	{ "site_large", site_large, 1, { 16384, 16384, 16384, 16384 }, 80, NULL, 0, 0, 0 },
	{ "site_huge", site_huge, 0, { 100000, 100000, 100000, 100000 }, 16, NULL, 0, 0, 0 },
	{ "site_kept", site_kept, 1, { 500, 500, 500, 500 }, 0, NULL, 0, 0, 0 },
};
#define SITE_CNT (sizeof(sites) / sizeof(*sites))

static uint64_t unit_cnt, alloc_cnt, work_ns;
static int was_held;
static void *volatile kept;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void spin(uint64_t cnt)
{
	for (uint64_t i = 0; i < cnt; i++)
		__asm__ volatile("" : "+r"(i));
}

/* The best of some: what else runs takes time, too. */
static double spins_per_ns(void)
{
	const uint64_t cnt = 1000000;
	double best = 0;

	for (int i = 0; i < 20; i++) {
		uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		double rate;

		spin(cnt);
		rate = (double)cnt / (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
		best = rate > best ? rate : best;
	}
	return best;
}

static void use(struct site *s)
{
	struct block b = { .bytes = s->bytes[s->cnt % 4] };
	struct block *old = s->held_cnt ? &s->ring[s->cnt % s->held_cnt] : NULL;

	b.p = s->alloc(b.bytes);
	s->cnt++;
	s->alloc_bytes += b.bytes;
	s->held_bytes += b.bytes;
	alloc_cnt++;
	if (!old) {
		kept = b.p;
		return;
	}
	s->held_bytes -= old->bytes;
	free(old->p);
	*old = b;
}

/* What is held by now does not count any more. */
static void forget(void)
{
	for (size_t i = 0; i < SITE_CNT; i++) {
		sites[i].held_bytes = 0;
		for (unsigned k = 0; k < sites[i].held_cnt; k++)
			sites[i].ring[k].bytes = 0;
	}
}

static void do_unit(uint64_t spin_cnt)
{
	uint64_t begin;

	for (size_t i = 0; i < SITE_CNT; i++) {
		struct site *s = &sites[i];
		unsigned cnt = s->per_unit;

		if (!cnt)
			cnt = unit_cnt % RARE_UNITS == 0;
		while (cnt--)
			use(s);
	}
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	spin(spin_cnt);
	work_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	unit_cnt++;
}

/* false: there is no more input. */
static int read_line(char *line, int bytes)
{
	int n = 0;

	while (n < bytes - 1 && read(0, &line[n], 1) == 1)
		if (line[n++] == '\n')
			break;
	line[n] = '\0';
	return n > 0;
}

static void answer(void)
{
	char line[32];

	if (!read_line(line, sizeof(line)))
		exit(0);
	printf("AT %llu %llu %llu\n", (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID),
	       (unsigned long long)work_ns, (unsigned long long)alloc_cnt);
	for (size_t i = 0; i < SITE_CNT; i++)
		printf("SITE %s %llu %llu\n", sites[i].name,
		       (unsigned long long)sites[i].alloc_bytes,
		       (unsigned long long)sites[i].held_bytes);
	printf("DONE\n");
	fflush(stdout);
	if (strncmp(line, "hold", 4) != 0)
		return;
	forget();
	was_held = 1;
	if (!read_line(line, sizeof(line)))
		exit(0);
}

/* Until there is input, or it is so late; true: there is. */
static int await_input(uint64_t until_ns)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct timespec ts = { 0 };

	if (until_ns > now)
		ts = (struct timespec){ (time_t)((until_ns - now) / NS_PER_S),
					(long)((until_ns - now) % NS_PER_S) };
	return ppoll(&in, 1, &ts, NULL) > 0;
}

static uint64_t burst_ns(const char *shape)
{
	return !strcmp(shape, "burst2")	  ? 2000000 :
	       !strcmp(shape, "burst100") ? 100000000 :
	       !strcmp(shape, "second")	  ? (uint64_t)(DUTY * NS_PER_S) :
					    0;
}

int main(int argc, char **argv)
{
	double unit_ns = argc > 2 ? 1000 * atof(argv[2]) : 100000;
	uint64_t burst = argc > 1 ? burst_ns(argv[1]) : 0, unit_per_burst, period_ns, next;
	uint64_t spin_cnt = (uint64_t)(unit_ns * spins_per_ns());

	setvbuf(stdout, malloc(BUFSIZ), _IOFBF, BUFSIZ);
	for (size_t i = 0; i < SITE_CNT; i++)
		sites[i].ring = calloc(sites[i].held_cnt + 1, sizeof(*sites[i].ring));
	unit_per_burst = (uint64_t)((double)burst / unit_ns);
	unit_per_burst += !unit_per_burst;
	period_ns = (uint64_t)((double)unit_per_burst * unit_ns / DUTY);
	for (int i = 0; i < WARM_UNITS; i++)
		do_unit(0);
	printf("READY\n");
	fflush(stdout);
	alarm(LIFE_S);
	next = clock_ns(CLOCK_MONOTONIC);
	for (;;) {
		for (uint64_t i = 0; i < unit_per_burst; i++) {
			do_unit(spin_cnt);
			while (await_input(0))
				answer();
		}
		next += period_ns;
		if (next < clock_ns(CLOCK_MONOTONIC))
			next = clock_ns(CLOCK_MONOTONIC); /* what was too slow is not made up for */
		while (await_input(next)) {
			answer();
			if (was_held) /* goes on at any time of a period */
				next = clock_ns(CLOCK_MONOTONIC) +
				       clock_ns(CLOCK_MONOTONIC) % period_ns;
			was_held = 0;
		}
	}
}
