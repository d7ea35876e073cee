/* SPDX-License-Identifier: MIT */
/* target_memory.c - see daemon_priv.h. */
#include "serve/daemon_priv.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "http/view.h"
#include "proc/cgroup.h"
#include "proc/facts.h"
#include "proc/proc_text.h"
#include "proc/process.h"
#include "proc/reader.h"

/* After a read, nothing is read for this many times as long as it took. */
#define PSS_REST 200
/* Changes of a process's group, and of its limit, may be noticed this late. */
#define GROUP_NS (10 * NS_PER_S)
/* A walk of a terabyte takes seconds; a job that hangs in the kernel is not waited for. */
#define PSS_WALL_S 20
#define PSS_CAP_NS (25 * NS_PER_S)
#define NOBODY UINT32_MAX /* these jobs belong to no user */
/* After this nobody asks any more. */
#define IDLE_NS (120 * NS_PER_S)

struct entry {
	pid_t pid;
	uint64_t start;
	char container[CONTAINER_ID_BYTES];
	char cgroup[64]; /* the last part of its control group's path */
	char *group_dir; /* group whose usage counts against the limit; NULL: not known */
	uint64_t limit_bytes;
	uint64_t group_read_ns;
	double pss_bytes;
	uint64_t pss_due_ns;
	bool is_seen; /* since the last sweep */
};

/* The usage of a group, for one view: until target_memory_sweep(). */
struct usage {
	char dir[CGROUP_PATH_BYTES]; /* "": none was read */
	uint64_t bytes;
	int err;
};

struct target_memory {
	struct cgroup_mount mount;
	bool has_mount;
	VEC(struct entry *) entries;
	struct hmap by_pid; /* uint32_t -> struct entry * */
	size_t next; /* entry to check first for the next pss */
	uint64_t rest_until_ns; /* no pss is read until then */
	/* the pss read in progress */
	int pss_fd; /* -1: none */
	uint32_t pss_pid;
	uint64_t pss_start, pss_begin_ns;
	uint64_t asked_ns;
	struct usage last; /* kept, as many are in the same group */
};

int target_memory_new(struct target_memory **ret)
{
	struct target_memory *tm = calloc(1, sizeof(*tm));

	if (!tm)
		return -ENOMEM;
	tm->pss_fd = -1;
	hmap_init(&tm->by_pid, sizeof(uint32_t));
	tm->has_mount = !cgroup_find_mount(&tm->mount);
	*ret = tm;
	return 0;
}

static void entry_free(struct entry *e)
{
	free(e->group_dir);
	free(e);
}

static void end_pss(struct target_memory *tm)
{
	close(tm->pss_fd);
	tm->pss_fd = -1;
}

void target_memory_free(struct target_memory *tm)
{
	if (!tm)
		return;
	if (tm->pss_fd >= 0)
		end_pss(tm);
	for (size_t i = 0; i < tm->entries.cnt; i++)
		entry_free(tm->entries.data[i]);
	vec_release(&tm->entries);
	hmap_release(&tm->by_pid);
	free(tm);
}

static void read_group(const struct target_memory *tm, struct entry *e, uint64_t now)
{
	char dir[CGROUP_PATH_BYTES], limited[CGROUP_PATH_BYTES], *text;
	const char *name;

	e->group_read_ns = now;
	free(e->group_dir);
	e->group_dir = NULL;
	if (proc_text_read(e->pid, "cgroup", &text))
		return;
	container_id_from_cgroup(text, e->container);
	e->cgroup[0] = '\0';
	if (tm->has_mount && !cgroup_memory_dir(&tm->mount, text, dir)) {
		name = strrchr(dir, '/');
		snprintf(e->cgroup, sizeof(e->cgroup), "%.*s", (int)sizeof(e->cgroup) - 1,
			 name ? name + 1 : dir);
		if (!cgroup_memory_limit(&tm->mount, dir, &e->limit_bytes, limited))
			e->group_dir = strdup(limited);
	}
	free(text);
}

static int read_usage(struct target_memory *tm, const char *dir, uint64_t *ret_bytes)
{
	struct usage *u = &tm->last;

	if (strcmp(u->dir, dir) != 0) {
		u->err = cgroup_memory_usage(&tm->mount, dir, &u->bytes);
		snprintf(u->dir, sizeof(u->dir), "%s", dir);
	}
	*ret_bytes = u->bytes;
	return u->err;
}

static struct entry *add_entry(struct target_memory *tm, pid_t pid)
{
	struct entry *e = calloc(1, sizeof(*e));
	uint32_t key = (uint32_t)pid;

	if (!e)
		return NULL;
	e->pid = pid;
	if (vec_push(&tm->entries, e)) {
		free(e);
		return NULL;
	}
	if (hmap_put(&tm->by_pid, &key, (uintptr_t)e)) {
		tm->entries.cnt--;
		free(e);
		return NULL;
	}
	return e;
}

