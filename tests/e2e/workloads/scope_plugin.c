/* SPDX-License-Identifier: MIT */
/* scope_plugin.c - a library with scopes of its own; see scope_dlopen.c. */
#include "heaptap/scope.h"

void plugin_call(void (*function)(void));
void plugin_call(void (*function)(void))
{
	HEAPTAP_SCOPE("Plugin");
	{
		HEAPTAP_SCOPE("Inner");
		function();
	}
	/* or the call would be a jump, and the scope over before it */
	__asm__ volatile("");
}
