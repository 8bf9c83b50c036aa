/* Confining processes of the host side: helpers that run as the caller, and the service. */
#ifndef BOX_WALL_CONFINE_H
#define BOX_WALL_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Set no_new_privs and drop all capabilities but these bits, permanently. 0, or -1. */
int box_confine_capabilities(uint32_t keep);

/* For the steward, right after its fork: no capabilities, no_new_privs, not dumpable, all
 * descriptors but these two closed (0 to 2 lead to /dev/null), and with Landlock no file outside
 * the folder, and without `reads` no content of a file. The uid stays the caller's. 0, or -1 with
 * errno; a kernel without Landlock is no failure. */
int box_confine_steward(int sock, int out_dirfd, bool reads);
/* The same for a helper that looks into a folder as its owner, whom root becomes, and with `writes`
 * changes it. */
int box_confine_clerk(int sock, int dirfd, bool writes, uid_t uid, gid_t gid);
/* The same for a helper that opens any file of the caller's, for reading alone; it keeps one
 * descriptor. */
int box_confine_reader(int sock);

/* For a helper that reaches engines as the caller: of root's capabilities CAP_DAC_OVERRIDE alone,
 * not dumpable, and no descriptor but this one; 0 to 2 lead to /dev/null. A program that it
 * executes has the caller's rights, root's too. 0, or -1 with errno. */
int box_confine_starter(int sock);

/* For `cupel serve`, when it is ready and before it reads a client's byte: not dumpable,
 * no_new_privs, and in every thread the filter of policy/service.policy. It starts no process any
 * more. The kernel's audit log has what the filter refuses. 0, or -1 with errno. */
int box_confine_service(void);

#endif
