/* SPDX-License-Identifier: MIT */
/*
 * cmd/version.c - `heaptap version`: the version, and the licences of all that is in it.
 *
 * The texts of licences are stored compressed. The one executable of `make dist` has those of all that is linked
 * into it; other builds have heaptap's own and a list of the libraries, whose texts came with them.
 */
#include "cmd/cmd.h"

#include <zlib.h>

#include "base/log.h"
#include "base/terminal.h"
#include "licences.h" /* licences_gz[] */

struct version_options {
	bool shows_licences;
};

static const struct option_row rows[] = {
	OPTION(FLAG, 0, "licences", NULL, offsetof(struct version_options, shows_licences),
	       "show the licences of heaptap and of the libraries inside"),
	COMMAND_HELP_ROW,
	COMMAND_VERSION_ROW,
};

static const struct option_table table = { .rows = rows, .cnt = ARRAY_CNT(rows) };

/* Our own data: a gzip file, whose last four bytes give the unpacked length. */
static int unpack_licences(char **ret)
{
	const uint8_t *end = licences_gz + sizeof(licences_gz) - 4;
	uint32_t bytes = end[0] | end[1] << 8 | end[2] << 16 | (uint32_t)end[3] << 24;
	z_stream z = { .next_in = (Bytef *)licences_gz, .avail_in = sizeof(licences_gz) };
	char *text = calloc(1, (size_t)bytes + 1);
	int rc;

	if (!text || inflateInit2(&z, 15 + 16) != Z_OK) {
		free(text);
		return -ENOMEM;
	}
	z.next_out = (Bytef *)text;
	z.avail_out = bytes;
	rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (rc != Z_STREAM_END) {
		free(text);
		return -EBADMSG;
	}
	*ret = text;
	return 0;
}

static int print_licences(void)
{
	char *text = NULL;
	int err = unpack_licences(&text);

	if (!err)
		err = terminal_page(text, true);
	if (err)
		log_error("version: cannot show the licences: %s", strerror(-err));
	free(text);
	return err;
}

static int run(int argc, char **argv, const struct option_args *args)
{
	struct version_options o = { 0 };

	if (command_settings(&command_version, args, &o))
		return 2;
	if (args->first < (size_t)argc) {
		log_error("version: unexpected argument '%s'", argv[args->first]);
		return 2;
	}
	if (o.shows_licences)
		return print_licences() ? 1 : 0;
	fputs(VERSION_LINE, stdout);
	return 0;
}

const struct command command_version = {
	.name = "version",
	.summary = "show the version, and the licences of what is inside",
	.options = &table,
	.usage = "usage: heaptap version [--licences]\n\nShow the version.\n\n",
	.more = "",
	.run = run,
};
