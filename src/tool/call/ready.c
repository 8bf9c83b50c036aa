/* Compiled definitions, counted by their holders. Runs in the serve process. */
#include "tool/call/ready.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "tool/call/call_int.h"

#define SESSION_ROOM 32

struct ready {
    unsigned holders;
    json_t *list;
    struct ready_tool **tools; /* as many as the list has members; NULL: not compiled yet */
};

struct ready *ready_new(const json_t *list)
{
    struct ready *ready = buf_alloc_zero(1, sizeof *ready);
    ready->holders = 1;
    ready->list = json_incref((json_t *)(uintptr_t)list);
    ready->tools = buf_alloc_zero(json_array_size(list) + 1, sizeof(struct ready_tool *));
    return ready;
}

struct ready *ready_share(struct ready *ready)
{
    if (ready)
        ready->holders++;
    return ready;
}

void ready_drop(struct ready *ready)
{
    if (!ready || --ready->holders > 0)
        return;
    for (size_t i = 0; i < json_array_size(ready->list); i++) {
        if (!ready->tools[i])
            continue;
        tool_done(&ready->tools[i]->of);
        json_decref(ready->tools[i]->told);
        free(ready->tools[i]->told_text);
        free(ready->tools[i]);
    }
    free(ready->tools);
    json_decref(ready->list);
    free(ready);
}

const struct ready_tool *ready_at(struct ready *ready, size_t index, struct err *err)
{
    struct tool read = TOOL_INIT;
    struct ready_tool **at = &ready->tools[index];
    if (*at)
        return *at;
    if (tool_read(json_array_get(ready->list, index), &read, err) < 0)
        return NULL;
    *at = buf_alloc_zero(1, sizeof **at);
    (*at)->of = read;
    (*at)->told = calls_told_of(&read);
    (*at)->told_text = json_write((*at)->told, JSON_COMPACT);
    return *at;
}

/* --- by session --- */

struct of_session {
    struct of_session *next;
    char session[SESSION_ROOM];
    struct ready *ready;
};

struct readies {
    struct of_session *all;
};

struct readies *readies_new(void)
{
    return buf_alloc_zero(1, sizeof(struct readies));
}

static struct of_session **find(struct readies *readies, const char *session)
{
    struct of_session **at = &readies->all;
    while (*at && strcmp((*at)->session, session) != 0)
        at = &(*at)->next;
    return at;
}

static void free_at(struct of_session **at)
{
    struct of_session *one = *at;
    *at = one->next;
    ready_drop(one->ready);
    free(one);
}

void readies_forget(struct readies *readies, const char *session)
{
    struct of_session **at = find(readies, session);
    if (*at)
        free_at(at);
}

void readies_free(struct readies *readies)
{
    while (readies && readies->all)
        free_at(&readies->all);
    free(readies);
}

struct ready *readies_of(struct readies *readies, const char *session, const json_t *list)
{
    struct of_session **at = find(readies, session);
    if (*at && (*at)->ready->list == list)
        return ready_share((*at)->ready);
    if (*at)
        free_at(at);
    struct of_session *one = buf_alloc_zero(1, sizeof *one);
    snprintf(one->session, sizeof one->session, "%s", session);
    one->ready = ready_new(list);
    one->next = readies->all;
    readies->all = one;
    return ready_share(one->ready);
}
