/* One request to a registry, a token server or a storage behind them. Runs in the cli process.
 * Redirects and the places of tokens are named by the registry: a public registry must not send us
 * to addresses of this host's networks. Each connection is checked by its address (net/http.h);
 * with a proxy only an address that stands in the URL can be. */
#include "image/pull/remote_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONNECT_MS 15000
#define SAID_ENOUGH ((size_t)4096)

void pull_answer_done(struct pull_answer *answer)
{
    buf_done(&answer->said);
}

struct transfer {
    struct net_call call;
    struct pull_get *get;
    struct pull_answer *answer;
    bool begun;  /* the body */
    bool failed; /* err has the reason */
    struct err *err;
};

/* --- headers --- */

static double read_wait(const char *text)
{
    char *end = NULL;
    double seconds = strtod(text, &end);
    if (end != text && *end == 0)
        return seconds >= 0 && seconds < 1e6 ? seconds : -1;
    time_t at = net_http_date(text);
    double left = difftime(at, time(NULL));
    return at < 0 ? -1 : left < 0 ? 0 : left;
}

/* "bytes 100-199/200" */
static int64_t read_range(struct str value)
{
    const char *dash = value.len > 6 ? memchr(value.at, '-', value.len) : NULL;
    uint64_t first;
    if (!dash || memcmp(value.at, "bytes ", 6) != 0 || dash < value.at + 6 ||
        !str_to_u64((struct str){ value.at + 6, (size_t)(dash - value.at - 6) }, &first))
        return -1;
    return first <= INT64_MAX ? (int64_t)first : -1;
}

static bool is_named(struct str name, const char *wanted)
{
    return name.len == strlen(wanted) && strncasecmp(name.at, wanted, name.len) == 0;
}

static void forget(struct pull_answer *answer)
{
    buf_drop(&answer->said, answer->said.len);
    answer->location[0] = answer->type[0] = 0;
    answer->challenge = (struct pull_challenge){ 0 };
    answer->retry_after_s = -1;
    answer->range_first = -1;
}

static void on_header(void *user, struct str name, struct str value)
{
    struct pull_answer *answer = ((struct transfer *)user)->answer;
    char text[96];
    if (!name.at) {
        forget(answer);
    } else if (is_named(name, "location") && value.len < sizeof answer->location &&
               !memchr(value.at, 0, value.len)) {
        memcpy(answer->location, value.at, value.len);
        answer->location[value.len] = 0;
    } else if (is_named(name, "content-type")) {
        str_plain(answer->type, sizeof answer->type, value);
    } else if (is_named(name, "www-authenticate")) {
        pull_challenge_add(&answer->challenge, value);
    } else if (is_named(name, "retry-after")) {
        str_plain(text, sizeof text, value);
        answer->retry_after_s = read_wait(text);
    } else if (is_named(name, "content-range")) {
        answer->range_first = read_range(value);
    }
}

/* --- the body --- */

/* A server may answer a request for the rest with the whole. */
static int begin_body(struct transfer *transfer)
{
    struct pull_get *get = transfer->get;
    const bool partial = transfer->call.status == 206;
    const bool continues = partial && transfer->answer->range_first == get->have;
    transfer->begun = true;
    if (continues || (!partial && get->have == 0))
        return 0;
    get->have = 0;
    if (get->restart(get->user, transfer->err) < 0)
        return -1;
    if (!partial)
        return 0;
    return err_set(transfer->err, ERR_BUSY, "the registry sent another part than was asked for");
}

static int take_body(struct transfer *transfer, struct str bytes)
{
    struct pull_get *get = transfer->get;
    if (!transfer->begun && begin_body(transfer) < 0)
        return -1;
    if ((int64_t)bytes.len > get->max_bytes - get->have)
        return get->bytes >= 0
                   ? err_set(transfer->err, ERR_LIMIT,
                             "the registry sent more for '%.90s' than the %lld bytes that it said",
                             get->path, (long long)get->bytes)
                   : err_set(transfer->err, ERR_LIMIT,
                             "the registry's answer for '%.90s' is larger than %lld bytes",
                             get->path, (long long)get->max_bytes);
    if (get->take(get->user, bytes, transfer->err) < 0)
        return -1;
    get->have += (int64_t)bytes.len;
    return 0;
}

static int on_bytes(void *user, struct str bytes)
{
    struct transfer *transfer = user;
    if (transfer->get && (transfer->call.status == 200 || transfer->call.status == 206)) {
        transfer->failed = take_body(transfer, bytes) < 0;
        return transfer->failed ? -1 : 0;
    }
    struct buf *said = &transfer->answer->said;
    size_t room = SAID_ENOUGH - said->len;
    buf_add(said, bytes.at, bytes.len < room ? bytes.len : room);
    return said->len < SAID_ENOUGH ? 0 : -1;
}

