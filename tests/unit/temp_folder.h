/* SPDX-License-Identifier: MIT */
/* temp_folder.h - a folder for one test, as its *state. */
#ifndef HT_TEST_TEMP_FOLDER_H
#define HT_TEST_TEMP_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

struct temp_folder {
	char path[64];
};

static int new_folder(void **state)
{
	struct temp_folder *f = calloc(1, sizeof(*f));

	snprintf(f->path, sizeof(f->path), "/tmp/heaptap-folder-XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	*state = f;
	return 0;
}

static int remove_folder(void **state)
{
	struct temp_folder *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", f->path);
	if (system(command))
		return -1;
	free(f);
	return 0;
}

#endif
