/* SPDX-License-Identifier: MIT */
/*
 * process.c - facts about a process, read through the reader where there is one (reader.h), and whether it can
 * be recorded.
 */
#include "proc/process.h"

#include <elf.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "proc/proc_text.h"
#include "proc/reader_priv.h"

/* op: READ_INFO, READ_IMAGE, READ_GLANCE. */
static int read_info(struct reader *reader, uint32_t op, pid_t pid, struct process_info *ret)
{
	struct reader_call c = { .head = { .op = op, .pid = pid }, .fd = -1 };
	int err = reader_call(reader, &c, pid);

	if (err)
		return err;
	if (c.answer.bytes == sizeof(*ret))
		memcpy(ret, c.bytes, sizeof(*ret));
	else
		err = -EPROTO;
	ret->comm[sizeof(ret->comm) - 1] = ret->exe[sizeof(ret->exe) - 1] = '\0';
	ret->container_id[sizeof(ret->container_id) - 1] = '\0';
	ret->called[sizeof(ret->called) - 1] = '\0';
	reader_call_release(&c);
	return err;
}

int process_info_read(struct reader *reader, pid_t pid, struct process_info *ret)
{
	if (pid <= 0)
		return -ESRCH;
	return reader_is_ours(reader) ? read_info(reader, READ_INFO, pid, ret) :
					process_info_here(pid, ret);
}

int process_image_read(struct reader *reader, pid_t pid, struct process_info *ret)
{
	return reader_is_ours(reader) ? read_info(reader, READ_IMAGE, pid, ret) :
					process_image_here(pid, ret);
}

/* stat waits while the process executes another program: see process_text_pages(). */
int process_glance(struct reader *reader, pid_t pid, struct process_info *ret)
{
	return reader_is_ours(reader) && pid != getpid() ?
		       read_info(reader, READ_GLANCE, pid, ret) :
		       process_glance_here(pid, ret);
}

int process_has_own_root(struct reader *reader, pid_t tid)
{
	struct reader_call c = { .head = { .op = READ_ROOT, .tid = tid }, .fd = -1 };

	return reader_is_ours(reader) ? reader_call(reader, &c, tid) : process_root_here(tid);
}

/* Hand the text in c over to the caller. */
static char *take_text(struct reader_call *c, size_t *ret_bytes)
{
	char *text = (char *)c->bytes;

	*ret_bytes = c->answer.bytes;
	c->bytes = NULL;
	reader_call_release(c);
	return text;
}

static int read_maps_text(struct reader *reader, pid_t pid, pid_t tid, char **ret)
{
	struct reader_call c = { .head = { .op = READ_MAPS, .pid = pid, .tid = tid }, .fd = -1 };
	size_t bytes;
	int err;

	if (!reader_is_ours(reader))
		return proc_maps_text_here(pid, tid, ret);
	err = reader_call(reader, &c, pid);
	if (!err)
		*ret = take_text(&c, &bytes);
	return err;
}

int proc_maps_read(struct reader *reader, pid_t pid, pid_t tid, struct proc_maps *ret)
{
	char *text = NULL;
	int err = read_maps_text(reader, pid, tid, &text);

	if (err)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): errno was not 0 */
	if (!*text) { /* no address space: a kernel thread, or the process has just ended */
		free(text);
		return -ESRCH;
	}
	return proc_maps_parse(text, ret);
}

int process_open_map(struct reader *reader, pid_t pid, pid_t tid, const struct proc_map *map,
		     struct file_facts *ret)
{
	struct reader_call c = { .head = { .op = OPEN_MAP,
					   .pid = pid,
					   .tid = tid,
					   .text_bytes = (uint32_t)strlen(map->path) + 1,
					   .map = { .start_addr = map->start_addr,
						    .end_addr = map->end_addr,
						    .off = map->off,
						    .ino = map->ino,
						    .dev = map->dev,
						    .is_deleted = map->is_deleted } },
				 .text = map->path,
				 .fd = -1 };
	int err;

	if (map->path[0] != '/' || map->ino == 0)
		return -ENOENT;
	if (!reader_is_ours(reader))
		return process_open_map_here(pid, tid, map, false, ret);
	if (c.head.text_bytes > READER_ARGS_BYTES_CAP)
		return -ENAMETOOLONG;
	err = reader_call(reader, &c, pid);
	if (err)
		return err;
	if (ret)
		*ret = c.answer.facts;
	return c.ret_fd >= 0 ? c.ret_fd : -EPROTO;
}

/* Read a text that is in the process's own memory, by which it may delay the reader. */
static int read_kept_text(struct reader *reader, pid_t pid, const char *name, char **ret,
			  size_t *ret_bytes)
{
	struct reader_call c = {
		.head = { .op = READ_TEXT, .pid = pid, .text_bytes = (uint32_t)strlen(name) + 1 },
		.text = name,
		.fd = -1
	};
	int err;

	if (!reader_is_ours(reader))
		return proc_text_read_all(pid, name, PROC_TEXT_BYTES_CAP, ret, ret_bytes);
	err = reader_call(reader, &c, pid);
	if (!err)
		*ret = take_text(&c, ret_bytes);
	return err;
}

