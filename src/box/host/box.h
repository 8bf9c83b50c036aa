/* The host side of boxes: starting the broker, and speaking with it. This header
 * and proto.h are all that the engine knows of box/. */
#ifndef BOX_HOST_BOX_H
#define BOX_HOST_BOX_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/proto/due.h"
#include "box/proto/proto.h"

struct box_broker {
    int sock;      /* SEQPACKET with the broker; -1: not open */
    pid_t broker;  /* our children, 0: none */
    pid_t janitor;
    int lifeline;  /* the janitor cleans up when the last copy of this closes */
    struct due_page *due; /* until when each box may run (box/proto/due.h) */
};
#define BOX_BROKER_INIT ((struct box_broker){ .sock = -1, .lifeline = -1 })

/* Bootstrap: as root a uid range and delegated cgroups, as an ordinary user what
 * there is; then the user namespace W with the broker in it. ERR_HOST with the
 * exact fix where the host does not allow it. */
int box_broker_open(struct box_broker *out, struct err *err);
/* End the broker and everything it built; wait for both children. */
void box_broker_close(struct box_broker *broker);

/* As root: become the fixed private uid, without groups and capabilities, for
 * good. As an ordinary user: only no_new_privs. */
int box_drop_door(struct err *err);

/* Send one call; receive one piece of news (blocking unless the socket is polled
 * first), with descriptors in their places. ERR_BUG where the broker is gone. */
int box_send(const struct box_broker *broker, const struct box_call *call, const int *fds,
             size_t count, struct err *err);
int box_receive(const struct box_broker *broker, struct box_news *news, int fds[BOX_NEWS_FDS],
                struct err *err);
/* The broker has closed its end: say why, where the host kept it from starting. -1. */
int box_broker_lost(const struct box_broker *broker, struct err *err);

extern const char *const box_wall_names[BOX_WALL_COUNT];
/* Walls that every profile requires, and all there are. */
uint32_t box_walls_required(void);
uint32_t box_walls_all(void);

/* Turn a failed step into an err that says what failed and how to mend it. */
int box_failure(const struct box_news *news, struct err *err);

/* The name of a system call, and the errno that a reported one answers with. */
const char *box_call_name(int number);
int box_call_errno(int number);

#endif
