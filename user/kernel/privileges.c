/* SPDX-License-Identifier: MIT */
/*
 * privileges.c - capabilities, lockdown and the sysctls that matter, as they are now.
 *
 * Reports what is set; features.c tries whether something really works.
 */
#include "kernel/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES 8192

static const struct capability_info infos[] = {
	{ "CAP_BPF", CAP_BPF, "loads BPF programs and makes their maps", true },
	{ "CAP_PERFMON", CAP_PERFMON, "attaches probes, sees mappings as they happen", true },
	{ "CAP_SYS_PTRACE", CAP_SYS_PTRACE, "reads /proc of other users' processes", true },
	{ "CAP_SYS_ADMIN", CAP_SYS_ADMIN,
	  "replaces CAP_BPF, CAP_PERFMON and CAP_CHECKPOINT_RESTORE", false },
	{ "CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, "opens deleted and replaced files",
	  false },
	{ "CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH,
	  "reads executables and debug files that only others may read", false },
};

const struct capability_info *capability_infos(size_t *ret_cnt)
{
	*ret_cnt = sizeof(infos) / sizeof(*infos);
	return infos;
}

static int read_file(const char *path, char buf[static FILE_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, FILE_BYTES - 1);
	if (n < 0)
		err = -errno;
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return err;
}

static int read_sysctl(const char *path)
{
	char buf[FILE_BYTES], *end;
	long v;

	if (read_file(path, buf))
		return INT_MIN;
	v = strtol(buf, &end, 10);
	return end == buf ? INT_MIN : (int)v;
}

/* "none [integrity] confidentiality": the one in brackets is in effect. */
static void read_lockdown(char *buf, size_t buf_bytes)
{
	char text[FILE_BYTES], *open, *close;

	buf[0] = '\0';
	if (read_file("/sys/kernel/security/lockdown", text))
		return;
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (close)
		snprintf(buf, buf_bytes, "%.*s", (int)(close - open - 1), open + 1);
}

/* The first user namespace maps all 2^32 - 1 ids onto themselves. */
static bool is_in_user_namespace(void)
{
	unsigned long inside, outside, cnt;
	char buf[FILE_BYTES], *p = buf;

	if (read_file("/proc/self/uid_map", buf))
		return false;
	inside = strtoul(p, &p, 10);
	outside = strtoul(p, &p, 10);
	cnt = strtoul(p, &p, 10);
	return inside != 0 || outside != 0 || cnt != UINT32_MAX;
}

int privileges_read(struct privileges *ret)
{
	struct privileges p = { .uid = geteuid() };
	char buf[FILE_BYTES], *line;
	int err;

	err = read_file("/proc/self/status", buf);
	if (err)
		return err;
	line = strstr(buf, "\nCapEff:");
	if (!line)
		return -ENODATA;
	p.capabilities = strtoull(line + strlen("\nCapEff:"), NULL, 16);
	read_lockdown(p.lockdown, sizeof(p.lockdown));
	p.perf_event_paranoid = read_sysctl("/proc/sys/kernel/perf_event_paranoid");
	p.kptr_restrict = read_sysctl("/proc/sys/kernel/kptr_restrict");
	p.unprivileged_bpf_disabled = read_sysctl("/proc/sys/kernel/unprivileged_bpf_disabled");
	p.ptrace_scope = read_sysctl("/proc/sys/kernel/yama/ptrace_scope");
	p.in_user_namespace = is_in_user_namespace();
	*ret = p;
	return 0;
}

bool privileges_have(const struct privileges *p, int capability)
{
	return p->capabilities >> capability & 1;
}

bool privileges_suffice(const struct privileges *p, char *missing, size_t missing_bytes)
{
	size_t i, len = 0;

	missing[0] = '\0';
	for (i = 0; i < sizeof(infos) / sizeof(*infos); i++) {
		bool has = privileges_have(p, infos[i].number);

		if (infos[i].number == CAP_BPF || infos[i].number == CAP_PERFMON)
			has = has || privileges_have(p, CAP_SYS_ADMIN);
		if (!infos[i].is_required || has || len >= missing_bytes)
			continue;
		len += (size_t)snprintf(missing + len, missing_bytes - len, "%s%s", len ? ", " : "",
					infos[i].name);
	}
	return !missing[0];
}

const char *privileges_perf_advice(int err)
{
	struct privileges p;

	if (err != -EACCES || privileges_read(&p) ||
	    p.perf_event_paranoid <= PERF_EVENT_PARANOID_PERFMON ||
	    privileges_have(&p, CAP_SYS_ADMIN))
		return "";
	return "; with kernel.perf_event_paranoid above 2 this kernel requires CAP_SYS_ADMIN: "
	       "sysctl kernel.perf_event_paranoid=2";
}
