/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The version printed by every program. */
#ifndef MUSLIN_LIB_VERSION_H
#define MUSLIN_LIB_VERSION_H

#define MUSLIN_VERSION "1.0.0"

#endif
