/* Any bytes as config.json: a refusal names its cause, and all that is taken is within its bounds
 * and is taken again from its own description. */
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "contract/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void use(struct config *config)
{
    int64_t caps[HTTP_CAP_COUNT];
    struct limits ceilings;
    struct err err = ERR_INIT;
    struct config_address address;
    config_caps(config, caps);
    config_ceilings(config, &ceilings);
    for (enum http_cap cap = 0; cap < HTTP_CAP_COUNT; cap++)
        if (caps[cap] < http_caps[cap].least || caps[cap] > http_caps[cap].most)
            abort();
    for (enum limits_id id = 0; id < LIMITS_COUNT; id++)
        if (ceilings.value[id] < limits_rows[id].least || ceilings.value[id] > limits_rows[id].most)
            abort();
    const char **listen = config_texts(config, CONFIG_LISTEN);
    for (const char **at = listen; *at; at++)
        if (config_address_read(*at, &address, &err) < 0)
            abort();
    free(listen);
    json_decref(config_describe(config));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    own_config config, again;
    struct err err = ERR_INIT;
    config_init(&config);
    config_init(&again);
    if (config_take_file(&config, (struct str){ (const char *)bytes, len }, "file", &err) < 0) {
        if (err.kind != ERR_INPUT || strncmp(err.text, "file: ", 6) != 0)
            abort();
        return 0;
    }
    use(&config);
    for (enum config_key key = 0; key < CONFIG_COUNT; key++)
        if (config_is_set(&config, key) &&
            config_take(&again, key, json_incref(config.at[key].value), "again", &err) < 0)
            abort();
    config_check(&config, &err);
    return 0;
}
