/* SPDX-License-Identifier: MIT */
/*
 * facts.c - facts about a process from /proc.
 *
 * Promises: works for a process whose main thread has ended while others live (everything is then read from a
 * live thread); missing or forbidden values are not guessed.
 *
 * Does not stop or trace the process, and needs only the permission to read its /proc entries.
 */
#include "proc/facts.h"

#include <dirent.h>
#include <elf.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/printable.h"
#include "base/fd.h"
#include "proc/proc_text.h"

#define TASK_FLAG_KTHREAD 0x00200000 /* PF_KTHREAD of include/linux/sched.h */
#define SMALL_FILE_BYTES 8192
#define NAMESPACE_BYTES 64
/* A seccomp filter may be set on one thread only; at most this many threads are looked at. */
#define SECCOMP_THREADS_CAP 256

struct task_stat {
	char comm[16];
	char state;
	uint32_t flags, thread_cnt;
	uint64_t start_time_ticks, rss_pages;
};

/* The start of a /proc file, NUL-terminated. tid 0, of a process that has no thread any more, is nobody here. */
static int read_proc(pid_t tid, const char *name, char buf[static SMALL_FILE_BYTES])
{
	int fd = tid ? proc_open(tid, O_RDONLY, "%s", name) : -ENOENT;
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	n = read_full(fd, buf, SMALL_FILE_BYTES - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n < 0 ? (int)n : 0;
}

/* proc_pid_stat(5). The name may contain anything, so the fields are counted from its last ')'. */
static int parse_stat(const char *text, struct task_stat *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')'), *p;
	size_t comm_len;
	int field;

	memset(ret, 0, sizeof(*ret));
	if (!open || !close || close < open || close[1] != ' ')
		return -EINVAL;
	comm_len = (size_t)(close - open - 1);
	if (comm_len >= sizeof(ret->comm))
		comm_len = sizeof(ret->comm) - 1;
	memcpy(ret->comm, open + 1, comm_len);
	make_printable(ret->comm);
	ret->state = close[2];
	for (p = close + 2, field = 3; field < 24; field++) {
		p = strchr(p, ' ');
		if (!p)
			return -EINVAL;
		p++;
		if (field + 1 == 9)
			ret->flags = (uint32_t)strtoul(p, NULL, 10);
		else if (field + 1 == 20)
			ret->thread_cnt = (uint32_t)strtoul(p, NULL, 10);
		else if (field + 1 == 22)
			ret->start_time_ticks = strtoull(p, NULL, 10);
		else if (field + 1 == 24)
			ret->rss_pages = strtoull(p, NULL, 10);
	}
	return 0;
}

static int read_task_stat(pid_t pid, pid_t tid, struct task_stat *ret)
{
	char name[64], buf[SMALL_FILE_BYTES];
	int err;

	snprintf(name, sizeof(name), "task/%d/stat", tid);
	err = read_proc(pid, name, buf);
	return err ? err : parse_stat(buf, ret);
}

/* The text after "\nkey:" in a status file, or NULL. */
static const char *status_value(const char *text, const char *key)
{
	size_t len = strlen(key);
	const char *p = text;

	while (p) {
		/* NOLINTNEXTLINE(clang-analyzer-core.*): a string that is as long as key */
		if (!strncmp(p, key, len) && p[len] == ':')
			return p + len + 1 + strspn(p + len + 1, " \t");
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	return NULL;
}

static bool is_dead(char state)
{
	return state == 'Z' || state == 'X' || state == 'x';
}

/* Calls fn for each thread until it returns true. */
static void each_thread(struct process_info *info, bool (*fn)(struct process_info *info, pid_t tid))
{
	DIR *dir = proc_opendir(info->tgid, "task");
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && fn(info, tid))
			break;
	}
	closedir(dir);
}

static bool pick_live_thread(struct process_info *info, pid_t tid)
{
	struct task_stat st;

	if (read_task_stat(info->tgid, tid, &st) || is_dead(st.state))
		return false;
	info->live_tid = tid;
	return true;
}

