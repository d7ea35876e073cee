/* SPDX-License-Identifier: MIT */
/* record_priv.h - what record.c is made of: the preview of a tap. */
#ifndef HT_CMD_RECORD_PRIV_H
#define HT_CMD_RECORD_PRIV_H

#include <stdio.h>
#include <sys/types.h>

/* tap_preview.c: `heaptap record --tap --dry-run`: what a tap would change in a process; nothing is touched. */

/* 0: nothing that can be seen from outside speaks against it. Else why it would be refused was printed too. */
int tap_preview(pid_t pid, FILE *out);

#endif
