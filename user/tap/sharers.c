/* SPDX-License-Identifier: MIT */
/*
 * sharers.c - other processes with the memory of the target: children of vfork(), CLONE_VM.
 *
 * Each process of the machine is asked, whoever its user is. kcmp() waits for one that executes another program, and no
 * timer ends that (process.c). So only those are compared whose text is as long as the target's.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/process.h"
#include "proc/proc_text.h"
#include "tap/threads_priv.h"

#define SHARERS_CAP 256
#ifndef KCMP_VM
#define KCMP_VM 1
#endif

static long compare_memory(pid_t pid, pid_t other)
{
	return syscall(SYS_kcmp, pid, other, KCMP_VM, 0UL, 0UL);
}

/* -EPERM: the service that heaptap runs in may not compare. A kernel without kcmp() finds nobody. */
static int check_compare(void)
{
	return compare_memory(getpid(), getpid()) < 0 && errno == EPERM ? -EPERM : 0;
}

/* A first thread that has ended before the others has no memory. */
static bool has_memory_of(const struct threads *t, pid_t pid)
{
	uint64_t text_pages = process_text_pages(pid, pid);
	pid_t tid = pid;

	if (!text_pages) {
		tid = threads_live_tid(pid);
		text_pages = tid && tid != pid ? process_text_pages(pid, tid) : 0;
	}
	return text_pages && text_pages == t->text_pages && compare_memory(t->live_tid, tid) == 0;
}

static int add_sharer(struct threads *t, pid_t pid)
{
	const uint64_t key = (uint64_t)pid;

	if (pid <= 0 || pid == getpid() || pid == t->pid || hmap_get(&t->compared, &key))
		return 0;
	if (hmap_put(&t->compared, &key, 1))
		return -ENOMEM;
	if (!has_memory_of(t, pid))
		return 0;
	return t->sharers.cnt < SHARERS_CAP ? vec_push(&t->sharers, pid) : -E2BIG;
}

int sharers_find(struct threads *t)
{
	struct dirent *e;
	DIR *d = opendir("/proc");
	int err = check_compare();

	if (!d)
		return -errno;
	t->text_pages = process_text_pages(t->pid, t->live_tid);
	while (!err && (e = readdir(d)))
		err = add_sharer(t, atoi(e->d_name));
	closedir(d);
	return err;
}

int sharers_find_children(struct threads *t, pid_t pid, pid_t tid)
{
	FILE *f = proc_fopen(pid, "task/%d/children", tid);
	int child, err = 0;

	while (f && !err && fscanf(f, "%d", &child) == 1)
		err = add_sharer(t, child);
	if (f)
		fclose(f);
	return err;
}
