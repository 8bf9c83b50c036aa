/* Parses the names of models. Runs in the task's process, as the caller. */
#include "llm/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/opt.h"
#include "base/own.h"

#define NAME_MAX_BYTES 200
#define HOW "name PROVIDER/NAME, chat+URL#NAME, exec:PROGRAM or replay:FILE; see cupel models"

const struct llm_provider llm_providers[] = {
    { "anthropic", &llm_wire_anthropic, "https://api.anthropic.com", "ANTHROPIC_BASE_URL",
      "ANTHROPIC_API_KEY", "claude-opus-5", "claude-", true },
    { "openai", &llm_wire_responses, "https://api.openai.com/v1", "OPENAI_BASE_URL",
      "OPENAI_API_KEY", "gpt-6.1-sol", "gpt-", true },
    { "openrouter", &llm_wire_chat, "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL",
      "OPENROUTER_API_KEY", "anthropic/claude-opus-5", NULL, true },
    { "ollama", &llm_wire_chat, "http://127.0.0.1:11434/v1", "OLLAMA_HOST", "OLLAMA_API_KEY", NULL,
      NULL, false },
    { "llamacpp", &llm_wire_chat, "http://127.0.0.1:8080/v1", "LLAMACPP_BASE_URL",
      "LLAMACPP_API_KEY", NULL, NULL, false },
    { "chat", &llm_wire_chat, NULL, "CUPEL_BASE_URL", "CUPEL_API_KEY", NULL, NULL, false },
    { "vllm", &llm_wire_chat, "http://127.0.0.1:8000/v1", "VLLM_BASE_URL", "VLLM_API_KEY", NULL,
      NULL, false },
};
const size_t llm_provider_count = array_len(llm_providers);

const char *const llm_known_models[] = {
    "anthropic/claude-opus-5", "anthropic/claude-sonnet-5", "anthropic/claude-haiku-4-5",
    "openai/gpt-6.1-sol",      "openai/gpt-6.1-terra",      "openai/gpt-6-luna",
    NULL,
};

/* ---- base URLs ---- */

/* OLLAMA_HOST is "host", "host:port", ":port" or a URL; 0.0.0.0 is where it listens. */
static char *ollama_base(const char *host)
{
    own_buf url = BUF_INIT(4096);
    const char *scheme = strstr(host, "://"), *rest = scheme ? scheme + 3 : host;
    size_t len = strcspn(rest, "/");
    struct str place = { rest, len };
    const char *colon = memchr(rest, ':', len);
    struct str name = { rest, colon ? (size_t)(colon - rest) : len };
    if (name.len == 0 || str_is(name, "0.0.0.0"))
        name = STR("127.0.0.1");
    buf_printf(&url, "%.*s%.*s", scheme ? (int)(rest - host) : 7, scheme ? host : "http://",
               (int)name.len, name.at);
    if (colon)
        buf_add(&url, colon, (size_t)(place.at + place.len - colon));
    else if (!scheme)
        buf_add_text(&url, ":11434");
    buf_add_text(&url, "/v1");
    return buf_take(&url);
}

static size_t without_slashes(const char *url, size_t len)
{
    while (len > 0 && url[len - 1] == '/')
        len--;
    return len;
}

static char *without_slash(const char *url)
{
    return buf_strdup((struct str){ url, without_slashes(url, strlen(url)) });
}

/* People write base URLs with and without a version. A URL without any path gets /v1, the common
 * one; Anthropic's wire adds it itself. */
static char *with_version(const char *set, bool by_wire)
{
    own_buf url = BUF_INIT(4096);
    size_t len = without_slashes(set, strlen(set));
    const char *scheme = strstr(set, "://");
    const char *path = scheme ? strchr(scheme + 3, '/') : NULL;
    bool versioned = len > 3 && memcmp(set + len - 3, "/v1", 3) == 0;
    if (by_wire && versioned)
        len = without_slashes(set, len - 3);
    buf_add(&url, set, len);
    if (!by_wire && scheme && (!path || path >= set + len))
        buf_add_text(&url, "/v1");
    return buf_take(&url);
}

