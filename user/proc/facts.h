/* SPDX-License-Identifier: MIT */
/*
 * facts.h - facts about a process, read from /proc by this process itself.
 *
 * A process can make a reader of its memory, mappings or files wait, for ever if it likes. So functions that
 * end in _here are for the reader (reader.h), and for programs that serve nobody else. Others use process.h.
 */
#ifndef HT_PROC_FACTS_H
#define HT_PROC_FACTS_H

#include "base/std.h"
#include "base/vec.h"

struct err;

#define CONTAINER_ID_BYTES 65

struct process_info {
	pid_t pid; /* as asked for */
	pid_t tgid; /* the process; differs from pid when pid is one of its other threads */
	pid_t ppid; /* parent; 0 = none that is visible from here */
	char comm[16];
	char exe[4096]; /* as the target sees it, " (deleted)" removed */
	char called[16]; /* the name of a link beside exe by which it was executed; "": exe's own */
	char container_id[CONTAINER_ID_BYTES]; /* "" = none */
	char state; /* R S D Z X ... */
	bool is_kernel_thread;
	bool is_zombie; /* all threads gone */
	bool is_main_thread_gone; /* state Z, but other threads live: use live_tid */
	pid_t live_tid; /* a thread whose /proc entries can be read */
	bool is_32bit; /* as far as exe could be read */
	int seccomp; /* 0, 1 strict, 2 filter */
	bool catches_sigsys; /* as who handles its system calls itself has to */
	bool in_pid_namespace; /* its own pid namespace differs from ours */
	pid_t ns_pid; /* its pid there */
	uint32_t uid;
	uint64_t rss_bytes, swap_bytes;
	uint64_t file_bytes; /* pages of files in rss_bytes */
	uint64_t pss_bytes; /* 0 = unknown: see process_read_pss() */
	uint64_t address_limit_bytes; /* RLIMIT_AS; 0 = unlimited or unknown */
	uint64_t start_time_ticks; /* detects a reused pid */
	uint32_t thread_cnt;
};

/* As process_info_read(), process_image_read(), process_glance(), process_has_own_root() and process_memory_read(). */
int process_info_here(pid_t pid, struct process_info *ret);
int process_image_here(pid_t pid, struct process_info *ret);
int process_glance_here(pid_t pid, struct process_info *ret);
int process_root_here(pid_t tid);
int process_memory_here(pid_t tid, uint64_t addr, void *buf, size_t bytes);
/* The container of the process, "" = none. cgroup: its cgroup file. */
void process_container_id(pid_t pid, const char *cgroup, char id[static CONTAINER_ID_BYTES]);
/* All processes, in the order of their pids. */
struct process_list {
	VEC(pid_t) pids;
};
int process_list_read(struct process_list *ret);
void process_list_release(struct process_list *l);
/* Only address_limit_bytes, which an exec or prlimit() may have changed: -ESRCH, -EACCES. */
int process_address_limit(pid_t pid, uint64_t *ret_bytes);
/* Fill pss_bytes and correct rss_bytes. Apart from the above, because the kernel walks the whole address space
 * for it. */
int process_read_pss(struct process_info *info);

/* The name of a tap's memory file begins with TAP_NAME; its path in the maps of the process with TAP_PATH. */
#define TAP_NAME "heaptap-"
#define TAP_PATH "/memfd:" TAP_NAME

struct proc_map {
	uint64_t start_addr, end_addr, off;
	uint64_t ino;
	uint32_t dev; /* kernel encoding: major << 20 | minor */
	bool is_read, is_write, is_exec;
	const char *path; /* "" = anonymous; "[vdso]"...; " (deleted)" removed */
	bool is_deleted;
};
struct proc_maps {
	VEC(struct proc_map) maps; /* sorted by start_addr */
	char *text; /* owns the paths */
};
/* Read the text of the maps file; tid as in proc_maps_read(). */
int proc_maps_text_here(pid_t pid, pid_t tid, char **ret);
/* Parse the mappings of such a text (pure; tests and fuzzing). text is malloc'ed, is modified, and is owned by
 * ret from here on (freed on failure). -EINVAL: not a maps file. */
int proc_maps_parse(char *text, struct proc_maps *ret);
void proc_maps_release(struct proc_maps *m);
const struct proc_map *proc_maps_find(const struct proc_maps *m, uint64_t addr);

/* Facts about an opened file, kept so that its file system need not be asked again. */
struct file_facts {
	uint64_t bytes, disk_bytes;
	int64_t changed_s, changed_ns; /* inode change time */
	/* The file system is served by another user (FUSE): touching the file may wait for ever, also in the
	 * kernel when it puts a probe into it. */
	bool is_foreign;
};
/* tid: a thread that sees the file system mounted; 0: this thread. */
int file_facts_read(int fd, pid_t tid, struct file_facts *ret);

/* As process_open_map(). refuses_foreign: see -EREMOTE there. */
int process_open_map_here(pid_t pid, pid_t tid, const struct proc_map *map, bool refuses_foreign,
			  struct file_facts *ret);
/*
 * Device and inode of an open file, as its mappings show them: fstat() gives another device on btrfs and
 * overlayfs. -errno: the file cannot be mapped.
 */
int process_mapped_inode(int fd, uint32_t *ret_dev, uint64_t *ret_ino);

/*
 * container.c: which container a process runs in, from its cgroup paths.
 */

/*
 * text: a /proc/PID/cgroup file (v1 or v2). Write the id of the innermost container into buf, or "" when there
 * is none.
 */
void container_id_from_cgroup(const char *text, char buf[static CONTAINER_ID_BYTES]);

/*
 * text: a /proc/PID/mountinfo file, for processes whose cgroup paths say nothing because they are seen from
 * inside a cgroup namespace. Finds the id in the paths of the runtime's own files that are mounted into the
 * container; with containerd and cri-o it is the id of the pod's sandbox.
 */
void container_id_from_mountinfo(const char *text, char buf[static CONTAINER_ID_BYTES]);

/* Does the id begin with the user's text, "0123abcd" or "docker://0123abcd"? */
bool container_id_matches(const char *id, const char *given);
/* 0, or -EINVAL with a sentence in why: given cannot be an id. */
int container_check_given(const char *given, struct err *why);

#endif
