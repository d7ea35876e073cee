/* SPDX-License-Identifier: MIT */
/* container.h - which container a process runs in, from its cgroup paths. */
#ifndef HT_TARGET_CONTAINER_H
#define HT_TARGET_CONTAINER_H

#include <stddef.h>

#define CONTAINER_ID_BYTES 65

/*
 * text: a /proc/PID/cgroup file (v1 or v2). Writes the id of the innermost container, or "" when
 * there is none, into buf.
 */
void container_id_from_cgroup(const char *text, char buf[static CONTAINER_ID_BYTES]);

#endif
