// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* hw_counters of the device, by port, with the names of rxe and mlx5; sets of them for some QPs of a port. */
#include <stdlib.h>

#include "emu/hca/hca_internal.h"

struct hca_counter_set {
	u64 value[HCA_COUNTERS];
	struct list qps;
};

static const char *const names[] = {
	[HCA_CNT_SENT_PKTS] = "sent_pkts",
	[HCA_CNT_RCVD_PKTS] = "rcvd_pkts",
	[HCA_CNT_DUPLICATE_REQUEST] = "duplicate_request",
	[HCA_CNT_OUT_OF_SEQUENCE] = "out_of_seq_request",
	[HCA_CNT_RCVD_RNR_ERR] = "rcvd_rnr_err",
	[HCA_CNT_SEND_RNR_ERR] = "send_rnr_err",
	[HCA_CNT_RCVD_SEQ_ERR] = "rcvd_seq_err",
	[HCA_CNT_ACK_DEFERRED] = "ack_deferred", /* 0: rxe counts runs of its completer that a task does later */
	[HCA_CNT_RETRY_EXCEEDED] = "retry_exceeded_err",
	[HCA_CNT_RNR_RETRY_EXCEEDED] = "retry_rnr_exceeded_err",
	[HCA_CNT_LOCAL_ACK_TIMEOUT] = "local_ack_timeout_err",
	[HCA_CNT_COMPLETER_RETRY] = "completer_retry_err",
	[HCA_CNT_SEND_ERR] = "send_err",
	[HCA_CNT_RDMA_SENDS] = "rdma_sends",
	[HCA_CNT_RDMA_RECVS] = "rdma_recvs",
	[HCA_CNT_WRITE_REQUESTS] = "rx_write_requests",
	[HCA_CNT_READ_REQUESTS] = "rx_read_requests",
	[HCA_CNT_ATOMIC_REQUESTS] = "rx_atomic_requests",
	[HCA_CNT_ICRC_ERR] = "rx_icrc_errors",
	[HCA_CNT_BAD_PACKET] = "rx_bad_packets",
	[HCA_CNT_WRONG_QP] = "rx_wrong_qp",
	[HCA_CNT_GHOST] = "rx_ghost_acks",
	[HCA_CNT_OOO_DISCARDED] = "rx_ooo_discarded",
	[HCA_CNT_REMOTE_ACCESS_ERR] = "resp_remote_access_errors",
	[HCA_CNT_REMOTE_INV_REQ_ERR] = "resp_remote_invalid_request",
	[HCA_CNT_PKEY_MISMATCH] = "rx_pkey_mismatch",
	[HCA_CNT_QKEY_MISMATCH] = "rx_qkey_mismatch",
	[HCA_CNT_UD_DROPPED] = "rx_ud_dropped",
	[HCA_CNT_WQE_ERR] = "req_wqe_errors",
	[HCA_CNT_CQ_OVERFLOW] = "cq_overflow",
	[HCA_CNT_CNP_SENT] = "np_cnp_sent",
	[HCA_CNT_CNP_HANDLED] = "rp_cnp_handled",
	[HCA_CNT_CNP_IGNORED] = "rp_cnp_ignored",
	[HCA_CNT_ECN_MARKED] = "np_ecn_marked_roce_packets",
};
static_assert(ARRAY_SIZE(names) == HCA_COUNTERS, "a name for each counter");

const char *hca_counter_name(u32 n)
{
	return n < HCA_COUNTERS ? names[n] : NULL;
}

u64 hca_counter(const struct hca *hca, u8 port, u32 n)
{
	return hca_port_valid(hca, port) && n < HCA_COUNTERS ? hca->port[port - 1].counter[n] : 0;
}

void hca_count(struct hca *hca, u8 port, enum hca_counter c)
{
	if (hca_port_valid(hca, port))
		hca->port[port - 1].counter[c]++;
}

void hca_qp_count(const struct hca_qp *qp, enum hca_counter c)
{
	hca_count(qp->hca, qp->attr.port, c);
	if (qp->counters)
		qp->counters->value[c]++;
}

struct hca_counter_set *hca_counter_set_create(void)
{
	struct hca_counter_set *s = calloc(1, sizeof(*s));

	if (s)
		list_init(&s->qps);
	return s;
}

static void qp_set_counters(struct hca_qp_priv *priv, struct hca_counter_set *set)
{
	priv->qp.counters = set;
	list_del(&priv->counted);
	if (set)
		list_add(&set->qps, &priv->counted);
}

void hca_counter_set_destroy(struct hca_counter_set *s)
{
	while (!list_empty(&s->qps))
		qp_set_counters(list_first(&s->qps, struct hca_qp_priv, counted), NULL);
	free(s);
}

u64 hca_counter_set_value(const struct hca_counter_set *s, u32 n)
{
	return n < HCA_COUNTERS ? s->value[n] : 0;
}

int hca_qp_set_counters(struct hca_ctx *ctx, u32 qpn, struct hca_counter_set *set)
{
	struct hca_qp *qp = hca_qp_get(ctx, qpn);

	if (!qp)
		return -EINVAL;
	qp_set_counters(hca_qp_priv(qp), set);
	return 0;
}
