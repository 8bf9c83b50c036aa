/* Preloaded: names resolve as RESOLVE says ("rebind.test=1.2.3.4,127.0.0.1;..."), and a connection
 * to the public address 93.184.216.34 ends at 127.0.0.1. RESOLVE_LOG gets every address that is
 * connected to. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *addresses_of(const char *node)
{
    const char *at = getenv("RESOLVE");
    size_t len = strlen(node);
    while (at && *at) {
        if (strncmp(at, node, len) == 0 && at[len] == '=')
            return at + len + 1;
        at = strchr(at, ';');
        at = at ? at + 1 : NULL;
    }
    return NULL;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    int (*next)(const char *, const char *, const struct addrinfo *,
                struct addrinfo **) = (int (*)(const char *, const char *, const struct addrinfo *,
                                               struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
    const char *list = node ? addresses_of(node) : NULL;
    struct addrinfo **tail = out;
    if (!list)
        return next(node, service, hints, out);
    *out = NULL;
    while (*list && *list != ';') {
        char one[64];
        size_t len = strcspn(list, ",;");
        struct addrinfo plain = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
        snprintf(one, sizeof one, "%.*s", (int)len, list);
        if (next(one, service, &plain, tail) != 0)
            return EAI_NONAME;
        while (*tail)
            tail = &(*tail)->ai_next;
        list += len + (list[len] == ',');
    }
    return 0;
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    int (*next)(int, const struct sockaddr *, socklen_t) = (int (*)(
        int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    struct sockaddr_in v4;
    const char *path = getenv("RESOLVE_LOG");
    if (address->sa_family != AF_INET || len < sizeof v4)
        return next(fd, address, len);
    memcpy(&v4, address, sizeof v4);
    FILE *log = path ? fopen(path, "ae") : NULL;
    if (log) {
        fprintf(log, "%s\n", inet_ntoa(v4.sin_addr));
        fclose(log);
    }
    if (v4.sin_addr.s_addr == inet_addr("93.184.216.34"))
        v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return next(fd, (struct sockaddr *)&v4, sizeof v4);
}
