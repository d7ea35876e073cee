// SPDX-License-Identifier: MIT
// Of inline.h: the library. Its node ids are far from the program's.
#include "inline.h"

#include "reader.h"

unsigned long lib_descriptor(void)
{
	reader_notes notes;

	return reader_image_of(reinterpret_cast<const void *>(lib_descriptor), &notes) ?
		       0 :
		       notes.descriptor;
}

int from_lib(int (*check)(void))
{
	char name[] = "lib a";

	for (; name[4] <= 'z'; name[4]++) {
		heaptap_push(name);
		heaptap_pop();
	}
	HEAPTAP_SCOPE("lib");
	return in_both(check) || in_both(check);
}
