// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* hw_counters of the device, by port, with the names of rxe and mlx5. */
#include "emu/hca/hca_internal.h"

static const char *const names[] = {
	[HCA_CNT_SENT_PKTS] = "sent_pkts",
	[HCA_CNT_RCVD_PKTS] = "rcvd_pkts",
	[HCA_CNT_DUPLICATE_REQUEST] = "duplicate_request",
	[HCA_CNT_OUT_OF_SEQUENCE] = "out_of_seq_request",
	[HCA_CNT_RCVD_RNR_ERR] = "rcvd_rnr_err",
	[HCA_CNT_SEND_RNR_ERR] = "send_rnr_err",
	[HCA_CNT_RCVD_SEQ_ERR] = "rcvd_seq_err",
	[HCA_CNT_ACK_DEFERRED] = "ack_deferred",
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
