/* SPDX-License-Identifier: MIT */
/*
 * age.h - the age of what is in use, in classes.
 *
 * A class begins at a bound and ends at the next one: 0, 0.1 s, 0.2 s, 0.5 s, 1 s, 2 s, 3 s, 5 s, ... 7 days. The
 * values of a profile's sample are divided into the classes by the age of its blocks at the end.
 */
#ifndef HT_PROFILE_AGE_H
#define HT_PROFILE_AGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGE_CLASS_CNT 38

struct age_part {
	uint32_t age_class;
	uint64_t samples; /* like the other members, as in struct estimate */
	double bytes, bytes_variance;
	double objects, objects_variance;
};

uint32_t age_class_of(uint64_t age_ns);
/* The bound where a class begins; for AGE_CLASS_CNT: UINT64_MAX. */
uint64_t age_bound_ns(uint32_t age_class);
/* "10 min" */
#define AGE_NAME_BUF 48
char *age_bound_name(uint32_t age_class, char buf[AGE_NAME_BUF]);
/* "10 min to 15 min", "under 0.1 s", "7 d or more" */
char *age_class_name(uint32_t age_class, char buf[AGE_NAME_BUF]);

/* Bytes in each class, summed up for one row of a report. */
struct age_sums {
	float bytes[AGE_CLASS_CNT];
	uint64_t oldest_ns; /* of the oldest block; 0: not known */
};
void age_merge(struct age_sums *sums, const struct age_sums *other);
/* *ret: half of the bytes are older, if the bytes of a class are spread evenly over it. false: nothing is known. */
bool age_median_s(const struct age_sums *sums, double *ret);

#endif
