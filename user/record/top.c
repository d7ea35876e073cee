/* SPDX-License-Identifier: MIT */
/*
 * top.c - `heaptap top`: a recording whose event loop also draws the screen (see top.h).
 *
 * Every few seconds a forked child takes a snapshot, looks up names and hands over a profile, as if the recording
 * ended then. So the loop never waits for names. Children take at most a tenth of the time of one CPU: the next one
 * waits accordingly.
 */
#include "record/top.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <termios.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/terminal.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/out_file.h"
#include "record/recorder.h"
#include "record/top_priv.h"
#include "record/record_result.h"
#include "record/scope_labels.h"
#include "record/worker.h"
#include "track/session.h"
#include "track/tracker.h"

#define FIRST_NS (NS_PER_S / 2)
#define REST 10 /* times the CPU time of a child */
#define RESIZE_MS 500 /* a new size of the terminal is noticed within this time */
#define LIVE_CAP 1000000
#define STACK_CAP 65536
#define ESCAPE_MS 25 /* after this, a lone Escape is one */

enum pair { PAIR_NONE, PAIR_HEAD, PAIR_WARN };

/*
 * The terminal: its size, its keys, and a page on it. Thin: top_page.c decides what is on the page. One that is
 * unknown, or that cannot place a cursor ("dumb"), gets one page below the other as plain text.
 */
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

/* Uses standard input and output, both terminals. 0 or a negative errno, and then nothing is changed. */
static int top_screen_open(bool has_color, struct top_screen **ret)
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

/* Restore the terminal. */
static void top_screen_close(struct top_screen *s)
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

static void top_screen_size(const struct top_screen *s, size_t *ret_columns, size_t *ret_lines)
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

static void top_screen_draw(struct top_screen *s, const struct top_page *page)
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

/* A character or enum top_key; -1: none now. */
static int top_screen_key(struct top_screen *s)
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

/* Joins screen, keys and table. */
struct top_ui {
	struct top_view view;
	struct top_rates *rates;
	struct top_screen *screen;
	struct top_messages *messages;
	struct profile *profile; /* shown in the table; NULL: nothing yet */
	uint64_t time_ns; /* the profile's */
	struct top_table *table;
	char said[TOP_TEXT_BUF], message[TOP_TEXT_BUF];
	char last[TOP_LINE_BUF]; /* the first line, as it was drawn last */
	bool is_over, is_changed;
};

#define TAIL_BYTES 1024 /* searched for the last line */
#define SAID_BYTES 65536 /* of all messages, the last ones */

struct top_messages {
	int fd, stderr_fd;
};

int top_messages_begin(struct top_messages **ret)
{
	struct top_messages *m = calloc(1, sizeof(*m));
	int err = 0;

	if (!m)
		return -ENOMEM;
	m->fd = memfd_create("messages", MFD_CLOEXEC);
	m->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (m->fd < 0 || m->stderr_fd < 0 || fcntl(m->fd, F_SETFL, O_APPEND) ||
	    dup2(m->fd, STDERR_FILENO) < 0)
		err = -errno;
	if (err)
		top_messages_end(m);
	else
		*ret = m;
	return err;
}

/* Read the last bytes; return their number. */
static size_t read_tail(const struct top_messages *m, char *buf, size_t bytes)
{
	struct stat st;
	ssize_t n;

	if (fstat(m->fd, &st))
		return 0;
	n = pread(m->fd, buf, bytes, st.st_size > (off_t)bytes ? st.st_size - (off_t)bytes : 0);
	return n > 0 ? (size_t)n : 0;
}

static void say_all(const struct top_messages *m)
{
	char *text = malloc(SAID_BYTES), *from = text, *line;
	size_t n = text ? read_tail(m, text, SAID_BYTES) : 0;
	off_t gone = lseek(m->fd, 0, SEEK_END) - (off_t)n;

	line = gone > 0 && n ? memchr(text, '\n', n) : NULL;
	if (line) /* begin at a whole line */
		from = line + 1;
	gone += from - text;
	n -= (size_t)(from - text);
	if (gone > 0)
		log_warn("top: the first %lld bytes of the messages are left out", (long long)gone);
	write_all(STDERR_FILENO, from, n);
	free(text);
}

