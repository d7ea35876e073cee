/* SPDX-License-Identifier: MIT */
/*
 * cmd/doctor.h - what the parts of `heaptap doctor` share: the facts, what follows from them, and
 * the two ways to print both.
 */
#ifndef HT_CMD_DOCTOR_H
#define HT_CMD_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "base/err.h"
#include "base/vec.h"
#include "kernel/attach.h"
#include "kernel/features.h"
#include "kernel/privileges.h"
#include "proc/heap_kind.h"
#include "proc/process.h"
#include "proc/survey.h"
#include "track/plan.h"

struct alloc_file;
struct alloc_site;
struct survey_tag;

enum doctor_level {
	DOCTOR_NOTE, /* nothing is missing, but good to know */
	DOCTOR_LIMIT, /* it can be recorded, something will be missing or dear */
	DOCTOR_BLOCK, /* it cannot be recorded */
};

struct doctor_finding {
	enum doctor_level level;
	char what[512];
	char advice[384]; /* what to do about it, "" = nothing */
};

struct doctor_report {
	struct utsname uts;
	long cpu_cnt;
	struct kernel_features features;
	bool has_mode, has_costs;
	enum attach_mode mode;
	struct probe_costs costs;
	struct privileges privileges;
	char missing_capabilities[128];

	bool has_process; /* -p was given: the rest is filled */
	pid_t pid;
	int process_err; /* of process_info_read(), process_check() or survey_process() */
	struct err process_why;
	bool has_info;
	struct process_info info;
	bool seccomp_kills_returns; /* a return probe would end the process */
	struct survey *survey; /* NULL: could not be made */
	struct heap_kind heap; /* what the survey does not tell: its runtime */

	int columns; /* of the text, 0 = the default */
	bool is_verbose; /* the text has every fact */

	enum doctor_level verdict; /* the gravest of the findings */
	VEC(struct doctor_finding) findings; /* gravest first */
};

int doctor_find(struct doctor_report *r);
uint32_t doctor_cnt(const struct doctor_report *r, enum doctor_level level);

bool doctor_has_feature(const struct doctor_report *r, const struct feature_info *info);
/* Without a BPF program that can be loaded nothing else can be tried. */
bool doctor_tries_feature(const struct doctor_report *r, const struct feature_info *info);

/* Expected ns of one call while it is recorded; 0 = not known. */
double doctor_site_ns(const struct doctor_report *r, const struct alloc_site *site);
/* Of a malloc and a free of this allocator; 0 = it has not got both, or costs are not known. */
double doctor_pair_ns(const struct doctor_report *r, const struct alloc_file *af);

/* Expected ns of a hit of one of so many processes that are followed at one library, attached to in
 * that way; 0 = it cannot be, or costs are not known. */
double doctor_sharing_ns(const struct doctor_report *r, enum sharing sharing, size_t process_cnt);
#define DOCTOR_SHARING_CNTS 4
extern const size_t doctor_sharing_process_cnts[DOCTOR_SHARING_CNTS];

/* Does the program keep all of its allocations from being recorded (heaptap_pause_all)? */
bool doctor_is_paused(const struct survey_tag *tag);
/* Paths that the program has ever entered, labels included; the root is not one. */
uint32_t doctor_node_cnt(const struct survey_tag *tag);

void doctor_print_text(const struct doctor_report *r, FILE *out);
void doctor_print_json(const struct doctor_report *r, FILE *out);

#endif
