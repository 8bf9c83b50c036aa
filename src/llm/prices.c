/* Prices in US dollars per million tokens. The built-in ones are of the day this was written; the
 * user's prices.json overrides them:
 *   {"anthropic/claude-opus-5": {"input": 5, "cache_read": 0.5, "cache_write": 6.25,
 *    "output": 25}}
 * An unknown price is never counted as zero. */
#include "llm/prices.h"

#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "llm/target.h"

#define BYTES_PER_TOKEN 2.5  /* less than in any text of a model */
#define IMAGE_TOKENS 4784.0
#define LONG_INPUT_FACTOR 2.0
#define LONG_OUTPUT_FACTOR 1.5

static const struct {
    const char *name;
    struct llm_price price;
} builtin[] = {
    { "anthropic/claude-opus-5", { 5, 0.5, 6.25, 25, -1 } },
    { "anthropic/claude-sonnet-5", { 2, 0.2, 2.5, 10, -1 } },
    { "anthropic/claude-haiku-4-5", { 1, 0.1, 1.25, 5, -1 } },
    { "anthropic/claude-fable-5", { 10, 1, 12.5, 50, -1 } },
    { "openai/gpt-6.1-sol", { 2, 0.1, -1, 10, 272000 } },
    { "openai/gpt-6.1-terra", { 1, 0.05, 1.25, 5, 272000 } },
    { "openai/gpt-6-luna", { 0.1, 0.01, 0.125, 0.5, 272000 } },
    { "openai/gpt-6-astra", { 10, 1, 12.5, 50, 272000 } },
};

/* Without "-20261021" or "-2026-10-21" at its end. */
static struct str without_date(struct str name)
{
    static const char *const shapes[] = { "-dddddddd", "-dddd-dd-dd" };
    for (size_t i = 0; i < array_len(shapes); i++) {
        size_t len = strlen(shapes[i]), same = 0;
        if (name.len <= len)
            continue;
        const char *end = name.at + name.len - len;
        while (same < len && (shapes[i][same] == 'd' ? end[same] >= '0' && end[same] <= '9'
                                                     : end[same] == shapes[i][same]))
            same++;
        if (same == len)
            return (struct str){ name.at, name.len - len };
    }
    return name;
}

/* An entry matches a name with a variant ("-latest", ":free"), but not another version
 * ("claude-sonnet-5" is not "claude-sonnet-5-5"). */
static bool holds_for(struct str entry, struct str name)
{
    if (entry.len == 0 || entry.len > name.len || memcmp(entry.at, name.at, entry.len) != 0)
        return false;
    if (entry.len == name.len || strchr("/:", entry.at[entry.len - 1]))
        return true;
    const char *rest = name.at + entry.len;
    bool variant = name.len > entry.len + 1 && (rest[1] < '0' || rest[1] > '9');
    return *rest == ':' || *rest == '@' || (*rest == '-' && variant);
}

static int read_price(const char *entry, const json_t *value, struct llm_price *out,
                      struct err *err)
{
    const struct {
        const char *field;
        double *to;
    } rows[] = { { "input", &out->input },
                 { "cache_read", &out->cache_read },
                 { "cache_write", &out->cache_write },
                 { "output", &out->output } };
    size_t known = 0;
    *out = LLM_PRICE_UNKNOWN;
    for (size_t i = 0; i < array_len(rows); i++) {
        const json_t *number = json_object_get(value, rows[i].field);
        known += number != NULL;
        if (number && (!json_is_number(number) || json_number_value(number) < 0))
            return err_set(err, ERR_INPUT, "prices.json: '%s' of '%.100s' is not a price",
                           rows[i].field, entry);
        if (number)
            *rows[i].to = json_number_value(number);
    }
    if (!json_is_object(value) || known != json_object_size(value) || out->input < 0 ||
        out->output < 0) {
        err_set(err, ERR_INPUT, "prices.json: '%.100s' is not a price", entry);
        err_hint(err, "write {\"input\", \"output\", \"cache_read\"?, \"cache_write\"?}, in US "
                      "dollars for a million tokens");
        return -1;
    }
    return 0;
}

