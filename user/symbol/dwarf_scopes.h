/* SPDX-License-Identifier: MIT */
/*
 * dwarf_scopes.h - "std::vector<int>::push_back" for a function that DWARF calls "push_back".
 */
#ifndef HT_SYMBOL_DWARF_SCOPES_H
#define HT_SYMBOL_DWARF_SCOPES_H

#include <elfutils/libdw.h>

struct dwarf_scopes;

int dwarf_scopes_new(struct dwarf_scopes **ret);
void dwarf_scopes_free(struct dwarf_scopes *ds);
/* Before the Dwarf handle is closed. Strings that were given out go. */
void dwarf_scopes_flush(struct dwarf_scopes *ds);
/*
 * name with the namespaces and types around the declaration of die (a function or an inlined call
 * of one) in front; name itself outside of C++. Valid until the next flush.
 */
const char *dwarf_scopes_qualify(struct dwarf_scopes *ds, Dwarf_Die *die, const char *name);

#endif
