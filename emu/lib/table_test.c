// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of table.c: ranges, exhaustion, order of reuse. */
#include <errno.h>

#include "emu/lib/row.h"
#include "emu/lib/table.h"

int main(void)
{
	struct table t;
	int obj[4];
	u32 n, i, first;
	void *p;

	table_init(&t, 5, 8);
	row(1, "an empty table has no entry", !table_get(&t, 5) && !table_get(&t, 0) && !table_get(&t, ~0u));
	for (i = 0; i < 4; i++)
		row(2, "a number in range",
		    !table_add(&t, &obj[i], &n) && n >= 5 && n <= 8 && table_get(&t, n) == &obj[i]);
	row(3, "full", table_add(&t, obj, &n) == -ENOSPC);
	row(4, "taken", table_add_at(&t, obj, 6) == -EEXIST);
	row(5, "below", table_add_at(&t, obj, 4) == -EINVAL);
	row(6, "above", table_add_at(&t, obj, 9) == -EINVAL);
	row(7, "removed once", table_remove(&t, 7) && !table_remove(&t, 7));
	row(8, "the free one is found", !table_add(&t, obj, &n) && n == 7);
	n = 0;
	table_for_each (&t, i, p)
		n++;
	row(9, "all are visited", n == 4);
	table_fini(&t);

	table_init(&t, 1, 0xffffff);
	row(10, "first", !table_add(&t, obj, &first));
	table_remove(&t, first);
	row(11, "a number is not reused at once", !table_add(&t, obj, &n) && n != first);
	table_remove(&t, n);
	table_fini(&t);

	return rows_end();
}