void top_messages_end(struct top_messages *m)
{
	if (!m)
		return;
	if (m->stderr_fd >= 0) {
		dup2(m->stderr_fd, STDERR_FILENO);
		close(m->stderr_fd);
	}
	if (m->fd >= 0) {
		say_all(m);
		close(m->fd);
	}
	free(m);
}

char *top_messages_last(struct top_messages *m, char *buf, size_t buf_bytes)
{
	static const char who[] = "heaptap: ";
	char text[TAIL_BYTES + 1], *line;
	size_t n = read_tail(m, text, TAIL_BYTES);

	while (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (!strncmp(line, who, sizeof(who) - 1))
		line += sizeof(who) - 1;
	n = strlen(line) < buf_bytes ? strlen(line) : buf_bytes - 1;
	memcpy(buf, line, n);
	buf[n] = '\0';
	return buf;
}

/* Leave the last values on the terminal, which the screen does not. */
static void say_last(const char *last, bool has_utf8)
{
	char ascii[TOP_LINE_BUF];

	if (!last[0])
		return;
	to_ascii(last, ascii);
	printf("%s\n", has_utf8 ? last : ascii);
	fflush(stdout);
}

/* Restore the terminal; messages of the meantime are written again. */
static void top_ui_close(struct top_ui *ui)
{
	bool has_utf8;

	if (!ui)
		return;
	has_utf8 = ui->screen && ui->screen->has_utf8;
	top_screen_close(ui->screen);
	say_last(ui->last, has_utf8);
	top_messages_end(ui->messages);
	top_table_free(ui->table);
	profile_free(ui->profile);
	top_rates_free(ui->rates);
	top_view_release(&ui->view);
	free(ui);
}

static int top_ui_open(const struct top_record_options *opts, struct top_ui **ret)
{
	struct top_ui *ui = calloc(1, sizeof(*ui));
	int err;

	if (!ui)
		return -ENOMEM;
	top_view_init(&ui->view);
	ui->view.pid = opts->pid;
	ui->view.of_process = opts->what;
	ui->view.what = opts->what;
	ui->view.sort = opts->sort;
	ui->is_changed = true;
	err = top_rates_new(&ui->rates);
	if (!err)
		err = top_screen_open(terminal_has_color(STDOUT_FILENO, TERMINAL_COLOR_AUTO),
				      &ui->screen);
	if (!err)
		err = top_messages_begin(&ui->messages);
	if (err)
		top_ui_close(ui);
	else
		*ret = ui;
	return err;
}

static int show_profile(struct top_ui *ui)
{
	struct top_table *t = NULL;
	int err = top_table_of_profile(ui->profile, ui->view.what, &t);

	if (err)
		return err;
	top_table_free(ui->table);
	ui->table = t;
	ui->is_changed = true;
	return top_rates_update(ui->rates, ui->time_ns, t);
}

/* Show p from now on; takes over p in any case. 0, -ENOMEM, -EINVAL. */
static int top_ui_set_profile(struct top_ui *ui, struct profile *p)
{
	top_table_free(ui->table);
	ui->table = NULL;
	profile_free(ui->profile);
	ui->profile = p;
	ui->time_ns = now_ns();
	return show_profile(ui);
}

/* Show a message in place of the keys, until the next one; "": none. */
__attribute__((format(printf, 2, 3))) static void say(struct top_ui *ui, const char *fmt, ...)
{
	char text[TOP_TEXT_BUF];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ui->is_changed |= strcmp(text, ui->said) != 0;
	memcpy(ui->said, text, sizeof(text));
}

/* Save the profile that is shown, in the current folder. */
static void save_profile(struct top_ui *ui)
{
	const struct profile *p = ui->profile;
	char name[OUT_FILE_NAME_BYTES];
	struct out_file *of = NULL;
	struct err why = { 0 };
	int err;

	if (!p) {
		say(ui, "there is nothing to save yet");
		return;
	}
	out_file_default_name(profile_text(p, p->recording.comm_str), p->recording.pid,
			      (int64_t)time(NULL), name);
	err = out_file_open(name, false, "", &of, &why);
	if (err) {
		say(ui, "%s", why.text);
		return;
	}
	err = pprof_write(p, out_file_fd(of));
	if (!err)
		err = out_file_commit(of);
	if (err)
		say(ui, "cannot write '%s': %s", name, strerror(-err));
	else
		say(ui, "saved %s", out_file_path(of));
	out_file_free(of);
}

/* Handle the keys that were pressed: other views are made from the profile that is shown. */
static enum top_wish top_ui_keys(struct top_ui *ui)
{
	enum top_wish all = TOP_NOTHING, wish;
	int key;

	while ((key = top_screen_key(ui->screen)) >= 0) {
		wish = top_view_key(&ui->view, ui->table, key);
		ui->is_changed |= wish != TOP_NOTHING;
		ui->said[0] = '\0';
		if (wish > all)
			all = wish;
		if (wish == TOP_QUIT)
			break;
		if (wish == TOP_SAVE)
			save_profile(ui);
		if (wish == TOP_LOAD && ui->profile && show_profile(ui))
			return TOP_QUIT;
		/* The meaning of the next key depends on the order. */
		if (ui->table && top_view_arrange(&ui->view, ui->table))
			return TOP_QUIT;
	}
	return all;
}

/* Keep the table as it is: its process has ended. */
static void top_ui_set_over(struct top_ui *ui)
{
	ui->is_changed |= !ui->is_over;
	ui->is_over = true;
}

/* True if the user paused, and there is a table: new data is not shown. */
static bool top_ui_is_frozen(const struct top_ui *ui)
{
	return ui->view.is_paused && ui->table;
}

/* Call when something has changed. 0 or -ENOMEM. */
static int top_ui_draw(struct top_ui *ui)
{
	char message[TOP_TEXT_BUF];
	struct top_news news = { .message = ui->said,
				 .is_over = ui->is_over,
				 .has_utf8 = ui->screen->has_utf8 };
	struct top_page page;
	size_t columns, lines;
	int err;

	top_messages_last(ui->messages, message, sizeof(message));
	if (strcmp(message, ui->message) != 0) {
		memcpy(ui->message, message, sizeof(message));
		say(ui, "%s", message);
	}
	if (!ui->is_changed)
		return 0;
	top_screen_size(ui->screen, &columns, &lines);
	err = top_page_draw(&ui->view, ui->table, &news, columns, lines, &page);
	if (err)
		return err;
	top_screen_draw(ui->screen, &page);
	if (ui->table && page.lines[0].paint == TOP_HEAD)
		snprintf(ui->last, sizeof(ui->last), "%s", page.lines[0].text);
	top_page_release(&page);
	ui->is_changed = false;
	return 0;
}

struct source {
	const struct top_record_options *opts;
	struct result_options result;
	struct recorder *recorder;
	struct top_ui *ui;
	struct worker worker;
	int signal_fd; /* top's own: the recorder has another while it runs */
	int fd; /* the profile being made; -1: none */
	uint64_t due_ns;
	bool wants_end; /* the user quits */
	int err;
};

/* Runs in the child. */
static int make_profile(void *ctx, size_t i)
{
	struct source *s = ctx;
	struct profile *p = NULL;
	int err = recorder_peek(s->recorder);

	(void)i;
	if (!err)
		err = result_profile(&s->result, s->recorder, &p);
	if (!err)
		err = pprof_write(p, s->fd);
	if (err)
		log_warn("top: cannot make a profile: %s", strerror(-err));
	return err;
}

static int begin_profile(struct source *s)
{
	const struct worker_options opts = { .command = "top",
					     .what = "making the profile",
					     .moment_ns = now_ns() };
	int err;

	s->fd = memfd_create("profile", MFD_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	err = worker_start(&s->worker, &opts, 1, make_profile, s);
	if (err) {
		close(s->fd);
		s->fd = -1;
	}
	return err;
}

/* Take what the child has written; nothing if it failed, which it has logged. */
static int take_profile(struct source *s)
{
	uint64_t rest_ns = REST * s->worker.cpu_ns;
	struct profile *p = NULL;
	int err = 0;

	if (lseek(s->fd, 0, SEEK_END) > 0 && !lseek(s->fd, 0, SEEK_SET) &&
	    !pprof_read(s->fd, &p, NULL) && !top_ui_is_frozen(s->ui))
		err = top_ui_set_profile(s->ui, p);
	else
		profile_free(p);
	close(s->fd);
	s->fd = -1;
	s->due_ns = now_ns() + (rest_ns > s->opts->interval_ns ? rest_ns : s->opts->interval_ns);
	return err;
}

static int work(struct source *s)
{
	int err = 0;

	worker_check(&s->worker);
	if (s->fd >= 0 && worker_reap(&s->worker))
		err = take_profile(s);
	if (!err && s->fd < 0 && now_ns() >= s->due_ns && !top_ui_is_frozen(s->ui))
		err = begin_profile(s);
	return err ? err : top_ui_draw(s->ui);
}

static void on_tick(void *ctx, struct recorder *r)
{
	struct source *s = ctx;

	if (top_ui_keys(s->ui) == TOP_QUIT) {
		s->wants_end = true;
		recorder_end(r, "stopped by the user");
		return;
	}
	s->err = work(s);
	if (s->err)
		recorder_end(r, "an error");
}

/* Run until a key, a signal, or the end of the terminal ends it. */
static int show_next(struct source *s)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = s->signal_fd, .events = POLLIN } };
	int err = 0;

	while (!err && top_ui_keys(s->ui) != TOP_QUIT) {
		err = top_ui_draw(s->ui);
		if (!err && poll(fds, 2, RESIZE_MS) > 0 && fds[1].revents)
			break;
	}
	return err;
}

