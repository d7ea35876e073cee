/* SPDX-License-Identifier: MIT */
/* record_priv.h - the parts of record.c: the preview of a tap. */
#ifndef HT_CMD_RECORD_PRIV_H
#define HT_CMD_RECORD_PRIV_H

#include <stdio.h>
#include <sys/types.h>

/* tap_preview.c: `heaptap record --tap --dry-run`: shows what a tap would change in a process; changes nothing. */

/* 0: nothing visible from outside forbids it. Else it also printed why the tap would be refused. */
int tap_preview(pid_t pid, FILE *out);

#endif
