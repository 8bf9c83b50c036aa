/* Packages of JavaScript, by the host's npm. Runs in the cli process after the drop of rights; npm
 * is a child (child.h). Its words on packages are outside text.
 * 1. --ignore-scripts: no code of a package runs. npm resolves to paths, versions and hashes; they
 *    are the lock. Then npm installs from a package-lock.json that is made from the lock, so that
 *    `add --lock` gives the same image.
 * 2. Packages for other systems are left out of the lock, as npm leaves them out of a folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "image/make/job.h"

#define LOCK_MAX ((size_t)64 << 20)
#define HASH_MARK "sha512-"

static const char *find_npm(struct err *err)
{
    static const char *const places[] = { "/usr/local/bin/npm", "/usr/bin/npm" };
    for (size_t i = 0; i < array_len(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    err_set(err, ERR_HOST, "this host has no npm, which adds packages of JavaScript");
    err_hint(err, "apt-get install npm");
    return NULL;
}

static const char *const always[] = { "--ignore-scripts", "--no-audit", "--no-fund",
                                      "--no-progress", "--no-bin-links" };

static int run(struct make_job *job, const char *cwd, struct make_words *words, struct err *err)
{
    for (size_t i = 0; i < array_len(always); i++)
        make_words_add(words, always[i]);
    if (job->verbose)
        make_words_add(words, "--loglevel=http");
    return make_child_must(job->scene, cwd, "npm", words->at, err);
}

/* ---- the lock ---- */

/* "os", "cpu" and "libc" of a package: lists of names, or of names with "!" before them. */
static bool fits(const json_t *package, const char *member, const char *ours)
{
    const json_t *list = json_object_get(package, member);
    bool named = false, refused = false, any = json_array_size(list) == 0;
    size_t i;
    json_t *item;
    json_array_foreach ((json_t *)(uintptr_t)list, i, item) {
        const char *text = json_string_value(item);
        if (!text)
            continue;
        if (text[0] == '!') {
            refused |= strcmp(text + 1, ours) == 0;
            any = true;
        } else {
            named |= strcmp(text, ours) == 0;
        }
    }
    return !refused && (named || any);
}

static struct str sha512_of(const json_t *package)
{
    struct str all = json_get_str(package, "integrity");
    const char *at = all.len ? memmem(all.at, all.len, HASH_MARK, sizeof HASH_MARK - 1) : NULL;
    if (!at)
        return STR("");
    struct str rest = { at, all.len - (size_t)(at - all.at) };
    const char *end = memchr(rest.at, ' ', rest.len);
    return end ? (struct str){ rest.at, (size_t)(end - rest.at) } : rest;
}

static int take_package(struct make_job *job, const char *path, const json_t *package,
                        struct err *err)
{
    const char *cpu = strcmp(job->machine, "x86_64") == 0    ? "x64"
                      : strcmp(job->machine, "aarch64") == 0 ? "arm64"
                                                             : job->machine;
    const char *libc = job->on_host || !job->facts.libc[0] ? "glibc" : job->facts.libc;
    struct str name = json_get_str(package, "name");
    if (json_is_true(json_object_get(package, "inBundle")) || !fits(package, "os", "linux") ||
        !fits(package, "cpu", cpu) || !fits(package, "libc", libc))
        return 0;
    if (json_is_true(json_object_get(package, "link")))
        return err_set(err, ERR_INPUT, "'%.200s' of npm is a link to a folder", path);
    if (make_lock_add(&job->lock, MAKE_NPM, str_of(path), json_get_str(package, "version"),
                      sha512_of(package), err) < 0)
        return err_wrap(err, "npm's lock");
    struct make_locked *last = &job->lock.items[MAKE_NPM][job->lock.counts[MAKE_NPM] - 1];
    if (name.len > 0 && !str_is(name, make_npm_name(path)))
        return make_lock_alias(last, name, err);
    return 0;
}

int make_npm_resolve(struct make_job *job, struct err *err)
{
    const char *npm = find_npm(err);
    make_job_step(job, "resolving packages of JavaScript");
    if (!npm || make_stage_folder(job, "npm", err) < 0 ||
        make_stage_write(job, "npm/package.json",
                         STR("{\"name\":\"image\",\"version\":\"1.0.0\",\"private\":true}\n"),
                         err) < 0)
        return -1;
    struct make_words words = make_words_of(npm, "install", "--package-lock-only");
    for (size_t i = 0; i < job->wants->count; i++)
        if (job->wants->at[i].kind == MAKE_NPM)
            make_words_add(&words, job->wants->at[i].text);
    if (run(job, "npm", &words, err) < 0)
        return -1;
    own_buf text = BUF_INIT(0);
    if (make_stage_read(job, "npm/package-lock.json", LOCK_MAX, &text, err) < 0)
        return -1;
    own_json whole = json_read(buf_str(&text), LOCK_MAX, err);
    const json_t *packages = json_object_get(whole, "packages");
    const char *path;
    json_t *package;
    if (!json_is_object(packages)) {
        err_set(err, ERR_HOST, "npm writes a lock of another form than that of npm 7 and later");
        err_hint(err, "'npm --version' says which one this is");
        return -1;
    }
    json_object_foreach ((json_t *)(uintptr_t)packages, path, package)
        if (path[0] && take_package(job, path, package, err) < 0)
            return -1;
    return 0;
}

