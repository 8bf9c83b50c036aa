/* Checks whether a request can use an interpreter of the host, a process that was started before, a
 * box that was built before. Runs in the engine. */
#include "engine/talk/plan.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"

#ifdef __x86_64__
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#else
#define LOADER "/lib/ld-linux-aarch64.so.1"
#endif

/* The program of each language that a host may lack, and the package that has it. */
static const struct {
    const char *path, *package;
} programs[REQUEST_LANGUAGES] = {
    [REQUEST_JAVASCRIPT] = { PLAN_NODE, "nodejs" },
    [REQUEST_TYPESCRIPT] = { PLAN_NODE, "nodejs" },
    [REQUEST_R] = { "/usr/lib/R/bin/exec/R", "r-base-core" },
    [REQUEST_JAVA] = { "/usr/bin/javac", "default-jdk-headless" },
};

int plan_check_installed(const struct request *request, struct err *err)
{
    const char *path = programs[request->language].path, *name;
    if (request->command || !path || access(path, X_OK) == 0)
        return 0;
    name = request_languages[request->language].name;
    err_input(err, "language", name, "an installed language",
              "language \"%s\" is not installed: apt-get install %s", name,
              programs[request->language].package);
    err_hint(err, "install it on the host; 'cupel languages' lists the installed ones");
    return -1;
}

int plan_check_clock(const struct request *request, struct err *err)
{
    char seed[16];
    if (access(LOADER, X_OK) == 0)
        return 0;
    snprintf(seed, sizeof seed, "%u", request->seed);
    err_input(err, "seed", seed, NULL, "image \"%s\" cannot fix the clock: it has no '%s'",
              request->image, LOADER);
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
    if (a->has_seed || b->has_seed)
        return false;
    static const enum limits_id fixed[] = { LIMITS_MEMORY, LIMITS_DISK, LIMITS_PIDS, LIMITS_CPUS };
    for (size_t i = 0; i < array_len(fixed); i++) {
        if (a->limits.value[fixed[i]] != b->limits.value[fixed[i]])
            return false;
    }
    return true;
}
