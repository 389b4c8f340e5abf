/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For tests: a ConnectX of an HCA whose only port is looped back, and its driver, with one megabyte of memory. The
 * driver has an event queue, a completion queue, a protection domain and a memory key of all memory.
 */
#ifndef MUSLIN_CONNECTX_FIXTURE_H
#define MUSLIN_CONNECTX_FIXTURE_H

#include "emu/connectx/connectx_internal.h"
#include "emu/lib/clock.h"
#include "emu/vfio/fixture.h"
#include "rxe/rxe.h"

struct driver {
	struct loop *loop;
	struct wire_port port;
	struct list back; /* packets to loop back */
	struct loop_task task;
	struct hca *hca;
	struct mad_port *mad;
	struct connectx *dev;
	struct fault_set faults;
	char path[64];
	struct client c;
	u8 in[8192], out[8192]; /* of the last command */
	u16 lid;
	bool privileged; /* its queue pairs may use the reserved L_Key, of all memory */
	bool offload;    /* and have LSO and checksum offload */
	u32 eqn, cqn, pdn, uar, lkey;
	u32 user_index; /* of its queue pairs; 0: their completions are of version 0 */
	u32 eqe, cqe;   /* index of the next entry */
	u32 modifier;   /* attribute modifier of the last MAD */
};

static inline int driver_send(struct wire_port *port, struct wire_packet *p)
{
	struct driver *d = container_of(port, struct driver, port);

	list_add(&d->back, &p->link);
	loop_task_queue(d->loop, &d->task);
	return 0;
}

static inline void driver_deliver(struct loop_task *t, struct now now)
{
	struct driver *d = container_of(t, struct driver, task);

	while (!list_empty(&d->back)) {
		struct wire_packet *p = list_first(&d->back, struct wire_packet, link);

		list_del(&p->link);
		if (d->port.data.receive(d->port.data.ctx, p))
			wire_packet_free(p);
	}
}

/* Its M_Key is 1. */
static inline int driver_local_mad(void *arg, u8 port, u8 *mad, bool ignore_mkey)
{
	((struct driver *)arg)->modifier = (u32)wire_load(mad + 20, 4);
	if (!ignore_mkey && wire_load(mad + 24, 8) != 1)
		return 0;
	mad[3] |= 0x80;
	return mad[1] == 1;
}

static inline void driver_set_cap(struct wire_port *port, u32 set, u32 clear)
{
	port->attr.cap_mask = (port->attr.cap_mask | set) & ~clear;
}

static inline void driver_violation(struct wire_port *port, const struct wire_port_violation *v)
{
	*(v->qkey ? &port->attr.qkey_violations : &port->attr.pkey_violations) += 1;
}

static const struct wire_port_ops driver_port_ops = { .send = driver_send,
						      .set_cap = driver_set_cap,
						      .violation = driver_violation };

static inline int driver_create(struct driver *d)
{
	struct wire_port *ports[1] = { &d->port };
	struct hca_config cfg = {
		.name = "t", .node_guid = 0x1234, .sys_image_guid = 0x1235, .nports = 1, .ports = ports, .seed = 7
	};
	struct connectx_config cc = { .name = "t", .port = 1, .local_mad = driver_local_mad, .arg = d };

	memset(d, 0, sizeof(*d));
	list_init(&d->back);
	loop_task_init(&d->task, driver_deliver);
	d->port.ops = &driver_port_ops;
	d->port.num = 1;
	d->port.attr = (struct wire_port_attr){
		.state = 4, .lid = 1, .mtu_cap = 5, .mtu_active = 5, .gids = 1, .pkeys = 64, .pkey = { 0xffff }
	};
	d->port.attr.gid[0] = wire_gid_make(WIRE_GID_PREFIX_DEFAULT, 1);
	d->privileged = true;
	d->lid = d->port.attr.lid;
	d->loop = loop_create();
	d->hca = hca_create(d->loop, &cfg);
	hca_set_transport(d->hca, &rxe_transport);
	cc.hca = d->hca;
	cc.mad = d->mad = mad_port_create(d->loop, &d->port);
	fault_set_init(&d->faults, &connectx_fault_target, d->loop, d, 7);
	cc.faults = &d->faults;
	client_path(d->path, sizeof(d->path));
	d->dev = connectx_create(d->loop, d->path, &cc);
	return d->dev ? 0 : -errno;
}

static inline void driver_destroy(struct driver *d)
{
	connectx_destroy(d->dev);
	fault_set_fini(&d->faults);
	mad_port_destroy(d->mad);
	hca_destroy(d->hca);
	loop_destroy(d->loop);
}

static inline u64 driver_addr(u32 at)
{
	return CLIENT_IOVA + at;
}

/* The CPU writes little endian; the adapter's numbers are big endian. */
static inline void driver_poke(struct driver *d, u64 off, u32 v)
{
	client_write(&d->c, 0, off, htobe32(v), 4);
	loop_run_idle(d->loop, 0);
}

static inline void driver_poke64(struct driver *d, u64 off, u64 v)
{
	client_write(&d->c, 0, off, htobe64(v), 8);
	loop_run_idle(d->loop, 0);
}

static inline u32 driver_peek(struct driver *d, u64 off)
{
	return be32toh((u32)client_read(&d->c, 0, off, 4));
}

#include "emu/connectx/driver.h"

/* A command of the object with this number. */
static inline int driver_command_on(struct driver *d, u16 op, u32 number)
{
	memset(d->in, 0, sizeof(d->in));
	wire_store(d->in + 8, 4, number);
	return driver_command(d, op, 0, 16, 16);
}

