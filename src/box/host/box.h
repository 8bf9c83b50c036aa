/* The host side of boxes: starting the broker and talking to it. The engine uses only this header
 * and proto.h of box/. */
#ifndef BOX_HOST_BOX_H
#define BOX_HOST_BOX_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/proto/due.h"
#include "box/proto/proto.h"

struct box_broker {
    int sock;      /* SEQPACKET with the broker; -1: not open */
    pid_t broker;  /* child processes, 0: none */
    pid_t janitor;
    int lifeline;  /* the janitor cleans up when the last copy of this closes */
    struct due_page *due; /* deadlines of boxes (box/proto/due.h) */
};
#define BOX_BROKER_INIT ((struct box_broker){ .sock = -1, .lifeline = -1 })

/* Bootstrap: take a uid range and delegated cgroups as root, the available groups as an ordinary
 * user; then create the user namespace W with the broker in it. ERR_HOST with the exact fix where
 * the host forbids it. */
int box_broker_open(struct box_broker *out, struct err *err);
/* End the broker and everything it built; wait for both children. */
void box_broker_close(struct box_broker *broker);

/* As root: become the fixed private uid, without groups and capabilities, permanently. As an
 * ordinary user: only no_new_privs. */
int box_drop_door(struct err *err);

/* Send one call; receive one piece of news (blocking unless the socket is polled first), with each
 * descriptor at its index. ERR_BUG when the broker is gone. */
int box_send(const struct box_broker *broker, const struct box_call *call, const int *fds,
             size_t count, struct err *err);
/* Send one call without waiting: 0, 1 if the socket has no room, -1. */
int box_send_now(const struct box_broker *broker, const struct box_call *call, const int *fds,
                 size_t count, struct err *err);
int box_receive(const struct box_broker *broker, struct box_news *news, int fds[BOX_NEWS_FDS],
                struct err *err);
/* The broker closed its socket: set an err with the reason, if the host kept it from starting.
 * -1. */
int box_broker_lost(const struct box_broker *broker, struct err *err);

extern const char *const box_wall_names[BOX_WALL_COUNT];
/* Walls that every profile requires. */
uint32_t box_walls_required(void);

/* Turn a failed step into an err that names the step and the fix. */
int box_failure(const struct box_news *news, struct err *err);

/* The name of a system call, and the errno that the engine answers for a reported one. */
const char *box_call_name(int number);
int box_call_errno(int number);

#endif
