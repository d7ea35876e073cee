/* SPDX-License-Identifier: MIT */
/*
 * terminal.c - see terminal.h.
 *
 * The pager runs in a shell, as usual, so that PAGER may have arguments. It is no error if it cannot be started, or is
 * left before the end.
 */
#include "base/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/units.h"

int terminal_columns(int fd, int min, int max)
{
	const char *text = getenv("COLUMNS");
	long columns = text ? strtol(text, NULL, 10) : 0;
	struct winsize size;

	if (columns <= 0 && isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size))
		columns = size.ws_col;
	if (columns <= 0)
		return 0;
	return columns < min ? min : columns > max ? max : (int)columns;
}

bool terminal_has_color(int fd, enum terminal_color when)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (when != TERMINAL_COLOR_AUTO)
		return when == TERMINAL_COLOR_ALWAYS;
	return isatty(fd) && !(no_color && no_color[0]) && term && term[0] &&
	       strcmp(term, "dumb") != 0;
}

int terminal_put_words(const char *text, int at, int indent, int columns, FILE *out)
{
	bool is_begin = at <= indent;

	while (*(text += strspn(text, " "))) {
		int len = (int)word_with_unit(text);

		if (!is_begin && at + 1 + len > columns) {
			at = fprintf(out, "\n%*s", indent, "") - 1;
			is_begin = true;
		}
		at += fprintf(out, "%s%.*s", is_begin ? "" : " ", len, text);
		is_begin = false;
		text += len;
	}
	return at;
}

static bool is_longer_than_terminal(const char *text)
{
	struct winsize size;
	size_t lines = 1; /* one for the prompt */

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row)
		return false;
	for (; *text; text++)
		lines += *text == '\n';
	return lines > size.ws_row;
}

/* NULL: no pager. */
static const char *pager(void)
{
	const char *set = getenv("PAGER");

	if (set)
		return set[0] && strcmp(set, "cat") != 0 ? set : NULL;
	return "if command -v less >/dev/null 2>&1; then exec less -FRX; else exec cat; fi";
}

static int write_text(int fd, const char *text)
{
	return write_all(fd, text, strlen(text));
}

static int write_to_pager(const char *command, const char *text)
{
	struct sigaction ignored = { .sa_handler = SIG_IGN }, before;
	int ends[2], err;
	pid_t pid;

	if (pipe(ends))
		return -errno;
	pid = fork();
	if (pid < 0) {
		err = -errno;
		close(ends[0]);
		close(ends[1]);
		return err;
	}
	if (!pid) {
		if (dup2(ends[0], STDIN_FILENO) >= 0) {
			close(ends[0]);
			close(ends[1]);
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		}
		_exit(127);
	}
	close(ends[0]);
	sigaction(SIGPIPE, &ignored, &before);
	err = write_text(ends[1], text);
	close(ends[1]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGPIPE, &before, NULL);
	return err == -EPIPE ? 0 : err;
}

int terminal_page(const char *text, bool may_page)
{
	const char *command = may_page && is_longer_than_terminal(text) ? pager() : NULL;

	fflush(stdout);
	return command ? write_to_pager(command, text) : write_text(STDOUT_FILENO, text);
}
