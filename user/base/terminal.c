/* SPDX-License-Identifier: MIT */
/* terminal.c - see terminal.h. */
#include "base/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

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
