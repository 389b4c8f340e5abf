// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The PCI function: its BAR with initialization segment, MSI-X table and user access regions (UARs), whose writes are
 * doorbells; start, stop and reset.
 *
 * A driver is active from INIT_HCA to TEARDOWN_HCA or a reset. Then all objects are destroyed, so that no writes reach
 * memory that the guest reuses.
 */
#include <errno.h>
#include <stdlib.h>

#include "emu/connectx/connectx_internal.h"
#include "emu/lib/clock.h"
#include "emu/lib/log.h"

#define VENDOR_MELLANOX  0x15b3
#define DEVICE_CONNECTX4 0x1013
#define CLASS_INFINIBAND 0x020700
#define MSIX_TABLE       0x4000
#define MSIX_PBA         0x5000
#define QUEUE_ALIGN      4096u /* of the command queue */
#define VENDOR_CAP       24    /* bytes; it reads as 0: the driver finds no support for dumps */

#define STAY_NS (10 * NSEC_PER_USEC)

/* The initialization segment. */
enum {
	SEG_FW_REV = 0x0,
	SEG_CMDIF_REV = 0x4,
	SEG_QUEUE_HIGH = 0x10,
	SEG_QUEUE_LOW = 0x14,
	SEG_DOORBELL = 0x18,
	SEG_INITIALIZING = 0x1fc, /* 31: it is; 30: a reset by software is supported */
	SEG_HEALTH_FW = 0x230,
	SEG_HEALTH_HW = 0x234,
	SEG_HEALTH_SEVERITY = 0x238,
	SEG_HEALTH_SYNDROME = 0x23c,
	SEG_TIMER_HIGH = 0x1000,
	SEG_TIMER_LOW = 0x1004,
	SEG_HEALTH_COUNTER = 0x1010,
};
#define CMDIF_REV       5
#define QUEUE_GEOMETRY  0x56 /* log2 of entries and of their size */
#define INTERFACE_MASK  0x700u
#define INTERFACE_OFF   0x100u
#define INTERFACE_RESET 0x700u /* by software; it ends with the interface off */
#define SYNDROME_SHIFT  16
#define SEVERITY_RFR    BIT(31)
#define RESET_SUPPORTED BIT(30)

const char *connectx_counter_name(u32 n)
{
	static const char *const names[] = { CX_COUNTERS(COUNTER_NAME) };

	if (n < VFIO_CTR_NUM)
		return vfio_counter_name((enum vfio_counter)n);
	n -= VFIO_CTR_NUM;
	return n < CX_CTR_NUM ? names[n] : cx_command_name(n - CX_CTR_NUM);
}

u64 connectx_counter(const struct connectx *d, u32 n)
{
	if (n < VFIO_CTR_NUM)
		return vfio_counter(d->vfio, (enum vfio_counter)n);
	n -= VFIO_CTR_NUM;
	if (n < CX_CTR_NUM)
		return d->counter[n];
	return n - CX_CTR_NUM < cx_command_total() ? d->command_count[n - CX_CTR_NUM] : 0;
}

/* Free-running clock of completion time stamps. */
u64 cx_clock(void)
{
	return clock_read() / 32 * (CX_CLOCK_KHZ / 31250);
}
static_assert(CX_CLOCK_KHZ == 156250, "5 ticks in 32 ns");

/* ---- the BAR ---- */

static u32 segment_read(struct connectx *d, u64 off)
{
	u64 t;

	switch (off) {
	case SEG_FW_REV:
		return CX_FW_MINOR << 16 | CX_FW_MAJOR;
	case SEG_CMDIF_REV:
		return CMDIF_REV << 16 | CX_FW_SUBMINOR;
	case SEG_QUEUE_LOW:
		return (u32)d->command_queue | QUEUE_GEOMETRY | d->interface;
	case SEG_HEALTH_FW:
		return CX_FW_VERSION;
	case SEG_HEALTH_HW:
		return DEVICE_CONNECTX4;
	case SEG_HEALTH_SYNDROME:
		return (d->fatal ?: cx_fault_health(d).syndrome) << SYNDROME_SHIFT;
	case SEG_HEALTH_SEVERITY:
		if (!cx_fault_health(d).rfr)
			return 0;
		/*
		 * After it has read RFR, the driver frees the memory of its objects, as after cx_fatal(), then resets.
		 */
		loop_task_queue(d->loop, &d->stop_task);
		return SEVERITY_RFR;
	case SEG_TIMER_HIGH:
		return (u32)(cx_clock() >> 32);
	case SEG_TIMER_LOW:
		return (u32)cx_clock();
	case SEG_HEALTH_COUNTER:
		t = cx_fault_health(d).now / (100 * NSEC_PER_MSEC);
		return (u32)t & 0xffffff;
	case SEG_INITIALIZING:
		return RESET_SUPPORTED;
	default:
		return 0;
	}
}

