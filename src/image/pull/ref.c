/* References to images in registries. Runs in the cli process; pure.
 * The grammar is that of the OCI distribution specification; what stands before the first slash is
 * a registry if it could not be a part of a name: it has a dot, a port or brackets, or is
 * "localhost". */
#include "image/pull/ref.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"

#define TEXT_MAX 700

/* Registries whose images are served by another host, with a folder for names of one part. */
static const struct {
    const char *registry, *server, *folder;
} aliases[] = {
    { "docker.io", "registry-1.docker.io", "library/" },
    { "index.docker.io", "registry-1.docker.io", "library/" },
};

static int refuse(const char *text, const char *why, const char *bound, struct err *err)
{
    char plain[120], value[128];
    str_plain(plain, sizeof plain, str_of(text));
    snprintf(value, sizeof value, "\"%s\"", plain);
    err_input(err, "ref", value, bound, "the reference '%s' %s", plain, why);
    err_hint(err, "write REGISTRY/NAME:TAG, for example localhost:5000/team/tool:1.2");
    return -1;
}

/* --- the parts --- */

static bool is_hex(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!strchr("0123456789abcdef", text.at[i]) || !text.at[i])
            return false;
    return true;
}

bool pull_digest_valid(struct str text)
{
    return text.len == PULL_DIGEST_ROOM - 1 && memcmp(text.at, "sha256:", 7) == 0 &&
           is_hex((struct str){ text.at + 7, 64 });
}

static bool is_small(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* [a-z0-9]+ ( ( "." | "_" | "__" | "-"+ ) [a-z0-9]+ )* */
static bool is_path_part(struct str part)
{
    size_t i = 0;
    if (part.len == 0 || !is_small(part.at[0]) || !is_small(part.at[part.len - 1]))
        return false;
    while (i < part.len) {
        if (is_small(part.at[i])) {
            i++;
            continue;
        }
        char mark = part.at[i];
        size_t run = 0;
        while (i < part.len && part.at[i] == mark) {
            i++;
            run++;
        }
        if (!is_small(part.at[i]) || !strchr("._-", mark) || (mark == '.' && run > 1) ||
            (mark == '_' && run > 2))
            return false;
    }
    return true;
}

static bool is_repository(struct str text)
{
    while (text.len > 0) {
        const char *slash = memchr(text.at, '/', text.len);
        size_t len = slash ? (size_t)(slash - text.at) : text.len;
        if (!is_path_part((struct str){ text.at, len }) || (slash && len + 1 == text.len))
            return false;
        text.at += len + (slash != NULL);
        text.len -= len + (slash != NULL);
        if (!slash)
            return true;
    }
    return false;
}

static bool is_tag(struct str text)
{
    if (text.len == 0 || text.len > 128 || text.at[0] == '.' || text.at[0] == '-')
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!isalnum((unsigned char)text.at[i]) && !memchr("._-", text.at[i], 3))
            return false;
    return true;
}

static bool is_port(struct str text)
{
    uint64_t port = 0;
    return text.len <= 5 && str_to_u64(text, &port) && port > 0 && port < 65536;
}

static bool is_host(struct str text)
{
    bool v6 = text.len > 2 && text.at[0] == '[' && text.at[text.len - 1] == ']';
    if (text.len == 0 || text.len > 253 || text.at[0] == '-' || text.at[0] == '.')
        return false;
    for (size_t i = v6 ? 1 : 0; i < text.len - (v6 ? 1 : 0); i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (v6 ? !(isxdigit(c) || c == ':' || c == '.') : !(isalnum(c) || c == '-' || c == '.'))
            return false;
    }
    return true;
}

static bool is_registry(struct str text)
{
    const char *colon = text.len > 0 ? memrchr(text.at, ':', text.len) : NULL;
    const char *end = text.at + text.len;
    if (!colon || end[-1] == ']')
        return is_host(text);
    return is_host((struct str){ text.at, (size_t)(colon - text.at) }) &&
           is_port((struct str){ colon + 1, (size_t)(end - colon - 1) });
}

static bool looks_like_registry(struct str text)
{
    return memchr(text.at, '.', text.len) || memchr(text.at, ':', text.len) ||
           memchr(text.at, '[', text.len) || str_is(text, "localhost");
}

/* --- the whole --- */

static void copy(char *to, size_t room, struct str text)
{
    snprintf(to, room, "%.*s", (int)text.len, text.at);
}

