/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Included first in each file of the preload library, which programs of images with an older glibc load, too: the C library's headers
 * choose the functions of C99 where newer ones have others for C23 (__isoc23_strtol).
 */
#include <features.h>
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0
