// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Private data of rdma_cm: each connection has the given number of bytes in its request and its reply.
 *
 *     private serve ADDR PORT (accept|reject):BYTES...         private connect ADDR PORT BYTES...
 *
 * One connection for each word, and a line for each event: its name, the length of the private data, and whether it is
 * as expected.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"

#define MOST 255 /* maximum length in rdma_conn_param */

static unsigned char bytes[MOST];
static struct rdma_event_channel *channel;

static struct rdma_cm_id *id_create(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id failed");
	return id;
}

static struct sockaddr_in address(char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1])) };

	if (inet_pton(AF_INET, argv[0], &a.sin_addr) != 1)
		die("%s is no address", argv[0]);
	return a;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};

	if (rdma_create_qp(id, NULL, &init))
		die("rdma_create_qp failed");
}

static struct rdma_conn_param param(const char *len)
{
	return (struct rdma_conn_param){ .private_data = bytes,
					 .private_data_len = (unsigned char)atoi(len),
					 .responder_resources = 1,
					 .initiator_depth = 1 };
}

/* Waits for the next event, prints it and its private data, and returns its ID. */
static struct rdma_cm_id *next_event(enum rdma_cm_event_type *type)
{
	const struct rdma_conn_param *p;
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(channel, &e))
		die("rdma_get_cm_event failed");
	p = &e->param.conn;
	id = e->id;
	*type = e->event;
	printf("%s %d %s\n", rdma_event_str(e->event) + strlen("RDMA_CM_EVENT_"), p->private_data_len,
	       p->private_data_len && memcmp(p->private_data, bytes, p->private_data_len) ? "wrong" : "right");
	fflush(stdout);
	rdma_ack_cm_event(e);
	return id;
}

static void end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static void expect(enum rdma_cm_event_type type, enum rdma_cm_event_type wanted)
{
	if (type != wanted)
		die("not the event that was to come");
}

/* True: the connection is established. */
static bool answer(struct rdma_cm_id *id, const char *how)
{
	struct rdma_conn_param p = param(strchr(how, ':') + 1);

	if (how[0] == 'a') {
		make_qp(id);
		if (rdma_accept(id, &p))
			die("rdma_accept failed");
		return true;
	}
	if (rdma_reject(id, p.private_data, p.private_data_len))
		die("rdma_reject failed");
	end(id);
	return false;
}

/* The next connection may be requested before the DISCONNECTED event of the one before. */
static void serve(char **argv)
{
	struct rdma_cm_id *listener = id_create(), *id;
	struct sockaddr_in a = address(argv);
	enum rdma_cm_event_type type;
	unsigned connected = 0;

	if (rdma_bind_addr(listener, (struct sockaddr *)&a) || rdma_listen(listener, 4))
		die("rdma_listen failed");
	printf("serving\n");
	fflush(stdout);
	for (argv += 2; *argv || connected;) {
		id = next_event(&type);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST && *argv) {
			connected += answer(id, *argv++);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(id);
			end(id);
			connected--;
		} else {
			expect(type, RDMA_CM_EVENT_ESTABLISHED);
		}
	}
	rdma_destroy_id(listener);
}

static void resolve(struct rdma_cm_id *id, struct sockaddr_in *to)
{
	enum rdma_cm_event_type type;

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)to, 2000))
		die("rdma_resolve_addr failed");
	next_event(&type);
	if (rdma_resolve_route(id, 2000))
		die("rdma_resolve_route failed");
	next_event(&type);
	expect(type, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void request(struct sockaddr_in *to, const char *len)
{
	struct rdma_conn_param p = param(len);
	struct rdma_cm_id *id = id_create();
	enum rdma_cm_event_type type;

	resolve(id, to);
	make_qp(id);
	if (rdma_connect(id, &p))
		die("rdma_connect failed");
	next_event(&type);
	if (type == RDMA_CM_EVENT_ESTABLISHED) {
		rdma_disconnect(id);
		next_event(&type);
		expect(type, RDMA_CM_EVENT_DISCONNECTED);
	}
	end(id);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to;
	unsigned i;

	if (argc < 5)
		die("private serve ADDR PORT (accept|reject):BYTES... | connect ADDR PORT BYTES...");
	for (i = 0; i < MOST; i++)
		bytes[i] = (unsigned char)(i * 7 + 1);
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel failed");
	if (!strcmp(argv[1], "serve")) {
		serve(argv + 2);
		return 0;
	}
	to = address(argv + 2);
	for (argv += 4; *argv; argv++)
		request(&to, *argv);
	return 0;
}
