/* Settings of pip, npm and apt. `open` runs as the caller, `plant` in the same process after the
 * drop of rights: what the files say is outside text, of which only paths are looked at. */
#include "image/make/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"

#define VALUE_MAX ((size_t)16 << 10)
#define FILE_MAX ((size_t)1 << 20)

/* Taken from the caller's environment. */
static const char *const names[] = {
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST",
    "PIP_CERT", "PIP_CLIENT_CERT", "PIP_PROXY", "PIP_RETRIES", "PIP_DEFAULT_TIMEOUT", "PIP_PRE",
    "npm_config_registry", "NPM_CONFIG_REGISTRY", "npm_config_cafile", "NPM_CONFIG_CAFILE",
    "npm_config_proxy", "npm_config_https_proxy", "npm_config_noproxy", "NODE_EXTRA_CA_CERTS",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "APT_CONFIG",
};

/* Files, where they are looked for and where they are planted. */
static const struct {
    const char *variable; /* names the file, if set */
    const char *base;     /* else a folder that this variable names */
    const char *path;     /* below it, or below home if it is not set */
    const char *home;
    const char *planted;  /* NULL: only its paths are taken: programs read it where it is */
} files[MAKE_SETTINGS_FILES] = {
    { "PIP_CONFIG_FILE", "XDG_CONFIG_HOME", "pip/pip.conf", ".config/pip/pip.conf",
      "home/.config/pip/pip.conf" },
    { NULL, NULL, NULL, ".pip/pip.conf", "home/.pip/pip.conf" },
    { "npm_config_userconfig", NULL, NULL, ".npmrc", "home/.npmrc" },
    { NULL, NULL, "/etc/pip.conf", NULL, NULL },
    { "APT_CONFIG", NULL, NULL, NULL, NULL },
};

static void list_done(char **list)
{
    for (; *list; list++) {
        explicit_bzero(*list, strlen(*list)); /* an address may hold a password */
        free(*list);
    }
}

void make_settings_done(struct make_settings *settings)
{
    list_done(settings->env);
    list_done(settings->reads);
    for (size_t i = 0; i < MAKE_SETTINGS_FILES; i++)
        own_close_fd(&settings->files[i]);
    *settings = MAKE_SETTINGS_INIT;
}

static int add_env(struct make_settings *settings, const char *name, const char *value,
                   struct err *err)
{
    own_buf text = BUF_INIT(VALUE_MAX);
    if (settings->env_count == MAKE_SETTINGS_ENV || buf_printf(&text, "%s=%s", name, value) < 0)
        return err_set(err, ERR_LIMIT, "environment variable '%s' has more than %zu bytes", name,
                       VALUE_MAX);
    settings->env[settings->env_count++] = buf_take(&text);
    return 0;
}

static void add_read(struct make_settings *settings, struct str path)
{
    while (path.len > 1 && path.at[path.len - 1] == '/')
        path.len--;
    bool is_host = path.len > 2 && path.at[1] == '/' && path.at[2] != '/'; /* "//host/path" */
    if (path.len > 1 && !is_host && settings->reads_count < MAKE_SETTINGS_READS)
        settings->reads[settings->reads_count++] = buf_strdup(path);
}

/* Every absolute path that a text names, also as "file:///path". */
static void add_paths(struct make_settings *settings, struct str text)
{
    static const char ends[] = " \t\r\n,;:=\"'[]";
    size_t start = 0;
    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && !memchr(ends, text.at[i], sizeof ends - 1) && text.at[i])
            continue;
        if (i > start && text.at[start] == '/')
            add_read(settings, (struct str){ text.at + start, i - start });
        start = i + 1;
    }
}

