/* SPDX-License-Identifier: MIT */
/* tinylib.c - one of very many libraries: -DN= its number. */
int tiny(int x);
int tiny(int x)
{
	return x + N;
}
