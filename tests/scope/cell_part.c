/* SPDX-License-Identifier: MIT */
/* Of cell.h: a unit of the program in C. */
#include "heaptap/scope.h"

#include "cell.h"

int cell_part(void)
{
	HEAPTAP_SCOPE("A");

	return cell_part_cxx();
}
