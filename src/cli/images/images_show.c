/* `cupel images show`: the manifest of an image, the facts that its tree shows, and the packages of
 * its lock. Runs in the cli process; the manifest may come from an archive of anybody. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "base/attr.h"
#include "cli/images/images.h"
#include "cli/term/term.h"
#include "engine/engine.h"
#include "image/make/lock.h"
#include "image/look.h"

static void set_text(json_t *object, const char *name, const char *text)
{
    json_object_set_new(object, name, json_text_or_null(text));
}

static json_t *facts_json(const struct image_facts *facts)
{
    char version[16] = "";
    json_t *out = json_object();
    if (facts->python_minor > 0)
        snprintf(version, sizeof version, "3.%d", facts->python_minor);
    set_text(out, "python", facts->python);
    set_text(out, "python_version", version);
    set_text(out, "python_packages", facts->python_packages);
    set_text(out, "node", facts->node);
    set_text(out, "bash", facts->bash);
    set_text(out, "sh", facts->sh);
    set_text(out, "libc", facts->libc);
    set_text(out, "loader", facts->loader);
    set_text(out, "os", facts->os);
    return out;
}

static int look(const struct cli_images *images, const struct image_entry *entry, json_t *out,
                struct err *err)
{
    char digest[72], host[72] = "", reason[300] = "";
    struct image_facts facts;
    own_fd tree = -1;
    struct err refused = ERR_INIT;
    own_image_entry ignored = IMAGE_ENTRY_INIT;
    if ((entry->on_host && cli_images_host_digest(images, host, err) < 0) ||
        image_store_hold(&images->store, entry, &tree, err) < 0 ||
        image_look(tree, &facts, err) < 0)
        return -1;
    image_store_digest(entry, host, digest);
    snprintf(reason, sizeof reason, "sha256:%s", entry->hex);
    if (image_store_find(&images->store, reason, &ignored, &refused) == 0)
        refused.text[0] = 0;
    set_text(out, "name", entry->name);
    json_object_set_new(out, "tree", json_string(reason));
    json_object_set_new(out, "digest", json_string(digest));
    json_object_set_new(out, "facts", facts_json(&facts));
    set_text(out, "refused", refused.text);
    return 0;
}

/* The findings of a run in a box of the image, once and remembered; or why nobody could look. */
static void probe(struct cli_images *images, const struct image_entry *entry, json_t *out)
{
    static const char *const members[] = { "languages", "python_start", "python_why" };
    struct err err = images->engine_err;
    own_json found = NULL;
    char tree[80];
    snprintf(tree, sizeof tree, "sha256:%s", entry->hex);
    const char *name = entry->name[0] ? entry->name : tree;
    if (images->engine)
        (void)!engine_image(images->engine, name, /* recompute= */ false, &found, &err);
    for (size_t i = 0; i < array_len(members); i++) {
        json_t *value = json_object_get(found, members[i]);
        json_object_set_new(out, members[i], value ? json_incref(value) : json_null());
    }
    set_text(out, "unprobed", found ? "" : err.text);
}

/* --- for a person --- */

static void print_member(const json_t *object, const char *name, const char *label)
{
    struct str text = json_get_str(object, name);
    if (text.len > 0)
        printf("  %-9s %s\n", label, cli_images_plain(text.at));
}

static void print_size(const json_t *image)
{
    own_buf size = BUF_INIT(64);
    cli_term_add_size(&size, (double)json_integer_value(json_object_get(image, "bytes")));
    printf("  %-9s %s in %lld files\n", "size", size.at,
           json_integer_value(json_object_get(image, "files")));
}

static void print_found(const json_t *image)
{
    size_t i;
    json_t *language;
    struct str how = json_get_str(image, "python_start"), why = json_get_str(image, "python_why");
    own_buf text = BUF_INIT(4096);
    json_array_foreach (json_object_get(image, "languages"), i, language)
        if (buf_printf(&text, "%s%s %s", i > 0 ? ", " : "",
                       cli_images_plain(json_get_str(language, "name").at),
                       cli_images_plain(json_get_str(language, "version").at)) < 0)
            break;
    if (text.len > 0)
        printf("  %-9s %s\n", "languages", text.at);
    if (str_is(how, "zygote"))
        printf("  %-9s from a zygote, in an engine that serves\n", "starts");
    else if (str_is(how, "exec"))
        printf("  %-9s Python by exec: %s\n", "starts", why.at);
    else if (how.len > 0)
        printf("  %-9s Python: %s\n", "lacks", why.at);
    print_member(image, "unprobed", "unprobed");
}

