/* Reads the configuration of a server. cli_setup_open runs as the caller, before any right is
 * dropped; a reload runs in the serve process, by a helper that opens the same files as the caller.
 * 1. Options stay over the environment, over the files, also after a reload.
 * 2. New values are used as a whole or not at all. */
#include "cli/serve/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/log.h"
#include "base/own.h"
#include "cli/link/settings.h"
#include "cli/term/term.h"
#include "store/redact/redact.h"

#define PEM_MAX ((size_t)1 << 20)

/* ---- options ---- */

static int take_number(struct config *config, enum config_key key, const struct opt_number *number,
                       struct err *err)
{
    char from[64];
    snprintf(from, sizeof from, "option --%s", config_row(key)->name);
    return number->given
               ? config_take(config, key, json_integer((json_int_t)number->value), from, err)
               : 0;
}

static int take_list(struct config *config, enum config_key key, const char *option,
                     const struct opt_list *list, struct err *err)
{
    json_t *texts = json_array();
    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(texts, json_text(str_of(list->at[i])));
    if (list->count > 0)
        return config_take(config, key, texts, option, err);
    json_decref(texts);
    return 0;
}

/* Paths of options are relative to the folder in which the server is started. */
static int take_path(struct config *config, enum config_key key, const char *option,
                     const char *path, struct err *err)
{
    char here[4096];
    own_buf whole = BUF_INIT(8192);
    if (!path)
        return 0;
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return err_sys(err, "find the folder of '%.200s'", path);
    buf_printf(&whole, "%s%s%s", path[0] == '/' ? "" : here, path[0] == '/' ? "" : "/", path);
    return config_take(config, key, json_text(buf_str(&whole)), option, err);
}

static int take_options(const struct cli_serve_options *flags, struct config *config,
                        struct err *err)
{
    if (flags->insecure_http &&
        config_take(config, CONFIG_INSECURE_HTTP, json_true(), "option --insecure-http", err) < 0)
        return -1;
    if (flags->no_records &&
        config_take(config, CONFIG_RECORDS, json_false(), "option --no-records", err) < 0)
        return -1;
    if (flags->durable &&
        config_take(config, CONFIG_DURABLE, json_true(), "option --durable", err) < 0)
        return -1;
    return take_list(config, CONFIG_LISTEN, "option --listen", &flags->listen, err) < 0 ||
                   take_list(config, CONFIG_HOSTS, "option --host", &flags->hosts, err) < 0 ||
                   take_list(config, CONFIG_ORIGINS, "option --origin", &flags->origins, err) < 0 ||
                   take_path(config, CONFIG_TLS_CERT, "option --tls-cert", flags->tls_cert, err) <
                       0 ||
                   take_path(config, CONFIG_TLS_KEY, "option --tls-key", flags->tls_key, err) < 0 ||
                   take_path(config, CONFIG_TOOLS, "option --tools-dir", flags->tools, err) < 0 ||
                   take_path(config, CONFIG_TOOLS_MCP, "option --mcp", flags->mcp, err) < 0 ||
                   take_path(config, CONFIG_TOOLS_SECRETS, "option --secrets", flags->secrets,
                             err) < 0 ||
                   take_number(config, CONFIG_RUNS, &flags->runs, err) < 0 ||
                   take_number(config, CONFIG_QUEUE, &flags->queue, err) < 0 ||
                   take_number(config, CONFIG_POOL, &flags->pool, err) < 0
               ? -1
               : 0;
}

/* ---- files ---- */

