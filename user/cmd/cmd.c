/* SPDX-License-Identifier: MIT */
/* cmd/cmd.c - see cmd/cmd.h. */
#include "cmd/cmd.h"

#include "base/log.h"
#include "record/out_file.h"

void command_error(void *ctx, const char *text)
{
	log_error("%s: %s", (const char *)ctx, text);
}

int command_take_stdout(const char *command, int *ret_fd)
{
	int err = out_file_take_stdout(ret_fd);

	if (err == -ENOTTY)
		log_error("%s: the profile is not text, and standard output is a terminal: "
			  "redirect it, or give a file with -o FILE",
			  command);
	else if (err)
		log_error("%s: cannot write to standard output: %s", command, strerror(-err));
	return err;
}

int command_settings(const struct command *c, const struct option_args *args, void *settings)
{
	int err = option_apply_defaults(c->options, settings);

	return err ? err : option_apply_args(settings, args, command_error, (void *)c->name);
}

static void print_help(const struct command *c)
{
	fputs(c->usage, stdout);
	option_print_help(c->options, stdout);
	fputs(c->more, stdout);
}

static bool has_program(char *const *argv)
{
	for (; *argv; argv++)
		if (!strcmp(*argv, "--"))
			return argv[1] != NULL;
	return false;
}

int command_run(const struct command *c, int argc, char **argv)
{
	struct option_args args;
	int status = 2;

	if (option_read_args(c->options, argc, argv, command_error, (void *)c->name, &args))
		goto out;
	if (option_args_find(&args, "help")) {
		print_help(c);
		status = 0;
	} else if (option_args_find(&args, "version")) {
		fputs(VERSION_LINE, stdout);
		status = 0;
	} else {
		status = c->run(argc, argv, &args);
	}
out:
	option_args_release(&args);
	if (status == 2)
		fprintf(stderr, "Try 'heaptap %s --help'.\n", c->name);
	if (status >= COMMAND_PROGRAM)
		return status - COMMAND_PROGRAM;
	if (status && c->returns_program_status && has_program(argv))
		return COMMAND_FAILED;
	return status == COMMAND_UNDECIDED ? 2 : status;
}
