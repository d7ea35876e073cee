/* SPDX-License-Identifier: MIT */
/* name.c - see name.h. */
#include "saved/name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "heaptap/abi.h"

#define SUFFIX ".pb.gz"
/* Years 1 to 9999, so that a year has four digits. */
#define EPOCH_MIN_S (-62135596800LL)
#define EPOCH_MAX_S 253402300799LL

static const struct {
	const char *text; /* followed by a number if has_code */
	const char *words;
	int has_code;
} reasons[] = {
	[KEEP_PEAK] = { "peak", "peak", 0 },
	[KEEP_LIMIT] = { "limit", "near its memory limit", 0 },
	[KEEP_OOM] = { "oom", "out of memory", 0 },
	[KEEP_SIGNAL] = { "signal", "ended by signal %u", 1 },
	[KEEP_EXIT] = { "exit", "ended with status %u", 1 },
	[KEEP_EXEC] = { "exec", "became another program", 0 },
	[KEEP_GONE] = { "gone", "no longer followed, or its end went unseen", 0 },
};
#define REASON_CNT (sizeof(reasons) / sizeof(*reasons))

void saved_name_set_end(struct saved_name *n, uint32_t exit_status)
{
	uint32_t signal = exit_status & 0x7f;

	n->code = 0;
	if (exit_status & HT_EXIT_OOM) {
		n->reason = KEEP_OOM;
	} else if (signal) {
		n->reason = KEEP_SIGNAL;
		n->code = signal;
	} else {
		n->reason = KEEP_EXIT;
		n->code = exit_status >> 8 & 0xff;
	}
}

char *saved_reason_text(const struct saved_name *n, char buf[static KEEP_REASON_BYTES])
{
	if (reasons[n->reason].has_code)
		snprintf(buf, KEEP_REASON_BYTES, "%s%u", reasons[n->reason].text, n->code);
	else
		snprintf(buf, KEEP_REASON_BYTES, "%s", reasons[n->reason].text);
	return buf;
}

char *saved_reason_words(const struct saved_name *n, char *buf, size_t buf_bytes)
{
	if (n->reason == KEEP_SIGNAL)
		snprintf(buf, buf_bytes, "ended by signal %u", n->code);
	else if (n->reason == KEEP_EXIT)
		snprintf(buf, buf_bytes, "ended with status %u", n->code);
	else
		snprintf(buf, buf_bytes, "%s", reasons[n->reason].words);
	return buf;
}

char *saved_time_text(int64_t epoch_s, int ms, char buf[static KEEP_TIME_BYTES])
{
	time_t t = epoch_s;
	size_t used;
	struct tm tm;

	if (epoch_s < EPOCH_MIN_S || epoch_s > EPOCH_MAX_S || !gmtime_r(&t, &tm))
		memset(&tm, 0, sizeof(tm));
	used = (size_t)snprintf(buf, KEEP_TIME_BYTES, "%04u%02u%02uT%02u%02u%02u",
				(unsigned)(tm.tm_year + 1900) % 10000,
				(unsigned)(tm.tm_mon + 1) % 100, (unsigned)tm.tm_mday % 100,
				(unsigned)tm.tm_hour % 100, (unsigned)tm.tm_min % 100,
				(unsigned)tm.tm_sec % 100);
	if (ms < 0)
		snprintf(buf + used, KEEP_TIME_BYTES - used, "Z");
	else
		snprintf(buf + used, KEEP_TIME_BYTES - used, ".%03uZ", (unsigned)ms % 1000);
	return buf;
}

static char safe_char(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	    c == '.' || c == '_' || c == '+')
		return c;
	return '_';
}

/* At most KEEP_COMM_BYTES with the final zero. */
static void safe_comm(const char *comm, char *ret)
{
	size_t n = strnlen(comm, KEEP_COMM_BYTES - 1);

	for (size_t i = 0; i < n; i++)
		ret[i] = safe_char(comm[i]);
	if (!n || ret[0] == '.')
		ret[0] = '_';
	ret[n ? n : 1] = '\0';
}

void saved_name_format(const struct saved_name *n, char buf[static KEEP_NAME_BYTES])
{
	char comm[KEEP_COMM_BYTES], reason[KEEP_REASON_BYTES];
	char started[KEEP_TIME_BYTES], taken[KEEP_TIME_BYTES];
	int64_t ms = n->taken_epoch_ms;

	safe_comm(n->comm, comm);
	snprintf(buf, KEEP_NAME_BYTES, "%s-%u-%s-%s-%s" SUFFIX, comm, (unsigned)n->pid,
		 saved_time_text(n->start_epoch_s, -1, started), saved_reason_text(n, reason),
		 saved_time_text(ms / 1000, (int)(ms % 1000), taken));
}

/* Copy the part up to the next '-' (or the end) into buf; NULL: it is missing or too long. */
static const char *take_part(const char *at, char *buf, size_t buf_bytes)
{
	size_t n = at ? strcspn(at, "-") : 0;

	if (!n || n >= buf_bytes)
		return NULL;
	memcpy(buf, at, n);
	buf[n] = '\0';
	return at[n] ? at + n + 1 : at + n;
}

static int64_t days_from_epoch(int year, int month, int day)
{
	struct tm tm = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };

	return timegm(&tm) / 86400;
}

/* May accept wrong texts: the caller compares the rest of the name as text, which finds them. */
static int parse_time(const char *text, int64_t *ret_s, int *ret_ms)
{
	int year, month, day, hour, min, sec;

	*ret_ms = 0;
	if (sscanf(text, "%4d%2d%2dT%2d%2d%2d.%3d", &year, &month, &day, &hour, &min, &sec,
		   ret_ms) < 6 ||
	    year < 1 || month < 1 || month > 12 || day < 1 || day > 31)
		return -EINVAL;
	*ret_s = days_from_epoch(year, month, day) * 86400 + hour * 3600 + min * 60 + sec;
	return 0;
}

static int parse_reason(const char *text, struct saved_name *ret)
{
	for (size_t i = 0; i < REASON_CNT; i++) {
		size_t n = strlen(reasons[i].text);

		if (strncmp(text, reasons[i].text, n))
			continue;
		ret->reason = (enum saved_reason)i;
		ret->code = (uint32_t)strtoul(text + n, NULL, 10);
		return 0;
	}
	return -EINVAL;
}

int saved_name_parse(const char *file, struct saved_name *ret)
{
	char pid[16], started[KEEP_TIME_BYTES], reason[KEEP_REASON_BYTES], taken[64];
	char again[KEEP_NAME_BYTES];
	struct saved_name n = { 0 };
	const char *at = file;
	int64_t taken_s;
	int ms;

	at = take_part(at, n.comm, sizeof(n.comm));
	at = take_part(at, pid, sizeof(pid));
	at = take_part(at, started, sizeof(started));
	at = take_part(at, reason, sizeof(reason));
	at = take_part(at, taken, sizeof(taken));
	if (!at)
		return -EINVAL;
	n.pid = (pid_t)strtoul(pid, NULL, 10);
	if (parse_time(started, &n.start_epoch_s, &ms) || parse_time(taken, &taken_s, &ms) ||
	    parse_reason(reason, &n))
		return -EINVAL;
	n.taken_epoch_ms = taken_s * 1000 + ms;
	saved_name_format(&n, again);
	if (strcmp(file, again))
		return -EINVAL;
	*ret = n;
	return 0;
}
