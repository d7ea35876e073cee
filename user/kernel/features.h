/* SPDX-License-Identifier: MIT */
/*
 * features.h - what this kernel can do, found by trying, never by its version.
 *
 * Distribution kernels carry backports, and lockdown or missing capabilities take away what a version promises.
 * So a few instructions are loaded, and the kernel is asked to attach them at a place where it cannot; before
 * 6.13 they are attached to functions of this program, and detached again. All of this takes a few
 * milliseconds, before 6.13 some tens.
 */
#ifndef HT_KERNEL_FEATURES_H
#define HT_KERNEL_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/attach.h"

struct kernel_features {
	bool btf; /* /sys/kernel/btf/vmlinux */
	bool bpf; /* programs can be loaded at all */
	bool perf_uprobe; /* perf_event uprobes with a BPF cookie (5.15) */
	bool uprobe_multi; /* many sites, one link (6.6), which sees all threads of a process */
	bool uprobe_session; /* the entry decides about the return (6.13) */
	bool find_vma; /* bpf_find_vma (5.17) */
	bool shared_events; /* uprobes can be defined in tracefs (CONFIG_UPROBE_EVENTS) */
	bool ringbuf;
	bool has_blind_multi; /* uprobe_multi exists, but a link sees one thread only */
	/* about the first feature that is required and missing: what, and what to do */
	struct err why;
};

/* One line per feature, for `doctor`: its name, the first kernel that has it, what happens without it. */
struct feature_info {
	const char *name;
	const char *since;
	const char *without;
	size_t offset; /* of its bool in struct kernel_features */
	bool is_required;
};
const struct feature_info *kernel_feature_infos(size_t *ret_cnt);

/* 0; negative errno only when the trial itself failed. A missing feature is not an error. */
int kernel_features_probe(struct kernel_features *ret);
/* Are all required features there? If not, why says what is missing and what to do. */
bool kernel_features_suffice(const struct kernel_features *f);

/* The best mode of this kernel, or `wanted` when the kernel has it (-ENOTSUP when not). */
int kernel_features_choose_mode(const struct kernel_features *f, enum attach_mode wanted,
				enum attach_mode *ret);

/*
 * The cost of a hit on this machine now, in ns: a probe with an empty program on an emulated instruction, on a
 * single-stepped one, and entry plus return. Takes about 30 ms.
 */
struct probe_costs {
	double emulated_ns;
	double stepped_ns;
	double return_ns; /* in addition to the entry's */
};
int probe_costs_measure(const struct kernel_features *f, struct probe_costs *ret);

/*
 * Does a return probe kill a process that runs under a strict seccomp filter?
 *
 * On some kernels (6.11 and later, until the fix "seccomp: passthrough uretprobe systemcall without filtering"
 * of 6.14 and stables) a return probe ends in a system call that the target's filter sees and refuses. Tried
 * with a child of our own: 0 with the answer, or a negative errno when it could not be tried.
 */
int seccomp_probe_returns(bool *ret_is_safe);

#endif
