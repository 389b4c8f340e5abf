// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands to the daemon: one chain each, with the response by interrupt. */
#include <linux/slab.h>

#include "emu/guest/muslin.h"

#define TIMEOUT (30 * HZ)

struct request {
	struct completion done;
	refcount_t refs; /* the waiter and the queue */
	size_t in_len, out_len;
	u8 data[];
};

static void request_put(struct request *r)
{
	if (refcount_dec_and_test(&r->refs))
		kfree(r);
}

void mu_command_done(struct virtqueue *vq)
{
	struct mu_dev *dev = vq->vdev->priv;
	struct request *r;
	unsigned int len;
	unsigned long flags;

	spin_lock_irqsave(&dev->cmd_lock, flags);
	while ((r = virtqueue_get_buf(vq, &len))) {
		complete(&r->done);
		request_put(r);
	}
	spin_unlock_irqrestore(&dev->cmd_lock, flags);
}

/* Frees the requests without a response. The device has been reset: it writes into none any more. */
void mu_command_end(struct mu_dev *dev)
{
	struct request *r;

	while ((r = virtqueue_detach_unused_buf(dev->cmd_vq)))
		request_put(r);
}

static int submit(struct mu_dev *dev, struct request *r)
{
	struct scatterlist in, out, *sgs[2] = { &in, &out };
	unsigned long flags;
	int err;

	sg_init_one(&in, r->data, r->in_len);
	sg_init_one(&out, r->data + r->in_len, r->out_len);
	spin_lock_irqsave(&dev->cmd_lock, flags);
	err = virtqueue_add_sgs(dev->cmd_vq, sgs, 1, 1, r, GFP_ATOMIC);
	if (!err)
		virtqueue_kick(dev->cmd_vq);
	spin_unlock_irqrestore(&dev->cmd_lock, flags);
	return err;
}

/* Retries while the queue is full of pending commands. */
static int submit_soon(struct mu_dev *dev, struct request *r)
{
	unsigned long end = jiffies + TIMEOUT;
	int err;

	while ((err = submit(dev, r)) == -ENOSPC && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	return err;
}

int mu_command(struct mu_dev *dev, u32 op, void *in, size_t in_len, void *out, size_t out_len)
{
	struct request *r;
	int err;

	if (READ_ONCE(dev->lost))
		return mu_lost_answer(op, in);
	r = kzalloc(struct_size(r, data, in_len + out_len), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	init_completion(&r->done);
	refcount_set(&r->refs, 2);
	r->in_len = in_len;
	r->out_len = out_len;
	((struct muslin_cmd *)in)->op = op;
	memcpy(r->data, in, in_len);
	err = submit_soon(dev, r);
	if (err) {
		kfree(r);
		return err;
	}
	if (wait_for_completion_timeout(&r->done, TIMEOUT)) {
		memcpy(out, r->data + in_len, out_len);
		err = ((struct muslin_answer *)out)->status;
		if (err == -ENODEV) /* another daemon, which needs HELLO first */
			err = mu_lost_answer(op, in);
	} else {
		dev_err(&dev->vdev->dev, "command %u timed out: the device is disabled\n", op);
		mu_lost(dev);
		err = -ETIMEDOUT;
	}
	request_put(r);
	return err;
}

int mu_object(struct mu_dev *dev, u32 op, u32 number, u32 arg, u32 *out_number, u32 *out_arg)
{
	struct muslin_object in = { .number = number, .arg = arg };
	struct muslin_number out = {};
	int err = mu_command(dev, op, &in, sizeof(in), &out, sizeof(out));

	if (!err && out_number)
		*out_number = out.number;
	if (!err && out_arg)
		*out_arg = out.arg;
	return err;
}
