/* SPDX-License-Identifier: MIT */
/*
 * cmd/explain.c - `heaptap explain -p PID`: what all resident memory of a process is. Wiring only.
 *
 * Exit status: 0 explained, 1 not (the message says why), 2 wrong usage.
 */
#include <signal.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "base/terminal.h"
#include "cmd/cmd.h"
#include "cmd/record_settings.h"
#include "explain/explain.h"
#include "proc/process.h"

#define COLUMNS_MIN 80
#define COLUMNS_MAX 100 /* longer lines are hard to read */
#define READING_S 40 /* then what is left is told by mapping */
#define WALL_S 60 /* for each look */
#define FOR_CAP_S (24 * 3600)
#define TURN_US 100000 /* so often it is asked whether to end */

static const char usage[] =
	"usage: heaptap explain [OPTIONS] -p PID|NAME\n"
	"\n"
	"Break down the resident memory of a process: live malloc blocks, free memory that malloc keeps\n"
	"and why, stacks, files and the rest. The rows add up to RSS. Reads the process without stopping\n"
	"or changing it. No recording is needed.\n"
	"\n";

static const char more[] = "\n"
			   "With --for, Ctrl-C takes the second reading at once.\n\n"
			   "Exit status: 0 success, 1 error, 2 wrong usage.\n";

static const char *const formats[] = { "text", "json", "html", NULL };
enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_HTML };

struct explain_options {
	char *process;
	uint64_t for_ns;
	int format, columns;
	bool is_verbose, shows_pins, has_terminal;
	pid_t pid;
};

#define AT(member) offsetof(struct explain_options, member)

static const struct option_row rows[] = {
	OPTION(TEXT, 'p', "pid", "PID", AT(process),
	       "the running process: its PID, or its name if no other process has it"),
	OPTION(TIME, 0, "for", "TIME", AT(for_ns),
	       "read again after TIME, and show the changes: 60s, 5m, 1h", .min = NS_PER_S,
	       .max = FOR_CAP_S * NS_PER_S, .wanted = "a time from 1s to 24h, such as 60s"),
	OPTION(FLAG, 0, "pins", NULL, AT(shows_pins),
	       "also list the live blocks that keep free memory from being returned, by size and by "
	       "C++ class"),
	OPTION(CHOICE, 'f', "format", "WHAT", AT(format),
	       "output format: text (default); json, which has everything; html, one page for a browser",
	       .choices = formats),
	OPTION(FLAG, 'v', "verbose", NULL, AT(is_verbose),
	       "show every row, every arena, a comparison with the counts of malloc itself, and live "
	       "blocks by size and by C++ class"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = ARRAY_CNT(rows) };

/* With --for: in memory that the reading child has as well. A second signal ends all at once. */
static volatile sig_atomic_t *is_over;

static void end_wait(int signal)
{
	(void)signal;
	*is_over = 1;
}

static int watch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = end_wait, .sa_flags = SA_RESETHAND };
	void *shared = mmap(NULL, sizeof(*is_over), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return -errno;
	is_over = shared;
	for (size_t i = 0; i < ARRAY_CNT(signals); i++)
		sigaction(signals[i], &action, NULL);
	return 0;
}

/* 0: it is time for the second look; -ESRCH: the process has ended; -EINTR: a second look would show nothing. */
static int wait_between(const struct explain_options *o, uint64_t start_ns)
{
	uint64_t passed_ns;

	for (;;) {
		passed_ns = now_ns() - start_ns;
		if (process_has_ended(NULL, o->pid))
			return -ESRCH;
		if (passed_ns >= o->for_ns)
			return 0;
		if (*is_over)
			return passed_ns < NS_PER_S ? -EINTR : 0;
		log_status("explain: second reading in %llu s (Ctrl-C: now)",
			   (unsigned long long)((o->for_ns - passed_ns) / NS_PER_S));
		usleep(TURN_US);
	}
}

/* The kernel places it anew at each exec. */
static uint64_t vdso_addr(const struct explanation *x)
{
	const struct mapping *m;

	vec_each(&x->maps.list, m)
		if (!strcmp(m->map.path, "[vdso]"))
			return m->map.start_addr;
	return 0;
}

