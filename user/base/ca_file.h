/* SPDX-License-Identifier: MIT */
/*
 * ca_file.h - the certificates of authorities that this machine trusts, for a libcurl that was not told
 * where they are when it was built: that of the one executable, which runs on any distribution.
 */
#ifndef HT_BASE_CA_FILE_H
#define HT_BASE_CA_FILE_H

/* SSL_CERT_FILE, else the first place of some distribution that can be read; NULL: there is none. */
const char *ca_file_find(void);

#endif
