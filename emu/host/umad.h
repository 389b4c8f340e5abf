/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The umad and issm device files.
 *
 * The application's descriptor of a umad file is one end of a SOCK_SEQPACKET socket pair. One record is one MAD, in
 * both directions: the ib_user_mad header (64 bytes after the ENABLE_PKEY ioctl, 56 before) and the MAD. write() goes
 * to the socket without a hook. The shim implements these rules of the kernel's user_mad.c in read():
 *
 *  - @count < header: EINVAL; the record stays.
 *  - a record whose data fits is copied and consumed; read() returns header + data.
 *  - @count smaller than the record, data at most 256 bytes: EINVAL; the record stays.
 *  - @count smaller than the record, data more than 256 bytes (RMPP): with room for header + 256 these are copied, and
 *    read() fails with ENOSPC (the length is in the header); otherwise EINVAL. The record stays.
 *
 * A record of more than UMAD_RECORD_INLINE bytes is sent as its header and first 256 bytes of data, with a sealed memfd
 * (SCM_RIGHTS) that has the size and contents of the whole record, header first. So the shim peeks with
 * recvmsg(MSG_PEEK) and room for one descriptor; if one is passed, it applies the rules to the memfd. (A peek
 * duplicates the descriptor each time: close it.) An application may write at most UMAD_WRITE_MAX bytes.
 *
 * write() does not wait for the daemon and so cannot fail as in the kernel: an invalid record is counted and logged.
 */
#ifndef MUSLIN_HOST_UMAD_H
#define MUSLIN_HOST_UMAD_H

#include <sys/types.h>

#include "emu/mad/mad.h"

#define UMAD_RECORD_INLINE (64 * 1024)
#define UMAD_WRITE_MAX     (4 * 1024 * 1024)

struct umad_port;
struct umad_file;

/* State shared by all umad and issm files of a CA port. @mp must outlive it. NULL if out of memory. */
struct umad_port *umad_port_create(struct loop *loop, struct mad_port *mp);
/* Closes all open files. */
void umad_port_destroy(struct umad_port *p);

/* Opens umadN: 0 and *file; *app_fd is the application's end, which the caller passes on
 * and closes. -ENOMEM, -EMFILE... */
int umad_file_open(struct umad_port *p, struct umad_file **file, int *app_fd);
/* Unregisters the file's agents; cancels outstanding requests. */
void umad_file_close(struct umad_file *f);

/*
 * An ioctl: @request as passed by the application, @arg the @len bytes to which its argument points, updated in place
 * if the kernel writes back: REGISTER_AGENT2 does the flags that it has, when it fails for another flag. 0 or -errno;
 * -ENOTTY if unknown.
 */
int umad_file_ioctl(struct umad_file *f, u32 request, void *arg, size_t len);

/* Opens and closes issmN, which sets and clears IsSM of the port. -EAGAIN if another file has it open. */
int umad_issm_open(struct umad_port *p);
void umad_issm_close(struct umad_port *p);

#define UMAD_COUNTERS(C)                                                                             \
	C(WRITES, "umad_writes")                                                                     \
	C(BAD_WRITES, "umad_bad_writes") /* records that the kernel's write() would have rejected */ \
	C(RECORDS, "umad_records")                                                                   \
	C(DROPPED, "umad_records_dropped") /* unread by the application */                           \
	C(TIMEOUTS, "umad_timeouts")
#define UMAD_COUNTER_ENUM(name, str) UMAD_CTR_##name,
enum umad_counter {
	UMAD_COUNTERS(UMAD_COUNTER_ENUM) UMAD_CTR_NUM
};
#undef UMAD_COUNTER_ENUM
u64 umad_port_counter(const struct umad_port *p, enum umad_counter c);
const char *umad_counter_name(enum umad_counter c);

#endif
