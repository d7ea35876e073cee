/* SPDX-License-Identifier: MIT */
/*
 * match_list.h - "Csd*,-Csd_Write": which scopes are wanted.
 *
 * A list of patterns separated by commas; '*' stands for any characters. A pattern adds the scopes
 * that it matches, with '-' in front it takes them away, '+' in front says the same as nothing. The
 * last pattern that matches a scope decides. A list that begins with '-' starts from all scopes,
 * any other from none.
 *
 * A pattern matches a scope when it matches the name of the scope or of one of its ancestors; with
 * a '/' that is not escaped, when it matches the path of the scope or of an ancestor. So whoever
 * takes a scope takes all that is below it. Names are compared as they are shown ("\/" for a slash
 * inside a name). A name with a comma is matched with '*' in its place.
 */
#ifndef HT_PROFILE_MATCH_LIST_H
#define HT_PROFILE_MATCH_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct match_list;

/* 0, -ENOMEM, or -EINVAL for a list with an empty pattern. */
int match_list_new(const char *text, struct match_list **ret);
void match_list_free(struct match_list *m);
/* Is the scope wanted? Notes for every pattern whether it has matched. */
bool match_list_test(struct match_list *m, const char *path);
/* Patterns that no tested scope matched: start with *pos = 0, until NULL. */
const char *match_list_unused(const struct match_list *m, size_t *pos);

#endif
