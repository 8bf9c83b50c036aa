/* Where the engine listens: a directory, a lock that says who may, and the socket. */
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

/* Listen on `path`, or where NULL on this user's own socket. Done as the caller, before
 * the engine gives its power up: the peer that clients see is then the caller. A live
 * engine there is a refusal (ERR_BUSY); what a dead one left is replaced. */
int serve_socket_open(const char *path, struct serve_socket *out, struct err *err);
/* Remove the socket and let go of the lock. -1 where the socket had to stay. */
int serve_socket_close(struct serve_socket *at);

#endif
