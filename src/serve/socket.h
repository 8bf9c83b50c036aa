/* Where the engine listens: a directory, its lock, and the socket. */
#ifndef SERVE_SOCKET_H
#define SERVE_SOCKET_H

#include <limits.h>
#include <sys/types.h>

#include "base/err.h"

struct serve_socket {
    int dir, lock, listener; /* -1: none */
    int sweeper;             /* its pipe; -1: none, we can remove the socket ourselves */
    pid_t sweeper_pid;
    char name[NAME_MAX + 1]; /* of the socket in dir */
    char path[PATH_MAX];
};
#define SERVE_SOCKET_INIT \
    ((struct serve_socket){ .dir = -1, .lock = -1, .listener = -1, .sweeper = -1 })

/* Listens on `path`, or for NULL in this user's runtime directory. Called as the caller, before the
 * engine gives up its rights, so that clients see the caller as their peer. Refused (ERR_BUSY) if a
 * live engine is there; a dead one's socket is replaced. */
int serve_socket_open(const char *path, struct serve_socket *out, struct err *err);
/* Removes the socket and releases the lock. -1 if the socket could not be removed. */
int serve_socket_close(struct serve_socket *at);

#endif
