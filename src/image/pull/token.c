/* Tokens for a registry, by the flow that registries and their token servers share: the registry
 * names a realm, the realm gives a token for the scope, with the user's password or without one.
 * Runs in the cli process.
 * The password goes to the registry and to the realm that the registry names, over TLS unless the
 * registry itself is asked without it on this host. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "image/pull/remote_int.h"

#define ANSWER_MAX ((size_t)64 << 10)

static void add_escaped(struct buf *url, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("-._~:/,", c);
        if (plain)
            buf_add(url, text, 1);
        else
            buf_printf(url, "%%%02X", c);
    }
}

static int make_url(const struct pull_remote *remote, const struct pull_challenge *challenge,
                    struct net_url *out, struct err *err)
{
    char scope[300];
    own_buf url = BUF_INIT(NET_URL_ROOM - 1);
    snprintf(scope, sizeof scope, "repository:%s:pull", remote->options.ref->repository);
    buf_add_text(&url, challenge->realm);
    buf_add_text(&url, strchr(challenge->realm, '?') ? "&scope=" : "?scope=");
    add_escaped(&url, challenge->scope[0] ? challenge->scope : scope);
    if (challenge->service[0]) {
        buf_add_text(&url, "&service=");
        add_escaped(&url, challenge->service);
    }
    if (net_url_read(/* base= */ NULL, url.at, out, err) < 0)
        return err_wrap(err, "the registry's token server");
    if (strcmp(out->scheme, "https") != 0 && !remote->options.plain_http)
        return err_set(err, ERR_FORBIDDEN, "the registry's token server '%.100s' does not use TLS",
                       out->host);
    return 0;
}

static int take(void *user, struct str bytes, struct err *err)
{
    return buf_add_str(user, bytes) == 0 ? 0 : err_set(err, ERR_LIMIT, "the token is too long");
}

static int restart(void *user, struct err *err)
{
    struct buf *text = user;
    (void)err;
    buf_drop(text, text->len);
    return 0;
}

/* It becomes a header: visible characters only. */
static bool is_token(struct str token)
{
    for (size_t i = 0; i < token.len; i++)
        if (token.at[i] <= ' ' || token.at[i] > '~')
            return false;
    return token.len > 0 && token.len <= PULL_TOKEN_MAX;
}

static int read_token(struct pull_remote *remote, struct str text, struct err *err)
{
    own_json answer = json_read(text, ANSWER_MAX, err);
    if (!answer)
        return err_wrap(err, "the token server's answer");
    struct str token = json_get_str(answer, "token");
    if (token.len == 0)
        token = json_get_str(answer, "access_token");
    if (!is_token(token))
        return err_set(err, ERR_INPUT, "the token server's answer has no token that can be used");
    buf_drop(&remote->bearer, remote->bearer.len);
    buf_add_str(&remote->bearer, token);
    return 0;
}

static int refuse(const struct pull_remote *remote, const char *what, int status, struct err *err)
{
    const struct pull_ref *ref = remote->options.ref;
    const bool known = remote->options.basic[0] != 0;
    err_set(err, ERR_FORBIDDEN, "%s answers %d: %s '%.90s/%.120s'", what, status,
            known ? "the credentials may not pull" : "there are no credentials for", ref->registry,
            ref->repository);
    err_hint(err,
             "%s 'docker login %.90s' or 'podman login --authfile FILE %.90s' and "
             "REGISTRY_AUTH_FILE=FILE; a name that does not exist gives the same answer",
             known ? "renew them by" : "give them by", ref->registry, ref->registry);
    return -1;
}

static int ask_realm(struct pull_remote *remote, const struct pull_challenge *challenge,
                     struct err *err)
{
    struct net_url url;
    own_buf text = BUF_INIT(ANSWER_MAX);
    own_buf basic = BUF_INIT(8192);
    own_pull_answer answer = PULL_ANSWER_INIT;
    struct pull_get get = { .path = "token", .bytes = -1, .max_bytes = (int64_t)ANSWER_MAX,
                            .take = take, .restart = restart, .user = &text };
    if (make_url(remote, challenge, &url, err) < 0)
        return -1;
    if (remote->options.basic[0])
        buf_printf(&basic, "authorization: Basic %s", remote->options.basic);
    if (pull_exchange(remote, &url, basic.at, &get, &answer, err) != PULL_DONE)
        return -1;
    if (answer.status == 429 || answer.status >= 500)
        return err_set(err, ERR_BUSY, "the token server '%.100s' answers %d", url.host,
                       answer.status);
    if (answer.status != 200)
        return refuse(remote, "the registry's token server", answer.status, err);
    return read_token(remote, buf_str(&text), err);
}

int pull_token_renew(struct pull_remote *remote, const struct pull_challenge *challenge,
                     struct err *err)
{
    if (challenge->bearer)
        return ask_realm(remote, challenge, err);
    if (!challenge->basic) {
        err_set(err, ERR_HOST, "the registry '%.100s' asks for a kind of login that cupel lacks",
                remote->options.ref->registry);
        err_hint(err, "cupel knows Bearer tokens and Basic");
        return -1;
    }
    if (!remote->options.basic[0] || remote->use_basic)
        return refuse(remote, "the registry", 401, err);
    remote->use_basic = true;
    return 0;
}
