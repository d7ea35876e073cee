/* SPDX-License-Identifier: MIT */
/*
 * files.h - the files that tracked processes map: each is opened, read and compiled once.
 *
 * A file is known by device and inode as the kernel's mappings name it. What is kept: an open
 * descriptor (the symbols are wanted long after the process is gone, or the file replaced), the
 * build id, its executable segments, the allocator entry points that it defines. Its unwind table
 * goes to the engine at once and is not kept here.
 *
 * A file that is written anew in place while nobody maps it (cp over a program that has ended) is
 * another one: where the probes of the old one were may be the middle of an instruction now.
 *
 * A file that nobody maps and no stack names is forgotten, when somebody asks for it
 * (track_files_reclaim). Pointers to files are good until then.
 */
#ifndef HT_TRACK_FILES_H
#define HT_TRACK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heaptap/abi.h"
#include "proc/process.h"
#include "track/file.h"

struct alloc_options;
struct engine;
struct jit_code;
struct proc_map;
struct reclaim_files;

struct track_files;

/*
 * What reading the files of one process has cost. A process may map any number of files, each of them
 * as costly as its size allows: together they may cost READ_BASE_STEPS, a step for each byte on disk, and
 * READ_STEPS_PER_S as time goes on. What is over that is not read for this process.
 */
struct read_cost {
	uint64_t steps, steps_cap;
	uint64_t since_ns; /* that time is counted from; 0: nothing was read yet */
	uint32_t own_files; /* that nobody else maps */
};
#define READ_BASE_STEPS (64ULL << 20)
#define READ_STEPS_PER_S (2ULL << 20) /* a hundredth of a processor */
#define READ_STEPS_PER_FILE 10000 /* to open a file: 50 to 100 us */
/* A quarter of all that BPF has room for: the largest programs have some hundred. */
#define OWN_FILES_CAP (HT_FILES_CAP / 4)

/* For whom a file is read. */
struct file_user {
	pid_t pid, tid; /* tid: a live thread */
	uint32_t uid;
	struct read_cost *cost; /* NULL: no limit */
};

/* engine may be NULL: then nothing is handed to BPF (doctor). */
int track_files_new(struct engine *engine, const struct alloc_options *opts,
		    struct track_files **ret);
void track_files_free(struct track_files *files);

/*
 * The file of a mapping. One that is new is read now, or by a job when there is a reader. NULL in *ret with 0: the
 * mapping has no file that can be read as ELF (remembered, so it is tried once). Negative errno: out of
 * resources; -EINPROGRESS: it is being read, ask again when track_files_work() says so; -EFBIG: the
 * process has had its share; -EAGAIN, -ETIMEDOUT: somebody has the file for himself, or does not answer: later;
 * -ECANCELED: reading it did not come to an end, ask again when track_files_may_retry() says so.
 */
int track_files_get(struct track_files *files, const struct file_user *user,
		    const struct proc_map *map, struct track_file **ret);
/* Takes in what jobs have read, waits so long for the first. true: files are known that were not. *ret_err: one could
 * not be entered. */
bool track_files_work(struct track_files *files, int wait_ms, int *ret_err);
/* Like track_files_get() for a file by path, before any process maps it. */
int track_files_get_path(struct track_files *files, const char *path, struct track_file **ret);
/* true, once: a file that could not be read may be tried again now. */
bool track_files_may_retry(struct track_files *files);
/* How many there are whose reading did not come to an end... */
size_t track_files_unread_cnt(const struct track_files *files);
/* ... and how many there were: what was allocated by them until they were read, nobody saw. */
uint64_t track_files_given_up_cnt(const struct track_files *files);
/* Without making it: NULL when it is not known, or is no ELF file. */
const struct track_file *track_files_find(const struct track_files *files,
					  const struct proc_map *map);
/* Is the mapping known to be of something that is no ELF file? */
bool track_files_is_other(const struct track_files *files, const struct proc_map *map);
/*
 * Something that frames in code made at run time can name: it stands for the code that one process
 * made, in one period (track/jit_code.h), and its vaddrs are addresses.
 */
int track_files_add_jit(struct track_files *files, struct jit_code *jit, uint32_t period,
			struct track_file **ret);
/* The code that the process has at addr now, which it made at run time; NULL: none is known. */
const struct track_file *track_files_jit_at(const struct track_files *files, pid_t pid,
					    uint64_t addr);
/* By the engine's id; NULL: no such. */
const struct track_file *track_files_by_id(const struct track_files *files, uint32_t id);
/* How many were too costly to be read as a whole (struct track_file). */
uint64_t track_files_partly_read_cnt(const struct track_files *files);
size_t track_files_cnt(const struct track_files *files);
/* 0 <= i < cnt; NULL for mappings that turned out to be no ELF files. */
const struct track_file *track_files_at(const struct track_files *files, size_t i);

/* A process maps the file. */
void track_file_hold(struct track_file *file);
/* It does so no longer. true: it was the last. */
bool track_file_put(struct track_file *file);

/* Who has probes in files: they are to come out, because the file is over or is another one now. */
typedef void (*track_file_fn)(void *ctx, struct track_file *file);
void track_files_watch(struct track_files *files, track_file_fn on_over, void *ctx);

/*
 * At the end of a cycle of reclaiming: a file that nobody maps and that is not in `used` can no
 * longer be found by BPF, and when that is so for a second time it is forgotten. true: there are
 * files whose second time is to come.
 */
bool track_files_reclaim(struct track_files *files, const struct reclaim_files *used);

/* bias of a mapping of this file: addr - bias = vaddr. -ENOENT: no executable segment is there. */
int track_file_bias(const struct track_file *file, uint64_t start_addr, uint64_t off,
		    uint64_t *ret_bias);

#endif
