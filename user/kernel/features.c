/* SPDX-License-Identifier: MIT */
/*
 * features.c - see features.h.
 *
 * The probed functions are our own and do nothing. They are written in assembly because their first instruction
 * matters: a push, which the kernel emulates, or a mov, which it has to single-step. The cost of a single-step
 * is what placement (alloc/placement.c) avoids.
 *
 * Attaching and detaching a probe waits for grace periods, under a lock that all probes of the machine share:
 * longer than everything else here. So where the kernel knows sessions no probe is attached as a trial: the
 * kernel is asked for a probe in something that is no file, and the error says how far it would have gone. On
 * older kernels that is not enough, see multi_sees_threads(): there a probe is attached, and detached in the
 * background. Each purpose has its own functions, so that no trial meets remains of another.
 */
#include "kernel/features.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "kernel/attach.h"
#include "kernel/privileges.h"
#include "kernel/uapi.h"
#include "kernel/uprobe_events.h"

#if defined(__x86_64__)
#define PROBED_EMULATED "push %rbp\n pop %rbp\n"
#define PROBED_STEPPED "mov %rdi, %rax\n"
#define PROBED_TYPE "@function"
#elif defined(__aarch64__)
#define PROBED_EMULATED "nop\n"
#define PROBED_STEPPED "mov x1, x0\n"
#define PROBED_TYPE "%function"
#endif
#define PROBED(name, insns)                                                    \
	void name(void);                                                       \
	__asm__(".text\n"                                                      \
		".p2align 4\n"                                                 \
		".globl " #name "\n"                                           \
		".type " #name ", " PROBED_TYPE "\n" #name ":\n" insns "ret\n" \
		".size " #name ", .-" #name "\n")

PROBED(ht_probe_trial, PROBED_EMULATED);
PROBED(ht_probe_threaded, PROBED_EMULATED);
PROBED(ht_probe_dummy, PROBED_EMULATED);
PROBED(ht_probe_emulated, PROBED_EMULATED);
PROBED(ht_probe_stepped, PROBED_STEPPED);
PROBED(ht_probe_return, PROBED_EMULATED);

static const struct feature_info feature_infos[] = {
	{ "btf", "5.2",
	  "nothing can be recorded: heaptap needs the kernel's types (CONFIG_DEBUG_INFO_BTF)",
	  offsetof(struct kernel_features, btf), true },
	{ "bpf", "", "nothing can be recorded: BPF programs cannot be loaded",
	  offsetof(struct kernel_features, bpf), true },
	{ "ringbuf", "5.8", "nothing can be recorded: processes cannot be tracked",
	  offsetof(struct kernel_features, ringbuf), true },
	{ "perf_uprobe", "5.15", "nothing is missing if uprobe_multi is available",
	  offsetof(struct kernel_features, perf_uprobe), false },
	{ "uprobe_multi", "6.6", "attaching takes longer: one perf event for each probe",
	  offsetof(struct kernel_features, uprobe_multi), false },
	{ "uprobe_session", "6.13",
	  "recording costs more: every allocation pays for a return probe",
	  offsetof(struct kernel_features, uprobe_session), false },
	{ "find_vma", "5.17", "stacks through a library that was just loaded are cut",
	  offsetof(struct kernel_features, find_vma), false },
	{ "shared_events", "4.17",
	  "processes that serve tracks slow each other down if they use one library",
	  offsetof(struct kernel_features, shared_events), false },
};

const struct feature_info *kernel_feature_infos(size_t *ret_cnt)
{
	*ret_cnt = sizeof(feature_infos) / sizeof(*feature_infos);
	return feature_infos;
}

#define INSN(c, dst, src, i)                                                \
	{                                                                   \
		.code = (c), .dst_reg = (dst), .src_reg = (src), .imm = (i) \
	}

static int load(const struct bpf_insn *insns, size_t cnt, enum bpf_attach_type attach_type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "ht_probe", "GPL", insns, cnt, &opts);

	return fd < 0 ? -errno : fd;
}

static int load_empty(enum bpf_attach_type attach_type)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0),
	};

	return load(insns, sizeof(insns) / sizeof(*insns), attach_type);
}

/* A program that counts its hits in the only element of an array map. */
static int load_counting(enum bpf_attach_type attach_type, int map_fd)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, map_fd),
		INSN(0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_1, BPF_REG_2, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0),
	};

	return load(insns, sizeof(insns) / sizeof(*insns), attach_type);
}

