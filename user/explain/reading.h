/* SPDX-License-Identifier: MIT */
/* explain/reading.h - an explanation as a recording keeps it: its rows with short labels. */
#ifndef HT_EXPLAIN_READING_H
#define HT_EXPLAIN_READING_H

#include <stdint.h>
#include <sys/types.h>

#include "profile/resident_rows.h"

struct explanation;

/* explain_process(), in a child as there. If it fails, the reading is not known. */
void explain_read(pid_t pid, uint64_t limit_ns, struct resident_reading *ret);

#endif
