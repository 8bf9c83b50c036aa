/* The host side of boxes: starting the broker and talking to it. The engine uses only this header
 * and proto.h of box/. */
#ifndef BOX_HOST_BOX_H
#define BOX_HOST_BOX_H

#include <stdbool.h>
#include <stddef.h>
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

/* Folders and files of the host that boxes of this broker may show. The broker is given them at its
 * start and never later, because only the caller's rights can bring them: as root a detached mount
 * of the descriptor, as an ordinary user a bind mount of its path, checked against the descriptor.
 * All mounts are nosuid and nodev. Nothing of one is in a box that does not ask for it by
 * box_image or box_folder (proto.h).
 *
 * As root a box has uids of its own, so a folder or file is shown by an id-mapped mount: its owner
 * and group are the occupant of the box BOX_ATTACHED, which is the only box that can use it; what
 * that occupant writes through belongs to the folder's owner. Entries of other owners stay closed
 * or readable by their permissions for others. A file system that cannot do that is refused, but
 * for a file that everybody may read. Images need none of it: everybody may read them. */
enum box_attach_kind {
    BOX_ATTACH_IMAGES, /* <state>/images/trees; at most one */
    BOX_ATTACH_DIR,    /* for /workspace; at most one; nothing may be mounted below it */
    BOX_ATTACH_FILE,   /* a regular file; at most BOX_ATTACH_FILES */
    BOX_ATTACH_TREE,   /* a folder for another place, read-only; at most BOX_ATTACH_TREES; nothing
                        * may be mounted below it */
};
struct box_attach {
    int fd; /* of the caller, and still its own afterwards; O_PATH is enough */
    enum box_attach_kind kind;
    bool writable; /* DIR: BOX_FOLDER_WRITE is allowed */
};

/* Bootstrap: take a uid range and delegated cgroups as root, the available groups as an ordinary
 * user; then create the user namespace W with the broker in it. ERR_HOST with the exact fix where
 * the host forbids it. `attach` may be NULL with a count of 0. */
int box_broker_open(struct box_broker *out, const struct box_attach *attach, size_t attach_count,
                    struct err *err);
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
