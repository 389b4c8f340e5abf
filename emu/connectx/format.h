/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The adapter's formats: commands, contexts and capabilities as tables of fields, with the names of the kernel's
 * mlx5_ifc.h. Bits count from the most significant one of the first byte; numbers are big endian.
 */
#ifndef MUSLIN_CONNECTX_FORMAT_H
#define MUSLIN_CONNECTX_FORMAT_H

#include "emu/wire/field.h"

/* F(format, field, bit, width); A: the first element of an array */
#define CX_FIELDS(F, A)                                                    \
	F(enable_hca_in, function_id, 0x50, 16)                            \
	F(disable_hca_in, function_id, 0x50, 16)                           \
	F(query_pages_in, function_id, 0x50, 16)                           \
	F(manage_pages_in, function_id, 0x50, 16)                          \
	F(query_pages_out, num_pages, 0x60, 32)                            \
	F(alloc_uar_out, uar, 0x48, 24)                                    \
	F(dealloc_uar_in, uar, 0x48, 24)                                   \
	F(alloc_pd_out, pd, 0x48, 24)                                      \
	F(dealloc_pd_in, pd, 0x48, 24)                                     \
	F(alloc_xrcd_out, xrcd, 0x48, 24)                                  \
	F(dealloc_xrcd_in, xrcd, 0x48, 24)                                 \
	F(alloc_q_counter_out, counter_set_id, 0x58, 8)                    \
	F(dealloc_q_counter_in, counter_set_id, 0x58, 8)                   \
	F(query_q_counter_in, clear, 0xc0, 1)                              \
	F(query_q_counter_in, counter_set_id, 0xf8, 8)                     \
	F(query_q_counter_out, rx_write_requests, 0x80, 32)                \
	F(query_q_counter_out, rx_read_requests, 0xc0, 32)                 \
	F(query_q_counter_out, rx_atomic_requests, 0x100, 32)              \
	F(query_q_counter_out, out_of_buffer, 0x180, 32)                   \
	F(query_q_counter_out, out_of_sequence, 0x1c0, 32)                 \
	F(query_q_counter_out, duplicate_request, 0x200, 32)               \
	F(query_q_counter_out, rnr_nak_retry_err, 0x240, 32)               \
	F(query_q_counter_out, packet_seq_err, 0x280, 32)                  \
	F(query_q_counter_out, local_ack_timeout_err, 0x300, 32)           \
	F(query_vnic_env_in, other_vport, 0x40, 1)                         \
	F(alloc_flow_counter_in, flow_counter_bulk, 0x78, 8)               \
	F(alloc_flow_counter_out, flow_counter_id, 0x40, 32)               \
	F(dealloc_flow_counter_in, flow_counter_id, 0x40, 32)              \
	F(query_flow_counter_in, num_of_counters, 0xd0, 16)                \
	F(query_flow_counter_in, flow_counter_id, 0xe0, 32)                \
	F(query_adapter_out, query_adapter_struct, 0x80, 2048)             \
	F(query_adapter_param_block, ieee_vendor_id, 0xc8, 24)             \
	F(query_adapter_param_block, vsd_contd_psid, 0x780, 128)           \
	F(create_eq_in, eq_context_entry, 0x80, 512)                       \
	A(create_eq_in, event_bitmask, 0x2c0, 256)                         \
	A(create_eq_in, pas, 0x880, 64)                                    \
	F(create_eq_out, eq_number, 0x58, 8)                               \
	F(destroy_eq_in, eq_number, 0x58, 8)                               \
	F(eqc, st, 0x14, 4)                                                \
	F(eqc, page_offset, 0x54, 6)                                       \
	F(eqc, log_eq_size, 0x63, 5)                                       \
	F(eqc, uar_page, 0x68, 24)                                         \
	F(eqc, intr, 0xb4, 12)                                             \
	F(eqc, log_page_size, 0xc3, 5)                                     \
	F(eqc, consumer_counter, 0x148, 24)                                \
	F(eqc, producer_counter, 0x168, 24)                                \
	F(query_eq_out, eq_context_entry, 0x80, 512)                       \
	F(create_cq_in, cq_context, 0x80, 512)                             \
	A(create_cq_in, pas, 0x880, 64)                                    \
	F(create_cq_out, cqn, 0x48, 24)                                    \
	F(destroy_cq_in, cqn, 0x48, 24)                                    \
	F(query_cq_in, cqn, 0x48, 24)                                      \
	F(query_cq_out, cq_context, 0x80, 512)                             \
	F(modify_cq_in, cqn, 0x48, 24)                                     \
	F(modify_cq_in, modify_field_select_resize_field_select, 0x60, 32) \
	F(modify_cq_in, cq_context, 0x80, 512)                             \
	A(modify_cq_in, pas, 0x880, 64)                                    \
	F(cqc, status, 0x0, 4)                                             \
	F(cqc, cqe_sz, 0x8, 3)                                             \
	F(cqc, oi, 0xe, 1)                                                 \
	F(cqc, st, 0x14, 4)                                                \
	F(cqc, page_offset, 0x54, 6)                                       \
	F(cqc, log_cq_size, 0x63, 5)                                       \
	F(cqc, uar_page, 0x68, 24)                                         \
	F(cqc, cq_period, 0x84, 12)                                        \
	F(cqc, cq_max_count, 0x90, 16)                                     \
	F(cqc, c_eqn_or_apu_element, 0xa0, 32)                             \
	F(cqc, log_page_size, 0xc3, 5)                                     \
	F(cqc, consumer_counter, 0x148, 24)                                \
	F(cqc, producer_counter, 0x168, 24)                                \
	F(cqc, dbr_addr, 0x1c0, 64)                                        \
	F(create_mkey_in, pg_access, 0x60, 1)                              \
	F(create_mkey_in, memory_key_mkey_entry, 0x80, 512)                \
	F(create_mkey_in, translations_octword_actual_size, 0x300, 32)     \
	A(create_mkey_in, klm_pas_mtt, 0x880, 32)                          \
	F(create_mkey_out, mkey_index, 0x48, 24)                           \
	F(destroy_mkey_in, mkey_index, 0x48, 24)                           \
	F(query_mkey_in, mkey_index, 0x48, 24)                             \
	F(query_mkey_out, memory_key_mkey_entry, 0x80, 512)                \
	F(query_mkey_out, bsf0_klm0_pas_mtt0_1, 0x880, 128)                \
	F(query_special_contexts_out, null_mkey, 0x80, 32)                 \
	F(rdma_page_fault_event, r_key, 0x20, 32)                          \
	F(rdma_page_fault_event, packet_len, 0x50, 16)                     \
	F(rdma_page_fault_event, rdma_op_len, 0x60, 32)                    \
	F(rdma_page_fault_event, rdma_va, 0x80, 64)                        \
	F(wqe_associated_page_fault_event, wqe_index, 0x30, 16)            \
	F(wqe_associated_page_fault_event, len, 0x50, 16)                  \
	F(mkc, free, 0x1, 1)                                               \
	F(mkc, access_mode_4_2, 0x3, 3)                                    \
	F(mkc, umr_en, 0x10, 1)                                            \
	F(mkc, a, 0x11, 1)                                                 \
	F(mkc, rw, 0x12, 1)                                                \
	F(mkc, rr, 0x13, 1)                                                \
	F(mkc, lw, 0x14, 1)                                                \
	F(mkc, lr, 0x15, 1)                                                \
	F(mkc, access_mode_1_0, 0x16, 2)                                   \
	F(mkc, qpn, 0x20, 24)                                              \
	F(mkc, mkey_7_0, 0x38, 8)                                          \
	F(mkc, length64, 0x60, 1)                                          \
	F(mkc, en_rinval, 0x67, 1)                                         \
	F(mkc, pd, 0x68, 24)                                               \
	F(mkc, start_addr, 0x80, 64)                                       \
	F(mkc, len, 0xc0, 64)                                              \
	F(mkc, translations_octword_size, 0x1a0, 32)                       \
	F(mkc, log_page_size, 0x1db, 5)                                    \
	F(create_srq_in, srq_context_entry, 0x80, 512)                     \
	A(create_srq_in, pas, 0x880, 64)                                   \
	F(create_srq_out, srqn, 0x48, 24)                                  \
	F(destroy_srq_in, srqn, 0x48, 24)                                  \
	F(query_srq_in, srqn, 0x48, 24)                                    \
	F(query_srq_out, srq_context_entry, 0x80, 512)                     \
	F(srqc, state, 0x0, 4)                                             \
	F(srqc, log_srq_size, 0x4, 4)                                      \
	F(srqc, wq_signature, 0x20, 1)                                     \
	F(srqc, log_rq_stride, 0x25, 3)                                    \
	F(srqc, xrcd, 0x28, 24)                                            \
	F(srqc, cqn, 0x48, 24)                                             \
	F(srqc, page_offset, 0x40, 6)                                      \
	F(srqc, log_page_size, 0x82, 6)                                    \
	F(srqc, pd, 0xc8, 24)                                              \
	F(srqc, lwm, 0xe0, 16)                                             \
	F(srqc, dbr_addr, 0x140, 64)                                       \
	F(create_xrc_srq_in, xrc_srq_context_entry, 0x80, 512)             \
	A(create_xrc_srq_in, pas, 0x880, 64)                               \
	F(create_xrc_srq_out, xrc_srqn, 0x48, 24)                          \
	F(destroy_xrc_srq_in, xrc_srqn, 0x48, 24)                          \
	F(query_xrc_srq_in, xrc_srqn, 0x48, 24)                            \
	F(query_xrc_srq_out, xrc_srq_context_entry, 0x80, 512)             \
	F(xrc_srqc, user_index, 0x88, 24)                                  \
	F(arm_xrc_srq_in, xrc_srqn, 0x48, 24)                              \
	F(arm_xrc_srq_in, lwm, 0x70, 16)                                   \
	F(create_rmp_in, ctx, 0x100, 1920)                                 \
	F(create_rmp_out, rmpn, 0x48, 24)                                  \
	F(destroy_rmp_in, rmpn, 0x48, 24)                                  \
	F(query_rmp_in, rmpn, 0x48, 24)                                    \
	F(query_rmp_out, rmp_context, 0x100, 1920)                         \
	F(modify_rmp_in, rmp_state, 0x40, 4)                               \
	F(modify_rmp_in, rmpn, 0x48, 24)                                   \
	F(modify_rmp_in, bitmask, 0x80, 64)                                \
	F(modify_rmp_in, ctx, 0x100, 1920)                                 \
	F(rmp_bitmask, lwm, 0x3f, 1)                                       \
	F(rmpc, state, 0x8, 4)                                             \
	F(rmpc, wq, 0x180, 1536)                                           \
	F(wq, wq_type, 0x0, 4)                                             \
	F(wq, wq_signature, 0x4, 1)                                        \
	F(wq, page_offset, 0x2b, 5)                                        \
	F(wq, lwm, 0x30, 16)                                               \
	F(wq, pd, 0x48, 24)                                                \
	F(wq, dbr_addr, 0x80, 64)                                          \
	F(wq, log_wq_stride, 0x10c, 4)                                     \
	F(wq, log_wq_pg_sz, 0x113, 5)                                      \
	F(wq, log_wq_sz, 0x11b, 5)                                         \
	F(arm_rq_in, srq_number, 0x48, 24)                                 \
	F(arm_rq_in, lwm, 0x70, 16)                                        \
	F(create_qp_in, qpc, 0xc0, 1856)                                   \
	A(create_qp_in, pas, 0x880, 64)                                    \
	F(create_qp_out, qpn, 0x48, 24)                                    \
	F(destroy_qp_in, qpn, 0x48, 24)                                    \
	F(rst2init_qp_in, qpn, 0x48, 24)                                   \
	F(rst2init_qp_in, opt_param_mask, 0x80, 32)                        \
	F(rst2init_qp_in, qpc, 0xc0, 1856)                                 \
	F(query_qp_in, qpn, 0x48, 24)                                      \
	F(query_qp_out, qpc, 0xc0, 1856)                                   \
	F(qpc, state, 0x0, 4)                                              \
	F(qpc, st, 0x8, 8)                                                 \
	F(qpc, pm_state, 0x13, 2)                                          \
	F(qpc, wq_signature, 0x20, 1)                                      \
	F(qpc, pd, 0x28, 24)                                               \
	F(qpc, mtu, 0x40, 3)                                               \
	F(qpc, log_rq_size, 0x49, 4)                                       \
	F(qpc, log_rq_stride, 0x4d, 3)                                     \
	F(qpc, no_sq, 0x50, 1)                                             \
	F(qpc, log_sq_size, 0x51, 4)                                       \
	F(qpc, rlky, 0x5b, 1)                                              \
	F(qpc, ulp_stateless_offload_mode, 0x5c, 4)                        \
	F(qpc, counter_set_id, 0x60, 8)                                    \
	F(qpc, uar_page, 0x68, 24)                                         \
	F(qpc, user_index, 0x88, 24)                                       \
	F(qpc, log_page_size, 0xa3, 5)                                     \
	F(qpc, remote_qpn, 0xa8, 24)                                       \
	F(qpc, primary_address_path, 0xc0, 352)                            \
	F(qpc, secondary_address_path, 0x220, 352)                         \
	F(qpc, log_sra_max, 0x388, 3)                                      \
	F(qpc, retry_count, 0x38d, 3)                                      \
	F(qpc, rnr_retry, 0x390, 3)                                        \
	F(qpc, next_send_psn, 0x3c8, 24)                                   \
	F(qpc, cqn_snd, 0x3e8, 24)                                         \
	F(qpc, deth_sqpn, 0x408, 24)                                       \
	F(qpc, log_rra_max, 0x488, 3)                                      \
	F(qpc, rre, 0x490, 1)                                              \
	F(qpc, rwe, 0x491, 1)                                              \
	F(qpc, rae, 0x492, 1)                                              \
	F(qpc, page_offset, 0x494, 6)                                      \
	F(qpc, min_rnr_nak, 0x4a3, 5)                                      \
	F(qpc, next_rcv_psn, 0x4a8, 24)                                    \
	F(qpc, xrcd, 0x4c8, 24)                                            \
	F(qpc, cqn_rcv, 0x4e8, 24)                                         \
	F(qpc, dbr_addr, 0x500, 64)                                        \
	F(qpc, q_key, 0x540, 32)                                           \
	F(qpc, rq_type, 0x565, 3)                                          \
	F(qpc, srqn_rmpn_xrqn, 0x568, 24)                                  \
	F(ads, pkey_index, 0x10, 16)                                       \
	F(ads, grh, 0x28, 1)                                               \
	F(ads, mlid, 0x29, 7)                                              \
	F(ads, rlid, 0x30, 16)                                             \
	F(ads, ack_timeout, 0x40, 5)                                       \
	F(ads, src_addr_index, 0x48, 8)                                    \
	F(ads, stat_rate, 0x54, 4)                                         \
	F(ads, hop_limit, 0x58, 8)                                         \
	F(ads, tclass, 0x64, 8)                                            \
	F(ads, flow_label, 0x6c, 20)                                       \
	F(ads, rgid_rip, 0x80, 128)                                        \
	F(ads, sl, 0x124, 4)                                               \
	F(ads, vhca_port_num, 0x128, 8)                                    \
	F(mad_ifc_in, port, 0x58, 8)                                       \
	F(mad_ifc_in, mad, 0x80, 2048)                                     \
	F(mad_ifc_out, response_mad_packet, 0x80, 2048)                    \
	F(attach_to_mcg_in, qpn, 0x48, 24)                                 \
	F(attach_to_mcg_in, multicast_gid, 0x80, 128)                      \
	F(query_hca_vport_context_in, other_vport, 0x40, 1)                \
	F(query_hca_vport_context_in, port_num, 0x4c, 4)                   \
	F(query_hca_vport_context_out, hca_vport_context, 0x80, 4096)      \
	F(hca_vport_context, has_smi, 0x101, 1)                            \
	F(hca_vport_context, port_physical_state, 0x110, 4)                \
	F(hca_vport_context, port_state, 0x118, 4)                         \
	F(hca_vport_context, vport_state, 0x11c, 4)                        \
	F(hca_vport_context, system_image_guid, 0x140, 64)                 \
	F(hca_vport_context, port_guid, 0x180, 64)                         \
	F(hca_vport_context, node_guid, 0x1c0, 64)                         \
	F(hca_vport_context, cap_mask1, 0x200, 32)                         \
	F(hca_vport_context, lid, 0x300, 16)                               \
	F(hca_vport_context, init_type_reply, 0x314, 4)                    \
	F(hca_vport_context, lmc, 0x318, 3)                                \
	F(hca_vport_context, subnet_timeout, 0x31b, 5)                     \
	F(hca_vport_context, sm_lid, 0x320, 16)                            \
	F(hca_vport_context, sm_sl, 0x330, 4)                              \
	F(hca_vport_context, qkey_violation_counter, 0x340, 16)            \
	F(hca_vport_context, pkey_violation_counter, 0x350, 16)            \
	F(access_register_in, register_id, 0x50, 16)                       \
	F(mcam_reg, feature_group, 0x8, 8)                                 \
	F(mcam_reg, access_reg_group, 0x18, 8)                             \
	F(mcam_reg, mng_access_reg_cap_mask, 0x40, 128)                    \
	F(mcam_access_reg, mcqi, 0x1e, 1)                                  \
	F(mcam_access_reg, mcqs, 0x1f, 1)                                  \
	F(mfrl_reg, reset_level, 0x38, 8)                                  \
	F(mcqs_reg, last_index_flag, 0x0, 1)                               \
	F(mcqs_reg, component_index, 0x10, 16)                             \
	F(mcqs_reg, identifier, 0x30, 16)                                  \
	F(mcqi_reg, component_index, 0x10, 16)                             \
	F(mcqi_reg, info_type, 0x5b, 5)                                    \
	F(mcqi_reg, info_size, 0x60, 32)                                   \
	F(mcqi_reg, data_size, 0xb0, 16)                                   \
	A(mcqi_reg, data, 0xc0, 32)                                        \
	F(mcqi_version, version, 0x20, 32)                                 \
	F(atomic_caps, atomic_req_8B_endianness_mode, 0x40, 2)             \
	F(atomic_caps, supported_atomic_req_8B_endianness_mode_1, 0x46, 1) \
	F(atomic_caps, atomic_operations, 0x90, 16)                        \
	F(atomic_caps, atomic_size_qp, 0xb0, 16)                           \
	F(cmd_hca_cap, log_max_srq_sz, 0x80, 8)                            \
	F(cmd_hca_cap, log_max_qp_sz, 0x88, 8)                             \
	F(cmd_hca_cap, log_max_qp, 0x9b, 5)                                \
	F(cmd_hca_cap, log_max_srq, 0xab, 5)                               \
	F(cmd_hca_cap, log_max_cq_sz, 0xc8, 8)                             \
	F(cmd_hca_cap, relaxed_ordering_write_umr, 0xd0, 1)                \
	F(cmd_hca_cap, relaxed_ordering_read_umr, 0xd1, 1)                 \
	F(cmd_hca_cap, log_max_cq, 0xdb, 5)                                \
	F(cmd_hca_cap, log_max_eq_sz, 0xe0, 8)                             \
	F(cmd_hca_cap, log_max_mkey, 0xea, 6)                              \
	F(cmd_hca_cap, log_max_eq, 0xfc, 4)                                \
	F(cmd_hca_cap, max_indirection, 0x100, 8)                          \
	F(cmd_hca_cap, fixed_buffer_size, 0x108, 1)                        \
	F(cmd_hca_cap, log_max_mrw_sz, 0x109, 7)                           \
	F(cmd_hca_cap, umr_extended_translation_offset, 0x118, 1)          \
	F(cmd_hca_cap, null_mkey, 0x119, 1)                                \
	F(cmd_hca_cap, log_max_klm_list_size, 0x11a, 6)                    \
	F(cmd_hca_cap, log_max_ra_req_qp, 0x14a, 6)                        \
	F(cmd_hca_cap, log_max_ra_res_qp, 0x15a, 6)                        \
	F(cmd_hca_cap, rts2rts_qp_counters_set_id, 0x169, 1)               \
	F(cmd_hca_cap, gid_table_size, 0x170, 16)                          \
	F(cmd_hca_cap, out_of_seq_cnt, 0x180, 1)                           \
	F(cmd_hca_cap, retransmission_q_counters, 0x182, 1)                \
	F(cmd_hca_cap, max_qp_cnt, 0x186, 10)                              \
	F(cmd_hca_cap, pkey_table_size, 0x190, 16)                         \
	F(cmd_hca_cap, mcam_reg, 0x1a9, 1)                                 \
	F(cmd_hca_cap, local_ca_ack_delay, 0x1ab, 5)                       \
	F(cmd_hca_cap, num_ports, 0x1b8, 8)                                \
	F(cmd_hca_cap, log_max_msg, 0x1c3, 5)                              \
	F(cmd_hca_cap, cqe_version, 0x1fc, 4)                              \
	F(cmd_hca_cap, stat_rate_support, 0x1e0, 16)                       \
	F(cmd_hca_cap, ipoib_basic_offloads, 0x204, 1)                     \
	F(cmd_hca_cap, atomic, 0x21e, 1)                                   \
	F(cmd_hca_cap, force_teardown, 0x110, 1)                           \
	F(cmd_hca_cap, cq_oi, 0x220, 1)                                    \
	F(cmd_hca_cap, cq_resize, 0x221, 1)                                \
	F(cmd_hca_cap, cq_moderation, 0x222, 1)                            \
	F(cmd_hca_cap, pg, 0x227, 1)                                       \
	F(cmd_hca_cap, block_lb_mc, 0x228, 1)                              \
	F(cmd_hca_cap, apm, 0x22e, 1)                                      \
	F(cmd_hca_cap, imaicl, 0x231, 1)                                   \
	F(cmd_hca_cap, qkv, 0x236, 1)                                      \
	F(cmd_hca_cap, pkv, 0x237, 1)                                      \
	F(cmd_hca_cap, set_deth_sqpn, 0x238, 1)                            \
	F(cmd_hca_cap, xrc, 0x23c, 1)                                      \
	F(cmd_hca_cap, ud, 0x23d, 1)                                       \
	F(cmd_hca_cap, uc, 0x23e, 1)                                       \
	F(cmd_hca_cap, rc, 0x23f, 1)                                       \
	F(cmd_hca_cap, uar_sz, 0x24a, 6)                                   \
	F(cmd_hca_cap, log_pg_sz, 0x258, 8)                                \
	F(cmd_hca_cap, max_wqe_sz_sq, 0x290, 16)                           \
	F(cmd_hca_cap, max_wqe_sz_rq, 0x2b0, 16)                           \
	F(cmd_hca_cap, max_qp_mcg, 0x2e7, 25)                              \
	F(cmd_hca_cap, log_max_mcg, 0x318, 8)                              \
	F(cmd_hca_cap, log_max_pd, 0x32b, 5)                               \
	F(cmd_hca_cap, log_max_xrcd, 0x33b, 5)                             \
	F(cmd_hca_cap, device_frequency_mhz, 0x4c0, 32)                    \
	F(cmd_hca_cap, device_frequency_khz, 0x4e0, 32)                    \
	F(cmd_hca_cap, log_bf_reg_size, 0x26b, 5)                          \
	F(cmd_hca_cap, log_uar_page_sz, 0x490, 16)                         \
	F(cmd_hca_cap, num_of_uars_per_page, 0x520, 32)                    \
	F(query_hca_cap_in, other_function, 0x40, 1)                       \
	F(set_hca_cap_in, other_function, 0x40, 1)                         \
	F(set_hca_cap_in, capability, 0x80, 32768)                         \
	F(set_issi_in, current_issi, 0x50, 16)                             \
	F(query_issi_out, current_issi, 0x50, 16)                          \
	F(query_issi_out, supported_issi_dw0, 0x360, 32)                   \
	F(query_hca_cap_out, capability, 0x80, 32768)