/* text: the status of one of its threads. */
static void merge_seccomp(struct process_info *info, const char *text)
{
	const char *value = status_value(text, "Seccomp");
	int mode = value ? (int)strtol(value, NULL, 10) : 0;

	value = status_value(text, "SigCgt");
	info->catches_sigsys |= value && strtoull(value, NULL, 16) >> (SIGSYS - 1) & 1;
	if (mode > info->seccomp)
		info->seccomp = mode;
}

static bool merge_seccomp_of(struct process_info *info, pid_t tid)
{
	char name[64], *text;

	if (info->thread_cnt++ >= SECCOMP_THREADS_CAP)
		return true;
	snprintf(name, sizeof(name), "task/%d/status", tid);
	if (proc_text_read(info->tgid, name, &text))
		return false;
	merge_seccomp(info, text);
	free(text);
	return false;
}

/* That of the thread that was asked for is known already. */
static void read_seccomp(struct process_info *info)
{
	uint32_t thread_cnt = info->thread_cnt;

	if (thread_cnt == 1)
		return;
	info->thread_cnt = 0;
	each_thread(info, merge_seccomp_of);
	info->thread_cnt = thread_cnt;
}

static void read_exe_path(struct process_info *info, pid_t tid)
{
	static const char deleted[] = " (deleted)";
	size_t deleted_len = sizeof(deleted) - 1, len;

	proc_read_link(tid, "exe", info->exe, sizeof(info->exe));
	len = strlen(info->exe);
	if (len > deleted_len && !strcmp(info->exe + len - deleted_len, deleted))
		info->exe[len - deleted_len] = '\0';
}

/*
 * /usr/bin/redis-server is a link to redis-check-rdb. A thread may give itself any name, so the name counts only if
 * there is such a link in exe's folder. A name that may be cut is not looked for.
 */
static void read_called(struct process_info *info)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	const char *slash = strrchr(info->exe, '/');
	char path[PATH_MAX + sizeof(info->comm)];
	struct stat exe, link;
	int root_fd, fd = -1;

	if (!slash || !info->comm[0] || strchr(info->comm, '/') ||
	    strlen(info->comm) == sizeof(info->comm) - 1 ||
	    !strncmp(slash + 1, info->comm, strlen(info->comm)))
		return;
	snprintf(path, sizeof(path), "/proc/%d/exe", info->live_tid);
	if (stat(path, &exe))
		return;
	root_fd = proc_open(info->live_tid, O_PATH | O_DIRECTORY, "root");
	snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - info->exe), info->exe, info->comm);
	if (root_fd >= 0)
		fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd >= 0 && !fstat(fd, &link) && link.st_dev == exe.st_dev && link.st_ino == exe.st_ino)
		memcpy(info->called, info->comm, sizeof(info->called));
	if (fd >= 0)
		close(fd);
	if (root_fd >= 0)
		close(root_fd);
}

static void read_class(struct process_info *info)
{
	unsigned char ident[EI_NIDENT];
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", info->live_tid);
	fd = regular_file_open(path);
	if (fd < 0)
		return;
	if (pread(fd, ident, sizeof(ident), 0) == sizeof(ident) && !memcmp(ident, ELFMAG, SELFMAG))
		info->is_32bit = ident[EI_CLASS] == ELFCLASS32;
	close(fd);
}

int process_address_limit(pid_t pid, uint64_t *ret_bytes)
{
	static const char key[] = "Max address space";
	char buf[SMALL_FILE_BYTES];
	const char *p;
	int err = read_proc(pid, "limits", buf);

	if (err)
		return err;
	p = strstr(buf, key);
	*ret_bytes = p ? strtoull(p + sizeof(key) - 1, NULL, 10) : 0; /* "unlimited" gives 0 */
	return 0;
}

/* Read uid, thread group, swap, namespaces and seccomp. The file is as long as the list of groups, which may have any
 * length. */
