/* SPDX-License-Identifier: MIT */
/*
 * age.h - how old what is in use is, in classes.
 *
 * A class begins at a bound and ends at the next one: 0, 0.1 s, 0.2 s, 0.5 s, 1 s, 2 s, 3 s, 5 s, ... 7 days.
 * What a sample of a profile holds is divided into the classes of its blocks, by their age at the end.
 */
#ifndef HT_PROFILE_AGE_H
#define HT_PROFILE_AGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGE_CLASS_CNT 38

struct age_part {
	uint32_t age_class;
	uint64_t samples; /* as in struct estimate, and so are the others */
	double bytes, bytes_variance;
	double objects, objects_variance;
};

uint32_t age_class_of(uint64_t age_ns);
/* Where a class begins; of AGE_CLASS_CNT: UINT64_MAX. */
uint64_t age_bound_ns(uint32_t age_class);
/* "10 min" */
#define AGE_NAME_BUF 48
char *age_bound_name(uint32_t age_class, char buf[AGE_NAME_BUF]);
/* "10 min to 15 min", "under 0.1 s", "7 d or more" */
char *age_class_name(uint32_t age_class, char buf[AGE_NAME_BUF]);

/* Bytes in each class, of a row that was added up. */
struct age_sums {
	float bytes[AGE_CLASS_CNT];
	uint64_t oldest_ns; /* 0: not known */
};
void age_merge(struct age_sums *sums, const struct age_sums *other);
/* Half of the bytes are older, as if those of a class were spread evenly; false: nothing is known. */
bool age_median_s(const struct age_sums *sums, double *ret);

#endif
