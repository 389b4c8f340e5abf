/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pair of sockets that stands for a file of the kernel from which a program reads or awaits events. */
#ifndef MUSLIN_HOST_CHANNEL_H
#define MUSLIN_HOST_CHANNEL_H

/* The program can neither write to its end @app nor pass descriptors to the daemon. 0 or -errno. */
int uv_channel_create(int *daemon, int *app);
/* Closes the daemon's end: the program reads the events that are left, then the end of the stream. */
void uv_channel_close(int daemon);

#endif
