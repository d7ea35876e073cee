/* SPDX-License-Identifier: MIT */
/*
 * keep_list.c - see keep_list.h.
 */
#include "saved/keep_list.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "saved/keep_store.h"
#include "metrics/view.h"

static enum endpoint_moment moment_of(const struct keep_name *n)
{
	return n->reason == KEEP_PEAK  ? ENDPOINT_AT_PEAK :
	       n->reason == KEEP_LIMIT ? ENDPOINT_AT_LIMIT :
					 ENDPOINT_AT_LAST;
}

int keep_list_fetch(const struct keep_store *s, pid_t pid, enum endpoint_moment at)
{
	size_t cnt;
	const struct kept_file *f = keep_store_files(s, &cnt);

	while (cnt--) /* the newest of them */
		if (f[cnt].name.pid == pid && moment_of(&f[cnt].name) == at)
			return keep_store_fetch(s, &f[cnt]);
	return -ENOENT;
}

static void view_file(const struct kept_file *f, struct serve_kept *ret)
{
	char time[KEEP_TIME_BYTES];
	int64_t ms = f->name.taken_epoch_ms;

	ret->pid = f->name.pid;
	ret->bytes = (double)f->bytes;
	ret->inuse_bytes = f->inuse_bytes < 0 ? NAN : f->inuse_bytes;
	ret->at = endpoint_moment_text(moment_of(&f->name));
	memcpy(ret->comm, f->name.comm, sizeof(ret->comm));
	keep_reason_words(&f->name, ret->why, sizeof(ret->why));
	snprintf(ret->time, sizeof(ret->time), "%s", keep_time_text(ms / 1000, -1, time));
}

int keep_list_view(const struct keep_store *s, struct serve_keep *ret)
{
	struct keep_store_stats stats;
	const struct kept_file *f;
	struct serve_kept *kept;
	size_t cnt;

	keep_store_stats(s, &stats);
	f = keep_store_files(s, &cnt);
	kept = calloc(cnt + 1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) /* the newest first */
		view_file(&f[cnt - 1 - i], &kept[i]);
	ret->kept = kept;
	ret->kept_cnt = cnt;
	ret->file_cnt = (double)stats.cnt;
	ret->bytes = (double)stats.bytes;
	ret->memory_bytes = (double)stats.memory_bytes;
	ret->taken_cnt = (double)stats.added_cnt;
	ret->removed_cnt = (double)stats.removed_cnt;
	ret->unwritten_cnt = (double)stats.unwritten_cnt;
	return 0;
}

void keep_list_release(struct serve_keep *v)
{
	free((void *)v->kept);
	memset(v, 0, sizeof(*v));
}
