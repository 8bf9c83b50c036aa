/* The languages: of each its driver, the files beside it, its interpreter and that one's arguments.
 * A table. Runs in the engine. */
#include "engine/talk/plan_int.h"

#define BASH_TOOLS ENGINE_BUILTIN_TOOLS_SH, ENGINE_BUILTIN_TOOL

static const struct plan_language languages[REQUEST_LANGUAGES] = {
    /* A waiting one in a pool may become a session. */
    [REQUEST_PYTHON] = { ENGINE_BUILTIN_DRIVER_PY,
                         { [PLAN_RUN] = { PLAN_PYTHON_FILES },
                           [PLAN_WAITING] = { PLAN_PYTHON_SESSION_FILES },
                           [PLAN_SESSION] = { PLAN_PYTHON_SESSION_FILES } },
                         PLAN_PYTHON,
                         { "-S", NULL },
                         false,
                         NULL,
                         NULL,
                         ENGINE_BUILTIN_CELLS_PY,
                         NULL },
    [REQUEST_JAVASCRIPT] = { ENGINE_BUILTIN_DRIVER_JS,
                             { [PLAN_RUN] = { ENGINE_BUILTIN_ENDING_JS, ENGINE_BUILTIN_ORDER_JS,
                                              ENGINE_BUILTIN_TOOLS_JS },
                               [PLAN_WAITING] = { ENGINE_BUILTIN_REHEARSE_JS,
                                                  ENGINE_BUILTIN_ENDING_JS,
                                                  ENGINE_BUILTIN_TYPES_JS, ENGINE_BUILTIN_ORDER_JS,
                                                  ENGINE_BUILTIN_TOOLS_JS },
                               [PLAN_SESSION] = { ENGINE_BUILTIN_CELLS_JS, ENGINE_BUILTIN_NAMES_JS,
                                                  ENGINE_BUILTIN_ENDING_JS, ENGINE_BUILTIN_ORDER_JS,
                                                  ENGINE_BUILTIN_TOOLS_JS } },
                             PLAN_NODE,
                             { "--expose-internals", "--experimental-vm-modules", NULL },
                             false,
                             NULL,
                             NULL,
                             ENGINE_BUILTIN_CELLS_JS,
                             NULL },
    [REQUEST_BASH] = { ENGINE_BUILTIN_DRIVER_SH,
                       { [PLAN_RUN] = { BASH_TOOLS },
                         [PLAN_WAITING] = { ENGINE_BUILTIN_CELLS_SH, BASH_TOOLS },
                         [PLAN_SESSION] = { ENGINE_BUILTIN_CELLS_SH, BASH_TOOLS } },
                       PLAN_BASH,
                       { NULL },
                       true,
                       "BASH_ENV=" BOX_PLANT_DIR "/driver.sh",
                       "BASH_ENV=" BOX_PLANT_DIR "/cells.sh",
                       0,
                       NULL },
    /* A waiting one is JavaScript's: the request says that it has types. */
    [REQUEST_TYPESCRIPT] = { ENGINE_BUILTIN_DRIVER_JS,
                             { [PLAN_RUN] = { ENGINE_BUILTIN_TYPES_JS, ENGINE_BUILTIN_ENDING_JS,
                                              ENGINE_BUILTIN_ORDER_JS, ENGINE_BUILTIN_TOOLS_JS },
                               [PLAN_SESSION] = { ENGINE_BUILTIN_CELLS_JS, ENGINE_BUILTIN_NAMES_JS,
                                                  ENGINE_BUILTIN_ENDING_JS, ENGINE_BUILTIN_TYPES_JS,
                                                  ENGINE_BUILTIN_ORDER_JS,
                                                  ENGINE_BUILTIN_TOOLS_JS } },
                             PLAN_NODE,
                             { "--expose-internals", "--experimental-vm-modules", NULL },
                             false,
                             NULL,
                             NULL,
                             ENGINE_BUILTIN_CELLS_JS,
                             NULL },
    /* Runs alone: a driver in Python starts the interpreter and reads its errors. */
    [REQUEST_R] = { ENGINE_BUILTIN_FOREIGN_PY,
                    { [PLAN_RUN] = { ENGINE_BUILTIN_MAIN_R } },
                    PLAN_PYTHON,
                    { "-S", "-s", NULL },
                    false,
                    NULL,
                    NULL,
                    0,
                    "r" },
    [REQUEST_JAVA] = { ENGINE_BUILTIN_FOREIGN_PY,
                       { [PLAN_RUN] = { 0 } },
                       PLAN_PYTHON,
                       { "-S", "-s", NULL },
                       false,
                       NULL,
                       NULL,
                       0,
                       "java" },
};

/* A command needs nothing of the image: `shell` is a static program. */
static const struct plan_language command_language = { .driver = ENGINE_BUILTIN_SHELL,
                                                  .program = PLAN_NOTHING };

const struct plan_language *plan_language_of(const struct request *request)
{
    return request->command ? &command_language : &languages[request->language];
}