static void lower(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

/* The digest and the tag, from the end of `rest`, which shrinks to the repository. */
static int read_ends(const char *text, struct str *rest, struct pull_ref *out, struct err *err)
{
    const char *at = memchr(rest->at, '@', rest->len);
    if (at) {
        struct str digest = { at + 1, (size_t)(rest->at + rest->len - at - 1) };
        if (!pull_digest_valid(digest))
            return refuse(text, "has a digest that is no SHA-256", "@sha256: and 64 digits", err);
        copy(out->digest, sizeof out->digest, digest);
        rest->len = (size_t)(at - rest->at);
    }
    const char *colon = rest->len > 0 ? memrchr(rest->at, ':', rest->len) : NULL;
    if (colon) {
        struct str tag = { colon + 1, (size_t)(rest->at + rest->len - colon - 1) };
        if (!is_tag(tag))
            return refuse(text, "has a tag that no registry takes", "[A-Za-z0-9_.-]{1,128}", err);
        copy(out->tag, sizeof out->tag, tag);
        rest->len = (size_t)(colon - rest->at);
    } else if (!at)
        copy(out->tag, sizeof out->tag, STR("latest"));
    return 0;
}

/* The registry before the first slash, or the one for names without. */
static int read_registry(const char *text, const char *fallback, struct str *rest,
                         struct pull_ref *out, struct err *err)
{
    const char *slash = memchr(rest->at, '/', rest->len);
    struct str first = { rest->at, slash ? (size_t)(slash - rest->at) : 0 };
    if (slash && looks_like_registry(first)) {
        rest->at += first.len + 1;
        rest->len -= first.len + 1;
    } else if (fallback) {
        first = str_of(fallback);
    } else {
        refuse(text, "names no registry", "REGISTRY/NAME[:TAG][@sha256:HEX]", err);
        err_hint(err, "put the registry before the name, as in docker.io/NAME, or name the one "
                      "for such names by images.registry of the configuration");
        return -1;
    }
    if (!is_registry(first))
        return refuse(text, "has a registry that is no HOST[:PORT]", "HOST or HOST:PORT", err);
    copy(out->registry, sizeof out->registry, first);
    copy(out->server, sizeof out->server, first);
    lower(out->registry);
    lower(out->server);
    return 0;
}

int pull_ref_read(const char *text, const char *registry, struct pull_ref *out, struct err *err)
{
    struct pull_ref ref = { 0 };
    struct str rest = str_of(text);
    const char *folder = "";
    if (rest.len > 9 && memcmp(text, "docker://", 9) == 0)
        rest = str_of(text + 9);
    if (rest.len == 0 || rest.len > TEXT_MAX)
        return refuse(text, "is empty or too long", "at most 700 bytes", err);
    if (read_registry(text, registry, &rest, &ref, err) < 0 ||
        read_ends(text, &rest, &ref, err) < 0)
        return -1;
    for (size_t i = 0; i < array_len(aliases); i++)
        if (strcmp(ref.registry, aliases[i].registry) == 0) {
            copy(ref.server, sizeof ref.server, str_of(aliases[i].server));
            folder = memchr(rest.at, '/', rest.len) ? "" : aliases[i].folder;
        }
    if (!is_repository(rest) || rest.len + strlen(folder) >= sizeof ref.repository)
        return refuse(text, "has a name that no registry takes",
                      "[a-z0-9] with . _ - between, / between parts, at most 255 bytes", err);
    snprintf(ref.repository, sizeof ref.repository, "%s%.*s", folder, (int)rest.len, rest.at);
    *out = ref;
    return 0;
}

void pull_ref_text(const struct pull_ref *ref, char out[PULL_REF_ROOM])
{
    snprintf(out, PULL_REF_ROOM, "%s/%s%s%s%s%s", ref->registry, ref->repository,
             ref->tag[0] ? ":" : "", ref->tag, ref->digest[0] ? "@" : "", ref->digest);
}

void pull_ref_name(const struct pull_ref *ref, char *out, size_t room)
{
    const char *slash = strrchr(ref->repository, '/');
    const char *last = slash ? slash + 1 : ref->repository;
    snprintf(out, room, "%.56s%s", last, strcmp(last, "host") == 0 ? "-image" : "");
}

bool pull_ref_is_loopback(const struct pull_ref *ref)
{
    char host[264];
    const char *end = ref->server + strlen(ref->server);
    const char *colon = strrchr(ref->server, ':');
    unsigned a, b, c, d;
    int used = 0;
    if (colon && end[-1] != ']')
        end = colon;
    copy(host, sizeof host, (struct str){ ref->server, (size_t)(end - ref->server) });
    if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
        return true;
    return sscanf(host, "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &used) == 4 && host[used] == 0 &&
           a == 127 && b < 256 && c < 256 && d < 256;
}
