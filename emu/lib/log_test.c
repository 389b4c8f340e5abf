// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The log to a pipe without a reader. */
#include <fcntl.h>
#include <unistd.h>

#include "emu/lib/log.h"
#include "emu/lib/row.h"

int main(void)
{
	static char text[1 << 17];
	int fds[2], old = dup(STDERR_FILENO);
	ssize_t n, got;
	u32 i;

	if (pipe(fds) || dup2(fds[1], STDERR_FILENO) < 0)
		return 1;
	alarm(10); /* a blocked log would hang the test */
	log_level = LOG_DEBUG;
	for (i = 0; i < 10000; i++)
		log_at(LOG_DEBUG, "", "a line that is too many, number %u", i);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	n = 0;
	while (n < (ssize_t)sizeof(text) - 1 && (got = read(fds[0], text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += got;
	row(1, "a full pipe has what fits", n > 1000 && strstr(text, "number 0\n") && !strstr(text, "number 9999\n"));
	log_at(LOG_DEBUG, "", "the next one");
	n = read(fds[0], text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	row(2, "then it reports the number of lost lines", strstr(text, " lines lost: "));
	row(3, "and continues", strstr(text, "the next one"));
	dup2(old, STDERR_FILENO);
	return rows_end();
}
