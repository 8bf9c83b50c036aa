/* HTTP exchanges. Runs in every process that makes requests.
 * 1. Certificates are always verified, redirects never followed, and nothing is printed.
 * 2. Every wait has an end: connecting, the first byte, silence, the deadline, a cancel.
 * 3. Headers and body are capped, the body after it is unpacked.
 * 4. A call with a reach connects to no other address: the check is made on the address that
 *    connect gets, so a name that resolves otherwise a moment later changes nothing. */
#include "net/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "net/address.h"
#include "net/curl.h"

#define ROOTS_MAX ((size_t)8 << 20)
#define HEADERS_MAX ((size_t)256 << 10)
#define SETTLED_IDLE_MS 1000 /* for a server that does not close after its answer */
#define TURN_MS 1000

struct net_http {
    const struct net_curl *curl;
    CURL *easy;
    CURLM *multi;
    struct buf roots; /* trusted certificates of SSL_CERT_FILE; none: the system's */
};

struct exchange {
    struct net_http *http;
    struct net_call *call;
    size_t header_bytes;
    int64_t heard_ms; /* time of the last byte, or the start */
    int64_t pace_ms;  /* since then the pace is measured; 0: not yet */
    size_t pace_bytes;
    enum net_outcome stopped; /* NET_OK: not stopped */
    char refused[64]; /* an address beyond the reach, "" for none */
    char said[CURL_ERROR_SIZE];
};

/* ---- open, close ---- */

static int64_t now_ms(void)
{
    return clock_now_ns() / CLOCK_MS;
}

static int read_roots(struct net_http *http, struct err *err)
{
    const char *path = getenv("SSL_CERT_FILE");
    if (!path || !*path)
        return 0;
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "open the certificates '%.200s' of SSL_CERT_FILE", path);
    if (buf_read(&http->roots, fd) == 0)
        return 0;
    if (errno != EFBIG)
        return err_sys(err, "read '%.200s'", path);
    return err_set(err, ERR_LIMIT, "'%.200s' is larger than %zu KiB", path, ROOTS_MAX >> 10);
}

/* Takes `http`. */
static int start(struct net_http *http, struct net_http **out, struct err *err)
{
    http->multi = http->curl->multi_init();
    http->easy = http->curl->easy_init();
    if (!http->multi || !http->easy) {
        net_http_close(http);
        return err_set(err, ERR_HOST, "start libcurl");
    }
    *out = http;
    return 0;
}

int net_http_open(struct net_http **out, struct err *err)
{
    const struct net_curl *curl = net_curl(err);
    if (!curl)
        return -1;
    struct net_http *http = buf_alloc_zero(1, sizeof *http);
    http->curl = curl;
    http->roots = BUF_INIT(ROOTS_MAX);
    if (read_roots(http, err) < 0) {
        net_http_close(http);
        return -1;
    }
    return start(http, out, err);
}

int net_http_again(const struct net_http *http, struct net_http **out, struct err *err)
{
    struct net_http *other = buf_alloc_zero(1, sizeof *other);
    other->curl = http->curl;
    other->roots = BUF_INIT(ROOTS_MAX);
    buf_add_str(&other->roots, buf_str(&http->roots));
    return start(other, out, err);
}

int net_http_trust(struct net_http *http, struct str pem, struct err *err)
{
    if (buf_add_text(&http->roots, "\n") < 0 || buf_add_str(&http->roots, pem) < 0)
        return err_set(err, ERR_LIMIT, "the certificates are larger than %zu KiB", ROOTS_MAX >> 10);
    return 0;
}

void net_http_close(struct net_http *http)
{
    if (!http)
        return;
    if (http->easy)
        http->curl->easy_cleanup(http->easy);
    if (http->multi)
        http->curl->multi_cleanup(http->multi);
    buf_done(&http->roots);
    free(http);
}

time_t net_http_date(const char *text)
{
    struct err err = ERR_INIT;
    const struct net_curl *curl = net_curl(&err);
    return curl ? curl->getdate(text, NULL) : -1;
}

/* ---- connecting ---- */

static bool is_within(enum net_reach reach, enum net_place place)
{
    return reach == NET_REACH_ALL || place == NET_PUBLIC ||
           (place == NET_PRIVATE && reach == NET_REACH_PRIVATE);
}

