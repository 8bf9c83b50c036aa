/* Probes an image: its working packages, and the font list that matplotlib would otherwise build in
 * every box. Our own program does it in an ordinary box, so a broken package does no harm; both
 * results are kept by digest. */
#include "engine/engine_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/talk/drivers.h"
#include "image/extras.h"

#define FONT_LIST_MAX (8u << 20)

bool prepare_wants_fonts(const struct request *request)
{
    static const char *const words[] = { "matplotlib", "pylab", "seaborn", ".plot" };
    for (size_t i = 0; i < array_len(words); i++) {
        if (memmem(request->code.at, request->code.len, words[i], strlen(words[i])))
            return true;
    }
    return false;
}

/* The job, then the rows of the list of packages. */
static json_t *arguments(const char *what)
{
    size_t count;
    const struct image_extra *rows = image_extras(&count);
    json_t *args = json_pack("[s]", what);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(args,
                              json_sprintf("%s %s %s", rows[i].kind, rows[i].name, rows[i].flag));
    return args;
}

/* A request that runs drivers/prepare.py; its artifacts are the answer. */
static int probe_request(const struct image *image, const char *what, struct request *out,
                         struct err *err)
{
    struct str code = engine_builtin(ENGINE_BUILTIN_PREPARE_PY, /* compiled= */ false).bytes;
    char name[2 * IMAGE_NAMES_ROOM];
    snprintf(name, sizeof name, "%s@%s", image->name, image->digest);
    struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(1) << 40,
                                         .image = strncmp(name, "sha256:", 7) == 0 ? image->name
                                                                                   : name };
    /* The interpreter of a stored image may be one that never answers. */
    const int timeout_s = image->hex[0] ? 20 : 120;
    own_json object = json_pack("{s:s%, s:o, s:s, s:{s:i, s:I}}", "code", code.at, code.len, "args",
                                arguments(what), "profile", "analysis", "limits", "timeout_s",
                                timeout_s, "artifact_bytes", (json_int_t)FONT_LIST_MAX);
    return request_from_json(object, &ceilings, out, err);
}

static int check_probe(const struct result *result, struct err *err)
{
    if (result->status == RESULT_OK)
        return 0;
    return err_set(err, ERR_HOST, "probe the image: %s: %s", result_status_name(result->status),
                   result->error.message ? result->error.message : "");
}

static int probe(struct engine *engine, const struct image *image, const char *what,
                 struct result *out, struct err *err)
{
    own_request request = REQUEST_INIT;
    if (probe_request(image, what, &request, err) < 0 ||
        engine_run(engine, &request, NULL, NULL, /* interrupt_fd= */ -1, out, err) < 0)
        return -1;
    return check_probe(out, err);
}

static const struct result_artifact *artifact(const struct result *result, const char *path)
{
    for (size_t i = 0; i < result->artifact_count; i++) {
        if (str_is((struct str){ result->artifacts[i].path, result->artifacts[i].path_len }, path))
            return &result->artifacts[i];
    }
    return NULL;
}

static void font_file(const struct image *image, char *out, size_t room)
{
    snprintf(out, room, "fonts-%.16s.json", image->digest + strlen("sha256:"));
}

/* Writes a file completely or not at all: another run may read it meanwhile. */
static int keep(int state, const char *name, const void *bytes, size_t len)
{
    char temporary[96];
    snprintf(temporary, sizeof temporary, ".%s.%d", name, (int)getpid());
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
    own_fd fd = openat(state, temporary, flags, 0600);
    if (fd < 0)
        return -1;
    if (io_write_all(fd, bytes, len) == 0 && renameat(state, temporary, state, name) == 0)
        return 0;
    unlinkat(state, temporary, 0);
    return -1;
}

