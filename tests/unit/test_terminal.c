/* SPDX-License-Identifier: MIT */
/* test_terminal.c - when text is painted, when it goes through a pager, and through which. */
#include "unit.h"

#include <pty.h>
#include <sys/wait.h>

#include "base/terminal.h"

#define TEXT "one\ntwo\nthree\n"

/* What a terminal of that many lines is shown, by a process of its own. */
static void show(unsigned short rows, const char *pager, bool may_page, char *ret, size_t bytes)
{
	struct winsize size = { .ws_row = rows, .ws_col = 80 };
	size_t used = 0;
	int fd, status;
	pid_t pid = forkpty(&fd, NULL, NULL, &size);
	ssize_t n;

	assert_true(pid >= 0);
	if (!pid) {
		if (pager)
			setenv("PAGER", pager, 1);
		else
			unsetenv("PAGER");
		_exit(terminal_page(TEXT, may_page) ? 1 : 0);
	}
	while (used + 1 < bytes && (n = read(fd, ret + used, bytes - 1 - used)) > 0)
		used += (size_t)n;
	ret[used] = '\0';
	close(fd);
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

TEST(long_text_goes_through_a_pager)
{
	static const char *const mark = "sed 's/^/|/'";
	char got[512];

	show(3, mark, true, got, sizeof(got));
	assert_string_equal(got, "|one\r\n|two\r\n|three\r\n");
	/* with the prompt it is four lines */
	show(4, mark, true, got, sizeof(got));
	assert_string_equal(got, "one\r\ntwo\r\nthree\r\n");
	show(3, mark, false, got, sizeof(got));
	assert_string_equal(got, "one\r\ntwo\r\nthree\r\n");
	show(3, "", true, got, sizeof(got));
	assert_string_equal(got, "one\r\ntwo\r\nthree\r\n");
	show(3, "cat", true, got, sizeof(got));
	assert_string_equal(got, "one\r\ntwo\r\nthree\r\n");
	/* one that is left before the end is no error */
	show(3, "true", true, got, sizeof(got));
	assert_string_equal(got, "");
}

/* The exit status says whether it is painted there. */
static bool is_painted(bool is_terminal, const char *term, const char *no_color,
		       enum terminal_color when)
{
	int fd = -1, status;
	pid_t pid = is_terminal ? forkpty(&fd, NULL, NULL, NULL) : fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (!is_terminal && !freopen("/dev/null", "w", stdout))
			_exit(2);
		setenv("TERM", term, 1);
		if (no_color)
			setenv("NO_COLOR", no_color, 1);
		else
			unsetenv("NO_COLOR");
		_exit(terminal_has_color(STDOUT_FILENO, when));
	}
	waitpid(pid, &status, 0);
	if (fd >= 0)
		close(fd);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status);
}

TEST(only_a_terminal_is_painted)
{
	assert_true(is_painted(true, "xterm", NULL, TERMINAL_COLOR_AUTO));
	assert_true(is_painted(true, "xterm", "", TERMINAL_COLOR_AUTO));
	assert_false(is_painted(true, "xterm", "1", TERMINAL_COLOR_AUTO));
	assert_false(is_painted(true, "dumb", NULL, TERMINAL_COLOR_AUTO));
	assert_false(is_painted(false, "xterm", NULL, TERMINAL_COLOR_AUTO));
	assert_true(is_painted(false, "dumb", "1", TERMINAL_COLOR_ALWAYS));
	assert_false(is_painted(true, "xterm", NULL, TERMINAL_COLOR_NEVER));
}

RUN_TESTS()
