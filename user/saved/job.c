/* SPDX-License-Identifier: MIT */
/*
 * job.c - see job.h.
 */
#include "saved/job.h"

#include "heaptap/abi.h"

void saved_usage_set_sums(struct saved_usage *u, const struct ht_image *image)
{
	u->inuse_bytes = image->inuse_bytes_8 > 0 ? (double)image->inuse_bytes_8 / 256 : 0;
	u->peak_bytes = (double)image->peak_bytes_8 / 256;
	u->peak_ns = image->peak_ns;
}

enum saved_need saved_job_need(const struct saved_job *j)
{
	switch (j->name.reason) {
	case KEEP_OOM:
	case KEEP_SIGNAL:
		return KEEP_NEED_DEATH;
	case KEEP_LIMIT:
		return KEEP_NEED_LIMIT;
	default:
		return KEEP_NEED_CALM;
	}
}

bool saved_job_has_inuse(const struct saved_job *j)
{
	return !j->budget.is_known || j->budget.view.has_inuse;
}

bool saved_job_is_last(const struct saved_job *j)
{
	return j->name.reason >= KEEP_OOM;
}

static int class_of(const struct saved_job *j)
{
	switch (saved_job_need(j)) {
	case KEEP_NEED_DEATH:
		return 0;
	case KEEP_NEED_LIMIT:
		return 1;
	default:
		return j->name.reason == KEEP_PEAK ? 3 : 2;
	}
}

int saved_job_by_worth(const void *a, const void *b)
{
	const struct saved_job *x = a, *y = b;

	if (class_of(x) != class_of(y))
		return class_of(x) - class_of(y);
	return (x->usage.inuse_bytes < y->usage.inuse_bytes) -
	       (x->usage.inuse_bytes > y->usage.inuse_bytes);
}
