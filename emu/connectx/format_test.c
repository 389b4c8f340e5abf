// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Compares offsets and widths of fields and sizes with the kernel's mlx5_ifc.h, if it is installed. */
#include "emu/connectx/format.h"

#include <stdio.h>

#include "emu/lib/row.h"

#if __has_include(<mlx5_ifc.h>)
#define DECLARE_FLEX_ARRAY(type, name) \
	struct {                       \
		struct {               \
		} no_##name;           \
		type name[];           \
	}
#include <mlx5_ifc.h>

/* In mlx5_ifc.h each bit of a field is a u8. */
/* A later kernel may have widened a field into reserved bits before it. */
#define FIELD(format, field, bit, width)                                                           \
	row_of(#format, #field,                                                                    \
	       offsetof(struct mlx5_ifc_##format##_bits, field) <= (bit) &&                        \
		       offsetof(struct mlx5_ifc_##format##_bits, field) +                          \
				       sizeof(((struct mlx5_ifc_##format##_bits *)NULL)->field) == \
			       (bit) + (width));
#define ARRAY(format, field, bit, width) \
	row_of(#format, #field, offsetof(struct mlx5_ifc_##format##_bits, field) == (bit));
#define SIZE(format, bytes) row_of(#format, "size", sizeof(struct mlx5_ifc_##format##_bits) >= 8 * (bytes));

int main(void)
{
	CX_FIELDS(FIELD, ARRAY)
	CX_SIZES(SIZE)
	return rows_end();
}
#else
int main(void)
{
	puts("SKIP: no kernel headers with mlx5_ifc.h, with which the formats are compared");
	return 0;
}
#endif
