/* `cupel images pull`: an image of a registry into the store. Runs in the cli process: settings,
 * certificates and credentials are opened as the caller, then rights are dropped, and only then is
 * the network asked and the store written. */
#include "cli/images/images_pull.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/images/images.h"
#include "cli/link/settings.h"
#include "cli/term/term.h"
#include "contract/config.h"
#include "image/pull/auth_file.h"
#include "image/pull/pull.h"

#define CA_FILE_MAX ((size_t)1 << 20)
#define IDLE_MOST_S 3600
#define MINE struct cli_images_pull_options
#define AT(member) offsetof(MINE, member)

const struct opt cli_images_pull_table[] = {
    { "name", 0, "NAME", OPT_TEXT, AT(name), "name of the image; by default REF's last part" },
    { "tls-ca", 0, "FILE", OPT_TEXT, AT(tls_ca),
      "trust the authorities of this file, PEM, as well" },
    { "plain-http", 0, NULL, OPT_FLAG, AT(plain_http),
      "ask without TLS; for registries on this host alone" },
    { "max-size", 0, "SIZE", OPT_BYTES, AT(max_size), "refuse to load more than this; 16G" },
    { "idle-timeout", 0, "S", OPT_NUMBER, AT(idle_s),
      "seconds of silence, or as good as silence, that end a try; 30" },
    { "json", 0, NULL, OPT_FLAG, AT(json), "print the answer as JSON and nothing else" },
    { "quiet", 'q', NULL, OPT_FLAG, AT(quiet), "no progress and no notes on standard error" },
    { "help", 'h', NULL, OPT_FLAG, AT(help), "show this text" },
};
const size_t cli_images_pull_rows = array_len(cli_images_pull_table);

static void print_help(void)
{
    fputs("usage: cupel images pull [OPTION]... REGISTRY/NAME[:TAG][@sha256:DIGEST]\n"
          "\n"
          "Load an image from a registry.\n"
          "\n"
          "Options:\n",
          stdout);
    opt_print_help(cli_images_pull_table, cli_images_pull_rows, stdout);
    fputs("\nCredentials are read from the file that REGISTRY_AUTH_FILE names, else from\n"
          "~/.docker/config.json. For example:\n"
          "  cupel images pull registry.example.org/team/tool:1.2\n"
          "  cupel images pull --plain-http --name tool localhost:5000/team/tool\n",
          stdout);
}

/* --- what the caller has --- */

struct job {
    MINE options;
    struct pull_ref ref;
    char name[IMAGE_NAME_ROOM];
    struct buf ca, auth;
    char *auth_path;
    int64_t shown_ns; /* when the progress was last drawn */
    bool drawn;
};

static void job_done(struct job *job)
{
    buf_done(&job->ca);
    buf_done(&job->auth);
    free(job->auth_path);
}

static int read_ca(struct job *job, struct err *err)
{
    const char *path = job->options.tls_ca;
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return err_sys(err, "open the certificates '%.200s' of --tls-ca", path);
    if (buf_read(&job->ca, fd) < 0)
        return err_sys(err, "read '%.200s'", path);
    if (!memmem(buf_str(&job->ca).at, job->ca.len, "-----BEGIN CERTIFICATE-----", 27)) {
        err_input(err, "tls_ca", NULL, "certificates as PEM", "'%.200s' holds no certificate",
                  path);
        err_hint(err, "convert it by 'openssl x509 -inform DER -in %.200s'", path);
        return -1;
    }
    return 0;
}

static int check_options(const MINE *o, struct err *err)
{
    if (o->name && !image_store_name_valid(o->name)) {
        err_input(err, "name", NULL, "a-z 0-9 . _ -, at most 63, not 'host'",
                  "'%.80s' is no name of an image", o->name);
        err_hint(err, "small letters, digits, '.', '_' and '-', for example my-image");
        return -1;
    }
    if (o->max_size.given && o->max_size.value < 1)
        return err_input(err, "max_size", NULL, "at least 1 byte", "no image has no bytes");
    if (o->idle_s.given && !(o->idle_s.value >= 1 && o->idle_s.value <= IDLE_MOST_S))
        return err_input(err, "idle_timeout", NULL, "1 to 3600",
                         "option '--idle-timeout' is a number of seconds, 1 to %d", IDLE_MOST_S);
    return 0;
}

static int read_reference(struct job *job, const char *text, struct err *err)
{
    own_config config;
    config_init(&config);
    if (cli_settings_read(/* file= */ NULL, &config, err) < 0 ||
        pull_ref_read(text, config_text(&config, CONFIG_IMAGES_REGISTRY), &job->ref, err) < 0)
        return -1;
    if (job->options.name)
        snprintf(job->name, sizeof job->name, "%s", job->options.name);
    else
        pull_ref_name(&job->ref, job->name, sizeof job->name);
    return 0;
}

/* --- progress --- */

static bool is_watched(void)
{
    return isatty(STDERR_FILENO) && !cli_term_is_quiet();
}

