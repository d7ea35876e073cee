/* SPDX-License-Identifier: MIT */
/*
 * daemon_priv.h - the parts of daemon.c: the HTTP side with what its requests ask for: profiles and the view.
 */
#ifndef HT_SERVE_DAEMON_PRIV_H
#define HT_SERVE_DAEMON_PRIV_H

#include "base/std.h"
#include "base/clock.h"
#include "base/vec.h"
#include "record/make.h"
#include "serve/daemon.h"

struct follow;
struct http_exchange;
struct http_server;
struct live_view;
struct loop;
struct profile;
struct profiles;
struct pushes;
struct reader;
struct requests;
struct saver;
struct series_table;
struct serve_process;
struct serve_scope;
struct serve_view;
struct snapshot;
struct target_memory;
struct tracker;

/*
 * requests.c: the daemon's HTTP side: finds out what a request asks for and which part answers it.
 *
 * Pages and metrics are written here, from a view that live_view.c shares among requests. Profiles and names of
 * addresses take longer: profiles.c holds the exchange and answers later. Saved profiles are sent unchanged. A
 * request for something that does not exist is told what there is instead.
 *
 * The server runs in the event loop, which calls http_run() and the like on it.
 */

/* The parts that know the answers. */
struct requests_parts {
	struct tracker *tracker;
	const struct result_source *source;
	struct follow *follow;
	struct live_view *live_view;
	struct profiles *profiles;
	struct pushes *pushes;
	struct saver *saver; /* NULL: nothing is saved */
};

/*
 * Call before anything is attached: the port may be in use, which is logged on stderr, as are faults of the token.
 * listen is as in http/http.h; token_file may be NULL: none. The server is owned by
 * the requests. parts is kept by reference, and filled before the server runs for the first time. What it points to must
 * stay as long as the server runs, and profiles until requests_close().
 */
int requests_open(const char *listen, const char *token_file, const struct requests_parts *parts,
		  struct requests **ret, struct http_server **ret_server);
/* Answers waiting requests that the server ends. */
void requests_close(struct requests *as);

/* Set another token; NULL: none. On failure, which is logged, the old token stays in force. */
int requests_set_token(struct requests *as, const char *token_file);

/*
 * profiles.c: answers requests for profiles, names of addresses and command lines.
 *
 * One snapshot answers all requests that wait when it is taken. It is taken in the event loop, because that is
 * cheap. Symbols are not: a child process of lower priority makes the files from the snapshot, and requests that
 * come meanwhile wait for the next snapshot. So a profile never shows less than what was allocated when it was
 * asked for. Slow processes and pushes have children of their own, so that nobody else waits for these.
 */

/* src is copied. The requests of pushes are made from the same snapshots, too. The children are watched in the loop. */
int profiles_new(const struct result_source *src, struct pushes *pushes, struct loop *loop,
		 struct profiles **ret);
/* Ends the children that are at work. Waiting requests get no answer: close the server before. */
void profiles_free(struct profiles *p);

/* Take over the exchange and what comes with the request, and hold or answer it. */
void profiles_request(struct profiles *p, struct http_exchange *x, struct result_request *r);
/* Forget a client that has gone. */
void profiles_abandon(struct profiles *p, struct http_exchange *x);

/* Start what is due, or part of it: see profiles_wait_ms(). */
int profiles_work(struct profiles *p);
/* When the oldest snapshot was taken whose stacks are still to be looked up; UINT64_MAX: none. */
uint64_t profiles_reader_since_ns(const struct profiles *p);
bool profiles_makes_pushes(const struct profiles *p);
/* Milliseconds until profiles_work() has something to do; -1: only after another event. */
int profiles_wait_ms(const struct profiles *p);
/* Duration of the last snapshot in seconds; NAN: there was none. */
double profiles_snapshot_seconds(const struct profiles *p);

/* The processes that were slow lately. All 0: none. */
#define SLOW_PROCESSES_CAP 64

