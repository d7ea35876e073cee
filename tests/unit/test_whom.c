/* SPDX-License-Identifier: MIT */
/* Which processes a command line means. */
#include "child.h"

#include "base/err.h"
#include "cmd/record_settings.h"
#include "temp_folder.h"

TEST(test_pids)
{
	static const char *const bad[] = { "",	 "x",	"0",	      "-1",
					   "1,", ",1",	"1,,2",	      "1, 2",
					   "1 ", "+1",	"1x",	      "0x1",
					   " 1", "1,0", "2147483648", "99999999999999999999" };
	struct whom w = { 0 };

	assert_int_equal(whom_add_pids(&w, "1,2"), 0);
	assert_int_equal(whom_add_pids(&w, "3"), 0);
	assert_int_equal(whom_add_pids(&w, "2,3,1"), 0);
	assert_int_equal(whom_add_pids(&w, "2 3\n1"), 0);
	assert_int_equal(w.pids.cnt, 3);
	assert_int_equal(w.pids.data[2], 3);
	assert_false(whom_has_rules(&w));
	whom_release(&w);
	each_case(c, bad) {
		w = (struct whom){ 0 };
		assert_int_equal(whom_add_pids(&w, *c), -EINVAL);
		whom_release(&w);
	}
}

/* A process of another program than this one, which would not be taken. */
static pid_t begin_as(const char *program, const char *name)
{
	pid_t pid = fork();
	char path[64], comm[16];

	if (!pid) {
		execl(program, name, "60", NULL);
		_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	for (int i = 0; i < 500; i++) {
		FILE *f = fopen(path, "re");
		bool is_there = f && fscanf(f, "%15s", comm) == 1 && !strncmp(comm, name, 15);

		if (f)
			fclose(f);
		if (is_there)
			break;
		usleep(10000);
	}
	return pid;
}

static pid_t begin(void)
{
	return begin_as("/bin/sleep", "sleep");
}

static bool has(const struct whom_found *f, pid_t pid)
{
	const pid_t *one;

	vec_each(&f->pids, one)
		if (*one == pid)
			return true;
	return false;
}

TEST(test_rules)
{
	struct whom w = { 0 };
	struct whom_found found = { 0 };
	struct err why = { 0 };
	pid_t pid = begin();

	assert_int_equal(whom_add_pids(&w, "7"), 0);
	assert_int_equal(texts_add(&w.comms, "^sle{2}p$"), 0);
	assert_true(whom_has_rules(&w));
	assert_int_equal(whom_find(&w, &found, &why), 0);
	assert_true(has(&found, pid) && found.pids.data[0] == 7 && found.named_cnt == 1);
	assert_false(has(&found, getpid()));
	vec_release(&found.pids);
	/* both have to fit, and the root of a hierarchy holds all */
	assert_int_equal(texts_add(&w.cgroups, "/"), 0);
	assert_int_equal(whom_find(&w, &found, &why), 0);
	assert_true(has(&found, pid));
	vec_release(&found.pids);
	whom_release(&w);
	end_child(pid);
}

TEST(test_none)
{
	struct whom w = { 0 };
	struct whom_found found = { 0 };
	struct err why = { 0 };

	texts_add(&w.comms, "no-such-name");
	texts_add(&w.comms, "nor-this");
	texts_add(&w.cgroups, "/");
	assert_int_equal(whom_find(&w, &found, &why), -ESRCH);
	assert_says(why.text, "matches --comm 'no-such-name' or 'nor-this' and is in "
			      "--cgroup '/': ");
	whom_release(&w);
	w = (struct whom){ 0 };
	texts_add(&w.cgroups, "/no/such/cgroup");
	assert_int_equal(whom_find(&w, &found, &why), -ESRCH);
	assert_says(why.text, "/no/such/cgroup");
	whom_release(&w);
}

TEST(test_operands)
{
	static const struct {
		const char *operands[4];
		const char *why; /* NULL: a command */
	} cases[] = {
		{ { "25543" }, "did you mean: heaptap record -p 25543" },
		{ { "1,2" }, "did you mean: heaptap record -p 1,2" },
		{ { "1", "2", "3" }, "did you mean: heaptap record -p 1,2,3" },
		{ { "3", "4", "-q" }, "did you mean: heaptap record -q -p 3,4" },
		{ { "7z" }, NULL },
		{ { "1", "x" }, NULL },
		{ { "no-such-program" }, NULL },
		{ { "" }, NULL },
		{ { "/bin/sleep" }, NULL },
		{ { "sleep", "1" }, NULL },
	};
	static const char *const no_pids[] = { "0", "-1", "+7", "7,", "99999999999", "7,-1" };
	static const struct option_row rows[] = {
		{ "pid", .letter = 'p' },
		{ "duration", .letter = 'd' },
		{ .name = "follow" },
		{ .name = "max-live" },
	};
	struct option_given given[] = {
		{ &rows[0], "12" }, { &rows[1], "3s" }, { &rows[2], NULL }, { &rows[3], "1 k" }
	};
	const struct option_args no_args = { 0 };
	const struct option_args args = { .given = { given, 4, 4 } };
	struct whom none = { 0 }, some = { 0 };
	struct err why;
	pid_t pid = begin(), found = 0;

	each_case(c, cases) {
		char *const *operands = (char *const *)c->operands;

		why.text[0] = '\0';
		assert_int_equal(whom_is_mistaken("record", &none, &no_args, operands, &why),
				 c->why != NULL);
		assert_string_equal(why.text, c->why ? c->why : "");
	}
	assert_int_equal(whom_add_pids(&some, "12"), 0);
	assert_true(whom_is_mistaken("check", &some, &args,
				     (char *[]){ (char *)"13", (char *)"-q", NULL }, &why));
	assert_string_equal(why.text,
			    "did you mean: heaptap check -d 3s --follow --max-live='1 k' -q -p "
			    "12,13");
	whom_release(&some);
	assert_int_equal(whom_find_one("7", &found, &why), 0);
	assert_int_equal(found, 7);
	assert_int_equal(whom_find_one("7,8", &found, &why), -EINVAL);
	assert_string_equal(why.text, "'7,8' means 2 processes; give one: -p 7, 8");
	each_case(c, no_pids) {
		assert_int_equal(whom_find_one(*c, &found, &why), -EINVAL);
		assert_says(why.text, "is not a process ID");
	}
	assert_int_equal(whom_find_one("no-such-program", &found, &why), -ESRCH);
	assert_int_equal(whom_find_one("", &found, &why), -ESRCH);
	assert_int_equal(whom_explain_pids("sleep", &why), -EINVAL);
	assert_says(why.text, "with this name run");
	assert_says(why.text, ": use --comm sleep, not -p");
	assert_int_equal(whom_explain_pids("no-such-program", &why), -EINVAL);
	assert_says(why.text, "by name: --comm");
	assert_int_equal(whom_explain_pids("", &why), -EINVAL);
	assert_says(why.text, "is the program running?");
	assert_true(whom_is_mistaken("record", &none, &no_args, (char *[]){ (char *)"sleep", NULL },
				     &why));
	assert_says(why.text, "with the name 'sleep' run");
	assert_says(why.text, "did you mean: heaptap record --comm sleep, or to start it: "
			      "heaptap record -- sleep");
	end_child(pid);
}

/* Names that the kernel cuts: of two programs that differ behind the cut, the one that is meant is found; of a link's name
 * only the beginning is known. */
TEST_WITH(test_long_names, new_folder, remove_folder)
{
	static const char one[] = "heaptap-whom-long-one", other[] = "heaptap-whom-long-other",
			  link[] = "heaptap-whom-linked-name";
	const struct temp_folder *f = *state;
	char path[3][128], command[640];
	struct whom w = { 0 };
	struct whom_found found = { 0 };
	struct err why = { 0 };
	pid_t pid[3], one_pid = 0;

	snprintf(path[0], sizeof(path[0]), "%s/%s", f->path, one);
	snprintf(path[1], sizeof(path[1]), "%s/%s", f->path, other);
	snprintf(path[2], sizeof(path[2]), "%s/%s", f->path, link);
	snprintf(command, sizeof(command),
		 "cp /bin/sleep %s && cp /bin/sleep %s && ln -s /bin/sleep %s", path[0], path[1],
		 path[2]);
	assert_int_equal(system(command), 0);
	pid[0] = begin_as(path[0], one);
	pid[1] = begin_as(path[1], other);
	pid[2] = begin_as(path[2], link);

	assert_int_equal(texts_add(&w.comms, "^heaptap-whom-long-one$"), 0);
	assert_int_equal(whom_find(&w, &found, &why), 0);
	assert_true(found.pids.cnt == 1 && has(&found, pid[0]));
	vec_release(&found.pids);
	whom_release(&w);
	assert_int_equal(whom_find_one(other, &one_pid, &why), 0);
	assert_int_equal(one_pid, pid[1]);
	assert_int_equal(whom_find_one("heaptap-whom-lo", &one_pid, &why), -ENOTUNIQ); /* both */
	assert_int_equal(whom_find_one("heaptap-whom-long-none", &one_pid, &why), -ESRCH);
	whom_explain_pids(one, &why);
	assert_string_equal(why.text,
			    "1 process with this name runs: use --comm heaptap-whom-long-one, "
			    "not -p");
	/* the advice works */
	whom_explain_pids(link, &why);
	assert_string_equal(why.text,
			    "1 process with this name runs: use --comm heaptap-whom-li, not -p");
	w = (struct whom){ 0 };
	assert_int_equal(texts_add(&w.comms, "^heaptap-whom-linked-name$"), 0);
	assert_int_equal(whom_find(&w, &found, &why), -ESRCH);
	assert_says(why.text, "the kernel keeps 15 characters");
	whom_release(&w);
	for (int i = 0; i < 3; i++)
		end_child(pid[i]);
}

RUN_TESTS()
