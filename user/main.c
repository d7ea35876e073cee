/* SPDX-License-Identifier: MIT */
/* main.c - the table of commands. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "cmd.h"

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
};

static const struct command commands[] = {
	{ "record", cmd_record, "record who holds the memory of a process" },
	{ "report", cmd_report, "read a profile: by stack, function, module or thread" },
	{ "serve", cmd_serve, "follow processes and serve their profiles over HTTP" },
	{ "doctor", cmd_doctor, "what can be recorded here, and what would be missing" },
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
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\n"
	      "first steps:\n"
	      "  heaptap record -p PID -d 30s        record a running process, as root\n"
	      "  heaptap report heaptap-PID.pb.gz    look at it again, another way\n"
	      "  heaptap COMMAND --help              the options of a command\n",
	      out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMAND_CNT; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int reject(const char *name)
{
	const char *names[COMMAND_CNT];
	size_t nearest;

	for (size_t i = 0; i < COMMAND_CNT; i++)
		names[i] = commands[i].name;
	nearest = nearest_name(name, names, COMMAND_CNT);
	if (nearest < COMMAND_CNT)
		log_error("there is no command '%s': did you mean '%s'?", name, names[nearest]);
	else
		log_error("there is no command '%s': 'heaptap --help' lists them", name);
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

	if (c)
		return c->run(argc - 1, argv + 1);
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("heaptap " HEAPTAP_VERSION);
		return 0;
	}
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return run_help(argc, argv);
	if (name[0])
		return reject(name);
	print_usage(stderr);
	return 2;
}
