/* SPDX-License-Identifier: MIT */
/* test_usdt_operand.c - where the arguments of statically defined probes are, as assemblers write it. */
#include "unit.h"

#include <asm/ptrace.h>

#include "elf/usdt_notes.h"

#if defined(__x86_64__)

struct parsed {
	const char *args;
	struct ht_operand wanted;
};

#define REG(name) offsetof(struct pt_regs, name)
#define IS_REG(name, width, sign)                               \
	{                                                       \
		HT_OPERAND_REG, width, sign, 0, REG(name), 0, 0 \
	}
#define IS_MEM(width, sign, base, off)                            \
	{                                                         \
		HT_OPERAND_MEM, width, sign, 0, REG(base), 0, off \
	}

static const struct parsed places[] = {
	{ "8@%rdi", IS_REG(rdi, 8, 0) },
	{ "-4@%eax", IS_REG(rax, 4, 1) },
	{ "1@%r15b", IS_REG(r15, 1, 0) },
	{ "-2@%bp", IS_REG(rbp, 2, 1) },
	{ "1@%sil", IS_REG(rsi, 1, 0) },
	{ "%r9", IS_REG(r9, 8, 0) },
	{ "8@$42", { HT_OPERAND_CONST, 8, 0, 0, 0, 0, 42 } },
	{ "-4@$-1", { HT_OPERAND_CONST, 4, 1, 0, 0, 0, -1 } },
	{ "8@$0x10", { HT_OPERAND_CONST, 8, 0, 0, 0, 0, 16 } },
	{ "8@$18446744073709551615", { HT_OPERAND_CONST, 8, 0, 0, 0, 0, -1 } },
	{ "8@(%rsp)", IS_MEM(8, 0, rsp, 0) },
	{ "8@-16(%rbp)", IS_MEM(8, 0, rbp, -16) },
	{ "4@24(%rsp,%rdx)", { HT_OPERAND_MEM, 4, 0, 1, REG(rsp), REG(rdx), 24 } },
	{ "-8@(%rax,%r12,8)", { HT_OPERAND_MEM, 8, 1, 8, REG(rax), REG(r12), 0 } },
};

TEST(places_are_understood)
{
	struct ht_operand op;

	each_case(c, places) {
		memset(&op, 0x55, sizeof(op));
		if (usdt_operands_parse(c->args, &op, 1) ||
		    memcmp(&op, &c->wanted, sizeof(op)) != 0)
			fail_msg("'%s' is not understood", c->args);
	}
}

TEST(others_are_refused)
{
	static const struct {
		const char *args;
		int err;
	} wrong[] = {
		{ "", -EINVAL },
		{ "8@", -ENOTSUP },
		{ "8@%rip", -ENOTSUP },
		{ "8@%ah", -ENOTSUP },
		{ "8@%rdi)", -EINVAL },
		{ "8f@%xmm0", -ENOTSUP },
		{ "8@counter(%rip)", -ENOTSUP },
		{ "8@counter", -ENOTSUP },
		{ "8@$counter", -ENOTSUP },
		{ "3@%rdi", -EINVAL },
		{ "x8@%rdi", -EINVAL },
		{ "8@(%rdi", -EINVAL },
		{ "8@(%rdi,%rsi,3)", -EINVAL },
		{ "8@(%rdi,%rsi,", -EINVAL },
		{ "8@(,%rsi,8)", -EINVAL },
		{ "8@%averyverylongregister", -ENOTSUP },
		{ "8@$99999999999999999999999", -EINVAL },
	};
	struct ht_operand op;

	each_case(c, wrong) {
		int err = usdt_operands_parse(c->args, &op, 1);

		if (err != c->err)
			fail_msg("'%s': %d, must be %d", c->args, err, c->err);
	}
}

TEST(there_may_be_more_but_not_fewer)
{
	struct ht_operand op[3];

	assert_int_equal(usdt_operands_parse("8@%rdi 8@$5  4@%edx 8@%rip", op, 3), 0);
	assert_int_equal(op[1].value, 5);
	assert_int_equal(op[2].bytes, 4);
	assert_int_equal(usdt_operands_parse("8@%rdi 8@$5", op, 3), -EINVAL);
}

RUN_TESTS()

#else

int main(void)
{
	return 0;
}

#endif
