/* SPDX-License-Identifier: MIT */
/*
 * files.h - the files that tracked processes map: each is opened, read and compiled once.
 *
 * A file is identified by device and inode, as the kernel's mappings name it. Kept of it are an
 * open descriptor (symbols are needed long after the process is gone or the file was replaced), the
 * build id, the executable segments and the allocator's entry points. Its unwind table goes to the
 * engine at once and is not kept here.
 *
 * A file that is rewritten in place while nobody maps it (cp over a program that has ended) counts
 * as a new file: a place where the old one was probed may now be the middle of an instruction.
 *
 * A file that nobody maps and no stack names is forgotten on request (track_files_reclaim).
 * Pointers to files are valid until then.
 */
#ifndef HT_TRACK_FILES_H
#define HT_TRACK_FILES_H

#include "base/std.h"
#include "heaptap/abi.h"
#include "proc/process.h"
#include "track/file.h"

struct engine;
struct jit_code;
struct reclaim_files;
struct track_policy;

struct track_files;

/*
 * Cost of reading the files of one process. A process may map any number of files, each as costly
 * as its size allows. Together they may cost READ_BASE_STEPS, plus one step per byte on disk, plus
 * READ_STEPS_PER_S over time. Files beyond that are not read for this process.
 */
struct read_cost {
	uint64_t steps, steps_cap;
	uint64_t since_ns; /* start of the time that counts; 0: nothing was read yet */
	uint32_t own_files; /* files that no other process maps */
};
#define READ_BASE_STEPS (64ULL << 20)
#define READ_STEPS_PER_S (2ULL << 20) /* a hundredth of a processor */
#define READ_STEPS_PER_FILE 10000 /* cost of opening a file: 50 to 100 us */
/* A quarter of BPF's capacity. The largest programs have some hundred files. */
#define OWN_FILES_CAP (HT_FILES_CAP / 4)

/* The process for which a file is read. */
struct file_user {
	pid_t pid, tid; /* tid: a live thread */
	uint32_t uid;
	struct read_cost *cost; /* NULL: no limit */
};

/* engine may be NULL: then nothing is handed to BPF (doctor). */
int track_files_new(struct engine *engine, const struct track_policy *policy,
		    struct track_files **ret);
void track_files_free(struct track_files *files);

/*
 * Get the file of a mapping. A new file is read now, or by a job when there is a reader. 0 with
 * NULL in *ret: the mapping has no file that can be read as ELF (remembered, so it is tried once).
 * Negative errno: out of resources; -EINPROGRESS: it is being read, ask again when
 * track_files_work() says so; -EFBIG: the process has used up its read_cost; -EAGAIN, -ETIMEDOUT:
 * somebody has exclusive use of the file, or does not answer: ask later; -ECANCELED: reading it did
 * not finish, ask again when track_files_may_retry() says so; -EACCES: it may not be opened;
 * -ENOENT: it is gone, and perhaps the mapping or the process with it.
 */
int track_files_get(struct track_files *files, const struct file_user *user,
		    const struct proc_map *map, struct track_file **ret);
/* Take in what jobs have read; wait up to wait_ms for the first. true: new files are known.
 * *ret_err: a file could not be entered. */
bool track_files_work(struct track_files *files, int wait_ms, int *ret_err);
/* Like track_files_get(), but by path, before any process maps the file. */
int track_files_get_path(struct track_files *files, const char *path, struct track_file **ret);
/* true, once: a file whose reading did not finish may be retried now. */
bool track_files_may_retry(struct track_files *files);
/* Numbers of files. */
struct track_files_counts {
	uint64_t unread_cnt; /* whose reading has not finished so far... */
	uint64_t given_up_cnt; /* ... and ever. Nobody saw what they allocated until they were read. */
	uint64_t partly_read_cnt; /* too costly to be read completely (struct track_file) */
};
void track_files_counts(const struct track_files *files, struct track_files_counts *ret);
/* Only look up: NULL when it is not known, or is no ELF file. */
const struct track_file *track_files_find(const struct track_files *files,
					  const struct proc_map *map);
/* The file, if it is known, BPF finds it, and there is nothing in it but code: no allocator, tags or sampler. Else NULL. */
const struct track_file *track_files_find_plain(const struct track_files *files, uint32_t dev,
						uint64_t ino);
/* Is the mapping known not to be of an ELF file? */
bool track_files_is_other(const struct track_files *files, const struct proc_map *map);
/*
 * Add a file that stands for the code that one process made at run time, in one period
 * (track/jit_code.h), so that frames can name it. Its vaddrs are addresses.
 */
int track_files_add_jit(struct track_files *files, struct jit_code *jit, uint32_t period,
			struct track_file **ret);
/* The file for run-time code of the process at addr now; NULL: none is known. */
const struct track_file *track_files_jit_at(const struct track_files *files, pid_t pid,
					    uint64_t addr);
/* By the engine's id; NULL: unknown id. */
const struct track_file *track_files_by_id(const struct track_files *files, uint32_t id);
/* The file with the most calls that were left out for their place although no outer call was found; NULL: none. */
const struct track_file *track_files_most_unproven(const struct track_files *files,
						   uint64_t *ret_cnt);
size_t track_files_cnt(const struct track_files *files);
/* 0 <= i < cnt; NULL for mappings that turned out not to be of ELF files. */
const struct track_file *track_files_at(const struct track_files *files, size_t i);

/* Called to detach the probes of a file that is forgotten or was replaced. */
typedef void (*track_file_fn)(void *ctx, struct track_file *file);
void track_files_watch(struct track_files *files, track_file_fn on_over, void *ctx);

/*
 * Call at the end of a cycle of reclaiming. A file that nobody maps and that is not in `used` is
 * hidden from BPF the first time, and forgotten the second time. true: some files wait for their
 * second time.
 */
bool track_files_reclaim(struct track_files *files, const struct reclaim_files *used);

/* Compute the bias of a mapping of this file: addr - bias = vaddr. -ENOENT: no executable segment there. */
int track_file_bias(const struct track_file *file, uint64_t start_addr, uint64_t off,
		    uint64_t *ret_bias);

#endif
