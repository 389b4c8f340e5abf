// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The driver in one file (Kbuild). Names of static functions and variables are unique among these. */
#include "emu/guest/command.c"
#include "emu/guest/cq.c"
#include "emu/guest/device.c"
#include "emu/guest/lost.c"
#include "emu/guest/mad.c"
#include "emu/guest/main.c"
#include "emu/guest/mr.c"
#include "emu/guest/netdev.c"
#include "emu/guest/object.c"
#include "emu/guest/post.c"
#include "emu/guest/qp.c"
#include "emu/guest/ring.c"
