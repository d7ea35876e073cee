/* SPDX-License-Identifier: MIT */
/*
 * symbol_oracle.h - what llvm-symbolizer or addr2line say about addresses, for comparison.
 *
 * Frames are text: "name\tfile:line\n", innermost first; an address has the frames from
 * first[i] on, as in symbol_result.
 */
#ifndef HT_TESTS_SYMBOL_ORACLE_H
#define HT_TESTS_SYMBOL_ORACLE_H

#include "symbol_programs.h"

#include <ctype.h>
#include <inttypes.h>

struct oracle_frame {
	char name[4096], file[512];
	uint32_t line;
};

struct oracle {
	size_t addr_cnt;
	uint32_t *first;
	struct oracle_frame *frames;
	uint32_t frame_cnt;
};

static void oracle_release(struct oracle *o)
{
	free(o->first);
	free(o->frames);
	memset(o, 0, sizeof(*o));
}

static void cut_newline(char *s)
{
	s[strcspn(s, "\n")] = '\0';
}

/* "/a/b.c:12 (discriminator 3)" */
static void split_place(char *text, struct oracle_frame *f)
{
	char *colon;

	text[strcspn(text, "(")] = '\0';
	while (*text && text[strlen(text) - 1] == ' ')
		text[strlen(text) - 1] = '\0';
	colon = strrchr(text, ':');
	assert_non_null(colon);
	*colon = '\0';
	f->line = (uint32_t)strtoul(colon + 1, NULL, 10);
	snprintf(f->file, sizeof(f->file), "%.*s", (int)sizeof(f->file) - 1,
		 strcmp(text, "??") == 0 ? "" : text);
}

/* Both tools answer in the same form: the address, then two lines a frame. */
static void oracle_ask(const char *command, const char *dir, const char *file,
		       const uint64_t *vaddr, size_t cnt, struct oracle *o)
{
	static char name[65536], place[65536];
	char path[512], cmd[2048];
	size_t cap = 16 * cnt, addr = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/addresses", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	for (size_t i = 0; i < cnt; i++)
		fprintf(f, "0x%" PRIx64 "\n", vaddr[i]);
	fclose(f);
	snprintf(cmd, sizeof(cmd), "%s -e '%s/%s' <'%s' 2>/dev/null", command, dir, file, path);
	o->addr_cnt = cnt;
	o->first = calloc(cnt + 1, sizeof(*o->first));
	o->frames = calloc(cap, sizeof(*o->frames));
	o->frame_cnt = 0;
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(name, sizeof(name), f)) {
		struct oracle_frame *fr = &o->frames[o->frame_cnt];

		cut_newline(name);
		if (!name[0])
			continue;
		if (strncmp(name, "0x", 2) == 0) {
			assert_true(addr < cnt);
			assert_int_equal(strtoull(name, NULL, 16), vaddr[addr]);
			o->first[addr++] = o->frame_cnt;
			continue;
		}
		assert_non_null(fgets(place, sizeof(place), f));
		cut_newline(place);
		assert_true(o->frame_cnt < cap);
		snprintf(fr->name, sizeof(fr->name), "%.*s", (int)sizeof(fr->name) - 1, name);
		split_place(place, fr);
		o->frame_cnt++;
	}
	pclose(f);
	assert_int_equal(addr, cnt);
	o->first[cnt] = o->frame_cnt;
}

/*
 * What different tools rightly call by different names: clones (".cold", ".llvm.123", ".158"), and
 * constructors and destructors, whose complete and base variants share their code.
 */
static void plain_name(const char *name, char *out, size_t out_bytes)
{
	const char *dot = strchr(name, '.');
	size_t n = strlen(name);

	/* ".." is part of Rust's old names */
	while (dot && dot[1] == '.')
		dot = strchr(dot + 2, '.');
	if (dot && dot > name && name[0] == '_')
		n = (size_t)(dot - name);
	snprintf(out, out_bytes, "%.*s", (int)n, name);
	for (char *p = out; *p; p++)
		if ((p[0] == 'C' || p[0] == 'D') && isdigit((unsigned char)p[1]) &&
		    (p[2] == 'E' || p[2] == 'I'))
			p[1] = 'x';
}

#endif
