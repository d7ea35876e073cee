/* SPDX-License-Identifier: MIT */
/*
 * view.h - the data of pages and metrics: plain numbers, all of one moment.
 *
 * Numbers are doubles, because metrics are, so that a page is a table of fields (see metrics_page.c). NAN: not
 * known, and not shown.
 */
#ifndef HT_HTTP_VIEW_H
#define HT_HTTP_VIEW_H

#include "base/std.h"

struct inuse_past;
struct rows_past;
struct stack_past;

/* A pair of scope and thread pool of a process; see series_table.c. */
struct serve_scope {
	const char *scope, *thread;
	double inuse_bytes, inuse_objects;
	double inuse_error_bytes; /* standard error */
	double inuse_samples;
	double alloc_bytes, alloc_objects; /* counters */
};

struct serve_process {
	pid_t pid;
	uint64_t image; /* for past.h */
	const char *comm, *exe;
	const char *container; /* "": none */
	const char
		*cgroup; /* the last part of its control group's path, perhaps cut; "": not known */
	double inuse_bytes, inuse_objects;
	double inuse_error_bytes;
	double inuse_samples;
	double alloc_bytes, alloc_objects; /* since following began; counters */
	double rss_bytes, pss_bytes, swap_bytes;
	double cgroup_limit_bytes, cgroup_usage_bytes;
	double overhead; /* share of its CPU time that probes take */
	double overhead_step; /* the governor's step: see track/budget.h */
	double overhead_rate_bytes; /* the sampling rate of this process now */
	/* 0: frees are not seen now, or were not at some time */
	double is_inuse_complete;
	bool is_tapped;
	uint64_t exec_ns; /* on CLOCK_MONOTONIC, when it executed its program; 0: before it was followed */
	bool is_inuse_unknown; /* frees are not seen now: the inuse_* fields are NAN, scopes' too */
	const char *inuse_words; /* why, and what to do; "": in-use is complete */
	const char *growth_words; /* of growth that is not explained; "" or NULL: it is */
	const struct serve_scope *scopes; /* sum up to the process; the rest last */
	size_t scope_cnt;
};

/* A file whose allocator is probed. */
struct serve_file {
	const char *path; /* as the first process that mapped it sees it */
	uint32_t id; /* differs for files of one path in several containers */
	const char *sharing; /* see track/policy.h */
	double process_cnt; /* followed processes that map it */
	double hit_seconds; /* predicted cost of a hit to such a process */
};

struct serve_counter {
	const char *name; /* as in the ledger of a profile */
	const char *meaning;
	uint64_t value;
};

/* A push target; counts of requests. */
struct serve_push {
	const char *target;
	double sent_cnt, refused_cnt, dropped_cnt, failed_cnt; /* failed: tries */
	double waiting_cnt;
	/* files of debug information */
	double debuginfo_uploaded_cnt, debuginfo_uploaded_bytes, debuginfo_waiting_cnt;
	double debuginfo_known_cnt; /* the target had them */
	double debuginfo_nameless_cnt, debuginfo_large_cnt, debuginfo_refused_cnt; /* not sent */
};

/* A named number: descriptors by kind. */
struct serve_named {
	const char *name;
	double value;
};

/* How full a map of BPF is. */
struct serve_map {
	const char *name;
	double entry_cnt, entry_cap;
};

/* What heaptap itself costs. */
struct serve_own {
	double cpu_seconds; /* of all its processes */
	double rss_bytes; /* of main */
	double start_seconds; /* since the epoch */
	double snapshot_seconds; /* duration of the last snapshot for pages */
	double snapshot_age_seconds;
	double profile_snapshot_seconds; /* of the last one for a profile; NAN: none yet */
};

/* A saved profile. */
struct serve_kept {
	pid_t pid;
	char comm[17];
	const char *at; /* of its link */
	char why[64]; /* for people */
	int64_t epoch_ms; /* when it was taken */
	double bytes, inuse_bytes; /* size of the file; in use in it, NAN: not known */
};

/* All NAN when nothing is saved. */
struct serve_keep {
	const struct serve_kept *kept; /* the newest first */
	size_t kept_cnt;
	double file_cnt, bytes; /* now */
	double memory_bytes; /* of those in memory */
	/* Counters of profiles: taken; removed for want of room; not taken by the folder; failed to be made; not
	 * taken because too many processes had ended. */
	double taken_cnt, removed_cnt, unwritten_cnt, failed_cnt, skipped_cnt;
};

struct serve_view {
	const struct serve_process *processes; /* largest first */
	size_t process_cnt;
	const struct serve_file *files; /* most processes first */
	size_t file_cnt;
	const struct serve_counter *losses; /* events */
	size_t loss_cnt;
	const struct serve_counter *lost_bytes; /* losses that are counted in bytes */
	size_t lost_bytes_cnt;
	const struct serve_push *pushes;
	size_t push_cnt;
	const struct serve_map *maps;
	size_t map_cnt;
	const struct serve_named *reclaimed; /* taken out of what ended processes left */
	size_t reclaimed_cnt;
	const struct serve_named *fds; /* heaptap's own */
	size_t fd_cnt;
	struct serve_own own;
	double sample_cnt;
	double rate_bytes;
	double followed_cnt;
	double host_overhead; /* share of the time of all CPUs that all probes take */
	double is_paused; /* a signal has had all probes taken out */
	double began_cnt, ended_cnt; /* processes followed so far; ended ones of them */
	double refused_cnt; /* selected processes that cannot be followed */
	struct serve_keep keep;
	const struct inuse_past *past; /* of the processes; NULL: none is kept */
	const struct stack_past *stacks; /* likewise */
	const struct rows_past *rows; /* likewise */
	const char *version;
};

#endif
