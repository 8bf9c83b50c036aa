/* Confining helper processes that run as the caller. */
#ifndef BOX_WALL_CONFINE_H
#define BOX_WALL_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

/* Set no_new_privs and drop all capabilities but these bits, permanently. 0, or -1. */
int box_confine_capabilities(uint32_t keep);

/* For the steward, right after its fork: no capabilities, no_new_privs, not dumpable, all
 * descriptors but these two closed (0 to 2 lead to /dev/null), and with Landlock no file outside
 * the folder, and without `reads` no content of a file. The uid stays the caller's. 0, or -1 with
 * errno; a kernel without Landlock is no failure. */
int box_confine_steward(int sock, int out_dirfd, bool reads);

#endif
