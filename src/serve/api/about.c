/* GET /v1/languages, /v1/images, /v1/profiles, /v1/health and /openapi.json: what is here, as it
 * was probed, and whether it works. Runs in the serve process, in its loop. A probe of the image is
 * a run in the background: exchanges wait for it, the loop does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/builtin.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/ledger.h"
#include "image/image.h"
#include "serve/api/api.h"

BUILTIN(api_openapi_json, "api/openapi.json");

#define STATE_LOOK_MS 1000 /* health needs no token: the disk is not asked more often */
#define FAILED_MAX 3       /* so many runs that cupel itself failed, one after another */

/* An exchange that waits for the manifest of an image, or of all of them. */
struct wait {
    struct api_about *about;
    struct http_exchange *x;
    char image[IMAGE_NAMES_ROOM]; /* "": all */
    struct wait *after;
    bool listed;
};

struct api_about {
    struct api *api;
    struct wait *first;
    int64_t looked_ns; /* at the state directory; 0: not yet */
    struct err state;  /* as it was then */
};

static struct api_about *about_of(struct api *api)
{
    if (!api->about) {
        api->about = buf_alloc_zero(1, sizeof *api->about);
        api->about->api = api;
    }
    return api->about;
}

void api_about_free(struct api_about *about)
{
    free(about);
}

/* No query is known to these routes. */
static bool is_refused(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    struct err err = ERR_INIT;
    if (http_query_only(x, none, &err) == 0)
        return false;
    http_reply_err(x, &err);
    return true;
}

/* --- the image --- */

static void unlist(struct wait *wait)
{
    struct wait **at = &wait->about->first;
    while (*at && *at != wait)
        at = &(*at)->after;
    if (*at)
        *at = wait->after;
    wait->listed = false;
}

static void on_gone(struct http_exchange *x)
{
    struct wait *wait = x->state;
    if (wait->listed)
        unlist(wait);
    free(wait);
}

static void on_probed(void *user, const struct err *failed);

/* 1: it is in *out, 0: it is being probed, -1 with an err. */
static int get_image(struct api_about *about, const char *name, json_t **out, struct err *err)
{
    struct engine *engine = about->api->engine;
    if (engine_image_known(engine, name, out, err) < 0)
        return -1;
    return *out ? 1 : engine_image_probe(engine, name, on_probed, about, err);
}

static int get_languages(struct api_about *about, const char *image, json_t **out, struct err *err)
{
    own_json manifest = NULL;
    int rc = get_image(about, image, &manifest, err);
    if (rc == 1)
        *out = json_pack("{s:O?,s:O?}", "image", json_object_get(manifest, "name"), "languages",
                         json_object_get(manifest, "languages"));
    return rc;
}

static int get_all(struct api_about *about, json_t **out, struct err *err)
{
    own_json names = engine_image_names(about->api->engine);
    own_json list = json_array();
    size_t i;
    json_t *name;
    json_array_foreach (names, i, name) {
        json_t *manifest = NULL;
        struct err gone = ERR_INIT;
        int rc = get_image(about, json_string_value(name), &manifest, &gone);
        if (rc == 0)
            return 0;
        if (rc == 1)
            json_array_append_new(list, manifest);
        else if (i == 0) {
            *err = gone;
            return -1;
        }
    }
    *out = json_pack("{s:O}", "images", list);
    return 1;
}

/* False: it still waits. */
static bool reply_about(struct api_about *about, struct http_exchange *x, const char *image)
{
    struct err err = ERR_INIT;
    json_t *out = NULL;
    int rc = *image ? get_languages(about, image, &out, &err) : get_all(about, &out, &err);
    if (rc == 1)
        http_reply_json(x, 200, out);
    else if (rc < 0)
        http_reply_err(x, &err);
    return rc != 0;
}

static void list_wait(struct wait *wait)
{
    struct wait **end = &wait->about->first;
    while (*end)
        end = &(*end)->after;
    *end = wait;
    wait->after = NULL;
    wait->listed = true;
}

/* Each that waits now has its turn once: it is answered, or waits for the next image. */
static void on_probed(void *user, const struct err *failed)
{
    struct api_about *about = user;
    size_t count = 0;
    for (const struct wait *at = about->first; at; at = at->after)
        count++;
    for (; count > 0 && about->first; count--) {
        struct wait *wait = about->first;
        unlist(wait);
        if (failed)
            http_reply_err(wait->x, failed);
        else if (!reply_about(about, wait->x, wait->image))
            list_wait(wait);
    }
}

static void with_image(struct http_exchange *x, const char *image)
{
    struct api_about *about = about_of(api_of(x));
    if (reply_about(about, x, image))
        return;
    struct wait *wait = buf_alloc(sizeof *wait);
    *wait = (struct wait){ .about = about, .x = x };
    snprintf(wait->image, sizeof wait->image, "%s", image);
    list_wait(wait);
    x->state = wait;
    x->gone = on_gone;
}

