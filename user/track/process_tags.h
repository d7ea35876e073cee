/* SPDX-License-Identifier: MIT */
/*
 * process_tags.h - the tags of one process: where they are, how its label keys are called, what
 * its own scope tables could not hold.
 */
#ifndef HT_TRACK_PROCESS_TAGS_H
#define HT_TRACK_PROCESS_TAGS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "heaptap/abi.h"

struct engine;
struct proc_maps;
struct tag_keys;
struct track_file;

/* Sums over the descriptors of a process, since it began. */
struct scope_counters {
	uint64_t overflows; /* names that the program's node table had no room for */
	uint64_t underflows; /* pops without a push */
	uint64_t truncations; /* pushes deeper than scopes are told apart */
};

/* All zero: a process that was not looked at. */
struct process_tags {
	VEC(uint64_t) desc_addrs; /* of heaptap/scope.h */
	VEC(struct ht_tag_source) otel; /* OpenTelemetry's */
	uint32_t id_keys; /* tag_keys_ids() of the keys that were read last */
	bool has_problem; /* something that was read cannot be right... */
	uint32_t problem_tries; /* ... so often in a row */
	bool is_pending; /* the loader is still at work: look again soon */
	uint64_t published_ns; /* of the keys that were read last */
	uint64_t keys_due_ns, keys_wait_ns; /* see process_tags_wants_keys() */
};

/* Before the mappings are gone through: what was known is forgotten, but the keys. */
void process_tags_begin(struct process_tags *pt);
/*
 * Tell the engine of the sources of a mapped file that has tags. What is wrong with them is said
 * in the log, once per file. 0, -ESRCH, or the error that says that the process cannot be read.
 */
int process_tags_add_file(struct process_tags *pt, struct engine *e, pid_t pid, pid_t tid,
			  uint32_t generation, struct track_file *file, uint64_t bias,
			  const struct proc_maps *maps);
/*
 * Is it time to look for names of label keys again? Where only heaptap/scope.h's records could have
 * such labels, which is seldom, less and less often.
 */
bool process_tags_wants_keys(struct process_tags *pt, uint64_t now_ns);
/* The names of label keys, when they are other than those that were read last; else NULL.
 * To be released and freed by the caller. The engine is told which of them are not to be read. */
int process_tags_read_keys(struct process_tags *pt, struct engine *e, pid_t pid, pid_t tid,
			   uint32_t generation, const struct proc_maps *maps,
			   struct tag_keys **ret);
/* false: the process could not be read. */
bool process_tags_read_counters(const struct process_tags *pt, pid_t tid,
				struct scope_counters *ret);
void process_tags_release(struct process_tags *pt);

#endif
