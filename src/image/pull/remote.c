/* A registry: its URL, redirects, tokens, and tries. Runs in the cli process. */
#include "image/pull/remote.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/own.h"
#include "image/pull/remote_int.h"

#define HOPS_MAX 5
#define TRIES_MAX 5 /* without progress between them */
#define PROGRESS_BYTES ((int64_t)1 << 20)
#define FIRST_WAIT_S 0.5
#define LONGEST_WAIT_S 8.0
#define ASKED_WAIT_MAX_S 60.0

/* --- open, close --- */

static bool has_proxy(void)
{
    static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy",
                                         "ALL_PROXY" };
    for (size_t i = 0; i < array_len(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return true;
    }
    return false;
}

int pull_remote_open(const struct pull_remote_options *options, struct pull_remote **out,
                     struct err *err)
{
    char text[300];
    const struct pull_ref *ref = options->ref;
    if (options->plain_http && !pull_ref_is_loopback(ref)) {
        err_input(err, "plain_http", "true", "a loopback address",
                  "'%.100s' is no loopback address: without TLS anybody on the way could change "
                  "what it sends",
                  ref->registry);
        err_hint(err, "give the registry a certificate, and trust its authority by --tls-ca FILE");
        return -1;
    }
    own_pull_remote remote = buf_alloc_zero(1, sizeof *remote);
    remote->options = *options;
    remote->bearer = BUF_INIT(PULL_TOKEN_MAX);
    remote->place = NET_PUBLIC;
    remote->proxied = !options->plain_http && has_proxy();
    snprintf(text, sizeof text, "%s://%s/v2/", options->plain_http ? "http" : "https", ref->server);
    if (net_url_read(/* base= */ NULL, text, &remote->base, err) < 0 ||
        net_http_open(&remote->http, err) < 0 ||
        (options->ca_pem.at && net_http_trust(remote->http, options->ca_pem, err) < 0))
        return -1;
    *out = take_ptr(remote);
    return 0;
}

void pull_remote_close(struct pull_remote *remote)
{
    if (!remote)
        return;
    net_http_close(remote->http);
    buf_done(&remote->bearer);
    free(remote);
}

/* --- one request --- */

/* The registry's own words: {"errors":[{"code","message"}]}. */
static void add_words(const struct pull_answer *answer, char *out, size_t room)
{
    struct err none = ERR_INIT;
    own_json said = json_read(buf_str(&answer->said), 4096, &none);
    const json_t *first = json_array_get(json_object_get(said, "errors"), 0);
    char text[160];
    str_plain(text, sizeof text, json_get_str(first, "message"));
    snprintf(out, room, "%s%s", text[0] ? ": " : "", text);
}

static enum pull_try judge_status(const struct pull_remote *remote, const struct pull_get *get,
                                  const struct pull_answer *answer, struct err *err)
{
    const char *registry = remote->options.ref->registry;
    const int status = answer->status;
    char words[170];
    if (status == 200 || status == 206) {
        if (get->bytes < 0 || get->have == get->bytes)
            return PULL_DONE;
        err_set(err, ERR_BUSY, "the registry sent %lld of the %lld bytes of '%.90s'",
                (long long)get->have, (long long)get->bytes, get->path);
        return PULL_AGAIN;
    }
    add_words(answer, words, sizeof words);
    if (status == 404) {
        err_set(err, ERR_ABSENT, "'%.100s' has no '%.160s' of '%.100s'%s", registry, get->path,
                remote->options.ref->repository, words);
        return PULL_FAILED;
    }
    bool passes = status == 408 || status == 429 || status == 416 || status >= 500;
    err_set(err,
            passes          ? ERR_BUSY
            : status == 403 ? ERR_FORBIDDEN
                            : ERR_HOST,
            "'%.100s' answers %d for '%.100s'%s", registry, status, get->path, words);
    return passes ? PULL_AGAIN : PULL_FAILED;
}