/* The user may still look at the result after the process has ended. */
static int stay(struct source *s)
{
	struct profile *p = NULL;
	int err = result_profile(&s->result, s->recorder, &p);

	if (!err)
		err = top_ui_set_profile(s->ui, p);
	recorder_close(s->recorder);
	s->recorder = NULL;
	top_ui_set_over(s->ui);
	return err ? err : show_next(s);
}

static int run(struct source *s)
{
	int err = recorder_start(s->recorder);

	if (!err)
		err = recorder_run(s->recorder);
	if (!err)
		err = recorder_error(s->recorder);
	worker_release(&s->worker);
	if (s->fd >= 0)
		close(s->fd);
	if (!err && s->err) {
		log_error("top: cannot show what was recorded: %s", strerror(-s->err));
		err = s->err;
	}
	if (!err && !s->wants_end && !tracker_running_cnt(recorder_session(s->recorder)->tracker))
		err = stay(s);
	return err;
}

/*
 * SIGINT, SIGTERM and SIGHUP end heaptap top as `q` does: in their turn, with the terminal restored. Let them wait
 * from now on. Return a descriptor that is readable when one has come, or -errno.
 */
static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/*
 * Open before the recorder takes the signals: when it ends, it restores the mask that it found, while the terminal
 * is still drawn on. Another Ctrl-C must not end top then.
 */
