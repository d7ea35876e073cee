/* SPDX-License-Identifier: MIT */
/*
 * uapi.h - parts of <linux/bpf.h> that are younger than Debian 12's headers and libbpf 1.1.
 *
 * Values and layout of the kernel's own uapi header: uprobe_multi from commit 89ae89f53d20
 * (6.6), sessions from d920179b3d48 (6.13). bpf(2) takes the size, so the struct is enough.
 */
#ifndef HT_KERNEL_UAPI_H
#define HT_KERNEL_UAPI_H

#include <linux/types.h>

#define UAPI_TRACE_UPROBE_MULTI 48
#define UAPI_TRACE_UPROBE_SESSION 57
#define UAPI_F_UPROBE_MULTI_RETURN 1

struct uapi_link_create_uprobe_multi {
	__u32 prog_fd;
	__u32 target_fd;
	__u32 attach_type;
	__u32 flags;
	__u64 path;
	__u64 offsets;
	__u64 ref_ctr_offsets;
	__u64 cookies;
	__u32 cnt;
	__u32 multi_flags;
	__u32 pid;
	__u32 reserved;
};

#endif
