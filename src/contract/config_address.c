/* Addresses of listeners, "ADDR:PORT". Runs in the cli and serve processes; pure. No name is
 * resolved: the answer of a name server must not decide where the service listens. */
#include <arpa/inet.h>
#include <stdio.h>

#include "contract/config.h"

static int refuse(const char *text, struct err *err)
{
    err_set(err, ERR_USAGE, "'%.80s' is not an address ADDR:PORT", text);
    err_hint(err, "write 127.0.0.1:%d, [::1]:%d or localhost:%d; port 0 picks a free one",
             CONFIG_PORT, CONFIG_PORT, CONFIG_PORT);
    return -1;
}

static bool take_v4(struct config_address *out)
{
    struct in_addr address;
    if (inet_pton(AF_INET, out->host, &address) != 1)
        return false;
    out->is_loopback = ntohl(address.s_addr) >> 24 == 127;
    return true;
}

static bool take_v6(struct config_address *out)
{
    struct in6_addr address;
    if (inet_pton(AF_INET6, out->host, &address) != 1)
        return false;
    out->is_loopback = IN6_IS_ADDR_LOOPBACK(&address);
    return true;
}

int config_address_read(const char *text, struct config_address *out, struct err *err)
{
    struct config_address address = { .is_v6 = text[0] == '[' };
    const char *colon = strrchr(text, ':'), *host = text + address.is_v6;
    uint64_t port;
    size_t len = colon ? (size_t)(colon - host) : 0;
    if (!colon || colon <= host || !str_to_u64(str_of(colon + 1), &port) || port > 65535)
        return refuse(text, err);
    if (address.is_v6 && host[--len] != ']')
        return refuse(text, err);
    if (len == 0 || len >= sizeof address.host)
        return refuse(text, err);
    memcpy(address.host, host, len);
    if (strcmp(address.host, "localhost") == 0)
        memcpy(address.host, "127.0.0.1", sizeof "127.0.0.1");
    address.port = (uint16_t)port;
    if (!(address.is_v6 ? take_v6(&address) : take_v4(&address)))
        return refuse(text, err);
    *out = address;
    return 0;
}