static int open_screen(struct source *s)
{
	int err;

	s->signal_fd = open_signals();
	if (s->signal_fd < 0) {
		log_error("top: cannot wait for signals: %s", strerror(-s->signal_fd));
		return s->signal_fd;
	}
	err = top_ui_open(s->opts, &s->ui);
	if (err)
		log_error("top: cannot draw on this terminal: %s", strerror(-err));
	return err;
}

int top_record(const struct top_record_options *opts)
{
	struct source s = {
		.opts = opts,
		.signal_fd = -1,
		.fd = -1,
		.result = { .stdout_fd = -1,
			    .is_quiet = true,
			    .labels = LABEL_ALL,
			    .command_argv = opts->command_argv,
			    .command_argc = opts->command_argc },
	};
	const struct recorder_guest guest = { STDIN_FILENO, on_tick, &s };
	const struct recorder_options recorder = {
		.pids = &opts->pid,
		.pid_cnt = 1,
		.named_cnt = 1,
		.rate_bytes = opts->rate_bytes,
		.live_cap = LIVE_CAP,
		.stack_cap = STACK_CAP,
		.rate_is_fixed = opts->rate_is_fixed,
		.tap = opts->tap,
		.is_quiet = true,
		.max_overhead = opts->max_overhead,
		.stdout_fd = -1,
		.guest = &guest,
		.refreshes_rows = true,
	};
	int err = recorder_open(&recorder, &s.recorder);

	if (err)
		return err;
	err = open_screen(&s);
	s.due_ns = now_ns() + FIRST_NS;
	if (!err)
		err = top_ui_draw(s.ui);
	if (!err)
		err = run(&s);
	recorder_close(s.recorder);
	top_ui_close(s.ui);
	if (s.signal_fd >= 0)
		close(s.signal_fd);
	return err;
}
