/* SPDX-License-Identifier: MIT */
/* explain/types.c - see explain/types.h. */
#include "explain/types.h"

#include "base/hmap.h"
#include "symbol/symbol.h"

#define SLOT_CNT 16384 /* words that are remembered */
#define TRIES_CAP (1u << 18) /* words that are looked at: each may take four pages to read */
#define ROOT_CNT \
	8 /* vtables of the ABI's own classes; each library that has its own C++ runtime has three */

struct slot {
	uint64_t word;
	uint32_t type;
};

struct types {
	struct memory *memory;
	struct mappings *maps;
	struct type_files files;
	uint64_t low, high; /* where files are mapped */
	uint64_t skip_addr, skip_bytes; /* the last mapping there that is of no file */
	VEC(struct type) list; /* the first is no class */
	struct hmap known; /* vtable -> index in list */
	struct slot *slots; /* the words that were asked for last */
	uint64_t roots[ROOT_CNT];
	size_t root_cnt;
	uint32_t left_tries;
	bool is_finished;
};

int types_new(struct memory *m, struct mappings *maps, const struct type_files *files,
	      struct types **ret)
{
	struct types *t = calloc(1, sizeof(*t));
	const struct mapping *map;

	if (!t)
		return -ENOMEM;
	hmap_init(&t->known, sizeof(uint64_t));
	t->slots = calloc(SLOT_CNT, sizeof(*t->slots));
	if (!t->slots || vec_push(&t->list, (struct type){ 0 })) {
		types_free(t);
		return -ENOMEM;
	}
	t->memory = m;
	t->maps = maps;
	t->files = files ? *files : (struct type_files){ 0 };
	t->left_tries = TRIES_CAP;
	vec_each(&maps->list, map) {
		if (map->map.path[0] != '/')
			continue;
		if (!t->high)
			t->low = map->map.start_addr;
		t->high = map->map.end_addr;
	}
	*ret = t;
	return 0;
}

void types_free(struct types *t)
{
	struct type *type;

	if (!t)
		return;
	vec_each(&t->list, type)
		free(type->name);
	vec_release(&t->list);
	hmap_release(&t->known);
	free(t->slots);
	free(t);
}

/* What is never written is the file's, so it is there for pages that are not present. */
static bool read_file(struct types *t, uint64_t addr, void *buf, size_t bytes)
{
	const struct mapping *map = mappings_find(t->maps, addr);

	return t->files.read && map && map->map.path[0] == '/' && !map->map.is_write &&
	       bytes <= map->map.end_addr - addr && !memory_is_late(t->memory) &&
	       !t->files.read(t->files.ctx, map, addr, buf, bytes);
}

static bool read_word(struct types *t, uint64_t addr, uint64_t *ret)
{
	return memory_word(t->memory, addr, ret) ||
	       (addr % 8 == 0 && read_file(t, addr, ret, sizeof(*ret)));
}

/* The length of the text, which is shorter than cap; 0: there is none. */
static size_t read_text(struct types *t, uint64_t addr, char *buf, size_t cap)
{
	size_t len = 0, part;
	const char *end = NULL;

	for (; !end && len < cap; len += part) {
		part = MEMORY_PAGE - (addr + len) % MEMORY_PAGE;
		part = part < cap - len ? part : cap - len;
		if (memory_read(t->memory, addr + len, buf + len, part) &&
		    !read_file(t, addr + len, buf + len, part))
			return 0;
		end = memchr(buf + len, '\0', part);
	}
	return end ? (size_t)(end - buf) : 0;
}

static bool is_in_code(struct types *t, uint64_t addr)
{
	const struct mapping *map = mappings_find(t->maps, addr);

	return map && map->map.is_exec;
}

/* A type_info and its name belong to a vtable. */
static bool read_info(struct types *t, uint64_t vtable, uint64_t *ret_info, char *name, size_t cap)
{
	uint64_t text;

	return read_word(t, vtable - 8, ret_info) && *ret_info &&
	       read_word(t, *ret_info + 8, &text) && read_text(t, text, name, cap);
}