char *llm_provider_base(const struct llm_provider *provider)
{
    const char *set = getenv(provider->base_variable);
    if (!set || !*set)
        return buf_strdup(str_of(provider->base_url ? provider->base_url : ""));
    if (strcmp(provider->base_variable, "OLLAMA_HOST") == 0)
        return ollama_base(set);
    return with_version(set, provider->wire == &llm_wire_anthropic);
}

/* Goes into a request, and onto screens: plain characters, no password. */
static int check_url(const char *url, struct err *err)
{
    const char *rest = strstr(url, "://");
    bool web = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    for (const char *at = url; *at; at++)
        if (*at <= ' ' || *at > '~' || strlen(url) > 2000)
            return err_set(err, ERR_USAGE, "a base URL is one word of plain characters");
    if (!web || !rest[3])
        return err_set(err, ERR_USAGE,
                       "'%.200s' is not a base URL: it must begin with http:// or https://", url);
    if (memchr(rest + 3, '@', strcspn(rest + 3, "/"))) {
        err_set(err, ERR_USAGE, "a base URL holds no user name or password");
        err_hint(err, "set CUPEL_API_KEY, or put the key into keys.json under the server's name");
        return -1;
    }
    return 0;
}

static int check_model(const char *model, struct err *err)
{
    size_t len = strlen(model);
    for (size_t i = 0; i < len; i++)
        if (model[i] <= ' ' || model[i] > '~')
            len = 0;
    if (len == 0 || len > NAME_MAX_BYTES)
        return err_set(err, ERR_USAGE, "a model's name is one word of at most %d plain characters",
                       NAME_MAX_BYTES);
    return 0;
}

/* ---- names ---- */

/* Any server may have any model: its name tells what it can do. */
static const char *const large[] = { "claude-", "gpt-4", "gpt-5", "gpt-6", "gemini", NULL };
static const char *const seeing[] = { "-vl",     "vl-",    "vision",  "llava",
                                      "pixtral", "gemma3", "gemma-3", NULL };

static bool has_mark(const char *model, const char *const *marks)
{
    for (; *marks; marks++)
        if (strstr(model, *marks))
            return true;
    return false;
}

static bool looks_seeing(const char *model)
{
    return has_mark(model, large) || has_mark(model, seeing);
}

static int find_of_provider(const struct llm_provider *provider, const char *model,
                            struct llm_target *out, struct err *err)
{
    own_buf name = BUF_INIT(4096);
    if (!*model && provider->usual)
        model = provider->usual;
    if (!*model) {
        err_set(err, ERR_USAGE, "'%s' needs the name of a model", provider->name);
        err_hint(err, "e.g. %s/qwen3:8b; 'cupel models' lists its models", provider->name);
        return -1;
    }
    own_str base = llm_provider_base(provider);
    if (check_model(model, err) < 0)
        return -1;
    if (!*base) {
        err_set(err, ERR_ABSENT, "'%s/' needs the server's base URL", provider->name);
        err_hint(err, "set %s, e.g. to http://127.0.0.1:8080/v1", provider->base_variable);
        return -1;
    }
    if (check_url(base, err) < 0)
        return err_wrap(err, "variable '%s'", provider->base_variable);
    buf_printf(&name, "%s/%s", provider->name, model);
    *out = (struct llm_target){ .name = buf_take(&name),
                                .wire = provider->wire,
                                .provider = provider,
                                .base_url = take_ptr(base),
                                .model = buf_strdup(str_of(model)),
                                .sees = provider->hosted ? provider->family || looks_seeing(model)
                                                         : looks_seeing(model),
                                .calls_tools = provider->hosted || has_mark(model, large) };
    return 0;
}

