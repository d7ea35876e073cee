/* SPDX-License-Identifier: MIT */
/*
 * match_list.h - which scopes are wanted: "Csd*,-Csd_Write".
 *
 * A list of patterns separated by commas; '*' stands for any characters. A pattern adds the scopes that it matches;
 * with '-' in front it takes them away; '+' in front changes nothing. The last pattern that matches a scope decides. A
 * list that begins with '-' starts from all scopes, any other from none.
 *
 * A pattern matches a scope by the name of the scope or of one of its ancestors; if it contains a '/' that is not
 * escaped, by the path of the scope or of an ancestor. So a pattern takes a scope with all that is below it. Names are
 * compared as they are shown ("\/" for a slash inside a name). For a name with a comma, put '*' in its place.
 */
#ifndef HT_PROFILE_MATCH_LIST_H
#define HT_PROFILE_MATCH_LIST_H

#include "base/std.h"

struct match_list;

/* 0, -ENOMEM, or -EINVAL for a list with an empty pattern. */
int match_list_new(const char *text, struct match_list **ret);
void match_list_free(struct match_list *m);
/* Is the scope wanted? Also notes for each pattern whether it has ever matched. */
bool match_list_test(struct match_list *m, const char *path);
/* Walk the patterns that matched no tested scope: start with *pos = 0, until NULL. */
const char *match_list_unused(const struct match_list *m, size_t *pos);

#endif
