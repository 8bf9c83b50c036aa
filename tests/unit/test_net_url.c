/* URLs: joined, compared, and judged by the address that they name. */
#include "check.h"

#include "base/attr.h"
#include "net/url.h"

static const struct {
    const char *base, *reference, *text, *host, *port;
} rows[] = {
    { NULL, "https://A.org/x#y", "https://A.org/x", "A.org", "443" },
    { "https://a.org/v2/", "x/y", "https://a.org/v2/x/y", "a.org", "443" },
    { "https://a.org/v2/x", "/z?q=1", "https://a.org/z?q=1", "a.org", "443" },
    { "https://a.org/v2/x", "//b.org/z", "https://b.org/z", "b.org", "443" },
    { "https://a.org/", "http://b.org:81/z", "http://b.org:81/z", "b.org", "81" },
    { NULL, "http://[::1]:5000/", "http://[::1]:5000/", "[::1]", "5000" },
    /* forms of 169.254.169.254 */
    { NULL, "http://2852039166/x", "http://169.254.169.254/x", "169.254.169.254", "80" },
    { NULL, "http://0xa9fea9fe/x", "http://169.254.169.254/x", "169.254.169.254", "80" },
    { NULL, "ftp://a.org/x", NULL, NULL, NULL },
    { NULL, "file:///etc/passwd", NULL, NULL, NULL },
    { NULL, "https://u:p@a.org/", NULL, NULL, NULL },
    { NULL, "https://u@a.org/", NULL, NULL, NULL },
    { NULL, "x/y", NULL, NULL, NULL },
    { NULL, "https://", NULL, NULL, NULL },
    { NULL, "https://a b/", NULL, NULL, NULL },
};

TEST(net_url_forms)
{
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = ERR_INIT;
        struct net_url url;
        int rc = net_url_read(rows[i].base, rows[i].reference, &url, &err);
        if ((rc == 0) != (rows[i].text != NULL))
            check_failed(__FILE__, __LINE__, "%s: %d %s", rows[i].reference, rc, err.text);
        if (!rows[i].text)
            continue;
        CHECK_TEXT(url.text, rows[i].text);
        CHECK_TEXT(url.host, rows[i].host);
        CHECK_TEXT(url.port, rows[i].port);
    }
}

TEST(net_url_origins)
{
    struct err err = ERR_INIT;
    struct net_url a, b;
    CHECK_INT(net_url_read(NULL, "https://a.org/x", &a, &err), 0);
    CHECK_INT(net_url_read(NULL, "https://A.org:443/y", &b, &err), 0);
    CHECK(net_url_same_origin(&a, &b));
    CHECK_INT(net_url_read(NULL, "http://a.org:443/y", &b, &err), 0);
    CHECK(!net_url_same_origin(&a, &b));
    CHECK_INT(net_url_read(NULL, "https://a.org:444/", &b, &err), 0);
    CHECK(!net_url_same_origin(&a, &b));
    CHECK_INT(net_url_read(NULL, "https://b.a.org/", &b, &err), 0);
    CHECK(!net_url_same_origin(&a, &b));
}

TEST(net_url_places)
{
    static const struct {
        const char *url;
        enum net_place place;
    } places[] = {
        { "https://a.org/", NET_PUBLIC },         { "https://1.1.1.1/", NET_PUBLIC },
        { "https://10.0.0.1/", NET_PRIVATE },     { "https://[::1]/", NET_PRIVATE },
        { "https://169.254.169.254/", NET_NEVER }, { "https://[fe80::1]/", NET_NEVER },
        { "https://2852039166/", NET_NEVER },
        { "https://[::ffff:169.254.169.254]/", NET_NEVER },
    };
    for (size_t i = 0; i < array_len(places); i++) {
        struct err err = ERR_INIT;
        struct net_url url;
        CHECK_INT(net_url_read(NULL, places[i].url, &url, &err), 0);
        if (net_url_place(&url) != places[i].place)
            check_failed(__FILE__, __LINE__, "%s", places[i].url);
    }
}
