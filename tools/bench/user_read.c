/* SPDX-License-Identifier: MIT */
/*
 * user_read.c - what it costs a BPF program to read 32 bytes of the current process's memory: the part
 * of reading a scope that no reader can do without. Prints one line of JSON: nanoseconds, the
 * median of many rounds.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READS 1000
#define ROUNDS 101
#define BYTES 32

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

/* READS times: what read(r10 - 32, BYTES, args[0]) takes, or the loop alone. */
static int load_loop(int has_read)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_DW, 6, 1, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 7, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 1, 10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, -BYTES),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, BYTES),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 3, 6, 0, 0),
		has_read ? INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_user) :
			   INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 7, 0, 0, 1),
		INSN(BPF_JMP | BPF_JLT | BPF_K, 7, 0, -7, READS),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "user_read", "GPL", insns,
			       sizeof(insns) / sizeof(*insns), NULL);

	return fd < 0 ? -errno : fd;
}

static double run_ns(int fd, const void *addr)
{
	uint64_t args[1] = { (uintptr_t)addr };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (bpf_prog_test_run_opts(fd, &opts))
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(void)
{
	static char memory[BYTES] = "what is read";
	double ns[ROUNDS];
	int reading = load_loop(1), idle = load_loop(0);

	if (reading < 0 || idle < 0) {
		fprintf(stderr, "user_read: cannot load a program: %s\n",
			strerror(reading < 0 ? -reading : -idle));
		return 1;
	}
	for (int i = 0; i < ROUNDS; i++) {
		double with = run_ns(reading, memory), without = run_ns(idle, memory);

		if (with < 0 || without < 0) {
			perror("user_read: cannot run a program");
			return 1;
		}
		ns[i] = (with - without) / READS;
	}
	qsort(ns, ROUNDS, sizeof(*ns), compare);
	printf("{\"bench\":\"user_read\",\"bytes\":%d,\"ns\":%.1f}\n", BYTES, ns[ROUNDS / 2]);
	return 0;
}