/* Is it the vtable of a class that the ABI has for type_info? */
static bool is_root(struct types *t, uint64_t vtable)
{
	static const char *const names[] = { "N10__cxxabiv117__class_type_infoE",
					     "N10__cxxabiv120__si_class_type_infoE",
					     "N10__cxxabiv121__vmi_class_type_infoE" };
	char name[64];
	uint64_t info;

	for (size_t i = 0; i < t->root_cnt; i++)
		if (t->roots[i] == vtable)
			return true;
	if (vtable % 8 || !read_info(t, vtable, &info, name, sizeof(name)))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		if (t->root_cnt < ROOT_CNT)
			t->roots[t->root_cnt++] = vtable;
		return true;
	}
	return false;
}

/* As compilers make it of a class: "3Foo", "N2ns3FooE", "St9exception". */
static bool is_mangled(const char *name)
{
	if (!isdigit((unsigned char)name[0]) && name[0] != 'N' && name[0] != 'S' && name[0] != 'Z')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("_.$", *name))
			return false;
	return true;
}

static uint32_t add_type(struct types *t, uint64_t vtable, const char *name)
{
	struct type type = { .vtable = vtable };

	if (t->list.cnt > TYPE_CNT_CAP)
		return 0;
	type.name = name ? strdup(name) : NULL;
	if ((name && !type.name) || vec_reserve(&t->list, t->list.cnt + 1) ||
	    hmap_put(&t->known, &vtable, t->list.cnt)) {
		free(type.name);
		return 0;
	}
	t->list.data[t->list.cnt] = type;
	return (uint32_t)t->list.cnt++;
}

static uint32_t look_at(struct types *t, uint64_t word)
{
	const struct mapping *map = mappings_find(t->maps, word);
	char text[TYPE_NAME_CAP], *name = text;
	const uint64_t *known = hmap_get(&t->known, &word);
	uint64_t top, info, function, root;

	if (known)
		return (uint32_t)*known;
	if (map && map->map.path[0] != '/') {
		t->skip_addr = map->map.start_addr;
		t->skip_bytes = map->map.end_addr - map->map.start_addr;
	}
	if (!map || map->map.path[0] != '/' || map->is_shared || !t->left_tries)
		return 0;
	t->left_tries--;
	if (!read_word(t, word - 16, &top) || top || !read_word(t, word, &function) ||
	    !is_in_code(t, function) || !read_word(t, word - 8, &info))
		return 0;
	if (!info)
		return t->files.symbol ? add_type(t, word, NULL) : 0;
	if (!read_info(t, word, &info, text, sizeof(text)) || !read_word(t, info, &root) ||
	    !is_root(t, root))
		return 0;
	name += *name == '*'; /* of a class that only this file has */
	return is_mangled(name) ? add_type(t, word, name) : 0;
}

uint32_t types_find(struct types *t, uint64_t word)
{
	struct slot *s;

	/* most words are data, or lead from one block of the heap to another */
	if (!t || word % 8 || word < t->low || word >= t->high ||
	    word - t->skip_addr < t->skip_bytes)
		return 0;
	s = &t->slots[(word >> 3 ^ word >> 17) % SLOT_CNT];
	if (s->word != word)
		*s = (struct slot){ .word = word, .type = look_at(t, word) };
	return s->type;
}

void types_add(struct types *t, uint32_t type, uint64_t bytes)
{
	struct type_sum *s;

	if (!t || !type)
		return;
	s = &t->list.data[type].pending;
	if (!s->cnt++ || bytes < s->least_bytes)
		s->least_bytes = bytes;
	s->bytes += bytes;
}

void types_record(struct types *t, uint32_t type, double weight)
{
	if (t && type)
		resident_recorded_add(&t->list.data[type].pending.recorded, weight);
}

