/* SPDX-License-Identifier: MIT */
/* name.c - see saver_priv.h. */
#include "saved/saver_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "heaptap/abi.h"

#define SUFFIX ".pb.gz"
/* Years 1 to 9999, so that a year has four digits. */
#define EPOCH_MIN_S (-62135596800LL)
#define EPOCH_MAX_S 253402300799LL

static const struct {
	const char *text; /* followed by a number, if words has one */
	const char *words;
} reasons[] = {
	[KEEP_PEAK] = { "peak", "peak" },
	[KEEP_LIMIT] = { "limit", "near its memory limit" },
	[KEEP_OOM] = { "oom", "out of memory" },
	[KEEP_SIGNAL] = { "signal", "ended by signal " },
	[KEEP_EXIT] = { "exit", "exited with status " },
	[KEEP_EXEC] = { "exec", "executed another program" },
	[KEEP_GONE] = { "gone", "no longer followed, or its end was not seen" },
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

static void put_reason(const struct saved_name *n, const char *text, char *buf, size_t buf_bytes)
{
	if (n->reason == KEEP_SIGNAL || n->reason == KEEP_EXIT)
		snprintf(buf, buf_bytes, "%s%u", text, n->code);
	else
		snprintf(buf, buf_bytes, "%s", text);
}

char *saved_reason_words(const struct saved_name *n, char *buf, size_t buf_bytes)
{
	put_reason(n, reasons[n->reason].words, buf, buf_bytes);
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
	if (!n)
		ret[0] = '_';
	ret[n ? n : 1] = '\0';
}

void saved_name_format(const struct saved_name *n, char buf[static KEEP_NAME_BYTES])
{
	char comm[KEEP_COMM_BYTES], reason[24], taken[KEEP_TIME_BYTES];
	int64_t ms = n->taken_epoch_ms;

	safe_comm(n->comm, comm);
	put_reason(n, reasons[n->reason].text, reason, sizeof(reason));
	snprintf(buf, KEEP_NAME_BYTES, "%s-%u-%s-%s" SUFFIX,
		 saved_time_text(ms / 1000, (int)(ms % 1000), taken), (unsigned)n->pid, comm,
		 reason);
}

/* Accepts more than names of ours: formatting what was read finds that. */
int saved_name_parse(const char *file, struct saved_name *ret)
{
	char reason[8], again[KEEP_NAME_BYTES];
	struct saved_name n = { 0 };
	unsigned long pid, code = 0;
	struct tm tm = { 0 };
	int ms;

	if (sscanf(file, "%4d%2d%2dT%2d%2d%2d.%3dZ-%10lu-%16[^-]-%7[a-z]%10lu", &tm.tm_year,
		   &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms, &pid, n.comm,
		   reason, &code) < 10)
		return -EINVAL;
	while (n.reason < REASON_CNT && strcmp(reason, reasons[n.reason].text))
		n.reason++;
	if (n.reason == REASON_CNT)
		return -EINVAL;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	n.taken_epoch_ms = timegm(&tm) * 1000 + ms;
	n.pid = (pid_t)pid;
	n.code = (uint32_t)code;
	saved_name_format(&n, again);
	if (strcmp(file, again))
		return -EINVAL;
	*ret = n;
	return 0;
}
