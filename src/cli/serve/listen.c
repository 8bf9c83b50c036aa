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

#include "base/buf.h"
#include "base/own.h"

#define BACKLOG 1024

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t address_of(const struct config_address *from, union address *out)
{
    *out = (union address){ 0 };
    if (from->is_v6) {
        out->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(from->port) };
        inet_pton(AF_INET6, from->host, &out->v6.sin6_addr);
        return sizeof out->v6;
    }
    out->v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(from->port) };
    inet_pton(AF_INET, from->host, &out->v4.sin_addr);
    return sizeof out->v4;
}

static void hint(const struct config_address *from, struct err *err)
{
    if (err->sys == EADDRINUSE)
        err_hint(err, "another program listens there: choose another port, or 0 for a free one");
    else if (err->sys == EACCES)
        err_hint(err, "ports below 1024 are root's: choose %d", CONFIG_PORT);
    else if (err->sys == EADDRNOTAVAIL)
        err_hint(err, "'%s' is not an address of this host: 'ip addr' lists them", from->host);
}

static int open_one(const struct config_address *from, const char *where, struct err *err)
{
    int on = 1;
    union address at;
    socklen_t size = address_of(from, &at);
    own_fd fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        (from->is_v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0) ||
        bind(fd, &at.any, size) < 0 || listen(fd, BACKLOG) < 0) {
        err_sys(err, "listen on '%.80s'", where);
        hint(from, err);
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

/* The certificate is for the first name; an address of all interfaces is no client's target. */
static void add_url(const struct config *config, const struct config_address *from,
                    struct cli_listen *out)
{
    const char *name = out->names[out->count - 1], *port = strrchr(name, ':');
    const json_t *host = json_array_get(config->at[CONFIG_HOSTS].value, 0);
    bool tls = config_is_set(config, CONFIG_TLS_CERT);
    bool any = strcmp(from->host, "0.0.0.0") == 0 || strcmp(from->host, "::") == 0;
    own_buf url = BUF_INIT(1024);
    buf_printf(&url, "%s://", tls ? "https" : "http");
    if (host && (tls || any))
        buf_printf(&url, "%s%s", json_string_value(host), port);
    else if (any)
        buf_printf(&url, "%s%s", from->is_v6 ? "[::1]" : "127.0.0.1", port);
    else
        buf_add_text(&url, name);
    json_array_append_new(out->urls, json_string(buf_str(&url).at));
}

int cli_listen_open(const struct config *config, struct cli_listen *out, struct err *err)
{
    const json_t *list = config->at[CONFIG_LISTEN].value, *text;
    size_t i;
    out->urls = json_array();
    if (json_array_size(list) > CLI_LISTEN_MAX)
        return err_set(err, ERR_USAGE, "there are %zu addresses to listen on, at most %d are taken",
                       json_array_size(list), CLI_LISTEN_MAX);
    json_array_foreach ((json_t *)(uintptr_t)list, i, text) {
        struct config_address address;
        if (config_address_read(json_string_value(text), &address, err) < 0)
            return -1;
        int fd = open_one(&address, json_string_value(text), err);
        if (fd < 0)
            return -1;
        out->fds[out->count] = fd;
        name_it(fd, out->names[out->count++]);
        add_url(config, &address, out);
    }
    return 0;
}

void cli_listen_close(struct cli_listen *listen)
{
    while (listen->count > 0)
        own_close_fd(&listen->fds[--listen->count]);
    json_decref(listen->urls);
    listen->urls = NULL;
}
