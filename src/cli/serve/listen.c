/* Opens the TCP sockets of the HTTP door. Runs in the serve process, as the caller. */
#include "cli/serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/own.h"

#define BACKLOG 1024
#define DEFAULT_PORT "8765"

/* "127.0.0.1:8765", "[::1]:8765", "localhost:8765", ":8765" is refused: which address is meant? */
static int split(const char *where, char host[64], char port[8])
{
    const char *colon = strrchr(where, ':');
    size_t len = colon ? (size_t)(colon - where) : strlen(where);
    bool bracket = len > 2 && where[0] == '[' && where[len - 1] == ']';
    const char *from = bracket ? where + 1 : where;
    len -= bracket ? 2 : 0;
    if (len == 0 || len >= 64 || (!bracket && memchr(from, ':', len)) ||
        (colon && (strlen(colon + 1) == 0 || strlen(colon + 1) > 5)))
        return -1;
    memcpy(host, from, len);
    host[len] = 0;
    snprintf(port, 8, "%s", colon ? colon + 1 : DEFAULT_PORT);
    return strspn(port, "0123456789") == strlen(port) ? 0 : -1;
}

static int open_one(const struct addrinfo *at, struct err *err, const char *where)
{
    int on = 1;
    own_fd fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        (at->ai_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) ||
        bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        err_sys(err, "listen on '%.80s'", where);
        if (err->sys == EADDRINUSE)
            err_hint(err,
                     "another program listens there: choose another port, or 0 for a free one");
        return -1;
    }
    return take_fd(&fd);
}

static void name_it(int fd, char out[80])
{
    struct sockaddr_storage address = { 0 };
    socklen_t size = sizeof address;
    char host[64] = "", port[8] = "";
    if (getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(out, 80, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static int listen_one(const char *where, struct cli_listen *out, struct err *err)
{
    char host[64], port[8];
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *found = NULL;
    if (split(where, host, port) < 0)
        return err_set(err, ERR_USAGE,
                       "option '--listen' takes ADDRESS:PORT, as 127.0.0.1:8765, not '%.80s'",
                       where);
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        return err_set(err, ERR_USAGE, "'%.80s' is not an address of this host: %s", where,
                       gai_strerror(rc));
    int fd = open_one(found, err, where);
    freeaddrinfo(found);
    if (fd < 0)
        return -1;
    out->fds[out->count] = fd;
    name_it(fd, out->names[out->count++]);
    return 0;
}

int cli_listen_open(const struct opt_list *where, struct cli_listen *out, struct err *err)
{
    if (where->count > CLI_LISTEN_MAX)
        return err_set(err, ERR_USAGE, "option '--listen' comes %zu times, at most %d",
                       where->count, CLI_LISTEN_MAX);
    for (size_t i = 0; i < where->count; i++)
        if (listen_one(where->at[i], out, err) < 0)
            return -1;
    return 0;
}

void cli_listen_close(struct cli_listen *listen)
{
    while (listen->count > 0)
        own_close_fd(&listen->fds[--listen->count]);
}