static const char *authorize(const struct pull_remote *remote, const struct net_url *url,
                             struct buf *header)
{
    buf_drop(header, header->len);
    if (!net_url_same_origin(url, &remote->base))
        return NULL;
    if (remote->bearer.len > 0)
        buf_printf(header, "authorization: Bearer %s", remote->bearer.at);
    else if (remote->use_basic)
        buf_printf(header, "authorization: Basic %s", remote->options.basic);
    return header->len > 0 ? header->at : NULL;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static int follow(const struct pull_remote *remote, const struct pull_answer *answer,
                  struct net_url *url, struct err *err)
{
    struct net_url next;
    if (!answer->location[0])
        return err_set(err, ERR_HOST, "the registry redirects to nowhere");
    if (net_url_read(url->text, answer->location, &next, err) < 0)
        return err_wrap(err, "the registry's redirect");
    if (strcmp(next.scheme, "https") != 0 && !remote->options.plain_http)
        return err_set(err, ERR_FORBIDDEN, "the registry redirects to '%.100s' without TLS",
                       next.host);
    *url = next;
    return 0;
}

enum pull_try pull_request(struct pull_remote *remote, struct pull_get *get,
                           struct pull_answer *answer, struct err *err)
{
    char path[1024];
    struct net_url first, url;
    own_buf header = BUF_INIT(PULL_TOKEN_MAX + 64);
    bool renewed = false;
    snprintf(path, sizeof path, "%s/%s", remote->options.ref->repository, get->path);
    if (net_url_read(remote->base.text, path, &first, err) < 0)
        return PULL_FAILED;
    url = first;
    for (int hops = 0; hops <= HOPS_MAX;) {
        const char *authorization = authorize(remote, &url, &header);
        enum pull_try tried = pull_exchange(remote, &url, authorization, get, answer, err);
        if (tried != PULL_DONE)
            return tried;
        if (is_redirect(answer->status)) {
            hops++;
            if (follow(remote, answer, &url, err) < 0)
                return PULL_FAILED;
        } else if (answer->status == 401 && net_url_same_origin(&url, &first) && !renewed) {
            renewed = true;
            url = first;
            if (pull_token_renew(remote, &answer->challenge, err) < 0)
                return err->kind == ERR_BUSY ? PULL_AGAIN : PULL_FAILED;
        } else {
            return judge_status(remote, get, answer, err);
        }
    }
    err_set(err, ERR_HOST, "the registry redirects more than %d times", HOPS_MAX);
    return PULL_FAILED;
}

/* --- tries --- */

static double chance(void)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return 1;
    return (double)random / (double)UINT32_MAX;
}

/* Seconds until the next try; the registry's wish is the least. */
static double wait_for(int tries, double asked_s)
{
    double bound = FIRST_WAIT_S;
    for (int i = 1; i < tries && bound < LONGEST_WAIT_S; i++)
        bound *= 2;
    return (asked_s > 0 ? asked_s : bound / 2) + bound / 2 * chance();
}

int pull_remote_get(struct pull_remote *remote, struct pull_get *get, struct err *err)
{
    own_pull_answer answer = PULL_ANSWER_INIT;
    int64_t before = 0;
    for (int tries = 1;; tries++) {
        enum pull_try tried = pull_request(remote, get, &answer, err);
        if (tried == PULL_DONE) {
            snprintf(get->type, sizeof get->type, "%s", answer.type);
            return 0;
        }
        if (get->have - before >= PROGRESS_BYTES)
            tries = 1;
        before = get->have;
        if (tried == PULL_FAILED || tries >= TRIES_MAX)
            return tried == PULL_FAILED ? -1 : err_wrap(err, "after %d tries", tries);
        if (answer.retry_after_s > ASKED_WAIT_MAX_S)
            return err_wrap(err, "try again in %.0f s", answer.retry_after_s);
        if ((!get->resumes || answer.status == 416) && get->have > 0) {
            get->have = before = 0;
            if (get->restart(get->user, err) < 0)
                return -1;
        }
        double wait_s = wait_for(tries, answer.retry_after_s);
        if (remote->options.on_wait)
            remote->options.on_wait(remote->options.user, wait_s, err->text);
        poll(NULL, 0, (int)(wait_s * 1000));
    }
}
