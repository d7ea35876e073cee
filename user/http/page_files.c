/* SPDX-License-Identifier: MIT */
/* page_files.c - see page_files.h. The Makefile makes a C string of each file. */
#include "http/page_files.h"

const struct page_files page_files = {
	.style =
#include "page.css.h"
	,
	.script =
#include "page.js.h"
	,
	.index_script =
#include "index.js.h"
	,
	.process_script =
#include "process.js.h"
	,
};
