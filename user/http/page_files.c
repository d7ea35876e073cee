/* SPDX-License-Identifier: MIT */
/* page_files.c - see pages.h. The Makefile makes a C string of each file. */
#include "http/pages.h"

static const char style[] =
#include "page.css.h"
	;
static const char script[] =
#include "page.js.h"
	;
static const char index_script[] =
#include "index.js.h"
	;
static const char process_script[] =
#include "process.js.h"
	;

const struct page_files page_files = {
	.style = style,
	.script = script,
	.index_script = index_script,
	.process_script = process_script,
};
