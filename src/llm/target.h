/* Which server and which model a name means, and with which key. As the caller, before powers
 * are given up. */
#ifndef LLM_TARGET_H
#define LLM_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "llm/wire.h"

/* One row for each provider that has a name. */
struct llm_provider {
    const char *name;
    const struct llm_wire *wire;
    const char *base_url;      /* without a slash at its end; NULL: only by its variable */
    const char *base_variable; /* overrides base_url */
    const char *key_variable;  /* NULL: no key is known for it */
    const char *usual;         /* the model where only the provider is named; NULL: none */
    const char *family;        /* names that begin so are its own, without "NAME/"; NULL: none */
    bool hosted;               /* by its maker: a key is needed, tools and pictures work */
};
extern const struct llm_provider llm_providers[];
extern const size_t llm_provider_count;

/* Models that are known to work well with cupel: "anthropic/claude-opus-5". NULL ends them. */
extern const char *const llm_known_models[];

enum llm_key_from { LLM_KEY_NONE, LLM_KEY_ENVIRONMENT, LLM_KEY_FILE, LLM_KEY_MISSING };

struct llm_target {
    char *name;  /* as llm_name gives it */
    const struct llm_wire *wire;
    const struct llm_provider *provider; /* NULL: a base URL that is nobody's */
    char *base_url;
    char *model; /* as the server knows it */
    char *key;   /* NULL: none is sent */
    enum llm_key_from key_from;
    bool sees, calls_tools;
};

/* By name, without its key; ERR_ABSENT where there is no such model. */
int llm_target_find(const char *spec, struct llm_target *out, struct err *err);
/* The key that belongs to it. LLM_KEY_MISSING is no error here. */
int llm_target_find_key(struct llm_target *target, struct err *err);
void llm_target_done(struct llm_target *target);

/* A provider's base URL as configured; heap, "" where it has none. */
char *llm_provider_base(const struct llm_provider *provider);
/* The spec of the model that is meant where none is named; heap, NULL where nothing is
 * configured. -1 with err where a key file is not to be trusted. */
int llm_target_usual(char **out, struct err *err);

/* A key from its variable, else by `name` from the key file; *out NULL where there is none. */
int llm_key_find(const char *variable, const char *name, char **out, enum llm_key_from *out_from,
                 struct err *err);

/* "$XDG_CONFIG_HOME/cupel/FILE", or under ~/.config; heap, NULL without a home. */
char *llm_config_path(const char *file);
/* The JSON object in such a file; *out NULL where there is no file. `secret`: it must be
 * closed to others. */
int llm_config_read(const char *file, bool secret, json_t **out, struct err *err);

#endif