/* Kernels differ in how they name these, and have no name for the last four. */
#define CX_FIELDS_UNNAMED(F)                         \
	F(odp_cap, rc_odp_caps, 0x80, 32)            \
	F(odp_cap, ud_odp_caps, 0xc0, 32)            \
	F(odp_cap, xrc_odp_caps, 0xe0, 32)           \
	F(page_fault_resume_in, error, 0x40, 1)      \
	F(page_fault_resume_in, type, 0x45, 3)       \
	F(page_fault_resume_in, wq_number, 0x48, 24) \
	F(page_fault_resume_in, token, 0x68, 24)     \
	F(page_fault_event, wqe_token, 0x60, 32)     \
	F(page_fault_event, type, 0xc5, 3)           \
	F(page_fault_event, number, 0xc8, 24)

/* S(format, bytes) */
#define CX_SIZES(S)                         \
	S(query_q_counter_in, 32)           \
	S(query_q_counter_out, 256)         \
	S(query_vnic_env_out, 528)          \
	S(query_flow_counter_in, 32)        \
	S(query_flow_counter_out, 16)       \
	S(traffic_counter, 16)              \
	S(query_adapter_out, 272)           \
	S(create_eq_in, 272)                \
	S(eqc, 64)                          \
	S(query_eq_out, 272)                \
	S(create_cq_in, 272)                \
	S(query_cq_out, 272)                \
	S(modify_cq_in, 272)                \
	S(cqc, 64)                          \
	S(create_mkey_in, 272)              \
	S(query_mkey_out, 304)              \
	S(page_fault_resume_in, 16)         \
	S(create_srq_in, 272)               \
	S(query_srq_out, 272)               \
	S(srqc, 64)                         \
	S(create_xrc_srq_in, 272)           \
	S(query_xrc_srq_out, 272)           \
	S(create_rmp_in, 272)               \
	S(modify_rmp_in, 272)               \
	S(query_rmp_out, 272)               \
	S(create_qp_in, 272)                \
	S(rst2init_qp_in, 272)              \
	S(query_qp_out, 256)                \
	S(qpc, 232)                         \
	S(mad_ifc_in, 272)                  \
	S(mad_ifc_out, 272)                 \
	S(attach_to_mcg_in, 32)             \
	S(query_hca_vport_context_out, 528) \
	S(query_issi_out, 112)              \
	S(mcqi_version, 124)                \
	S(query_hca_cap_out, 4112)

