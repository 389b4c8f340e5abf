// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The umadN and issmN files of the server: N counts the ports of the host's device from 0. */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emu/uverbs/server.h"
#include "emu/uverbs/umad.h"

/* A port that has files open; they share one umad_port. */
struct device {
	struct list link;
	struct mad_port *mp;
	struct umad_port *port;
	u32 files;
};

struct open_file {
	struct device *dev;
	struct umad_file *umad; /* NULL: issm */
};

static struct list devices = { &devices, &devices };

static struct device *device_get(struct loop *loop, struct mad_port *mp)
{
	struct device *d;

	list_for_each (d, &devices, link)
		if (d->mp == mp) {
			d->files++;
			return d;
		}
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->port = umad_port_create(loop, mp);
	if (!d->port) {
		free(d);
		return NULL;
	}
	d->mp = mp;
	d->files = 1;
	list_add(&devices, &d->link);
	return d;
}

static void device_put(struct device *d)
{
	if (--d->files)
		return;
	umad_port_destroy(d->port);
	list_del(&d->link);
	free(d);
}

static struct open_file *file_create(struct uv_file *f, u32 unit, int *err)
{
	struct open_file *o;

	*err = -ENXIO;
	if (unit >= f->host->nports || unit >= UV_PORTS || !f->host->mad[unit])
		return NULL;
	*err = -ENOMEM;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->dev = device_get(uv_server_loop(f->server), f->host->mad[unit]);
	if (!o->dev) {
		free(o);
		return NULL;
	}
	return o;
}

static void file_free(struct open_file *o)
{
	device_put(o->dev);
	free(o);
}

static int umad_open(struct uv_file *f, u32 unit, int *fd, int *extra)
{
	int err;
	struct open_file *o = file_create(f, unit, &err);

	if (!o)
		return err;
	err = umad_file_open(o->dev->port, &o->umad, fd);
	if (err) {
		file_free(o);
		return err;
	}
	f->priv = o;
	return 0;
}

static int umad_ioctl(struct uv_file *f, u32 request, void *arg, size_t len)
{
	struct open_file *o = f->priv;

	return umad_file_ioctl(o->umad, request, arg, len);
}

static void umad_close(struct uv_file *f)
{
	struct open_file *o = f->priv;

	if (!o)
		return;
	umad_file_close(o->umad);
	file_free(o);
	f->priv = NULL;
}

static int issm_open(struct uv_file *f, u32 unit, int *fd, int *extra)
{
	int err;
	struct open_file *o = file_create(f, unit, &err);

	if (!o)
		return err;
	*fd = eventfd(0, EFD_CLOEXEC); /* nothing is ever read from or written to an issm file */
	err = *fd < 0 ? -errno : umad_issm_open(o->dev->port);
	if (err) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		file_free(o);
		return err;
	}
	f->priv = o;
	return 0;
}

static void issm_close(struct uv_file *f)
{
	struct open_file *o = f->priv;

	if (!o)
		return;
	umad_issm_close(o->dev->port);
	file_free(o);
	f->priv = NULL;
}

static int issm_ioctl(struct uv_file *f, u32 request, void *arg, size_t len)
{
	return -ENOTTY;
}

/* Records are written to the file itself; a write that comes here found no other way. */
static ssize_t no_command(struct uv_file *f, const void *in, size_t in_len, int fd, void *out, size_t *out_len,
			  int *out_fd)
{
	return -EINVAL;
}

const struct uv_file_ops umad_file_ops = {
	.open = umad_open, .command = no_command, .ioctl = umad_ioctl, .close = umad_close
};

const struct uv_file_ops issm_file_ops = {
	.open = issm_open, .command = no_command, .ioctl = issm_ioctl, .close = issm_close
};
