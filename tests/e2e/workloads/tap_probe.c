/* SPDX-License-Identifier: MIT */
/*
 * tap_probe - another tool's probes, as bpftrace and bcc's memleak put them: on the first instruction of functions of one
 * process. No program of BPF is behind them.
 *
 *	tap_probe PID FILE SECONDS HZ OFFSET...
 *
 * They are in and out HZ times a second at the most, half of the time each; with HZ 0 they are in all the time.
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define PROBES_CAP 32

static int open_probe(int type, pid_t pid, const char *file, const char *off)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.sample_period = 1,
					.wakeup_events = 1 };
	int fd;

	attr.type = (uint32_t)type;
	attr.uprobe_path = (uint64_t)(uintptr_t)file;
	attr.probe_offset = strtoul(off, NULL, 16);
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		perror("tap_probe");
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int type, fd[PROBES_CAP], cnt = argc - 5, hz;
	struct timespec now;
	double seconds, end;

	if (!f || fscanf(f, "%d", &type) != 1 || cnt < 1 || cnt > PROBES_CAP)
		return 2;
	fclose(f);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seconds = atof(argv[3]);
	hz = atoi(argv[4]);
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = (double)now.tv_sec + (double)now.tv_nsec / 1e9 + seconds;
	do {
		for (int i = 0; i < cnt; i++)
			fd[i] = open_probe(type, atoi(argv[1]), argv[2], argv[5 + i]);
		usleep((useconds_t)(hz ? 5e5 / hz : seconds * 1e6));
		for (int i = 0; i < cnt; i++)
			close(fd[i]);
		if (hz)
			usleep((useconds_t)(5e5 / hz));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (hz && (double)now.tv_sec + (double)now.tv_nsec / 1e9 < end);
	return 0;
}
