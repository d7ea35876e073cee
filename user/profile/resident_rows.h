/* SPDX-License-Identifier: MIT */
/*
 * resident_rows.h - the resident memory of a recorded process by what it is, when the recording began and when it ended; of
 * a process that serve follows, when it was first read and when last.
 *
 * explain/ reads it; each reading has rows that add up to RSS. What was not read is unknown, and never 0.
 */
#ifndef HT_PROFILE_RESIDENT_ROWS_H
#define HT_PROFILE_RESIDENT_ROWS_H

#include "base/std.h"
#include "base/vec.h"

/* What a row is for limits and sums. Their numbers are in files. */
enum resident_kind {
	RESIDENT_OTHER, /* it has an owner: stacks, files */
	RESIDENT_LIVE, /* blocks that were not freed */
	RESIDENT_FREE, /* freed, and kept by an allocator */
	RESIDENT_UNREAD, /* an allocator's, which could not be read */
	RESIDENT_UNOWNED, /* mapped, and nobody's that is known */
	RESIDENT_MOVED, /* changed while it was read; may be negative */
	RESIDENT_METADATA, /* of an allocator */
	RESIDENT_KIND_CNT
};

#define RESIDENT_ROW_CAP 32
#define RESIDENT_BYTES_CAP (1LL << 56) /* of a row, so that sums cannot overflow */
#define RESIDENT_NAME_BYTES 24
#define RESIDENT_LABEL_BYTES 40
#define RESIDENT_WHY_BYTES 384

struct resident_reading_row {
	char name[RESIDENT_NAME_BYTES]; /* for programs */
	char label[RESIDENT_LABEL_BYTES]; /* for people; rows of one label are shown as one */
	uint32_t kind; /* enum resident_kind */
	uint32_t reserved;
	int64_t bytes;
};

/* Of some live blocks, how many the samples of a recording stand for. */
struct resident_recorded {
	double cnt, variance;
};

/* Live blocks of one C++ class or, without a name, of one size, or of a span of sizes: spans have all blocks between them. */
#define RESIDENT_SPAN_CAP 24
#define RESIDENT_CLASS_CAP (16 + RESIDENT_SPAN_CAP)
#define RESIDENT_CLASS_BYTES 80
struct resident_reading_class {
	char name[RESIDENT_CLASS_BYTES]; /* a longer one is cut */
	uint64_t from_bytes,
		to_bytes; /* the smallest and largest block, as the program asked for it; of a C++ class the smallest, and 0 */
	uint64_t live_cnt, live_bytes;
	struct resident_recorded recorded;
	uint64_t is_span;
};

/* One reading, as a child hands it over: resident_reading_check() makes a foreign one safe. */
struct resident_reading {
	uint32_t is_known, is_proved; /* proved: all heaps that were found were read and verified */
	uint32_t has_heap; /* one was found, and uses memory */
	uint32_t has_brk; /* there is memory of the break */
	char why[RESIDENT_WHY_BYTES]; /* it is not known, or not proved */
	uint64_t rss_bytes; /* if the rows are not known: the size alone, when it was begun; 0: not known either */
	uint64_t took_ns, cpu_ns; /* cpu_ns: CPU time of the reading child */
	/* Blocks that the program holds, resident or not, as malloc counts them, with their headers. is_counted: these are
	 * all blocks of all allocators that were found, and none of them is in a thread's cache. */
	uint32_t is_counted, row_cnt;
	uint64_t live_cnt, live_bytes, mmapped_cnt;
	/* Of the recording: calls that allocate, or 0 if only samples were seen; calls, or samples, during the reading; and the
	 * coarsest rate that it can have had, in bytes per sample, 0: not known. */
	uint64_t hit_cnt, late_hit_cnt, coarsest_rate_bytes;
	struct resident_reading_row rows[RESIDENT_ROW_CAP];
	/* Of a size or a C++ class those with the most bytes that the recording does not have; and all spans, from the smallest.
	 * None: it is not known. */
	struct resident_reading_class classes[RESIDENT_CLASS_CAP];
	uint32_t class_cnt, reserved;
};

/* The same in a profile, which holds the texts. */
struct resident_look {
	bool is_known, is_proved, is_counted;
	int64_t why_str;
	uint64_t rss_bytes, took_ns, live_cnt, live_bytes, mmapped_cnt;
	uint64_t hit_cnt, late_hit_cnt, coarsest_rate_bytes;
	uint64_t age_ns; /* it was read so long before the profile was made: serve reads now and then */
};

struct resident_row {
	int64_t name_str, label_str;
	enum resident_kind kind;
	int64_t begin_bytes, end_bytes;
};

struct resident_class {
	int64_t name_str;
	uint64_t from_bytes, to_bytes, live_cnt, live_bytes;
	struct resident_recorded recorded;
	bool is_span;
};

struct resident_rows {
	bool is_asked; /* a reading was tried: else the rest means nothing */
	struct resident_look begin, end;
	VEC(struct resident_row) list; /* of both readings */
	VEC(struct resident_class) classes; /* of the end */
};

/* 0, or -EINVAL: it contradicts itself, or its texts are no texts. */
int resident_reading_check(struct resident_reading *reading);

/*
 * Sampled blocks that are in use, and what each of them pins: free memory that cannot be returned before the block is
 * freed, see explain/glibc.h. The child that reads the heap writes `bytes`, which is shared with it, and may write
 * anything there.
 */
/* At the end of a recording 300,000 of these took 0.8 s of processor time. */
#define RESIDENT_PINS_CAP (1u << 20)
struct resident_pin {
	uint64_t addr, time_ns; /* time_ns: when it was allocated */
	double weight; /* blocks that it stands for */
};

struct resident_pins {
	uint64_t image; /* whose they are: tgid << 32 | generation */
	bool is_all; /* the list has all of them: live blocks are counted by class, too */
	VEC(struct resident_pin) list; /* by address, after resident_pins_share() */
	float *bytes; /* of each; NAN: it was found in no heap. NULL: not shared */
	size_t last; /* where resident_pins_found() was */
};

/* All blocks are in the list. 0 or a negative errno; -ENODATA: there are none. */
int resident_pins_share(struct resident_pins *p);
void resident_pins_release(struct resident_pins *p);
/* A heap has a live block at addr; it pins nothing so far. Its number for resident_pins_add(); 0: it is none of these. */
size_t resident_pins_found(struct resident_pins *p, uint64_t addr);
void resident_pins_add(struct resident_pins *p, size_t number, double bytes);
/* How many blocks that one stands for; 0 for none of these. */
double resident_pins_weight(const struct resident_pins *p, size_t number);
void resident_recorded_add(struct resident_recorded *r, double weight);
/* What a block pins; NAN: not known. */
double resident_pins_bytes(const struct resident_pins *p, uint64_t addr, uint64_t time_ns);

#endif
