/* SPDX-License-Identifier: MIT */
/* log.c - see log.h. */
#include "base/log.h"

#include "base/printable.h"

#define QUIET_STATUS_SECONDS 10

static enum log_level current_level = LOG_INFO;
static bool leads_to_terminal; /* stderr does, though it is none itself */
static bool status_is_shown; /* a status line is on the terminal */
static time_t status_last; /* when one was printed to something other than a terminal */

void log_set_level(enum log_level level)
{
	current_level = level;
}

enum log_level log_get_level(void)
{
	return current_level;
}

void log_set_terminal(bool is_terminal)
{
	leads_to_terminal = is_terminal;
}

static bool has_terminal(void)
{
	return leads_to_terminal || isatty(STDERR_FILENO);
}

static void clear_status(void)
{
	if (status_is_shown)
		fputs("\r\033[K", stderr);
	status_is_shown = false;
}

/* Arguments may be names or texts of a followed process: let no terminal control through. */
static void put_printable(const char *fmt, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, args) < 0)
		return;
	make_printable(text);
	fputs(text, stderr);
	free(text);
}

void log_msg(enum log_level level, const char *fmt, ...)
{
	static const char *const prefix[] = { "error: ", "warning: ", "", "debug: " };
	va_list args;

	if (level > current_level)
		return;
	flockfile(stderr); /* one thread writes the whole line */
	clear_status();
	fprintf(stderr, "heaptap: %s", prefix[level]);
	va_start(args, fmt);
	put_printable(fmt, args);
	va_end(args);
	fputc('\n', stderr);
	funlockfile(stderr);
}

bool log_status_is_due(void)
{
	time_t now = time(NULL);

	if (current_level < LOG_INFO)
		return false;
	if (has_terminal())
		return true;
	if (!status_last)
		status_last = now; /* do not print the very first one */
	return now - status_last >= QUIET_STATUS_SECONDS;
}

void log_status(const char *fmt, ...)
{
	bool is_terminal = has_terminal();
	va_list args;

	if (!log_status_is_due())
		return;
	status_last = time(NULL);
	clear_status();
	fputs("heaptap: ", stderr);
	va_start(args, fmt);
	put_printable(fmt, args);
	va_end(args);
	if (!is_terminal)
		fputc('\n', stderr);
	status_is_shown = is_terminal;
	fflush(stderr);
}

void log_status_end(void)
{
	clear_status();
	fflush(stderr);
}

bool log_limit_allows(struct log_limit *l, uint64_t now)
{
	if (l->paid_until_ns < now)
		l->paid_until_ns = now;
	if (l->paid_until_ns - now > (l->burst - 1) * l->every_ns) {
		l->left_out_cnt++;
		return false;
	}
	l->paid_until_ns += l->every_ns;
	return true;
}

uint64_t log_limit_left_out(struct log_limit *l)
{
	uint64_t cnt = l->left_out_cnt;

	l->left_out_cnt = 0;
	return cnt;
}
