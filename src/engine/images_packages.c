/* Which image has a package: for the field `packages`, and for hints. Names in folders decide, no
 * interpreter runs. Runs in the engine. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/engine_int.h"
#include "image/contents.h"
#include "image/root.h"
#include "image/store/store.h"

#define COMMAND_MAX 200 /* then a hint names no further package */

void images_each(struct engine *engine, bool (*see)(void *user, struct engine_image *image),
                 void *user)
{
    own_image_store store = IMAGE_STORE_INIT;
    struct err ignored = ERR_INIT;
    own_json names = NULL;
    size_t i;
    json_t *name;
    if (engine->state < 0 ||
        image_store_open(engine->state, /* make= */ false, &store, &ignored) < 0 ||
        image_store_names(&store, &names, &ignored) < 0)
        return;
    json_array_foreach (names, i, name) {
        struct engine_image *image = i < IMAGES_OPEN_MAX
                                         ? images_find(engine, json_string_value(name), &ignored)
                                         : NULL;
        if (image && see(user, image))
            return;
    }
}

static bool has_one(const struct image *image, const struct request_package *package)
{
    char version[IMAGE_VERSION_ROOM];
    if (!image_has_distribution(image, package->name, version))
        return false;
    if (package->version.len == 0)
        return true;
    return package->least ? image_version_is_least(version, package->version)
                          : str_is(package->version, version);
}

bool images_have(const struct image *image, const json_t *packages, struct str *out_missing)
{
    size_t i;
    json_t *one;
    json_array_foreach ((json_t *)(uintptr_t)packages, i, one) {
        struct request_package package;
        if (request_package_read(json_str(one), &package) == 0 && has_one(image, &package))
            continue;
        *out_missing = json_str(one);
        return false;
    }
    return true;
}

struct search {
    const struct request *request;
    struct engine_image *found;
};

static bool has_all(void *user, struct engine_image *image)
{
    struct search *search = user;
    struct str missing;
    bool fits = !search->request->profile || !search->request->profile->strict ||
                !image->image.on_host;
    if (fits && images_have(&image->image, search->request->packages, &missing))
        search->found = image;
    return search->found != NULL;
}

/* ">" is not for a shell to read. */
static void add_command(const json_t *packages, const char *option, struct buf *out)
{
    size_t i;
    json_t *one;
    buf_add_text(out, "cupel images add NAME");
    json_array_foreach ((json_t *)(uintptr_t)packages, i, one) {
        const char *name = json_string_value(one), *quote = strchr(name, '>') ? "\"" : "";
        if (out->len > COMMAND_MAX) {
            buf_add_text(out, " ...");
            return;
        }
        buf_printf(out, " %s %s%s%s", option, quote, name, quote);
    }
}

/* The image that has them all, or NULL. */
static struct engine_image *find_all(struct engine *engine, const struct request *request)
{
    struct search search = { .request = request };
    images_each(engine, has_all, &search);
    return search.found;
}

static void refuse(struct engine *engine, const struct request *request, struct engine_image *own,
                   struct str missing, struct err *err)
{
    char text[160];
    own_buf hint = BUF_INIT(sizeof err->hint - 1);
    struct engine_image *other = request->image_given ? find_all(engine, request) : NULL;
    snprintf(text, sizeof text, "%.*s", (int)(missing.len < 120 ? missing.len : 120), missing.at);
    err_input(err, "packages", text, "packages of an image that exists",
              request->image_given ? "image '%2$s' does not have package '%1$s'"
                                   : "no image has all packages; '%1$s' is not in image '%2$s'",
              text, own->asked);
    if (other)
        buf_printf(&hint, "image %s has %s; ", other->asked,
                   json_array_size(request->packages) > 1 ? "all of them" : "it");
    buf_add_text(&hint, "'");
    add_command(request->packages, "--pip", &hint);
    buf_add_text(&hint, "' makes one; 'cupel images' lists those there are");
    err_hint(err, "%s", hint.at);
}

struct engine_image *images_for_packages(struct engine *engine, const struct request *request,
                                         struct err *err)
{
    struct engine_image *found = NULL;
    struct str missing;
    struct engine_image *own = images_find(engine, request->image, err);
    if (!own)
        return NULL;
    if (images_have(&own->image, request->packages, &missing))
        return own;
    images_hold(own);
    if (!request->image_given)
        found = find_all(engine, request);
    if (!found)
        refuse(engine, request, own, missing, err);
    images_drop(engine, own);
    return found;
}

/* --- hints --- */

struct hint {
    const struct image *without;
    enum images_kind kind;
    const char *name;
    struct engine_image *found;
};

/* In the lock of its build, at the top of its packages. */
static bool has_npm(const struct image *image, const char *name)
{
    static const char above[] = "node_modules/";
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(json_object_get(image->stored, "lock"), "npm"), i, one) {
        struct str path = json_get_str(one, "path");
        if (path.len == sizeof above - 1 + strlen(name) &&
            strncmp(path.at, above, sizeof above - 1) == 0 &&
            strcmp(path.at + sizeof above - 1, name) == 0)
            return true;
    }
    return false;
}

/* The name is the code's: it may be anything but a path. */
static bool has_program(const struct image *image, const char *name)
{
    static const char *const folders[] = { "usr/bin", "usr/local/bin", "bin" };
    char path[192];
    struct stat st;
    for (size_t i = 0; image->tree >= 0 && !strchr(name, '/') && i < array_len(folders); i++) {
        snprintf(path, sizeof path, "%s/%.128s", folders[i], name);
        own_fd fd = image_root_open(image->tree, path, O_PATH);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

static bool has_named(void *user, struct engine_image *image)
{
    struct hint *hint = user;
    if (strcmp(image->image.digest, hint->without->digest) != 0 &&
        (hint->kind == IMAGES_PYTHON ? image_can_import(&image->image, hint->name)
         : hint->kind == IMAGES_NPM  ? has_npm(&image->image, hint->name)
                                     : has_program(&image->image, hint->name)))
        hint->found = image;
    return hint->found != NULL;
}

bool images_hint(struct engine *engine, const struct image *without, enum images_kind kind,
                 const char *name, struct buf *out)
{
    struct hint hint = { .without = without, .kind = kind, .name = name };
    char version[IMAGE_VERSION_ROOM] = "";
    images_each(engine, has_named, &hint);
    if (!hint.found)
        return false;
    if (kind == IMAGES_PYTHON)
        image_has_distribution(&hint.found->image, str_of(name), version);
    buf_printf(out, "; image %s has %s%s%s: run with --image %s", hint.found->asked, name,
               version[0] ? " " : "", version, hint.found->asked);
    return true;
}

struct wish {
    const json_t *packages;
    struct engine_image *found;
};

static bool has_wished(void *user, struct engine_image *image)
{
    struct wish *wish = user;
    struct str missing;
    if (images_have(&image->image, wish->packages, &missing))
        wish->found = image;
    return wish->found != NULL;
}

void images_hint_packages(struct engine *engine, const json_t *packages, const char *option,
                          struct buf *out)
{
    struct wish wish = { .packages = packages };
    if (strcmp(option, "--pip") == 0)
        images_each(engine, has_wished, &wish);
    if (wish.found)
        buf_printf(out, "; image %s has %s: run with --image %s", wish.found->asked,
                   json_array_size(packages) > 1 ? "all of them" : "it", wish.found->asked);
    buf_add_text(out, "; '");
    add_command(packages, option, out);
    buf_add_text(out, "' makes an image that has ");
    buf_add_text(out, json_array_size(packages) > 1 ? "them" : "it");
}
