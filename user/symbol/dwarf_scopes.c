/* SPDX-License-Identifier: MIT */
/*
 * dwarf_scopes.c - finds namespaces and types around a DIE, by the offsets at which DIEs begin and end.
 *
 * GCC gives no linkage name to a function without code of its own, which most inlined calls are; without its
 * class, "allocate" says little. A DIE has no link to its parent, so the scopes of a unit are listed once (one
 * walk over namespaces and types, not into functions) and a DIE's scope is found by its offset.
 *
 * Lambdas live in functions: only for an operator without another scope is the walk through all functions of
 * its unit worth it. Other methods of local classes stay unqualified.
 */
#include "symbol/dwarf_lookup_priv.h"

#include <dwarf.h>

#include "base/strset.h"
#include "base/vec.h"

#define DEPTH_CAP 100
#define ORIGIN_STEPS_CAP 16
#define NAME_BYTES_CAP 8192
#define NO_SCOPE UINT32_MAX
/* Limit of all units' lists together; names beyond it stay unqualified. */
#define SCOPES_CAP (4u << 20)

struct scope {
	Dwarf_Off start, end;
	const char *name;
	uint32_t parent; /* NO_SCOPE: the unit */
};

struct unit_scopes {
	const void *unit; /* address of the unit's DIE */
	bool is_deep; /* functions are scopes, too */
	VEC(struct scope) scopes; /* by start */
};

struct dwarf_scopes {
	struct strset *names;
	VEC(struct unit_scopes) units;
	size_t last_unit;
	size_t scope_cnt;
};

int dwarf_scopes_new(struct dwarf_scopes **ret)
{
	struct dwarf_scopes *ds = calloc(1, sizeof(*ds));

	if (!ds)
		return -ENOMEM;
	*ret = ds;
	return 0;
}

void dwarf_scopes_flush(struct dwarf_scopes *ds)
{
	struct unit_scopes *u;

	vec_each(&ds->units, u)
		vec_release(&u->scopes);
	ds->units.cnt = ds->last_unit = ds->scope_cnt = 0;
	strset_free(ds->names);
	ds->names = NULL;
}

void dwarf_scopes_free(struct dwarf_scopes *ds)
{
	if (!ds)
		return;
	dwarf_scopes_flush(ds);
	vec_release(&ds->units);
	free(ds);
}

static bool is_scope(int tag, bool deep)
{
	if (deep && (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block))
		return true;
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_interface_type;
}

static int list_scopes(struct unit_scopes *u, Dwarf_Die *parent_die, uint32_t parent, Dwarf_Off end,
		       int depth)
{
	Dwarf_Die die, next;
	int more;

	if (depth >= DEPTH_CAP || dwarf_child(parent_die, &die) != 0)
		return 0;
	do {
		int tag = dwarf_tag(&die);

		more = dwarf_siblingof(&die, &next);
		if (is_scope(tag, u->is_deep) && dwarf_haschildren(&die) > 0) {
			struct scope s = { .start = dwarf_dieoffset(&die), .parent = parent };

			s.end = more == 0 ? dwarf_dieoffset(&next) : end;
			s.name = dwarf_diename(&die);
			if (!s.name && tag == DW_TAG_namespace)
				s.name = "(anonymous namespace)";
			/* A class without a name in a function is the type of a lambda. */
			if (!s.name && u->is_deep && tag != DW_TAG_lexical_block &&
			    tag != DW_TAG_subprogram)
				s.name = "{lambda}";
			if (u->scopes.cnt >= SCOPES_CAP)
				return 0;
			if (vec_push(&u->scopes, s))
				return -ENOMEM;
			if (list_scopes(u, &die, (uint32_t)u->scopes.cnt - 1, s.end, depth + 1))
				return -ENOMEM;
		}
		die = next;
	} while (more == 0);
	return 0;
}

/* Return the list of the unit, empty when it is new; NULL when there is no memory. */
static struct unit_scopes *list_of(struct dwarf_scopes *ds, const void *unit)
{
	struct unit_scopes u = { .unit = unit };

