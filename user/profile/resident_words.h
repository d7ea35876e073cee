/* SPDX-License-Identifier: MIT */
/* resident_words.h - puts resident_rows.h into a profile, and says it in words. */
#ifndef HT_PROFILE_RESIDENT_WORDS_H
#define HT_PROFILE_RESIDENT_WORDS_H

#include "base/units.h"
#include "profile/resident_rows.h"

struct profile;

/* Put both readings of a recording into its profile. 0 or -ENOMEM. */
int resident_rows_set(struct profile *p, const struct resident_reading *begin,
		      const struct resident_reading *end);

/* Some of what nobody owns may be blocks of an allocator that is not seen: do not call it mapped by the program. 0 or
 * -ENOMEM. */
int resident_rows_doubt(struct profile *p);

/*
 * By how much resident memory grew. The recording looks at its size when it begins and when it ends; the rows are read
 * some time after the one and before the other. All sentences are of the same two moments: those of the rows if the
 * process grew little outside of them, else those of the recording, and then the sizes of the rows are said as well.
 */
struct resident_growth {
	double begin_bytes, end_bytes;
	double file_bytes; /* what of the growth is pages of mapped files */
	bool is_by_row; /* of the moments of the rows */
};
/* false: not known. */
bool resident_growth(const struct profile *p, struct resident_growth *ret);
/* What of the growth is before the first reading by row and after the last. */
double resident_growth_outside(const struct profile *p);

/* Of all rows of a kind. */
int64_t resident_bytes(const struct profile *p, enum resident_kind kind, bool at_end);

#define RESIDENT_WORDS 1024
/* "live +48.0 MiB, free kept by glibc +30.0 MiB"; "": a reading is missing, or nothing changed. Returns buf. */
char *resident_growth_words(const struct profile *p, char buf[RESIDENT_WORDS]);
/* "Resident 141 -> 225 MiB: " and these words; "Resident 120 -> 225 MiB, by row 141 -> 225 MiB: " if it grew before it was read;
 * "": the end is not known. Returns buf. */
char *resident_words(const struct profile *p, char buf[RESIDENT_WORDS]);
/* All labels: "live 95.0 -> 143 MiB, files 16.0 -> 16.0 MiB"; "": no reading is known. Returns buf. */
char *resident_list_words(const struct profile *p, char buf[RESIDENT_WORDS]);
/* The reasons why a reading is not known, or the heap was not read; "": none. Returns buf. */
char *resident_why_words(const struct profile *p, char buf[RESIDENT_WORDS]);
#define RESIDENT_RANGE (2 * UNITS_BUF + 4)
/* "141 -> 225 MiB". Returns buf. */
char *resident_range_words(double begin_bytes, double end_bytes, char buf[RESIDENT_RANGE]);

#endif
