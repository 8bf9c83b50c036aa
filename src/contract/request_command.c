/* Commands, of `cupel exec`: a command line in place of code. Pure. */
#include "contract/request.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "contract/request_int.h"

static int check_size(const struct request *request, char *const *argv, size_t argc,
                      struct err *err)
{
    size_t all = 0;
    for (size_t i = 0; i < request->env_count; i++)
        all += request->env[i].len + 1;
    if (argc > REQUEST_ARGS_MAX)
        return request_refuse_size("command", argc, REQUEST_ARGS_MAX, "arguments", err);
    for (size_t i = 0; i < argc; i++) {
        char field[32];
        size_t len = strlen(argv[i]);
        snprintf(field, sizeof field, "command[%zu]", i);
        if (len > REQUEST_ARG_MAX)
            return request_refuse_size(field, len, REQUEST_ARG_MAX, "bytes", err);
        all += len + 1;
    }
    if (all <= REQUEST_EXEC_MAX)
        return 0;
    request_refuse_size("command", all, REQUEST_EXEC_MAX, "bytes in all args and env together",
                        err);
    err_hint(err, "pass long values through standard input");
    return -1;
}

int request_set_command(struct request *request, char *const *argv, size_t argc,
                        const struct request_command *command, int64_t timeout_ms, struct err *err)
{
    int64_t *limit = request->limits.value;
    if (argc == 0 || !argv[0][0])
        return err_input(err, "command", "", "the name of a program", "field 'command' is empty");
    if (check_size(request, argv, argc, err) < 0)
        return -1;
    request->args = buf_alloc_zero(argc + 1, sizeof *request->args);
    for (size_t i = 0; i < argc; i++)
        request->args[i] = str_of(argv[i]);
    request->arg_count = argc;
    request->command = command;
    request->language = REQUEST_BASH; /* nothing of it runs: a command needs no interpreter */
    limit[LIMITS_TIMEOUT] = timeout_ms > 0 ? timeout_ms : REQUEST_COMMAND_MS;
    limit[LIMITS_CPU] = limit[LIMITS_TIMEOUT] / 1000 * limit[LIMITS_CPUS] + 1000;
    return 0;
}
