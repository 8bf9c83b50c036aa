/* The list of models, and a task's choice. Runs in the serve process: the first part as the caller,
 * before the engine starts; the choice in its loop. Nothing here waits. */
#include "serve/api/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"
#include "llm/llm.h"

#define MODELS_MAX 67 /* the list of the configuration, and three roles */

struct api_models {
    struct {
        char *spec; /* as configured; NULL: the usual one */
        struct llm_model *model;
    } rows[MODELS_MAX];
    size_t count;
    struct llm_model *model, *judge, *planner; /* of rows; the last two may be NULL */
};

static int add(struct api_models *models, const char *spec, struct llm_model **out, struct err *err)
{
    for (size_t i = 0; spec && i < models->count; i++)
        if (models->rows[i].spec && strcmp(models->rows[i].spec, spec) == 0) {
            *out = models->rows[i].model;
            return 0;
        }
    if (models->count == MODELS_MAX)
        return err_set(err, ERR_INPUT, "more than %d models are configured", MODELS_MAX);
    if (llm_open(spec, out, err) < 0)
        return -1;
    models->rows[models->count].spec = spec ? buf_strdup(str_of(spec)) : NULL;
    models->rows[models->count++].model = *out;
    return 0;
}

static int add_roles(struct api_models *models, const struct api_models_options *options,
                     struct err *err)
{
    if (options->judge && add(models, options->judge, &models->judge, err) < 0)
        return err_wrap(err, "judge");
    if (options->planner && add(models, options->planner, &models->planner, err) < 0)
        return err_wrap(err, "planner");
    for (size_t i = 0; options->more && options->more[i]; i++) {
        struct llm_model *one = NULL;
        if (add(models, options->more[i], &one, err) < 0)
            return err_wrap(err, "models");
        models->model = models->model ? models->model : one;
    }
    return 0;
}

struct api_models *api_models_open(const struct api_models_options *options, struct err *err)
{
    struct api_models *models = buf_alloc_zero(1, sizeof *models);
    int rc = add(models, options->model, &models->model, err);
    if (rc < 0 && !options->model && err->kind == ERR_ABSENT) {
        *err = ERR_INIT;
        rc = 0;
    }
    if (rc == 0)
        rc = add_roles(models, options, err);
    llm_forget_keys();
    if (rc == 0)
        return models;
    api_models_close(models);
    return NULL;
}

int api_models_ready(struct api_models *models, struct err *err)
{
    for (size_t i = 0; i < models->count; i++)
        if (llm_ready(models->rows[i].model, err) < 0)
            return -1;
    return 0;
}

void api_models_close(struct api_models *models)
{
    if (!models)
        return;
    for (size_t i = 0; i < models->count; i++) {
        llm_close(models->rows[i].model);
        free(models->rows[i].spec);
    }
    free(models);
}

/* --- the choice --- */

bool api_models_any(const struct api_models *models)
{
    return models->model != NULL;
}

static int refuse(const struct api_models *models, const char *field, const json_t *given,
                  struct err *err)
{
    char value[160];
    own_buf names = BUF_INIT(sizeof err->bound - 1);
    for (size_t i = 0; i < models->count; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", llm_name(models->rows[i].model));
    json_brief(given, value, sizeof value);
    err_input(err, field, value, buf_str(&names).at, "the %s %.100s is not one of this service",
              field, value);
    err_hint(err, "name a model that the service's configuration lists, or leave '%s' out", field);
    return -1;
}

/* By the name in the configuration, or by the one that reports have. */
static int find(const struct api_models *models, const char *field, const json_t *given,
                struct llm_model **out, struct err *err)
{
    for (size_t i = 0; json_is_string(given) && i < models->count; i++) {
        const char *spec = models->rows[i].spec;
        struct str name = json_str(given);
        if (!str_is(name, llm_name(models->rows[i].model)) && !(spec && str_is(name, spec)))
            continue;
        *out = models->rows[i].model;
        return 0;
    }
    return refuse(models, field, given, err);
}

/* NULL in *out: none. */
static int find_helper(const struct api_models *models, const char *field, const json_t *given,
                       struct llm_model *own, struct llm_model *usual, struct llm_model **out,
                       struct err *err)
{
    bool off = json_is_false(given) || (json_is_string(given) && str_is(json_str(given), "off"));
    *out = off ? NULL : json_is_true(given) ? own : usual;
    return !given || off || json_is_true(given) ? 0 : find(models, field, given, out, err);
}

/* The same model for several roles is one copy, as in `cupel ask`. */
static int copy(struct llm_model *from, struct llm_model *own, struct llm_model *own_copy,
                struct llm_model **out, struct err *err)
{
    *out = from == own ? own_copy : NULL;
    return !from || *out ? 0 : llm_again(from, out, err);
}

int api_models_choose(struct api_models *models, const struct api_models_wish *wish,
                      struct tasks_models *out, struct err *err)
{
    struct llm_model *model = models->model, *judge = NULL, *planner = NULL;
    if (!model) {
        err_set(err, ERR_ABSENT, "no model is configured on this service");
        err_hint(err, "the operator sets \"model\" in config.json, e.g. \"ollama/qwen3:8b\", or "
                      "CUPEL_MODEL or ANTHROPIC_API_KEY in the environment of 'cupel serve', and "
                      "starts it again");
        return -1;
    }
    if ((wish->model && find(models, "model", wish->model, &model, err) < 0) ||
        find_helper(models, "judge", wish->judge, model, models->judge ? models->judge : model,
                    &judge, err) < 0 ||
        find_helper(models, "planner", wish->planner, model, models->planner, &planner, err) < 0)
        return -1;
    struct tasks_models made = { 0 };
    if (llm_again(model, &made.model, err) < 0 ||
        copy(judge, model, made.model, &made.judge, err) < 0 ||
        copy(planner, model, made.model, &made.planner, err) < 0) {
        tasks_models_close(&made);
        return -1;
    }
    *out = made;
    return 0;
}
