/* The server, model and key of a name. Runs as the caller, before rights are dropped. */
#ifndef LLM_TARGET_H
#define LLM_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "llm/wire.h"

struct llm_provider {
    const char *name;
    const struct llm_wire *wire;
    const char *base_url;      /* without a final slash; NULL: only by its variable */
    const char *base_variable; /* overrides base_url */
    const char *key_variable;  /* NULL: no known key */
    const char *usual;         /* the model if only the provider is named; NULL: none */
    const char *family;        /* names with this prefix need no "NAME/"; NULL: none */
    bool hosted;               /* by its maker: needs a key; tools and pictures work */
};
extern const struct llm_provider llm_providers[];
extern const size_t llm_provider_count;

/* Models known to work well with cupel: "anthropic/claude-opus-5". Ends in NULL. */
extern const char *const llm_known_models[];

enum llm_key_from { LLM_KEY_NONE, LLM_KEY_ENVIRONMENT, LLM_KEY_FILE, LLM_KEY_MISSING };

struct llm_target {
    char *name;  /* as llm_name gives it */
    const struct llm_wire *wire;
    const struct llm_provider *provider; /* NULL: an unknown base URL */
    char *base_url;
    char *model; /* as the server knows it */
    char *key;   /* NULL: none is sent */
    enum llm_key_from key_from;
    bool sees, calls_tools;
};

/* By name, without its key; ERR_ABSENT for an unknown model. */
int llm_target_find(const char *spec, struct llm_target *out, struct err *err);
/* Finds its key. LLM_KEY_MISSING is not an error here. */
int llm_target_find_key(struct llm_target *target, struct err *err);
void llm_target_done(struct llm_target *target);

/* A provider's configured base URL; heap, "" for none. */
char *llm_provider_base(const struct llm_provider *provider);
/* The default model's spec; heap, NULL if nothing is configured. -1 with err if a key file cannot
 * be trusted. */
int llm_target_usual(char **out, struct err *err);

/* A key from its variable, else by `name` from the key file; *out is NULL if there is none. */
int llm_key_find(const char *variable, const char *name, char **out, enum llm_key_from *out_from,
                 struct err *err);

/* "$XDG_CONFIG_HOME/cupel/FILE", or under ~/.config; heap, NULL without a home. */
char *llm_config_path(const char *file);
/* The JSON object in such a file; *out is NULL if there is none. `secret`: others must not be able
 * to read it. */
int llm_config_read(const char *file, bool secret, json_t **out, struct err *err);

#endif