void types_pin(struct types *t, uint32_t type, double bytes)
{
	if (t && type)
		t->list.data[type].pending.pinned_bytes += bytes;
}

static void add_sum(struct type_sum *to, const struct type_sum *s)
{
	if (s->cnt && (!to->cnt || s->least_bytes < to->least_bytes))
		to->least_bytes = s->least_bytes;
	to->cnt += s->cnt;
	to->bytes += s->bytes;
	to->pinned_bytes += s->pinned_bytes;
	to->recorded.cnt += s->recorded.cnt;
	to->recorded.variance += s->recorded.variance;
}

void types_settle(struct types *t, bool is_believed)
{
	struct type *type;

	if (!t)
		return;
	vec_each(&t->list, type) {
		if (is_believed)
			add_sum(&type->sum, &type->pending);
		type->pending = (struct type_sum){ 0 };
	}
}

/* Without type_info; a symbol _ZTV... lies where the words before the table begin. */
static void name_by_symbol(struct types *t, struct type *type)
{
	const struct mapping *map = mappings_find(t->maps, type->vtable);
	const char *name = NULL;

	if (map && !memory_is_late(t->memory))
		name = t->files.symbol(t->files.ctx, map, type->vtable - 16);
	if (name && !strncmp(name, "_ZTV", 4) && is_mangled(name + 4))
		type->name = strdup(name + 4);
}

/*
 * "3Foo" -> "Foo"; what cannot be demangled stays as it is. A name can be made for which that takes for ever: then the
 * reading child reaches its limit of CPU time.
 */
static void demangle_type(struct type *type)
{
	static const char before[] = "vtable for ";
	char *symbol = NULL, *text, *name = NULL;

	if (asprintf(&symbol, "_ZTV%s", type->name) < 0)
		return;
	text = demangle(symbol);
	free(symbol);
	if (text && !strncmp(text, before, sizeof(before) - 1))
		name = strndup(text + sizeof(before) - 1, TYPE_NAME_CAP);
	free(text);
	if (!name)
		return;
	free(type->name);
	type->name = name;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct type *)a)->name, ((const struct type *)b)->name);
}

static int compare_bytes(const void *a, const void *b)
{
	const struct type *x = a, *y = b;

	if (x->sum.bytes != y->sum.bytes)
		return x->sum.bytes > y->sum.bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Those that no block has, or that nobody names, are dropped. */
static void name_types(struct types *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->list.cnt; i++) {
		struct type type = t->list.data[i];

		if (type.sum.cnt && !type.name)
			name_by_symbol(t, &type);
		if (!type.sum.cnt || !type.name) {
			free(type.name);
			continue;
		}
		if (!memory_is_late(t->memory))
			demangle_type(&type);
		t->list.data[kept++] = type;
	}
	t->list.cnt = kept;
}

/* Each library that uses an inline class has a vtable of it. */
static void merge_names(struct types *t)
{
	struct type *list = t->list.data;
	size_t kept = 0;

	for (size_t i = 1; i < t->list.cnt; i++) {
		if (strcmp(list[kept].name, list[i].name) != 0) {
			list[++kept] = list[i];
			continue;
		}
		add_sum(&list[kept].sum, &list[i].sum);
		free(list[i].name);
	}
	t->list.cnt = t->list.cnt ? kept + 1 : 0;
}

void types_finish(struct types *t)
{
	if (!t)
		return;
	t->is_finished = true;
	/* file by file */
	vec_sort_by(&t->list, vtable);
	name_types(t);
	vec_sort(&t->list, compare_names);
	merge_names(t);
	vec_sort(&t->list, compare_bytes);
}

const struct type *types_list(const struct types *t, size_t *ret_cnt)
{
	*ret_cnt = t && t->is_finished ? t->list.cnt : 0;
	return t ? t->list.data : NULL;
}
