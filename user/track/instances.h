/* SPDX-License-Identifier: MIT */
/*
 * instances.h - the tracked images: {tgid, generation}, and what is known of each.
 *
 * An exec makes a new image. Ended images stay known until they are forgotten, because their
 * samples are still there.
 */
#ifndef HT_TRACK_INSTANCES_H
#define HT_TRACK_INSTANCES_H

#include "base/std.h"
#include "base/hmap.h"
#include "base/vec.h"
#include "heaptap/abi.h"

struct process_info;
struct tag_keys;

/* Sums over the descriptors of a process, since it began. */
struct scope_counters {
	uint64_t overflows; /* names that did not fit into the program's node table */
	uint64_t underflows; /* pops without a push */
	uint64_t truncations; /* pushes deeper than scopes are kept apart */
};

struct track_instance {
	pid_t pid;
	uint32_t generation;
	char comm[HT_COMM_BYTES];
	char *exe; /* as the target sees it; "" = unknown */
	char called[16]; /* as struct process_info */
	struct tag_keys *tag_keys; /* names of its threads' label keys; NULL: not known */
	struct scope_counters scope_counters; /* as last read */
	uint64_t rss_begin_bytes,
		file_begin_bytes; /* resident when first read, and its pages of files; 0: not known */
	uint64_t exec_ns; /* when its exec was seen; 0: it was not */
	/* From exec_ns until then it ran before it was probed, or until it ended: allocations may
	 * be missing. 0: it did not. */
	uint64_t unseen_until_ns;
	uint64_t late_ns; /* when it was probed late, before its exec was heard of; 0: it was not */
	/* CLOCK_MONOTONIC when its own sampler reported the first sample; 0: it has no sampler that
	 * reports. */
	uint64_t sampler_ns;
	uint64_t sampler_rate_bytes; /* as the sampler reports it; 0: not known */
	bool is_tapped; /* sampler_ns and sampler_rate_bytes are the tap's */
	bool is_tap_refused; /* it could not be tapped, and is probed */
	bool is_tap_awaited; /* it is tapped, or was to be */
	uint64_t tap_gap_ns; /* it was probed before; so long, what it allocated is not known to be in use */
	bool is_tap_of_other; /* what it allocates counts for the process whose memory it is in */
	uint64_t tap_late_ns; /* from its exec or fork until it was tapped; 0: it ran already */
	uint64_t tap_stopped_ns; /* how long putting the tap in stopped the process */
	uint32_t tap_thread_cnt;
	char tap_missed[160]; /* tap_code_missed() of the first of its allocators that missed any */
	uint64_t tap_dropped_cnt, tap_failed_cnt; /* as struct tap_lost */
	/* What it had in use then was taken out, because its frees would not be seen; 0: it was not */
	uint64_t inuse_since_ns;
	char sampler[16]; /* USDT provider of its sampler */
	/* Files with an allocator whose functions have no names: their number, what is said of the first, and whether
	 * frees go unseen */
	uint32_t unseen_cnt;
	bool is_unseen_closed; /* the text below is about a file that could not be opened */
	bool has_unseen_frees;
	char unseen[352];
	/* Files with an allocator that it mapped before they were probed (late_files.c): their number, and the path of the one
	 * that was mapped longest before; UINT64_MAX: it is never probed */
	uint32_t late_file_cnt;
	uint64_t late_file_ns;
	char late_file[192];
	/* Memory that its runtime manages itself, and how it is seen; "": none, or not known */
	char own_heap[352];
	uint32_t runtime; /* enum runtime_kind */
	bool was_read; /* its mappings were read, and all files in them */
	/* Its mappings and all files in them were read after it had mapped its libraries: what comes later is from dlopen() */
	bool is_settled;
	/* It is held whenever its loader has mapped libraries, before their code runs */
	bool has_loader;
	/* If so held, no code of the files that were probed late has run yet */
	bool may_be_in_time;
	bool is_leaving; /* see instances_note_over() */
};

struct instances {
	VEC(struct track_instance) list; /* in the order of their first sight */
	struct hmap idx; /* {pid, generation} -> index in it */
	struct hmap lives; /* {pid, generation / HT_GENERATION_STEP} -> the newest generation */
};

void instances_init(struct instances *is);
void instances_release(struct instances *is);

/* NULL: not known. Valid until the next get or forget. */
struct track_instance *instances_find(const struct instances *is, pid_t pid, uint32_t generation);
/* Find or make an instance. NULL: out of memory. */
struct track_instance *instances_get(struct instances *is, pid_t pid, uint32_t generation);

/* Has the process executed another program since? Then nothing of the image is in use. */
bool instances_is_replaced(const struct instances *is, pid_t pid, uint32_t generation);

/* What is said of the late files of a process. */
#define LATE_FILES_WORDS 416
const char *late_files_words(const struct track_instance *inst, char buf[LATE_FILES_WORDS]);
/* Takes ownership of keys. */
void instance_set_keys(struct track_instance *inst, struct tag_keys *keys);

/* BPF saw it begin, so its name is known whatever happens later. event: HT_EVENT_EXEC or HT_EVENT_FORK. */
void instances_note_begin(struct instances *is, pid_t pid, uint32_t generation,
			  const struct ht_event *event);
/* Its mappings were read at read_ns, and the files in them are probed; is_whole: no file has still to be read. */
void instances_note_read(struct instances *is, pid_t pid, uint32_t generation, uint64_t read_ns,
			 bool is_whole);
/* First: it will be held whenever its loader has mapped libraries. Second: it was held for that;
 * is_held: it still is. */
void instances_note_loader(struct instances *is, pid_t pid, uint32_t generation);
void instances_note_loaded(struct instances *is, pid_t pid, uint32_t generation, bool is_held);
/* Probes were attached while it ran; was_held: it was held for them, for too short a time. Call it before the read is
 * noted for which they were. */
void instances_note_late(struct instances *is, pid_t pid, uint32_t generation, bool was_held);
/* It has ended, or was replaced. */
void instances_note_end(struct instances *is, pid_t pid, uint32_t generation, uint64_t end_ns);

/* Mark the instances for which is_over returns true; forget them once nothing refers to them. */
typedef bool (*instances_over_fn)(void *ctx, pid_t pid, uint32_t generation);
void instances_note_over(struct instances *is, instances_over_fn is_over, void *ctx);
int instances_forget_noted(struct instances *is);

#endif
