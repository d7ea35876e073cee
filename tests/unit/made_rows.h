/* SPDX-License-Identifier: MIT */
/* made_rows.h - readings of resident memory, a profile with two of them, and its report. */
#ifndef HT_TESTS_MADE_ROWS_H
#define HT_TESTS_MADE_ROWS_H

#include "made_profile.h"
#include "profile/resident_words.h"

#define MIB (1LL << 20)

struct planted {
	const char *name, *label;
	enum resident_kind kind;
	int64_t bytes;
};

static inline struct resident_reading reading_of(bool is_proved, const struct planted *rows,
						 size_t cnt)
{
	struct resident_reading r = {
		.is_known = true, .is_proved = is_proved, .has_heap = true, .row_cnt = (uint32_t)cnt
	};

	if (!is_proved)
		snprintf(r.why, sizeof(r.why), "an arena of malloc: torn");
	for (size_t i = 0; i < cnt; i++) {
		snprintf(r.rows[i].name, sizeof(r.rows[i].name), "%s", rows[i].name);
		snprintf(r.rows[i].label, sizeof(r.rows[i].label), "%s", rows[i].label);
		r.rows[i].kind = rows[i].kind;
		r.rows[i].bytes = rows[i].bytes;
		r.rss_bytes += (uint64_t)rows[i].bytes;
	}
	return r;
}
#define READING(is_proved, ...)                                        \
	reading_of(is_proved, (const struct planted[]){ __VA_ARGS__ }, \
		   sizeof((const struct planted[]){ __VA_ARGS__ }) / sizeof(struct planted))

static inline struct resident_reading first(void)
{
	return READING(true, { "live", "live", RESIDENT_LIVE, 95 * MIB },
		       { "pinned", "free kept by glibc", RESIDENT_FREE, 12 * MIB },
		       { "trimmable", "free kept by glibc", RESIDENT_FREE, 8 * MIB },
		       { "anonymous", "mapped directly", RESIDENT_UNOWNED, 10 * MIB },
		       { "files", "files", RESIDENT_OTHER, 16 * MIB });
}

static inline struct resident_reading last(void)
{
	return READING(true, { "live", "live", RESIDENT_LIVE, 143 * MIB },
		       { "trimmable", "free kept by glibc", RESIDENT_FREE, 50 * MIB },
		       { "anonymous", "mapped directly", RESIDENT_UNOWNED, 16 * MIB },
		       { "files", "files", RESIDENT_OTHER, 16 * MIB });
}

static inline struct resident_reading unknown(const char *why)
{
	struct resident_reading r = { 0 };

	snprintf(r.why, sizeof(r.why), "%s", why);
	return r;
}

static inline struct profile *profile_of(struct resident_reading begin, struct resident_reading end)
{
	struct profile *p = made_profile(1);

	p->recording.is_known = true;
	p->recording.pid = 7;
	p->recording.process_cnt = 1;
	p->recording.comm_str = profile_str(p, "server");
	p->recording.duration_ns = p->recording.watched_ns = 10000000000;
	p->recording.rss_begin_bytes = begin.rss_bytes ? begin.rss_bytes : 141 * MIB;
	p->recording.rss_end_bytes = end.rss_bytes ? end.rss_bytes : 225 * MIB;
	assert_int_equal(resident_rows_set(p, &begin, &end), 0);
	return p;
}

static inline char *report_of_columns(const struct profile *p, enum report_format format,
				      size_t columns)
{
	struct report_options o = { .by = REPORT_BY_STACK, .format = format, .columns = columns };

	return report_text(p, &o);
}

static inline char *report_of(const struct profile *p, enum report_format format)
{
	return report_of_columns(p, format, 0);
}

#endif