int target_memory_get(struct target_memory *tm, uint64_t start, struct serve_process *ret)
{
	uint32_t key = (uint32_t)ret->pid;
	const uint64_t *known = hmap_get(&tm->by_pid, &key);
	struct entry *e = known ? (struct entry *)(uintptr_t)*known : add_entry(tm, ret->pid);
	uint64_t now = now_ns(), usage_bytes;

	if (!e)
		return -ENOMEM;
	tm->asked_ns = now;
	e->is_seen = true;
	if (e->start != start) { /* new, or another process with this pid */
		e->start = start;
		e->group_read_ns = e->pss_due_ns = 0;
		e->pss_bytes = NAN;
	}
	if (!e->group_read_ns || now - e->group_read_ns > GROUP_NS)
		read_group(tm, e, now);
	ret->container = e->container;
	ret->cgroup = e->cgroup;
	ret->pss_bytes = e->pss_bytes;
	ret->cgroup_limit_bytes = ret->cgroup_usage_bytes = NAN;
	if (e->group_dir && !read_usage(tm, e->group_dir, &usage_bytes)) {
		ret->cgroup_usage_bytes = (double)usage_bytes;
		if (e->limit_bytes != CGROUP_UNLIMITED)
			ret->cgroup_limit_bytes = (double)e->limit_bytes;
	}
	return 0;
}

void target_memory_sweep(struct target_memory *tm)
{
	size_t kept = 0;

	for (size_t i = 0; i < tm->entries.cnt; i++) {
		struct entry *e = tm->entries.data[i];
		uint32_t key = (uint32_t)e->pid;

		if (e->is_seen) {
			e->is_seen = false;
			tm->entries.data[kept++] = e;
			continue;
		}
		hmap_del(&tm->by_pid, &key);
		entry_free(e);
	}
	tm->entries.cnt = kept;
	tm->last.dir[0] = '\0';
}

/* The answer of a job. */
struct pss {
	double bytes; /* NAN: not known */
	uint64_t took_ns;
};

int target_memory_run_job(const void *args, size_t args_bytes, int out_fd)
{
	struct process_info info = { 0 };
	uint64_t begin_ns = now_ns();
	struct pss said = { .bytes = NAN };
	pid_t pid;
	int err;

	if (args_bytes != sizeof(pid))
		return 1;
	memcpy(&pid, args, sizeof(pid));
	info.pid = info.tgid = info.live_tid = pid;
	err = process_read_pss(&info);
	if (err == -ESRCH && !process_info_read(pid, &info) && info.is_main_thread_gone)
		err = process_read_pss(&info);
	if (!err)
		said.bytes = (double)info.pss_bytes;
	said.took_ns = now_ns() - begin_ns;
	return write(out_fd, &said, sizeof(said)) == sizeof(said) ? 0 : 1;
}

/* Take the answer of the job, which has a pipe to itself, if it is there by now. */
static void take_pss(struct target_memory *tm, uint64_t now)
{
	struct pollfd p = { .fd = tm->pss_fd, .events = POLLIN };
	struct pss said = { NAN, now - tm->pss_begin_ns };
	struct entry *e;
	uint64_t *found;

	if (poll(&p, 1, 0) <= 0) {
		if (said.took_ns < PSS_CAP_NS)
			return;
	} else if (read(tm->pss_fd, &said, sizeof(said)) != sizeof(said)) {
		said.bytes = NAN;
	}
	end_pss(tm);
	found = hmap_get(&tm->by_pid, &tm->pss_pid);
	e = found ? (struct entry *)(uintptr_t)*found : NULL;
	if (e && e->start == tm->pss_start)
		e->pss_bytes = said.bytes;
	tm->rest_until_ns = now + said.took_ns * PSS_REST;
}

void target_memory_work(struct target_memory *tm)
{
	uint64_t now = now_ns();

	if (tm->pss_fd >= 0)
		take_pss(tm, now);
	if (tm->pss_fd >= 0 || now - tm->asked_ns > IDLE_NS || now < tm->rest_until_ns)
		return;
	for (size_t i = 0; i < tm->entries.cnt; i++) {
		struct entry *e = tm->entries.data[tm->next++ % tm->entries.cnt];

		if (e->pss_due_ns > now)
			continue;
		tm->pss_pid = (uint32_t)e->pid;
		tm->pss_start = e->start;
		tm->pss_begin_ns = now;
		e->pss_due_ns = now + TARGET_PSS_NS;
		if (reader_run_job(NOBODY, TARGET_MEMORY_JOB, -1, &e->pid, sizeof(e->pid),
				   PSS_WALL_S, &tm->pss_fd))
			tm->pss_fd = -1;
		return;
	}
}