/* WIRE+URL#NAME. A hosted provider's own URL gets its key too. */
static int find_by_url(const struct llm_wire *wire, const char *spec, const char *url,
                       struct llm_target *out, struct err *err)
{
    const char *mark = strchr(url, '#');
    if (!mark) {
        err_set(err, ERR_USAGE, "'%.200s' does not name a model", spec);
        err_hint(err, "write %s+URL#NAME", wire->name);
        return -1;
    }
    own_str place = buf_strdup((struct str){ url, (size_t)(mark - url) });
    own_str base = without_slash(place);
    if (check_url(base, err) < 0 || check_model(mark + 1, err) < 0)
        return -1;
    const struct llm_provider *owner = NULL;
    for (size_t i = 0; i < llm_provider_count && !owner; i++) {
        own_str of = llm_provider_base(&llm_providers[i]);
        bool same = llm_providers[i].hosted && strcmp(of, base) == 0;
        owner = same ? &llm_providers[i] : NULL;
    }
    *out = (struct llm_target){ .name = buf_strdup(str_of(spec)),
                                .wire = wire,
                                .provider = owner,
                                .base_url = take_ptr(base),
                                .model = buf_strdup(str_of(mark + 1)),
                                .sees = wire != &llm_wire_chat || looks_seeing(mark + 1),
                                .calls_tools = wire != &llm_wire_chat ||
                                               has_mark(mark + 1, large) };
    return 0;
}

static const char *known_at(const void *table, size_t i)
{
    (void)table;
    return llm_known_models[i];
}

static int fail_unknown(const char *spec, struct err *err)
{
    const char *near = opt_nearest(spec, array_len(llm_known_models) - 1, known_at, NULL);
    err_set(err, ERR_ABSENT, "unknown model '%.200s'", spec);
    if (near)
        err_hint(err, "did you mean %s?", near);
    else
        err_hint(err, HOW);
    return -1;
}

int llm_target_find(const char *spec, struct llm_target *out, struct err *err)
{
    const char *plus = strchr(spec, '+');
    const struct llm_wire *wire = plus ? llm_wire_find((struct str){ spec, (size_t)(plus - spec) })
                                       : NULL;
    if (wire && strstr(plus, "://"))
        return find_by_url(wire, spec, plus + 1, out, err);
    struct str first = { spec, strcspn(spec, "/") };
    for (size_t i = 0; i < llm_provider_count; i++) {
        const struct llm_provider *provider = &llm_providers[i];
        if (str_is(first, provider->name))
            return find_of_provider(provider, spec + first.len + (spec[first.len] == '/'), out,
                                    err);
        if (provider->family && strncmp(spec, provider->family, strlen(provider->family)) == 0)
            return find_of_provider(provider, spec, out, err);
    }
    return fail_unknown(spec, err);
}

void llm_target_done(struct llm_target *target)
{
    free(target->name);
    free(target->base_url);
    free(target->model);
    if (target->key)
        explicit_bzero(target->key, strlen(target->key));
    free(target->key);
    *target = (struct llm_target){ 0 };
}

/* ---- keys ---- */

int llm_target_find_key(struct llm_target *target, struct err *err)
{
    const struct llm_provider *provider = target->provider;
    const char *rest = strstr(target->base_url, "://") + 3;
    own_str place = buf_strdup((struct str){ rest, strcspn(rest, "/") });
    int rc = provider ? llm_key_find(provider->key_variable, provider->name, &target->key,
                                     &target->key_from, err)
                      : llm_key_find("CUPEL_API_KEY", place, &target->key, &target->key_from, err);
    bool needed = provider && provider->hosted && strcmp(target->base_url, provider->base_url) == 0;
    if (rc == 0 && !target->key && !needed)
        target->key_from = LLM_KEY_NONE;
    return rc;
}

int llm_target_usual(char **out, struct err *err)
{
    const char *named = getenv("CUPEL_MODEL");
    *out = named && *named ? buf_strdup(str_of(named)) : NULL;
    for (size_t i = 0; i < llm_provider_count && !*out; i++) {
        const struct llm_provider *provider = &llm_providers[i];
        own_str key = NULL;
        enum llm_key_from from;
        if (!provider->hosted)
            continue;
        if (llm_key_find(provider->key_variable, provider->name, &key, &from, err) < 0)
            return -1;
        if (!key)
            continue;
        explicit_bzero(key, strlen(key));
        own_buf spec = BUF_INIT(4096);
        buf_printf(&spec, "%s/%s", provider->name, provider->usual);
        *out = buf_take(&spec);
    }
    return 0;
}