static inline int driver_nop(struct driver *d)
{
	return driver_command_on(d, 0x80d, 0);
}

/* Whether @e is the successful completion of a send request. */
static inline bool driver_sent(const u8 *e, u8 op, u32 qpn, u32 index)
{
	return e && e[63] >> 4 == 0 && e[56] == op && wire_load(e + 57, 3) == qpn && wire_load(e + 60, 2) == index;
}

static inline bool driver_failed(const u8 *e, bool receive, u8 syndrome)
{
	return e && e[63] >> 4 == (receive ? 14 : 13) && e[55] == syndrome;
}

/* A memory key request. Its context has local and remote write; its mask says which rights it sets. */
struct driver_umr {
	u32 key, mask, octowords;
	u64 first, len, base;
	u8 flags;
	bool memory; /* the first entry says where they are */
	bool invalid, remote_inval, local_read;
	struct { /* a range, or the addresses of two pages */
		u32 bytes, lkey;
		u64 addr;
	} entry[4];
};
#define UMR_BLOCKS         3u
#define UMR_OFFSET         BIT(4)
#define UMR_MUST_BE_FREE   BIT(5)
#define UMR_MUST_BE_IN_USE BIT(6)
#define UMR_INLINE         BIT(7)
#define UMR_PRESENT        3u /* of a page: for reads and writes */
/* Fields that the mask selects. */
#define UMR_LEN        BIT(0)
#define UMR_PAGE_SIZE  BIT(1)
#define UMR_START      BIT(6)
#define UMR_REMOTE_INV BIT(8)
#define UMR_KEY        BIT(13)
#define UMR_LOCAL_READ BIT(17)
#define UMR_WRITE      (BIT(18) | BIT(20))
#define UMR_FREE       BIT(29)
#define UMR_REGISTER   (UMR_LEN | UMR_START | UMR_FREE)

/* Posts it with inline entries, as request *index of queue pair @qpn in page @n. */
static inline void driver_umr(struct driver *d, const struct driver_umr *r, u32 n, u32 qpn, u32 *index)
{
	u8 wqe[UMR_BLOCKS * CX_WQE_BB] = { 0 };
	u32 i;

	driver_control(wqe, qpn, *index, CX_OP_UMR, sizeof(wqe));
	wire_store(wqe + 12, 4, r->key);
	wqe[16] = (r->memory ? 0 : UMR_INLINE) | UMR_OFFSET | r->flags;
	wire_store(wqe + 20, 2, r->octowords);
	wire_store(wqe + 22, 2, r->first & 0xffff);
	wire_store(wqe + 24, 8, r->mask);
	wire_store(wqe + 32, 4, r->first >> 16 & UINT32_MAX);
	cx_set(wqe + 64, mkc, len, r->len);
	cx_set(wqe + 64, mkc, free, r->invalid);
	cx_set(wqe + 64, mkc, start_addr, r->base);
	cx_set(wqe + 64, mkc, log_page_size, 12);
	cx_set(wqe + 64, mkc, mkey_7_0, r->key & 0xff);
	cx_set(wqe + 64, mkc, en_rinval, r->remote_inval);
	cx_set(wqe + 64, mkc, lr, r->local_read);
	cx_set(wqe + 64, mkc, lw, 1);
	cx_set(wqe + 64, mkc, rw, 1);
	for (i = 0; i < ARRAY_SIZE(r->entry); i++)
		driver_data(wqe + 128 + (size_t)i * 16, r->entry[i].bytes, r->entry[i].lkey, r->entry[i].addr);
	for (i = 0; i < UMR_BLOCKS; i++)
		memcpy(driver_wqe(d, n, *index + i), wqe + (size_t)i * CX_WQE_BB, CX_WQE_BB);
	*index += UMR_BLOCKS;
	driver_posted(d, n, qpn, *index);
}

/* Arms a fault of the firmware. */
static inline struct fault *driver_fault(struct driver *d, const char *line)
{
	char err[512] = "";
	struct fault *ft = fault_add(&d->faults, line, err, sizeof(err));

	if (!ft) {
		fprintf(stderr, "%s: %s\n", line, err);
		abort();
	}
	return ft;
}

/* However long it takes: the loop reads the clock at the end, and runs timers by it. */
static inline void driver_run_for(struct driver *d, u64 ns)
{
	u64 end = clock_read() + ns;

	while (clock_read() < end) {
		usleep(1000);
		loop_run_idle(d->loop, 0);
	}
	loop_run_idle(d->loop, 0);
	loop_run_idle(d->loop, 0);
}

/* Writes the address of the command queue, which enables the interface. */
static inline void driver_set_queue(struct driver *d)
{
	driver_poke(d, 0x10, (u32)(driver_addr(AT_QUEUE) >> 32));
	driver_poke(d, 0x14, (u32)driver_addr(AT_QUEUE));
}

static inline int driver_attach(struct driver *d)
{
	int err = client_open(&d->c, d->loop, d->path);

	if (err || !client_start(&d->c))
		return err ? err : -EPROTO;
	driver_set_queue(d);
	return 0;
}

static inline u64 driver_counter(const struct driver *d, const char *name)
{
	const char *s;
	u32 n;

	for (n = 0; (s = connectx_counter_name(n)); n++)
		if (!strcmp(s, name))
			return connectx_counter(d->dev, n);
	return ~0ull;
}

static inline u32 driver_objects(const struct driver *d)
{
	u32 n, sum = 0;

	for (n = 0; hca_object_name(n); n++)
		sum += hca_object_count(d->hca, n);
	return sum;
}

#endif