	if (ds->last_unit < ds->units.cnt && ds->units.data[ds->last_unit].unit == unit)
		return &ds->units.data[ds->last_unit];
	for (ds->last_unit = 0; ds->last_unit < ds->units.cnt; ds->last_unit++)
		if (ds->units.data[ds->last_unit].unit == unit)
			return &ds->units.data[ds->last_unit];
	return vec_push(&ds->units, u) ? NULL : &ds->units.data[ds->last_unit];
}

/* Return the scopes of the unit; NULL when there is no memory or there are too many. */
static const struct unit_scopes *unit_of(struct dwarf_scopes *ds, Dwarf_Die *unit_die, bool deep)
{
	size_t known = ds->units.cnt;
	struct unit_scopes *u = list_of(ds, unit_die->addr);

	if (!u || (ds->units.cnt == known && (u->is_deep || !deep)))
		return u;
	if (ds->scope_cnt > SCOPES_CAP)
		return NULL;
	u->is_deep = deep;
	ds->scope_cnt -= u->scopes.cnt;
	u->scopes.cnt = 0;
	/* A list that ends because memory ran out is correct, but not complete. */
	(void)list_scopes(u, unit_die, NO_SCOPE, UINT64_MAX, 0);
	ds->scope_cnt += u->scopes.cnt;
	return u;
}

/* Find the declaration of a function: from the inlined call or the out-of-line body to its class. */
static void find_declaration(Dwarf_Die *die, Dwarf_Die *ret)
{
	*ret = *die;
	for (int i = 0; i < ORIGIN_STEPS_CAP; i++) {
		Dwarf_Attribute attr;
		Dwarf_Die next;

		if (!dwarf_attr(ret, DW_AT_abstract_origin, &attr) &&
		    !dwarf_attr(ret, DW_AT_specification, &attr))
			return;
		if (!dwarf_formref_die(&attr, &next))
			return;
		*ret = next;
	}
}

/* Return the innermost scope around offset off. */
static uint32_t scope_at(const struct unit_scopes *u, Dwarf_Off off)
{
	size_t low = vec_first_from(&u->scopes, start, off);
	uint32_t at;

	at = low ? (uint32_t)low - 1 : NO_SCOPE;
	while (at != NO_SCOPE && u->scopes.data[at].end <= off)
		at = u->scopes.data[at].parent;
	return at;
}

static bool is_cplusplus(Dwarf_Die *unit_die)
{
	switch (dwarf_srclang(unit_die)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

/* Get the names of the scopes around die, innermost first. */
static size_t scopes_around(struct dwarf_scopes *ds, Dwarf_Die *unit_die, Dwarf_Off off, bool deep,
			    const char **parts)
{
	const struct unit_scopes *u = unit_of(ds, unit_die, deep);
	uint32_t at = u ? scope_at(u, off) : NO_SCOPE;
	size_t cnt = 0;

	for (; at != NO_SCOPE && cnt < DEPTH_CAP; at = u->scopes.data[at].parent)
		if (u->scopes.data[at].name)
			parts[cnt++] = u->scopes.data[at].name;
	return cnt;
}

const char *dwarf_scopes_qualify(struct dwarf_scopes *ds, Dwarf_Die *die, const char *name)
{
	const char *parts[DEPTH_CAP];
	char text[NAME_BYTES_CAP];
	size_t part_cnt, n = 0;
	Dwarf_Die decl, unit_die;
	int64_t id;

	find_declaration(die, &decl);
	if (!dwarf_diecu(&decl, &unit_die, NULL, NULL) || !is_cplusplus(&unit_die))
		return name;
	part_cnt = scopes_around(ds, &unit_die, dwarf_dieoffset(&decl), false, parts);
	if (!part_cnt && strncmp(name, "operator", 8) == 0)
		part_cnt = scopes_around(ds, &unit_die, dwarf_dieoffset(&decl), true, parts);
	if (!part_cnt)
		return name;
	while (part_cnt && n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s::", parts[--part_cnt]);
	if (n < sizeof(text))
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", name);
	if (n >= sizeof(text) || (!ds->names && strset_new(&ds->names)))
		return name;
	id = strset_add_n(ds->names, text, n);
	return id < 0 ? name : strset_get(ds->names, id);
}
