/* SPDX-License-Identifier: MIT */
/* overhead.c - see overhead.h. */
#include "record/overhead.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int process_cpu_ns(pid_t pid, uint64_t *ret_ns)
{
	unsigned long long user_ticks, system_ticks;
	char path[64], line[1024];
	const char *after;
	FILE *f;
	int err = -ESRCH;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	/* The name is in parentheses and may hold anything: count fields from the last ')'. */
	if (fgets(line, sizeof(line), f) && (after = strrchr(line, ')')) &&
	    sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user_ticks,
		   &system_ticks) == 2) {
		*ret_ns = (user_ticks + system_ticks) * (1000000000ULL / sysconf(_SC_CLK_TCK));
		err = 0;
	}
	fclose(f);
	return err;
}

void overhead_begin(struct overhead *o, const struct probe_costs *costs, pid_t pid)
{
	memset(o, 0, sizeof(*o));
	o->costs = *costs;
	if (!process_cpu_ns(pid, &o->begin_cpu_ns))
		o->last_cpu_ns = o->begin_cpu_ns;
}

double overhead_achieved(struct overhead *o, pid_t pid, const uint64_t stats[HT_STAT_CNT])
{
	uint64_t hits = stats[HT_STAT_HITS_ALLOC] + stats[HT_STAT_HITS_FREE];
	uint64_t stepped = stats[HT_STAT_HITS_STEPPED], cpu_ns;
	double probe_ns;

	/* Once it is gone the last value stands. */
	if (!process_cpu_ns(pid, &cpu_ns))
		o->last_cpu_ns = cpu_ns;
	cpu_ns = o->last_cpu_ns - o->begin_cpu_ns;
	if (!cpu_ns)
		return -1;
	probe_ns = (hits - stepped) * o->costs.emulated_ns + stepped * o->costs.stepped_ns +
		   stats[HT_STAT_HITS_RETURN] * o->costs.return_ns + stats[HT_STAT_WALK_NS];
	return probe_ns < cpu_ns ? probe_ns / cpu_ns : 1;
}
