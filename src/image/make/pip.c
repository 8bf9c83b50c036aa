/* Packages of Python, by the host's pip. Runs in the cli process after the drop of rights; pip is a
 * child (child.h). Its words on packages are outside text.
 * 1. Only wheels: no code of a package runs. pip resolves to names, versions and hashes; they are
 *    the lock. Then it installs what the lock says, and nothing else, so that `add --lock` gives
 *    the same image.
 * 2. On the host pip sees what the image below has already, the host's packages too, and adds what
 *    is missing or does not fit. For a standalone image pip resolves for that image's Python, as
 *    if it had no package. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "image/make/job.h"

#define REPORT_MAX ((size_t)64 << 20)
#define SCRIPT_MAX ((size_t)1 << 20)

/* pip with a search path of the system's own packages and those of the image below: a box on the
 * host does not see the host's /usr/local. Nothing is imported from that image, which may have a
 * package called pip: its folder is only looked at for what is installed. */
static const char pip_in_place[] =
    "import sys, runpy\n"
    "class Nothing:\n"
    "    def find_spec(self, name, target=None):\n"
    "        return None\n"
    "    find_module = find_spec\n"
    "extra = [p for p in sys.argv[1:2] if p]\n"
    "for p in extra:\n"
    "    sys.path_importer_cache[p] = Nothing()\n"
    "sys.path[:] = extra + [p for p in sys.path if not p.startswith('/usr/local/')]\n"
    "sys.argv = ['pip'] + sys.argv[2:]\n"
    "runpy.run_module('pip', run_name='__main__', alter_sys=True)\n";

static const char facts_script[] = "import sys, sysconfig\n"
                                   "try:\n"
                                   "    import pip\n"
                                   "except ImportError:\n"
                                   "    sys.exit('ERROR: no pip')\n"
                                   "print(sys.version_info[1], sysconfig.get_path('purelib'))\n";

static int check_pip(const struct make_job *job, char *site, size_t room, int *minor,
                     struct err *err)
{
    const struct make_words words = make_words_of(MAKE_HOST_PYTHON, "-I", "-c", facts_script);
    own_buf said = BUF_INIT(512);
    if (access(MAKE_HOST_PYTHON, X_OK) < 0 ||
        make_child_ask(job->scene, ".", "python3", words.at, &said, err) < 0) {
        if (err->kind != ERR_NONE && !strstr(err->text, "no pip"))
            return -1;
        err_set(err, ERR_HOST, "this host has no pip, which adds packages of Python");
        err_hint(err, "apt-get install python3-pip");
        return -1;
    }
    if (sscanf(said.at, "%d", minor) != 1 || !strchr(said.at, '/'))
        return err_set(err, ERR_HOST, "'%s' does not say its version", MAKE_HOST_PYTHON);
    struct str path = str_trim(str_of(strchr(said.at, '/') + 1));
    snprintf(site, room, "%.*s", (int)path.len, path.at);
    return 0;
}

int make_pip_facts(struct make_job *job, struct err *err)
{
    struct make_lock *lock = &job->lock;
    char site[IMAGE_LOOK_PATH], python[sizeof lock->python], platform[sizeof lock->platform];
    int minor = 0;
    if (check_pip(job, site, sizeof site, &minor, err) < 0)
        return -1;
    if (!job->on_host) {
        minor = job->facts.python_minor;
        snprintf(site, sizeof site, "%s", job->facts.python_packages + 1);
        if (!job->facts.python[0] || !job->facts.python_packages[0] || minor == 0)
            return err_input(err, "pip", NULL, "an image with Python",
                             "the image below has no Python that packages could be added to");
    }
    memcpy(job->site, site, sizeof site);
    snprintf(python, sizeof python, "3.%d", minor);
    snprintf(platform, sizeof platform, "%s-%s", job->machine,
             job->on_host || !job->facts.libc[0] ? "glibc" : job->facts.libc);
    if (!job->locked) {
        memcpy(lock->python, python, sizeof python);
        memcpy(lock->platform, platform, sizeof platform);
        return 0;
    }
    if (strcmp(lock->python, python) != 0)
        return err_input(err, "python", lock->python, python,
                         "the lock is for Python %s; the image below has %s", lock->python, python);
    if (strcmp(lock->platform, platform) != 0)
        return err_input(err, "platform", lock->platform, platform,
                         "the lock is for %s; the image below is %s", lock->platform, platform);
    return 0;
}

