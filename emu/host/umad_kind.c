// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The umad and issm device files as struct uv_file_ops. */
#include <errno.h>

#include "emu/host/server.h"
#include "emu/host/umad.h"
#include <sys/eventfd.h>
#include <unistd.h>

static int on_open(struct uv_file *f, u32 unit, int *fd, int *extra)
{
	struct umad_file *file;
	int err;

	if (unit >= f->host->nports || !f->host->umad[unit])
		return -ENXIO;
	err = umad_file_open(f->host->umad[unit], &file, fd);
	f->priv = file;
	return err;
}

static int on_ioctl(struct uv_file *f, u32 request, void *arg, size_t len)
{
	return f->priv ? umad_file_ioctl(f->priv, request, arg, len) : -EIO;
}

static void on_close(struct uv_file *f)
{
	if (f->priv)
		umad_file_close(f->priv);
	f->priv = NULL;
}

const struct uv_file_ops umad_file_ops = { .open = on_open, .ioctl = on_ioctl, .close = on_close, .revoke = on_close };

static int issm_open(struct uv_file *f, u32 unit, int *fd, int *extra)
{
	int err;

	if (unit >= f->host->nports || !f->host->umad[unit])
		return -ENXIO;
	*fd = eventfd(0, EFD_CLOEXEC);
	if (*fd < 0)
		return -errno;
	err = umad_issm_open(f->host->umad[unit]);
	if (err) {
		close(*fd);
		return err;
	}
	f->priv = f->host->umad[unit];
	return 0;
}

static void issm_close(struct uv_file *f)
{
	if (f->priv)
		umad_issm_close(f->priv);
	f->priv = NULL;
}

const struct uv_file_ops issm_file_ops = { .open = issm_open, .close = issm_close, .revoke = issm_close };
