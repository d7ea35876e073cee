/* SPDX-License-Identifier: MIT */
/*
 * endpoints.h - turns the path and arguments of a request into a plain struct. Pure.
 *
 * 	/ /healthz /metrics
 * 	/page.css /page.js /index.js /process.js	what the pages for people load
 * 	/api			what the index shows, as JSON
 * 	/viewer			pictures of a profile; uses /viewer.js, /viewer.css
 * 	/pid/N/			a process
 * 	/pid/N/api		what its page shows, as JSON
 * 	/pid/N/diff		what changed since a saved profile, or between two moments, or what differs from another
 *				process, from_pid=N: pictures, text, JSON
 * 	/pid/N/growth		what grows, as JSON
 * 	/debug/pprof/			what there is
 * 	/debug/pprof/{heap,allocs}	as Go serves them: pprof files; debug=1: text
 * 	/debug/pprof/cmdline
 * 	/pprof/{heap,growth,cmdline,symbol}	gperftools' remote protocol
 *
 * Below /pid/N, or with pid=N, profiles are of one process; so is the viewer below /pid/N. Arguments of profiles
 * are pid, seconds, at (a saved profile: peak, limit, last), pinned, and Go's debug and gc. Others are ignored, as Go does:
 * clients add their own.
 */
#ifndef HT_HTTP_ENDPOINTS_H
#define HT_HTTP_ENDPOINTS_H

#include "base/std.h"

struct err;
struct governor_record;
struct snapshot;

enum endpoint {
	ENDPOINT_INDEX,
	ENDPOINT_HEALTH,
	ENDPOINT_METRICS,
	ENDPOINT_PPROF_INDEX,
	ENDPOINT_HEAP, /* opens on inuse_space */
	ENDPOINT_ALLOCS, /* opens on alloc_space */
	ENDPOINT_CMDLINE, /* of one process, like those that follow */
	ENDPOINT_REMOTE_HEAP,
	ENDPOINT_REMOTE_GROWTH,
	ENDPOINT_SYMBOL, /* takes a body, too */
	ENDPOINT_PROCESS,
	ENDPOINT_INDEX_JSON, /* the data of the two pages for people */
	ENDPOINT_PROCESS_JSON,
	ENDPOINT_PAGE_SCRIPT, /* what these pages load */
	ENDPOINT_PAGE_STYLE,
	ENDPOINT_INDEX_SCRIPT,
	ENDPOINT_PROCESS_SCRIPT,
	ENDPOINT_VIEWER, /* one process below /pid/N, else all */
	ENDPOINT_VIEWER_SCRIPT,
	ENDPOINT_VIEWER_STYLE,
	ENDPOINT_DIFF,
	ENDPOINT_GROWTH,
};

/* Which moment: now, or a saved profile. */
enum endpoint_moment {
	ENDPOINT_NOW,
	ENDPOINT_AT_PEAK,
	ENDPOINT_AT_LIMIT, /* when its cgroup was near its memory limit */
	ENDPOINT_AT_LAST, /* before it ended */
};
/* As in at=peak: "peak". */
const char *endpoint_moment_text(enum endpoint_moment at);

#define ENDPOINT_SECONDS_CAP 3600

#define ENDPOINT_TIME_BUF 32

/* Addresses of a process, whose names are asked for. */
struct endpoint_addrs {
	uint64_t *addrs;
	size_t addr_cnt;
};

/*
 * A request for a result: one struct from the parser, through the queue of requests (serve/profiles.c), to the child
 * that makes it (record/make.h). What is saved or pushed begins as ENDPOINT_HEAP of a process, else all 0.
 */
struct result_request {
	enum endpoint endpoint;
	pid_t pid; /* 0: all, with labels pid and comm; or the only one */
	enum endpoint_moment at;
	uint32_t seconds; /* 0: a snapshot; else only what is allocated in that time */
	bool is_text; /* for a profile: debug=1 */
	bool wants_pinned; /* pinned=1: what its blocks pin, for which its heap is read */
	bool is_still; /* for a page for people: live=0 */
	/* Two sides to compare: moments, in seconds since the epoch (to_s 0: the last one), or saved profiles, from_at and
	 * to_at. has_from: false for `at`, from which on it is compared with now. */
	bool has_from;
	int64_t from_s, to_s;
	enum endpoint_moment from_at, to_at; /* ENDPOINT_NOW: not a saved profile */
	pid_t from_pid; /* the side from which is another process's; without a moment it is of now. 0: it is pid's */
	bool is_json, is_plain; /* of a difference: JSON, or text; else pictures */
	bool of_day; /* growth in the last day; false: in the last hour */
	bool by_scope; /* growth by scope; false: by stack */

