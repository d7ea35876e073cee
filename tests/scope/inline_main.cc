// SPDX-License-Identifier: MIT
// Of inline.h: the program. Exit status 0 when each image's path is one that it can be in.
#include "inline.h"

#include "reader.h"

static unsigned long mine, theirs;

static int is(unsigned long descriptor, const char *expected)
{
	char text[256];

	return !strcmp(reader_current(descriptor, text, sizeof(text)), expected);
}

static int check_own()
{
	return is(mine, "main/both") ? 0 : 1;
}
static int check_lib()
{
	if (is(mine, "main/both") ? is(theirs, "lib") : is(mine, "main") && is(theirs, "lib/both"))
		return 0;
	char a[256], b[256];
	printf("# in '%s' and '%s'\n", reader_current(mine, a, sizeof(a)),
	       reader_current(theirs, b, sizeof(b)));
	return 1;
}

int main()
{
	reader_notes notes;

	if (reader_image_of(&mine, &notes))
		return 1;
	mine = notes.descriptor;
	theirs = lib_descriptor();
	if (!mine || !theirs || mine == theirs)
		return 1;
	HEAPTAP_SCOPE("main");
	for (int i = 0; i < 3; i++)
		if (in_both(check_own) || from_lib(check_lib))
			return 1;
	return is(mine, "main") && is(theirs, "") ? 0 : 1;
}
