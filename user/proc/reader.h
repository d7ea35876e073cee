/* SPDX-License-Identifier: MIT */
/*
 * reader.h - a process that opens and reads for main what belongs to others.
 *
 * Who reads another process's memory, its address space or its files can be made to wait by it: for a page
 * or a file of FUSE that is never answered, for a lock. Who waits so is not even ended by kill -9. So main
 * does not wait. A small process reads for it (proc/process.h, proc/process_memory.h and the like ask
 * it when there is one). What it does not answer in time is given up: it is killed and replaced, and
 * the process that it read is left alone for a while, each time for longer.
 *
 * It is a fork of main, called heaptap-reader, with no descriptor but its socket and no capability but
 * those that reading needs. It ends with main. It can also run jobs: children of its own that read one thing
 * and say it into a pipe, while main does something else.
 *
 * For main's first thread. In a forked child of main, and where none was started, all is read directly.
 */
#ifndef HT_PROC_READER_H
#define HT_PROC_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proc/reader_job.h"

struct file_facts;
struct process_info;
struct proc_map;

/*
 * How long main waits for an answer. Who serves others, and waits for less than the patient one, gets no files of a
 * file system that another user serves: they could stop it, and the probes of others, whenever they are touched.
 */
#define READER_PATIENT_MS 5000 /* who has nothing else to do */
#define READER_PROMPT_MS 200 /* who serves others */

/* job: NULL: none are run. Before there are threads and much memory. */
int reader_start(uint32_t wait_ms, reader_job_fn job);
void reader_end(void);
bool reader_is_on(void);
/* Readers that did not answer, so far. */
uint64_t reader_given_up_cnt(void);

/*
 * uid: the user whose thing it is. fd: stays the caller's. *ret_fd: where it says what it has to say; its end is
 * the end of the job, which is ended after wall_s seconds if it can be. -EBUSY: too many run.
 */
int reader_run_job(uint32_t uid, uint32_t kind, int fd, const void *args, size_t args_bytes,
		   uint32_t wall_s, int *ret_fd);

/*
 * For proc/: what is read, by whom it is asked. All return what the function that reads directly returns, and
 * -ETIMEDOUT: it does not answer, or did not lately.
 */
int reader_info(pid_t pid, struct process_info *ret);
int reader_maps_text(pid_t pid, pid_t tid, char **ret);
/* /proc/PID/name, as proc_text_read_all() */
int reader_text(pid_t pid, const char *name, char **ret, size_t *ret_bytes);
int reader_memory(pid_t tid, uint64_t addr, void *buf, size_t bytes);
int reader_open_map(pid_t pid, pid_t tid, const struct proc_map *map, struct file_facts *ret);
int reader_open_jit_map(const char *root, const struct process_info *info);
int reader_has_own_root(pid_t tid);

#endif