/* ---- command lines ---- */

struct pip_texts {
    char tags[64][40];
    size_t count;
    char version[16], abi[16];
};

static void add_platform(struct make_words *words, struct pip_texts *texts, const char *kind,
                         int minor, const char *machine)
{
    if (texts->count == array_len(texts->tags))
        return;
    char *tag = texts->tags[texts->count++];
    if (minor < 0)
        snprintf(tag, sizeof texts->tags[0], "%s_%s", kind, machine);
    else
        snprintf(tag, sizeof texts->tags[0], "%s_%d_%s", kind, minor, machine);
    make_words_add(words, "--platform");
    make_words_add(words, tag);
}

/* For another Python than the one that runs pip. The newest tags are those of 2018: what runs
 * here runs on every glibc since 2.28, and on musl since 1.2. */
static void add_target(const struct make_job *job, struct make_words *words,
                       struct pip_texts *texts)
{
    const bool musl = strcmp(job->facts.libc, "musl") == 0;
    for (int minor = musl ? 2 : 28; minor >= (musl ? 1 : 5); minor--)
        add_platform(words, texts, musl ? "musllinux_1" : "manylinux_2", minor, job->machine);
    if (!musl) {
        add_platform(words, texts, "manylinux2014", -1, job->machine);
        add_platform(words, texts, "manylinux2010", -1, job->machine);
        add_platform(words, texts, "manylinux1", -1, job->machine);
    }
    add_platform(words, texts, "linux", -1, job->machine);
    snprintf(texts->version, sizeof texts->version, "3.%d", job->facts.python_minor);
    snprintf(texts->abi, sizeof texts->abi, "cp3%d", job->facts.python_minor);
    const char *const more[] = { "--implementation", "cp", "--python-version", texts->version,
                                 "--abi", texts->abi };
    for (size_t i = 0; i < array_len(more); i++)
        make_words_add(words, more[i]);
}

static const char *const always[] = { "install", "--only-binary=:all:", "--no-compile",
                                      "--progress-bar=off", "--no-warn-script-location",
                                      "--no-python-version-warning" };

static void add_always(const struct make_job *job, struct make_words *words)
{
    for (size_t i = 0; i < array_len(always); i++)
        make_words_add(words, always[i]);
    if (job->verbose)
        make_words_add(words, "-v");
}

/* ---- the lock ---- */

static struct str hash_of(const json_t *info)
{
    struct str hash = json_get_str(json_object_get(info, "hashes"), "sha256");
    struct str old = json_get_str(info, "hash");
    const struct str mark = STR("sha256=");
    if (hash.len == 0 && old.len > mark.len && memcmp(old.at, mark.at, mark.len) == 0)
        hash = (struct str){ old.at + mark.len, old.len - mark.len };
    return hash;
}

static int take_report(struct make_job *job, struct str text, struct err *err)
{
    own_json report = json_read(text, REPORT_MAX, err);
    const json_t *list = json_object_get(report, "install");
    size_t i;
    json_t *item;
    if (!report || !json_is_array(list)) {
        err_set(err, ERR_HOST, "pip's report has another form than that of pip 22.2 and later");
        err_hint(err, "'%s -m pip --version' says which one this is", MAKE_HOST_PYTHON);
        return -1;
    }
    json_array_foreach ((json_t *)(uintptr_t)list, i, item) {
        const json_t *metadata = json_object_get(item, "metadata");
        const json_t *info = json_object_get(json_object_get(item, "download_info"),
                                             "archive_info");
        if (make_lock_add(&job->lock, MAKE_PIP, json_get_str(metadata, "name"),
                          json_get_str(metadata, "version"), hash_of(info), err) < 0)
            return err_wrap(err, "pip's report");
    }
    return 0;
}

