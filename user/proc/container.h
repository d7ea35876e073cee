/* SPDX-License-Identifier: MIT */
/* container.h - which container a process runs in, from its cgroup paths. */
#ifndef HT_PROC_CONTAINER_H
#define HT_PROC_CONTAINER_H

#include <stdbool.h>

struct err;

#define CONTAINER_ID_BYTES 65

/*
 * text: a /proc/PID/cgroup file (v1 or v2). Write the id of the innermost container into buf, or "" when there
 * is none.
 */
void container_id_from_cgroup(const char *text, char buf[static CONTAINER_ID_BYTES]);

/*
 * text: a /proc/PID/mountinfo file, for processes whose cgroup paths say nothing because they are seen from
 * inside a cgroup namespace. Finds the id in the paths of the runtime's own files that are mounted into the
 * container; with containerd and cri-o it is the id of the pod's sandbox.
 */
void container_id_from_mountinfo(const char *text, char buf[static CONTAINER_ID_BYTES]);

/* Does the id begin with the user's text, "0123abcd" or "docker://0123abcd"? */
bool container_id_matches(const char *id, const char *given);
/* 0, or -EINVAL with a sentence in why: given cannot be an id. */
int container_check_given(const char *given, struct err *why);

#endif
