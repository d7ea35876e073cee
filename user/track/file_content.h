/* SPDX-License-Identifier: MIT */
/*
 * file_content.h - what is read of one file that a tracked process maps: all of it, and nothing of the
 * process or the kernel.
 *
 * The file is somebody else's. Reading it costs no more than elf_budget.h says of it and of its debug file;
 * a file that would cost more is taken as far as that got.
 */
#ifndef HT_TRACK_FILE_CONTENT_H
#define HT_TRACK_FILE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "elf/elf_file.h"
#include "track/file.h"

struct alloc_file;
struct alloc_options;
struct file_sampler;
struct file_tags;
struct probe_rules;
struct unwind_table;

struct file_source {
	const char *path; /* as the target sees it */
	const char *root; /* where its debug file is looked for: "/proc/PID/root", or "" */
	bool is_vdso; /* nothing of it is probed */
	const struct probe_rules *rules; /* what will be probed; NULL: no table is wanted */
};

struct file_content {
	char build_id_hex[2 * BUILD_ID_BYTES_CAP + 1];
	VEC(struct track_segment) exec; /* executable segments */
	struct alloc_file *alloc; /* NULL: defines no known allocator */
	struct file_tags *tags; /* NULL: says nothing of what its memory is for */
	struct file_sampler *sampler; /* NULL: brings none */
	struct track_loader loader;
	struct unwind_table *table; /* NULL: says nothing of its frames, or was not wanted */
	bool is_partly_read; /* too costly */
	uint64_t steps; /* that it took, with its debug file (elf_budget.h) */
};

/*
 * The separate debug file that may be needed to read ef; NULL: it needs none, or there is none. What was linked into a
 * stripped program has its names there only.
 */
struct elf_file *file_content_open_debug(struct elf_file *ef, const struct file_source *source);
/* debug: or NULL. -ENOMEM is the only error. *ret is released by the caller in any case. */
int file_content_read(struct elf_file *ef, struct elf_file *debug, const struct file_source *source,
		      const struct alloc_options *opts, struct file_content *ret);
void file_content_release(struct file_content *c);

#endif
