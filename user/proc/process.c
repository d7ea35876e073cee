/* SPDX-License-Identifier: MIT */
/*
 * process.c - facts about a process, read through the reader where there is one (reader.h), and whether it can
 * be recorded.
 */
#include "proc/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "proc/facts.h"
#include "proc/proc_text.h"
#include "proc/reader.h"

int process_info_read(pid_t pid, struct process_info *ret)
{
	if (pid <= 0)
		return -ESRCH;
	return reader_is_on() ? reader_info(pid, ret) : process_info_here(pid, ret);
}

/* stat waits while the process executes another program: see process_text_pages(). */
int process_glance(pid_t pid, struct process_info *ret)
{
	return reader_is_on() && pid != getpid() ? reader_glance(pid, ret) :
						   process_glance_here(pid, ret);
}

int process_has_own_root(pid_t tid)
{
	return reader_is_on() ? reader_has_own_root(tid) : process_root_here(tid);
}

int proc_maps_read(pid_t pid, pid_t tid, struct proc_maps *ret)
{
	char *text = NULL;
	int err = reader_is_on() ? reader_maps_text(pid, tid, &text) :
				   proc_maps_text_here(pid, tid, &text);

	if (err)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): errno was not 0 */
	if (!*text) { /* no address space: a kernel thread, or the process has just ended */
		free(text);
		return -ESRCH;
	}
	return proc_maps_parse(text, ret);
}

int process_open_map(pid_t pid, pid_t tid, const struct proc_map *map, struct file_facts *ret)
{
	if (map->path[0] != '/' || map->ino == 0)
		return -ENOENT;
	return reader_is_on() ? reader_open_map(pid, tid, map, ret) :
				process_open_map_here(pid, tid, map, false, ret);
}

/* Read a text that is in the process's own memory, by which it may delay the reader. */
static int read_kept_text(pid_t pid, const char *name, char **ret, size_t *ret_bytes)
{
	return reader_is_on() ? reader_text(pid, name, ret, ret_bytes) :
				proc_text_read_all(pid, name, ret, ret_bytes);
}

int process_read_cmdline(pid_t pid, char *buf, size_t buf_bytes, size_t *ret_bytes)
{
	size_t bytes, used;
	char *text;
	int err = read_kept_text(pid, "cmdline", &text, &bytes);

	if (err)
		return err;
	used = bytes - 1 < buf_bytes - 1 ? bytes - 1 : buf_bytes - 1;
	memcpy(buf, text, used);
	free(text);
	if (!used) { /* it has none, or has ended */
		struct process_info info;

		err = process_info_read(pid, &info);
		if (err)
			return err;
		used = (size_t)snprintf(buf, buf_bytes, "%.4095s",
					*info.exe ? info.exe : info.comm);
		used = used < buf_bytes ? used : buf_bytes - 1;
	}
	buf[used] = '\0';
	*ret_bytes = used;
	return 0;
}

int process_read_environ(pid_t pid, char **ret, size_t *ret_bytes)
{
	return read_kept_text(pid, "environ", ret, ret_bytes);
}

/* Does the kernel let us look at the process's memory map? */
static int check_access(const struct process_info *info)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", info->tgid, info->live_tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	close(fd);
	return 0;
}

/*
 * While a process executes another program the kernel has a lock of it (exec_update_lock), for which stat, maps, exe and
 * kcmp() wait, and no signal but SIGKILL ends that. In it descriptors are closed, and one of a file system of its user's
 * (FUSE) is closed when that user likes. What statm says needs no lock; a memory that is just being made has no text.
 */
uint64_t process_text_pages(pid_t pid, pid_t tid)
{
	unsigned long long pages = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/statm", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*s %*s %*s %llu", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages;
}

bool process_shares_memory(pid_t a, pid_t b)
{
	const uint64_t pages = process_text_pages(a, a);

	return pages && pages == process_text_pages(b, b) &&
	       !syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);
}

bool process_has_ended(pid_t pid)
{
	struct process_info info;
	int err = process_info_read(pid, &info);

	return err == -ESRCH || (!err && info.is_zombie);
}

int process_check(const struct process_info *info, struct err *why)
{
	int err;

	if (info->is_kernel_thread)
		return err_set(
			why, -EINVAL,
			"process %d (%s) is a kernel thread: it has no heap; name a user process",
			info->pid, info->comm);
	if (info->is_zombie)
		return err_set(why, -ESRCH,
			       "process %d (%s) is a zombie: it has ended and its memory is gone; "
			       "record it while it runs, or start it with 'heaptap record -- CMD'",
			       info->pid, info->comm);
	if (info->pid != info->tgid)
		return err_set(why, -EINVAL, "%d is a thread of process %d (%s): use -p %d",
			       info->pid, info->tgid, info->comm, info->tgid);
	err = check_access(info);
	if (err == -ESRCH)
		return err_set(why, err, "process %d (%s) has just ended", info->pid, info->comm);
	if (err)
		return err_set(why, -EACCES,
			       "process %d (%s) of uid %u may not be read by uid %u (%s): %s",
			       info->pid, info->comm, info->uid, geteuid(), strerror(-err),
			       geteuid() ?
				       "run heaptap as root, or with CAP_SYS_PTRACE" :
				       "CAP_SYS_PTRACE is missing here, or a security module or "
				       "another user namespace forbids it");
	if (info->is_32bit)
		return err_set(
			why, -ENOTSUP,
			"process %d (%s) is a 32-bit program: heaptap records 64-bit programs "
			"only; record a 64-bit build of it",
			info->pid, info->comm);
	return 0;
}

int process_memory_read(pid_t tid, uint64_t addr, void *buf, size_t bytes)
{
	if (addr > INT64_MAX || bytes > INT64_MAX - addr)
		return -EFAULT;
	return reader_is_on() ? reader_memory(tid, addr, buf, bytes) :
				process_memory_here(tid, addr, buf, bytes);
}

#define AUXV_ENTRIES_CAP 64 /* the kernel gives out some 25 */

int auxv_value(pid_t pid, uint64_t type, uint64_t *ret)
{
	Elf64_auxv_t entries[AUXV_ENTRIES_CAP];
	int fd = proc_open(pid, O_RDONLY, "auxv"), err;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, entries, sizeof(entries));
	err = n < 0 ? -errno : -ENOENT;
	close(fd);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(entries[0]); i++) {
		if (entries[i].a_type != type)
			continue;
		*ret = entries[i].a_un.a_val;
		return 0;
	}
	return err;
}
