/* SPDX-License-Identifier: MIT */
/*
 * recording.h - what a profile says of how it was recorded: of whom, how long, at what cost, and what
 * its numbers mean.
 *
 * Part of struct profile, and a message of its own in the file (Recording in profile.proto), so that a
 * report need not parse what the comments say to people. A profile that another tool wrote, or that
 * another tool has rewritten, has none: is_known is false then, and nothing else counts.
 */
#ifndef HT_PROFILE_RECORDING_H
#define HT_PROFILE_RECORDING_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the in-use values are of. */
enum recording_inuse {
	RECORDING_INUSE_ALL, /* everything that was allocated since begin_ns */
	RECORDING_INUSE_SINCE, /* what was allocated since inuse_since_ns: frees went unseen before */
	RECORDING_INUSE_UNKNOWN, /* frees are not seen: the values are 0 and mean nothing */
};

/* A limit of the overhead: the larger one of the two is in force. Both 0: there is none. */
struct recording_limit {
	double cpu_share; /* of the process's CPU time */
	double one_cpu; /* of the time of one CPU */
};

struct recording {
	bool is_known;
	/* Of whom. Several processes: pid and comm are the first one's, and process_cnt says how many. */
	int32_t pid;
	int64_t comm_str, exe_str; /* strings of the profile */
	uint32_t process_cnt;
	/* Why it was taken, when nobody asked for it just then: "out of memory", "peak"; 0: on demand. */
	int64_t reason_str;
	bool follows_children; /* --follow: a recording of the same needs it again */
	bool is_from_start; /* heaptap started the program: nothing was allocated before begin_ns */
	int64_t begin_ns, end_ns; /* since the epoch; 0: not known */
	int64_t duration_ns; /* end - begin by a clock that does not jump */

	/* What the probes took of the process's CPU time, all in all, and of the time of one CPU. NAN:
	 * not known, the latter also when there are several processes. */
	double overhead_share, overhead_one_cpu;
	/* What watching allocations and frees at this rate would take. NAN: not known, or not needed: it
	 * is what was done. */
	double full_share, full_one_cpu;
	/* The one that was in force, the other is 0. Of several processes each one's may be: both, then. */
	struct recording_limit limit;
	enum recording_inuse inuse;
	int64_t inuse_since_ns; /* since the epoch, with RECORDING_INUSE_SINCE */
	/* For how much of duration_ns allocations were watched; duration_ns when all the time. alloc_*
	 * values are of that time only. */
	int64_t watched_ns;
	/* Something that a sum should have was lost (see the ledger in the comments): no number may be
	 * called exact. */
	bool is_lossy;

	uint64_t rss_begin_bytes, rss_end_bytes; /* resident memory; 0: not known */
	/* What programs held when they executed another one, and which is gone with them: in no value. */
	uint64_t exec_held_bytes, exec_held_objects;
};

#define RECORDING_NONE                                \
	((struct recording){ .overhead_share = NAN,   \
			     .overhead_one_cpu = NAN, \
			     .full_share = NAN,       \
			     .full_one_cpu = NAN })

/* It is the limit of the time of one CPU that was in force. */
bool recording_is_of_one_cpu(const struct recording *r);

/* Room for any of the texts below. All of them return buf. */
#define RECORDING_TEXT_BUF 192

/*
 * The --max-overhead that lets frees be watched all the time: what it was measured to take, and some
 * more because loads change. 0: only "off" does, or nothing was measured.
 */
unsigned recording_advised_percent(const struct recording *r);
/*
 * What in-use is known by: "heaptap record --max-overhead 65 -d 10s -p 6426". rate_bytes: what
 * full_share was measured at; record's own default is not said. 0: not known.
 */
char *recording_way_out(const struct recording *r, uint64_t rate_bytes,
			char buf[RECORDING_TEXT_BUF]);
/* What that would cost: "about half the throughput for 10 s; nothing remains afterwards". */
char *recording_way_out_cost(const struct recording *r, char buf[RECORDING_TEXT_BUF]);
/* The command that takes a tap instead (tap/tap.h); "": for such a recording there is none. */
char *recording_tap_way(const struct recording *r, char buf[RECORDING_TEXT_BUF]);
#define RECORDING_TAP_COST \
	"about 1 % of its CPU time; stops it for milliseconds, and changes its allocator meanwhile"
/*
 * Why in-use is unknown: "Watching frees costs 53 % of redis-server's CPU time; the limit is 25 %.", or
 * "Watching frees costs 31 % of one CPU; the limit is 25 %." comm "": "of its CPU time".
 */
char *recording_why_unknown(const struct recording *r, const char *comm,
			    char buf[RECORDING_TEXT_BUF]);
/* "25 %", "1 % of one CPU", "25 % (or 1 % of one CPU)", "none". */
char *recording_limit_text(const struct recording_limit *l, char buf[RECORDING_TEXT_BUF]);

#endif
