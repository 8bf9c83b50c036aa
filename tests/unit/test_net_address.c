/* The reach of addresses: every range and every form in which one can hide another. */
#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "base/attr.h"
#include "net/address.h"

static enum net_place place_of(const char *text)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return net_address_place((const struct sockaddr *)&v4, sizeof v4);
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) != 1)
        check_failed(__FILE__, __LINE__, "no address: %s", text);
    return net_address_place((const struct sockaddr *)&v6, sizeof v6);
}

static const struct {
    const char *address;
    enum net_place place;
} rows[] = {
    { "1.1.1.1", NET_PUBLIC },
    { "9.255.255.255", NET_PUBLIC },
    { "11.0.0.0", NET_PUBLIC },
    { "100.63.255.255", NET_PUBLIC },
    { "100.128.0.0", NET_PUBLIC },
    { "172.15.255.255", NET_PUBLIC },
    { "172.32.0.0", NET_PUBLIC },
    { "168.63.129.15", NET_PUBLIC },
    { "223.255.255.255", NET_PUBLIC },
    { "10.0.0.0", NET_PRIVATE },
    { "10.255.255.255", NET_PRIVATE },
    { "100.64.0.0", NET_PRIVATE },
    { "100.127.255.255", NET_PRIVATE },
    { "127.0.0.1", NET_PRIVATE },
    { "127.255.255.255", NET_PRIVATE },
    { "172.16.0.1", NET_PRIVATE },
    { "172.31.255.255", NET_PRIVATE },
    { "192.168.0.1", NET_PRIVATE },
    { "198.19.255.255", NET_PRIVATE },
    { "0.0.0.0", NET_NEVER },
    { "0.1.2.3", NET_NEVER },
    { "100.100.100.200", NET_NEVER },
    { "168.63.129.16", NET_NEVER },
    { "169.254.0.1", NET_NEVER },
    { "169.254.169.254", NET_NEVER },
    { "192.0.0.192", NET_NEVER },
    { "192.0.2.1", NET_NEVER },
    { "192.88.99.1", NET_NEVER },
    { "198.51.100.1", NET_NEVER },
    { "203.0.113.1", NET_NEVER },
    { "224.0.0.1", NET_NEVER },
    { "239.255.255.255", NET_NEVER },
    { "240.0.0.1", NET_NEVER },
    { "255.255.255.255", NET_NEVER },
    { "2606:4700:4700::1111", NET_PUBLIC },
    { "2a00:1450::1", NET_PUBLIC },
    { "::1", NET_PRIVATE },
    { "fc00::1", NET_PRIVATE },
    { "fdff::1", NET_PRIVATE },
    { "fec0::1", NET_PRIVATE },
    { "::", NET_NEVER },
    { "fe80::1", NET_NEVER },
    { "ff02::1", NET_NEVER },
    { "fd00:ec2::254", NET_NEVER },
    { "fd20:ce::254", NET_NEVER },
    { "2001:db8::1", NET_NEVER },
    { "2001::1", NET_NEVER },
    { "3fff::1", NET_NEVER },
    { "100::1", NET_NEVER },
    { "64:ff9b:1::1", NET_NEVER },
    { "4000::1", NET_NEVER },
    /* one address inside another */
    { "::ffff:1.1.1.1", NET_PUBLIC },
    { "::ffff:127.0.0.1", NET_PRIVATE },
    { "::ffff:169.254.169.254", NET_NEVER },
    { "::127.0.0.1", NET_PRIVATE },
    { "::10.0.0.1", NET_PRIVATE },
    { "64:ff9b::1.1.1.1", NET_PUBLIC },
    { "64:ff9b::10.0.0.1", NET_PRIVATE },
    { "64:ff9b::169.254.169.254", NET_NEVER },
    { "2002:0101:0101::1", NET_PUBLIC },
    { "2002:7f00:1::1", NET_PRIVATE },
    { "2002:a9fe:a9fe::1", NET_NEVER },
    { "2606:4700::5efe:10.0.0.1", NET_PRIVATE },
    { "2606:4700::200:5efe:169.254.169.254", NET_NEVER },
};

TEST(net_address_places)
{
    for (size_t i = 0; i < array_len(rows); i++)
        if (place_of(rows[i].address) != rows[i].place)
            check_failed(__FILE__, __LINE__, "%s is %d, not %d", rows[i].address,
                         place_of(rows[i].address), rows[i].place);
}

TEST(net_address_knows_no_other_family)
{
    struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/run/x" };
    struct sockaddr_in cut = { .sin_family = AF_INET };
    char text[64];
    CHECK_INT(net_address_place((const struct sockaddr *)&local, sizeof local), NET_NEVER);
    CHECK_INT(net_address_place((const struct sockaddr *)&cut, 4), NET_NEVER);
    net_address_text((const struct sockaddr *)&local, sizeof local, text, sizeof text);
    CHECK_TEXT(text, "?");
    cut.sin_addr.s_addr = htonl(0x7f000001);
    net_address_text((const struct sockaddr *)&cut, sizeof cut, text, sizeof text);
    CHECK_TEXT(text, "127.0.0.1");
}
