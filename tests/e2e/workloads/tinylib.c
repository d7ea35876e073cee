/* SPDX-License-Identifier: MIT */
/* tinylib.c - one of very many libraries, linked with --defsym=number= its number. */
extern char number[];
int tiny(int x);
int tiny(int x)
{
	return x + (int)(long)number;
}
