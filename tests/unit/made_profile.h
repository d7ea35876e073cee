/* SPDX-License-Identifier: MIT */
/*
 * made_profile.h - frames, labels and lives of a profile that is made up; the profile as a file and as a report. All of
 * it is there until the test ends.
 */
#ifndef TEST_MADE_PROFILE_H
#define TEST_MADE_PROFILE_H

#include "unit.h"

#include <sys/mman.h>

#include "../lib/pprof_check.h"
#include "base/err.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "report/report.h"
#include "report/report_rows.h"

static inline void release_profile(void *p)
{
	profile_free(p);
}

static inline struct profile *made_profile(uint64_t rate_bytes)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_set_heap_types(p, rate_bytes), 0);
	return unit_keep(p, release_profile);
}

static inline uint32_t made_mapping(struct profile *p, const char *file)
{
	struct profile_mapping m = { .limit = UINT64_MAX, .filename_str = profile_str(p, file) };

	assert_int_equal(vec_push(&p->mappings, m), 0);
	return p->mappings.cnt - 1;
}

struct made_place {
	const char *function, *source; /* NULL or "": not known */
	int64_t line;
	uint64_t address;
};

/* Its location, for profile_add_sample(). mapping: HT_NO_INDEX, in no file. */
static inline uint32_t made_location(struct profile *p, uint32_t mapping, struct made_place at)
{
	bool has_name = at.function && at.function[0];
	struct profile_function f = { .name_str = has_name ? profile_str(p, at.function) : 0,
				      .filename_str = at.source ? profile_str(p, at.source) : 0 };
	struct profile_line line = { .function = p->functions.cnt, .line = at.line };
	struct profile_location l = { .mapping = mapping,
				      .address = at.address,
				      .line_first = p->lines.cnt,
				      .line_cnt = has_name };

	assert_int_equal(vec_push(&p->functions, f), 0);
	assert_int_equal(vec_push(&p->lines, line), 0);
	assert_int_equal(vec_push(&p->locations, l), 0);
	return p->locations.cnt - 1;
}

/* A function in no file, at an address of its own. */
static inline uint32_t made_function(struct profile *p, const char *function)
{
	return made_location(p, HT_NO_INDEX,
			     (struct made_place){ .function = function,
						  .address = 0x1000 + 16 * p->locations.cnt });
}

/* A function of /bin/app with a line of /src/app.c. */
static inline uint32_t made_frame(struct profile *p, const char *function, int64_t line)
{
	return made_location(p, made_mapping(p, "/bin/app"),
			     (struct made_place){ function, "/src/app.c", line, 0 });
}

static inline struct profile_label text_label(struct profile *p, const char *key, const char *text)
{
	return (struct profile_label){ .key_str = profile_str(p, key),
				       .str = profile_str(p, text) };
}

static inline struct profile_label number_label(struct profile *p, const char *key, int64_t number)
{
	return (struct profile_label){ .key_str = profile_str(p, key), .num = number };
}

/* So many samples of small blocks. */
static inline struct history_life made_life(uint32_t first, uint32_t last, uint64_t samples,
					    uint64_t rate_bytes)
{
	double bytes = (double)samples * (double)rate_bytes;

	return (struct history_life){ first, last, samples, bytes, bytes * (double)rate_bytes };
}

/* A sample with lives: in use is what lives at the last moment. */
static inline void made_lives(struct profile *p, const uint32_t *locs, size_t loc_cnt,
			      const char *scope, const struct history_life *lives, size_t cnt)
{
	struct profile_label label = text_label(p, "scope", scope ? scope : "");
	int64_t values[PROFILE_VALUE_CNT] = { 0 };
	struct profile_sample *s;
	double variance = 0;
	uint64_t samples = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (lives[i].last + 1 < p->moments_ns.cnt)
			continue;
		samples += lives[i].samples;
		variance += lives[i].variance;
		values[PROFILE_INUSE_SPACE] += (int64_t)lives[i].bytes;
		values[PROFILE_INUSE_OBJECTS] += (int64_t)lives[i].samples;
	}
	assert_int_equal(profile_add_sample(p, locs, loc_cnt, values, &label, !!scope, &s), 0);
	s->has_error = true;
	s->inuse_samples = samples;
	s->inuse_bytes_variance = variance;
	assert_int_equal(profile_add_lives(p, lives, cnt), 0);
}

/* As it comes out of a file, which keeps all rules. */
static inline struct profile *reread(const struct profile *p)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	static char bytes[1 << 16];
	struct profile *again = NULL;
	struct err why;
	ssize_t n;

	assert_true(fd >= 0);
	assert_int_equal(pprof_write(p, fd), 0);
	n = pread(fd, bytes, sizeof(bytes), 0);
	assert_true(n > 0 && (size_t)n < sizeof(bytes));
	close(fd);
	if (pprof_check(bytes, (size_t)n, &why) || pprof_read_mem(bytes, (size_t)n, &again, &why))
		fail_msg("%s", why.text);
	return unit_keep(again, release_profile);
}

static inline void release_report(void *r)
{
	report_close(r);
}

static inline struct report *open_report(const struct profile *p, const struct report_options *opts)
{
	struct report *r;

	assert_int_equal(report_open(p, opts, &r), 0);
	return unit_keep(r, release_report);
}

static inline char *report_text(const struct profile *p, const struct report_options *opts)
{
	return printed(out, assert_int_equal(report_write(p, opts, out), 0));
}

#endif
