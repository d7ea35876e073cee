/* SPDX-License-Identifier: MIT */
/*
 * past.c - what the past of stacks (user/http/stack_past.c) takes of 300 processes: time is simulated, memory and CPU
 * are measured. Each process has SAMPLES samples that are live, of STACKS stacks: a third stays, a tenth leaks, the rest
 * lives from seconds to an hour. Reading the samples from the kernel is not in it: tools/soak/past measures that.
 *
 *	past [SECONDS [PROCESSES]]	3600, 300; "NAME VALUE" in lines
 */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/past.h"

#define SAMPLES 200
#define STACKS 40
#define INTERVAL_S 10

struct sample {
	double begin_s, end_s;
	uint64_t stack_id;
};

static uint64_t seed = 88172645463325252ULL;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed * 2685821657736338717ULL >> 11) * 0x1p-53;
}

/* The samples of a stack live about as long; the first are those that stay. */
static struct sample drawn(double now_s)
{
	double which = uniform();
	struct sample s = { now_s, INFINITY, 1 + (uint64_t)(which * STACKS) };

	if (which > 0.33)
		s.end_s = now_s - log(uniform()) * 5 * pow(720, which);
	return s;
}

static double status_kb(const char *name)
{
	FILE *in = fopen("/proc/self/status", "r");
	char line[128];
	double kb = NAN;

	while (in && fgets(line, sizeof(line), in))
		if (!strncmp(line, name, strlen(name)))
			kb = atof(line + strlen(name));
	if (in)
		fclose(in);
	return kb;
}

static int read_moment(struct stack_past *past, struct sample *all, size_t cnt, double now_s)
{
	const struct stack_past_moment now = { (uint64_t)((1000 + now_s) * 1e9), 0 };
	int err = 0;

	stack_past_begin(past, &now);
	for (size_t i = 0; i < cnt && !err; i++)
		err = stack_past_name_image(past, i + 1, 1);
	for (size_t i = 0; i < cnt * SAMPLES && !err; i++) {
		const struct history_key key = { all[i].stack_id, i / SAMPLES + 1, 1 };

		err = stack_past_add(past, &key, (uint64_t)((1000 + all[i].begin_s) * 1e9), 4096,
				     0.06);
	}
	return err ? err : stack_past_end(past, 0);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 3600;
	size_t cnt = argc > 2 ? (size_t)atol(argv[2]) : 300, moments = 0;
	struct sample *all = calloc(cnt * SAMPLES, sizeof(*all));
	const struct stack_past_moment *m;
	struct stack_past *past;
	double before_kb, now_s;
	uint64_t spent_ns = 0;

	if (!all || stack_past_new(INTERVAL_S * NS_PER_S, &past))
		return 1;
	for (size_t i = 0; i < cnt * SAMPLES; i++)
		all[i] = drawn(0);
	before_kb = status_kb("VmRSS:");
	for (now_s = INTERVAL_S; now_s < seconds; now_s += INTERVAL_S * (0.75 + uniform() / 2)) {
		uint64_t begin_ns;

		for (size_t i = 0; i < cnt * SAMPLES; i++)
			if (all[i].end_s < now_s)
				all[i] = drawn(now_s - uniform() * INTERVAL_S);
		begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (read_moment(past, all, cnt, now_s))
			return 1;
		spent_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
		malloc_trim(0); /* as serve does every 10 s */
		moments++;
	}
	printf("kept_mb %.2f\n", (double)stack_past_bytes(past) / 1048576);
	printf("resident_mb %.2f\n", (status_kb("VmRSS:") - before_kb) / 1024);
	printf("most_mb %.2f\n", (status_kb("VmHWM:") - before_kb) / 1024);
	printf("cpu_percent %.3f\n", 100 * (double)spent_ns / 1e9 / now_s);
	printf("moments %zu of %zu\n", stack_past_moments(past, 1, &m), moments);
	stack_past_free(past);
	free(all);
	return 0;
}
