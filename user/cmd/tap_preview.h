/* SPDX-License-Identifier: MIT */
/* cmd/tap_preview.h - `heaptap record --tap --dry-run`: what a tap would change in a process; nothing is touched. */
#ifndef HT_CMD_TAP_PREVIEW_H
#define HT_CMD_TAP_PREVIEW_H

#include <stdio.h>
#include <sys/types.h>

/* 0: nothing that can be seen from outside speaks against it. Else why it would be refused was printed too. */
int tap_preview(pid_t pid, FILE *out);

#endif
