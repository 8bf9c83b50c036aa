/* The kernel memory that the sockets of a network namespace hold. */
#ifndef BOX_BROKER_SOCKETS_H
#define BOX_BROKER_SOCKETS_H

#include <stdint.h>
#include <sys/types.h>

/* How many sockets there are in the network namespace of a process, closed ones that still hold
 * data too; -1 where that cannot be read. */
int64_t sockets_used(pid_t pid);
/* Bytes of all sockets in the caller's own network namespace. */
int64_t sockets_bytes(void);

#endif
