/* URLs, by libcurl's parser. Runs in every process that makes requests. */
#include "net/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "net/curl.h"

static int take_part(const struct net_curl *curl, CURLU *url, CURLUPart part, unsigned flags,
                     char *out, size_t room)
{
    char *text = NULL;
    if (curl->url_get(url, part, &text, flags) != CURLUE_OK || !text)
        return -1;
    size_t len = strlen(text);
    if (len < room)
        memcpy(out, text, len + 1);
    curl->free_text(text);
    return len < room ? 0 : -1;
}

static bool has_user(const struct net_curl *curl, CURLU *url)
{
    char *text = NULL;
    bool has = curl->url_get(url, CURLUPART_USER, &text, 0) == CURLUE_OK ||
               curl->url_get(url, CURLUPART_PASSWORD, &text, 0) == CURLUE_OK;
    curl->free_text(text);
    return has;
}

static int take_apart(const struct net_curl *curl, CURLU *url, struct net_url *out)
{
    curl->url_set(url, CURLUPART_FRAGMENT, NULL, 0);
    if (has_user(curl, url) ||
        take_part(curl, url, CURLUPART_URL, 0, out->text, sizeof out->text) < 0 ||
        take_part(curl, url, CURLUPART_SCHEME, 0, out->scheme, sizeof out->scheme) < 0 ||
        take_part(curl, url, CURLUPART_HOST, 0, out->host, sizeof out->host) < 0 ||
        take_part(curl, url, CURLUPART_PORT, CURLU_DEFAULT_PORT, out->port, sizeof out->port) < 0)
        return -1;
    return strcmp(out->scheme, "http") == 0 || strcmp(out->scheme, "https") == 0 ? 0 : -1;
}

int net_url_read(const char *base, const char *reference, struct net_url *out, struct err *err)
{
    const struct net_curl *curl = net_curl(err);
    if (!curl)
        return -1;
    struct net_url found;
    CURLU *url = curl->url();
    bool good = url && strlen(reference) < NET_URL_ROOM &&
                (!base || curl->url_set(url, CURLUPART_URL, base, 0) == CURLUE_OK) &&
                curl->url_set(url, CURLUPART_URL, reference, 0) == CURLUE_OK &&
                take_apart(curl, url, &found) == 0;
    curl->url_cleanup(url);
    if (!good) {
        char plain[100];
        str_plain(plain, sizeof plain, str_of(reference));
        return err_input(err, "url", plain, "http or https, without a user",
                         "'%s' is no URL that can be asked", plain);
    }
    *out = found;
    return 0;
}

bool net_url_same_origin(const struct net_url *a, const struct net_url *b)
{
    return strcmp(a->scheme, b->scheme) == 0 && strcasecmp(a->host, b->host) == 0 &&
           strcmp(a->port, b->port) == 0;
}

enum net_place net_url_place(const struct net_url *url)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    char inner[64] = "";
    size_t len = strlen(url->host);
    if (inet_pton(AF_INET, url->host, &v4.sin_addr) == 1)
        return net_address_place((const struct sockaddr *)&v4, sizeof v4);
    if (url->host[0] != '[' || len < 3)
        return NET_PUBLIC;
    snprintf(inner, sizeof inner, "%.*s", (int)(len - 2 < 63 ? len - 2 : 63), url->host + 1);
    if (inet_pton(AF_INET6, inner, &v6.sin6_addr) != 1)
        return NET_NEVER; /* a zone, or a version to come */
    return net_address_place((const struct sockaddr *)&v6, sizeof v6);
}
