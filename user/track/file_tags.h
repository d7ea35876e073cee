/* SPDX-License-Identifier: MIT */
/*
 * file_tags.h - the tags of a file's program, as far as the file tells: where its threads keep
 * them, and the probes of heaptap/scope.h: one hit when the descriptor is ready, one when a task
 * has exited.
 */
#ifndef HT_TRACK_FILE_TAGS_H
#define HT_TRACK_FILE_TAGS_H

#include <stdbool.h>

#include "base/vec.h"
#include "kernel/attach.h"
#include "proc/tag_sources.h"

struct elf_file;

struct file_tags {
	struct tag_file where;
	VEC(struct attach_site) readies, task_exits; /* probes of heaptap/scope.h */
	bool is_logged; /* the log already has what is wrong with them */
};

/* NULL in *ret: the file has none. -ENOMEM is the only error. */
int file_tags_scan(struct elf_file *ef, struct file_tags **ret);
void file_tags_free(struct file_tags *tags);

#endif
