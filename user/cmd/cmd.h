/* SPDX-License-Identifier: MIT */
/* cmd/cmd.h - the commands, and what they share: --help, --version, and messages about a wrong command line. */
#ifndef HT_CMD_CMD_H
#define HT_CMD_CMD_H

#include "base/std.h"
#include "cmd/option.h"

#define VERSION_LINE "heaptap " HEAPTAP_VERSION "\n" /* of --version, in every command */

#define COMMAND_UNDECIDED 256 /* exit status 2, although the command line is right */
#define COMMAND_PROGRAM 512 /* + the exit status of the program that was started */
#define COMMAND_FAILED \
	125 /* of a command that returns a program's status: it failed itself, as in timeout(1) */

struct command {
	const char *name, *summary, *example;
	const struct option_table *options;
	const char *usage, *more; /* in --help: before the options, and after them */
	bool returns_program_status; /* of the program behind "--" */
	/* argv[0] is the command's name. Returns the exit status: 0 done, 1 failed, 2 wrong usage; or
	 * COMMAND_UNDECIDED, or COMMAND_PROGRAM + a program's. */
	int (*run)(int argc, char **argv, const struct option_args *args);
};

extern const struct command command_record, command_report, command_top, command_diff,
	command_check, command_doctor, command_explain, command_serve, command_symbolize,
	command_convert, command_version;

/* The last two rows of every table. */
#define COMMAND_HELP_ROW                                                               \
	{                                                                              \
		.name = "help", .letter = 'h', .type = OPTION_ASK, .help = "show this" \
	}
#define COMMAND_VERSION_ROW                                                                      \
	{                                                                                        \
		.name = "version", .letter = 'V', .type = OPTION_ASK, .help = "show the version" \
	}

/* Return the exit status. Errors were logged. */
int command_run(const struct command *c, int argc, char **argv);

/* option_error_fn; ctx is the command's name. */
void command_error(void *ctx, const char *text);
/* As out_file_take_stdout(), for a profile: no terminal. The reason was logged. */
int command_take_stdout(const char *command, int *ret_fd);
/* Fill settings, zeroed first, from defaults and the command line. -EINVAL: the reason was logged. */
int command_settings(const struct command *c, const struct option_args *args, void *settings);

/* profile_in.c: reads the profile that a command is given. Errors are logged with the command's name. */

struct profile;

/* "http://..." or "https://..." */
bool http_get_is_url(const char *text);
/* path "-": the standard input; all forms of pprof_read(). A path that begins with http:// or https:// is fetched.
 * token_file: as that of the heaptap that serves; NULL: none. */
int profile_in_read(const char *command, const char *path, const char *token_file,
		    struct profile **ret);
/* Look up functions and lines for a profile without them: other allocators' dumps. */
int profile_in_name(const char *command, struct profile *p);

#endif
