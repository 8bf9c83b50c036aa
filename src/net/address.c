/* The reach of an IP address. Any process; pure. The tables follow IANA's registries of
 * special-purpose addresses, and name the metadata services of the large clouds. */
#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"

struct range4 {
    uint32_t first;
    unsigned bits;
    enum net_place place;
};

#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

/* The first row that fits decides; no row: public. */
static const struct range4 ranges4[] = {
    { IP(100, 100, 100, 200), 32, NET_NEVER }, /* metadata, Alibaba */
    { IP(168, 63, 129, 16), 32, NET_NEVER },   /* metadata, Azure */
    { IP(0, 0, 0, 0), 8, NET_NEVER },          /* "this host": Linux takes it for loopback */
    { IP(10, 0, 0, 0), 8, NET_PRIVATE },
    { IP(100, 64, 0, 0), 10, NET_PRIVATE },    /* carrier-grade NAT */
    { IP(127, 0, 0, 0), 8, NET_PRIVATE },
    { IP(169, 254, 0, 0), 16, NET_NEVER },     /* link-local, metadata */
    { IP(172, 16, 0, 0), 12, NET_PRIVATE },
    { IP(192, 0, 0, 0), 24, NET_NEVER },       /* protocol assignments; metadata, Oracle */
    { IP(192, 0, 2, 0), 24, NET_NEVER },       /* documentation, as the two below */
    { IP(192, 88, 99, 0), 24, NET_NEVER },     /* 6to4 relays */
    { IP(192, 168, 0, 0), 16, NET_PRIVATE },
    { IP(198, 18, 0, 0), 15, NET_PRIVATE },    /* benchmarks */
    { IP(198, 51, 100, 0), 24, NET_NEVER },
    { IP(203, 0, 113, 0), 24, NET_NEVER },
    { IP(224, 0, 0, 0), 4, NET_NEVER },        /* multicast */
    { IP(240, 0, 0, 0), 4, NET_NEVER },        /* reserved, broadcast */
};

#define JUDGED 0x100 /* by the IPv4 address at that byte */

struct range6 {
    unsigned char first[16];
    unsigned bits;
    unsigned place; /* enum net_place, or JUDGED + byte */
};

/* The first row that fits decides; the last row takes all. */
static const struct range6 ranges6[] = {
    { { [15] = 1 }, 128, NET_PRIVATE },
    { { 0 }, 128, NET_NEVER },
    { { [10] = 0xff, 0xff }, 96, JUDGED + 12 },            /* mapped */
    { { 0 }, 96, JUDGED + 12 },                            /* compatible, of old */
    { { 0x00, 0x64, 0xff, 0x9b }, 96, JUDGED + 12 },       /* NAT64 */
    { { 0x20, 0x02 }, 16, JUDGED + 2 },                    /* 6to4 */
    { { 0xfd, 0x00, 0x0e, 0xc2 }, 32, NET_NEVER },         /* metadata, AWS */
    { { 0xfd, 0x20, 0x00, 0xce }, 32, NET_NEVER },         /* metadata, Google */
    { { 0xfc }, 7, NET_PRIVATE },                          /* unique local */
    { { 0xfe, 0xc0 }, 10, NET_PRIVATE },                   /* site-local, of old */
    { { 0x20, 0x01, 0x0d, 0xb8 }, 32, NET_NEVER },         /* documentation, as the next but one */
    { { 0x20, 0x01 }, 23, NET_NEVER },                     /* Teredo and other protocols */
    { { 0x3f, 0xff }, 20, NET_NEVER },
    { { 0x20 }, 3, NET_PUBLIC },                           /* all that is assigned */
    { { 0 }, 0, NET_NEVER },
};

static enum net_place place4(uint32_t address)
{
    for (size_t i = 0; i < array_len(ranges4); i++)
        if (((address ^ ranges4[i].first) >> (32 - ranges4[i].bits)) == 0)
            return ranges4[i].place;
    return NET_PUBLIC;
}

static bool is_within(const unsigned char *address, const struct range6 *range)
{
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    return memcmp(address, range->first, whole) == 0 &&
           (rest == 0 || ((address[whole] ^ range->first[whole]) >> (8 - rest)) == 0);
}

static enum net_place place_inside(const unsigned char *at)
{
    return place4(IP(at[0], at[1], at[2], at[3]));
}

static enum net_place place6(const unsigned char *address)
{
    static const unsigned char isatap[] = { 0x00, 0x00, 0x5e, 0xfe };
    size_t i = 0;
    while (!is_within(address, &ranges6[i]))
        i++;
    if (ranges6[i].place >= JUDGED)
        return place_inside(address + ranges6[i].place - JUDGED);
    bool carries = (address[8] & 0xfd) == 0 && memcmp(address + 9, isatap + 1, 3) == 0;
    if (ranges6[i].place == NET_PUBLIC && carries)
        return place_inside(address + 12);
    return (enum net_place)ranges6[i].place;
}

enum net_place net_address_place(const struct sockaddr *address, socklen_t len)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address->sa_family == AF_INET && len >= sizeof v4) {
        memcpy(&v4, address, sizeof v4);
        return place4(ntohl(v4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6 && len >= sizeof v6) {
        memcpy(&v6, address, sizeof v6);
        return place6(v6.sin6_addr.s6_addr);
    }
    return NET_NEVER;
}

void net_address_text(const struct sockaddr *address, socklen_t len, char *out, size_t room)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    const char *text = NULL;
    if (address->sa_family == AF_INET && len >= sizeof v4) {
        memcpy(&v4, address, sizeof v4);
        text = inet_ntop(AF_INET, &v4.sin_addr, out, (socklen_t)room);
    } else if (address->sa_family == AF_INET6 && len >= sizeof v6) {
        memcpy(&v6, address, sizeof v6);
        text = inet_ntop(AF_INET6, &v6.sin6_addr, out, (socklen_t)room);
    }
    if (!text)
        snprintf(out, room, "?");
}
