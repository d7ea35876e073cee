/* SPDX-License-Identifier: MIT */
/* reader_priv.h - the part of reader.c that runs in the reader itself, and calls of it for proc/. */
#ifndef HT_PROC_READER_PRIV_H
#define HT_PROC_READER_PRIV_H

#include "base/std.h"
#include "proc/facts.h"
#include "proc/reader.h"

/* reader_process.c: the reader's loop (reader.h): answers until main is gone. */

/* In the forked child; does not return. */
_Noreturn void reader_process_run(int fd, pid_t parent, reader_job_fn job);

/*
 * Messages between main and its reader, on a SOCK_SEQPACKET pair.
 *
 * One request, one answer, in turn. A request is its head, then a path or arguments; a job's request may bring
 * a descriptor. An answer is its head, then its bytes when there are few. More bytes are in a file in memory,
 * whose descriptor comes with the answer. An opened file comes as a descriptor, too.
 */

#define READER_INLINE_BYTES (48 << 10)
#define READER_BYTES_CAP (256U << 20) /* of an answer */

enum reader_op {
	READ_INFO,
	READ_IMAGE,
	READ_GLANCE,
	READ_MAPS,
	READ_TEXT, /* the process's file of that name */
	READ_MEMORY,
	READ_ROOT, /* is the process's root ours? */
	OPEN_MAP,
	OPEN_JIT_MAP,
	RUN_JOB,
};

struct reader_request {
	uint32_t op;
	int32_t pid, tid;
	uint32_t text_bytes; /* that follow: a path with its NUL, or arguments */
	union {
		struct {
			uint64_t addr, bytes;
		} memory;
		struct {
			uint64_t start_addr, end_addr, off, ino;
			uint32_t dev, is_deleted;
			uint32_t refuses_foreign; /* set by reader_call(), for a caller that serves others */
		} map;
		struct {
			uint64_t start_time_ticks;
			uint32_t uid;
			int32_t ns_pid;
		} jit;
		struct {
			uint32_t uid, kind, wall_s;
		} job;
	};
};

struct reader_answer {
	int32_t err;
	uint32_t is_inline; /* the bytes are in the message, else in the file that comes with it */
	uint64_t bytes;
	struct file_facts facts; /* OPEN_MAP */
};

/* A call of the reader. */
struct reader_call {
	struct reader_request head;
	const void *text; /* head.text_bytes */
	int fd; /* sent with the request; -1: none */
	/* the answer */
	struct reader_answer answer;
	uint8_t *bytes; /* answer.bytes bytes, and a NUL behind them; to be freed */
	int ret_fd;
};

/*
 * pid: the process that can delay the reader; 0: none. Returns the answer's error; -ETIMEDOUT: the reader does not
 * answer, or did not lately. On success the caller releases c.
 */
int reader_call(struct reader *r, struct reader_call *c, pid_t pid);
void reader_call_release(struct reader_call *c);
/* Is there a reader, and is it of this process? A forked child has its parent's, which it must not use. */
bool reader_is_ours(const struct reader *r);

#endif
