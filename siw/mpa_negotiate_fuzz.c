// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Fuzz: any bytes as an MPA frame. A frame that is parsed can be built again, and so can its reply. */
#include <stdlib.h>

#include "siw/mpa_negotiate.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct mpa_frame f, reply, again;
	const struct mpa_limits own = { 16, 16, size & 1, size & 2 };
	struct mpa_terms terms;
	u8 out[MPA_FRAME_MAX];
	int n = mpa_frame_parse(data, (u32)size, &f);

	if (n <= 0)
		return 0;
	if ((size_t)n > size || mpa_frame_build(&f, out) != n || mpa_frame_parse(out, (u32)n, &again) != n)
		abort();
	if (mpa_reply_create(&f, &own, &reply, &terms) == MPA_ACCEPT && mpa_frame_build(&reply, out) < 0)
		abort();
	f.reply = false;
	mpa_reply_check(&f, &again, &terms);
	return 0;
}
