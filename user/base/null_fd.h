/* SPDX-License-Identifier: MIT */
/* null_fd.h - a replacement for descriptors 0 to 2 when nothing is to be read or written there. */
#ifndef HT_BASE_NULL_FD_H
#define HT_BASE_NULL_FD_H

/* Return an fd (O_CLOEXEC) that is always at its end; what is written to it is lost. Or a negative errno. */
int null_fd_open(void);

#endif
