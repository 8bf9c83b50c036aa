/* Packages of Debian, by the host's apt-get and dpkg-deb. Runs in the cli process after the drop of
 * rights; both are children (child.h), with a state and a cache of their own in the stage. Their
 * words on packages are outside text.
 * 1. A package is unpacked, and no script of it runs. Of its files an image on the host gets those
 *    below /usr: a box shows no more of it.
 * 2. apt resolves against the packages that the host has. The lock has the versions and the sums of
 *    the files, which apt has checked against the signed lists. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/own.h"
#include "image/make/job.h"

#define APT_GET "/usr/bin/apt-get"
#define DPKG_DEB "/usr/bin/dpkg-deb"
#define STATUS "/var/lib/dpkg/status"
#define SAID_MAX ((size_t)4 << 20)

static int check_apt(const struct make_job *job, struct err *err)
{
    if (!job->on_host) {
        err_input(err, "apt", NULL, "an image on the host",
                  "packages of Debian are added to images on the host alone");
        err_hint(err, "'cupel images build --debian RELEASE --apt PACKAGE NAME' makes a whole "
                      "image of such packages");
        return -1;
    }
    if (access(APT_GET, X_OK) == 0 && access(DPKG_DEB, X_OK) == 0 && access(STATUS, R_OK) == 0)
        return 0;
    err_set(err, ERR_HOST, "this host has no apt, which adds packages of Debian");
    err_hint(err, "--apt works on Debian and its relatives");
    return -1;
}

struct apt_options {
    char texts[3][PATH_MAX];
};

/* apt's folders are in the stage; its sources, keys and proxies are the host's. */
static int begin(const struct make_job *job, struct apt_options *options, struct make_words *words,
                 struct err *err)
{
    static const char *const folders[] = { "apt", "apt/state", "apt/state/lists",
                                           "apt/state/lists/partial", "apt/cache",
                                           "apt/cache/archives", "apt/cache/archives/partial",
                                           "apt/log" };
    static const char *const fixed[] = { "-o", ("Dir::State::status=" STATUS),
                                         "-o", "Debug::NoLocking=1",
                                         "-o", "APT::Sandbox::User=",
                                         "-o", "Acquire::Languages=none",
                                         "-o", "APT::Get::AutomaticRemove=false",
                                         "-o", "Dpkg::Use-Pty=0",
                                         "-q" };
    static const char *const places[][2] = { { "Dir::State", "state" },
                                             { "Dir::Cache", "cache" },
                                             { "Dir::Log", "log" } };
    if (check_apt(job, err) < 0)
        return -1;
    for (size_t i = 0; i < array_len(folders); i++)
        if (make_stage_folder(job, folders[i], err) < 0)
            return -1;
    *words = make_words_of(APT_GET, "--download-only");
    for (size_t i = 0; i < array_len(fixed); i++)
        make_words_add(words, fixed[i]);
    for (size_t i = 0; i < array_len(places); i++) {
        if (snprintf(options->texts[i], PATH_MAX, "%s=%s/apt/%s", places[i][0], job->scene->stage,
                     places[i][1]) >= PATH_MAX)
            return err_set(err, ERR_LIMIT, "the path of the state folder is too long");
        make_words_add(words, "-o");
        make_words_add(words, options->texts[i]);
    }
    return 0;
}

static int update(const struct make_job *job, const struct make_words *options, struct err *err)
{
    struct make_words words = *options;
    make_job_step(job, "reading the lists of Debian's packages");
    make_words_add(&words, "update");
    return make_child_must(job->scene, "apt", "apt-get", words.at, err);
}

/* ---- the files that apt has fetched ---- */

/* One field of a package's own description. */
static int ask_field(const struct make_job *job, const char *file, const char *field, char *out,
                     size_t room, struct err *err)
{
    char path[NAME_MAX + 64];
    own_buf said = BUF_INIT(4096);
    snprintf(path, sizeof path, "cache/archives/%s", file);
    const struct make_words words = make_words_of(DPKG_DEB, "-f", path, field);
    if (make_child_ask(job->scene, "apt", "dpkg-deb", words.at, &said, err) < 0)
        return -1;
    struct str text = str_trim(buf_str(&said));
    if (text.len == 0 || text.len >= room || memchr(text.at, '\n', text.len))
        return err_set(err, ERR_INPUT, "package file '%.200s' has no good field '%s'", file, field);
    memcpy(out, text.at, text.len);
    out[text.len] = '\0';
    return 0;
}

/* Called for each file of a package, in no order. */
typedef int (*each_deb)(struct make_job *job, int dirfd, const char *file, struct err *err);

static int for_each(struct make_job *job, each_deb see, struct err *err)
{
    int own = make_stage_open(job, "apt/cache/archives", err);
    own_dirp dir = own < 0 ? NULL : fdopendir(own);
    if (!dir)
        return -1;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (str_ends(str_of(entry->d_name), STR(".deb")) && see(job, own, entry->d_name, err) < 0)
            return -1;
    return 0;
}

static int lock_one(struct make_job *job, int dirfd, const char *file, struct err *err)
{
    char name[MAKE_NAME_ROOM], version[MAKE_VERSION_ROOM], hex[HASH_HEX_ROOM];
    if (make_stage_hash(dirfd, file, hex, err) < 0 ||
        ask_field(job, file, "Package", name, sizeof name, err) < 0 ||
        ask_field(job, file, "Version", version, sizeof version, err) < 0)
        return -1;
    return make_lock_add(&job->lock, MAKE_APT, str_of(name), str_of(version), str_of(hex), err);
}

