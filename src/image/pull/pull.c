/* An image of a registry into the store. Runs in the cli process, after rights are dropped. A
 * download lies in a file without a name, in the build's own folder: it ends with the process. */
#include "image/pull/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "image/archive/archive.h"
#include "image/pull/auth_file.h"
#include "image/pull/fetch.h"

static void own_close_build(struct image_build **build)
{
    image_build_close(*build);
}
#define own_image_build attr_cleanup(own_close_build) struct image_build *

/* --- what is there --- */

/* An earlier pull of this manifest. 1 if there is one that is not damaged. */
static int find_earlier(struct image_store *store, const char *manifest, struct image_entry *out,
                        struct err *err)
{
    own_json list = NULL;
    size_t i;
    json_t *row;
    if (image_store_list(store, &list, err) < 0)
        return -1;
    json_array_foreach (list, i, row) {
        struct err none = ERR_INIT;
        own_image_entry entry = IMAGE_ENTRY_INIT;
        const char *name = json_string_value(json_object_get(row, "name"));
        if (!name || image_store_find(store, name, &entry, &none) < 0 ||
            !str_is(json_get_str(entry.manifest, "manifest"), manifest) ||
            strncmp(json_get_str(entry.manifest, "source").at, "docker://", 9) != 0)
            continue;
        *out = entry;
        entry = IMAGE_ENTRY_INIT;
        return 1;
    }
    return 0;
}

/* --- facts --- */

static int add_facts(const struct pull_options *options, const struct pull_found *found,
                     json_t *facts, struct err *err)
{
    char text[PULL_REF_ROOM], source[PULL_REF_ROOM + 16];
    pull_ref_text(options->ref, text);
    snprintf(source, sizeof source, "docker://%s", text);
    own_json added = json_pack("{s:s, s:s, s:s}", "source", source, "pulled", found->named,
                               "manifest", found->manifest.digest);
    if (!added || json_object_update(facts, added) < 0)
        return err_set(err, ERR_BUG, "write the facts of the image");
    return 0;
}

/* The facts of the earlier pull that are the image's own: its place in the store is not. */
static json_t *earlier_facts(const struct image_entry *entry)
{
    static const char *const own[] = { "env", "workdir", "entrypoint", "cmd", "config", "base" };
    json_t *facts = json_object();
    for (size_t i = 0; i < array_len(own); i++)
        if (json_object_get(entry->manifest, own[i]))
            json_object_set(facts, own[i], json_object_get(entry->manifest, own[i]));
    return facts;
}

/* --- the two ways --- */

static int name_earlier(struct image_store *store, const struct pull_options *options,
                        const struct pull_found *found, const struct image_entry *earlier,
                        struct image_entry *out, struct err *err)
{
    own_image_build build = NULL;
    own_json facts = earlier_facts(earlier);
    if (image_build_start(store, earlier, &build, err) < 0 ||
        add_facts(options, found, facts, err) < 0)
        return -1;
    return image_build_finish(build, options->name, facts, out, err);
}

static int open_stage(struct image_build *build, int *out_fd, struct err *err)
{
    int dir = -1;
    if (image_build_stage(build, &dir, err) < 0)
        return -1;
    int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        fd = openat(dir, "pull", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0)
            unlinkat(dir, "pull", 0);
    }
    if (fd < 0)
        return err_sys(err, "make a file for the image");
    *out_fd = fd;
    return 0;
}

static void on_unpack(void *user, int64_t bytes, int64_t entries)
{
    const struct pull_options *options = user;
    (void)entries;
    if (options->on_unpack)
        options->on_unpack(options->user, bytes);
}

static int load(struct image_store *store, struct pull_remote *remote,
                const struct pull_options *options, const struct pull_fetch_options *fetch,
                const struct pull_found *found, struct image_entry *out, struct err *err)
{
    own_image_build build = NULL;
    own_fd fd = -1;
    own_import_report report = IMAGE_IMPORT_REPORT_INIT;
    struct pull_options copy = *options;
    const struct image_import_options import = { .progress = on_unpack, .user = &copy };
    if (image_build_start(store, /* from= */ NULL, &build, err) < 0 ||
        open_stage(build, &fd, err) < 0 || pull_fetch_layout(remote, fetch, found, fd, err) < 0 ||
        image_import(build, fd, &import, &report, err) < 0 ||
        add_facts(options, found, report.facts, err) < 0)
        return -1;
    return image_build_finish(build, options->name, report.facts, out, err);
}

int pull_image(struct image_store *store, const struct pull_options *options,
               struct image_entry *out, struct pull_report *report, struct err *err)
{
    struct utsname host;
    char basic[PULL_BASIC_ROOM] = "";
    own_pull_remote remote = NULL;
    own_pull_found found = { 0 };
    own_image_entry earlier = IMAGE_ENTRY_INIT;
    if (uname(&host) < 0)
        return err_sys(err, "ask for this machine's kind");
    if (options->auth_file.at && pull_auth_find(options->auth_file, options->ref, basic, err) < 0)
        return -1;
    const struct pull_remote_options to = { .ref = options->ref,
                                            .ca_pem = options->ca_pem,
                                            .basic = basic,
                                            .plain_http = options->plain_http,
                                            .idle_ms = options->idle_ms,
                                            .on_wait = options->on_wait,
                                            .user = options->user };
    const struct pull_fetch_options fetch = { .ref = options->ref,
                                              .machine = host.machine,
                                              .max_bytes = options->max_bytes,
                                              .on_bytes = options->on_bytes,
                                              .user = options->user };
    if (pull_remote_open(&to, &remote, err) < 0 || pull_fetch_find(remote, &fetch, &found, err) < 0)
        return -1;
    int there = find_earlier(store, found.manifest.digest, &earlier, err);
    if (there < 0)
        return -1;
    *report = (struct pull_report){ .layers = found.image.count,
                                    .was_there = there > 0,
                                    .loaded_bytes = there > 0 ? 0 : found.image.bytes };
    return there > 0 ? name_earlier(store, options, &found, &earlier, out, err)
                     : load(store, remote, options, &fetch, &found, out, err);
}
