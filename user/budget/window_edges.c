/* SPDX-License-Identifier: MIT */
/* window_edges.c - see window_edges.h. */
#include "budget/window_edges.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernel/attach.h"
#include "kernel/timed_close.h"

#define CLOCKS_CAP 64

static void change_all(const struct window_edges *we, const struct engine_change *change)
{
	for (size_t i = 0; i < we->pids.cnt; i++)
		engine_change_target(we->engine, we->pids.data[i], change); /* else it has ended */
}

static void read_all(const struct window_edges *we, struct budget_reading *ret)
{
	struct ht_hits hits;
	uint64_t ns;

	*ret = (struct budget_reading){ .time_ns = now_ns() };
	for (size_t i = 0; i < we->clocks.cnt; i++)
		if (read(we->clocks.data[i], &ns, sizeof(ns)) == sizeof(ns))
			ret->cpu_ns += ns;
	for (size_t i = 0; i < we->pids.cnt && we->has_ticks; i++)
		if (!process_cpu_clock_ns(we->pids.data[i], &ns))
			ret->cpu_ns += ns;
	if (!engine_read_hits_in(we->engine, we->hits_idx, we->room, &hits))
		budget_reading_set_hits(ret, &hits);
}

static void begin(void *arg)
{
	struct window_edges *we = arg;

	change_all(we, &we->inside);
	read_all(we, &we->begin);
}

static void end(void *arg)
{
	struct window_edges *we = arg;

	change_all(we, &we->outside);
	read_all(we, &we->end);
}

void window_edges_close_clocks(struct window_edges *we)
{
	while (we->clocks.cnt)
		close(we->clocks.data[--we->clocks.cnt]);
}

static int open_clock(pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.inherit = 1, /* threads that come meanwhile */
	};

	return (int)syscall(__NR_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool open_clocks_of(struct window_edges *we, pid_t pid)
{
	char path[64];
	struct dirent *entry;
	bool is_good = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && is_good && (entry = readdir(dir))) {
		int fd, tid = (int)strtol(entry->d_name, NULL, 10);

		if (tid <= 0)
			continue;
		fd = we->clocks.cnt < CLOCKS_CAP ? open_clock(tid) : -1;
		if (fd >= 0 && vec_push(&we->clocks, fd)) {
			close(fd);
			fd = -1;
		}
		is_good = fd >= 0 || (errno == ESRCH && we->clocks.cnt < CLOCKS_CAP);
	}
	if (dir)
		closedir(dir);
	return is_good && dir;
}

void window_edges_open_clocks(struct window_edges *we)
{
	bool is_good = true;

	window_edges_close_clocks(we);
	for (size_t i = 0; i < we->pids.cnt && is_good; i++)
		is_good = open_clocks_of(we, we->pids.data[i]);
	if (!is_good)
		window_edges_close_clocks(we);
	we->has_ticks = !is_good;
}

void window_edges_release(struct window_edges *we)
{
	window_edges_close_clocks(we);
	free(we->room);
	we->room = NULL;
	vec_release(&we->clocks);
	vec_release(&we->pids);
}

int window_edges_start(struct window_edges *we, struct attach_links *links, uint64_t length_ns,
		       struct timed_close **ret)
{
	const struct timed_close_edges edges = { begin, end, we };

	int err = we->room ? 0 : engine_hits_room(&we->room);

	if (err) {
		attach_links_free(links);
		return err;
	}
	we->begin = we->end = (struct budget_reading){ 0 };
	return timed_close_start(links, length_ns, &edges, ret);
}
