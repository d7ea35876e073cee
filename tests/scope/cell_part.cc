/* SPDX-License-Identifier: MIT */
/*
 * Of cell.h: a unit of the program in C++, with call sites in a template. Where there is no C++
 * library for the target it is compiled as C.
 */
#include "heaptap/scope.h"

#include "cell.h"

#ifdef __cplusplus
template <class T> static int pushes(T)
{
	HEAPTAP_SCOPE("B");

	return cell_expect(reinterpret_cast<const void *>(cell_part_cxx), "Top/A/B");
}
#else
static int pushes(long unused)
{
	HEAPTAP_SCOPE("B");

	(void)unused;
	return cell_expect((const void *)cell_part_cxx, "Top/A/B");
}
#endif

int cell_part_cxx(void)
{
	return pushes(1) || pushes(1L);
}
