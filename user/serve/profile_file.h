/* SPDX-License-Identifier: MIT */
/* profile_file.h - writes the profile of some or all followed processes from a snapshot into a file. */
#ifndef HT_SERVE_PROFILE_FILE_H
#define HT_SERVE_PROFILE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/profile_source.h"

struct governor_record;
struct profile;
struct snapshot;
struct stack_moments;

enum profile_form {
	PROFILE_PPROF,
	PROFILE_TEXT, /* as report_heap.c writes it, with names */
	/* The same of one process, which must run, with its addresses: see process_text.h... */
	PROFILE_ADDRESSES,
	PROFILE_GROWTH, /* ... of what was allocated, whether it is still in use or not */
	PROFILE_PICTURES, /* a page of viewer.html */
	PROFILE_DIFF, /* from or to a saved profile: a page of viewer.html, text or JSON */
	/* From the past (stack_profile.h), without a snapshot: */
	PROFILE_MOMENTS, /* the same of two moments */
	PROFILE_STACKS, /* stacks that grow, as JSON */
	PROFILE_STACKS_PAGE, /* the same, in the page of a process */
};

struct profile_request {
	pid_t pid; /* 0: all, with labels pid and comm */
	enum profile_form form;
	/* Only this image of pid, whether it has ended or not. */
	bool is_image;
	uint32_t generation;
	/* The cost of its probes; NULL: the present one. */
	const struct governor_record *budget;
	bool shows_allocs; /* opens on alloc_space; false: on inuse_space */
	/* Not NULL: alloc_* counts only what was added since base, which was taken duration_ns before. */
	const struct snapshot *base;
	uint64_t duration_ns;
	bool wants_growth; /* adds what the process held before; for one process, without base */
	int64_t epoch_ns; /* of the snapshot; monotonic_ns: the same moment on CLOCK_MONOTONIC */
	uint64_t monotonic_ns;
	const char *reason; /* why it is saved; NULL: a request asked for it */
	bool is_over; /* the process, or the image, has ended */
	bool has_saved; /* saved_fd: what PROFILE_PICTURES shows, or PROFILE_DIFF begins at */
	int saved_fd;
	const char *saved_name; /* names its moment */
	/* For PROFILE_MOMENTS; for PROFILE_DIFF a side that is neither saved nor now, and the names of both. */
	const struct stack_moments *moments;
	bool has_after; /* after_fd: the saved profile that PROFILE_DIFF ends at; false: a moment, or now */
	int after_fd;
	bool is_json, is_plain; /* a difference as JSON, or text */
	bool of_day, by_scope; /* for PROFILE_STACKS; false: of the last hour, by stack */
	const char *page; /* for PROFILE_STACKS_PAGE: see http/process_page.h */
	const char *const *notes; /* that come first */
	size_t note_cnt;
};

/* Slow: reads symbols. Run it in a child process. -ESRCH: the one process that is asked for has ended, and the form
 * needs its addresses. -ENODATA: the form has no notes and shows what is in use, which is unknown. -EDOM: the two
 * profiles of PROFILE_DIFF cannot be compared. -ENOENT: the past that is asked for is not kept. -EAGAIN: a page is whole,
 * but there was no time for some names. */
int profile_file_write(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_request *request, int fd);
/* Is this form made without a snapshot? */
bool profile_file_is_past(enum profile_form form);
/* The same as a profile in memory; free it with profile_free(). */
int profile_file_build(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_request *request, struct profile **ret);

#endif
