/* SPDX-License-Identifier: MIT */
/*
 * limits.h - a profile held against limits: kept, broken, or that cannot be said, each with a confidence.
 *
 * A limit is kept when what is limited is at most so much even if chance has hidden some of it, and broken when it is
 * more even if chance has added some: each of the two is wrong in at most a part `tail` of all recordings. Between
 * both nothing is said, but what would tell: a longer recording, or a finer rate.
 */
#ifndef HT_REPORT_LIMITS_H
#define HT_REPORT_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"

struct profile;

enum limit_kind {
	LIMIT_GROWTH, /* of what is in use, bytes per second */
	LIMIT_INUSE, /* at the end */
	LIMIT_MORE, /* at the end, than in another profile */
	LIMIT_EXITED, /* what tasks that have ended still hold, all together */
	LIMIT_KIND_CNT
};
enum limit_verdict { LIMIT_UNKNOWN, LIMIT_KEPT, LIMIT_BROKEN };
enum limit_format { LIMIT_TEXT, LIMIT_JSON, LIMIT_JUNIT };

struct limit_options {
	bool is_asked[LIMIT_KIND_CNT];
	double limit[LIMIT_KIND_CNT]; /* bytes, or bytes per second */
	bool more_is_share; /* LIMIT_MORE is a part of what the other profile holds */
	double tail; /* 1 - confidence */
	uint64_t warm_up_ns; /* growth counts from then on */
	size_t row_cap; /* rows that are named, 0 = all */
	const char *before_name;
};

/* What is named with a limit: of LIMIT_GROWTH what grows, else what holds. low and high as of the limit. */
struct limit_row {
	char *name;
	double value, low, high;
};

struct limit_result {
	enum limit_kind kind;
	enum limit_verdict verdict;
	double limit; /* NAN: a part of what is not known */
	double value, low, high; /* at least, at most; NAN: not known */
	bool is_lossy; /* something that value should have was lost, or came before frees were watched */
	double before; /* LIMIT_MORE: what the other profile holds */
	/* With LIMIT_UNKNOWN, what would probably tell; both 0: nothing that is known here. */
	double more_s; /* of recording */
	uint64_t rate_bytes; /* 1: everything has to be recorded */
	char why[512]; /* a sentence; "": the interval has the limit inside, and there is no more to say */
	VEC(struct limit_row) rows; /* the largest first */
	size_t more_row_cnt; /* behind row_cap */
};

struct limits {
	const struct profile *p;
	struct limit_options opts;
	enum limit_verdict verdict; /* broken: one is; kept: all are */
	char failure[128]; /* what was recorded, or the recording, has failed, and no verdict counts; "": not so */
	struct limit_result results[LIMIT_KIND_CNT];
	size_t cnt;
};

/* p and before (NULL: without LIMIT_MORE) must stay. 0, -EINVAL: p has no values at all, or -ENOMEM. Release
 * it in any case. */
int limits_judge(const struct profile *p, const struct profile *before,
		 const struct limit_options *opts, struct limits *ret);
/* Nothing is known then: what was checked did not do what it should have been checked for. */
void limits_fail(struct limits *l, const char *failure);
void limits_release(struct limits *l);

/* "growth", "inuse", "inuse_more", "exited_scope" */
const char *limit_name(enum limit_kind kind);
/* 0 or -EIO. */
int limits_write(const struct limits *l, enum limit_format format, FILE *out);

#endif
