/* A minimal Debian, by the host's mmdebstrap. Runs in the cli process after the drop of rights;
 * mmdebstrap is a child (child.h) with apt, dpkg-deb and tar below it, all behind the same walls.
 * 1. It resolves, checks the signatures of the lists with Debian's keys, loads, and unpacks. No
 *    script of a package runs, so there is no chroot, and nobody needs the rights of root.
 * 2. So nothing is configured. Here follows what code needs of that: folders of the merged /usr,
 *    users and groups, and links that Debian's alternatives make.
 * The mirror's files are outside text, and so are its packages' names. */
#include "image/make/debian.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"

#define MMDEBSTRAP "/usr/bin/mmdebstrap"
#define APT_GET "/usr/bin/apt-get"
#define KEYS "/usr/share/keyrings/debian-archive-keyring.gpg"
#define USUAL_MIRROR "http://deb.debian.org/debian"
#define ROOT "debian/root"
#define SUITE_MOST 40
#define TARGETS_MAX ((size_t)1 << 20)
#define USERS_MAX ((size_t)64 << 10)
#define INCLUDE_MAX ((size_t)128 << 10)

bool make_debian_suite_valid(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (!((c >= 'a' && c <= 'z') || (i > 0 && ((c >= '0' && c <= '9') || c == '-'))))
            return false;
    }
    return text.len > 0 && text.len <= SUITE_MOST;
}

bool make_debian_mirror_valid(struct str text)
{
    static const char *const heads[] = { "http://", "https://" };
    bool known = false;
    for (size_t i = 0; i < array_len(heads); i++)
        known |= text.len > strlen(heads[i]) && memcmp(text.at, heads[i], strlen(heads[i])) == 0;
    for (size_t i = 0; i < text.len; i++)
        known &= text.at[i] > ' ' && text.at[i] < 127 && !strchr("'\"\\[]", text.at[i]);
    return known && text.len < MAKE_MIRROR_ROOM;
}

static int check(struct err *err)
{
    if (access(MMDEBSTRAP, X_OK) == 0 && access(KEYS, R_OK) == 0)
        return 0;
    err_set(err, ERR_HOST, "this host has no %s, which makes images of Debian",
            access(MMDEBSTRAP, X_OK) < 0 ? "mmdebstrap" : "keys of Debian's archive");
    err_hint(err, "apt-get install mmdebstrap debian-archive-keyring");
    return -1;
}

/* ---- the mirror ---- */

/* The first repository of the host's apt with this end of its path: the others are of others. */
static bool take_mirror(struct str said, char out[MAKE_MIRROR_ROOM])
{
    while (said.len > 0) {
        const char *end = memchr(said.at, '\n', said.len);
        struct str line = { said.at, end ? (size_t)(end - said.at) : said.len };
        said.at += line.len + (end != NULL);
        said.len -= line.len + (end != NULL);
        while (line.len > 0 && line.at[line.len - 1] == '/')
            line.len--;
        if (!str_ends(line, STR("/debian")) || !make_debian_mirror_valid(line))
            continue;
        snprintf(out, MAKE_MIRROR_ROOM, "%.*s", (int)line.len, line.at);
        return true;
    }
    return false;
}

static void find_mirror(const struct make_job *job, const struct make_debian *debian,
                        char out[MAKE_MIRROR_ROOM])
{
    own_buf said = BUF_INIT(TARGETS_MAX);
    struct err ignored = ERR_INIT;
    const struct make_words words = make_words_of(APT_GET, "indextargets", "--format",
                                                  "$(REPO_URI)", "Created-By: Packages");
    snprintf(out, MAKE_MIRROR_ROOM, "%s", debian->mirror ? debian->mirror : USUAL_MIRROR);
    if (!debian->mirror && access(APT_GET, X_OK) == 0 &&
        make_child_ask(job->scene, ".", "apt-get", words.at, &said, &ignored) == 0)
        (void)!take_mirror(buf_str(&said), out);
}

/* ---- unpacking ---- */

