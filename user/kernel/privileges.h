/* SPDX-License-Identifier: MIT */
/* privileges.h - what this process may do, and what the system forbids to all processes. */
#ifndef HT_KERNEL_PRIVILEGES_H
#define HT_KERNEL_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capability_info {
	const char *name; /* "CAP_BPF" */
	int number;
	const char *purpose;
	bool is_required; /* CAP_SYS_ADMIN stands in for some: see privileges_suffice() */
};
const struct capability_info *capability_infos(size_t *ret_cnt);

struct privileges {
	uint32_t uid; /* effective */
	uint64_t capabilities; /* effective, bit = number */
	char lockdown[32]; /* "none", "integrity", "confidentiality"; "" = unknown */
	/* INT_MIN = unknown */
	int perf_event_paranoid, kptr_restrict, unprivileged_bpf_disabled, ptrace_scope;
	bool in_user_namespace; /* capabilities in a user namespace do not count for BPF and perf */
};

int privileges_read(struct privileges *ret);
bool privileges_have(const struct privileges *p, int capability);
/* Does the process have all capabilities that recording another process needs? If not, the missing ones are in
 * missing. */
bool privileges_suffice(const struct privileges *p, char *missing, size_t missing_bytes);

/* CAP_PERFMON is enough up to this kernel.perf_event_paranoid. Debian's and Ubuntu's kernels have higher
 * levels, which want CAP_SYS_ADMIN. */
#define PERF_EVENT_PARANOID_PERFMON 2

/* What the user can do about an error of perf_event_open(): the end of a sentence, or "". */
const char *privileges_perf_advice(int err);

#endif