/* ---- installing ---- */

/* "a" of "node_modules/a/node_modules/b": the package that the one at `path` is for. */
static json_t *parent_of(json_t *packages, const char *path)
{
    size_t len = (size_t)(make_npm_name(path) - path) - strlen("node_modules/");
    own_str parent = buf_strdup((struct str){ path, len ? len - 1 : 0 });
    return json_object_get(packages, parent);
}

/* Every package depends on exactly the packages below it, and the root on all others: npm calls
 * none of them superfluous, and looks for none. */
static json_t *make_packages(const struct make_lock *lock, struct err *err)
{
    json_t *packages = json_pack("{s:{s:s, s:s}}", "", "name", "image", "version", "1.0.0");
    for (size_t i = 0; i < lock->counts[MAKE_NPM]; i++) {
        const struct make_locked *item = &lock->items[MAKE_NPM][i];
        json_t *package = json_pack("{s:s, s:s}", "version", item->version, "integrity",
                                    item->hash);
        if (item->alias[0])
            json_object_set_new(package, "name", json_string(item->alias));
        json_object_set_new(packages, item->name, package);
    }
    for (size_t i = 0; i < lock->counts[MAKE_NPM]; i++) {
        const struct make_locked *item = &lock->items[MAKE_NPM][i];
        json_t *parent = parent_of(packages, item->name);
        if (!parent) {
            err_input(err, "npm", item->name, "a path whose folders are in the lock, too",
                      "'%.200s' of the lock is below a package that the lock has not", item->name);
            json_decref(packages);
            return NULL;
        }
        json_t *depends = json_object_get(parent, "dependencies");
        if (!depends)
            json_object_set_new(parent, "dependencies", depends = json_object());
        json_object_set_new(depends, make_npm_name(item->name),
                            item->alias[0] ? json_sprintf("npm:%s@%s", item->alias, item->version)
                                           : json_string(item->version));
    }
    return packages;
}

static int write_json(const struct make_job *job, const char *path, const json_t *value,
                      struct err *err)
{
    own_str text = json_write(value, JSON_COMPACT);
    return make_stage_write(job, path, str_of(text), err);
}

static int write_lock(const struct make_job *job, struct err *err)
{
    own_json packages = make_packages(&job->lock, err);
    if (!packages)
        return -1;
    own_json lock = json_pack("{s:s, s:s, s:i, s:b, s:O}", "name", "image", "version", "1.0.0",
                              "lockfileVersion", 3, "requires", 1, "packages", packages);
    own_json package = json_pack("{s:s, s:s, s:b}", "name", "image", "version", "1.0.0", "private",
                                 1);
    json_object_set(package, "dependencies",
                    json_object_get(json_object_get(packages, ""), "dependencies"));
    if (write_json(job, "npm-ci/package.json", package, err) < 0)
        return -1;
    return write_json(job, "npm-ci/package-lock.json", lock, err);
}

/* A package of the image below makes way for another version of it, with all below it. */
static int replace(struct make_job *job, struct err *err)
{
    for (size_t i = 0; i < job->lock.counts[MAKE_NPM]; i++) {
        char path[MAKE_PATH_ROOM + 64];
        const char *name = job->lock.items[MAKE_NPM][i].name;
        snprintf(path, sizeof path, "usr/local/lib/%s", name);
        if (make_npm_name(name) == name + strlen("node_modules/") &&
            image_build_remove(job->build, str_of(path), err) < 0)
            return -1;
    }
    return 0;
}

int make_npm_add(struct make_job *job, struct err *err)
{
    const char *npm = find_npm(err);
    if (job->lock.counts[MAKE_NPM] == 0)
        return 0;
    make_job_step(job, "installing packages of JavaScript");
    if (!npm || make_stage_folder(job, "npm-ci", err) < 0 || write_lock(job, err) < 0)
        return -1;
    struct make_words words = make_words_of(npm, "ci");
    if (run(job, "npm-ci", &words, err) < 0)
        return -1;
    own_fd modules = make_stage_open(job, "npm-ci/node_modules", err);
    if (modules < 0)
        return -1;
    /* npm's notes on the folder have addresses of the index. */
    if (make_stage_remove(modules, ".package-lock.json") < 0 ||
        make_stage_remove(modules, ".bin") < 0)
        return err_sys(err, "remove npm's own files from the build");
    if (job->tree_fd >= 0 && replace(job, err) < 0)
        return -1;
    return make_stage_take(job, "npm-ci/node_modules", MAKE_MODULES, err);
}
