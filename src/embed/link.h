/* A client's end of the engine's socket: finds or starts an engine, and reads frames. */
#ifndef EMBED_LINK_H
#define EMBED_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "contract/frame.h"

struct embed_link {
    int fd;    /* -1: none */
    pid_t pid; /* our engine; 0: none */
    struct buf in;
    size_t taken;
};
#define EMBED_LINK_INIT ((struct embed_link){ .fd = -1 })

/* Connects to a running engine of this user, and reads its hello. path NULL: the places where
 * `cupel serve` listens. ERR_ABSENT if there is no engine that we can trust and understand. */
int embed_connect(const char *path, struct embed_link *out, struct err *err);
/* The socket of $CUPEL_SOCKET, or NULL. */
const char *embed_named(void);
/* Takes over a socket that an engine serves already, and reads its hello; closed on failure. */
int embed_adopt(int fd, struct embed_link *out, struct err *err);
/* Takes over a socket whose hello has yet to come: that of an engine in this process, which cannot
 * speak while we wait. embed_client passes over the hello. */
void embed_take_over(int fd, struct embed_link *out);
#define EMBED_OPTIONS_MAX 16
/* Starts our own engine with posix_spawn: `program` serve --fd, with `options` (NULL, or up to
 * EMBED_OPTIONS_MAX and a NULL). It writes its errors to that descriptor; -1: nowhere. */
int embed_spawn(const char *program, char *const *options, int errors, struct embed_link *out,
                struct err *err);
/* The first steps of embed_connect and embed_spawn, which wait for nothing: the engine's hello has
 * yet to come. embed_adopt hears it. */
int embed_dial(const char *path, int *out_fd, struct err *err);
int embed_launch_engine(const char *program, char *const *options, int errors, int *out_fd,
                        pid_t *out_pid, struct err *err);
/* Ends the connection, and the engine that was started for it. */
void embed_close(struct embed_link *link);

/* The next complete frame: 1, 0 if more bytes are needed, -1. The text stays until the next
 * embed_fill. */
int embed_next(struct embed_link *link, struct str *out_text, struct err *err);
/* Reads once, without waiting: 1, 0 at the end, -1. */
int embed_fill(struct embed_link *link, struct err *err);

#endif