static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct exchange *exchange = user;
    enum net_place place = net_address_place(&address->addr, address->addrlen);
    if (purpose != CURLSOCKTYPE_IPCXN)
        return CURL_SOCKET_BAD;
    if (!is_within(exchange->call->reach, place)) {
        net_address_text(&address->addr, address->addrlen, exchange->refused,
                         sizeof exchange->refused);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- what comes ---- */

static void call_header(const struct net_call *call, struct str name, struct str value)
{
    if (call->on_header)
        call->on_header(call->user, name, value);
}

/* A proxy's answer or an interim one may come first: the last one counts. */
static void read_status(struct net_call *call, struct str line)
{
    const char *space = memchr(line.at, ' ', line.len);
    uint64_t status = 0;
    if (space && line.len >= (size_t)(space - line.at) + 4)
        str_to_u64((struct str){ space + 1, 3 }, &status);
    call->status = (int)status;
    call_header(call, STR_NONE, STR_NONE);
}

static size_t on_header(char *bytes, size_t one, size_t len, void *user)
{
    struct exchange *exchange = user;
    struct str line = str_trim((struct str){ bytes, len * one });
    const char *colon = line.len > 0 ? memchr(line.at, ':', line.len) : NULL;
    exchange->header_bytes += len;
    if (exchange->header_bytes > HEADERS_MAX) {
        exchange->stopped = NET_TOO_LONG;
        return 0;
    }
    if (line.len > 5 && memcmp(line.at, "HTTP/", 5) == 0)
        read_status(exchange->call, line);
    else if (colon)
        call_header(exchange->call, (struct str){ line.at, (size_t)(colon - line.at) },
                    str_trim((struct str){ colon + 1,
                                           line.len - (size_t)(colon - line.at) - 1 }));
    return len * one;
}

static size_t on_body(char *bytes, size_t one, size_t len, void *user)
{
    struct exchange *exchange = user;
    struct net_call *call = exchange->call;
    exchange->heard_ms = now_ms();
    exchange->pace_bytes += len * one;
    call->bytes += len * one;
    if (call->bytes > call->max_bytes) {
        exchange->stopped = NET_TOO_LONG;
        return 0;
    }
    int rc = call->on_bytes(call->user, (struct str){ bytes, len * one });
    call->settled = call->settled || rc > 0;
    return rc < 0 ? 0 : len * one;
}

/* ---- one exchange ---- */

#define SET(option, value) http->curl->easy_setopt(http->easy, option, value)

static void prepare_method(struct net_http *http, const struct net_call *call)
{
    if (call->body.at) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        SET(CURLOPT_POSTFIELDS, call->body.at);
    } else if (call->method && strcmp(call->method, "HEAD") == 0)
        SET(CURLOPT_NOBODY, 1L);
    if (call->method)
        SET(CURLOPT_CUSTOMREQUEST, call->method);
}

static struct curl_slist *prepare(struct exchange *exchange)
{
    struct net_http *http = exchange->http;
    const struct net_call *call = exchange->call;
    struct curl_blob roots = { .data = http->roots.at, .len = http->roots.len };
    struct curl_slist *headers = NULL;
    for (size_t i = 0; call->headers && call->headers[i]; i++)
        headers = http->curl->slist_append(headers, call->headers[i]);
    headers = http->curl->slist_append(headers, "expect:");
    http->curl->easy_reset(http->easy);
    SET(CURLOPT_URL, call->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (roots.len > 0)
        SET(CURLOPT_CAINFO_BLOB, &roots);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)call->connect_ms);
    SET(CURLOPT_USERAGENT, "cupel/" CUPEL_VERSION);
    SET(CURLOPT_ERRORBUFFER, exchange->said);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, exchange);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, exchange);
    if (call->inflate)
        SET(CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
    else
        headers = http->curl->slist_append(headers, "accept-encoding: identity");
    SET(CURLOPT_HTTPHEADER, headers);
    if (call->reach != NET_REACH_ALL) {
        SET(CURLOPT_PROXY, "");
        SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
        SET(CURLOPT_OPENSOCKETDATA, exchange);
    }
    prepare_method(http, call);
    return headers;
}
#undef SET

