/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The InfiniBand transport engine: RC, UC and UD over the ports of an HCA. */
#ifndef MUSLIN_RXE_H
#define MUSLIN_RXE_H

#include "emu/hca/engine.h"

/* For hca_set_transport(). */
extern const struct hca_transport rxe_transport;

#endif