/* Is it the program that was looked at before? (Without address randomisation a program that executes itself seems to be.) */
static bool is_same_program(const struct explanation *x, const struct explanation *before)
{
	return x->start_time_ticks == before->start_time_ticks && vdso_addr(x) == vdso_addr(before);
}

/* Look again. What is in x stays if that fails. */
static void look_again(const struct explain_options *o, struct explanation *x)
{
	struct explanation again = { 0 };
	struct err why;
	int err = wait_between(o, x->looked_ns);

	log_status_end();
	if (!err)
		err = explain_process(o->pid, true, NULL, READING_S * NS_PER_S, &again, &why);
	if (!err && !is_same_program(&again, x))
		err = again.start_time_ticks == x->start_time_ticks ? -ESTALE : -ESRCH;
	if (err) {
		log_warn("explain: this is only the first reading: %s",
			 err == -ESRCH	? "the process has ended" :
			 err == -ESTALE ? "the process has executed another program" :
			 err == -EINTR	? "heaptap was stopped before the second" :
					  why.text);
		explain_release(&again);
		return;
	}
	explain_compare(&again, x);
	explain_release(x);
	*x = again;
}

/* In a child: the process can make whoever reads it wait. */
static int explain_and_print(void *arg)
{
	const struct explain_options *o = arg;
	struct explanation x;
	struct err why;
	int err = explain_process(o->pid, true, NULL, READING_S * NS_PER_S, &x, &why);

	log_set_terminal(o->has_terminal);
	if (!err && o->for_ns)
		look_again(o, &x);
	if (err)
		log_error("explain: %s", why.text);
	else if (o->format == FORMAT_JSON)
		explain_print_json(&x, stdout);
	else if (o->format == FORMAT_HTML)
		err = explain_print_html(&x, o->shows_pins, stdout);
	else
		explain_print_text(&x, o->columns, o->is_verbose, stdout);
	if (!err && o->shows_pins && o->format == FORMAT_TEXT)
		explain_print_pins(&x, o->columns, stdout);
	explain_release(&x);
	return err ? 1 : 0;
}

static int explain(struct explain_options *o)
{
	uint32_t wall_s = o->for_ns ? 2 * WALL_S + (uint32_t)(o->for_ns / NS_PER_S) : WALL_S;
	struct err why;
	int status = whom_find_one(o->process, &o->pid, &why);

	if (status) {
		log_error("explain: %s", why.text);
		return status == -EINVAL ? 2 : 1;
	}
	status = o->for_ns ? watch_signals() : 0;
	if (!status)
		status = sandbox_run_reading(explain_and_print, o, wall_s);
	if (status < 0)
		log_error("explain: process %d could not be read: %s", o->pid,
			  sandbox_reading_error(status));
	return status < 0 ? 1 : status;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct explain_options o = { 0 };
	int status = 2;

	if (command_settings(&command_explain, args, &o))
		goto out;
	if (args->first < (size_t)argc) {
		log_error("explain: unexpected argument '%s': did you mean -p?", argv[args->first]);
		goto out;
	}
	if (!o.process) {
		log_error("explain: no process given: use -p PID");
		goto out;
	}
	if (o.format == FORMAT_HTML && isatty(STDOUT_FILENO)) {
		log_error(
			"explain: html is for a browser, and standard output is a terminal: add > "
			"x.html");
		goto out;
	}
	o.columns = terminal_columns(STDOUT_FILENO, COLUMNS_MIN, COLUMNS_MAX);
	if (!o.columns)
		o.columns = COLUMNS_MAX;
	o.has_terminal = isatty(STDERR_FILENO);
	status = explain(&o);
out:
	option_release(&table, &o);
	return status;
}

const struct command command_explain = {
	.name = "explain",
	.summary = "break down the resident memory of a process, without recording it",
	.example = "heaptap explain -p PID",
	.options = &table,
	.usage = usage,
	.more = more,
	.run = run,
};