	/* What comes with it, set by who answers it: see result_request_release(). */
	struct endpoint_addrs addrs;
	int saved_fd; /* the saved profile of at, or of from_at */
	int after_fd; /* that of to_at */
	char *page; /* of ENDPOINT_PROCESS, with a place for its stacks: see http/pages.h */
	struct {
		uint64_t before_ns, after_ns; /* as stack_past_moments() has them */
		char before[ENDPOINT_TIME_BUF], after[ENDPOINT_TIME_BUF];
	} moments; /* of has_from: times of sides that are not saved, 0 for now; names of both */

	/* Set before it is made. */
	uint32_t generation, from_generation; /* of the processes, when it was asked for */
	bool is_image; /* only this generation of pid, whether it has ended or not */
	bool wants_growth; /* adds what the process held before; for one process, without base */
	/* Not NULL: alloc_* counts only what was added since base, which was taken at base_ns. */
	const struct snapshot *base;
	uint64_t base_ns;
	uint64_t names_ns; /* limit for its names; 0: a minute */
	bool wants_all_names; /* -ETIME when names take longer; else late ones are left out */

	/* Of a profile that is saved: */
	bool reads_rows; /* of resident memory, now */
	const struct governor_record *budget; /* the cost of its probes; NULL: the present one */
	const char *reason; /* why it is saved; NULL: a request asked for it */
	bool is_over; /* the process, or the image, has ended */
	const char *const *notes; /* that come first */
	size_t note_cnt;
};
bool result_has_saved(const struct result_request *r);
/* Is it made of saved profiles alone? Then the process may have ended. */
bool result_is_of_past(const struct result_request *r);
/* The processes that must run, because what they hold is not saved; 0: none. */
pid_t result_needs(const struct result_request *r);
pid_t result_needs_from(const struct result_request *r);
/* Free what comes with it. */
void result_request_release(struct result_request *r);

/* -ENOENT: there is no such page. */
int endpoint_parse_path(const char *path, struct result_request *ret);
#define ENDPOINT_PATH_BUF 64
/* Parse a path that lacks the slash at its end: /pid/N is no page, and /pid/N/ is one. */
int endpoint_parse_folder(const char *path, struct result_request *ret);
/* Add one argument of the request. -EINVAL with a sentence for the client in why. */
int endpoint_set_arg(struct result_request *r, const char *key, const char *value, struct err *why);
/* "2026-11-26T14:05:00Z" <-> seconds since the epoch; for a time before it, 1. -EINVAL: it is no such time. */
int endpoint_parse_time(const char *text, int64_t *ret);
char *endpoint_time_text(int64_t epoch_s, char buf[ENDPOINT_TIME_BUF]);
/* Call after all arguments: do they go together? */
int endpoint_check(const struct result_request *r, struct err *why);
/* Are two moments of one process compared, without a saved profile? */
bool endpoint_is_of_moments(const struct result_request *r);
/* Is it a page of one process, and not of all? */
static inline bool endpoint_is_of_one(enum endpoint endpoint)
{
	return endpoint == ENDPOINT_CMDLINE || endpoint == ENDPOINT_SYMBOL ||
	       endpoint == ENDPOINT_GROWTH || endpoint == ENDPOINT_REMOTE_HEAP ||
	       endpoint == ENDPOINT_REMOTE_GROWTH;
}

/* Maximum body of a request for names, in bytes: some 100000 addresses. */
#define ENDPOINT_BODY_CAP (2 << 20)
#define ENDPOINT_ADDRS_CAP 131072
/* "0x7f12+0x3456", hexadecimal. The caller frees them. -EINVAL with a sentence in why;
 * -ENOMEM. */
int endpoint_parse_addrs(const char *text, size_t bytes, struct endpoint_addrs *ret,
			 struct err *why);

#endif