struct slow_processes {
	struct {
		pid_t pid; /* 0 with generation 0: the profile of all processes */
		uint32_t generation;
		bool is_slow;
	} known[SLOW_PROCESSES_CAP];
	size_t next;
};

void slow_processes_set(struct slow_processes *s, pid_t pid, uint32_t generation, bool is_slow);
bool slow_processes_has(const struct slow_processes *s, pid_t pid, uint32_t generation);

/*
 * live_view.c: what the followed processes hold now, for pages and metrics.
 *
 * Requests within LIVE_VIEW_AGE_NS share one snapshot and all that was made of it. The snapshot is taken in the
 * event loop, while BPF goes on recording. It has no stacks; most of its time is the kernel's, half a microsecond
 * or so for each sample that is outstanding. All requests together take at most a LIVE_VIEW_REST-th of a CPU's
 * time: a snapshot that took long is shown for longer.
 */

/* Pages may show data that is this old. */
#define LIVE_VIEW_AGE_NS (200 * NS_PER_MS)
#define LIVE_VIEW_REST 40

/* src is copied. */
int live_view_new(const struct result_source *src, const struct daemon_options *opts,
		  struct live_view **ret);
void live_view_free(struct live_view *lv);

/* Fill all but pushes, refused_cnt, own.cpu_seconds and own.profile_snapshot_seconds, which the caller fills. Pointers
 * in *ret are valid until the next call. */
int live_view_get(struct live_view *lv, struct serve_view *ret);

/* Read what is read little by little. Call a few times a second. */
void live_view_tick(struct live_view *lv);

/*
 * What the kernel says about the memory of the followed processes, beside what they allocated:
 * proportional set size, container, limit and usage of the control group.
 *
 * The proportional set size is expensive: the kernel walks the whole address space, milliseconds for each GiB, and
 * the process waits if it maps memory meanwhile. So target_memory_work() reads it for one process at a time, for
 * each at most every TARGET_PSS_NS, for all together at most half a percent of the time, and only while it is asked
 * for. Other values that seldom change are read as seldom, and values that the processes of one control group share
 * are read once for all of them.
 */

#define TARGET_PSS_NS (30 * NS_PER_S)

int target_memory_new(struct target_memory **ret);
void target_memory_free(struct target_memory *tm);

/* Have a job of the reader read one proportional set size, if one is due: the kernel may take long over it. Call a
 * few times a second. */
void target_memory_work(struct target_memory *tm, struct reader *reader);
/* That job (proc/reader.h). */
#define TARGET_MEMORY_JOB 1
int target_memory_run_job(const void *args, size_t args_bytes, int out_fd);

/*
 * live_view.c reads now and then what is resident of each process by row: see http/past.h.
 *
 * A job of the reader reads (record/rows_reader.h), one at a time, so a process that makes it wait makes nobody else wait. After
 * a reading nothing is read for ROWS_REST times as long as it took, and its process not for ROWS_OWN_REST times as long, nor
 * before the interval is over. So all readings together take at most 1 % of one CPU's time, and those of one process half of
 * that. A process of which the job did not answer is left alone for an hour, and all others for a minute.
 */

#define ROWS_REST 100
#define ROWS_OWN_REST 200
#define ROWS_LATE_NS (3600 * NS_PER_S)

/* How long nothing is read of a process after a reading of it, and of any. */
struct rows_pause {
	uint64_t own_ns, all_ns;
};
struct rows_pause rows_pause_after(uint64_t took_ns, bool is_late, uint64_t interval_ns);

/* live_processes.c: turns a snapshot into what each followed process holds, by scope and thread pool. */

struct live_processes {
	VEC(struct serve_process) all; /* largest first */
	VEC(struct serve_scope) scopes; /* of all processes */
	struct profile *names; /* their names; only its strings are used */
};

/* s is from snapshot_take_contexts(). Processes that have just ended are left out. */
int live_processes_make(const struct result_source *src, const struct snapshot *s,
			struct series_table *book, struct target_memory *memory,
			struct live_processes *ret);
void live_processes_release(struct live_processes *lp);

#endif