static void print_languages(const json_t *facts)
{
    struct str python = json_get_str(facts, "python"), libc = json_get_str(facts, "libc");
    if (python.len > 0)
        printf("  %-9s %s, %s\n", "python", cli_images_plain(python.at),
               cli_images_plain(json_get_str(facts, "python_version").at));
    print_member(facts, "node", "node");
    print_member(facts, "bash", "bash");
    print_member(facts, "sh", "sh");
    if (libc.len > 0)
        printf("  %-9s %s, %s\n", "libc", cli_images_plain(libc.at),
               cli_images_plain(json_get_str(facts, "loader").at));
}

static void print_env(const json_t *env)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)env, name, value)
        printf("  %-9s %s=%s\n", "env", cli_images_plain(name),
               cli_images_plain(json_string_value(value)));
}

/* Lists of objects with name (or path) and version, by kind. */
static void print_lock(const json_t *lock)
{
    const char *kind;
    json_t *list, *item;
    size_t i;
    json_object_foreach ((json_t *)(uintptr_t)lock, kind, list) {
        json_array_foreach (list, i, item) {
            struct str name = json_get_str(item, "name");
            if (name.len == 0)
                name = json_get_str(item, "path");
            if (name.len > 0 && strcmp(kind, make_kind_names[MAKE_NPM]) == 0)
                name = str_of(make_npm_name(name.at));
            printf("  %-9s %s %s\n", cli_images_plain(kind), cli_images_plain(name.at),
                   cli_images_plain(json_get_str(item, "version").at));
        }
    }
}

static void print(const json_t *image)
{
    struct str name = json_get_str(image, "name");
    const json_t *facts = json_object_get(image, "facts");
    printf("%s%s%s\n", cli_term_style(1, CLI_BOLD), name.len ? cli_images_plain(name.at) : "-",
           cli_term_style(1, CLI_PLAIN));
    print_member(image, "refused", "refused");
    print_member(image, "digest", "digest");
    print_member(image, "base", "base");
    print_member(image, "source", "source");
    print_member(image, "created", "created");
    print_size(image);
    print_member(facts, "os", "system");
    print_found(image);
    print_languages(facts);
    print_env(json_object_get(image, "env"));
    print_member(image, "suite", "debian");
    print_lock(json_object_get(image, "lock"));
    print_lock(json_object_get(image, "packages"));
}

/* --- the verb --- */

static int go(struct cli_images *images, const struct cli_images_options *options, struct err *err)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    if (cli_images_find(images, options->names.at[0], &entry, err) < 0)
        return -1;
    own_json image = json_copy(entry.manifest);
    if (look(images, &entry, image, err) < 0)
        return -1;
    probe(images, &entry, image);
    if (options->json) {
        own_json out = json_pack("{s:O}", "image", image);
        return cli_term_json(out);
    }
    print(image);
    return 0;
}

/* The host needs an engine, which opens the state folder itself. */
static int show_host(const char *name, bool json)
{
    struct err err = ERR_INIT;
    own_json manifest = NULL;
    if (cli_images_host(name, &manifest, &err) < 0)
        return cli_term_refuse(&err, json);
    if (json) {
        own_json out = json_pack("{s:O}", "image", manifest);
        return cli_term_json(out);
    }
    cli_images_print_host(manifest);
    return 0;
}

int cli_images_show(int argc, char **argv)
{
    static const struct cli_images_verb verb = {
        .name = "show",
        .operands = " NAME",
        .about = "What is in an image: its digest, interpreters, environment and packages.",
        .least = 1,
        .most = 1,
        .notes = "\nNAME@sha256:DIGEST shows it if that is its digest. For example:\n"
                 "  cupel images show host\n",
        .host = show_host,
        .engine = true,
        .go = go,
    };
    return cli_images_do(&verb, argc, argv);
}