static int unpack(const struct make_job *job, const struct make_debian *debian, const char *mirror,
                  struct err *err)
{
    own_buf names = BUF_INIT(INCLUDE_MAX);
    bool full = false;
    for (size_t i = 0; i < job->wants->count; i++)
        if (job->wants->at[i].kind == MAKE_APT)
            full |= buf_printf(&names, "%s%s",
                               names.len > 0 ? "," : "--include=", job->wants->at[i].text) < 0;
    if (full)
        return err_set(err, ERR_LIMIT, "the names of the packages have more than %zu bytes",
                       INCLUDE_MAX);
    /* A pattern of apt's is an option of its own: behind a comma it would be a name. */
    struct make_words words = make_words_of(MMDEBSTRAP, "--mode=chrootless", "--variant=extract",
                                            "--format=directory", "--skip=cleanup/apt/cache",
                                            "--keyring=" KEYS, "--include=?essential");
    const char *const last[] = { debian->suite, "root", mirror };
    if (names.len > 0)
        make_words_add(&words, names.at);
    for (size_t i = 0; i < array_len(last); i++)
        make_words_add(&words, last[i]);
    return make_child_must(job->scene, "debian", "mmdebstrap", words.at, err);
}

/* "libc6_2.36-9+deb12u10_amd64.deb", with "%3a" for a colon. */
static int add_package(json_t *list, int dirfd, const char *file, struct err *err)
{
    char text[NAME_MAX + 1], hex[HASH_HEX_ROOM], *colon;
    snprintf(text, sizeof text, "%s", file);
    char *version = strchr(text, '_'), *end = strrchr(text, '_');
    if (!version || version == end)
        return err_set(err, ERR_INPUT, "mmdebstrap left a package file without a version");
    *version++ = *end = '\0';
    while ((colon = strstr(version, "%3a"))) {
        *colon = ':';
        memmove(colon + 1, colon + 3, strlen(colon + 3) + 1);
    }
    if (!make_name_valid(MAKE_APT, str_of(text)) || !make_version_valid(str_of(version)))
        return err_set(err, ERR_INPUT, "the mirror has a package file with a bad name");
    if (make_stage_hash(dirfd, file, hex, err) < 0)
        return -1;
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s}", "name", text, "version", version, "sha256", hex));
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    return strcmp(json_get_str(*x, "name").at, json_get_str(*y, "name").at);
}

/* In the order of their names, so that equal images have equal manifests. */
static json_t *sorted(const json_t *list)
{
    size_t count = json_array_size(list);
    json_t *out = json_array();
    json_t **items = buf_alloc_zero(count + 1, sizeof(json_t *));
    for (size_t i = 0; i < count; i++)
        items[i] = json_array_get(list, i);
    qsort(items, count, sizeof(json_t *), by_name);
    for (size_t i = 0; i < count; i++)
        json_array_append(out, items[i]);
    free(items);
    return out;
}

static int read_packages(const struct make_job *job, json_t **out, struct err *err)
{
    static const char at[] = ROOT "/var/cache/apt/archives";
    own_json list = json_array();
    int own = make_stage_open(job, at, err);
    own_dirp dir = own < 0 ? NULL : fdopendir(own);
    if (!dir)
        return -1;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (str_ends(str_of(entry->d_name), STR(".deb")) &&
            add_package(list, own, entry->d_name, err) < 0)
            return -1;
    *out = sorted(list);
    return 0;
}

/* ---- the least of a configuration ---- */

/* Of the machine, or of this build; and folders that are empty in an image. */
static const char *const unwanted[] = {
    "etc/hostname", "etc/resolv.conf", "etc/apt/sources.list", "etc/apt/sources.list.d",
    "etc/apt/apt.conf.d/99mmdebstrap", "var/cache", "var/log", "var/lib/apt", "var/lib/dpkg",
    "dev", "proc", "sys", "run", "tmp", "boot", "media", "mnt",
};