/* pip's words for a package without wheels sound as if there were no such package. */
static int explain(const struct make_job *job, struct err *err)
{
    if (strstr(err->text, "No matching distribution") || strstr(err->text, "from versions:"))
        err_hint(err,
                 "only wheels are taken, because no code of a package runs in a build: the "
                 "index has none of that name and version for Python %s on %s",
                 job->lock.python, job->lock.platform);
    else if (strstr(err->text, "HASHES"))
        err_hint(err, "the index has another file than the lock was made with");
    return -1;
}

int make_pip_resolve(struct make_job *job, struct err *err)
{
    own_buf lines = BUF_INIT((size_t)8 << 20), extra = BUF_INIT(4096);
    struct pip_texts texts = { .count = 0 };
    struct make_words words = make_words_of(MAKE_HOST_PYTHON, "-I");
    make_job_step(job, "resolving packages of Python");
    for (size_t i = 0; i < job->wants->count; i++)
        if (job->wants->at[i].kind == MAKE_PIP)
            (void)!buf_printf(&lines, "%s\n", job->wants->at[i].text);
    if (make_stage_folder(job, "pip", err) < 0 ||
        make_stage_write(job, "pip/wanted.txt", buf_str(&lines), err) < 0)
        return -1;
    if (job->on_host) {
        if (job->tree && buf_printf(&extra, "%s/%s", job->tree, job->site) < 0)
            return err_set(err, ERR_LIMIT, "the path of the image below is too long");
        const char *const run[] = { "-c", pip_in_place, extra.at ? extra.at : "" };
        for (size_t i = 0; i < array_len(run); i++)
            make_words_add(&words, run[i]);
    } else {
        make_words_add(&words, "-m");
        make_words_add(&words, "pip");
    }
    add_always(job, &words);
    if (!job->on_host) {
        add_target(job, &words, &texts);
        make_words_add(&words, "--target");
        make_words_add(&words, "target");
    }
    const char *const rest[] = { "--dry-run", "--report", "report.json", "-r", "wanted.txt" };
    for (size_t i = 0; i < array_len(rest); i++)
        make_words_add(&words, rest[i]);
    if (make_child_must(job->scene, "pip", "pip", words.at, err) < 0)
        return explain(job, err);
    own_buf report = BUF_INIT(0);
    if (make_stage_read(job, "pip/report.json", REPORT_MAX, &report, err) < 0)
        return -1;
    return take_report(job, buf_str(&report), err);
}

/* ---- installing ---- */

static int install(struct make_job *job, struct err *err)
{
    own_buf lines = BUF_INIT((size_t)8 << 20);
    struct pip_texts texts = { .count = 0 };
    struct make_words words = make_words_of(MAKE_HOST_PYTHON, "-I", "-m", "pip");
    for (size_t i = 0; i < job->lock.counts[MAKE_PIP]; i++) {
        const struct make_locked *item = &job->lock.items[MAKE_PIP][i];
        (void)!buf_printf(&lines, "%s==%s --hash=sha256:%s\n", item->name, item->version,
                          item->hash);
    }
    if (make_stage_folder(job, "pip", err) < 0 ||
        make_stage_write(job, "pip/locked.txt", buf_str(&lines), err) < 0)
        return -1;
    add_always(job, &words);
    if (!job->on_host)
        add_target(job, &words, &texts);
    const char *const rest[] = { "--no-deps",        "--require-hashes", "--target", "target",
                                 "--ignore-installed", "-r",             "locked.txt" };
    for (size_t i = 0; i < array_len(rest); i++)
        make_words_add(&words, rest[i]);
    if (make_child_must(job->scene, "pip", "pip", words.at, err) < 0)
        return explain(job, err);
    return 0;
}

/* Compiled files that a wheel brings are left out: they would run instead of the source. Notes
 * of pip's on the order itself are left out, too. */
