// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: any bytes as the data of a peer from the first byte of a connection on, to an initiator or to a responder. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "siw/conn.h"
#include "siw/stream_fuzz.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static struct hca_iw_param param = { .ird = 2, .ord = 2 };
static bool refuses;

static int on_event(void *ctx, struct hca_iw_conn *c, const struct hca_iw_event *ev)
{
	if (ev->type != HCA_IW_REQUEST)
		return 0;
	return refuses || siw_conn_ops.accept(c, &param) ? -ECONNREFUSED : 0;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct hca_iw_listener l = { .fn = on_event };
	struct siw_options o = siw_options_default;
	struct fuzz_side s;
	int fds[2];

	if (size < 2 || size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		return 0;
	fuzz_open(&s);
	param.qpn = s.qpn;
	refuses = data[0] & 2;
	o.markers = data[0] & 4;
	o.rtr_zero = data[0] & 8;
	siw_set_options(s.hca, &o);
	l.siw = hca_transport_data(s.hca);
	list_init(&l.half);
	if (data[0] & 1)
		siw_conn_passive_open(&l, fds[0]);
	else
		siw_conn_active_open(l.siw, fds[0], &param, on_event, NULL);
	fuzz_idle(&s);
	if (send(fds[1], data + 1, size - 1, MSG_NOSIGNAL) >= 0)
		fuzz_idle(&s);
	close(fds[1]);
	fuzz_idle(&s);
	fuzz_close(&s);
	return 0;
}