/* As the caller. */
static int open_file(size_t i)
{
    const char *named = files[i].variable ? getenv(files[i].variable) : NULL;
    const char *base = files[i].base ? getenv(files[i].base) : NULL, *home = getenv("HOME");
    own_buf path = BUF_INIT(4096);
    struct stat info;
    int rc = named && *named                   ? buf_add_text(&path, named)
             : base && *base                   ? buf_printf(&path, "%s/%s", base, files[i].path)
             : files[i].home && home           ? buf_printf(&path, "%s/%s", home, files[i].home)
             : !files[i].home && files[i].path ? buf_add_text(&path, files[i].path)
                                               : -1;
    if (rc < 0)
        return -1;
    own_fd fd = open(path.at, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? take_fd(&fd) : -1;
}

int make_settings_open(struct make_settings *out, struct err *err)
{
    for (size_t i = 0; i < array_len(names); i++) {
        const char *value = getenv(names[i]);
        if (!value)
            continue;
        if (add_env(out, names[i], value, err) < 0)
            return -1;
        add_paths(out, str_of(value));
        /* Sources that a configuration of apt names may be beside it. */
        const char *slash = strcmp(names[i], "APT_CONFIG") == 0 ? strrchr(value, '/') : NULL;
        if (slash)
            add_read(out, (struct str){ value, (size_t)(slash - value) });
    }
    for (size_t i = 0; i < MAKE_SETTINGS_FILES; i++)
        out->files[i] = open_file(i);
    return 0;
}

/* ---- after the drop ---- */

static int plant(struct make_settings *settings, size_t i, int stage_fd, struct err *err)
{
    own_buf text = BUF_INIT(FILE_MAX);
    if (settings->files[i] < 0)
        return 0;
    if (buf_read(&text, settings->files[i]) < 0)
        return errno == EFBIG ? err_set(err, ERR_LIMIT,
                                        "a configuration file of pip, npm or apt "
                                        "has more than %zu bytes",
                                        FILE_MAX)
                              : err_sys(err, "read a configuration file of pip, npm or apt");
    add_paths(settings, buf_str(&text));
    if (!files[i].planted)
        return 0;
    own_fd fd = openat(stage_fd, files[i].planted, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || io_write_all(fd, text.at ? text.at : "", text.len) < 0)
        return err_sys(err, "copy a configuration file into the build");
    return 0;
}

static const char *const folders[] = {
    "home", "home/.config", "home/.config/pip", "home/.pip", "tmp", "cache", "cache/pip",
    "cache/npm",
};

/* Set for every program of a build, beside the caller's own: `at` is below the stage. */
static const struct {
    const char *name, *value, *at;
} fixed[] = {
    { "PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", NULL },
    { "LANG", "C.UTF-8", NULL },
    { "LC_ALL", "C.UTF-8", NULL },
    { "HOME", NULL, "home" },
    { "TMPDIR", NULL, "tmp" },
    { "XDG_CONFIG_HOME", NULL, "home/.config" },
    { "PIP_CACHE_DIR", NULL, "cache/pip" },
    { "PIP_NO_INPUT", "1", NULL },
    { "PIP_DISABLE_PIP_VERSION_CHECK", "1", NULL },
    { "PIP_ROOT_USER_ACTION", "ignore", NULL },
    { "PYTHONNOUSERSITE", "1", NULL },
    { "PYTHONDONTWRITEBYTECODE", "1", NULL },
    { "SOURCE_DATE_EPOCH", "315532800", NULL },
    { "npm_config_cache", NULL, "cache/npm" },
    { "npm_config_update_notifier", "false", NULL },
    { "DEBIAN_FRONTEND", "noninteractive", NULL },
};

int make_settings_plant(struct make_settings *settings, int stage_fd, const char *stage,
                        struct err *err)
{
    for (size_t i = 0; i < array_len(folders); i++)
        if (mkdirat(stage_fd, folders[i], 0700) < 0)
            return err_sys(err, "make a folder of the build");
    for (size_t i = 0; i < MAKE_SETTINGS_FILES; i++)
        if (plant(settings, i, stage_fd, err) < 0)
            return -1;
    for (size_t i = 0; i < array_len(fixed); i++) {
        own_buf path = BUF_INIT(VALUE_MAX);
        if (fixed[i].at && buf_printf(&path, "%s/%s", stage, fixed[i].at) < 0)
            return err_set(err, ERR_LIMIT, "the path of the state folder is too long");
        if (add_env(settings, fixed[i].name, fixed[i].at ? path.at : fixed[i].value, err) < 0)
            return -1;
    }
    return 0;
}