#define CX_FIELD_ENUM(format, field, bit, width) CX_AT_##format##_##field = (bit), CX_BITS_##format##_##field = (width),
#define CX_SIZE_ENUM(format, bytes)              CX_BYTES_##format = (bytes),
enum {
	CX_FIELDS(CX_FIELD_ENUM, CX_FIELD_ENUM) CX_FIELDS_UNNAMED(CX_FIELD_ENUM)
};
enum {
	CX_SIZES(CX_SIZE_ENUM)
};
#undef CX_FIELD_ENUM
#undef CX_SIZE_ENUM

#define CX_FIELD(format, field)                                      \
	{                                                            \
		CX_AT_##format##_##field, CX_BITS_##format##_##field \
	}
#define CX_WIRE(format, field)      WIRE_FIELD(CX_AT_##format##_##field, CX_BITS_##format##_##field)
#define cx_get(p, format, field)    wire_get(p, CX_WIRE(format, field))
#define cx_set(p, format, field, v) wire_set(p, CX_WIRE(format, field), (u64)(v))
#define cx_ptr(p, format, field)    ((u8 *)(p) + CX_AT_##format##_##field / 8)
#define cx_cptr(p, format, field)   ((const u8 *)(p) + CX_AT_##format##_##field / 8)

#define CX_CLOCK_KHZ 156250

