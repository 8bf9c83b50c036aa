/* Reads a virtual environment: `pyvenv.cfg`, and where `bin/python` leads. Runs in the cli process
 * after the drop of rights; the clerk opens files. All of it is hostile: it is bounded, compared
 * and shown as text. */
#include "cli/run/venv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own.h"

#define CONFIG "pyvenv.cfg"
#define CONFIG_MAX 65536
#define LINKS_MAX 4

static int refuse(const struct cli_folder *folder, const char *why, struct err *err)
{
    err_input(err, "venv", NULL, NULL, "'%.200s' is no virtual environment: %s", folder->path, why);
    err_hint(err, "make one: python3 -m venv DIR");
    return -1;
}

static int read_config(struct cli_folder *folder, struct buf *out, struct err *err)
{
    struct err why = ERR_INIT;
    struct stat st;
    own_fd fd = -1;
    if (clerk_read(&folder->clerk, STR(CONFIG), &fd, &why) < 0 || fstat(fd, &st) < 0)
        return refuse(folder, "it has no readable file '" CONFIG "'", err);
    if (st.st_size > CONFIG_MAX || buf_read(out, fd) < 0) {
        char value[32];
        snprintf(value, sizeof value, "%lld", (long long)st.st_size);
        return err_input(err, CONFIG, value, "at most 65536 bytes",
                         "'" CONFIG "' of '%.200s' has %s bytes, and 65536 at most are read",
                         folder->path, value);
    }
    return 0;
}

/* The value of a line "NAME = VALUE", or nothing. */
static struct str value_of(struct str line, const char *name)
{
    const char *equals = line.len > 0 ? memchr(line.at, '=', line.len) : NULL;
    if (!equals)
        return STR_NONE;
    struct str key = { line.at, (size_t)(equals - line.at) };
    struct str value = { equals + 1, line.len - key.len - 1 };
    return str_is(str_trim(key), name) ? str_trim(value) : STR_NONE;
}

/* 11 of "3.11.2", or 0. */
static int minor_of(struct str version)
{
    char text[16];
    str_plain(text, sizeof text, version);
    return strncmp(text, "3.", 2) == 0 ? (int)strtol(text + 2, NULL, 10) : 0;
}

static int parse(const struct cli_folder *folder, struct str text, struct request_venv *out,
                 struct err *err)
{
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        struct str line = { text.at, end ? (size_t)(end - text.at) : text.len };
        text.at += line.len + (end ? 1 : 0);
        text.len -= line.len + (end ? 1 : 0);
        struct str home = value_of(line, "home"), version = value_of(line, "version");
        version = version.len > 0 ? version : value_of(line, "version_info");
        if (version.len > 0)
            out->minor = minor_of(version);
        if (home.len == 0)
            continue;
        if (home.at[0] != '/' || home.len >= sizeof out->home || memchr(home.at, 0, home.len) ||
            !str_is_utf8(home))
            return refuse(folder, "'home' in its '" CONFIG "' is no path", err);
        str_plain(out->home, sizeof out->home, home);
    }
    return out->home[0] ? 0 : refuse(folder, "its '" CONFIG "' names no 'home'", err);
}

/* Is it a program of the folder that the environment names? */
static bool is_of_home(const char *target, const char *home)
{
    const char *slash = strrchr(target, '/');
    size_t len = slash ? (size_t)(slash - target) : 0;
    const char *name = slash ? slash + 1 : target;
    bool same = strlen(home) == len && strncmp(home, target, len) == 0;
    bool merged = (strcmp(home, "/usr/bin") == 0 && len == 4 && strncmp(target, "/bin", 4) == 0) ||
                  (strcmp(home, "/bin") == 0 && len == 8 && strncmp(target, "/usr/bin", 8) == 0);
    return (same || merged) && strncmp(name, "python", 6) == 0;
}

/* From `bin/python` over links to the interpreter. */
static int follow(struct cli_folder *folder, const char *home, struct err *err)
{
    char path[256] = "bin/python";
    for (int i = 0; i < LINKS_MAX; i++) {
        struct change_entry entry = { .kind = CHANGE_NOTHING };
        if (clerk_look(&folder->clerk, str_of(path), &entry, err) < 0)
            return -1;
        own_str target = entry.target;
        if (entry.kind == CHANGE_FILE)
            return 0; /* a copy of the interpreter */
        if (entry.kind != CHANGE_LINK || !target)
            return refuse(folder, "it has no program 'bin/python'", err);
        if (target[0] != '/') {
            if (strchr(target, '/') || strlen(target) + sizeof "bin/" > sizeof path)
                return refuse(folder, "its 'bin/python' leads out of its folder 'bin'", err);
            snprintf(path, sizeof path, "bin/%s", target);
            continue;
        }
        if (is_of_home(target, home))
            return 0;
        char shown[200];
        str_plain(shown, sizeof shown, str_of(target));
        err_input(err, "venv", NULL, NULL,
                  "'bin/python' of '%.200s' leads to '%s', which is no Python of its home '%s'",
                  folder->path, shown, home);
        err_hint(err, "make it anew: python3 -m venv --clear DIR");
        return -1;
    }
    return refuse(folder, "its 'bin/python' is a chain of links", err);
}

int cli_venv_read(struct cli_folder *folder, struct request_venv *out, struct err *err)
{
    own_buf text = BUF_INIT(CONFIG_MAX);
    if (strlen(folder->path) >= REQUEST_VENV_PATH)
        return refuse(folder, "its path is longer than 1023 bytes", err);
    *out = (struct request_venv){ .path = folder->path };
    if (read_config(folder, &text, err) < 0 || parse(folder, buf_str(&text), out, err) < 0)
        return -1;
    return follow(folder, out->home, err);
}
