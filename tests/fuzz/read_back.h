/* SPDX-License-Identifier: MIT */
/* read_back.h - a profile that was read is one that can be written, and is read again as it was. */
#ifndef HT_FUZZ_READ_BACK_H
#define HT_FUZZ_READ_BACK_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "profile/pprof.h"
#include "profile/profile.h"

static inline void write_and_read_back(const struct profile *p)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	struct profile *again = NULL;
	struct err why;

	if (fd < 0)
		return;
	if (pprof_write(p, fd) || lseek(fd, 0, SEEK_SET) || pprof_read(fd, &again, &why))
		abort();
	if (again->samples.cnt != p->samples.cnt || again->locations.cnt != p->locations.cnt ||
	    again->functions.cnt != p->functions.cnt || again->mappings.cnt != p->mappings.cnt ||
	    again->labels.cnt != p->labels.cnt || again->comments.cnt != p->comments.cnt)
		abort();
	profile_free(again);
	close(fd);
}

#endif
