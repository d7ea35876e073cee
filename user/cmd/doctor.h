/* SPDX-License-Identifier: MIT */
/* cmd/doctor.h - what the parts of `heaptap doctor` share: the facts, the conclusions, and two ways to print them. */
#ifndef HT_CMD_DOCTOR_H
#define HT_CMD_DOCTOR_H

#include <sys/utsname.h>

#include "base/std.h"
#include "base/err.h"
#include "base/vec.h"
#include "kernel/attach.h"
#include "kernel/features.h"
#include "kernel/privileges.h"
#include "proc/runtime_kind.h"
#include "proc/process.h"
#include "proc/survey.h"
#include "track/policy.h"

enum doctor_level {
	DOCTOR_NOTE, /* nothing is missing, but worth knowing */
	DOCTOR_LIMIT, /* recording works; something will be missing or expensive */
	DOCTOR_BLOCK, /* recording is impossible */
};

struct doctor_finding {
	enum doctor_level level;
	char what[512];
	char advice[384]; /* what to do about it, "" = nothing */
};

struct doctor_report {
	uint64_t pid; /* of -p; 0: the machine only */
	bool is_json, is_verbose, removes_tap; /* options, too */

	struct utsname uts;
	long cpu_cnt;
	struct kernel_features features;
	bool has_mode, has_costs;
	enum attach_mode mode;
	struct probe_costs costs;
	struct privileges privileges;
	char missing_capabilities[128];

	/* of the process */
	int process_err; /* of process_info_read(), process_check() or survey_process() */
	struct err process_why;
	bool has_info;
	struct process_info info;
	bool seccomp_kills_returns; /* a return probe would end the process */
	struct survey *survey; /* NULL: could not be made */
	struct heap_kind heap; /* what the survey lacks: its runtime */

	int columns; /* width of the text, 0 = the default */

	enum doctor_level verdict; /* the gravest finding's */
	VEC(struct doctor_finding) findings; /* gravest first */
	struct doctor_finding no_room; /* what there is no memory for */
	int find_err;
};

int doctor_find(struct doctor_report *r);
uint32_t doctor_cnt(const struct doctor_report *r, enum doctor_level level);

bool doctor_has_feature(const struct doctor_report *r, const struct feature_info *info);

/* Expected ns of one call while recording; 0 = not known. */
double doctor_site_ns(const struct doctor_report *r, const struct alloc_site *site);
/* The same for a malloc and a free of this allocator; 0 = it lacks one of them, or costs are not known. */
double doctor_pair_ns(const struct doctor_report *r, const struct alloc_file *af);

/* Expected ns of a hit of one process, when process_cnt processes are followed at one library, with this sharing; 0
 * = it is not possible, or costs are not known. */
double doctor_sharing_ns(const struct doctor_report *r, enum sharing sharing, size_t process_cnt);
#define DOCTOR_SHARING_CNTS 4
extern const size_t doctor_sharing_process_cnts[DOCTOR_SHARING_CNTS];

/* Does the program exclude all its allocations from recording (heaptap_pause_all)? */
bool doctor_is_paused(const struct survey_tag *tag);
/* Number of paths that the program has ever entered, labels included, without the root. */
uint32_t doctor_node_cnt(const struct survey_tag *tag);

void doctor_print_text(const struct doctor_report *r, FILE *out);
void doctor_print_json(const struct doctor_report *r, FILE *out);

#endif