static void draw(struct job *job, const struct buf *line)
{
    cli_term_write(STDERR_FILENO, STR("\r\x1b[K"));
    cli_term_write(STDERR_FILENO, buf_str(line));
    job->drawn = line->len > 0;
}

static void erase(struct job *job)
{
    const struct buf nothing = BUF_INIT(0);
    if (job->drawn)
        draw(job, &nothing);
}

static bool is_due(struct job *job)
{
    int64_t now = clock_now_ns();
    if (!is_watched() || now - job->shown_ns < 100 * CLOCK_MS)
        return false;
    job->shown_ns = now;
    return true;
}

static void on_bytes(void *user, int64_t done, int64_t total)
{
    struct job *job = user;
    own_buf line = BUF_INIT(120);
    if (!is_due(job))
        return;
    cli_term_add_size(&line, (double)done);
    buf_add_text(&line, " of ");
    cli_term_add_size(&line, (double)total);
    draw(job, &line);
}

static void on_unpack(void *user, int64_t bytes)
{
    struct job *job = user;
    own_buf line = BUF_INIT(120);
    if (!is_due(job))
        return;
    buf_add_text(&line, "unpacked ");
    cli_term_add_size(&line, (double)bytes);
    draw(job, &line);
}

static void on_wait(void *user, double seconds, const char *why)
{
    erase(user);
    cli_term_note("%s; again in %.1f s", why, seconds);
}

/* --- the pull --- */

static int pull(struct job *job, struct image_entry *out, struct pull_report *report,
                struct err *err)
{
    const MINE *o = &job->options;
    attr_cleanup(cli_images_close) struct cli_images images = CLI_IMAGES_INIT;
    const struct pull_options options = {
        .ref = &job->ref,
        .name = job->name,
        .ca_pem = o->tls_ca ? buf_str(&job->ca) : STR_NONE,
        .auth_file = job->auth_path ? buf_str(&job->auth) : STR_NONE,
        .plain_http = o->plain_http,
        .idle_ms = o->idle_s.given ? (int)(o->idle_s.value * 1000) : PULL_IDLE_MS,
        .max_bytes = o->max_size.given ? (int64_t)o->max_size.value : PULL_BYTES_MAX,
        .on_bytes = on_bytes,
        .on_wait = on_wait,
        .on_unpack = on_unpack,
        .user = job,
    };
    if (cli_images_open_state(&images, err) < 0 ||
        cli_images_open_store(&images, /* make= */ true, err) < 0)
        return -1;
    int rc = pull_image(&images.store, &options, out, report, err);
    erase(job);
    return rc;
}

static int show(const struct job *job, const struct image_entry *entry,
                const struct pull_report *report)
{
    if (job->options.json) {
        own_json out = json_pack("{s:s, s:O, s:I, s:I, s:b}", "image", entry->name, "manifest",
                                 entry->manifest, "layers", (json_int_t)report->layers,
                                 "loaded_bytes", (json_int_t)report->loaded_bytes, "was_there",
                                 report->was_there);
        return cli_term_json(out);
    }
    own_buf size = BUF_INIT(40);
    cli_term_add_size(&size, (double)report->loaded_bytes);
    if (report->was_there)
        cli_term_note("the image was there already: nothing was loaded");
    else
        cli_term_note("loaded %s in %zu layers", size.at, report->layers);
    printf("%s%s%s sha256:%s\n", cli_term_style(1, CLI_BOLD), entry->name,
           cli_term_style(1, CLI_PLAIN), entry->hex);
    return 0;
}

static int prepare(struct job *job, const struct opt_operands *operands, struct err *err)
{
    if (operands->count != 1) {
        err_set(err, ERR_USAGE, "'cupel images pull' takes one reference");
        err_hint(err, "cupel images pull REGISTRY/NAME:TAG");
        return -1;
    }
    if (check_options(&job->options, err) < 0 || read_reference(job, operands->at[0], err) < 0 ||
        (job->options.tls_ca && read_ca(job, err) < 0))
        return -1;
    return pull_auth_file_read(&job->auth, &job->auth_path, err);
}

int cli_images_pull(int argc, char **argv)
{
    attr_cleanup(job_done) struct job job = { .ca = BUF_INIT(CA_FILE_MAX),
                                              .auth = BUF_INIT(PULL_AUTH_FILE_MAX) };
    struct opt_operands operands;
    struct err err = ERR_INIT;
    struct pull_report report = { 0 };
    own_image_entry entry = IMAGE_ENTRY_INIT;
    int rc = opt_parse(cli_images_pull_table, cli_images_pull_rows, argc, argv, &job.options,
                       &operands, &err);
    cli_term_set_quiet(job.options.quiet);
    if (rc == 0 && job.options.help) {
        print_help();
        return 0;
    }
    if (rc < 0 || prepare(&job, &operands, &err) < 0 || pull(&job, &entry, &report, &err) < 0)
        return cli_term_refuse(&err, job.options.json);
    return show(&job, &entry, &report);
}
