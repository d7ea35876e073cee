/* SPDX-License-Identifier: MIT */
/* jvm_names.c - see recorder_priv.h. */
#include "record/recorder_priv.h"

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/log.h"
#include "proc/runtime_kind.h"
#include "proc/process.h"
#include "track/tracker.h"

static void ask(pid_t pid, size_t *jvm_cnt)
{
	struct process_info info;
	struct err why;

	if (process_info_read(pid, &info) || info.is_zombie || !jvm_is_hotspot(&info))
		return;
	++*jvm_cnt;
	if (jvm_write_perfmap(&info, &why))
		log_warn("record: no function names from the JVM %d (%s): %s", pid, info.comm,
			 why.text);
}

void jvm_names_ask(const struct tracker *t)
{
	size_t jvm_cnt = 0;

	for (size_t i = 0; i < tracker_running_cnt(t); i++)
		ask(tracker_running_at(t, i), &jvm_cnt);
	if (!jvm_cnt)
		log_warn("record: --jvm-perfmap: no JVM runs any more, or none was recorded");
}
