/* Checks whether a request can use an interpreter of the host, a process that was started before, a
 * box that was built before. Runs in the engine. */
#include "engine/talk/plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "image/root.h"

/* Each language needs an interpreter that the image's facts name, or a program at a path, and
 * the package of the host that has it. */
enum needs { NEEDS_PYTHON, NEEDS_NODE, NEEDS_BASH };
static const struct {
    enum needs interpreter;
    const char *path, *package;
} programs[REQUEST_LANGUAGES] = {
    [REQUEST_PYTHON] = { NEEDS_PYTHON, NULL, "python3" },
    [REQUEST_JAVASCRIPT] = { NEEDS_NODE, NULL, "nodejs" },
    [REQUEST_TYPESCRIPT] = { NEEDS_NODE, NULL, "nodejs" },
    [REQUEST_BASH] = { NEEDS_BASH, NULL, "bash" },
    [REQUEST_R] = { NEEDS_PYTHON, "usr/lib/R/bin/exec/R", "r-base-core" },
    [REQUEST_JAVA] = { NEEDS_PYTHON, "usr/bin/javac", "default-jdk-headless" },
};

static bool has_program(const struct image *image, const char *path)
{
    own_fd in_tree = image->tree >= 0 ? image_root_open(image->tree, path, O_PATH) : -1;
    own_fd root = in_tree < 0 && image->on_host ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    return in_tree >= 0 || (root >= 0 && faccessat(root, path, X_OK, 0) == 0);
}

static const char *lacks(const struct image *image, enum request_language language)
{
    const struct image_facts *facts = &image->facts;
    const char *path = programs[language].path;
    switch (programs[language].interpreter) {
    case NEEDS_PYTHON:
        if (!facts->python[0])
            return path ? "Python, which drives it" : "Python";
        if (facts->python_minor > 0 && facts->python_minor < PLAN_PYTHON_LEAST)
            return "a Python that cupel can drive: 3.8 or later";
        break;
    case NEEDS_NODE: return facts->node[0] ? NULL : "node";
    case NEEDS_BASH: return facts->bash[0] ? NULL : "bash";
    }
    return path && !has_program(image, path) ? path : NULL;
}

int plan_check_installed(const struct request *request, const struct image *image, struct err *err)
{
    const char *missing = lacks(image, request->language);
    const char *name = request_languages[request->language].name;
    if (request->command || !missing)
        return 0;
    if (!image->hex[0]) {
        err_input(err, "language", name, "an installed language",
                  "language \"%s\" is not installed: apt-get install %s", name,
                  programs[request->language].package);
        err_hint(err, "install it on the host; 'cupel languages' lists the installed ones");
        return -1;
    }
    err_input(err, "language", name, "a language of the image", "image '%s' lacks %s", image->name,
              missing);
    err_hint(err,
             "'cupel languages --image %s' lists what it has; name another image, or add to it "
             "with 'cupel images add'",
             image->name);
    return -1;
}

int plan_blame_image(const struct request *request, const struct image *image, int error,
                     struct err *err)
{
    const char *name = request_languages[request->language].name;
    if (!image->hex[0] || request->command)
        return 0;
    err_input(err, "language", name, "an interpreter that starts",
              "the interpreter of image '%s' for language '%s' does not start: %s", image->name,
              name, strerror(error));
    err_hint(err,
             "its file, or the loader that the file names, is missing or broken: 'cupel images "
             "show %s' tells both",
             image->name);
    return -1;
}

int plan_check_clock(const struct request *request, const struct image *image, struct err *err)
{
    char seed[16];
    if (strcmp(image->facts.libc, "glibc") == 0)
        return 0;
    snprintf(seed, sizeof seed, "%u", request->seed);
    err_input(err, "seed", seed, NULL, "image \"%s\" cannot fix the clock: it has no glibc",
              image->name);
    err_hint(err, "leave 'seed' out, or use an image with glibc");
    return -1;
}

bool plan_may_be_late(const struct request *request)
{
    static const char *const starts[] = { "PYTHON",     "LD_",      "MALLOC_",   "GLIBC_", "NODE_",
                                          "LC_",        "LANG=",    "LANGUAGE=", "TZ=",    "MPL",
                                          "MATPLOTLIB", "OPENSSL_", "BASH_ENV=" };
    if (request->has_seed)
        return false;
    for (size_t i = 0; i < request->env_count; i++) {
        struct str entry = request->env[i];
        if (memmem(entry.at, entry.len, "_NUM_THREADS=", 13))
            return false;
        for (size_t j = 0; j < array_len(starts); j++) {
            size_t len = strlen(starts[j]);
            if (entry.len >= len && memcmp(entry.at, starts[j], len) == 0)
                return false;
        }
    }
    return true;
}

bool plan_same_box(const struct request *a, const struct request *b)
{
    if (a->has_seed || b->has_seed || a->profile->strict != b->profile->strict)
        return false;
    static const enum limits_id fixed[] = { LIMITS_MEMORY, LIMITS_DISK, LIMITS_PIDS, LIMITS_CPUS };
    for (size_t i = 0; i < array_len(fixed); i++) {
        if (a->limits.value[fixed[i]] != b->limits.value[fixed[i]])
            return false;
    }
    return true;
}
