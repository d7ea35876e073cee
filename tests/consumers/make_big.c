/* SPDX-License-Identifier: MIT */
/*
 * make_big.c - writes a profile of many stacks, some of whose names would harm a page.
 *
 *	make_big STACKS FILE
 *
 * Stack i holds 1000 + i % 97 bytes in one block, exactly; its thread is worker-(i % 3), its scope Top/Query-(i % 5).
 * It is 24 frames deep, of 500 functions, and the stacks part two by two from the root on, so that they have some
 * 140 000 frames all in all.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/pprof.h"
#include "profile/profile.h"

#define FUNCTIONS 500
#define DEPTH 24

static const char *const hostile[] = {
	"</script><script>document.title='broken'</script>",
	"<img src=x onerror=\"document.title='broken'\">",
	"<!-- \" ' & \\ </pre></title>",
	"control\x1b[31m\n\t\x7f\xc2\x9b",
	"no utf8 \xff\xfe\xc3",
	"\xe2\x80\xae right to left",
	"operator<< <std::vector<int, std::allocator<int> > >",
};

static void check(int err)
{
	if (err) {
		fprintf(stderr, "make_big: %s\n", strerror(-err));
		exit(1);
	}
}

static void add_function(struct profile *p, uint32_t i)
{
	char name[64];
	struct profile_function f = { 0 };
	struct profile_line line = { .function = i, .line = i };
	struct profile_location l = {
		.mapping = 0, .address = 4096 + 16 * i, .line_first = i, .line_cnt = 1
	};

	snprintf(name, sizeof(name), "app::module_%u::function_%u", i % 20, i);
	f.name_str = profile_str(p, i < sizeof(hostile) / sizeof(hostile[0]) ? hostile[i] : name);
	f.filename_str = profile_str(p, "/src/<app>.cc");
	check(vec_push(&p->functions, f));
	check(vec_push(&p->lines, line));
	check(vec_push(&p->locations, l));
}

static void add_stack(struct profile *p, uint32_t i)
{
	int64_t bytes = 1000 + i % 97;
	char thread[32], scope[64];
	struct profile_label labels[2];
	struct profile_sample *s;
	uint32_t locs[DEPTH];

	snprintf(thread, sizeof(thread), "worker-%u", i % 3);
	snprintf(scope, sizeof(scope), "Top/Query-%u", i % 5);
	labels[0] = (struct profile_label){ .key_str = profile_str(p, "thread"),
					    .str = profile_str(p, thread) };
	labels[1] = (struct profile_label){ .key_str = profile_str(p, "scope"),
					    .str = profile_str(p, scope) };
	for (uint32_t depth = 0; depth < DEPTH; depth++) { /* from the root */
		uint32_t branch = i % (1u << (2 * depth + 2) / 3);

		locs[DEPTH - 1 - depth] = (branch * 2654435761u + depth * 40503u) % FUNCTIONS;
	}
	locs[0] = i % FUNCTIONS;
	locs[1] = i / FUNCTIONS % FUNCTIONS;
	check(profile_add_sample(p, locs, DEPTH, (int64_t[]){ 2, 2 * bytes, 1, bytes }, labels, 2,
				 &s));
	s->has_error = true;
	s->inuse_samples = 1;
	s->alloc_samples = 2;
}

int main(int argc, char **argv)
{
	struct profile_mapping m = { .limit = UINT64_MAX, .has_functions = true };
	struct profile *p;
	int fd;

	if (argc != 3)
		return 2;
	check(profile_new(&p));
	check(profile_set_heap_types(p, 1));
	m.filename_str = profile_str(p, "/bin/<server>");
	check(vec_push(&p->mappings, m));
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		add_function(p, i);
	for (uint32_t i = 0; i < (uint32_t)atoi(argv[1]); i++)
		add_stack(p, i);
	check(profile_comment(p, "a note with </script><b>tags</b>"));
	fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	check(fd < 0 ? -1 : pprof_write(p, fd));
	close(fd);
	profile_free(p);
	return 0;
}
