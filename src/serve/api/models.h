/* The models of a service: opened once, as the caller; each task gets its own copies. A client
 * names one of them, and no other. Runs in the serve process. */
#ifndef SERVE_API_MODELS_H
#define SERVE_API_MODELS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "serve/api/tasks_thread.h"

struct api_models;

struct api_models_options {
    const char *model;          /* NULL: $CUPEL_MODEL, else by the key that is set */
    const char *judge, *planner; /* NULL: the task's own; none */
    const char *const *more;    /* that a task may name too; NULL ends, or NULL */
};

/* Before rights are dropped, before the engine starts and before there are threads: reads keys and
 * removes them from the environment, loads libraries, forks helpers. Where nothing is configured it
 * gives an object without models: tasks are refused with the fix. */
struct api_models *api_models_open(const struct api_models_options *options, struct err *err);
/* After rights are dropped. */
int api_models_ready(struct api_models *models, struct err *err);
void api_models_close(struct api_models *models);
/* Is there a model for a task that names none? */
bool api_models_any(const struct api_models *models);

/* The names of a task's models, as its request has them. */
struct api_models_wish {
    const json_t *model;   /* a name, or NULL */
    const json_t *judge;   /* a name, true: the task's own, false or "off": none; or NULL */
    const json_t *planner; /* a name, true, false; or NULL */
};
/* Copies for a task. ERR_ABSENT: there is no model at all; ERR_INPUT: not that one. */
int api_models_choose(struct api_models *models, const struct api_models_wish *wish,
                      struct tasks_models *out, struct err *err);

#endif
