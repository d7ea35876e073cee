/* SPDX-License-Identifier: MIT */
/* main.c - the table of commands. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "cmd/cmd.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary, *example;
};

/* Those that are needed first come first. */
static const struct command commands[] = {
	{ "record", cmd_record, "record a process and show who holds its memory (as root)",
	  "heaptap record -p PID -d 30s" },
	{ "report", cmd_report, "show a recorded profile again, another way",
	  "heaptap report --by thread FILE" },
	{ "diff", cmd_diff, "show what changed from one profile to another",
	  "heaptap diff BEFORE AFTER" },
	{ "doctor", cmd_doctor, "say what can be recorded here, and what would be missing",
	  "heaptap doctor -p PID" },
	{ "serve", cmd_serve, "follow processes and serve their profiles over HTTP (as root)",
	  "heaptap serve --comm '^nginx$'" },
};
#define COMMAND_CNT (sizeof(commands) / sizeof(*commands))

static void print_usage(FILE *out)
{
	fputs("usage: heaptap COMMAND [OPTIONS]\n"
	      "\n"
	      "heaptap shows who holds the memory of a running native process, from outside it.\n"
	      "\n",
	      out);
	for (size_t i = 0; i < COMMAND_CNT; i++)
		fprintf(out, "  %-8s %s\n             $ %s\n", commands[i].name,
			commands[i].summary, commands[i].example);
	fputs("\n"
	      "heaptap COMMAND --help lists the options of a command, man heaptap-COMMAND explains\n"
	      "them; heaptap --version shows the version.\n",
	      out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_CNT; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void reject_option(const char *name)
{
	static const char *const names[] = { "--version", "--help" };
	size_t nearest = nearest_name(name, names, 2);

	if (nearest < 2)
		log_error("unknown option '%s': did you mean %s?", name, names[nearest]);
	else
		log_error("unknown option '%s': options stand behind a command, as in 'heaptap "
			  "record -p PID'",
			  name);
}

static int reject(const char *name)
{
	const char *names[COMMAND_CNT];
	size_t nearest;

	for (size_t i = 0; i < COMMAND_CNT; i++)
		names[i] = commands[i].name;
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
	return c->run(2, args);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *c = find_command(name);

	signal(SIGXFSZ, SIG_IGN); /* no room is an error that is told, here and in children */
	if (c)
		return c->run(argc - 1, argv + 1);
	if (!strcmp(name, "version") || !strcmp(name, "--version") || !strcmp(name, "-V")) {
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