/* By path as the caller, or by the reader later. */
static int open_file(struct cli_setup *setup, enum cli_setup_file file)
{
    if (setup->reader.sock >= 0)
        return cli_reader_file(&setup->reader, file);
    return open(setup->files[file], O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int take_file(struct cli_setup *setup, enum cli_setup_file file, struct config *config,
                     struct err *err)
{
    const char *path = setup->files[file];
    bool named = file == CLI_SETUP_SYSTEM && setup->flags->config;
    if (!path)
        return 0;
    own_fd fd = open_file(setup, file);
    if (fd >= 0)
        return cli_settings_take_fd(config, fd, path, err);
    if (!named && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    err_sys(err, "open the configuration '%.200s'", path);
    err->kind = ERR_INPUT;
    return -1;
}

static int read_pem(struct cli_setup *setup, enum cli_setup_file file, struct buf *out,
                    struct err *err)
{
    struct stat st;
    const char *path = setup->files[file];
    bool secret = file == CLI_SETUP_KEY;
    own_fd fd = path ? open_file(setup, file) : -1;
    *out = BUF_INIT(PEM_MAX);
    if (!path)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(err, "open the %s '%.200s'", secret ? "private key" : "certificate", path);
        err->kind = ERR_INPUT;
        return -1;
    }
    if (secret && (st.st_mode & 07)) {
        err_set(err, ERR_INPUT, "the private key '%.200s' is open to everybody (mode %03o)", path,
                (unsigned)st.st_mode & 0777);
        err_hint(err, "close it: chmod o= '%.200s'", path);
        return -1;
    }
    if (!S_ISREG(st.st_mode) || buf_read(out, fd) < 0)
        return err_set(err, ERR_INPUT, "'%.200s' is no file of at most %zu bytes", path, PEM_MAX);
    if (!strstr(buf_str(out).at, secret ? "PRIVATE KEY-----" : "BEGIN CERTIFICATE-----"))
        return err_set(err, ERR_INPUT, "'%.200s' holds no %s in PEM", path,
                       secret ? "private key" : "certificate");
    return 0;
}

/* ---- one reading ---- */

static void values_done(struct cli_setup_values *values)
{
    config_done(&values->config);
    if (values->key.at)
        explicit_bzero(values->key.at, values->key.len);
    buf_done(&values->cert);
    buf_done(&values->key);
    free(values->hosts);
    free(values->origins);
    free(values->models);
    *values = (struct cli_setup_values){ 0 };
}

/* Other programs started this engine for themselves: it opens no door of the configuration. */
static bool is_private(const struct cli_serve_options *flags)
{
    return flags->fd.given || flags->idle_exit.given;
}

static int read_config(struct cli_setup *setup, struct config *config, struct err *err)
{
    const struct cli_serve_options *flags = setup->flags;
    config_init(config);
    if (take_file(setup, CLI_SETUP_SYSTEM, config, err) < 0 ||
        take_file(setup, CLI_SETUP_USER, config, err) < 0 ||
        cli_settings_take_environment(config, err) < 0)
        return -1;
    if (is_private(flags)) {
        json_decref(config->at[CONFIG_LISTEN].value);
        config->at[CONFIG_LISTEN].value = json_array();
    }
    if (take_options(flags, config, err) < 0 || config_check(config, err) < 0)
        return -1;
    const char **patterns = config_texts(config, CONFIG_REDACT);
    int checked = redact_check(patterns, err);
    free(patterns);
    return checked;
}

/* Nobody's token may cross a network in clear by accident. */
static int check_clear(const struct config *config, struct err *err)
{
    const json_t *list = config->at[CONFIG_LISTEN].value, *text;
    size_t i;
    if (config_is_set(config, CONFIG_TLS_CERT) ||
        json_is_true(config->at[CONFIG_INSECURE_HTTP].value))
        return 0;
    json_array_foreach ((json_t *)(uintptr_t)list, i, text) {
        struct config_address address;
        if (config_address_read(json_string_value(text), &address, err) < 0)
            return -1;
        if (address.is_loopback)
            continue;
        err_set(err, ERR_USAGE,
                "'%.80s' can be reached by other hosts, and without TLS tokens and code would "
                "cross the network in clear",
                json_string_value(text));
        err_hint(err, "give --tls-cert FILE --tls-key FILE, or listen on 127.0.0.1 behind a "
                      "reverse proxy that has TLS, or say --insecure-http");
        return -1;
    }
    return 0;
}

static int read_values(struct cli_setup *setup, struct cli_setup_values *out, struct err *err)
{
    if (read_config(setup, &out->config, err) < 0)
        return -1;
    out->hosts = config_texts(&out->config, CONFIG_HOSTS);
    out->origins = config_texts(&out->config, CONFIG_ORIGINS);
    out->models = config_texts(&out->config, CONFIG_MODELS);
    config_ceilings(&out->config, &out->ceilings);
    return 0;
}

static int read_tls(struct cli_setup *setup, struct cli_setup_values *out, struct err *err)
{
    return read_pem(setup, CLI_SETUP_CERT, &out->cert, err) < 0
               ? -1
               : read_pem(setup, CLI_SETUP_KEY, &out->key, err);
}

int cli_setup_open(const struct cli_serve_options *flags, struct cli_setup *out, struct err *err)
{
    *out = (struct cli_setup){ .flags = flags, .reader = CLI_READER_INIT };
    out->files[CLI_SETUP_SYSTEM] = buf_strdup(
        str_of(flags->config ? flags->config : CONFIG_SYSTEM_FILE));
    out->files[CLI_SETUP_USER] = flags->config ? NULL : cli_settings_user_file();
    if (read_values(out, &out->now, err) < 0 || check_clear(&out->now.config, err) < 0)
        return -1;
    const char *cert = config_text(&out->now.config, CONFIG_TLS_CERT);
    const char *key = config_text(&out->now.config, CONFIG_TLS_KEY);
    if (json_array_size(out->now.config.at[CONFIG_LISTEN].value) == 0 || !cert)
        return 0;
    out->files[CLI_SETUP_CERT] = buf_strdup(str_of(cert));
    out->files[CLI_SETUP_KEY] = buf_strdup(str_of(key));
    return read_tls(out, &out->now, err);
}

void cli_setup_close(struct cli_setup *setup)
{
    cli_reader_close(&setup->reader);
    values_done(&setup->now);
    values_done(&setup->before);
    for (size_t i = 0; i < CLI_SETUP_FILES; i++)
        own_free_str(&setup->files[i]);
}

int cli_setup_watch(struct cli_setup *setup, struct err *err)
{
    return cli_reader_open((const char *const *)setup->files, CLI_SETUP_FILES, &setup->reader, err);
}

void cli_setup_fill(const struct cli_setup *setup, struct api_options *out)
{
    const struct cli_setup_values *now = &setup->now;
    out->http.hosts = (const char *const *)now->hosts;
    out->http.origins = (const char *const *)now->origins;
    out->http.tls_cert = now->cert.len > 0 ? now->cert.at : NULL;
    out->http.tls_key = now->key.len > 0 ? now->key.at : NULL;
    config_caps(&now->config, out->http.caps);
    out->keep_files_s = config_integer(&now->config, CONFIG_RETENTION_FILES);
    out->cache_ttl_s = config_integer(&now->config, CONFIG_CACHE_TTL);
    out->keep_blobs_s = config_integer(&now->config, CONFIG_RETENTION_BLOBS);
    out->ceilings = &now->ceilings;
    out->profile = config_text(&now->config, CONFIG_PROFILE);
    out->image = config_text(&now->config, CONFIG_IMAGE);
}

int cli_setup_log(const struct cli_setup *setup, struct err *err)
{
    const char *where = config_text(&setup->now.config, CONFIG_LOG);
    bool journal = strcmp(where, "journal") == 0 ||
                   (strcmp(where, "stderr") == 0 && log_is_journal(STDERR_FILENO));
    if (journal && log_open_journal() == 0)
        return 0;
    if (strcmp(where, "journal") == 0) {
        err_sys(err, "open the journal");
        err_hint(err, "no journal runs here: set \"log\" to \"stderr\"");
        return -1;
    }
    log_open(strcmp(where, "off") == 0 || cli_term_is_quiet() ? -1 : STDERR_FILENO);
    return 0;
}

/* ---- again ---- */

static bool is_same(const struct config *a, const struct config *b, enum config_key key)
{
    return json_equal(a->at[key].value, b->at[key].value);
}

/* Values that only a start can change stay as they are. */
static void keep_fixed(const struct config *old, struct config *new, json_t *kept)
{
    for (enum config_key key = 0; key < CONFIG_COUNT; key++) {
        if (config_row(key)->reloads || is_same(old, new, key))
            continue;
        json_array_append_new(kept, json_string(config_row(key)->name));
        json_decref(new->at[key].value);
        new->at[key].value = json_incref(old->at[key].value);
    }
}

static json_t *changes(const struct cli_setup_values *old, const struct cli_setup_values *new)
{
    json_t *out = json_array();
    for (enum config_key key = 0; key < CONFIG_COUNT; key++)
        if (!is_same(&old->config, &new->config, key))
            json_array_append_new(out, json_string(config_row(key)->name));
    if (!str_eq(buf_str(&old->cert), buf_str(&new->cert)))
        json_array_append_new(out, json_string("tls.cert"));
    if (!str_eq(buf_str(&old->key), buf_str(&new->key)))
        json_array_append_new(out, json_string("tls.key"));
    return out;
}

static void tell(const struct err *err, json_t *changed, json_t *kept)
{
    own_json first = changed;
    own_json second = kept;
    if (err->kind != ERR_NONE)
        log_line(LOG_LINE_ERROR, "reload_failed",
                 json_pack("{s:s, s:s*, s:s*, s:s}", "message", err->text, "field",
                           *err->field ? err->field : NULL, "hint", *err->hint ? err->hint : NULL,
                           "values", "the old ones stay"));
    else
        log_line(json_array_size(kept) ? LOG_LINE_WARN : LOG_LINE_INFO, "reload",
                 json_pack("{s:O, s:O}", "changed", first, "next_start", second));
}

void cli_setup_reload(struct cli_setup *setup,
                      int (*apply)(void *user, const struct cli_setup *setup, struct err *err),
                      void *user)
{
    struct cli_setup_values fresh = { 0 }, old = setup->now;
    struct err err = ERR_INIT;
    json_t *kept = json_array(), *changed = NULL;
    bool used = false;
    if (read_values(setup, &fresh, &err) == 0 && read_tls(setup, &fresh, &err) == 0) {
        keep_fixed(&old.config, &fresh.config, kept);
        setup->now = fresh;
        used = apply(user, setup, &err) == 0;
        if (used)
            changed = changes(&old, &fresh);
        else
            setup->now = old;
    }
    tell(&err, changed, kept);
    values_done(used ? &setup->before : &fresh);
    if (used)
        setup->before = old;
    if (used && cli_setup_log(setup, &err) < 0)
        log_line(LOG_LINE_ERROR, "reload_failed", json_pack("{s:s}", "message", err.text));
}
