/* SPDX-License-Identifier: MIT */
/* fuzz_process.c - a process whose files in /proc hold anything. */
#include "fuzz.h"

#include "base/err.h"
#include "made_proc.h"
#include "proc/process.h"

/* No thread of it is really there, so that nothing but what is made is read. */
#define PID 4194305

static void check_text(const char *text, size_t cap)
{
	if (strnlen(text, cap) == cap)
		abort();
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			abort();
}

static void check_info(const struct process_info *info)
{
	struct err why;

	check_text(info->comm, sizeof(info->comm));
	check_text(info->container_id, sizeof(info->container_id));
	if (strnlen(info->exe, sizeof(info->exe)) == sizeof(info->exe))
		abort();
	why.text[0] = '\0';
	if (process_check(info, &why) && !why.text[0])
		abort();
	check_text(why.text, sizeof(why.text));
}

static void check_argv(void)
{
	char args[256], *env;
	size_t bytes;

	if (!process_read_cmdline(NULL, PID, args, sizeof(args), &bytes) &&
	    (bytes >= sizeof(args) || args[bytes]))
		abort();
	if (!process_read_environ(NULL, PID, &env, &bytes)) {
		if (!bytes || env[bytes - 1])
			abort();
		free(env);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct made_file files[] = { { .name = "stat" },    { .name = "status" },
				     { .name = "limits" },  { .name = "cgroup" },
				     { .name = "cmdline" }, { .name = "smaps_rollup" },
				     { .name = "environ" }, { .name = "exe" } };
	struct process_info info, glance;
	int err, glance_err;

	made_proc_split(files, sizeof(files) / sizeof(*files), data, bytes);
	err = process_info_read(NULL, PID, &info);
	glance_err = process_glance(NULL, PID, &glance);
	if (err > 0 || glance_err > 0 || (!err && glance_err))
		abort();
	if (!err) {
		check_info(&info);
		process_read_pss(&info);
	}
	if (!err && (info.tgid != glance.tgid || info.ppid != glance.ppid ||
		     strcmp(info.comm, glance.comm) || info.uid != glance.uid ||
		     info.start_time_ticks != glance.start_time_ticks))
		abort();
	check_argv();
	made_file_cnt = 0;
	return 0;
}
