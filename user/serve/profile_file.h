/* SPDX-License-Identifier: MIT */
/*
 * profile_file.h - a snapshot of all followed processes -> a file with the profile of some of them.
 */
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
	PROFILE_TEXT, /* of report_heap.c, with names */
	/* The same of one process, which must run: with its addresses, see process_text.h... */
	PROFILE_ADDRESSES,
	PROFILE_GROWTH, /* ... of what was allocated, whether it is still in use or not */
	PROFILE_PICTURES, /* a page of viewer.html */
	PROFILE_DIFF, /* from the saved one to now, as text */
	/* Of the past (stack_profile.h), without a snapshot: */
	PROFILE_MOMENTS, /* the difference of two moments: a page of viewer.html, or JSON */
	PROFILE_STACKS, /* what grows, as JSON */
	PROFILE_STACKS_PAGE, /* the same in the page of a process */
};

struct profile_request {
	pid_t pid; /* 0: all, with labels pid and comm */
	enum profile_form form;
	/* Of this image of pid alone, whether it is over or not. */
	bool is_image;
	uint32_t generation;
	/* What its probes cost; NULL: what is so at present. */
	const struct governor_record *budget;
	bool shows_allocs; /* opens on alloc_space, else on inuse_space */
	/* Not NULL: alloc_* is what was added since; it was taken duration_ns before. */
	const struct snapshot *base;
	uint64_t duration_ns;
	bool wants_growth; /* what the process held before is in it; of one process, without a base */
	int64_t epoch_ns; /* of the snapshot, and when it was on CLOCK_MONOTONIC */
	uint64_t monotonic_ns;
	const char *reason; /* why it is kept; NULL: it was asked for */
	bool is_over; /* the process, or the image, has ended */
	bool has_saved; /* saved_fd: a profile that PROFILE_PICTURES is of instead, or PROFILE_DIFF begins at */
	int saved_fd;
	const char *saved_name; /* of a moment */
	const struct stack_moments *moments; /* of PROFILE_MOMENTS */
	bool is_json;
	bool of_day, by_scope; /* of PROFILE_STACKS: else of the last hour, by stack */
	const char *page; /* of PROFILE_STACKS_PAGE: see http/process_page.h */
	const char *const *notes; /* comments that come first */
	size_t note_cnt;
};

/* Slow: reads symbols. Meant for a process of its own. -ESRCH: the process that is wanted alone has
 * ended, and its addresses are asked for. -ENODATA: what is in use is asked for in a form without
 * comments, and it is not known. -EDOM: PROFILE_DIFF has two that cannot be compared. -ENOENT: what
 * is wanted of the past is not kept. */
int profile_file_write(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_request *request, int fd);
/* Is it made without a snapshot? */
bool profile_file_is_past(enum profile_form form);
/* The same, before it is a file: to be freed with profile_free(). */
int profile_file_build(const struct profile_source *src, const struct snapshot *s,
		       const struct profile_request *request, struct profile **ret);

#endif
