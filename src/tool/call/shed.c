/* One tool host in the engine's loop. Every outcome comes from another process: call.c checks it
 * before code sees it. */
#include "tool/call/shed.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/call/ready.h"

#define LIST_MS 10000

struct pending {
    struct pending *next;
    uint64_t id;
    void (*told)(void *user, uint64_t id, const json_t *outcome);
    void *user;
};

struct shed {
    struct loop *loop;
    struct toolhost *host;
    struct loop_source source;
    json_t *definitions, *told;
    struct ready *ready; /* of the definitions */
    struct pending *pending;
    uint64_t last_id;
};

static void on_ready(struct loop_source *source, uint32_t events);

/* The host's descriptor changes when the host is started again. */
static void watch(struct shed *shed)
{
    struct loop_source *source = &shed->source;
    int fd = toolhost_fd(shed->host);
    uint32_t events = toolhost_wants_write(shed->host) ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (source->fd == fd) {
        loop_change(shed->loop, source, events);
        return;
    }
    loop_forget(shed->loop, source);
    *source = (struct loop_source){ fd, LOOP_HANDLER(on_ready) };
    if (fd >= 0 && loop_add(shed->loop, source, events) < 0)
        source->fd = -1; /* the calls end at their time-outs */
}

static void on_ready(struct loop_source *source, uint32_t events)
{
    struct shed *shed = loop_owner(source, struct shed, source);
    (void)events;
    toolhost_ready(shed->host);
    watch(shed);
}

static struct pending **find(struct shed *shed, uint64_t id)
{
    struct pending **at = &shed->pending;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void on_answer(void *user, uint64_t id, json_t *outcome)
{
    struct shed *shed = user;
    struct pending **at = find(shed, id), *one = *at;
    if (!one)
        return; /* dropped */
    *at = one->next;
    one->told(one->user, id, outcome);
    free(one);
}

/* A definition that cannot be read is refused where code asks for it. */
static json_t *told_all(struct ready *ready, size_t count)
{
    json_t *told = json_array();
    for (size_t i = 0; i < count; i++) {
        struct err err = ERR_INIT;
        const struct ready_tool *tool = ready_at(ready, i, &err);
        if (tool)
            json_array_append_new(told, shed_told_of(&tool->of));
    }
    return told;
}

struct shed *shed_new(struct loop *loop, struct toolhost *host, struct err *err)
{
    json_t *definitions = toolhost_list(host, LIST_MS, err);
    if (!definitions) {
        toolhost_close(host);
        return NULL;
    }
    struct shed *shed = buf_alloc_zero(1, sizeof *shed);
    shed->loop = loop;
    shed->host = host;
    shed->definitions = definitions;
    shed->ready = ready_new(definitions);
    shed->told = told_all(shed->ready, json_array_size(definitions));
    shed->source.fd = -1;
    toolhost_on_answer(host, on_answer, shed);
    watch(shed);
    return shed;
}

void shed_free(struct shed *shed)
{
    if (!shed)
        return;
    loop_remove(shed->loop, &shed->source);
    toolhost_close(shed->host);
    while (shed->pending) {
        struct pending *one = shed->pending;
        shed->pending = one->next;
        free(one);
    }
    ready_drop(shed->ready);
    json_decref(shed->definitions);
    json_decref(shed->told);
    free(shed);
}

const json_t *shed_definitions(const struct shed *shed)
{
    return shed ? shed->definitions : NULL;
}

struct ready *shed_ready(const struct shed *shed)
{
    return shed ? shed->ready : NULL;
}

const json_t *shed_told(const struct shed *shed)
{
    return shed ? shed->told : NULL;
}

uint64_t shed_call(struct shed *shed, const char *tool, json_t *arguments, const char *key,
                   int64_t timeout_ms, void (*told)(void *user, uint64_t id, const json_t *outcome),
                   void *user, struct err *err)
{
    uint64_t id = ++shed->last_id;
    int failed = toolhost_call(shed->host, id, tool, arguments, key, timeout_ms, err);
    watch(shed);
    if (failed)
        return 0;
    struct pending *one = buf_alloc_zero(1, sizeof *one);
    *one = (struct pending){ .next = shed->pending, .id = id, .told = told, .user = user };
    shed->pending = one;
    return id;
}

void shed_drop(struct shed *shed, uint64_t id)
{
    struct pending **at = find(shed, id), *one = *at;
    if (!one)
        return;
    *at = one->next;
    free(one);
    toolhost_cancel(shed->host, id);
    watch(shed);
}
