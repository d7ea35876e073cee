/* SPDX-License-Identifier: MIT */
/* filter.c - see threads_priv.h. */
#include "tap/threads_priv.h"

#include <stdbool.h>
#include <string.h>

struct machine {
	uint32_t a, x, mem[BPF_MEMWORDS];
	const struct seccomp_data *data;
};

static uint32_t load(const struct machine *m, const struct sock_filter *f)
{
	uint32_t word = 0;

	switch (BPF_MODE(f->code)) {
	case BPF_ABS:
		if (f->k <= sizeof(*m->data) - sizeof(word))
			memcpy(&word, (const char *)m->data + f->k, sizeof(word));
		return word;
	case BPF_MEM:
		return m->mem[f->k % BPF_MEMWORDS];
	case BPF_LEN:
		return sizeof(*m->data);
	default:
		return f->k;
	}
}

static uint32_t calculate(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default:
		return -a; /* BPF_NEG */
	}
}

static uint32_t jump(const struct sock_filter *f, uint32_t a, uint32_t b)
{
	bool is_true;

	switch (BPF_OP(f->code)) {
	case BPF_JA:
		return f->k;
	case BPF_JEQ:
		is_true = a == b;
		break;
	case BPF_JGT:
		is_true = a > b;
		break;
	case BPF_JGE:
		is_true = a >= b;
		break;
	default:
		is_true = a & b; /* BPF_JSET */
		break;
	}
	return is_true ? f->jt : f->jf;
}

uint32_t filter_run(const struct sock_filter *code, size_t cnt, const struct seccomp_data *data)
{
	struct machine m = { .data = data };

	for (size_t pc = 0; pc < cnt; pc++) {
		const struct sock_filter *f = &code[pc];
		const uint32_t operand = BPF_SRC(f->code) == BPF_X ? m.x : f->k;

		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			m.a = load(&m, f);
			break;
		case BPF_LDX:
			m.x = load(&m, f);
			break;
		case BPF_ST:
			m.mem[f->k % BPF_MEMWORDS] = m.a;
			break;
		case BPF_STX:
			m.mem[f->k % BPF_MEMWORDS] = m.x;
			break;
		case BPF_ALU:
			m.a = calculate(f->code, m.a, operand);
			break;
		case BPF_JMP:
			pc += jump(f, m.a, operand);
			break;
		case BPF_RET:
			return (BPF_RVAL(f->code) == BPF_A ? m.a : f->k) & SECCOMP_RET_ACTION_FULL;
		default: /* BPF_MISC */
			if (BPF_MISCOP(f->code) == BPF_TAX)
				m.x = m.a;
			else
				m.a = m.x;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}