static void on_read(void *dev, u32 bar, u64 off, void *buf, u32 len)
{
	struct connectx *d = dev;
	u8 word[4];
	u32 i;

	memset(buf, 0, len);
	if (off + len > CX_UARS_AT)
		return;
	for (i = 0; i < len; i++) {
		if (!i || !((off + i) % sizeof(word)))
			wire_store(word, sizeof(word), segment_read(d, (off + i) & ~3ull));
		((u8 *)buf)[i] = word[(off + i) % sizeof(word)];
	}
}

static void interface_off(struct connectx *d)
{
	d->interface = INTERFACE_OFF;
	cx_stop(d);
	d->enabled = false;
	cx_commands_forget(d);
}

/*
 * A driver that turns the interface off does not destroy its objects, but reuses their memory, and that of its
 * commands.
 */
static void interface_set(struct connectx *d, u32 state)
{
	if (state == INTERFACE_RESET) {
		d->fatal = 0;
		cx_fault_reset(d);
		state = INTERFACE_OFF;
	}
	d->interface = state;
	if (state == INTERFACE_OFF)
		interface_off(d);
}

static void segment_write(struct connectx *d, u64 off, u32 value)
{
	switch (off) {
	case SEG_QUEUE_HIGH:
		d->command_queue = (u64)value << 32 | (u32)d->command_queue;
		break;
	case SEG_QUEUE_LOW:
		d->command_queue = (d->command_queue & ~0xffffffffull) | (value & ~(QUEUE_ALIGN - 1));
		interface_set(d, value & INTERFACE_MASK);
		break;
	case SEG_DOORBELL:
		/* While the interface is disabled, the command queue is not where the driver expects it. */
		if (d->interface == INTERFACE_OFF) {
			cx_count(d, CX_CTR_BAD_DOORBELLS);
			break;
		}
		d->due |= value & ~d->late;
		cx_commands(d);
		break;
	default:
		break;
	}
}

static void on_write(void *dev, u32 bar, u64 off, const void *buf, u32 len)
{
	struct connectx *d = dev;

	if (off >= CX_UARS_AT) {
		if (d->verbs.ctx)
			cx_uar_write(d, off, buf, len);
	} else if (len == 4) {
		segment_write(d, off, (u32)wire_load(buf, 4));
	}
}

/* ---- polling ---- */

static u32 on_poll(struct loop_poller *p, struct now now)
{
	struct connectx *d = container_of(p, struct connectx, poller);
	u32 n = d->found + cx_qps_poll(d);

	d->found = 0;
	return n + verbs_poll_recv(&d->verbs, d->loop, &d->poll_timer, now);
}

/* Doorbells wake the loop. */
static bool on_sleep(struct loop_poller *p, bool asleep)
{
	if (asleep)
		cx_qps_unpoll(container_of(p, struct connectx, poller));
	return false;
}

static void on_poll_timer(struct loop_timer *t, struct now now) {}

static void on_resume(struct loop_task *t, struct now now)
{
	struct connectx *d = container_of(t, struct connectx, resume_task);

	/* A command runs tasks: turns of this and other guests begin after it. */
	if (cx_commands_serving()) {
		cx_resume_later(d);
		return;
	}
	d->turn = 0;
	cx_commands(d);
	verbs_specials_resume(&d->verbs);
}

void cx_resume_later(struct connectx *d)
{
	loop_task_queue(d->loop, &d->resume_task);
}

/* ---- start and stop ---- */

/* Numbers for as many objects as an HCA has, and for the queue pairs that it does not count. */
#define OBJECTS 0x1ffff

static void tables_init(struct connectx *d)
{
	verbs_init(&d->verbs, &cx_verbs_ops, d->cfg.hca, 1, OBJECTS);
	table_init(&d->qpns, 0, OBJECTS);
	table_init(&d->counter_sets, 1, 255);
	table_init(&d->flow_counters, 1, CX_FLOW_COUNTERS);
}

static void tables_fini(struct connectx *d)
{
	verbs_fini(&d->verbs);
	cx_uars_fini(d);
	cx_counter_sets_destroy(d);
	table_fini(&d->flow_counters);
	table_fini(&d->qpns);
}

int cx_start(struct connectx *d)
{
	cx_stop(d);
	d->fatal = 0;
	cx_uars_init(d);
	d->verbs.ctx = hca_ctx_create(d->cfg.hca, &cx_dma, d, cx_event_raise, d);
	if (!d->verbs.ctx)
		return -ENOMEM;
	loop_poller_add(d->loop, &d->poller);
	if (d->cfg.present)
		d->cfg.present(d->cfg.arg, true);
	log_at(LOG_INFO, d->cfg.name, "the guest's driver has started");
	return 0;
}

