// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rdma_cm: SET_OPTION. The value, which the shim has read from the application's memory, follows the command. */
#include <errno.h>

#include "emu/host/ucma_internal.h"

static int ucma_option_value(const struct ucma_call *c, size_t len, void *v, size_t size)
{
	if (len != size || c->extra_len < size)
		return -EINVAL;
	memcpy(v, c->extra, size);
	return 0;
}

static int set_id(struct ucma_call *c, struct rdma_id *id, const struct rdma_ucm_set_option *cmd)
{
	bool byte = cmd->optname == RDMA_OPTION_ID_TOS || cmd->optname == RDMA_OPTION_ID_ACK_TIMEOUT;
	u32 flag = 0;
	u8 v = 0;
	int err = byte ? ucma_option_value(c, cmd->optlen, &v, sizeof(v))
		       : ucma_option_value(c, cmd->optlen, &flag, sizeof(flag));

	if (cmd->optname > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (err)
		return err;
	switch (cmd->optname) {
	case RDMA_OPTION_ID_TOS:
		rdma_id_set_tos(id, v);
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return rdma_id_set_reuse(id, flag);
	case RDMA_OPTION_ID_AFONLY:
		return rdma_id_set_v6only(id, flag);
	default:
		return rdma_id_set_ack_timeout(id, v);
	}
}

/* Takes the first path that is valid in both directions. */
static int set_path(struct ucma_call *c, struct rdma_id *id, const struct rdma_ucm_set_option *cmd)
{
	const u32 wanted = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	struct ib_path_rec_data rec;
	struct sa_path path;
	size_t at;

	if (!cmd->optlen || cmd->optlen % sizeof(rec) || c->extra_len < cmd->optlen)
		return -EINVAL;
	for (at = 0; at < cmd->optlen; at += sizeof(rec)) {
		memcpy(&rec, c->extra + at, sizeof(rec));
		if (rec.flags != wanted)
			continue;
		sa_path_get_record((const u8 *)rec.path_rec, &path);
		return rdma_id_set_path(id, &path);
	}
	return -EINVAL;
}

int ucma_set_option(struct ucma_call *c)
{
	struct rdma_ucm_set_option cmd;

	ucma_in(c, &cmd, sizeof(cmd));
	if (cmd.level == RDMA_OPTION_ID)
		return set_id(c, c->ctx->rdma, &cmd);
	if (cmd.level == RDMA_OPTION_IB && cmd.optname == RDMA_OPTION_IB_PATH)
		return set_path(c, c->ctx->rdma, &cmd);
	return -ENOSYS;
}