/* The list itself holds the version that is part of its name. */
static bool list_name(struct str list, char *out, size_t room)
{
    static const char key[] = "\"_version\": ";
    const char *at = memmem(list.at, list.len, key, sizeof key - 1);
    if (!at)
        return false;
    at += sizeof key - 1;
    int len = 0;
    while (len < 9 && at + len < list.at + list.len &&
           ((at[len] >= '0' && at[len] <= '9') || at[len] == '.'))
        len++;
    /* 3.6 writes 330, later ones "390.0" with or without quotes: take digits only. */
    snprintf(out, room, "fontlist-v%.*s.json", len, at);
    return len > 0;
}

static int open_font_list(struct engine *engine, const struct image *image, bool make)
{
    char name[64];
    struct err err = ERR_INIT;
    font_file(image, name, sizeof name);
    own_fd fd = openat(engine->state, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && make) {
        own_result result;
        result_init(&result);
        const struct result_artifact *list = probe(engine, image, "fonts", &result, &err) < 0
                                                 ? NULL
                                                 : artifact(&result, "fonts.json");
        if (!list || keep(engine->state, name, list->content, list->size_bytes) < 0)
            return -1; /* matplotlib then builds its own, slowly */
        fd = openat(engine->state, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    }
    return take_fd(&fd);
}

void prepare_find_fonts(struct engine *engine, struct engine_image *image, bool make)
{
    const struct image_facts *facts = &image->image.facts;
    if (image->font_fd >= 0 || engine->state < 0 || (make && image->fonts_sought) ||
        !facts->python[0] || (image->image.hex[0] && facts->python_minor < PLAN_PYTHON_LEAST))
        return;
    image->fonts_sought |= make;
    engine->preparing = true; /* made by a run of our own, which must not need one */
    own_fd fd = open_font_list(engine, &image->image, make);
    engine->preparing = false;
    own_str bytes = buf_alloc(FONT_LIST_MAX);
    ssize_t n = fd < 0 ? -1 : pread(fd, bytes, FONT_LIST_MAX, 0);
    if (n > 0 &&
        list_name((struct str){ bytes, (size_t)n }, image->font_list, sizeof image->font_list))
        image->font_fd = take_fd(&fd);
}

/* Takes the manifest from a probe's artifacts into the image, and keeps it. */
static int take_manifest(struct engine *engine, struct image *image, const struct result *result,
                         struct err *err)
{
    const struct result_artifact *said = artifact(result, "manifest.json");
    const struct result_artifact *list = artifact(result, "fonts.json");
    char file[64];
    struct err ignored = ERR_INIT;
    json_decref(image->manifest);
    image->manifest = said ? json_read((struct str){ said->content, said->size_bytes },
                                       FONT_LIST_MAX, err)
                           : NULL;
    if (!json_is_object(image->manifest))
        return err_set(err, ERR_BUG, "the probe of the image returned no manifest");
    font_file(image, file, sizeof file);
    if (list && engine->state >= 0)
        keep(engine->state, file, list->content, list->size_bytes);
    if (engine->state >= 0)
        image_save(image, engine->state, &ignored);
    return 0;
}

static json_t *manifest_json(const struct image *image)
{
    const char *why;
    json_t *out = json_pack("{s:s, s:s}", "name", image->name, "digest", image->digest);
    json_object_update(out, image->manifest);
    json_object_set_new(out, "base",
                        json_string(image->hex[0] && !image->on_host ? "none" : "host"));
    json_object_set_new(out, "zygote", json_boolean(plan_can_fork(image, &why)));
    return out;
}

/* For an image that no probe can look into, having no Python: the facts of its tree. */
static json_t *manifest_of_facts(const struct image *image)
{
    const struct image_facts *facts = &image->facts;
    json_t *languages = json_array();
    if (facts->node[0])
        json_array_append_new(languages, json_pack("{s:s, s:s, s:{}}", "name", "javascript",
                                                   "version", "", "packages"));
    if (facts->bash[0])
        json_array_append_new(
            languages, json_pack("{s:s, s:s, s:{}}", "name", "bash", "version", "", "packages"));
    return json_pack("{s:o, s:[]}", "languages", languages, "fonts");
}

/* Nothing to ask: it is known, or there is nobody who could be asked. */
static bool is_known(struct image *image)
{
    const struct image_facts *facts = &image->facts;
    if (!image->manifest && image->hex[0] &&
        (!facts->python[0] || facts->python_minor < PLAN_PYTHON_LEAST))
        image->manifest = manifest_of_facts(image);
    return image->manifest != NULL;
}

/* How Python starts in this image, and why not faster. */
static void add_start(const struct image *image, json_t *out)
{
    const char *why, *how = plan_can_fork(image, &why) ? "zygote" : "exec";
    const struct image_facts *facts = &image->facts;
    if (!facts->python[0])
        how = "none";
    if (facts->python[0] && image->hex[0] && facts->python_minor < PLAN_PYTHON_LEAST) {
        how = "none";
        why = "its Python is older than 3.8"; /* PLAN_PYTHON_LEAST */
    }
    json_object_set_new(out, "python_start", json_string(how));
    json_object_set_new(out, "python_why", why ? json_string(why) : json_null());
}

int engine_image(struct engine *engine, const char *name, bool recompute, json_t **out_manifest,
                 struct err *err)
{
    own_image image = IMAGE_INIT;
    if (image_open(name, engine->state, recompute, &image, err) < 0)
        return -1;
    if (!is_known(&image) || (recompute && !image.hex[0])) {
        own_result result;
        result_init(&result);
        if (probe(engine, &image, "all", &result, err) < 0 ||
            take_manifest(engine, &image, &result, err) < 0)
            return -1;
    }
    *out_manifest = manifest_json(&image);
    add_start(&image, *out_manifest);
    return 0;
}

/* --- in the background --- */

int engine_image_known(struct engine *engine, const char *name, json_t **out_manifest,
                       struct err *err)
{
    struct engine_image *image = images_find(engine, name, err);
    *out_manifest = NULL;
    if (!image)
        return -1;
    if (is_known(&image->image))
        *out_manifest = manifest_json(&image->image);
    return 0;
}

static bool add_name(void *user, struct engine_image *image)
{
    json_array_append_new(user, json_string(image->asked));
    return false;
}

json_t *engine_image_names(struct engine *engine)
{
    json_t *names = json_pack("[s]", "host");
    images_each(engine, add_name, names);
    return names;
}

/* The image may have changed meanwhile: then nothing is known, and the caller probes again. */
static void on_probed(void *user, struct result *result, const struct err *failed)
{
    struct engine *engine = user;
    struct prepare_probe *probe = &engine->probe;
    struct err err = failed ? *failed : ERR_INIT;
    if (result && check_probe(result, &err) == 0 && !probe->image->old)
        take_manifest(engine, &probe->image->image, result, &err);
    if (err.kind != ERR_NONE && probe->image->image.hex[0] && !probe->image->image.manifest) {
        probe->image->image.manifest = manifest_of_facts(&probe->image->image);
        err = ERR_INIT; /* an image that no probe can look into is still one */
    }
    images_drop(engine, probe->image);
    probe->image = NULL;
    probe->run = NULL;
    probe->told(probe->user, err.kind == ERR_NONE ? NULL : &err);
}

int engine_image_probe(struct engine *engine, const char *name,
                       void (*told)(void *user, const struct err *err), void *user, struct err *err)
{
    struct prepare_probe *probe = &engine->probe;
    const struct engine_hooks hooks = { .on_end = on_probed, .user = engine };
    if (probe->run)
        return 0;
    prepare_done(engine);
    struct engine_image *image = images_find(engine, name, err);
    if (!image || probe_request(&image->image, "all", &probe->request, err) < 0)
        return -1;
    probe->told = told;
    probe->user = user;
    probe->image = images_hold(image);
    probe->run = engine_begin(engine, &probe->request, /* client= */ NULL, &hooks, err);
    if (probe->run)
        return 0;
    images_drop(engine, image);
    probe->image = NULL;
    return -1;
}

void prepare_done(struct engine *engine)
{
    request_done(&engine->probe.request);
    engine->probe.request = REQUEST_INIT;
}
