/* SPDX-License-Identifier: MIT */
/* limits_priv.h - the parts of limits.c. */
#ifndef HT_REPORT_LIMITS_PRIV_H
#define HT_REPORT_LIMITS_PRIV_H

#include "report/limits.h"

/* A result whose values are unknown. */
struct limit_result *limits_add_result(struct limits *l, enum limit_kind kind);
/* Add a named row. The name goes into texts of one line. 0 or -ENOMEM. */
int limits_add_row(struct limit_result *res, const char *name, double value, double low,
		   double high);

/* limits_rows.c: what is resident by row. */

int limits_judge_unexplained(struct limits *l);
int limits_judge_retained(struct limits *l);

#endif
