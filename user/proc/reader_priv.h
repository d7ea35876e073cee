/* SPDX-License-Identifier: MIT */
/* reader_priv.h - what reader.c is made of: the reader's own side. */
#ifndef HT_PROC_READER_PRIV_H
#define HT_PROC_READER_PRIV_H

#include <sys/types.h>

#include "proc/reader_job.h"

/* reader_process.c: inside of the reader (reader.h): it answers until main is gone. */

/* In the forked child; does not return. */
_Noreturn void reader_process_run(int fd, pid_t parent, reader_job_fn job);

#endif