void api_languages(struct http_exchange *x)
{
    static const char *const known[] = { "image", NULL };
    struct request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    const char *name = http_query(x, "image");
    if (http_query_only(x, known, &err) < 0 ||
        (name && request_set_image(&request, name, &err) < 0))
        http_reply_err(x, &err);
    else
        with_image(x, request.image ? request.image : "host");
    request_done(&request);
}

void api_images(struct http_exchange *x)
{
    if (!is_refused(x))
        with_image(x, "");
}

/* --- profiles --- */

/* A profile as it is on this host, for this token. */
static json_t *profile_json(const struct http_exchange *x, const struct limits_profile *profile)
{
    struct err err = ERR_INIT;
    struct request request = { .profile = profile, .image = "host" };
    int64_t memory = api_of(x)->ceilings.host_memory_bytes;
    int rc = limits_fill(profile, /* over= */ NULL, memory, &request.limits, &err);
    json_t *limits = rc == 0 ? limits_to_json(&request.limits) : json_null();
    if (rc == 0)
        rc = who_allows(x->who, &request, &err);
    return json_pack("{s:s, s:o, s:b, s:o}", "name", profile->name, "limits", limits, "allowed",
                     rc == 0, "reason", json_text_or_null(rc == 0 ? NULL : err.text));
}

void api_profiles(struct http_exchange *x)
{
    if (is_refused(x))
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < limits_profile_count; i++)
        json_array_append_new(list, profile_json(x, &limits_profiles[i]));
    http_reply_json(x, 200, json_pack("{s:o}", "profiles", list));
}

/* --- health --- */

static int check_engine(struct api *api, struct err *err)
{
    return engine_is_broken(api->engine, err) ? -1 : 0;
}

static int check_boxes(struct api *api, struct err *err)
{
    unsigned failed = engine_ledger(api->engine)->failed_in_a_row;
    if (failed < FAILED_MAX)
        return 0;
    return err_set(err, ERR_HOST, "the last %u runs failed by cupel's own fault", failed);
}

static int check_loop(struct api *api, struct err *err)
{
    int64_t since = engine_loop(api->engine)->turn.since_ns;
    if (since == 0 || clock_now_ns() - since < LOOP_STALL_NS)
        return 0;
    return err_set(err, ERR_BUSY, "the engine's loop stalls");
}

static int check_state(struct api *api, struct err *err)
{
    struct api_about *about = about_of(api);
    int64_t now = clock_now_ns();
    if (!about->looked_ns || now - about->looked_ns >= STATE_LOOK_MS * CLOCK_MS) {
        about->looked_ns = now;
        about->state = ERR_INIT;
        if (engine_state_check(api->engine, &about->state) == 0)
            err_set(&about->state, ERR_HOST, "there is no state directory");
    }
    *err = about->state;
    return err->kind == ERR_NONE ? 0 : -1;
}

/* Is every zygote ready? */
static bool is_warm(const struct engine *engine)
{
    own_json all = engine_describe(engine);
    json_t *zygotes = json_object_get(all, "zygotes"), *one;
    size_t i;
    bool warm = json_array_size(zygotes) > 0;
    json_array_foreach (zygotes, i, one)
        warm = warm && (strchr(json_get_str(one, "name").at, '@') ||
                        str_is(json_get_str(one, "state"), "ready"));
    return warm;
}

static const struct {
    const char *name;
    int (*check)(struct api *api, struct err *err);
} checks[] = {
    { "engine", check_engine },
    { "boxes", check_boxes },
    { "loop", check_loop },
    { "state", check_state },
};

void api_health(struct http_exchange *x)
{
    struct api *api = api_of(x);
    struct err first = ERR_INIT;
    if (is_refused(x))
        return;
    json_t *list = json_object();
    for (size_t i = 0; i < array_len(checks); i++) {
        struct err err = ERR_INIT;
        bool fine = checks[i].check(api, &err) == 0;
        json_object_set_new(list, checks[i].name, json_boolean(fine));
        if (!fine && first.kind == ERR_NONE)
            first = err;
    }
    bool fine = first.kind == ERR_NONE;
    http_add_header(x, "Cache-Control", "no-store");
    http_reply_json(x, fine ? 200 : 503,
                    json_pack("{s:s, s:b, s:o, s:o}", "status", fine ? "ok" : "failing", "warm",
                              is_warm(api->engine), "reason",
                              json_text_or_null(fine ? NULL : first.text), "checks", list));
}

void api_openapi(struct http_exchange *x)
{
    if (is_refused(x))
        return;
    struct str text = { api_openapi_json, (size_t)(api_openapi_json_end - api_openapi_json) };
    http_reply_text(x, 200, "application/json", text);
}
