/* SPDX-License-Identifier: MIT */
/*
 * cmd/cmd.h - the commands. Each parses its own options; argv[0] is the command's name. The value is
 * the exit status: 0 done, 1 failed, 2 used wrongly.
 */
#ifndef HT_CMD_CMD_H
#define HT_CMD_CMD_H

#define VERSION_LINE "heaptap " HEAPTAP_VERSION "\n" /* of --version, in every command */

int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

#endif
