/* The engine: takes a checked request to a result, on a box that the broker
 * builds. One process, one epoll loop, no threads. It is unprivileged: it
 * parses what the box says, and asks the broker for what needs power. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "contract/request.h"
#include "contract/result.h"

struct engine;

/* Start the broker (as root: bootstrap the uid range and cgroups) and then, as
 * root, drop to cupel's private uid for good. Call before any request is read.
 * The host must be able to raise what every profile requires: otherwise
 * ERR_HOST with the exact fix in err->hint. */
struct engine *engine_open(struct err *err);
/* Kill whatever runs, end the broker, wait for all of it. NULL is fine. */
void engine_close(struct engine *engine);

/* News while a run goes on. Called from inside engine_run. */
enum engine_event_kind { ENGINE_STDOUT, ENGINE_STDERR };
struct engine_event {
    enum engine_event_kind kind;
    struct str bytes; /* raw bytes of the code: an attacker's */
};
typedef void engine_on_event(void *user, const struct engine_event *event);

struct engine_hooks {
    engine_on_event *on_event; /* or NULL */
    void *user;
    int interrupt_fd; /* readable: each byte is one wish to stop. The first sends the code
                         an interrupt, the second kills. -1 for none */
};

/* Run it. 0 with a result (also for code that fails, is killed, or where we
 * failed after the start: status "internal"); -1 with an err: nothing ran. */
int engine_run(struct engine *engine, const struct request *request,
               const struct engine_hooks *hooks, struct result *out, struct err *err);

/* What is in an image, probed in a box (once; kept in the state directory):
 * {"name","digest","languages":[{"name","version","packages":{...}}],"fonts":[...]}.
 * recompute: the digest is made from the content anew, and so is the rest. */
int engine_image(struct engine *engine, const char *name, bool recompute, json_t **out_manifest,
                 struct err *err);

#endif
