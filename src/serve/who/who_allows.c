/* The requests that a token may make: profile, image, tools and the largest limits. Runs in the
 * serve process. A value above a bound is refused, never lowered: a caller that silently got less
 * would misread the result. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "serve/who/who_int.h"

static void add_words(const json_t *list, char *out, size_t room)
{
    size_t i, len = 0;
    json_t *word;
    out[0] = 0;
    json_array_foreach (list, i, word) {
        int n = snprintf(out + len, room - len, "%s%s", i ? ", " : "", json_string_value(word));
        if (n < 0 || (size_t)n >= room - len)
            return;
        len += (size_t)n;
    }
}

static bool is_listed(const json_t *list, const char *name)
{
    size_t i;
    json_t *word;
    json_array_foreach (list, i, word)
        if (strcmp(json_string_value(word), name) == 0)
            return true;
    return false;
}

static int refuse_word(const struct who_token *token, enum tokens_list_id id, const char *field,
                       const char *value, struct err *err)
{
    const json_t *list = token->quota.lists[id];
    char words[80];
    add_words(list, words, sizeof words);
    if (json_array_size(list) == 0)
        snprintf(words, sizeof words, "none");
    err_input(err, field, value, words, "the token '%s' may not use %s '%.100s'", token->name,
              field, value);
    err->kind = ERR_FORBIDDEN;
    err_hint(err, "it may use: %s", words);
    return -1;
}

static int check_word(const struct who_token *token, enum tokens_list_id id, const char *field,
                      const char *value, struct err *err)
{
    const json_t *list = token->quota.lists[id];
    return !list || is_listed(list, value) ? 0 : refuse_word(token, id, field, value, err);
}

/* The engine would choose among all images. */
static int refuse_choice(const struct who_token *token, const struct request *request,
                         struct err *err)
{
    const json_t *first = json_array_get(request->packages, 0);
    char words[80];
    add_words(token->quota.lists[TOKENS_IMAGES], words, sizeof words);
    err_input(err, "packages", json_string_value(first), "beside 'image'",
              "the token '%s' may not let 'packages' choose the image", token->name);
    err->kind = ERR_FORBIDDEN;
    err_hint(err, "name the image too; it may use: %s", *words ? words : "none");
    return -1;
}

/* A listed NAME allows every digest of it; NAME@sha256:... that one alone. */
static int check_image(const struct who_token *token, const struct request *request,
                       struct err *err)
{
    const json_t *list = token->quota.lists[TOKENS_IMAGES];
    const char *name = request->image ? request->image : "host";
    char pinned[TOKENS_WORD_MAX + 1] = "";
    if (request->image_digest)
        snprintf(pinned, sizeof pinned, "%s@%s", name, request->image_digest);
    if (list && request->packages && !request->image_given)
        return refuse_choice(token, request, err);
    if (!list || is_listed(list, name) || (*pinned && is_listed(list, pinned)))
        return 0;
    return refuse_word(token, TOKENS_IMAGES, "image", *pinned ? pinned : name, err);
}

static int check_limit(const struct who_token *token, enum limits_id id, int64_t wanted,
                       struct err *err)
{
    int64_t most = token->quota.limits[id];
    if (most == TOKENS_NO_BOUND || wanted <= most)
        return 0;
    char field[64], value[64], number[64], bound[80];
    own_json have = limits_value_json(id, wanted);
    own_json want = limits_value_json(id, most);
    snprintf(field, sizeof field, "limits.%s", limits_rows[id].name);
    json_brief(have, value, sizeof value);
    json_brief(want, number, sizeof number);
    snprintf(bound, sizeof bound, "at most %s", number);
    err_input(err, field, value, bound, "field '%s' is %s; the token '%s' may ask for %s", field,
              value, token->name, bound);
    err->kind = ERR_FORBIDDEN;
    err_hint(err, "set %s to %s or less; a field that is left out has its profile's value", field,
             number);
    return -1;
}

int who_allows(const struct who_token *token, const struct request *request, struct err *err)
{
    if (check_word(token, TOKENS_PROFILES, "profile", request->profile->name, err) < 0 ||
        check_image(token, request, err) < 0)
        return -1;
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++)
        if (check_limit(token, id, request->limits.value[id], err) < 0)
            return -1;
    return 0;
}

int who_allows_tool(const struct who_token *token, const char *tool, struct err *err)
{
    return check_word(token, TOKENS_TOOLS, "tools", tool, err);
}
