/* Runs code through libcupel, prints its output as it comes and then the result.
 *   cc run.c -o run -lcupel && ./run 'print(1 + 1)'
 * An engine that runs already is used; else the library starts one. */
#include <cupel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The request's JSON around some code; free it. */
static char *request_of(const char *code)
{
    char *text = malloc(6 * strlen(code) + 64), *at = text;
    if (!text)
        return NULL;
    at += snprintf(at, 64, "{\"language\":\"python\",\"code\":\"");
    for (; *code; code++) {
        if ((unsigned char)*code < 0x20)
            at += snprintf(at, 7, "\\u%04x", (unsigned)*code);
        else if (*code == '"' || *code == '\\')
            at += snprintf(at, 3, "\\%c", *code);
        else
            *at++ = *code;
    }
    snprintf(at, 3, "\"}");
    return text;
}

static int on_event(void *user, const char *event_json)
{
    (void)user;
    fprintf(stderr, "event: %s\n", event_json);
    return 0; /* anything else would cancel the run */
}

int main(int argc, char **argv)
{
    /* CUPEL_PROGRAM: a cupel that is not in PATH. */
    struct cupel_options options = { .size = sizeof options, .program = getenv("CUPEL_PROGRAM") };
    char *error = NULL, *answer = NULL;
    struct cupel *engine = cupel_open(&options, &error);
    if (!engine) {
        fprintf(stderr, "%s\n", error);
        cupel_free(error);
        return 125;
    }
    char *request = request_of(argc > 1 ? argv[1] : "print('hello from a box')\n6 * 7");
    int failed = cupel_run(engine, request, on_event, NULL, &answer);
    printf("%s\n", answer);
    free(request);
    cupel_free(answer);
    cupel_close(engine);
    return failed ? 1 : 0;
}
