/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Subnet administration (IBTA 15): operations for sm_config.sa. */
#ifndef MUSLIN_SM_SA_SA_H
#define MUSLIN_SM_SA_SA_H

#include "sm/sm.h"

extern const struct sm_sa_ops sm_sa;

#endif
