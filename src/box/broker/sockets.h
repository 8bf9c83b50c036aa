/* The kernel memory of the sockets of a network namespace. */
#ifndef BOX_BROKER_SOCKETS_H
#define BOX_BROKER_SOCKETS_H

#include <stdint.h>
#include <sys/types.h>

/* Number of sockets in the network namespace of a process, with closed ones that still hold data;
 * -1 if it cannot be read. */
int64_t sockets_used(pid_t pid);
/* Bytes of all sockets in the caller's own network namespace. */
int64_t sockets_bytes(void);

#endif
