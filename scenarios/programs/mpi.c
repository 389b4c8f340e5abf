// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Sums of all ranks' vectors, and a ring of messages, every element checked. Prints the host of each rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LEN 300000

static unsigned mine[LEN], got[LEN];

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "mpi: wrong %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	char host[MPI_MAX_PROCESSOR_NAME];
	int rank, ranks, len, n;
	unsigned i;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Get_processor_name(host, &len);
	for (i = 0; i < LEN; i++)
		mine[i] = i * (unsigned)(rank + 1);
	MPI_Allreduce(mine, got, LEN, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
	for (i = 0; i < LEN; i++)
		check(got[i] == i * (unsigned)(ranks * (ranks + 1) / 2), "sum");
	for (n = 1; n <= LEN; n = n * 7 + 1) {
		int before = (rank + ranks - 1) % ranks;

		MPI_Sendrecv(mine, n, MPI_UNSIGNED, (rank + 1) % ranks, n, got, n, MPI_UNSIGNED, before, n,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (i = 0; i < (unsigned)n; i++)
			check(got[i] == i * (unsigned)(before + 1), "message");
	}
	printf("rank %d of %d on %s\n", rank, ranks, host);
	MPI_Finalize();
	return 0;
}