struct own_code {
	uintptr_t addr;
	uint64_t off;
};

static int find_own_code(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	struct own_code *own = ctx;

	(void)bytes;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && own->addr >= start &&
		    own->addr < start + ph->p_filesz) {
			own->off = own->addr - start + ph->p_offset;
			return 1;
		}
	}
	return 0;
}

static enum bpf_attach_type prog_attach_type(enum attach_mode mode, enum attach_kind kind)
{
	if (mode == ATTACH_PERF)
		return 0;
	return kind == ATTACH_ENTRY_DECIDES ? UAPI_TRACE_UPROBE_SESSION : UAPI_TRACE_UPROBE_MULTI;
}

/* Attach a program to fn in pid: this process or a fork of it. It counts its hits in the map counter_fd, or is
 * empty (-1). */
static int attach_own(void (*fn)(void), pid_t pid, enum attach_mode mode, enum attach_kind kind,
		      int counter_fd, struct attach_links *links)
{
	struct own_code own = { .addr = (uintptr_t)fn };
	struct attach_site site = { 0 };
	struct attach_request req = { .pid = pid, .mode = mode, .kind = kind, .site_cnt = 1 };
	enum bpf_attach_type type = prog_attach_type(mode, kind);
	int err;

	if (!dl_iterate_phdr(find_own_code, &own))
		return -ENOENT;
	site.off = own.off;
	req.sites = &site;
	req.prog_fd = counter_fd < 0 ? load_empty(type) : load_counting(type, counter_fd);
	if (req.prog_fd < 0)
		return req.prog_fd;
	req.file_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	err = req.file_fd < 0 ? -errno : attach_add(links, &req);
	close(req.prog_fd);
	if (req.file_fd >= 0)
		close(req.file_fd);
	return err;
}

static bool can_attach(enum attach_mode mode, enum attach_kind kind)
{
	struct attach_links *links = NULL;
	bool ok;

	if (attach_links_new(&links))
		return false;
	ok = attach_own(ht_probe_trial, getpid(), mode, kind, -1, links) == 0;
	attach_links_free_later(links);
	return ok;
}

/*
 * Would the kernel attach it? It refuses a link with -EBADF because the path is a folder, a perf event with
 * -ENOENT because the path does not exist: after it has checked features and permissions, before it attaches
 * anything.
 */
static bool refuses_only_file(enum attach_mode mode, enum attach_kind kind)
{
	struct attach_site site = { 0 };
	struct attach_request req = { .pid = getpid(),
				      .mode = mode,
				      .kind = kind,
				      .file_fd = -1,
				      .sites = &site,
				      .site_cnt = 1 };
	struct attach_links *links = NULL;
	int err = -ENOMEM;

	req.prog_fd = load_empty(prog_attach_type(mode, kind));
	if (req.prog_fd < 0)
		return false;
	if (mode != ATTACH_PERF)
		req.file_fd = open("/", O_PATH | O_CLOEXEC);
	if (!attach_links_new(&links))
		err = attach_add(links, &req);
	attach_links_free(links);
	if (req.file_fd >= 0)
		close(req.file_fd);
	close(req.prog_fd);
	return err == (mode == ATTACH_PERF ? -ENOENT : -EBADF);
}

static void *call_threaded(void *arg)
{
	(void)arg;
	ht_probe_threaded();
	return NULL;
}

/*
 * Does a multi link for a process see all its threads? Before commit 46ba0e49b642 (6.10 and the stable kernels
 * of that time) it let only hits of the thread with the process's id through: a recording of the main thread
 * alone that looks like one of the process.
 */
static bool multi_sees_threads(void)
{
	int map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ht_probe", sizeof(uint32_t),
				    sizeof(uint64_t), 1, NULL);
	struct attach_links *links = NULL;
	uint64_t hits = 0;
	uint32_t zero = 0;
	pthread_t thread;

	if (map_fd < 0)
		return false;
	if (!attach_links_new(&links) &&
	    !attach_own(ht_probe_threaded, getpid(), ATTACH_MULTI, ATTACH_ENTRY, map_fd, links) &&
	    !pthread_create(&thread, NULL, call_threaded, NULL)) {
		pthread_join(thread, NULL);
		if (bpf_map_lookup_elem(map_fd, &zero, &hits))
			hits = 0;
	}
	attach_links_free_later(links);
	close(map_fd);
	return hits;
}

