/* SPDX-License-Identifier: MIT */
/* child.h - the processes that tests start for others to read. */
#ifndef HT_TESTS_CHILD_H
#define HT_TESTS_CHILD_H

#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

/* One that does nothing. */
static inline pid_t start_idle(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

static inline void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif
