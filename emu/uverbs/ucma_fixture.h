/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For tests: a host with connection management on one end of a cable, and an opened rdma_cm file. */
#ifndef MUSLIN_UVERBS_UCMA_FIXTURE_H
#define MUSLIN_UVERBS_UCMA_FIXTURE_H

#include <unistd.h>

#include "emu/mad/fixture.h"
#include "emu/uverbs/ucma_internal.h"
#include "rxe/rxe.h"

struct ucma_fixture {
	struct cable c;
	struct hca *hca;
	struct rdma_host *rdma;
	struct uv_host host;
	struct uv_file file[2];
	int fd[2];
	u8 out[4096];
	size_t out_len;
};

static void fixture_open(struct ucma_fixture *f)
{
	struct wire_port *ports[1] = { &f->c.a.port };
	struct hca_config hca = { .name = "h1", .node_guid = 0x1234, .nports = 1, .ports = ports, .seed = 7 };
	struct rdma_host_config cfg = { .name = "h1", .nports = 1, .seed = 9 };
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
	f->host = (struct uv_host){ .name = "h1", .hca = f->hca, .nports = 1, .cm = ucma_host_create(f->rdma) };
	for (i = 0; i < 2; i++) {
		f->file[i] = (struct uv_file){ .host = &f->host, .ops = &ucma_file_ops };
		ucma_file_ops.open(&f->file[i], 0, &f->fd[i], &extra);
	}
}

static void fixture_close(struct ucma_fixture *f)
{
	int i;

	for (i = 0; i < 2; i++) {
		ucma_file_ops.close(&f->file[i]);
		close(f->fd[i]);
	}
	ucma_host_destroy(f->host.cm);
	rdma_host_destroy(f->rdma);
	hca_destroy(f->hca);
	cable_close(&f->c);
}

/* Writes a command with @out bytes of room for the answer; returns what write() would. */
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
