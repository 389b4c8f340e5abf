/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Included first in each file of the preload library, which must load into programs with an older glibc: selects the
 * C99 functions instead of newer glibc's C23 ones (__isoc23_strtol).
 */
#include <features.h>
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
