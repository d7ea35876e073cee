/* SPDX-License-Identifier: MIT */
/* top_screen.c - see top_ui_priv.h. */
#include "record/top_ui_priv.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "record/top_page.h"
#include "record/top_view.h"

#define ESCAPE_MS 25 /* after this, a lone Escape is one */

enum pair { PAIR_NONE, PAIR_HEAD, PAIR_WARN };

struct top_screen {
	bool is_plain, has_color, has_utf8;
	struct termios before; /* the terminal's plain state */
	SCREEN *curses;
};

static int open_plain(struct top_screen *s)
{
	struct termios raw;

	s->is_plain = true;
	if (tcgetattr(STDIN_FILENO, &s->before))
		return -errno;
	raw = s->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) ? -errno : 0;
}

/* Can a cursor be placed? If the terminal is not described, there is no screen at all. */
static bool begin_curses(struct top_screen *s)
{
	const char *move_to;

	s->curses = newterm(NULL, stdout, stdin);
	if (!s->curses)
		return false;
	move_to = tigetstr("cup");
	if (move_to && move_to != (const char *)-1)
		return true;
	endwin();
	delscreen(s->curses);
	return false;
}

static void set_up_curses(struct top_screen *s, bool has_color)
{
	use_tioctl(TRUE);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	s->has_color = has_color && has_colors() && start_color() == OK;
	if (s->has_color) {
		use_default_colors();
		init_pair(PAIR_HEAD, COLOR_CYAN, -1);
		init_pair(PAIR_WARN, COLOR_RED, -1);
	}
}

int top_screen_open(bool has_color, struct top_screen **ret)
{
	struct top_screen *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	if (!setlocale(LC_CTYPE, "")) /* a static program may lack the machine's locale */
		setlocale(LC_CTYPE, "C.UTF-8");
	s->has_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	if (begin_curses(s))
		set_up_curses(s, has_color);
	else
		err = open_plain(s);
	if (err)
		free(s);
	else
		*ret = s;
	return err;
}

void top_screen_close(struct top_screen *s)
{
	if (!s)
		return;
	if (s->is_plain) {
		tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
	} else {
		endwin();
		delscreen(s->curses);
	}
	free(s);
}

/* curses learns of a new size by a signal, which may come while nobody waits for a key. */
static void follow_size(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row &&
	    is_term_resized(size.ws_row, size.ws_col)) {
		resizeterm(size.ws_row, size.ws_col);
		clearok(stdscr, TRUE);
	}
}

void top_screen_size(const struct top_screen *s, size_t *ret_columns, size_t *ret_lines)
{
	struct winsize size;

	if (!s->is_plain) {
		follow_size();
		*ret_columns = (size_t)(COLS > 0 ? COLS : 1);
		*ret_lines = (size_t)(LINES > 0 ? LINES : 1);
	} else if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row) {
		*ret_columns = size.ws_col;
		*ret_lines = size.ws_row;
	} else {
		*ret_columns = 80;
		*ret_lines = 24;
	}
}

static attr_t paint_of(const struct top_screen *s, enum top_paint paint)
{
	static const attr_t attrs[] = {
		[TOP_PLAIN] = A_NORMAL,	  [TOP_HEAD] = A_BOLD,
		[TOP_TITLES] = A_REVERSE, [TOP_SELECTED] = A_BOLD | A_UNDERLINE,
		[TOP_DIM] = A_DIM,	  [TOP_WARN] = A_BOLD,
	};
	attr_t color = 0;

	if (s->has_color && paint == TOP_HEAD)
		color = COLOR_PAIR(PAIR_HEAD);
	if (s->has_color && paint == TOP_WARN)
		color = COLOR_PAIR(PAIR_WARN);
	return attrs[paint] | color;
}

/* In a locale of single bytes, other characters than ASCII cannot be shown. */
static void to_ascii(const char *text, char *out)
{
	for (; *text; text++)
		if (((unsigned char)*text & 0xc0) != 0x80)
			*out++ = (unsigned char)*text < 0x80 ? *text : '?';
	*out = '\0';
}

static void draw_plain(const struct top_screen *s, const struct top_page *page)
{
	char ascii[TOP_LINE_BUF];

	for (size_t i = 0; i < page->line_cnt; i++) {
		to_ascii(page->lines[i].text, ascii);
		if (ascii[0])
			printf("%s\n", s->has_utf8 ? page->lines[i].text : ascii);
	}
	putchar('\n');
	fflush(stdout);
}

void top_screen_draw(struct top_screen *s, const struct top_page *page)
{
	char ascii[TOP_LINE_BUF];

	if (s->is_plain) {
		draw_plain(s, page);
		return;
	}
	/* Draw from the top: a character wider than one column may run into the next line, which is drawn later. */
	for (size_t i = 0; i < page->line_cnt; i++) {
		const struct top_line *l = &page->lines[i];

		to_ascii(l->text, ascii);
		move((int)i, 0);
		clrtoeol();
		attrset(paint_of(s, l->paint));
		addstr(s->has_utf8 ? l->text : ascii);
		attrset(A_NORMAL);
	}
	refresh();
}

static int curses_key(void)
{
	static const struct {
		int from, to;
	} keys[] = {
		{ KEY_UP, TOP_KEY_UP },		{ KEY_DOWN, TOP_KEY_DOWN },
		{ KEY_PPAGE, TOP_KEY_PAGE_UP }, { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
		{ KEY_HOME, TOP_KEY_HOME },	{ KEY_END, TOP_KEY_END },
		{ KEY_RIGHT, TOP_KEY_ENTER },	{ KEY_ENTER, TOP_KEY_ENTER },
		{ KEY_LEFT, TOP_KEY_BACK },	{ KEY_BACKSPACE, TOP_KEY_ERASE },
		{ KEY_RESIZE, TOP_KEY_RESIZE },
	};
	int key = getch();

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (key == keys[i].from)
			return keys[i].to;
	return key == ERR ? -1 : key;
}

static int plain_key(void)
{
	unsigned char c;

	return read(STDIN_FILENO, &c, 1) == 1 ? c : -1;
}

int top_screen_key(struct top_screen *s)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int key;

	if (poll(&in, 1, 0) > 0 && in.revents & (POLLHUP | POLLERR | POLLNVAL))
		return TOP_KEY_GONE;
	key = s->is_plain ? plain_key() : curses_key();
	switch (key) {
	case '\r':
	case '\n':
		return TOP_KEY_ENTER;
	case 27:
		return TOP_KEY_BACK;
	case 8:
	case 127:
		return TOP_KEY_ERASE;
	}
	return key > 0xff && key < TOP_KEY_UP ? 0 : key; /* other keys of curses are ignored */
}
