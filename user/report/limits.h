/* SPDX-License-Identifier: MIT */
/*
 * limits.h - checks a profile against limits: kept, broken or unknown, each with a confidence.
 *
 * A limit is kept if the value is at most the limit even if chance has hidden some of it. It is
 * broken if the value exceeds the limit even if chance has added some. Each of these verdicts is
 * wrong in at most a part `tail` of all recordings. Between them the verdict is unknown, with
 * advice on what would tell: a longer recording, or a finer rate.
 */
#ifndef HT_REPORT_LIMITS_H
#define HT_REPORT_LIMITS_H

#include "base/std.h"
#include "base/vec.h"

struct profile;

enum limit_kind {
	LIMIT_GROWTH, /* of in-use bytes, per second */
	LIMIT_INUSE, /* in use at the end */
	LIMIT_MORE, /* in use at the end, compared with another profile */
	LIMIT_EXITED, /* in use by all ended tasks together */
	LIMIT_UNEXPLAINED, /* growth of resident memory that nobody owns who is known */
	LIMIT_RETAINED, /* resident and free, kept by an allocator */
	LIMIT_KIND_CNT
};
enum limit_verdict { LIMIT_UNKNOWN, LIMIT_KEPT, LIMIT_BROKEN };
enum limit_format { LIMIT_TEXT, LIMIT_JSON, LIMIT_JUNIT };

struct limit_options {
	bool is_asked[LIMIT_KIND_CNT];
	double limit[LIMIT_KIND_CNT]; /* bytes, or bytes per second */
	/* The limit is a part: LIMIT_MORE of the other profile's in use, LIMIT_UNEXPLAINED and LIMIT_RETAINED of resident memory
	 * at the end. */
	bool is_share[LIMIT_KIND_CNT];
	double tail; /* 1 - confidence */
	uint64_t warm_up_ns; /* growth is measured from then on */
	size_t row_cap; /* number of named rows, 0 = all */
	const char *before_name;
};

/* A row named with a limit: for LIMIT_GROWTH one that grows, else one that holds memory. low and
 * high as of the limit. */
struct limit_row {
	char *name;
	double value, low, high;
};

struct limit_result {
	enum limit_kind kind;
	enum limit_verdict verdict;
	double limit; /* NAN: a part of an unknown value */
	double value, low, high; /* at least, at most; NAN: not known */
	bool is_lossy; /* losses affect value, or it lacks blocks from before frees were watched */
	double before; /* LIMIT_MORE: in use in the other profile */
	/* LIMIT_UNKNOWN: what would probably tell; both 0: nothing known here. */
	double more_s; /* more seconds of recording */
	uint64_t rate_bytes; /* a finer rate; 1: record everything */
	char why[768]; /* a sentence; "": only that the interval contains the limit */
	VEC(struct limit_row) rows; /* largest first */
	size_t more_row_cnt; /* rows beyond row_cap */
};

struct limits {
	const struct profile *p;
	struct limit_options opts;
	enum limit_verdict verdict; /* broken: one is; kept: all are */
	/* The recorded program or the recording failed, so verdicts do not count; "": neither */
	char failure[128];
	struct limit_result results[LIMIT_KIND_CNT];
	size_t cnt;
};

/* Judge a profile. p and before must outlive *ret; before is NULL without LIMIT_MORE. 0, -EINVAL: p
 * has no values at all, or -ENOMEM. Release *ret in any case. */
int limits_judge(const struct profile *p, const struct profile *before,
		 const struct limit_options *opts, struct limits *ret);
/* Make the verdict unknown: the program did not do what was to be checked. */
void limits_fail(struct limits *l, const char *failure);
void limits_release(struct limits *l);

/* 0 or -EIO. */
int limits_write(const struct limits *l, enum limit_format format, FILE *out);

#endif
