/* SPDX-License-Identifier: MIT */
/* explain/type_files.h - struct type_files of a process: one file is open at a time. */
#ifndef HT_EXPLAIN_TYPE_FILES_H
#define HT_EXPLAIN_TYPE_FILES_H

#include <sys/types.h>

#include "explain/types.h"

struct open_file;

/* tid: any live thread of the process. A file whose file system may wait for ever (FUSE, NFS) is not opened. */
int type_files_open(pid_t tid, struct open_file **ret_open, struct type_files *ret);
void type_files_close(struct open_file *f);

#endif
