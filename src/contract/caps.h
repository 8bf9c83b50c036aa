/* Every maximum of the HTTP door, in one table: keys http.NAME of config.json, the rows of
 * docs/operating.md, and the indices by which src/serve/http asks for a value. Pure. */
#ifndef CONTRACT_CAPS_H
#define CONTRACT_CAPS_H

#include <stdint.h>

/* name in the configuration (http.NAME), default, least, most, meaning */
#define HTTP_CAPS(X)                                                                             \
    X(CONNECTIONS, "connections", 2000, 1, 100000, "connections open at once")                   \
    X(PER_ADDRESS, "connections_per_address", 1500, 1, 100000, "the same, from one address")     \
    X(HEADER_BYTES, "header_bytes", 16384, 4096, 1 << 20, "request line and headers together")   \
    X(BODY_BYTES, "body_bytes", 134217728, 1024, 134217728, "a JSON body, decoded")              \
    X(BODIES_BYTES, "bodies_bytes", 536870912, 1 << 20, (int64_t)1 << 40,                        \
      "all JSON bodies held at once")                                                            \
    X(UPLOAD_BYTES, "upload_bytes", (int64_t)16 << 30, 1024, (int64_t)1 << 44,                   \
      "an uploaded file or blob")                                                                \
    X(HEAD_S, "head_s", 10, 1, 3600, "seconds for the head of a request to arrive")              \
    X(BODY_RATE, "body_bytes_a_second", 1024, 1, 1 << 30,                                        \
      "a body that comes more slowly is ended, after body_s")                                    \
    X(BODY_S, "body_s", 30, 1, 3600, "seconds before the rate of a body is judged")              \
    X(IDLE_S, "idle_s", 60, 1, 86400, "seconds that a connection may wait between two requests") \
    X(PING_S, "ping_s", 5, 1, 3600, "seconds between pings of an event stream without news")     \
    X(EVENTS_BYTES, "events_bytes", 4 << 20, 65536, 1 << 30, "events kept of one run or task")   \
    X(KEPT_BYTES, "kept_bytes", 268435456, 1 << 20, (int64_t)1 << 40,                            \
      "results and events kept of all ended runs")                                               \
    X(KEPT_RUNS, "kept_runs", 2000, 1, 1000000, "ended runs that are kept")                      \
    X(TASKS, "tasks", 32, 1, 200, "tasks of the agent that run at once")                         \
    X(KEPT_TASKS, "kept_tasks", 200, 1, 100000, "tasks that are kept, in kept_bytes of their own") \
    X(TASK_IDLE_S, "task_idle_s", 1200, 1, 86400,                                                \
      "seconds that the session of a conversation waits for a question")                         \
    X(TASK_ASK_S, "task_ask_s", 3600, 1, 86400, "seconds that a model's question waits for a reply")

enum http_cap {
#define X(id, name, fallback, least, most, doc) HTTP_##id,
    HTTP_CAPS(X)
#undef X
    HTTP_CAP_COUNT
};

struct http_cap_row {
    const char *name;
    int64_t fallback, least, most;
    const char *doc;
};
extern const struct http_cap_row http_caps[HTTP_CAP_COUNT];

#endif