/* 1 if the user's table has it. */
static int find_in_file(struct str name, struct llm_price *out, struct err *err)
{
    own_json file = NULL;
    size_t best = 0;
    const char *entry;
    json_t *value;
    if (llm_config_read("prices.json", /* secret= */ false, &file, err) < 0)
        return -1;
    json_object_foreach (file, entry, value) {
        struct llm_price price;
        if (read_price(entry, value, &price, err) < 0)
            return -1;
        if (holds_for(str_of(entry), name) && strlen(entry) > best) {
            best = strlen(entry);
            *out = price;
        }
    }
    return best > 0;
}

int llm_price_find(const char *name, struct llm_price *out, struct err *err)
{
    struct str plain = without_date(str_of(name));
    size_t best = 0;
    *out = LLM_PRICE_UNKNOWN;
    int found = find_in_file(plain, out, err);
    if (found != 0)
        return found < 0 ? -1 : 0;
    for (size_t i = 0; i < array_len(builtin); i++)
        if (holds_for(str_of(builtin[i].name), plain) && strlen(builtin[i].name) > best) {
            best = strlen(builtin[i].name);
            *out = builtin[i].price;
        }
    return 0;
}

static double part(int64_t tokens, double price, double otherwise)
{
    return tokens > 0 ? (double)tokens * (price >= 0 ? price : otherwise) / 1e6 : 0;
}

double llm_price_of(const struct llm_price *price, const struct llm_usage *usage)
{
    if (price->input < 0 || price->output < 0 || usage->input < 0 || usage->output < 0)
        return -1;
    int64_t all = usage->input + (usage->cache_read > 0 ? usage->cache_read : 0) +
                  (usage->cache_write > 0 ? usage->cache_write : 0);
    bool is_long = price->long_from > 0 && (double)all > price->long_from;
    return (is_long ? LONG_INPUT_FACTOR : 1) *
               (part(usage->input, price->input, 0) +
                part(usage->cache_read, price->cache_read, price->input) +
                part(usage->cache_write, price->cache_write, price->input)) +
           (is_long ? LONG_OUTPUT_FACTOR : 1) * part(usage->output, price->output, 0);
}

/* Estimates a value's tokens from the size of its texts. */
static double tokens_of(const json_t *value)
{
    double sum = 0;
    size_t i;
    const char *name;
    json_t *inner;
    if (json_is_string(value))
        return (double)json_string_length(value) / BYTES_PER_TOKEN + 1;
    if (llm_part_is(value, "image"))
        return IMAGE_TOKENS;
    json_array_foreach (value, i, inner)
        sum += tokens_of(inner);
    json_object_foreach ((json_t *)(uintptr_t)value, name, inner)
        sum += tokens_of(inner) + (double)strlen(name) / BYTES_PER_TOKEN + 1;
    return sum + 1;
}

double llm_price_bound(const struct llm_price *price, const struct llm_request *request)
{
    if (price->input < 0 || price->output < 0)
        return -1;
    double dearest = price->cache_write > price->input ? price->cache_write : price->input;
    double in = (double)strlen(request->instructions ? request->instructions : "") /
                    BYTES_PER_TOKEN +
                tokens_of(request->messages) + tokens_of(request->tools);
    double out = request->max_output_tokens > 0 ? (double)request->max_output_tokens
                                                : LLM_USUAL_OUTPUT_TOKENS;
    bool is_long = price->long_from > 0 && in > price->long_from;
    return (in * dearest * (is_long ? LONG_INPUT_FACTOR : 1) +
            out * price->output * (is_long ? LONG_OUTPUT_FACTOR : 1)) /
           1e6;
}