static int read_status(struct process_info *info)
{
	const char *value;
	char *text;
	int err;

	err = proc_text_read(info->pid, "status", &text);
	if (err)
		return err;
	value = status_value(text, "Tgid");
	info->tgid = value ? (pid_t)strtol(value, NULL, 10) : info->pid;
	value = status_value(text, "PPid");
	info->ppid = value ? (pid_t)strtol(value, NULL, 10) : 0;
	value = status_value(text, "Uid");
	if (value) /* real, effective, saved, file system: the effective one */
		info->uid = (uint32_t)strtoul(value + strcspn(value, "\t\n"), NULL, 10);
	value = status_value(text, "VmSwap");
	if (value)
		info->swap_bytes = strtoull(value, NULL, 10) * 1024;
	value = status_value(text, "RssFile");
	if (value)
		info->file_bytes = strtoull(value, NULL, 10) * 1024;
	/* one number per namespace, from that of this /proc inwards */
	value = status_value(text, "NSpid");
	info->ns_pid = info->tgid;
	while (value) {
		const char *next = memchr(value, '\t', strcspn(value, "\n"));

		info->in_pid_namespace |= next != NULL;
		info->ns_pid = (pid_t)strtol(value, NULL, 10);
		value = next ? next + 1 : NULL;
	}
	merge_seccomp(info, text);
	free(text);
	return 0;
}

/* What its main thread tells. */
static int read_main_thread(pid_t pid, struct process_info *ret, struct task_stat *st)
{
	int err;

	*ret = (struct process_info){ .pid = pid };
	err = pid > 0 ? read_status(ret) : -ESRCH;
	if (!err)
		err = read_task_stat(ret->tgid, ret->tgid, st);
	if (err)
		return err;
	memcpy(ret->comm, st->comm, sizeof(ret->comm));
	ret->state = st->state;
	ret->is_kernel_thread = st->flags & TASK_FLAG_KTHREAD;
	ret->is_zombie = is_dead(st->state);
	ret->start_time_ticks = st->start_time_ticks;
	ret->thread_cnt = st->thread_cnt;
	return 0;
}

int process_image_here(pid_t pid, struct process_info *ret)
{
	struct process_info info;
	struct task_stat st;
	int err = read_main_thread(pid, &info, &st);

	if (err)
		return err;
	info.live_tid = info.tgid;
	if (info.is_zombie) {
		info.live_tid = 0;
		each_thread(&info, pick_live_thread);
		info.is_main_thread_gone = info.live_tid != 0;
		info.is_zombie = !info.is_main_thread_gone;
	}
	if (!info.is_zombie && !info.is_kernel_thread) {
		/* a main thread that has ended shows no memory any more */
		if (info.live_tid != info.tgid)
			err = read_task_stat(info.tgid, info.live_tid, &st);
		if (!err)
			info.rss_bytes = st.rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
		read_exe_path(&info, info.live_tid);
		read_called(&info);
	}
	*ret = info;
	return 0;
}

int process_info_here(pid_t pid, struct process_info *ret)
{
	struct process_info info;
	char buf[SMALL_FILE_BYTES];
	int err = process_image_here(pid, &info);

	if (err)
		return err;
	if (!info.is_zombie && !info.is_kernel_thread) {
		read_class(&info);
		(void)process_address_limit(info.live_tid, &info.address_limit_bytes);
		read_seccomp(&info);
	}
	if (!read_proc(info.tgid, "cgroup", buf))
		container_id_from_cgroup(buf, info.container_id);
	*ret = info;
	return 0;
}

int process_glance_here(pid_t pid, struct process_info *ret)
{
	struct process_info info;
	struct task_stat st;
	int err = read_main_thread(pid, &info, &st);

	if (err)
		return err;
	info.rss_bytes = st.rss_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	if (!info.is_kernel_thread)
		read_exe_path(&info, pid);
	*ret = info;
	return 0;
}

/* The mounts of a process are many: they are read only where they can tell more, in another mount namespace. */
void process_container_id(pid_t pid, const char *cgroup, char id[static CONTAINER_ID_BYTES])
{
	char own[NAMESPACE_BYTES], its[NAMESPACE_BYTES], *mountinfo;

	container_id_from_cgroup(cgroup, id);
	if (id[0])
		return;
	proc_read_link(0, "ns/mnt", own, sizeof(own));
	proc_read_link(pid, "ns/mnt", its, sizeof(its));
	if (!strcmp(own, its) || proc_text_read(pid, "mountinfo", &mountinfo))
		return;
	container_id_from_mountinfo(mountinfo, id);
	free(mountinfo);
}

