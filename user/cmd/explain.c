/* SPDX-License-Identifier: MIT */
/*
 * cmd/explain.c - `heaptap explain -p PID`: what all resident memory of a process is. Wiring only.
 *
 * Exit status: 0 explained, 1 not (the message says why), 2 wrong usage.
 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "base/terminal.h"
#include "cmd/cmd.h"
#include "explain/explain.h"

#define COLUMNS_MIN 80
#define COLUMNS_MAX 100 /* longer lines are hard to read */
#define READING_S 40 /* then what is left is told by mapping */
#define WALL_S 60

static const char usage[] =
	"usage: heaptap explain [-f text|json] [-v] -p PID\n"
	"\n"
	"Break down the resident memory of a process: live malloc blocks, free memory that malloc keeps\n"
	"and why, stacks, files and the rest. The rows add up to RSS. Reads the process once, without\n"
	"stopping or changing it. No recording is needed.\n"
	"\n";

static const char more[] = "\n"
			   "Exit status: 0 success, 1 error, 2 wrong usage.\n";

static const char *const formats[] = { "text", "json", NULL };
enum format { FORMAT_TEXT, FORMAT_JSON };

struct explain_options {
	uint64_t pid;
	int format, columns;
	bool is_verbose;
};

#define AT(member) offsetof(struct explain_options, member)

static const struct option_row rows[] = {
	{ .name = "pid",
	  .letter = 'p',
	  .type = OPTION_COUNT,
	  .at = AT(pid),
	  .arg = "PID",
	  .min = 1,
	  .max = INT_MAX,
	  .wanted = "a process id, as pidof -s NAME prints it",
	  .help = "the running process" },
	{ .name = "format",
	  .letter = 'f',
	  .type = OPTION_CHOICE,
	  .at = AT(format),
	  .arg = "WHAT",
	  .choices = formats,
	  .help = "output format: text (default) or json" },
	{ .name = "verbose",
	  .letter = 'v',
	  .type = OPTION_FLAG,
	  .at = AT(is_verbose),
	  .help = "show every row, every arena, and a comparison with the counts of malloc itself" },
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = sizeof(rows) / sizeof(*rows) };

/* In a child: the process can make whoever reads it wait. */
static int explain_and_print(void *arg)
{
	const struct explain_options *o = arg;
	struct explanation x;
	struct err why;
	int err = explain_process((pid_t)o->pid, READING_S * NS_PER_S, &x, &why);

	if (err)
		log_error("explain: %s", why.text);
	else if (o->format == FORMAT_JSON)
		explain_print_json(&x, stdout);
	else
		explain_print_text(&x, o->columns, o->is_verbose, stdout);
	explain_release(&x);
	return err ? 1 : 0;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct explain_options o = { 0 };
	int status;

	if (command_settings(&command_explain, args, &o))
		return 2;
	if (args->first < (size_t)argc) {
		log_error("explain: unexpected argument '%s': did you mean -p?", argv[args->first]);
		return 2;
	}
	if (!o.pid) {
		log_error("explain: no process given: use -p PID");
		return 2;
	}
	o.columns = terminal_columns(STDOUT_FILENO, COLUMNS_MIN, COLUMNS_MAX);
	if (!o.columns)
		o.columns = COLUMNS_MAX;
	status = sandbox_run_reading(explain_and_print, &o, WALL_S);
	if (status >= 0)
		return status;
	log_error("explain: process %llu could not be read: %s", (unsigned long long)o.pid,
		  sandbox_reading_error(status));
	return 1;
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
