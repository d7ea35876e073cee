/* SPDX-License-Identifier: MIT */
/* null_fd.h - what stands for descriptors 0 to 2 where nobody is to be read from or written to. */
#ifndef HT_BASE_NULL_FD_H
#define HT_BASE_NULL_FD_H

/* An fd (O_CLOEXEC) that is always at its end; what is written to it comes nowhere. Or a negative errno. */
int null_fd_open(void);

#endif
