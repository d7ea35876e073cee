/* SPDX-License-Identifier: MIT */
/*
 * ca_file.h - the certificates of the authorities that this machine trusts. For a libcurl whose build did not set where
 * they are, as in the one static executable, which runs on any distribution.
 */
#ifndef HT_BASE_CA_FILE_H
#define HT_BASE_CA_FILE_H

/* Return SSL_CERT_FILE, else the first readable place of some distribution; NULL: there is none. */
const char *ca_file_find(void);

#endif
