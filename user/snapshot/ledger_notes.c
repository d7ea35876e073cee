/* SPDX-License-Identifier: MIT */
/* ledger_notes.c - see ledger_notes.h. */
#include "snapshot/ledger_notes.h"

#include <stddef.h>

#include "model/profile.h"

#define STAT_NAME(id, name, meaning) name,
#define STAT_MEANING(id, name, meaning) meaning,
static const char *const names[] = { HT_STATS(STAT_NAME) };
static const char *const meanings[] = { HT_STATS(STAT_MEANING) };

const char *ledger_stat_name(unsigned stat)
{
	return names[stat];
}

const char *ledger_stat_meaning(unsigned stat)
{
	return meanings[stat];
}

int ledger_notes_add(struct profile *p, const uint64_t stats[HT_STAT_CNT])
{
	int err = 0;

	for (size_t i = 0; i < HT_STAT_CNT && !err; i++)
		err = profile_comment(p, "ledger: %s %llu (%s)", names[i],
				      (unsigned long long)stats[i], meanings[i]);
	return err;
}
