/* SPDX-License-Identifier: MIT */
/* tracer.h - the guardian's thread that holds programs at an exec: see exec_hold.h for the other end. */
#ifndef HT_GUARDIAN_TRACER_H
#define HT_GUARDIAN_TRACER_H

/*
 * fd: the socket, from here on the thread's; what is said on it is in wire.h. The thread ends with the
 * other end of the socket or with main, whose pidfd main_fd is (-1: not known), and the kernel then lets go of
 * all that is traced and held.
 */
int tracer_start(int fd, int main_fd);

#endif
