/* SPDX-License-Identifier: MIT */
/* holder.h - the guardian's own side: what guardian_start() forks runs this, and nothing else. */
#ifndef HT_GUARDIAN_HOLDER_H
#define HT_GUARDIAN_HOLDER_H

/* fd: the socket. Ends with the process. */
void __attribute__((noreturn)) holder_run(int fd);

#endif
