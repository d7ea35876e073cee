/* SPDX-License-Identifier: MIT */
/* container.h - which container a process runs in, from its cgroup paths. */
#ifndef HT_PROC_CONTAINER_H
#define HT_PROC_CONTAINER_H

#include <stdbool.h>

struct err;

#define CONTAINER_ID_BYTES 65

/*
 * text: a /proc/PID/cgroup file (v1 or v2). Writes the id of the innermost container, or "" when
 * there is none, into buf.
 */
void container_id_from_cgroup(const char *text, char buf[static CONTAINER_ID_BYTES]);

/*
 * text: a /proc/PID/mountinfo file, for processes whose cgroup paths tell nothing because they are
 * seen from inside a cgroup namespace. The id that the runtime's own files which are mounted into
 * the container lie under; of containerd and cri-o it is that of the pod's sandbox.
 */
void container_id_from_mountinfo(const char *text, char buf[static CONTAINER_ID_BYTES]);

/* Does the id begin with what a user gave, "0123abcd" or "docker://0123abcd"? */
bool container_id_matches(const char *id, const char *given);
/* 0, or -EINVAL with a sentence in why: it can be no id. */
int container_check_given(const char *given, struct err *why);

#endif