static int64_t wait_end_ms(const struct exchange *exchange)
{
    const struct net_call *call = exchange->call;
    int64_t limit = call->settled     ? SETTLED_IDLE_MS
                    : call->bytes > 0 ? call->idle_ms
                                      : call->first_byte_ms;
    int64_t end = exchange->heard_ms + limit;
    return call->deadline_ms > 0 && call->deadline_ms < end ? call->deadline_ms : end;
}

/* A peer that sends a byte now and then is silent to no idle timer. */
static bool is_too_slow(struct exchange *exchange)
{
    const struct net_call *call = exchange->call;
    if (call->slow_ms == 0 || call->bytes == 0)
        return false;
    int64_t now = now_ms();
    if (exchange->pace_ms > 0 && now - exchange->pace_ms < call->slow_ms)
        return false;
    bool slow = exchange->pace_ms > 0 && exchange->pace_bytes < call->slow_bytes;
    exchange->pace_ms = now;
    exchange->pace_bytes = 0;
    return slow;
}

/* Runs until done: libcurl's verdict, or `stopped` has the reason. */
static CURLcode turn(struct exchange *exchange)
{
    struct net_http *http = exchange->http;
    int cancel = exchange->call->cancel_fd;
    for (;;) {
        int running = 0, left = 0;
        struct curl_waitfd extra = { .fd = cancel, .events = CURL_WAIT_POLLIN };
        http->curl->multi_perform(http->multi, &running);
        CURLMsg *message = http->curl->multi_info_read(http->multi, &left);
        if (message && message->msg == CURLMSG_DONE)
            return message->data.result;
        int64_t wait = is_too_slow(exchange) ? 0 : wait_end_ms(exchange) - now_ms();
        if (wait <= 0 || exchange->stopped != NET_OK) {
            exchange->stopped = exchange->stopped == NET_OK ? NET_TIMEOUT : exchange->stopped;
            return CURLE_OK;
        }
        http->curl->multi_poll(http->multi, &extra, cancel >= 0 ? 1 : 0,
                               wait < TURN_MS ? (int)wait : TURN_MS, NULL);
        if (cancel >= 0 && extra.revents)
            exchange->stopped = NET_CANCELLED;
    }
}

static bool is_hopeless(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_URL_MALFORMAT ||
           code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_SSL_CACERT_BADFILE;
}

static enum net_outcome judge(struct exchange *exchange, CURLcode code)
{
    struct net_call *call = exchange->call;
    if (exchange->stopped == NET_CANCELLED)
        return NET_CANCELLED;
    if (call->settled || (code == CURLE_OK && exchange->stopped == NET_OK))
        return NET_OK;
    if (exchange->stopped != NET_OK)
        return exchange->stopped;
    if (code == CURLE_WRITE_ERROR)
        return NET_OK; /* the reader stopped, and knows why */
    call->hopeless = is_hopeless(code);
    if (code == CURLE_COULDNT_CONNECT && exchange->refused[0]) {
        snprintf(call->detail, sizeof call->detail, "%s is no address that may be asked",
                 exchange->refused);
        return NET_REFUSED;
    }
    snprintf(call->detail, sizeof call->detail, "%s",
             exchange->said[0] ? exchange->said : exchange->http->curl->easy_strerror(code));
    return call->bytes > 0 ? NET_BROKEN : NET_UNREACHED;
}

static enum net_place place_of_peer(struct net_http *http)
{
    char *text = NULL;
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    if (http->curl->easy_getinfo(http->easy, CURLINFO_PRIMARY_IP, &text) != CURLE_OK || !text)
        return NET_NEVER;
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return net_address_place((const struct sockaddr *)&v4, sizeof v4);
    if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
        return net_address_place((const struct sockaddr *)&v6, sizeof v6);
    return NET_NEVER;
}

enum net_outcome net_http_do(struct net_http *http, struct net_call *call)
{
    struct exchange exchange = { .http = http, .call = call, .heard_ms = now_ms() };
    struct curl_slist *headers = prepare(&exchange);
    http->curl->multi_add_handle(http->multi, http->easy);
    CURLcode code = turn(&exchange);
    call->place = place_of_peer(http);
    http->curl->multi_remove_handle(http->multi, http->easy);
    /* The headers hold a key: nothing keeps them. */
    http->curl->easy_reset(http->easy);
    http->curl->slist_free_all(headers);
    return judge(&exchange, code);
}
