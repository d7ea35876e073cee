/* SPDX-License-Identifier: MIT */
/* reader_priv.h - the part of reader.c that runs in the reader itself. */
#ifndef HT_PROC_READER_PRIV_H
#define HT_PROC_READER_PRIV_H

#include <sys/types.h>

#include "proc/reader_job.h"

/* reader_process.c: the reader's loop (reader.h): answers until main is gone. */

/* In the forked child; does not return. */
_Noreturn void reader_process_run(int fd, pid_t parent, reader_job_fn job);

#endif
