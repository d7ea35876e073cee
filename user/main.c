/* SPDX-License-Identifier: MIT */
/* main.c - the table of commands. */
#include <signal.h>

#include "base/log.h"
#include "base/names.h"
#include "cmd/cmd.h"

static int run_completion(int argc, char **argv, const struct option_args *args);

static const struct option_row completion_rows[] = { COMMAND_HELP_ROW, COMMAND_VERSION_ROW };
static const struct option_table completion_table = { .rows = completion_rows, .cnt = 2 };

static const struct command command_completion = {
	.name = "completion",
	.summary = "print the completion script for a shell",
	.options = &completion_table,
	.usage = "usage: heaptap completion bash | zsh | fish\n"
		 "\n"
		 "Print the completion script for a shell. 'make install' installs it.\n"
		 "For a single session of bash: . <(heaptap completion bash)\n"
		 "\n",
	.more = "",
	.run = run_completion,
};

/* Most needed first. */
static const struct command *const commands[] = {
	&command_record,  &command_report,    &command_doctor,	&command_explain,
	&command_top,	  &command_serve,     &command_diff,	&command_check,
	&command_convert, &command_symbolize, &command_version, &command_completion
};
#define COMMAND_CNT (sizeof(commands) / sizeof(*commands))

static void print_usage(FILE *out)
{
	fputs("usage: heaptap COMMAND [OPTIONS]\n\n"
	      "heaptap shows which code holds the memory of a running native process, from "
	      "outside it.\n\n",
	      out);
	for (size_t i = 0; i < COMMAND_CNT && commands[i]->example; i++)
		fprintf(out, "  %-9s %s\n              $ %s\n", commands[i]->name,
			commands[i]->summary, commands[i]->example);
	fputs("\n"
	      "Options of a command: heaptap COMMAND --help; in detail: man heaptap-COMMAND.\n"
	      "Licences: heaptap version --licences. Completion in shells: heaptap completion.\n",
	      out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_CNT; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void reject_option(const char *name)
{
	static const char *const names[] = { "--version", "--help" };
	size_t nearest = nearest_name(name, names, 2);

	if (nearest < 2)
		log_error("unknown option '%s': did you mean %s?", name, names[nearest]);
	else
		log_error("unknown option '%s': options follow a command, as in 'heaptap record -p "
			  "PID'",
			  name);
}

static int reject(const char *name)
{
	const char *names[COMMAND_CNT];
	size_t nearest;

	for (size_t i = 0; i < COMMAND_CNT; i++)
		names[i] = commands[i]->name;
	nearest = nearest_name(name, names, COMMAND_CNT);
	if (name[0] == '-')
		reject_option(name);
	else if (nearest < COMMAND_CNT)
		log_error("unknown command '%s': did you mean %s?", name, names[nearest]);
	else if (name[strspn(name, "0123456789")] == '\0')
		log_error("unknown command '%s': did you mean 'heaptap record -p %s'?", name, name);
	else
		log_error("unknown command '%s'", name);
	fputs("Try 'heaptap --help'.\n", stderr);
	return 2;
}

static int run_help(int argc, char **argv)
{
	const struct command *c = argc > 2 ? find_command(argv[2]) : NULL;
	char *args[] = { NULL, "--help", NULL };

	if (!c && argc > 2)
		return reject(argv[2]);
	if (!c) {
		print_usage(stdout);
		return 0;
	}
	args[0] = argv[2];
	return command_run(c, 2, args);
}

static int run_completion(int argc, char **argv, const struct option_args *args)
{
	static const char *const shells[] = { "bash", "zsh", "fish" }; /* enum completion_shell */
	const char *name = args->first + 1 == (size_t)argc ? argv[args->first] : "";

	for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++) {
		if (!strcmp(name, shells[i])) {
			completion_print((enum completion_shell)i, commands, COMMAND_CNT, stdout);
			return 0;
		}
	}
	log_error("completion: which shell: bash, zsh or fish?");
	return 2;
}

static int run(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *c = find_command(name);

	if (c)
		return command_run(c, argc - 1, argv + 1);
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		fputs(VERSION_LINE, stdout);
		return 0;
	}
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return run_help(argc, argv);
	if (name[0])
		return reject(name);
	print_usage(stderr);
	return 2;
}

/* A reader that has left (EPIPE) wanted no more. */
static int finish_output(int status)
{
	if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE && !status) {
		log_error("cannot write to standard output: %s", strerror(errno));
		return 1;
	}
	return status;
}

int main(int argc, char **argv)
{
	signal(SIGXFSZ, SIG_IGN); /* no room is a reported error, here and in children */
	errno = 0;
	return finish_output(run(argc, argv));
}