/* --- the exchange --- */

static int refuse_place(const struct net_url *url, const char *detail, struct err *err)
{
    char plain[160];
    str_plain(plain, sizeof plain, str_of(detail));
    err_set(err, ERR_FORBIDDEN, "the registry leads to '%.100s', and %s", url->host, plain);
    err_hint(err, "a registry may lead to private addresses only if its own is private, and never "
                  "to link-local ones, where metadata services are");
    return -1;
}

/* The addresses that may be connected to. The registry's own host was named by the user. */
static int choose_reach(const struct pull_remote *remote, const struct net_url *url,
                        enum net_reach *out, struct err *err)
{
    const bool own = strcasecmp(url->host, remote->base.host) == 0;
    const bool private = remote->place == NET_PRIVATE;
    enum net_place place = net_url_place(url);
    if (own) {
        *out = remote->options.plain_http ? NET_REACH_PRIVATE : NET_REACH_ALL;
        return 0;
    }
    if (place == NET_NEVER || (place == NET_PRIVATE && !private))
        return refuse_place(url, "that is no address that may be asked", err);
    *out = remote->proxied ? NET_REACH_ALL : private ? NET_REACH_PRIVATE : NET_REACH_PUBLIC;
    return 0;
}

static enum pull_try judge(const struct pull_remote *remote, const struct net_url *url,
                           const struct transfer *transfer, enum net_outcome outcome,
                           struct err *err)
{
    char detail[200];
    str_plain(detail, sizeof detail, str_of(transfer->call.detail));
    if (transfer->failed)
        return err->kind == ERR_BUSY ? PULL_AGAIN : PULL_FAILED;
    if (outcome == NET_OK)
        return PULL_DONE;
    if (outcome == NET_REFUSED) {
        refuse_place(url, detail, err);
        return PULL_FAILED;
    }
    if (outcome == NET_TOO_LONG) {
        err_set(err, ERR_LIMIT, "'%.100s' sent more than it may", url->host);
        return PULL_FAILED;
    }
    if (outcome == NET_TIMEOUT) {
        err_set(err, ERR_BUSY, "'%.100s' sent nothing, or as good as nothing, for %d s", url->host,
                remote->options.idle_ms / 1000);
        return PULL_AGAIN;
    }
    err_set(err, transfer->call.hopeless ? ERR_HOST : ERR_BUSY, "ask '%.100s': %s", url->host,
            detail);
    if (transfer->call.hopeless)
        err_hint(err, "trust the registry's own authority by --tls-ca FILE%s",
                 pull_ref_is_loopback(remote->options.ref)
                     ? ", or ask a registry of this host without TLS by --plain-http"
                     : "");
    return transfer->call.hopeless ? PULL_FAILED : PULL_AGAIN;
}

enum pull_try pull_exchange(struct pull_remote *remote, const struct net_url *url,
                            const char *authorization, struct pull_get *get,
                            struct pull_answer *answer, struct err *err)
{
    char range[64];
    const char *headers[4] = { NULL };
    size_t count = 0;
    enum net_reach reach = NET_REACH_PUBLIC;
    forget(answer);
    if (choose_reach(remote, url, &reach, err) < 0)
        return PULL_FAILED;
    if (authorization)
        headers[count++] = authorization;
    if (get && get->accept)
        headers[count++] = get->accept;
    snprintf(range, sizeof range, "range: bytes=%lld-", (long long)(get ? get->have : 0));
    if (get && get->have > 0)
        headers[count++] = range;
    struct transfer transfer = { .get = get, .answer = answer, .err = err };
    transfer.call = (struct net_call){ .url = url->text,
                                       .headers = headers,
                                       .reach = reach,
                                       .cancel_fd = -1,
                                       .connect_ms = CONNECT_MS,
                                       .first_byte_ms = remote->options.idle_ms,
                                       .idle_ms = remote->options.idle_ms,
                                       .slow_ms = remote->options.idle_ms,
                                       .slow_bytes = (size_t)remote->options.idle_ms,
                                       .max_bytes = SIZE_MAX,
                                       .on_header = on_header,
                                       .on_bytes = on_bytes,
                                       .user = &transfer };
    enum net_outcome outcome = net_http_do(remote->http, &transfer.call);
    answer->status = transfer.call.status;
    if (strcasecmp(url->host, remote->base.host) == 0 && transfer.call.status > 0 &&
        !remote->proxied)
        remote->place = transfer.call.place;
    return judge(remote, url, &transfer, outcome, err);
}
