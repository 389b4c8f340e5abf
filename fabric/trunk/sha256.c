// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SHA-256 (FIPS 180-4) and HMAC (RFC 2104), which show that the peer of a trunk knows the key. */
#include "fabric/trunk/trunk_internal.h"

static const u32 k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static u32 rotate(u32 v, u32 n)
{
	return v >> n | v << (32 - n);
}

static void sha256_block(struct trunk_sha256 *s, const u8 *block)
{
	u32 w[64], v[8], i, t1, t2;
	__be32 word;

	for (i = 0; i < 16; i++) {
		memcpy(&word, block + 4 * i, sizeof(word));
		w[i] = be32_to_cpu(word);
	}
	for (; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->h, sizeof(v));
	for (i = 0; i < 64; i++) {
		t1 = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
		     k[i] + w[i];
		t2 = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
		     ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		s->h[i] += v[i];
}

void trunk_sha256_init(struct trunk_sha256 *s)
{
	static const u32 h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
				  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, h, sizeof(h));
	s->len = 0;
}

void trunk_sha256_add(struct trunk_sha256 *s, const void *data, size_t len)
{
	const u8 *p = data;

	for (; len--; s->len++) {
		s->block[s->len % 64] = *p++;
		if (s->len % 64 == 63)
			sha256_block(s, s->block);
	}
}

void trunk_sha256_end(struct trunk_sha256 *s, u8 digest[TRUNK_MAC_SIZE])
{
	__be64 bits = cpu_to_be64(s->len * 8);
	static const u8 zero[64];
	u32 i;

	trunk_sha256_add(s, "\x80", 1);
	trunk_sha256_add(s, zero, (64 + 56 - s->len % 64) % 64);
	trunk_sha256_add(s, &bits, sizeof(bits));
	for (i = 0; i < 8; i++) {
		__be32 word = cpu_to_be32(s->h[i]);

		memcpy(digest + 4 * i, &word, sizeof(word));
	}
}

void trunk_hmac_init(struct trunk_hmac *h, const void *key, size_t len)
{
	u8 pad[64] = { 0 }, i;

	if (len <= sizeof(pad)) {
		memcpy(pad, key, len);
	} else {
		trunk_sha256_init(&h->inner);
		trunk_sha256_add(&h->inner, key, len);
		trunk_sha256_end(&h->inner, pad);
	}
	for (i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36;
	trunk_sha256_init(&h->inner);
	trunk_sha256_add(&h->inner, pad, sizeof(pad));
	for (i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36 ^ 0x5c;
	trunk_sha256_init(&h->outer);
	trunk_sha256_add(&h->outer, pad, sizeof(pad));
}

void trunk_hmac_end(struct trunk_hmac *h, u8 mac[TRUNK_MAC_SIZE])
{
	trunk_sha256_end(&h->inner, mac);
	trunk_sha256_add(&h->outer, mac, TRUNK_MAC_SIZE);
	trunk_sha256_end(&h->outer, mac);
}
