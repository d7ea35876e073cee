/* SPDX-License-Identifier: MIT */
/*
 * recording.h - how a profile was recorded: of which process, how long, at what cost, and what its numbers mean.
 *
 * It is a part of struct profile, and a message of its own in the file (Recording in profile.proto), so that a report
 * need not parse the comments, which are for people. A profile that another tool wrote or rewrote has no recording:
 * then is_known is false, and the other members mean nothing.
 */
#ifndef HT_PROFILE_RECORDING_H
#define HT_PROFILE_RECORDING_H

#include "base/std.h"

/* What the in-use values cover. */
enum recording_inuse {
	RECORDING_INUSE_ALL, /* everything allocated since begin_ns */
	RECORDING_INUSE_SINCE, /* allocated since inuse_since_ns: before, frees were not seen */
	RECORDING_INUSE_UNKNOWN, /* frees were not seen: the values are 0 and mean nothing */
};

/* A limit of the overhead: the larger of the two is in force. Both 0: there is no limit. */
struct recording_limit {
	double cpu_share; /* share of the process's CPU time */
	double one_cpu; /* share of the time of one CPU */
};

struct recording {
	bool is_known;
	/* The recorded process. With several processes: pid and comm of the first; process_cnt is their number. */
	int32_t pid;
	int64_t comm_str, exe_str; /* strings of the profile */
	/* The name of the link by which exe was executed: what reports call its module. 0: exe's own name */
	int64_t called_str;
	uint32_t process_cnt;
	/* Why it was recorded when no user asked for it: "out of memory", "peak"; 0: on demand. */
	int64_t reason_str;
	/* --follow was given: a recording of the same needs it again */
	bool follows_children;
	/* The program that heaptap started, with its arguments, and that has ended: only a new start can be recorded.
	 * "": not so. */
#define RECORDING_PROGRAM_BUF 100
	char program[RECORDING_PROGRAM_BUF];
	bool has_ended; /* all its processes have */
	bool is_from_start; /* heaptap started the program: nothing was allocated before begin_ns */
	int64_t begin_ns, end_ns; /* since the epoch; 0: not known */
	int64_t duration_ns; /* end - begin, by a clock that does not jump */

	/* Overhead of the probes in all, as a share of the process's CPU time, and of the time of one CPU. NAN: not
	 * known; overhead_one_cpu also when there are several processes. */
	double overhead_share, overhead_one_cpu;
	/* Overhead that watching allocations and frees at this rate would have. NAN: not known, or not needed
	 * because just that was done. */
	double full_share, full_one_cpu;
	/* The limit in force; the other is 0. With several processes both may be set, as it may differ by process. */
	struct recording_limit limit;
	enum recording_inuse inuse;
	int64_t inuse_since_ns; /* since the epoch, with RECORDING_INUSE_SINCE */
	/* With RECORDING_INUSE_UNKNOWN: blocks are freed by a function that has no name, so nothing else helps. */
	bool has_nameless_frees;
	bool has_no_tap; /* likewise: nobody was tapped before it ended, and nobody had probes */
	/* When most was in use, since begin_ns. 0: not known; then the profile has no peak_space either. */
	int64_t peak_ns;
	/* Children that processes had and that were not recorded. */
	uint32_t unrecorded_cnt;
	/* Part of duration_ns in which allocations were watched; duration_ns when they were all the time. The
	 * alloc_* values cover only that time. */
	int64_t watched_ns;
	/* Something that belongs into a sum was lost (see the ledger in the comments): no
	 * number may be called exact. */
	bool is_lossy;

	uint64_t rss_begin_bytes, rss_end_bytes; /* resident memory; 0: not known */
	int64_t rss_file_growth_bytes; /* the part of its growth that is pages of mapped files */
	/* Memory that programs held when they executed another program. It is gone with them, and in no value. */
	uint64_t exec_held_bytes, exec_held_objects;
};

#define RECORDING_NONE                                \
	((struct recording){ .overhead_share = NAN,   \
			     .overhead_one_cpu = NAN, \
			     .full_share = NAN,       \
			     .full_one_cpu = NAN })

/* The limit in force is the one of the time of one CPU. */
bool recording_is_of_one_cpu(const struct recording *r);

/* Room for any of the texts below. All these functions return buf. */
#define RECORDING_TEXT_BUF 192

/*
 * The --max-overhead with which frees can be watched all the time: the measured overhead, and a margin because loads
 * change. 0: only "off" suffices, or nothing was measured.
 */
unsigned recording_advised_percent(const struct recording *r);
/* Write the words of a program as a shell takes them: " ..." stands for those from the first that it would interpret,
 * and for what has no room. Returns buf. */
char *recording_program_text(char *const *argv, char *buf, size_t bytes);
/*
 * The command that makes in-use known: "heaptap record --max-overhead 65 -d 10s -p 6426", or "... -- PROGRAM". rate_bytes: the rate of
 * full_share; record's own default is not written. 0: not known.
 */
char *recording_advice(const struct recording *r, uint64_t rate_bytes,
		       char buf[RECORDING_TEXT_BUF]);
/* The cost of that command: "about half the throughput for 10 s; nothing remains afterwards". */
char *recording_advice_cost(const struct recording *r, char buf[RECORDING_TEXT_BUF]);
/* The command that uses a tap instead (tap/tap.h); "": a recording like this one cannot use it. */
char *recording_advice_tap(const struct recording *r, char buf[RECORDING_TEXT_BUF]);
/* The one of both to name where there is room for one: by the tap, if it can be used. */
char *recording_advice_best(const struct recording *r, uint64_t rate_bytes,
			    char buf[RECORDING_TEXT_BUF]);
#define RECORDING_TAP_COST \
	"about 1 % of its CPU time; pauses it for milliseconds and patches its allocator while recording"
/*
 * Why in-use is unknown: "Tracking frees costs 53 % of redis-server's CPU time; the limit is 25 %.", or "Tracking frees
 * costs 31 % of one CPU; the limit is 25 %." With comm "" it says "its CPU time".
 */
char *recording_why_unknown(const struct recording *r, const char *comm,
			    char buf[RECORDING_TEXT_BUF]);
/* "25 %", "1 % of one CPU", "25 % (or 1 % of one CPU)", "none". */
char *recording_limit_text(const struct recording_limit *l, char buf[RECORDING_TEXT_BUF]);

#endif