static int silence(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	(void)fmt;
	(void)args;
	return 0;
}

/* CAP_PERFMON is enough for every perf event but these. */
static bool may_open_perf_uprobes(void)
{
	struct privileges p;

	return !privileges_read(&p) && privileges_have(&p, CAP_SYS_ADMIN);
}

static void explain_missing(struct kernel_features *f, int load_err)
{
	if (!f->bpf && (load_err == -EPERM || load_err == -EACCES))
		err_set(&f->why, load_err,
			"no permission to load BPF programs: run as root, or with CAP_BPF, "
			"CAP_PERFMON and CAP_SYS_PTRACE");
	else if (!f->bpf)
		err_set_os(&f->why, load_err, "BPF programs cannot be loaded");
	else if (!f->btf)
		err_set(&f->why, -ENOTSUP,
			"the kernel has no BTF (/sys/kernel/btf/vmlinux): needs a kernel built "
			"with CONFIG_DEBUG_INFO_BTF, 5.15 or later");
	else if (!f->ringbuf)
		err_set(&f->why, -ENOTSUP,
			"the kernel has no BPF ring buffer: needs 5.15 "
			"or later");
	else if (!f->perf_uprobe && !f->uprobe_multi && !may_open_perf_uprobes())
		err_set(&f->why, -ENOTSUP,
			"uprobes cannot be attached: before Linux 6.6 this needs CAP_SYS_ADMIN: "
			"run as root, or give heaptap that capability");
	else if (!f->perf_uprobe && !f->uprobe_multi)
		err_set(&f->why, -ENOTSUP,
			"uprobes cannot be attached: needs CONFIG_UPROBES and 5.15 or later");
}

int kernel_features_probe(struct kernel_features *ret)
{
	libbpf_print_fn_t before = libbpf_set_print(silence);
	int fd;

	memset(ret, 0, sizeof(*ret));
	ret->btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
	fd = load_empty(0);
	if (fd >= 0) {
		close(fd);
		ret->bpf = true;
		ret->ringbuf = libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 1;
		ret->find_vma =
			libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_find_vma, NULL) == 1;
		ret->uprobe_session = refuses_only_file(ATTACH_SESSION, ATTACH_ENTRY_DECIDES);
		if (ret->uprobe_session) {
			ret->perf_uprobe = access(PERF_UPROBE_TYPE_FILE, R_OK) == 0 &&
					   refuses_only_file(ATTACH_PERF, ATTACH_ENTRY);
			ret->uprobe_multi = refuses_only_file(ATTACH_MULTI, ATTACH_ENTRY);
		} else {
			ret->perf_uprobe = can_attach(ATTACH_PERF, ATTACH_ENTRY);
			ret->uprobe_multi = can_attach(ATTACH_MULTI, ATTACH_ENTRY);
			ret->has_blind_multi = ret->uprobe_multi && !multi_sees_threads();
			ret->uprobe_multi &= !ret->has_blind_multi;
		}
		/* Shared events are perf events, with a cookie. */
		ret->shared_events = ret->perf_uprobe && uprobe_events_are_there();
	}
	explain_missing(ret, fd);
	libbpf_set_print(before);
	return 0;
}

bool kernel_features_suffice(const struct kernel_features *f)
{
	return !f->why.text[0];
}

/* For trials with return probes: a function that does nothing; and a function that puts a return probe on it in
 * the process pid, which must be a fork of this one. The caller frees the links. */
static void probe_dummy_call(void)
{
	ht_probe_dummy();
}

static int probe_dummy_attach_return(pid_t pid, struct attach_links **ret)
{
	struct attach_links *links = NULL;
	int err = attach_links_new(&links);

	if (!err)
		err = attach_own(ht_probe_dummy, pid, ATTACH_MULTI, ATTACH_RETURN, -1, links);
	if (err) /* no uprobe_multi here */
		err = attach_own(ht_probe_dummy, pid, ATTACH_PERF, ATTACH_RETURN, -1, links);
	if (err) {
		attach_links_free(links);
		return err;
	}
	*ret = links;
	return 0;
}

/*
 * A program works between two hits, so that they find caches filled with other data: in a loop of nothing else
 * a hit was measured to cost a sixth less. The first-level cache is the least that a program uses.
 */
