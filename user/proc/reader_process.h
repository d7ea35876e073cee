/* SPDX-License-Identifier: MIT */
/* reader_process.h - inside of the reader (reader.h): it answers until main is gone. */
#ifndef HT_PROC_READER_PROCESS_H
#define HT_PROC_READER_PROCESS_H

#include <sys/types.h>

#include "proc/reader_job.h"

/* In the forked child; does not return. */
_Noreturn void reader_process_run(int fd, pid_t parent, reader_job_fn job);

#endif