static int clean(int dirfd, int depth, struct err *err)
{
    static const char *const names[] = { "__pycache__", "REQUESTED", "direct_url.json" };
    int own = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_dirp dir = own < 0 ? NULL : fdopendir(own);
    if (!dir)
        return err_sys(err, "look into the packages of the build");
    for (const struct dirent *entry; (entry = readdir(dir));) {
        struct stat info;
        bool gone = str_ends(str_of(entry->d_name), STR(".pyc"));
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        for (size_t i = 0; i < array_len(names); i++)
            gone |= strcmp(entry->d_name, names[i]) == 0 && (i == 0 || depth == 1);
        if (gone && make_stage_remove(dirfd, entry->d_name) < 0)
            return err_sys(err, "remove '%.200s' from the build", entry->d_name);
        if (gone || fstatat(dirfd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISDIR(info.st_mode))
            continue;
        own_fd below = openat(dirfd, entry->d_name,
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (depth == 64 || below < 0)
            return err_set(err, ERR_LIMIT, "a package has folders more than 64 deep");
        if (clean(below, depth + 1, err) < 0)
            return -1;
    }
    return 0;
}

/* Scripts begin with the Python that ran pip; they get the image's. */
static int own_scripts(const struct make_job *job, int bin, struct err *err)
{
    static const char host[] = "#!" MAKE_HOST_PYTHON "\n";
    int own = openat(bin, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own_dirp dir = own < 0 ? NULL : fdopendir(own);
    if (!dir)
        return err_sys(err, "look into the scripts of the build");
    for (const struct dirent *entry; (entry = readdir(dir));) {
        own_buf text = BUF_INIT(SCRIPT_MAX), out = BUF_INIT(SCRIPT_MAX + 512);
        own_fd fd = openat(bin, entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || buf_read(&text, fd) < 0 || text.len < sizeof host - 1 ||
            memcmp(text.at, host, sizeof host - 1) != 0)
            continue;
        if (buf_printf(&out, "#!%s\n", job->facts.python) < 0 ||
            buf_add(&out, text.at + sizeof host - 1, text.len - (sizeof host - 1)) < 0 ||
            ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
            io_write_all(fd, out.at, out.len) < 0)
            return err_sys(err, "write script '%.200s' of the build", entry->d_name);
    }
    return 0;
}

/* Compiled for the Python that will run them: only where that is the one here. It says what it
 * cannot compile, which is no fault of the build. */
static int compile(struct make_job *job, struct err *err)
{
    own_buf said = BUF_INIT(MAKE_SAID_MAX);
    char at[IMAGE_LOOK_PATH + 2];
    int status;
    snprintf(at, sizeof at, "/%s", job->site);
    const struct make_words words = make_words_of(MAKE_HOST_PYTHON, "-I", "-m", "compileall", "-q",
                                                  "--invalidation-mode", "unchecked-hash", "-s",
                                                  "target", "-p", at, "target");
    make_job_step(job, "compiling packages of Python");
    return make_child_run(job->scene, "pip", words.at, &said, &status, err);
}

static int place(struct make_job *job, struct err *err)
{
    static const char *const parts[] = { "bin", "share", "etc" };
    own_fd pip = make_stage_open(job, "pip", err);
    own_fd target = pip < 0 ? -1 : make_stage_open(job, "pip/target", err);
    if (target < 0 || clean(target, 0, err) < 0)
        return -1;
    for (size_t i = 0; i < array_len(parts); i++) {
        char from[32], at[32];
        if (renameat(target, parts[i], pip, parts[i]) < 0 && errno != ENOENT)
            return err_sys(err, "move '%s' of the packages", parts[i]);
        own_fd fd = openat(pip, parts[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 && i == 0 && !job->on_host && own_scripts(job, fd, err) < 0)
            return -1;
        snprintf(from, sizeof from, "pip/%s", parts[i]);
        snprintf(at, sizeof at, "usr/local/%s", parts[i]);
        if (make_stage_take(job, from, at, err) < 0)
            return -1;
    }
    if (job->on_host && compile(job, err) < 0)
        return -1;
    return make_stage_take(job, "pip/target", job->site, err);
}

int make_pip_add(struct make_job *job, struct err *err)
{
    if (job->lock.counts[MAKE_PIP] == 0)
        return 0;
    make_job_step(job, "installing packages of Python");
    if (install(job, err) < 0)
        return -1;
    for (size_t i = 0; i < job->lock.counts[MAKE_PIP]; i++)
        if (make_pip_replace(job, job->lock.items[MAKE_PIP][i].name, err) < 0)
            return -1;
    return place(job, err);
}
