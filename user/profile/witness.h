/* SPDX-License-Identifier: MIT */
/*
 * witness.h - the resident set as the witness: a process that grew by much more than what is held explains has memory that
 * the profile does not show, or keeps memory that was freed. Pages of mapped files do not count.
 */
#ifndef HT_PROFILE_WITNESS_H
#define HT_PROFILE_WITNESS_H

#include "base/std.h"

struct profile;

struct witness {
	/* It grew by much, of which less than half is held. */
	bool is_unexplained;
	/* ... but at an earlier moment so much was held that blocks freed since explain it. */
	bool was_freed;
	/* ... or the rows of resident memory show that an allocator keeps so much that was freed. */
	bool is_kept_free;
	bool is_change; /* since another profile: held_bytes is what more is held */
	double growth_bytes, held_bytes;
	double most_bytes; /* held at most, at one moment of the history; 0: not known */
	int64_t most_ns; /* since the epoch */
	char unseen[160]; /* a file whose allocator is not seen; "": none is known */
	char rows[320]; /* how it grew by row: resident_growth_words(); "": not known */
	/* Its sizes then, ", 141 -> 225 MiB", if the growth is of other moments; "": it is not. */
	char rows_range[80];
};

/* The growth of resident memory without pages of files; NAN: not known. */
double witness_growth(const struct profile *p);
/* The most that was in use at a moment of the history, and when that was (since the epoch; NULL is fine); 0: not known. */
double witness_most(const struct profile *p, int64_t *ret_ns);
void witness_find(const struct profile *p, struct witness *ret);
/*
 * From one profile of a process to a later one: of the growth between them, if both began at one time; else of that in
 * the later one, as blocks allocated between them are in none.
 */
void witness_compare(const struct profile *before, const struct profile *after,
		     struct witness *ret);
/* From numbers alone, of a process whose resident memory was begin_bytes. growth_bytes as above; NAN: not known. */
void witness_judge(double begin_bytes, double growth_bytes, double held_bytes, struct witness *ret);

#define WITNESS_WORDS 720
/* Say that it is unexplained, and what it can be: some sentences. */
char *witness_words(const struct witness *w, char buf[WITNESS_WORDS]);

#endif
