/* SPDX-License-Identifier: MIT */
/* page_files.h - the files that the pages for people load: page.css and page.js both, index.js and process.js each. */
#ifndef HT_HTTP_PAGE_FILES_H
#define HT_HTTP_PAGE_FILES_H

extern const struct page_files {
	const char *style, *script, *index_script, *process_script;
} page_files;

#endif
