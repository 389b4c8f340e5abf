/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests: a host with connection management, at one end of a cable, with two opened rdma_cm
 * files; and a peer that connects to it. */
#ifndef MUSLIN_HOST_UCMA_FIXTURE_H
#define MUSLIN_HOST_UCMA_FIXTURE_H

#include <assert.h>
#include <unistd.h>

#include "emu/host/ucma_internal.h"
#include "emu/mad/fixture.h"
#include "rxe/rxe.h"

struct ucma_fixture {
	struct cable c;
	struct hca *hca;
	struct rdma_host *rdma;
	struct uv_server *server;
	struct uv_host host;
	struct uv_file file[2];
	struct uv_process process;
	int fd[2];
	u8 out[4096];
	size_t out_len;
	struct cm *peer; /* at the other end */
	struct cm_id *connection[8];
	u32 nconnections, rejected; /* connections of the peer */
	u16 rep_answer;             /* what the peer sends when a REP arrives: CM_ATTR_RTU, CM_ATTR_REJ; 0: nothing */
};

static struct uv_host *fixture_find(void *arg, const char *name)
{
	return &((struct ucma_fixture *)arg)->host;
}

static void fixture_open(struct ucma_fixture *f)
{
	struct wire_port *ports[1] = { &f->c.a.port };
	struct hca_config hca = { .name = "h1", .node_guid = 0x1234, .nports = 1, .ports = ports, .seed = 7 };
	struct rdma_host_config cfg = { .nports = 1, .seed = 9 };
	char path[64];
	int i, extra;

	memset(f, 0, sizeof(*f));
	cable_open(&f->c);
	f->hca = hca_create(f->c.loop, &hca);
	hca_set_transport(f->hca, &rxe_transport);
	cfg.loop = f->c.loop;
	cfg.hca = f->hca;
	cfg.mp[0] = f->c.ma;
	cfg.v4[0] = ip_addr_v4(0x0a000001);
	cfg.v4_len[0] = 24;
	f->rdma = rdma_host_create(&cfg);
	f->peer = cm_create(f->c.loop, 0x5678, 15, 11);
	cm_port_add(f->peer, 1, f->c.mb);
	f->host = (struct uv_host){ .name = "h1", .hca = f->hca, .nports = 1, .cm = ucma_host_create(f->rdma) };
	snprintf(path, sizeof(path), "/tmp/ucma-test-%d", (int)getpid());
	f->server = uv_server_create(f->c.loop, path, path, fixture_find, f);
	assert(f->server);
	for (i = 0; i < 2; i++) {
		f->file[i] = (struct uv_file){
			.server = f->server, .host = &f->host, .opener = &f->process, .ops = &ucma_file_ops
		};
		ucma_file_ops.open(&f->file[i], 0, &f->fd[i], &extra);
	}
}

static void peer_event(void *ctx, struct cm_id *id, const struct cm_event *ev)
{
	static const u8 data[] = { 1, 2, 3 };
	struct ucma_fixture *f = ctx;

	f->rejected += ev->type == CM_EVENT_REJ;
	if (ev->type == CM_EVENT_REP && f->rep_answer == CM_ATTR_RTU)
		(void)cm_send_rtu(id, data, sizeof(data));
	else if (ev->type == CM_EVENT_REP && f->rep_answer == CM_ATTR_REJ)
		(void)cm_send_rej(id, CM_REJ_CONSUMER, data, sizeof(data));
}

/* The peer sends a REQ for that port of the TCP port space. */
static void peer_connect(struct ucma_fixture *f, u16 port)
{
	u8 data[CM_IP_HDR_SIZE] = { 0 };
	struct cm_req req = {
		.service_id = wire_cm_service_id(RDMA_PS_TCP, port),
		.path = { .dgid = f->c.a.port.attr.gid[0],
			  .sgid = f->c.b.port.attr.gid[0],
			  .dlid = f->c.a.port.attr.lid,
			  .slid = f->c.b.port.attr.lid,
			  .reversible = true,
			  .pkey = WIRE_PKEY_DEFAULT_FULL,
			  .mtu = WIRE_MTU_2048,
			  .packet_life = 14 },
		.port = 1,
		.pkey = WIRE_PKEY_DEFAULT_FULL,
		.transport = CM_RC,
		.qpn = 0x100 + f->nconnections,
		.response_timeout = 16,
		.max_retries = 3,
		.data = data,
		.data_len = sizeof(data),
	};
	struct cm_id *id;

	if (f->nconnections == ARRAY_SIZE(f->connection))
		return;
	wire_set(data, CM_IP_VERSION, 4);
	wire_set(data, CM_IP_SRC_ADDR4, 0x0a000002);
	wire_set(data, CM_IP_DST_ADDR4, 0x0a000001);
	f->connection[f->nconnections++] = id = cm_id_create(f->peer, peer_event, f);
	(void)cm_send_req(id, &req);
	cable_run(&f->c, 1);
}

/* The peer destroys its connection of that number. */
static void peer_destroy(struct ucma_fixture *f, u32 n)
{
	if (n >= f->nconnections || !f->connection[n])
		return;
	cm_id_destroy(f->connection[n]);
	f->connection[n] = NULL;
	cable_run(&f->c, 1);
}

static void fixture_close(struct ucma_fixture *f)
{
	int i;
	u32 n;

	for (n = 0; n < f->nconnections; n++)
		peer_destroy(f, n);
	cm_destroy(f->peer);

	for (i = 0; i < 2; i++) {
		ucma_file_ops.close(&f->file[i]);
		close(f->fd[i]);
	}
	uv_server_destroy(f->server);
	ucma_host_destroy(f->host.cm);
	rdma_host_destroy(f->rdma);
	hca_destroy(f->hca);
	cable_close(&f->c);
}

/* Writes a command with @out bytes for the response; returns the result of write(). */
static ssize_t command(struct ucma_fixture *f, int file, u32 cmd, const void *body, size_t len, u16 out, int fd)
{
	u8 buf[4096];
	struct rdma_ucm_cmd_hdr hdr = { .cmd = cmd, .in = (u16)len, .out = out };
	int out_fd = -1;

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), body, len);
	f->out_len = sizeof(f->out);
	return ucma_file_ops.command(&f->file[file], buf, sizeof(hdr) + len, fd, f->out, &f->out_len, &out_fd);
}

#endif
