/* A session from C: two cells that share their state, then undo. libcupel alone.
 *   cc session.c -lcupel -o session && ./session */
#include <cupel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The id in {"session":{"session":"s_...",...}}; a program of yours has a JSON library. */
static int find_id(const char *answer, char *id, size_t room)
{
    const char *at = strstr(answer, "\"s_");
    size_t len = at ? strcspn(at + 1, "\"") : 0;
    if (!at || len >= room)
        return -1;
    memcpy(id, at + 1, len);
    id[len] = 0;
    return 0;
}

static int show(const char *what, int rc, char *answer)
{
    printf("%s: %s\n", what, answer ? answer : "");
    cupel_free(answer);
    return rc;
}

static int cell(struct cupel *engine, const char *id, const char *code)
{
    char request[256], *result = NULL;
    snprintf(request, sizeof request, "{\"session\":\"%s\",\"code\":\"%s\"}", id, code);
    int rc = cupel_run(engine, request, NULL, NULL, &result);
    return show(code, rc, result);
}

static int ask(struct cupel *engine, const char *what, const char *id)
{
    char text[128], *answer = NULL;
    snprintf(text, sizeof text, "{\"do\":\"%s\",\"session\":\"%s\"}", what, id);
    int rc = cupel_ask(engine, text, NULL, NULL, &answer);
    return show(what, rc, answer);
}

int main(void)
{
    struct cupel_options options = { .size = sizeof options, .program = getenv("CUPEL_PROGRAM") };
    char *text = NULL, id[64];
    struct cupel *engine = cupel_open(&options, &text);
    if (!engine)
        return show("open", 1, text);
    int rc = cupel_ask(engine, "{\"do\":\"new\"}", NULL, NULL, &text);
    if (rc == 0)
        rc = find_id(text, id, sizeof id);
    show("new", rc, text);
    if (rc == 0)
        rc = cell(engine, id, "x = 6") || cell(engine, id, "x * 7") || ask(engine, "undo", id) ||
             ask(engine, "end", id);
    cupel_close(engine);
    return rc ? 1 : 0;
}
