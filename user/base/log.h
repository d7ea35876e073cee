/* SPDX-License-Identifier: MIT */
/*
 * log.h - messages for the user, on stderr. stdout carries only results.
 *
 * A message says module, what, on what, why: "elf: cannot read '/x': Permission denied", and, if something can be done
 * about it, what. Levels 0 to 2 of user/ never log: they return an error.
 */
#ifndef HT_BASE_LOG_H
#define HT_BASE_LOG_H

#include "base/std.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
enum log_level log_get_level(void);
void log_msg(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_msg(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_msg(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_msg(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_DEBUG, __VA_ARGS__)

/*
 * A status line that is rewritten in place when stderr is a terminal (and at most once every
 * 10 s as a line of its own when it is not). Ordinary messages clear it first.
 */
void log_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Would a status line be shown now? Ask first when it is costly to make. */
bool log_status_is_due(void);
/* Stderr is a pipe that leads to a terminal, or, with false, to none. */
void log_set_terminal(bool is_terminal);
void log_status_end(void);

/*
 * How often a line is logged. An event that happens a thousand times a minute would bury the rest of the log. Lines
 * left out are counted, so that the next line can tell.
 */
struct log_limit {
	uint64_t every_ns; /* one line per this time ... */
	unsigned int burst; /* ... but this many at once after a quiet time: at least 1 */
	uint64_t paid_until_ns; /* where the logged lines reach, if each takes every_ns */
	uint64_t left_out_cnt; /* since the last log_limit_left_out() */
};

/* May the line be logged at time now (now_ns())? If not, it counts as left out. */
bool log_limit_allows(struct log_limit *l, uint64_t now);
/* The number of lines left out since the last call. */
uint64_t log_limit_left_out(struct log_limit *l);

#endif
