/* The configuration's word on builds. Runs in the cli process; pure. */
#include "image/make/policy.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static bool fits(const char *pattern, enum make_kind kind, const char *name)
{
    const char *colon = strchr(pattern, ':');
    if (colon && ((size_t)(colon - pattern) != strlen(make_kind_names[kind]) ||
                  strncmp(pattern, make_kind_names[kind], (size_t)(colon - pattern)) != 0))
        return false;
    return fnmatch(colon ? colon + 1 : pattern, name, FNM_NOESCAPE) == 0;
}

bool make_policy_pattern_valid(struct str text)
{
    static const char others[] = "@/._+~*-";
    const char *colon = text.len ? memchr(text.at, ':', text.len) : NULL;
    bool known = !colon;
    for (size_t kind = 0; colon && kind < MAKE_KINDS; kind++)
        known |= str_is((struct str){ text.at, (size_t)(colon - text.at) }, make_kind_names[kind]);
    size_t start = colon ? (size_t)(colon - text.at) + 1 : 0;
    for (size_t i = start; i < text.len; i++) {
        char c = text.at[i];
        known &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 (c && strchr(others, c));
    }
    return known && start < text.len && text.len < MAKE_NAME_ROOM;
}

static int check_name(const struct make_policy *policy, enum make_kind kind, const char *name,
                      struct err *err)
{
    own_buf list = BUF_INIT(400);
    if (!policy->packages || !policy->packages[0])
        return 0;
    for (const char *const *at = policy->packages; *at; at++)
        if (fits(*at, kind, name))
            return 0;
    for (const char *const *at = policy->packages; *at; at++)
        if (buf_printf(&list, "%s%s", at == policy->packages ? "" : ", ", *at) < 0)
            break;
    err_input(err, make_kind_names[kind], name, "the names in 'images.packages'",
              "the configuration does not let a build add '%.200s' of %s", name,
              make_kind_names[kind]);
    err_hint(err, "allowed: %s", list.at ? list.at : "");
    return -1;
}

static int check_want(const struct make_policy *policy, const struct make_want *want,
                      struct err *err)
{
    static const char *const forms[MAKE_KINDS] = { "NAME==VERSION", "NAME@1.2.3", "NAME=VERSION" };
    if (check_name(policy, want->kind, want->name, err) < 0)
        return -1;
    if (!policy->pinned || want->pinned)
        return 0;
    err_input(err, make_kind_names[want->kind], want->text, "an exact version",
              "the configuration asks for an exact version of '%.200s'", want->text);
    err_hint(err, "write it as %s ('images.pinned' is true)", forms[want->kind]);
    return -1;
}

int make_policy_check(const struct make_policy *policy, const struct make_wants *wants,
                      const struct make_lock *lock, struct err *err)
{
    if (!policy->builds) {
        err_input(err, "images.builds", "false", "true",
                  "the configuration does not let images be built");
        err_hint(err, "'cupel images' lists the images that are here");
        return -1;
    }
    if (policy->hashes && !lock) {
        err_input(err, "images.hashes", "true", "a lock",
                  "the configuration lets images be built from a lock alone");
        err_hint(err, "'cupel images lock NAME' writes one where builds are free; 'cupel images "
                      "add NAME --lock FILE' takes it");
        return -1;
    }
    for (size_t i = 0; i < wants->count; i++)
        if (check_want(policy, &wants->at[i], err) < 0)
            return -1;
    for (enum make_kind kind = 0; lock && kind < MAKE_KINDS; kind++)
        for (size_t i = 0; i < lock->counts[kind]; i++) {
            const struct make_locked *item = &lock->items[kind][i];
            const char *name = kind != MAKE_NPM ? item->name
                               : item->alias[0] ? item->alias
                                                : make_npm_name(item->name);
            if (check_name(policy, kind, name, err) < 0)
                return -1;
        }
    return 0;
}