int process_list_read(struct process_list *ret)
{
	struct process_list list = { 0 };
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && !*end)
			err = vec_push(&list.pids, (pid_t)pid);
	}
	closedir(dir);
	if (err)
		process_list_release(&list);
	else
		*ret = list;
	return err;
}

void process_list_release(struct process_list *l)
{
	vec_release(&l->pids);
}

int process_root_here(pid_t tid)
{
	struct stat own, its;
	char root[64];

	snprintf(root, sizeof(root), "/proc/%d/root", tid);
	if (stat("/", &own) || stat(root, &its))
		return -errno;
	return own.st_dev == its.st_dev && own.st_ino == its.st_ino ? 0 : -EXDEV;
}

int process_read_pss(struct process_info *info)
{
	char buf[SMALL_FILE_BYTES];
	const char *value;
	int err;

	err = read_proc(info->live_tid, "smaps_rollup", buf);
	if (err)
		return err;
	value = status_value(buf, "Pss");
	if (!value)
		return -ENODATA;
	info->pss_bytes = strtoull(value, NULL, 10) * 1024;
	/* the resident size in stat lags behind by up to some pages per CPU; Pss is counted exactly */
	if (info->rss_bytes < info->pss_bytes)
		info->rss_bytes = info->pss_bytes;
	return 0;
}

static int read_mem_file(pid_t tid, uint64_t addr, void *buf, size_t bytes)
{
	int fd = proc_open(tid, O_RDONLY, "mem"), err = 0;
	ssize_t n;

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	n = pread(fd, buf, bytes, (off_t)addr);
	if (n < 0)
		err = errno == EIO ? -EFAULT : -errno;
	else if ((size_t)n != bytes)
		err = -EFAULT;
	close(fd);
	return err;
}

#define PAGE 4096
#define ASKED_PAGES 16
/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_FILE (1ULL << 61)
#define PAGEMAP_PRESENT (1ULL << 63)

/* Is all of it there, and of no file? false also if it is not known, or too long to ask. */
static bool is_anonymous(pid_t tid, uint64_t addr, size_t bytes)
{
	uint64_t entries[ASKED_PAGES], first = addr / PAGE;
	size_t cnt = bytes ? (addr + bytes - 1) / PAGE - first + 1 : 0;
	bool is = cnt && cnt <= ASKED_PAGES;
	int fd = is ? proc_open(tid, O_RDONLY, "pagemap") : -1;

	is = fd >= 0 && pread(fd, entries, cnt * 8, (off_t)(first * 8)) == (ssize_t)(cnt * 8);
	for (size_t i = 0; is && i < cnt; i++)
		is = (entries[i] & (PAGEMAP_PRESENT | PAGEMAP_FILE)) == PAGEMAP_PRESENT;
	if (fd >= 0)
		close(fd);
	return is;
}

/*
 * process_vm_readv() takes pages like a writer: since Linux 5.19 the process gets a copy of each anonymous one that it shares
 * with a forked process. So these are read from its mem file; but not pages of files, for which that would wait with the
 * lock of the process's memory. The mem file, which has the same permissions, is also for where the call is missing or
 * forbidden (a kernel without CROSS_MEMORY_ATTACH, a seccomp filter of a container around us).
 */
int process_memory_here(pid_t tid, uint64_t addr, void *buf, size_t bytes)
{
	struct iovec local = { .iov_base = buf, .iov_len = bytes };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = bytes };
	ssize_t n;

	if (is_anonymous(tid, addr, bytes))
		return read_mem_file(tid, addr, buf, bytes);
	n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		return read_mem_file(tid, addr, buf, bytes);
	if (n < 0)
		return -errno;
	return (size_t)n == bytes ? 0 : -EFAULT;
}
