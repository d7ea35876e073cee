/* SPDX-License-Identifier: MIT */
/*
 * filter.h - what a seccomp filter says of a system call: classic BPF, run as the kernel runs it.
 * Source: Documentation/userspace-api/seccomp_filter.rst and networking/filter.rst of the kernel.
 */
#ifndef HT_TAP_FILTER_H
#define HT_TAP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* Returns SECCOMP_RET_* without its data. A filter that the kernel would not take kills. */
uint32_t filter_run(const struct sock_filter *code, size_t cnt, const struct seccomp_data *data);

#endif
