/* SPDX-License-Identifier: MIT */
/* file_symbols.c - see file.h. */
#include "track/file.h"

#include "base/clock.h"
#include "base/printable.h"
#include "base/strset.h"
#include "proc/jit_entry.h"
#include "track/jit_code.h"

static int intern(struct strset *strings, const char *text, const char **ret)
{
	int64_t id = strset_add(strings, text);

	if (id < 0)
		return -ENOMEM;
	*ret = strset_get(strings, id);
	return 0;
}

/* name: NULL when not known. */
static int fill_frame(struct symbol_result *res, size_t i, uint64_t addr, const char *name)
{
	struct symbol_frame *f = &res->frames[i];
	struct jit_name parts;
	char *copy, bare[32];
	int err;

	snprintf(bare, sizeof(bare), "[jit]+0x%llx", (unsigned long long)addr);
	copy = strdup(name ? name : bare);
	if (!copy)
		return -ENOMEM;
	make_printable(copy);
	err = intern(res->owner, copy, &f->system_name);
	jit_name_split(copy, &parts);
	if (!err)
		err = intern(res->owner, parts.function, &f->name);
	if (!err)
		err = intern(res->owner, parts.file, &f->file);
	f->line = f->start_line = parts.line;
	res->has_functions |= name != NULL;
	res->has_lines |= parts.line > 0;
	free(copy);
	return err;
}

static int name_jit(const struct track_file *file, const uint64_t *vaddr, size_t cnt,
		    struct symbol_result **ret)
{
	struct symbol_result *res = calloc(1, sizeof(*res));
	const char **name = calloc(cnt + 1, sizeof(*name));
	struct strset *strings = NULL;
	int err = -ENOMEM;

	if (!res || !name || strset_new(&strings))
		goto out;
	res->owner = strings;
	res->addr_cnt = cnt;
	res->first = calloc(cnt + 1, sizeof(*res->first));
	res->frames = calloc(cnt + 1, sizeof(*res->frames));
	if (!res->first || !res->frames)
		goto out;
	err = jit_code_names(file->jit, file->jit_period, vaddr, cnt, name);
	for (size_t i = 0; i < cnt && !err; i++) {
		err = fill_frame(res, i, vaddr[i], name[i]);
		res->first[i + 1] = (uint32_t)i + 1;
	}
	if (!err) {
		*ret = res;
		res = NULL;
	}
out:
	symbol_result_free(res);
	free(name);
	return err;
}

int file_symbolize(const struct symbol_options *opts, const struct track_file *file,
		   const char *module, const uint64_t *vaddr, size_t cnt,
		   struct symbol_result **ret)
{
	const struct symbol_file sf = {
		.fd = file->fd,
		.name = file->path,
		.module = module,
		.build_id_hex = file->build_id_hex,
		.root = file->root,
		.key = { .dev = file->dev,
			 .ino = file->ino,
			 .changed_ns = file->facts.changed_s * (int64_t)NS_PER_S +
				       file->facts.changed_ns },
	};

	if (file->is_jit)
		return name_jit(file, vaddr, cnt, ret);
	return symbolize(opts, &sf, vaddr, cnt, ret);
}
