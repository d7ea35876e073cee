/* SPDX-License-Identifier: MIT */
/*
 * process_tags.h - the tags of one process: where they are, the names of its label keys, and what
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
	uint64_t overflows; /* names that did not fit into the program's node table */
	uint64_t underflows; /* pops without a push */
	uint64_t truncations; /* pushes deeper than scopes are kept apart */
};

/* All zero: the process was not looked at yet. */
struct process_tags {
	VEC(uint64_t) desc_addrs; /* descriptors of heaptap/scope.h */
	VEC(struct ht_tag_source) otel; /* sources of OpenTelemetry's tags */
	uint32_t id_keys; /* tag_keys_ids() of the keys read last */
	bool has_problem; /* something that was read cannot be right... */
	uint32_t problem_tries; /* ... this many times in a row */
	bool is_pending; /* the loader is still working: look again soon */
	uint64_t published_ns; /* when the keys read last were published */
	uint64_t keys_due_ns, keys_wait_ns; /* see process_tags_wants_keys() */
};

/* Call before going through the mappings. Forgets everything but the keys. */
void process_tags_begin(struct process_tags *pt);
/*
 * Tell the engine the tag sources of a mapped file. Errors in them are logged once per file. 0,
 * -ESRCH, or why the process cannot be read.
 */
int process_tags_add_file(struct process_tags *pt, struct engine *e, pid_t pid, pid_t tid,
			  uint32_t generation, struct track_file *file, uint64_t bias,
			  const struct proc_maps *maps);
/*
 * Is it time to look for names of label keys again? Where only records of heaptap/scope.h could
 * have such labels, which is rare, the intervals get longer and longer.
 */
bool process_tags_wants_keys(struct process_tags *pt, uint64_t now_ns);
/* Read the names of label keys. NULL: the same as those read last. The caller releases and frees
 * *ret. Tells the engine which keys not to read. */
int process_tags_read_keys(struct process_tags *pt, struct engine *e, pid_t pid, pid_t tid,
			   uint32_t generation, const struct proc_maps *maps,
			   struct tag_keys **ret);
/* false: the process could not be read. */
bool process_tags_read_counters(const struct process_tags *pt, pid_t tid,
				struct scope_counters *ret);
void process_tags_release(struct process_tags *pt);

#endif
