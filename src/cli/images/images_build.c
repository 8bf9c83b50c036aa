/* Builds of images. Runs in the cli process. */
#include "cli/images/images_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/images/images_progress.h"
#include "cli/link/settings.h"
#include "cli/term/interrupt.h"
#include "cli/term/term.h"
#include "image/make/policy.h"

int cli_builder_open(struct cli_builder *builder, struct err *err)
{
    config_init(&builder->config);
    builder->open = true;
    if (cli_settings_read(NULL, &builder->config, err) < 0 ||
        make_settings_open(&builder->settings, err) < 0 ||
        cli_interrupt_open(&builder->stop_fd, err) < 0)
        return -1;
    if (cli_images_open_state(&builder->images, err) < 0)
        return -1;
    return cli_images_open_store(&builder->images, /* make= */ true, err);
}

void cli_builder_close(struct cli_builder *builder)
{
    if (builder->open)
        config_done(&builder->config);
    make_settings_done(&builder->settings);
    cli_images_close(&builder->images);
    own_close_fd(&builder->stop_fd);
    builder->open = false;
}

static int check_policy(const struct cli_builder *builder, const struct cli_build *build,
                        struct err *err)
{
    const struct config *config = &builder->config;
    const char **packages = config_texts(config, CONFIG_IMAGES_PACKAGES);
    const struct make_policy policy = {
        .builds = json_is_true(config->at[CONFIG_IMAGES_BUILDS].value),
        .pinned = json_is_true(config->at[CONFIG_IMAGES_PINNED].value),
        .hashes = json_is_true(config->at[CONFIG_IMAGES_HASHES].value),
        .packages = packages,
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && packages[i]; i++)
        if (!make_policy_pattern_valid(str_of(packages[i])))
            rc = err_input(err, "images.packages", packages[i],
                           "pip:NAME, npm:NAME, apt:NAME or NAME, with '*'",
                           "'images.packages' of the configuration has a bad pattern '%.100s'",
                           packages[i]);
    if (rc == 0)
        rc = make_policy_check(&policy, build->wants, build->lock, err);
    free(packages);
    return rc;
}

/* A name is not added to: a stranger may take `add data --npm zod` for that. */
static void note_old(const char *name, const struct image_entry *before,
                     const struct image_entry *now)
{
    if (before->hex[0] && strcmp(before->hex, now->hex) != 0)
        cli_term_note("'%s' was another image until now; '--from %s' would have added to it", name,
                      name);
}

/* "host", or "sha256:HEX" of the tree that a name leads to. */
static int find_base(const struct cli_builder *builder, const char *from, char *out, size_t room,
                     struct err *err)
{
    own_image_entry entry = IMAGE_ENTRY_INIT;
    snprintf(out, room, "host");
    if (!from || strcmp(from, "host") == 0)
        return 0;
    if (cli_images_find(&builder->images, from, &entry, err) < 0)
        return -1;
    snprintf(out, room, "sha256:%s", entry.hex);
    return 0;
}

int cli_builder_make(struct cli_builder *builder, const struct cli_build *build,
                     struct image_entry *out, struct err *err)
{
    struct cli_progress progress;
    own_image_entry before = IMAGE_ENTRY_INIT;
    struct err ignored = ERR_INIT;
    char base[80];
    bool bare = false;
    if (!image_store_name_valid(build->name)) {
        err_input(err, "name", build->name, "a-z 0-9 . _ -, at most 63, and not 'host'",
                  "'%.80s' is no name for an image", build->name);
        err_hint(err, "it begins with a letter or digit");
        return -1;
    }
    if (check_policy(builder, build, err) < 0 ||
        find_base(builder, build->from, base, sizeof base, err) < 0)
        return -1;
    (void)!image_store_find_any(&builder->images.store, build->name, &before, &ignored);
    cli_progress_open(&progress, build->verbose);
    const struct make_order order = {
        .name = build->name,
        .from = build->from ? base : NULL,
        .wants = build->wants,
        .lock = build->lock,
        .debian = build->debian,
        .settings = &builder->settings,
        .timeout_s = build->timeout_s ? build->timeout_s : CLI_BUILD_TIMEOUT_S,
        .stop_fd = builder->stop_fd,
        .verbose = build->verbose,
        .step = cli_progress_step,
        .said = cli_progress_said,
        .user = &progress,
    };
    int rc = make_image(&builder->images.store, &order, out, &bare, err);
    cli_progress_close(&progress);
    if (rc == 0 && !build->from && !build->debian)
        note_old(build->name, &before, out);
    if (bare)
        cli_term_note("this kernel has no Landlock: pip, npm and apt were not confined to the "
                      "build's folder");
    return rc;
}

static void print_lock(const json_t *lock)
{
    size_t i;
    json_t *item;
    for (size_t kind = 0; kind < MAKE_KINDS; kind++)
        json_array_foreach (json_object_get(lock, make_kind_names[kind]), i, item) {
            struct str name = json_get_str(item, kind == MAKE_NPM ? "path" : "name");
            printf("  %-9s %s %s\n", make_kind_names[kind],
                   kind == MAKE_NPM ? make_npm_name(name.at) : name.at,
                   json_get_str(item, "version").at);
        }
}

int cli_builder_tell(const struct cli_builder *builder, const struct image_entry *image, bool json,
                     struct err *err)
{
    const json_t *lock = json_object_get(image->manifest, "lock");
    char digest[72], host[72] = "";
    if (image->on_host && cli_images_host_digest(&builder->images, host, err) < 0)
        return -1;
    image_store_digest(image, host, digest);
    if (json) {
        own_json out = json_pack("{s:{s:s, s:s, s:o, s:O*, s:O*}}", "image", "name", image->name,
                                 "digest", digest, "tree", json_sprintf("sha256:%s", image->hex),
                                 "base", json_object_get(image->manifest, "base"), "lock", lock);
        return cli_term_json(out);
    }
    printf("%s%s%s\n  %-9s %s\n", cli_term_style(1, CLI_BOLD), image->name,
           cli_term_style(1, CLI_PLAIN), "digest", digest);
    print_lock(lock);
    return 0;
}