static int clean(const struct make_job *job, struct err *err)
{
    own_fd root = make_stage_open(job, ROOT, err);
    if (root < 0)
        return -1;
    for (size_t i = 0; i < array_len(unwanted); i++) {
        char above[64];
        snprintf(above, sizeof above, "%s", unwanted[i]);
        char *slash = strrchr(above, '/');
        if (slash)
            *slash = '\0';
        own_fd dir = slash ? openat(root, above, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                           : -1;
        if (slash && dir < 0)
            continue;
        if (make_stage_remove(slash ? dir : root, slash ? slash + 1 : above) < 0)
            return err_sys(err, "remove '%s' of the build", unwanted[i]);
    }
    return 0;
}

/* As base-passwd's script would. */
static int add_users(const struct make_job *job, struct err *err)
{
    static const char *const files[][2] = {
        { ROOT "/usr/share/base-passwd/passwd.master", ROOT "/etc/passwd" },
        { ROOT "/usr/share/base-passwd/group.master", ROOT "/etc/group" },
    };
    for (size_t i = 0; i < array_len(files); i++) {
        own_buf text = BUF_INIT(USERS_MAX);
        struct err ignored = ERR_INIT;
        if (make_stage_read(job, files[i][0], USERS_MAX, &text, &ignored) == 0 &&
            make_stage_write(job, files[i][1], buf_str(&text), err) < 0)
            return -1;
    }
    return 0;
}

static int add_links(const struct make_job *job, struct err *err)
{
    static const char *const links[][3] = {
        /* the link, its target, and a file that must be there */
        { "usr/bin/awk", "mawk", ROOT "/usr/bin/mawk" },
        { "usr/bin/which", "which.debianutils", ROOT "/usr/bin/which.debianutils" },
    };
    for (size_t i = 0; i < array_len(links); i++) {
        struct stat st;
        if (fstatat(job->scene->stage_fd, links[i][2], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            image_build_symlink(job->build, str_of(links[i][0]), str_of(links[i][1]), err) < 0)
            return -1;
    }
    return 0;
}

/* /bin of a package is /usr/bin on every system of today: a link leads there. Nothing of these
 * folders is left in the stage. */
static int merge_usr(struct make_job *job, struct err *err)
{
    static const char *const old[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
    own_fd root = make_stage_open(job, ROOT, err);
    if (root < 0)
        return -1;
    for (size_t i = 0; i < array_len(old); i++) {
        char from[64], at[32];
        struct stat st;
        snprintf(from, sizeof from, ROOT "/%s", old[i]);
        snprintf(at, sizeof at, "usr/%s", old[i]);
        if (fstatat(root, old[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISDIR(st.st_mode) &&
            (make_stage_take(job, from, at, err) < 0 || make_stage_remove(root, old[i]) < 0))
            return err->kind == ERR_NONE ? err_sys(err, "remove '%s' of the build", old[i]) : -1;
        if (S_ISLNK(st.st_mode) && unlinkat(root, old[i], 0) < 0)
            return err_sys(err, "remove '%s' of the build", old[i]);
        if (image_build_symlink(job->build, str_of(old[i]), str_of(at), err) < 0)
            return -1;
    }
    if (make_stage_remove(root, "usr") < 0)
        return err_sys(err, "remove 'usr' of the build");
    return 0;
}

static int add_folders(const struct make_job *job, struct err *err)
{
    static const char *const empty[] = { "dev", "proc", "sys", "run", "tmp", "mnt", "var/tmp" };
    for (size_t i = 0; i < array_len(empty); i++)
        if (image_build_dir(job->build, str_of(empty[i]), MAKE_MTIME_S, err) < 0)
            return -1;
    return 0;
}

int make_debian_add(struct make_job *job, const struct make_debian *debian, json_t **out_facts,
                    struct err *err)
{
    char mirror[MAKE_MIRROR_ROOM];
    own_json packages = NULL;
    if (check(err) < 0 || make_stage_folder(job, "debian", err) < 0)
        return -1;
    find_mirror(job, debian, mirror);
    make_job_step(job, "loading and unpacking packages of Debian");
    if (unpack(job, debian, mirror, err) < 0 || read_packages(job, &packages, err) < 0)
        return -1;
    if (clean(job, err) < 0 || add_users(job, err) < 0 || add_links(job, err) < 0)
        return -1;
    make_job_step(job, "putting the packages in their places");
    if (make_stage_take(job, ROOT "/usr", "usr", err) < 0 || merge_usr(job, err) < 0 ||
        make_stage_take(job, ROOT, "", err) < 0 || add_folders(job, err) < 0)
        return -1;
    *out_facts = json_pack("{s:s, s:s, s:{s:O}}", "source", "build", "suite", debian->suite,
                           "packages", "apt", packages);
    return 0;
}
