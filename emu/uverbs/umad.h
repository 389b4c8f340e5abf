/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The umad and issm device files.
 *
 * The application's descriptor of a umad file is one end of a SOCK_SEQPACKET socket pair. One record is one MAD, both
 * ways: the ib_user_mad header (64 bytes after the ENABLE_PKEY ioctl, 56 before) and the MAD. write() goes to the socket
 * without a hook. read() needs these rules of the kernel (user_mad.c), which the shim follows:
 *
 *  - @count < header: EINVAL; the record stays.
 *  - a record whose data fits is copied and consumed; read() returns header + data.
 *  - @count smaller than the record, data at most 256 bytes: EINVAL; the record stays.
 *  - @count smaller than the record, data more than 256 bytes (RMPP): with room for header + 256 these are copied, and
 *    read() fails with ENOSPC (the length is in the header); otherwise EINVAL. The record stays.
 *
 * A record of more than UMAD_RECORD_INLINE bytes comes as its header and first 256 bytes of data, with one sealed memfd
 * (SCM_RIGHTS) that holds the whole record, header first, its size being the record's. So the shim peeks with
 * recvmsg(MSG_PEEK) and room for one descriptor; when one comes, it applies the rules to the memfd's size and contents.
 * (A peek duplicates the descriptor each time: close it.) An application may write at most UMAD_WRITE_MAX bytes.
 *
 * write() cannot fail as in the kernel, for nobody waits for the daemon: a bad record is counted and logged instead.
 */
#ifndef MUSLIN_UVERBS_UMAD_H
#define MUSLIN_UVERBS_UMAD_H

#define UMAD_RECORD_INLINE (64 * 1024)
#define UMAD_WRITE_MAX (4 * 1024 * 1024)

#endif
