/* The reach of an IP address: may a request that somebody else steers connect to it? Pure. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum net_place {
    NET_PUBLIC, /* the internet */
    NET_PRIVATE, /* this host and the networks behind it: loopback, private, shared, unique local */
    NET_NEVER, /* nothing to ask: metadata services, link-local, multicast, unspecified, reserved */
};

/* Addresses that carry an IPv4 address inside (mapped, NAT64, 6to4, ISATAP) are judged by it. Every
 * family but IPv4 and IPv6 is NET_NEVER. */
enum net_place net_address_place(const struct sockaddr *address, socklen_t len);
/* The address as text without its port, "?" if it has none; `room` at least 64. */
void net_address_text(const struct sockaddr *address, socklen_t len, char *out, size_t room);

#endif