/* A line "'ADDRESS' FILE SIZE HASH" for each file that apt would fetch. */
static size_t count_files(struct str said)
{
    size_t count = 0;
    while (said.len > 0) {
        const char *end = memchr(said.at, '\n', said.len);
        size_t len = end ? (size_t)(end - said.at) + 1 : said.len;
        count += said.at[0] == '\'';
        said = (struct str){ said.at + len, said.len - len };
    }
    return count;
}

/* apt uses files of "file:" sources where they are, and fetches none. */
static int check_fetched(struct make_job *job, const struct make_words *install, struct err *err)
{
    struct make_words words = *install;
    own_buf said = BUF_INIT(SAID_MAX);
    words.at[1] = "--print-uris";
    if (make_child_ask(job->scene, "apt", "apt-get", words.at, &said, err) < 0)
        return -1;
    size_t left = count_files(buf_str(&said));
    if (left == 0)
        return 0;
    err_set(err, ERR_HOST, "apt-get did not fetch %zu of the packages", left);
    err_hint(err, "a source 'file:' or 'cdrom:' of apt's cannot be used; 'copy:' can");
    return -1;
}

int make_apt_resolve(struct make_job *job, struct err *err)
{
    struct apt_options options;
    struct make_words words;
    if (begin(job, &options, &words, err) < 0 || update(job, &words, err) < 0)
        return -1;
    static const char *const more[] = { "install", "-y", "--no-remove", "--no-install-recommends",
                                        "--" };
    make_job_step(job, "fetching packages of Debian");
    for (size_t i = 0; i < array_len(more); i++)
        make_words_add(&words, more[i]);
    for (size_t i = 0; i < job->wants->count; i++)
        if (job->wants->at[i].kind == MAKE_APT)
            make_words_add(&words, job->wants->at[i].text);
    if (make_child_must(job->scene, "apt", "apt-get", words.at, err) < 0 ||
        check_fetched(job, &words, err) < 0)
        return -1;
    return for_each(job, lock_one, err);
}

/* ---- from a lock ---- */

static int check_one(struct make_job *job, int dirfd, const char *file, struct err *err)
{
    char name[MAKE_NAME_ROOM], hex[HASH_HEX_ROOM];
    if (make_stage_hash(dirfd, file, hex, err) < 0 ||
        ask_field(job, file, "Package", name, sizeof name, err) < 0)
        return -1;
    const struct make_locked *item = make_lock_find(&job->lock, MAKE_APT, name);
    if (item && strcmp(item->hash, hex) == 0)
        return 0;
    return err_input(err, "apt", name, item ? item->hash : "a package of the lock",
                     "the file of '%s' has SHA-256 %s, which is not the lock's", name, hex);
}

static int fetch(struct make_job *job, struct err *err)
{
    static struct apt_options options;
    struct make_words words;
    size_t count = job->lock.counts[MAKE_APT];
    if (begin(job, &options, &words, err) < 0 || update(job, &words, err) < 0)
        return -1;
    make_job_step(job, "fetching packages of Debian");
    char(*texts)[MAKE_NAME_ROOM + MAKE_VERSION_ROOM] = buf_alloc_zero(count, sizeof *texts);
    make_words_add(&words, "download");
    make_words_add(&words, "--");
    for (size_t i = 0; i < count; i++) {
        const struct make_locked *item = &job->lock.items[MAKE_APT][i];
        snprintf(texts[i], sizeof *texts, "%.*s=%s", MAKE_NAME_ROOM - 1, item->name, item->version);
        make_words_add(&words, texts[i]);
    }
    int rc = make_child_must(job->scene, "apt/cache/archives", "apt-get", words.at, err);
    free(texts);
    return rc < 0 ? -1 : for_each(job, check_one, err);
}

/* ---- unpacking ---- */

static int unpack_one(struct make_job *job, int dirfd, const char *file, struct err *err)
{
    char path[NAME_MAX + 64];
    (void)dirfd;
    snprintf(path, sizeof path, "cache/archives/%s", file);
    const struct make_words words = make_words_of(DPKG_DEB, "-x", path, "root");
    return make_child_must(job->scene, "apt", "dpkg-deb", words.at, err);
}

int make_apt_add(struct make_job *job, struct err *err)
{
    static const char *const old[] = { "bin", "sbin", "lib", "lib64" };
    if (job->lock.counts[MAKE_APT] == 0)
        return 0;
    if (job->locked && fetch(job, err) < 0)
        return -1;
    make_job_step(job, "unpacking packages of Debian");
    if (make_stage_folder(job, "apt/root", err) < 0 || for_each(job, unpack_one, err) < 0)
        return -1;
    /* /lib of a package is /usr/lib on every system of today. */
    for (size_t i = 0; i < array_len(old); i++) {
        char from[32], at[32];
        snprintf(from, sizeof from, "apt/root/%s", old[i]);
        snprintf(at, sizeof at, "usr/%s", old[i]);
        if (make_stage_take(job, from, at, err) < 0)
            return -1;
    }
    return make_stage_take(job, "apt/root/usr", "usr", err);
}
