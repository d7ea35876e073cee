/* SPDX-License-Identifier: MIT */
/*
 * profile.h - a profile in memory: samples over locations, mappings, functions, labels, comments.
 *
 * The shape is pprof's, because pprof is what is read and written, but nothing here knows the file format. All strings
 * are ids of `strings`; all other references are indexes into the arrays (HT_NO_INDEX = none). The profile owns
 * everything. A profile that heaptap wrote has the heap sample types in the order of enum profile_value, each of the last
 * two only if it is known; another tool's may have others.
 */
#ifndef HT_PROFILE_PROFILE_H
#define HT_PROFILE_PROFILE_H

#include "base/std.h"
#include "base/strset.h"
#include "base/vec.h"
#include "profile/bins.h"
#include "profile/estimate.h"
#include "profile/history.h"
#include "profile/recording.h"
#include "profile/resident_rows.h"
#include "profile/scope_note.h"

#define HT_NO_INDEX UINT32_MAX

enum profile_value {
	PROFILE_ALLOC_OBJECTS,
	PROFILE_ALLOC_SPACE,
	PROFILE_INUSE_OBJECTS,
	PROFILE_INUSE_SPACE,
	PROFILE_VALUE_CNT, /* that every profile of heaptap has */
	PROFILE_PEAK_SPACE = PROFILE_VALUE_CNT, /* in use at the peak; absent: it is not known */
	PROFILE_PINNED_SPACE, /* free memory that blocks in use pin; likewise. First without a peak */
	PROFILE_VALUE_CAP
};

struct profile_type {
	int64_t type_str, unit_str;
};

struct profile_mapping {
	uint64_t start, limit, offset;
	int64_t filename_str, build_id_str;
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct profile_function {
	int64_t name_str, system_name_str, filename_str;
	int64_t start_line;
};

struct profile_line {
	uint32_t function; /* index */
	int64_t line;
};

struct profile_location {
	uint32_t mapping; /* index or HT_NO_INDEX */
	uint64_t address;
	uint32_t line_first, line_cnt; /* in `lines`; the first is the innermost inline */
	bool is_folded;
};

struct profile_label {
	int64_t key_str;
	int64_t str; /* string value, or 0 */
	int64_t num;
	int64_t num_unit_str;
};

struct profile_sample {
	uint32_t loc_first, loc_cnt; /* in `sample_locs`; the first is the leaf */
	uint32_t value_first; /* in `values`: types.cnt values */
	uint32_t label_first, label_cnt;
	/* The data of a row's error bar. has_error is false in files that lost it or never had it; see
	 * estimate_variance_from_sums(). */
	bool has_error;
	uint64_t inuse_samples;
	double inuse_bytes_variance;
	double inuse_objects_variance;
	uint64_t alloc_samples;
	double alloc_bytes_variance;
	/* what the value of alloc_space lacks when it is INT64_MAX; else 0 */
	double alloc_bytes_beyond;
	/* of what was in use at the peak; valid only with the type of PROFILE_PEAK_SPACE */
	uint64_t peak_samples;
	double peak_bytes_variance, peak_objects;
	double pinned_bytes_variance; /* valid only with the type pinned_space */
	/* in `ages`: memory in use, divided by age; none: the ages are not known */
	uint32_t age_first, age_cnt;
	uint64_t oldest_ns; /* age of the oldest sampled block */
	uint32_t life_first, life_cnt; /* in `lives`; valid only when there are moments */
	uint32_t bin_first, bin_cnt; /* in `bins`; valid only with has_bins */
	double freed_objects, freed_bytes; /* likewise; part of what was allocated */
};

/* A list of strings of the profile. */
struct profile_texts {
	int64_t *data;
	size_t cnt, cap; /* as VEC() */
};

/* The moment that the in-use values are of: see profile/moment.h. */
enum profile_at { PROFILE_AT_END, PROFILE_AT_PEAK, PROFILE_AT_TIME };
struct profile_moment {
	enum profile_at at;
	int64_t ns; /* since the begin of the recording; not at the end */
	struct estimate end; /* all that was in use at the end; not at the end */
};

struct profile {
	struct strset *strings;
	VEC(struct profile_type) types;
	VEC(struct profile_mapping) mappings;
	VEC(struct profile_function) functions;
	VEC(struct profile_line) lines;
	VEC(struct profile_location) locations;
	VEC(uint32_t) sample_locs;
	VEC(int64_t) values;
	VEC(struct profile_label) labels;
	VEC(struct profile_sample) samples;
	/* since the begin of the recording, ascending; none: no history was kept */
	VEC(int64_t) moments_ns;
	VEC(struct history_life) lives;
	VEC(struct age_part) ages;
	VEC(struct bin_part) bins;
	bool has_bins; /* sizes, frees and lifetimes were counted */
	/* Some samples found no room in the history: a sample without lives may have had some. */
	bool lacks_late_names; /* there was no time for some names; in no file */
	bool is_history_partial;
	struct profile_texts comments; /* for people */
	VEC(struct scope_note) scope_notes;
	int64_t default_type_str;
	struct profile_type period_type;
	int64_t period;
	int64_t time_ns; /* since the epoch */
	/* of a difference of two moments: the time between them; 0: one moment */
	int64_t duration_ns;
	struct recording recording;
	struct resident_rows resident; /* of its process */
	struct profile_moment moment; /* in no file: there it is the end */
	VEC(struct estimate) ends; /* of each sample at the end, if moment is another one */
};

/* Round a sum to a value. pprof's values have 64 bits: a larger sum becomes INT64_MAX, it does not wrap. NAN becomes 0. */
#define PROFILE_VALUE_MAX 0x1p63
int64_t profile_value(double sum);

int profile_new(struct profile **ret);
void profile_free(struct profile *p);

/* String helpers: id of str (-ENOMEM), text of id. */
int64_t profile_str(struct profile *p, const char *str);
const char *profile_text(const struct profile *p, int64_t id);
int profile_comment(struct profile *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append a copy of note for the scope with this path. */
int profile_add_scope_note(struct profile *p, const struct scope_note *note, const char *path);

/* Set the four heap sample types, default type and period. */
int profile_set_heap_types(struct profile *p, uint64_t rate_bytes);
/* Add a type in bytes to these, before there are samples: "peak_space" or "pinned_space". */
int profile_add_type(struct profile *p, const char *name);
/* Take such a type out, with its values. */
void profile_drop_type(struct profile *p, const char *name);
/* Index of the sample type named `name` ("inuse_space"), or -ENOENT. */
int profile_find_type(const struct profile *p, const char *name);

/* Append a sample; locs, values (types.cnt of them) and labels are copied. */
int profile_add_sample(struct profile *p, const uint32_t *locs, size_t loc_cnt,
		       const int64_t *values, const struct profile_label *labels, size_t label_cnt,
		       struct profile_sample **ret);
/* Add lives to the sample that was added last. 0 or -ENOMEM. */
int profile_add_lives(struct profile *p, const struct history_life *lives, size_t cnt);
/* Add an age part to it, in ascending order of classes. 0 or -ENOMEM. */
int profile_add_age(struct profile *p, const struct age_part *part);
/* The same for a bin. */
int profile_add_bin(struct profile *p, const struct bin_part *part);
/* The first label `key` of a sample, or NULL; its text, or NULL: it has none, or a number. */
const struct profile_label *profile_find_label(const struct profile *p,
					       const struct profile_sample *s, const char *key);
const char *profile_sample_label(const struct profile *p, const struct profile_sample *s,
				 const char *key);

#endif
