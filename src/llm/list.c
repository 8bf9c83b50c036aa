/* Configured and available models, for `cupel models`. Runs as the caller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "llm/llm_int.h"
#include "llm/prices.h"
#include "llm/server.h"
#include "llm/target.h"

#define LISTED_MAX 20 /* of a local server's models */

struct presence {
    bool asked, answers;
    json_t *models; /* its list, or NULL */
    char detail[256];
};

static void done(struct presence *presence)
{
    json_decref(presence->models);
}

static json_t *dollars(double price)
{
    return price < 0 ? json_null() : json_real(price);
}

static bool is_listed(const json_t *models, const char *id)
{
    size_t i;
    json_t *model;
    const json_t *data = json_object_get(models, "data");
    json_array_foreach (data, i, model)
        if (str_is(json_str(json_object_get(model, "id")), id))
            return true;
    return !json_is_array(data);
}

static int add_row(json_t *rows, const struct llm_target *target, const struct presence *presence,
                   const char *chosen, struct err *err)
{
    static const char *const from[] = { "none", "environment", "file", "missing" };
    struct llm_price price;
    const char *detail = presence->detail;
    bool known = false;
    if (llm_price_find(target->name, &price, err) < 0)
        return -1;
    for (size_t i = 0; llm_known_models[i]; i++)
        known = known || strcmp(llm_known_models[i], target->name) == 0;
    if (presence->asked && presence->answers && *detail == 0 && target->model &&
        !is_listed(presence->models, target->model))
        detail = "the server does not list this model";
    json_t *row = json_pack("{s:s,s:s,s:s?,s:s,s:o,s:o,s:o,s:o,s:b,s:b}", "model", target->name,
                            "wire", target->wire->name, "base_url", target->base_url, "key",
                            from[target->key_from], "reachable",
                            presence->asked ? json_boolean(presence->answers) : json_null(),
                            "detail", json_text(str_of(detail)), "input_usd_per_mtok",
                            dollars(price.input), "output_usd_per_mtok", dollars(price.output),
                            "chosen", chosen && strcmp(chosen, target->name) == 0, "known", known);
    json_array_append_new(rows, row);
    return 0;
}

static void ask(const struct llm_target *target, struct presence *presence)
{
    presence->asked = true;
    presence->answers = llm_server_probe(target, &presence->models, presence->detail,
                                         sizeof presence->detail) == 0;
}

static int add_named(json_t *rows, const char *spec, struct presence *presence, bool probe,
                     const char *chosen, struct err *err)
{
    struct llm_target target = { 0 };
    int rc = llm_target_find(spec, &target, err);
    if (rc == 0)
        rc = llm_target_find_key(&target, err);
    if (rc == 0 && probe && !presence->asked && target.key_from != LLM_KEY_MISSING)
        ask(&target, presence);
    if (rc == 0)
        rc = add_row(rows, &target, presence, chosen, err);
    llm_target_done(&target);
    return rc;
}

static bool has_row(const json_t *rows, const char *name)
{
    size_t i;
    json_t *row;
    json_array_foreach (rows, i, row)
        if (str_is(json_str(json_object_get(row, "model")), name))
            return true;
    return false;
}

static bool has_key(const struct llm_provider *provider)
{
    struct err err = ERR_INIT;
    own_str key = NULL;
    enum llm_key_from from;
    return llm_key_find(provider->key_variable, provider->name, &key, &from, &err) == 0 && key;
}

/* A hosted provider's known models, and its default if there is a key. */
static int add_hosted(json_t *rows, const struct llm_provider *provider, bool probe,
                      const char *chosen, struct err *err)
{
    attr_cleanup(done) struct presence presence = { 0 };
    own_buf usual = BUF_INIT(4096);
    size_t len = strlen(provider->name);
    for (size_t i = 0; llm_known_models[i]; i++) {
        const char *name = llm_known_models[i];
        if (strncmp(name, provider->name, len) == 0 && name[len] == '/' &&
            add_named(rows, name, &presence, probe, chosen, err) < 0)
            return -1;
    }
    buf_printf(&usual, "%s/%s", provider->name, provider->usual);
    if (has_row(rows, buf_str(&usual).at) || !has_key(provider))
        return 0;
    return add_named(rows, buf_str(&usual).at, &presence, probe, chosen, err);
}

static int add_local(json_t *rows, const struct llm_provider *provider, const char *chosen,
                     struct err *err)
{
    attr_cleanup(done) struct presence presence = { 0 };
    struct llm_target target = { .name = buf_strdup(str_of(provider->name)),
                                 .wire = provider->wire,
                                 .provider = provider,
                                 .base_url = llm_provider_base(provider) };
    bool there = strstr(target.base_url, "://") != NULL;
    int rc = there ? llm_target_find_key(&target, err) : 0;
    size_t i, count = 0;
    json_t *model;
    if (rc == 0 && there)
        ask(&target, &presence);
    json_array_foreach (json_object_get(presence.models, "data"), i, model) {
        own_buf spec = BUF_INIT(4096);
        struct str id = json_str(json_object_get(model, "id"));
        struct err odd = ERR_INIT; /* skips an unusable name */
        if (rc < 0 || count == LISTED_MAX || id.len == 0 || memchr(id.at, 0, id.len) ||
            buf_printf(&spec, "%s/%s", provider->name, id.at) < 0)
            continue;
        count += add_named(rows, buf_str(&spec).at, &presence, false, chosen, &odd) == 0;
    }
    llm_target_done(&target);
    return rc;
}

static json_t *plain_row(const char *spec)
{
    return json_pack("{s:s,s:s%,s:n,s:s,s:n,s:s,s:n,s:n,s:b,s:b}", "model", spec, "wire", spec,
                     strcspn(spec, ":"), "base_url", "key", "none", "reachable", "detail", "",
                     "input_usd_per_mtok", "output_usd_per_mtok", "chosen", 1, "known", 0);
}

static int add_chosen(json_t *rows, const char *spec, bool probe, char **out_name, struct err *err)
{
    attr_cleanup(done) struct presence presence = { 0 };
    struct llm_target target = { 0 };
    if (strncmp(spec, "exec:", 5) == 0 || strncmp(spec, "replay:", 7) == 0) {
        json_array_append_new(rows, plain_row(spec));
        return 0;
    }
    if (llm_target_find(spec, &target, err) < 0)
        return -1;
    *out_name = buf_strdup(str_of(target.name));
    llm_target_done(&target);
    return add_named(rows, spec, &presence, probe, *out_name, err);
}

json_t *llm_list(bool probe, struct err *err)
{
    own_json rows = json_array();
    own_str spec = NULL;
    own_str name = NULL;
    if (llm_target_usual(&spec, err) < 0 || (spec && add_chosen(rows, spec, probe, &name, err) < 0))
        return NULL;
    for (size_t i = 0; i < llm_provider_count; i++) {
        own_json more = json_array();
        int rc = 0;
        if (llm_providers[i].hosted)
            rc = add_hosted(more, &llm_providers[i], probe, name, err);
        else if (probe)
            rc = add_local(more, &llm_providers[i], name, err);
        if (rc < 0)
            return NULL;
        size_t at;
        json_t *row;
        json_array_foreach (more, at, row)
            if (!has_row(rows, json_string_value(json_object_get(row, "model"))))
                json_array_append(rows, row);
    }
    return take_ptr(rows);
}
