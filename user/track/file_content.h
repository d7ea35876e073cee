/* SPDX-License-Identifier: MIT */
/*
 * file_content.h - everything that is read from one file that a tracked process maps; nothing of
 * the process or the kernel.
 *
 * The file is untrusted. Reading it and its debug file costs no more than elf_budget.h allows; a
 * costlier file is used as far as it was read.
 */
#ifndef HT_TRACK_FILE_CONTENT_H
#define HT_TRACK_FILE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include "kernel/attach.h"
#include "proc/tag_sources.h"
#include "track/file.h"

struct alloc_file;
struct alloc_options;
struct file_sampler;
struct unwind_table;

/*
 * The tags of a file's program, as far as the file tells: where its threads keep them, and the probes of
 * heaptap/scope.h: one hit when the descriptor is ready, one when a task has exited.
 */
struct file_tags {
	struct tag_file where;
	VEC(struct attach_site) readies, task_exits; /* probes of heaptap/scope.h */
	bool is_logged; /* the log already has what is wrong with them */
};

struct file_source {
	const char *path; /* as the target sees it */
	const char *root; /* where to look for its debug file: "/proc/PID/root", or "" */
	bool is_vdso; /* it is not probed */
	bool wants_table; /* an unwind table, for a file that will be probed */
	bool has_session; /* see alloc_site_is_left_alone() */
};

struct file_content {
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	VEC(struct track_segment) exec; /* executable segments */
	struct alloc_file *alloc; /* NULL: defines no known allocator */
	struct alloc_unseen unseen;
	bool is_go;
	struct file_tags *tags; /* NULL: the file has no tags */
	struct file_sampler *sampler; /* NULL: the file has no sampler of its own */
	struct track_loader loader;
	struct unwind_table *table; /* NULL: the file has no unwind data, or no table was wanted */
	bool is_partly_read; /* reading all of it was too costly */
	uint64_t steps; /* cost of reading it and its debug file (elf_budget.h) */
};

/*
 * Open the separate debug file, if ef needs one; NULL: not needed, or none found. The names of what
 * was linked into a stripped program are only there.
 */
struct elf_file *file_content_open_debug(struct elf_file *ef, const struct file_source *source);
/* debug may be NULL. The only error is -ENOMEM. The caller releases *ret in any case. */
int file_content_read(struct elf_file *ef, struct elf_file *debug, const struct file_source *source,
		      const struct alloc_options *opts, struct file_content *ret);
/* For a file that is not to be probed. An allocator in it becomes one that is not seen. */
void file_content_drop_probes(struct file_content *c);
void file_content_release(struct file_content *c);
void file_tags_free(struct file_tags *tags);

#endif
