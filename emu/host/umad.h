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
 * write() cannot fail as in the kernel, since it does not wait for the daemon: a bad record is counted and logged instead.
 */
#ifndef MUSLIN_HOST_UMAD_H
#define MUSLIN_HOST_UMAD_H

#include <sys/types.h>

#include "emu/mad/mad.h"

#define UMAD_RECORD_INLINE (64 * 1024)
#define UMAD_WRITE_MAX     (4 * 1024 * 1024)

struct umad_port;
struct umad_file;

/* What all umad and issm files of a CA port share. @mp must outlive it. NULL without memory. */
struct umad_port *umad_port_create(struct loop *loop, struct mad_port *mp);
/* Closes the files that are still open. */
void umad_port_destroy(struct umad_port *p);

/* Opens umadN: 0 and *file; *app_fd is the application's end, the caller's to pass on and to close. -ENOMEM, -EMFILE... */
int umad_file_open(struct umad_port *p, struct umad_file **file, int *app_fd);
/* Unregisters the file's agents; requests under way are cancelled. */
void umad_file_close(struct umad_file *f);

/*
 * An ioctl: @request as the application passed it, @arg the @len bytes to which its argument points, changed in place
 * where the kernel writes back. 0 or -errno; -ENOTTY for what is unknown, and for REGISTER_AGENT2.
 */
int umad_file_ioctl(struct umad_file *f, u32 request, void *arg, size_t len);

/* Opens and closes issmN, which sets and clears IsSM at the port. -EAGAIN while another file has it open. */
int umad_issm_open(struct umad_port *p);
void umad_issm_close(struct umad_port *p);

#define UMAD_COUNTERS(C)                                                        \
	C(WRITES, "umad_writes")                                                \
	C(BAD_WRITES, "umad_bad_writes") /* what write() would have rejected */ \
	C(RECORDS, "umad_records")                                              \
	C(DROPPED, "umad_records_dropped") /* the application does not read */  \
	C(TIMEOUTS, "umad_timeouts")
#define UMAD_COUNTER_ENUM(name, str) UMAD_CTR_##name,
enum umad_counter {
	UMAD_COUNTERS(UMAD_COUNTER_ENUM) UMAD_CTR_NUM
};
#undef UMAD_COUNTER_ENUM
u64 umad_port_counter(const struct umad_port *p, enum umad_counter c);
const char *umad_counter_name(enum umad_counter c);

#endif
