/* SPDX-License-Identifier: MIT */
/* Of cell.h: the library's other unit. */
#include "heaptap/scope.h"

#include "cell.h"

int cell_lib_part(void)
{
	HEAPTAP_SCOPE("Inner");

	return cell_lib_expect("Lib/Inner");
}
