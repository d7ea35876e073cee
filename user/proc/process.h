/* SPDX-License-Identifier: MIT */
/*
 * process.h - facts about a process, read from /proc, and its memory.
 *
 * A read that the process can delay is done by the reader process, when there is one: see reader.h. -ETIMEDOUT:
 * the reader did not answer in time.
 */
#ifndef HT_PROC_PROCESS_H
#define HT_PROC_PROCESS_H

#include "base/std.h"
#include "proc/facts.h"

struct reader;
struct err;

/* -ESRCH: no such process. Members that may not be read (exe, limits) are left empty. */
int process_info_read(struct reader *reader, pid_t pid, struct process_info *ret);
/* The same without what says whether it can be recorded, most of which is in files of its own: is_32bit, seccomp and
 * catches_sigsys of all threads, address_limit_bytes, container_id. */
int process_image_read(struct reader *reader, pid_t pid, struct process_info *ret);
/*
 * The cheap part of process_info, for a caller that looks at every process once a second: pid, tgid, ppid,
 * comm, exe, state, is_kernel_thread, is_zombie (also when only the main thread has ended), uid, rss_bytes,
 * swap_bytes, file_bytes, start_time_ticks, thread_cnt.
 */
int process_glance(struct reader *reader, pid_t pid, struct process_info *ret);
/* Is it gone, or a zombie? false: it runs, or that cannot be read. */
bool process_has_ended(struct reader *reader, pid_t pid);
/* Does the process have our root directory? 0; -EXDEV: it does not. */
int process_has_own_root(struct reader *reader, pid_t tid);
/*
 * The command line as the process shows it, arguments separated by NUL, cut to buf_bytes - 1 and terminated.
 * When it shows none: the name of its executable. -ESRCH: the process has ended.
 */
int process_read_cmdline(struct reader *reader, pid_t pid, char *buf, size_t buf_bytes,
			 size_t *ret_bytes);
/* The environment at the process's start, entries separated by NUL, one NUL behind the last. The caller frees
 * it. */
int process_read_environ(struct reader *reader, pid_t pid, char **ret, size_t *ret_bytes);
/* Does the process run under valgrind? That executes copies of the code which it reads: a breakpoint in it, too. */
bool process_is_emulated(const struct process_info *info);
/*
 * Can the process be read? 0, or a negative errno with a sentence for the user in why: its kind (kernel
 * thread, zombie, 32-bit, not ours), and what to do. -EINVAL kernel thread or a thread's id, -ESRCH ended,
 * -ENOTSUP 32-bit, -EACCES not ours.
 */
int process_check(const struct process_info *info, struct err *why);
/* The same, and can it be probed? -ENOTSUP also: it runs under valgrind. */
int process_check_probing(const struct process_info *info, struct err *why);
/* The length of its text in pages; 0: it has none (a kernel thread, a thread that has ended), or executes a program
 * just now. Waits for nobody. */
uint64_t process_text_pages(pid_t pid, pid_t tid);
/* Are the two, each a living thread of a process, in one memory, as after vfork() or clone(CLONE_VM)? false: no, or the
 * kernel does not tell. Does not wait for a process that executes a program. */
bool process_shares_memory(pid_t a, pid_t b);

/* tid: any live thread of the process; 0 = pid. -ESRCH: the process has ended or has no memory. */
int proc_maps_read(struct reader *reader, pid_t pid, pid_t tid, struct proc_maps *ret);
/*
 * Find the file of a mapping as the target sees it: map_files first (deleted files, other mount namespaces), then
 * /proc/PID/root/<path> with the inode compared. An O_PATH descriptor of it, for regular_file_reopen(), or negative
 * errno: -ENOENT no file behind it, -ENOEXEC not a regular file, -EAGAIN leased, -ESTALE replaced or deleted since and
 * map_files may not be read; -EREMOTE: a foreign file, which the reader does not open for a caller that serves others.
 * ret: NULL: not wanted.
 */
int process_open_map(struct reader *reader, pid_t pid, pid_t tid, const struct proc_map *map,
		     struct file_facts *ret);

/* Return the value of a type (AT_*) in the auxiliary vector, which the kernel gave the program at its start.
 * -ENOENT: the type is absent; -errno: it cannot be read. */
int auxv_value(pid_t pid, uint64_t type, uint64_t *ret);

/*
 * Read all of [addr, addr + bytes) or nothing. tid: any live thread of the process. -EFAULT: not all of it is
 * mapped. -ESRCH: the process has ended. -EPERM, -EACCES. The process runs on: the bytes may be half of an
 * update.
 */
int process_memory_read(struct reader *reader, pid_t tid, uint64_t addr, void *buf, size_t bytes);

#endif
