/* SPDX-License-Identifier: MIT */
/* privileges.h - what this process may do, and what the system forbids everybody. */
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
	bool in_user_namespace; /* capabilities there do not count for BPF and perf */
};

int privileges_read(struct privileges *ret);
bool privileges_have(const struct privileges *p, int capability);
/* All capabilities that recording another process needs; else the missing ones in missing. */
bool privileges_suffice(const struct privileges *p, char *missing, size_t missing_bytes);

/* Up to this kernel.perf_event_paranoid CAP_PERFMON does; Debian's and Ubuntu's kernels know more of it, and
 * want CAP_SYS_ADMIN then. */
#define PERF_EVENT_PARANOID_PERFMON 2

/* Can a perf event be opened? 0, or the error of perf_event_open(). */
int privileges_try_perf_event(void);
/* What can be done about that error: a sentence's end for the user, or "". */
const char *privileges_perf_advice(int err);

#endif
