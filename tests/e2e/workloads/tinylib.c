/* SPDX-License-Identifier: MIT */
/* tinylib.c - one of very many libraries, each with a number of its own (--defsym=number=). */
extern char number[];
int tiny(int x);
int tiny(int x)
{
	return x + (int)(long)number;
}
