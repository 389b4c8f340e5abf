// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Packet matching: keys of headers and of MADs, and libpcap expressions. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>

#include "emu/packet/match.h"

#include "emu/packet/header.h"
#include "emu/packet/roce.h"
#include "emu/wire/cm.h"
#include "emu/wire/ether.h"
#include "emu/wire/mad.h"
#include "emu/wire/pma.h"
#include "emu/wire/sa.h"

static void opcode_add(u64 *set, u8 op)
{
	set[op / 64] |= BIT_ULL(op % 64);
}

/* Names for sets of opcodes: those with all of these flags and this transport. */
static const struct {
	const char *name;
	u16 flags;
	int transport; /* -1: any */
} opcode_groups[] = {
	{ "any", 0, -1 },
	{ "request", WIRE_OPF_REQUEST, -1 },
	{ "response", WIRE_OPF_RESPONSE, -1 },
	{ "ack", WIRE_OPF_ACK, -1 },
	{ "send", WIRE_OPF_SEND, -1 },
	{ "write", WIRE_OPF_WRITE, -1 },
	{ "read", WIRE_OPF_READ, -1 },
	{ "atomic", WIRE_OPF_ATOMIC, -1 },
	{ "imm", WIRE_OPF_IMM, -1 },
	{ "start", WIRE_OPF_START, -1 },
	{ "end", WIRE_OPF_END, -1 },
	{ "rc", 0, WIRE_TP_RC },
	{ "uc", 0, WIRE_TP_UC },
	{ "ud", 0, WIRE_TP_UD },
	{ "cnp", 0, WIRE_TP_CNP },
	{ "xrc", 0, WIRE_TP_XRC },
};

static bool opcode_word(u64 *set, const char *word)
{
	const struct wire_opcode *op;
	bool found = false;
	u64 number;
	u32 i, k;

	if (spec_number(word, 0xff, &number)) {
		opcode_add(set, (u8)number);
		return true;
	}
	for (k = 0; k < ARRAY_SIZE(opcode_groups) && strcasecmp(opcode_groups[k].name, word); k++)
		;
	for (i = 0; i < 256; i++) {
		op = wire_opcode((u8)i);
		if (!op)
			continue;
		if (k == ARRAY_SIZE(opcode_groups)
			    ? strcasecmp(op->name, word)
			    : (op->flags & opcode_groups[k].flags) != opcode_groups[k].flags ||
				      (opcode_groups[k].transport >= 0 && op->transport != opcode_groups[k].transport))
			continue;
		opcode_add(set, (u8)i);
		found = true;
	}
	return found;
}

bool wire_match_parse_opcodes(void *to, const char *value)
{
	char word[40];
	size_t n;

	for (;; value += n + 1) {
		n = strcspn(value, ",");
		if (!n || n >= sizeof(word))
			return false;
		memcpy(word, value, n);
		word[n] = 0;
		if (!opcode_word(to, word))
			return false;
		if (!value[n])
			return true;
	}
}

/* Parses a number, or a name that @is recognizes. @to is a u8 or a u16, according to @max. */
static bool by_name(void *to, const char *value, u32 max, bool (*is)(u32 i, const char *name))
{
	u64 v;

	if (!spec_number(value, max, &v)) {
		for (v = *value == '?' ? max + 1ull : 0; v <= max && !is((u32)v, value);)
			v++;
		if (v > max)
			return false;
	}
	wire_member_store(to, max > 0xff ? 2 : 1, (u32)v);
	return true;
}

static bool is_class(u32 i, const char *name)
{
	return !strcasecmp(wire_mad_class_name((u8)i), name);
}

static bool is_method(u32 i, const char *name)
{
	return !strcasecmp(wire_mad_method_name((u8)i), name);
}

static bool is_attr(u32 i, const char *name)
{
	return !strcasecmp(wire_smp_attr_name((u16)i), name) || !strcasecmp(wire_sa_attr_name((u16)i), name) ||
	       !strcasecmp(wire_pma_attr_name((u16)i), name) || !strcasecmp(wire_cm_attr_name((u16)i), name);
}

bool wire_match_parse_attr(void *to, const char *value)
{
	return by_name(to, value, 0xffff, is_attr);
}

bool wire_match_parse_class(void *to, const char *value)
{
	if (strcasecmp(value, "SA"))
		return by_name(to, value, 0xff, is_class);
	*(u8 *)to = MAD_CLASS_SUBN_ADM;
	return true;
}

bool wire_match_parse_method(void *to, const char *value)
{
	return by_name(to, value, 0xff, is_method);
}

bool wire_match_parse_gid(void *to, const char *value)
{
	return inet_pton(AF_INET6, value, to) == 1;
}