void cx_stop(struct connectx *d)
{
	struct wire_port *port = hca_port(d->cfg.hca, d->cfg.port);
	u32 i;

	loop_task_cancel(&d->stop_task);
	if (d->caps_set) /* maybe before INIT_HCA */
		port->ops->set_cap(port, 0, d->caps_set);
	d->caps_set = 0;
	if (!d->verbs.ctx)
		return;
	loop_poller_del(&d->poller);
	loop_timer_cancel(&d->poll_timer);
	for (i = 0; i < CX_OWN_QPNS; i++) {
		if (d->own[i] && d->own[i]->service == CX_QP_UMR)
			cx_umr_qp_destroy(d, d->own[i]);
	}
	verbs_specials_remove(&d->verbs);
	hca_ctx_destroy(d->verbs.ctx);
	d->verbs.ctx = NULL;
	cx_eq_destroy_all(d);
	tables_fini(d);
	tables_init(d);
	if (d->cfg.present)
		d->cfg.present(d->cfg.arg, false);
	log_at(LOG_INFO, d->cfg.name, "the guest's driver has stopped");
}

/*
 * Reports an internal error by the initialization segment; an event tells the driver to read it. INIT_HCA or a reset
 * ends this state. The driver frees the memory of its objects without commands, so they are all destroyed.
 */
void cx_fatal(struct connectx *d, enum cx_syndrome syndrome)
{
	d->fatal = (u8)syndrome;
	d->interface = INTERFACE_OFF;
	loop_task_queue(d->loop, &d->stop_task); /* later: the caller may iterate over contexts */
}

/* After an internal error no command is executed; after a request for a reset the driver's commands fail. */
static void on_stop(struct loop_task *t, struct now now)
{
	struct connectx *d = container_of(t, struct connectx, stop_task);

	if (d->interface == INTERFACE_OFF)
		interface_off(d);
	else
		cx_stop(d);
}

/*
 * A driver beneath which the function is reset finds the interface off, and restarts the adapter. One that starts
 * writes the address of its command queue, and the interface's state with it.
 */
static void on_reset(void *dev)
{
	struct connectx *d = dev;

	d->map_epoch++;
	interface_off(d);
	d->command_queue = 0;
	d->fatal = 0;
}

/* Invalidates all cached pointers. Requests and completions refer to guest memory by address. */
static void on_dma_unmap(void *dev, u64 iova, u64 len)
{
	((struct connectx *)dev)->map_epoch++;
}

static const struct vfio_ops ops = {
	.read = on_read,
	.write = on_write,
	.reset = on_reset,
	.dma_unmap = on_dma_unmap,
};

struct connectx *connectx_create(struct loop *loop, const char *path, const struct connectx_config *cfg)
{
	const struct vfio_config vc = {
		.name = cfg->name,
		.vendor = VENDOR_MELLANOX,
		.device = DEVICE_CONNECTX4,
		.subvendor = VENDOR_MELLANOX,
		.subdevice = 0x0008,
		.class_code = CLASS_INFINIBAND,
		.bar[0] = { .size = CX_BAR_SIZE, .mem64 = true, .prefetchable = true },
		.vectors = CX_VECTORS,
		.msix_bar = 0,
		.msix_table = MSIX_TABLE,
		.msix_pba = MSIX_PBA,
		.vendor_cap = VENDOR_CAP,
	};
	struct connectx *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return NULL;
	d->loop = loop;
	d->cfg = *cfg;
	d->interface = INTERFACE_OFF;
	d->poller = (struct loop_poller){ .poll = on_poll, .sleep = on_sleep, .stay_ns = STAY_NS };
	list_init(&d->poller.link);
	list_init(&d->polled);
	cx_events_init(&d->fatal_event, 1);
	cx_events_init(d->port_event, CX_PORT_EVENTS);
	d->poll_timer.fn = on_poll_timer;
	d->late_timer.fn = cx_commands_late;
	loop_task_init(&d->stop_task, on_stop);
	loop_task_init(&d->resume_task, on_resume);
	tables_init(d);
	d->command_count = calloc(cx_command_total(), sizeof(*d->command_count));
	d->vfio = d->command_count ? vfio_server_create(loop, path, &vc, &ops, d) : NULL;
	if (d->vfio)
		return d;
	err = errno;
	free(d->command_count);
	free(d);
	errno = err;
	return NULL;
}

void connectx_destroy(struct connectx *d)
{
	if (!d)
		return;
	cx_stop(d);
	cx_commands_forget(d);
	vfio_server_destroy(d->vfio);
	tables_fini(d);
	free(d->command_count);
	free(d);
}

const char *connectx_path(const struct connectx *d)
{
	return vfio_path(d->vfio);
}

bool connectx_connected(const struct connectx *d)
{
	return vfio_connected(d->vfio);
}

bool connectx_in_use(const struct connectx *d)
{
	return d->verbs.ctx != NULL;
}
