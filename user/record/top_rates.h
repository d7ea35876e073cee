/* SPDX-License-Identifier: MIT */
/*
 * top_rates.h - computes from tables of several moments how fast rows grow and allocate. Pure.
 *
 * Growth is what a row holds now minus what it held at the oldest moment of the last minute, or at the last one
 * before if moments are further apart. It may be chance when it is within the error bars of both moments together.
 * This is too careful, since part of what is held is the same at both moments: heaptap record, which knows every
 * sample's age, can be surer.
 */
#ifndef HT_RECORD_TOP_RATES_H
#define HT_RECORD_TOP_RATES_H

#include <stdint.h>

struct top_rates;
struct top_table;

/* Time until the first rate; points are this far apart. */
#define TOP_RATES_STEP_NS 5000000000ULL
#define TOP_RATES_SPAN_NS 60000000000ULL

int top_rates_new(struct top_rates **ret);
void top_rates_free(struct top_rates *r);
/* Fills the last fields of all rows. 0 or -ENOMEM. */
int top_rates_update(struct top_rates *r, uint64_t time_ns, struct top_table *t);

#endif