static const char *const packet_words[] = { "link", "len", "less", "greater", "and", "or", "not", NULL };
static const char *const frame_words[] = { "link",  "len",  "less",      "greater",   "and", "or",  "not",  "ether",
					   "ip",    "ip6",  "arp",       "rarp",      "tcp", "udp", "sctp", "icmp",
					   "icmp6", "igmp", "vlan",      "proto",     "src", "dst", "host", "net",
					   "mask",  "port", "broadcast", "multicast", NULL };

static bool is_word(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(text, *words))
			return true;
	return false;
}

static bool is_made_of(const char *text, const char *chars)
{
	return !text[strspn(text, chars)];
}

static bool is_mac(const char *text)
{
	u32 byte[6];
	int n = 0;

	return is_made_of(text, "0123456789abcdefABCDEF:") &&
	       sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5],
		      &n) == 6 &&
	       !text[n];
}

/*
 * libpcap resolves host names, which blocks the daemon: allows only numbers, operators and these words, and for frames
 * addresses. A libpcap name may begin with a digit and contain hyphens and dots.
 */
static bool pcap_words_ok(const char *text, bool frames)
{
	static const char chars[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.:";
	u8 addr[16];
	char run[64];
	size_t n;

	for (; *text; text += n) {
		n = isalnum((u8)*text) || *text == ':' ? strspn(text, chars) : 0;
		if (!n) {
			if (*text == '\\' || *text == '_')
				return false;
			n = 1;
			continue;
		}
		if (n >= sizeof(run))
			return false;
		memcpy(run, text, n);
		run[n] = 0;
		if (is_made_of(run, "0123456789:") || is_word(run, frames ? frame_words : packet_words) ||
		    (!strncasecmp(run, "0x", 2) && is_made_of(run + 2, "0123456789abcdefABCDEF")))
			continue;
		if (!frames ||
		    !(is_mac(run) || inet_pton(AF_INET, run, addr) == 1 || inet_pton(AF_INET6, run, addr) == 1))
			return false;
	}
	return true;
}

/* The end of the bytes that the program can read: of all bytes if it computes an offset. */
static u32 program_reach(const struct bpf_program *program)
{
	u32 i, reach = 0;

	for (i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *insn = &program->bf_insns[i];
		u32 class = BPF_CLASS(insn->code), mode = BPF_MODE(insn->code);

		if (class != BPF_LD && class != BPF_LDX)
			continue;
		if (mode == BPF_IND || (mode == BPF_ABS && insn->k > WIRE_PACKET_MAX))
			return WIRE_PACKET_MAX;
		if (mode == BPF_ABS || mode == BPF_MSH)
			reach = max(reach, insn->k + 4);
	}
	return reach;
}

int wire_match_start(struct wire_match *m, u64 given, u32 at, bool frames, char *err, size_t err_len)
{
	struct bpf_program *program;
	pcap_t *pcap;

	m->given = (given & WIRE_MATCH_KEYS(at)) >> at;
	if (!(m->given & BIT_ULL(WIRE_MATCH_PCAP)))
		return 0;
	if (!pcap_words_ok(m->pcap, frames))
		return spec_refuse(err, err_len, "pcap=%s: only %s, len, less, greater, and, or, not, and numbers",
				   m->pcap, frames ? "protocols, addresses" : "link[...]");
	program = calloc(1, sizeof(*program));
	pcap = program ? pcap_open_dead(frames ? DLT_EN10MB : DLT_INFINIBAND, frames ? ETHER_MTU_MAX : WIRE_PACKET_MAX)
		       : NULL;
	if (!pcap || pcap_compile(pcap, program, m->pcap, 1, PCAP_NETMASK_UNKNOWN)) {
		spec_refuse(err, err_len, "pcap=%s: %s", m->pcap, pcap ? pcap_geterr(pcap) : "out of memory");
		free(program);
		if (pcap)
			pcap_close(pcap);
		return -EINVAL;
	}
	pcap_close(pcap);
	m->program = program;
	m->reach = program_reach(program);
	return 0;
}

void wire_match_free(struct wire_match *m)
{
	if (!m->program)
		return;
	pcap_freecode(m->program);
	free(m->program);
	m->program = NULL;
}

static bool pcap_test(const struct wire_match *m, const struct wire_packet *p)
{
	u8 bytes[WIRE_PACKET_MAX];
	u32 len = wire_packet_link_len(p) + WIRE_VCRC_LEN, n = min(len, m->reach);
	struct pcap_pkthdr h = { .caplen = n, .len = len };

	wire_packet_serialize_start(p, bytes, n);
	return pcap_offline_filter(m->program, &h, bytes);
}

const u8 *wire_match_mad(const struct wire_packet *p)
{
	const struct wire_bth *bth = wire_packet_bth(p);

	if (p->len != MAD_SIZE || bth->opcode != WIRE_UD_SEND_ONLY || wire_bth_qpn(bth) > MAD_QPN_GSI)
		return NULL;
	return p->data;
}

static bool mad_test(const struct wire_match *m, const struct wire_packet *p)
{
	const u8 *mad = wire_match_mad(p);

	if (!mad)
		return false;
	return (!(m->given & BIT_ULL(WIRE_MATCH_CLASS)) || wire_get(mad, MAD_CLASS) == m->class) &&
	       (!(m->given & BIT_ULL(WIRE_MATCH_METHOD)) || wire_get(mad, MAD_METHOD) == m->method) &&
	       (!(m->given & BIT_ULL(WIRE_MATCH_ATTR)) || wire_get(mad, MAD_ATTR_ID) == m->attr) &&
	       (!(m->given & BIT_ULL(WIRE_MATCH_MOD)) || wire_get(mad, MAD_ATTR_MOD) == m->mod);
}

static bool within(const u32 range[2], u32 v)
{
	return v >= range[0] && v <= range[1];
}

static bool gid_test(const struct wire_match *m, const struct wire_packet *p)
{
	const struct wire_grh *grh = wire_packet_grh(p);

	return p->grh_off && (!(m->given & BIT_ULL(WIRE_MATCH_SGID)) || wire_gid_equal(&grh->sgid, &m->sgid)) &&
	       (!(m->given & BIT_ULL(WIRE_MATCH_DGID)) || wire_gid_equal(&grh->dgid, &m->dgid));
}

#define MAD_KEYS \
	(BIT_ULL(WIRE_MATCH_CLASS) | BIT_ULL(WIRE_MATCH_METHOD) | BIT_ULL(WIRE_MATCH_ATTR) | BIT_ULL(WIRE_MATCH_MOD))
#define GID_KEYS (BIT_ULL(WIRE_MATCH_SGID) | BIT_ULL(WIRE_MATCH_DGID))

static bool flow_test(const struct wire_match *m, u64 given, const struct wire_packet *p)
{
	const struct wire_lrh *lrh = wire_packet_lrh(p);
	const struct wire_bth *bth = wire_packet_bth(p);

	if (given & BIT_ULL(WIRE_MATCH_OPCODE) && !(m->opcodes[bth->opcode / 64] & BIT_ULL(bth->opcode % 64)))
		return false;
	if (given & BIT_ULL(WIRE_MATCH_QPN) && !within(m->qpn, wire_bth_qpn(bth)))
		return false;
	if (given & BIT_ULL(WIRE_MATCH_SLID) && !within(m->slid, wire_lrh_slid(lrh)))
		return false;
	if (given & BIT_ULL(WIRE_MATCH_DLID) && !within(m->dlid, wire_lrh_dlid(lrh)))
		return false;
	if (given & BIT_ULL(WIRE_MATCH_LEN) && !within(m->len, p->len))
		return false;
	if (given & BIT_ULL(WIRE_MATCH_SL) && wire_lrh_sl(lrh) != m->sl)
		return false;
	if (given & BIT_ULL(WIRE_MATCH_VL) && p->vl != m->vl)
		return false;
	return !(given & MAD_KEYS) || wire_match_mad(p);
}

bool wire_match_flow(const struct wire_match *m, const struct wire_packet *p)
{
	return flow_test(m, m->given, p);
}

static bool packet_test(const struct wire_match *m, u64 given, const struct wire_packet *p)
{
	if (!given)
		return true;
	if (!flow_test(m, given, p))
		return false;
	if (given & BIT_ULL(WIRE_MATCH_PSN) && !within(m->psn, wire_bth_psn(wire_packet_bth(p))))
		return false;
	if (given & MAD_KEYS && !mad_test(m, p))
		return false;
	if (given & GID_KEYS && !gid_test(m, p))
		return false;
	return !(given & BIT_ULL(WIRE_MATCH_PCAP)) || pcap_test(m, p);
}

bool wire_match_test(const struct wire_match *m, const struct wire_packet *p)
{
	return packet_test(m, m->given, p);
}

/* The RoCE packet in the frame, whose payload is that of the frame; its ICRC is not checked. False: there is none. */
static bool frame_peek(struct wire_packet *p, const u8 *frame, u32 len)
{
	struct wire_roce r = { .ttl = 0 };
	struct ether_header h;
	u32 body;
	int head;

	if (!ether_header_get(&h, frame, len))
		return false;
	head = wire_roce_head(frame + h.size, len - h.size, h.type, &r, &body);
	if (head <= 0 || !wire_roce_peek(p, frame + h.size + head, body, body, &r))
		return false;
	p->data = frame + h.size + head + (p->hdr_len - p->bth_off);
	return true;
}

bool wire_match_frame(const struct wire_match *m, const u8 *frame, u32 len)
{
	struct pcap_pkthdr h = { .caplen = len, .len = len };
	u64 given = m->given & ~WIRE_MATCH_FRAME_KEYS(0);
	struct wire_packet p;

	if (m->given & BIT_ULL(WIRE_MATCH_LEN) && !within(m->len, len))
		return false;
	if (given && !(frame_peek(&p, frame, len) && packet_test(m, given, &p)))
		return false;
	return !m->program || pcap_offline_filter(m->program, &h, frame);
}