static double time_calls(void (*fn)(void), unsigned int cnt)
{
	volatile unsigned char work[32 << 10] = { 0 };
	const size_t line_bytes = 64;
	uint64_t begin_ns = now_ns();

	for (unsigned int i = 0; i < cnt; i++) {
		for (size_t at = 0; at < sizeof(work); at += line_bytes)
			work[at]++;
		fn();
	}
	return (double)(now_ns() - begin_ns) / cnt;
}

/*
 * ns of fn: the minimum of a few short rounds, since noise only adds. Four times as many calls spread as much (25 times
 * each, on an idle machine and on a busy one) and took 20 ms more of a recording's start.
 */
static double measure_calls(void (*fn)(void))
{
	const unsigned int call_cnt = 50, round_cnt = 20;
	double best = INFINITY;

	for (unsigned int i = 0; i < round_cnt; i++)
		best = fmin(best, time_calls(fn, call_cnt));
	return best;
}

/* ns that a probe adds to fn; the probe stays among the links. */
static int measure(void (*fn)(void), enum attach_mode mode, enum attach_kind kind,
		   struct attach_links *links, double *ret_ns)
{
	double bare = measure_calls(fn);
	int err = attach_own(fn, getpid(), mode, kind, -1, links);

	if (!err)
		*ret_ns = fmax(measure_calls(fn) - bare, 0);
	return err;
}

int probe_costs_measure(const struct kernel_features *f, struct probe_costs *ret)
{
	struct attach_links *links = NULL;
	enum attach_mode mode;
	double with_return = 0;
	int err = kernel_features_choose_mode(f, ATTACH_AUTO, &mode);

	memset(ret, 0, sizeof(*ret));
	if (!err)
		err = attach_links_new(&links);
	if (err)
		return err;
	if (mode == ATTACH_SESSION)
		mode = ATTACH_MULTI; /* the kind of every unsampled hit */
	err = measure(ht_probe_emulated, mode, ATTACH_ENTRY, links, &ret->emulated_ns);
	if (!err)
		err = measure(ht_probe_stepped, mode, ATTACH_ENTRY, links, &ret->stepped_ns);
	if (!err)
		err = measure(ht_probe_return, mode, ATTACH_RETURN, links, &with_return);
	attach_links_free_later(links);
	if (!err)
		ret->return_ns =
			with_return > ret->emulated_ns ? with_return - ret->emulated_ns : 0;
	return err;
}

int kernel_features_choose_mode(const struct kernel_features *f, enum attach_mode wanted,
				enum attach_mode *ret)
{
	const bool has[] = {
		[ATTACH_SESSION] = f->uprobe_session,
		[ATTACH_MULTI] = f->uprobe_multi,
		[ATTACH_PERF] = f->perf_uprobe,
	};

	if (wanted != ATTACH_AUTO) {
		if (!has[wanted])
			return -ENOTSUP;
		*ret = wanted;
		return 0;
	}
	for (enum attach_mode m = ATTACH_SESSION; m <= ATTACH_PERF; m++) {
		if (has[m]) {
			*ret = m;
			return 0;
		}
	}
	return -ENOTSUP;
}

/*
 * Return probes under seccomp.
 *
 * The child allows itself exit_group and nothing else, calls a function with a return probe on it
 * and exits: it either does, or is killed by SIGSYS.
 */

static int allow_only_exit(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(*filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -errno : 0;
}

/* Wait for the parent's byte, then run the trial. */
static void run_child(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1 || allow_only_exit())
		syscall(__NR_exit_group, 1);
	probe_dummy_call();
	syscall(__NR_exit_group, 0);
}

int seccomp_probe_returns(bool *ret_is_safe)
{
	struct attach_links *links = NULL;
	int fds[2], status = 0, err;
	pid_t pid;

	if (pipe(fds))
		return -errno;
	pid = fork();
	if (!pid) {
		close(fds[1]);
		run_child(fds[0]);
	}
	close(fds[0]);
	err = pid < 0 ? -errno : probe_dummy_attach_return(pid, &links);
	if (!err && write(fds[1], "", 1) != 1)
		err = -errno;
	close(fds[1]); /* without the byte the child gives up */
	if (pid > 0 && waitpid(pid, &status, 0) != pid)
		err = -errno;
	attach_links_free_later(links); /* which may take the kernel seconds */
	if (err)
		return err;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		return -ENOTSUP; /* no seccomp on this kernel */
	*ret_is_safe = WIFEXITED(status);
	return 0;
}
