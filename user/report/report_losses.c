/* SPDX-License-Identifier: MIT */
/* report_losses.c - see report_losses.h. */
#include "report/report_losses.h"

#include "base/names.h"
#include "profile/profile.h"

/* Does another line tell this counter? (In-use is unknown, the program paused, or the same in samples.) */
static bool is_said_elsewhere(const char *name)
{
	static const char *const names[] = { "alloc_only_samples", "paused", "live_full_bytes" };

	return equals_one_of(name, names, ARRAY_CNT(names));
}

static bool read_loss(const char *comment, struct report_loss *ret)
{
	char name[64];
	int used = 0;

	if (strncmp(comment, REPORT_LEDGER, strlen(REPORT_LEDGER)) != 0 ||
	    sscanf(comment, REPORT_LEDGER "%63s %llu (%n", name, &ret->cnt, &used) != 2 ||
	    !ret->cnt || is_said_elsewhere(name))
		return false;
	ret->text = comment + strlen(REPORT_LEDGER);
	ret->meaning = used ? comment + used : "of an unknown kind)";
	return true;
}

size_t report_find_losses(const struct profile *p, struct report_loss *ret_largest)
{
	struct report_loss loss;
	const int64_t *id;
	size_t cnt = 0;

	*ret_largest = (struct report_loss){ 0 };
	vec_each(&p->comments, id) {
		if (!read_loss(profile_text(p, *id), &loss))
			continue;
		cnt++;
		if (loss.cnt > ret_largest->cnt)
			*ret_largest = loss;
	}
	return cnt;
}

/* names: NULL at the end. */
static bool has_one_of(const struct profile *p, const char *const *names)
{
	struct report_loss loss;
	const int64_t *id;

	vec_each(&p->comments, id) {
		if (!read_loss(profile_text(p, *id), &loss))
			continue;
		for (size_t i = 0; names[i]; i++)
			if (!strncmp(loss.text, names[i], strlen(names[i])) &&
			    loss.text[strlen(names[i])] == ' ')
				return true;
	}
	return false;
}

bool report_lacks_stacks(const struct profile *p)
{
	static const char *const names[] = { "stacks_full", "stack_collisions", "share_stacks",
					     NULL };

	return has_one_of(p, names);
}

bool report_lacks_blocks(const struct profile *p)
{
	static const char *const names[] = { "live_full", "share_live", "scratch_busy",
					     "pending_full", NULL };

	return has_one_of(p, names);
}

bool report_lacks_processes(const struct profile *p, bool counts_ended)
{
	static const char *const names[] = { "tap_late", "tap_never", NULL };
	static const char *const living[] = { "tap_late", NULL };

	return has_one_of(p, counts_ended ? names : living);
}

bool report_has_losses(const struct profile *p)
{
	struct report_loss largest;

	return report_find_losses(p, &largest) > 0;
}