int process_read_cmdline(struct reader *reader, pid_t pid, char *buf, size_t buf_bytes,
			 size_t *ret_bytes)
{
	size_t bytes, used;
	char *text;
	int err = read_kept_text(reader, pid, "cmdline", &text, &bytes);

	if (err)
		return err;
	used = bytes - 1 < buf_bytes - 1 ? bytes - 1 : buf_bytes - 1;
	memcpy(buf, text, used);
	free(text);
	if (!used) { /* it has none, or has ended */
		struct process_info info;

		err = process_info_read(reader, pid, &info);
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

int process_read_environ(struct reader *reader, pid_t pid, char **ret, size_t *ret_bytes)
{
	return read_kept_text(reader, pid, "environ", ret, ret_bytes);
}

/* Does the kernel let us look at the process's memory map? */
static int check_access(const struct process_info *info)
{
	int fd = proc_open(info->tgid, O_RDONLY, "task/%d/maps", info->live_tid);

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	close(fd);
	return 0;
}

/*
 * While a process executes another program the kernel has a lock of it (exec_update_lock), for which stat, maps, exe
 * and kcmp() wait, and no signal but SIGKILL ends that. In it descriptors are closed, and one of a file system of its
 * user's (FUSE) is closed when that user likes. What statm says needs no lock; a memory that is just being made has no
 * text.
 */
uint64_t process_text_pages(pid_t pid, pid_t tid)
{
	FILE *f = proc_fopen(pid, "task/%d/statm", tid);
	unsigned long long pages = 0;

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

bool process_has_ended(struct reader *reader, pid_t pid)
{
	struct process_info info;
	int err = process_glance(reader, pid, &info);

	if (!err && info.is_zombie) /* or only its main thread is */
		err = process_image_read(reader, pid, &info);
	return err == -ESRCH || (!err && info.is_zombie);
}

bool process_is_emulated(const struct process_info *info)
{
	const char *name = strrchr(info->exe, '/'), *dash = name ? strstr(name, "-amd64-") : NULL;

	return dash && strstr(info->exe, "/valgrind/");
}

int process_check(const struct process_info *info, struct err *why)
{
	int err;

	if (info->is_kernel_thread)
		return err_set(why, -EINVAL,
			       "process %d (%s) is a kernel thread, which has no heap", info->pid,
			       info->comm);
	if (info->is_zombie)
		return err_set(why, -ESRCH,
			       "process %d (%s) has ended (a zombie); record it while it runs, or "
			       "start it with 'heaptap record -- CMD'",
			       info->pid, info->comm);
	if (info->pid != info->tgid)
		return err_set(why, -EINVAL, "%d is a thread of process %d (%s): use -p %d",
			       info->pid, info->tgid, info->comm, info->tgid);
	err = check_access(info);
	if (err == -ESRCH)
		return err_set(why, err, "process %d (%s) has just ended", info->pid, info->comm);
	if (err)
		return err_set(why, -EACCES,
			       "cannot read process %d (%s) of uid %u as uid %u (%s): %s",
			       info->pid, info->comm, info->uid, geteuid(), strerror(-err),
			       geteuid() ?
				       "run heaptap as root, or with CAP_SYS_PTRACE" :
				       "CAP_SYS_PTRACE is missing here, or a security module or "
				       "another user namespace forbids it");
	if (info->is_32bit)
		return err_set(why, -ENOTSUP,
			       "process %d (%s) is a 32-bit program; heaptap records only 64-bit "
			       "programs",
			       info->pid, info->comm);
	return 0;
}

int process_check_probing(const struct process_info *info, struct err *why)
{
	int err = process_check(info, why);

	if (err || !process_is_emulated(info))
		return err;
	return err_set(why, -ENOTSUP,
		       "process %d (%s) runs under valgrind, which would execute heaptap's "
		       "breakpoints; use valgrind's own tools: --tool=massif, --tool=dhat",
		       info->pid, info->comm);
}

int process_memory_read(struct reader *reader, pid_t tid, uint64_t addr, void *buf, size_t bytes)
{
	struct reader_call c = { .head = { .op = READ_MEMORY,
					   .tid = tid,
					   .memory = { .addr = addr, .bytes = bytes } },
				 .fd = -1 };
	int err;

	if (addr > INT64_MAX || bytes > INT64_MAX - addr)
		return -EFAULT;
	if (!reader_is_ours(reader))
		return process_memory_here(tid, addr, buf, bytes);
	err = reader_call(reader, &c, tid);
	if (err)
		return err;
	if (c.answer.bytes == bytes)
		memcpy(buf, c.bytes, bytes);
	else
		err = -EFAULT;
	reader_call_release(&c);
	return err;
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