/* Service types of queue pairs. */
enum {
	CX_QP_RC = 0,
	CX_QP_UC = 1,
	CX_QP_UD = 2,
	CX_QP_XRC = 3,
	CX_QP_SMI = 7,
	CX_QP_GSI = 8,
	CX_QP_UMR = 0xc,
};

/* QPNs of queue pairs that the HCA does not know. */
enum {
	CX_QPN_SMI = 2,
	CX_QPN_GSI = 3,
	CX_QPN_UMR = 4, /* the first of several */
};

/* Opcodes of send requests. */
enum {
	CX_OP_NOP = 0x00,
	CX_OP_SEND_INVAL = 0x01,
	CX_OP_WRITE = 0x08,
	CX_OP_WRITE_IMM = 0x09,
	CX_OP_SEND = 0x0a,
	CX_OP_SEND_IMM = 0x0b,
	CX_OP_LSO = 0x0e,
	CX_OP_READ = 0x10,
	CX_OP_CMP_SWAP = 0x11,
	CX_OP_FETCH_ADD = 0x12,
	CX_OP_UMR = 0x25,
};

/* Event types. */
enum {
	CX_EVENT_COMP = 0x00,
	CX_EVENT_PATH_MIG = 0x01,
	CX_EVENT_COMM_EST = 0x02,
	CX_EVENT_SQ_DRAINED = 0x03,
	CX_EVENT_CQ_ERROR = 0x04,
	CX_EVENT_WQ_CATASTROPHIC = 0x05,
	CX_EVENT_PATH_MIG_FAILED = 0x07,
	CX_EVENT_INTERNAL_ERROR = 0x08,
	CX_EVENT_PORT_CHANGE = 0x09,
	CX_EVENT_COMMAND = 0x0a,
	CX_EVENT_PAGE_FAULT = 0x0c,
	CX_EVENT_WQ_INVALID_REQUEST = 0x10,
	CX_EVENT_WQ_ACCESS = 0x11,
	CX_EVENT_SRQ_CATASTROPHIC = 0x12,
	CX_EVENT_LAST_WQE = 0x13,
	CX_EVENT_SRQ_LIMIT = 0x14,
};

#endif
