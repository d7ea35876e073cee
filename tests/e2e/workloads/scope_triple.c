/* SPDX-License-Identifier: MIT */
/* The three of README.md, scope, label and task: 60 queries of three tenants, each of which leaves 9 blocks of 1000. */
#include <heaptap/scope.h>
#include <stdint.h>
#include <stdlib.h>

static void *kept[600];
static size_t kept_cnt;

static void run_query(const char *tenant, uint64_t id)
{
	HEAPTAP_SCOPE("Executor");
	HEAPTAP_LABEL("tenant", tenant);
	{
		HEAPTAP_TASK("query", id);
		for (int i = 0; i < 10; i++)
			kept[kept_cnt++] = malloc(1000);
		free(kept[--kept_cnt]);
	}
	if (id % 2)
		heaptap_task_exit(heaptap_task("query"), id);
}

int main(void)
{
	static const char *const tenants[] = { "acme", "bolt", "corp" };

	for (uint64_t i = 1; i <= 60; i++)
		run_query(tenants[i % 3], i);
	return 0;
}
