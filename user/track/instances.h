/* SPDX-License-Identifier: MIT */
/*
 * instances.h - the images that were tracked: {tgid, generation} and what is known of them.
 *
 * Exec makes a new one. They stay known after they have ended, because their samples are still
 * there, until they are forgotten.
 */
#ifndef HT_TRACK_INSTANCES_H
#define HT_TRACK_INSTANCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hmap.h"
#include "base/vec.h"
#include "heaptap/abi.h"
#include "track/process_tags.h"

struct process_info;
struct tag_keys;

struct track_instance {
	pid_t pid;
	uint32_t generation;
	char comm[HT_COMM_BYTES];
	char *exe; /* as the target sees it; "" = unknown */
	struct tag_keys *tag_keys; /* names of the keys of its threads' labels; NULL: not known */
	struct scope_counters scope_counters; /* as last read */
	uint64_t exec_ns; /* when it began by an exec that was seen; 0: not so */
	/* From exec_ns until then it ran before it was probed, or until it ended: what it allocated may be
	 * missing. 0: not so. */
	uint64_t unseen_until_ns;
	uint64_t late_ns; /* when it came to be probed, before its exec was heard of; 0: not so */
	/* Its own sampler told of the first sample then, CLOCK_MONOTONIC; 0: it has none, or none that tells. */
	uint64_t sampler_ns;
	uint64_t sampler_rate_bytes; /* as it says; 0: not known */
	bool is_tapped; /* sampler_ns and sampler_rate_bytes are of the tap then */
	bool is_tap_refused; /* it is probed */
	uint64_t tap_late_ns; /* from its exec, or its fork, until it was tapped; 0: it ran before */
	uint64_t tap_stopped_ns; /* how long the process was stopped for that */
	uint32_t tap_thread_cnt;
	char tap_missed[160]; /* tap_code_missed() of its allocators, the first that has any */
	uint64_t tap_dropped_cnt, tap_failed_cnt; /* as struct tap_lost */
	uint64_t forgotten_cnt; /* samples of its allocator that were taken out then */
	char sampler[16]; /* its USDT provider */
	bool was_read; /* its mappings */
	bool has_loader; /* it is held whenever that has mapped libraries, before it runs any of their code */
	bool may_be_in_time; /* of what has come late nothing has run yet, if it is held so */
	bool is_leaving; /* see instances_note_over() */
};

struct instances {
	VEC(struct track_instance) list; /* in the order in which they were seen */
	struct hmap idx; /* {pid, generation} -> index in it */
	struct hmap lives; /* {pid, generation / HT_GENERATION_STEP} -> the newest generation */
};

void instances_init(struct instances *is);
void instances_release(struct instances *is);

/* NULL: not known. Good until the next get or forget. */
struct track_instance *instances_find(const struct instances *is, pid_t pid, uint32_t generation);
/* Made when it is new; NULL: out of memory. */
struct track_instance *instances_get(struct instances *is, pid_t pid, uint32_t generation);

/* Has the process executed another program since? Then nothing that the image held is in use. */
bool instances_is_replaced(const struct instances *is, pid_t pid, uint32_t generation);

/*
 * Add what /proc says of it. What is known stays: in the middle of an exec /proc has the new
 * image's names while the generation is still the old one's.
 */
int instance_describe(struct track_instance *inst, const struct process_info *info);
/* keys becomes the instance's. */
void instance_set_keys(struct track_instance *inst, struct tag_keys *keys);

/* BPF saw it begin: its name is known whatever becomes of it. event: HT_EVENT_EXEC or HT_EVENT_FORK. */
void instances_note_begin(struct instances *is, pid_t pid, uint32_t generation,
			  const struct ht_event *event);
/* Its mappings were read, and what is in them is probed. */
void instances_note_read(struct instances *is, pid_t pid, uint32_t generation);
/* It will be held whenever its loader has mapped libraries; it is held for that, or was until just now. */
void instances_note_loader(struct instances *is, pid_t pid, uint32_t generation);
void instances_note_loaded(struct instances *is, pid_t pid, uint32_t generation, bool is_held);
/* Probes have come into it while it ran, for what it had mapped at read_ns. */
void instances_note_late(struct instances *is, pid_t pid, uint32_t generation, uint64_t read_ns);
/* It has ended, or was replaced. */
void instances_note_end(struct instances *is, pid_t pid, uint32_t generation, uint64_t end_ns);

/* Note those for which is_over says so, and forget them when nothing refers to them any more. */
typedef bool (*instances_over_fn)(void *ctx, pid_t pid, uint32_t generation);
void instances_note_over(struct instances *is, instances_over_fn is_over, void *ctx);
int instances_forget_noted(struct instances *is);

#endif
