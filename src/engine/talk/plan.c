/* Plans a box: the one place where limits become kernel numbers, and an interpreter's command line
 * and environment are written. The environment holds nothing but the tables below and the request.
 * Runs in the engine. */
#include "engine/talk/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "engine/talk/plan_int.h"
#include "image/root.h"

#define INODES_MAX 16384
#define COMMAND_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define INODES_COMMAND 65536 /* of a command, whose files nobody collects */
#define OPEN_FILES 1024
#define IMAGE_ENTRY_MAX 4096 /* bytes of a variable of an image */
#define IMAGE_ENTRIES_MOST 64
#define CPU_S_MOST (4 * 3600) /* for an occupant whose limit is unknown yet */
#define CPU_S_SESSION (30 * 86400) /* each cell has its own limit */

void plan_done(struct plan *plan)
{
    for (int i = 0; i < BOX_PLANTS_MAX; i++)
        own_close_fd(&plan->plant_fds[i]);
    own_close_fd(&plan->exec_block);
}

static const char *const common_env[] = {
    "HOME=/home/user",
    "USER=user",
    "LANG=C.UTF-8",
    "TMPDIR=/tmp",
    "XDG_CACHE_HOME=/tmp/.cache",
    "XDG_CONFIG_HOME=/tmp/.config",
    /* The same request gives the same result: no thread races, and no random hashes (below). */
    "PYTHONDONTWRITEBYTECODE=1",
    "OMP_NUM_THREADS=1",
    "OPENBLAS_NUM_THREADS=1",
    "MKL_NUM_THREADS=1",
    "MPLBACKEND=Agg",
    "MPLCONFIGDIR=/tmp/.matplotlib",
    "MATPLOTLIBRC=" BOX_PLANT_DIR "/matplotlibrc",
    "NO_UPDATE_NOTIFIER=1",
    NULL,
};

/* A command is a person's: random numbers are random, libraries use the processors there are. */
static const char *const command_env[] = {
    "HOME=/home/user",
    "USER=user",
    "LOGNAME=user",
    "LANG=C.UTF-8",
    "TMPDIR=/tmp",
    "XDG_CACHE_HOME=/tmp/.cache",
    "XDG_CONFIG_HOME=/tmp/.config",
    "MPLBACKEND=Agg",
    "MPLCONFIGDIR=/tmp/.matplotlib",
    "NO_UPDATE_NOTIFIER=1",
    NULL,
};

#define HASH_SEED "PYTHONHASHSEED="

/* The drivers were compiled by the build's Python; another minor version cannot read that and gets
 * the sources. */
static bool compiled_fits(const struct image *image)
{
    char name[16];
    snprintf(name, sizeof name, "python3.%d", image->facts.python_minor);
    return strcmp(name, BUILD_PYTHON) == 0;
}

static struct box_plants *plants_of(struct plan *plan)
{
    return plan->create.op == BOX_OP_ZYGOTE ? &plan->create.zygote.plants
                                            : &plan->create.create.plants;
}

static int add_plant(struct plan *plan, const char *name, int fd, struct err *err)
{
    struct box_plants *plants = plants_of(plan);
    if (fd < 0)
        return err_sys(err, "make a memory file for '%s'", name);
    if (plants->count == BOX_PLANTS_MAX)
        return err_set(err, ERR_BUG, "too many files in a box: '%s'", name);
    snprintf(plants->name[plants->count], BOX_PLANT_NAME, "%s", name);
    plan->plant_fds[plants->count++] = fd;
    return 0;
}

/* One memory file each for the life of the process: the broker recognises equal boxes by it. */
static int add_builtin(struct plan *plan, enum engine_builtin_id id, bool compiled, struct err *err)
{
    static int files[ENGINE_BUILTIN_COUNT][2]; /* 0: none yet */
    struct engine_file file = engine_builtin(id, compiled);
    int *fd = &files[id][compiled];
    if (*fd <= 0)
        *fd = io_sealed_memfd(file.name, file.bytes.at, file.bytes.len, 0);
    return add_plant(plan, file.name, *fd < 0 ? -1 : fcntl(*fd, F_DUPFD_CLOEXEC, 3), err);
}

static int add_font_list(struct plan *plan, const struct plan_image *in, struct err *err)
{
    if (!in->font_list)
        return 0;
    snprintf(plants_of(plan)->font_list, BOX_PLANT_NAME, "%s", in->font_list);
    return add_plant(plan, in->font_list, fcntl(in->font_fd, F_DUPFD_CLOEXEC, 3), err);
}

static bool same_name(struct str a, const char *b)
{
    size_t len = strcspn(b, "=") + 1;
    return a.len >= len && memcmp(a.at, b, len) == 0;
}

/* The agent's files are many: a run gets them only if it is the agent's. The program `tool` is for
 * code that has tools. */
static bool is_left_out(enum engine_builtin_id id, const struct request *request,
                        enum plan_purpose purpose)
{
    if (id == ENGINE_BUILTIN_TOOLS_SH || id == ENGINE_BUILTIN_TOOL)
        return purpose == PLAN_RUN && !request->tools;
    if (purpose != PLAN_RUN || id < ENGINE_BUILTIN_AGENT_FIRST || id > ENGINE_BUILTIN_AGENT_LAST)
        return false;
    for (size_t i = 0; i < request->env_count; i++) {
        if (same_name(request->env[i], "CUPEL_AGENT="))
            return false;
    }
    return true;
}

/* The library that fixes the clock, and the language's part. The shells read their seed. */
static int add_seed(struct plan *plan, const struct request *request, const struct image *image,
                    struct err *err)
{
    const bool compiled = compiled_fits(image);
    static const enum engine_builtin_id parts[REQUEST_LANGUAGES] = {
        [REQUEST_PYTHON] = ENGINE_BUILTIN_SEED_PY,
        [REQUEST_JAVASCRIPT] = ENGINE_BUILTIN_SEED_JS,
        [REQUEST_TYPESCRIPT] = ENGINE_BUILTIN_SEED_JS,
    };
    char text[16];
    int len = snprintf(text, sizeof text, "%u\n", request->seed);
    if (plan_check_clock(request, image, err) < 0 ||
        add_builtin(plan, ENGINE_BUILTIN_SEED_SO, compiled, err) < 0 ||
        add_builtin(plan, ENGINE_BUILTIN_PRELOAD, compiled, err) < 0)
        return -1;
    if (request->language == REQUEST_BASH)
        return add_plant(plan, "seed", io_sealed_memfd("seed", text, (size_t)len, 0), err);
    return parts[request->language] ? add_builtin(plan, parts[request->language], compiled, err)
                                    : 0;
}

static int add_plants(struct plan *plan, const struct request *request, enum plan_purpose purpose,
                      const struct plan_image *in, struct err *err)
{
    const struct plan_language *language = plan_language_of(request);
    const enum engine_builtin_id *beside = language->beside[purpose];
    bool compiled = compiled_fits(in->image);
    if (add_builtin(plan, language->driver, compiled, err) < 0 ||
        (!request->command && add_builtin(plan, ENGINE_BUILTIN_MATPLOTLIBRC, compiled, err) < 0))
        return -1;
    for (size_t i = 0; i < array_len(language->beside[purpose]) && beside[i]; i++) {
        if (!is_left_out(beside[i], request, purpose) &&
            add_builtin(plan, beside[i], compiled, err) < 0)
            return -1;
    }
    if (request->has_seed && add_seed(plan, request, in->image, err) < 0)
        return -1;
    plants_of(plan)->late_code = language->code_in_file && purpose != PLAN_RUN;
    if (language->code_in_file && purpose == PLAN_RUN) {
        struct str code = plan_code(request);
        int fd = io_sealed_memfd("main.sh", code.at, code.len, 0);
        if (add_plant(plan, "main.sh", fd, err) < 0)
            return -1;
    }
    return add_font_list(plan, in, err);
}

static void add_string(struct buf *block, uint32_t *count, struct str text)
{
    buf_add_str(block, text);
    buf_add(block, "", 1);
    ++*count;
}

static bool is_set(const struct request *request, const char *entry)
{
    for (size_t i = 0; request && i < request->env_count; i++) {
        if (same_name(request->env[i], entry))
            return true;
    }
    return false;
}

/* The request's own wins. */
static void add_default(struct buf *block, struct box_exec_head *head,
                        const struct request *request, const char *entry)
{
    if (!is_set(request, entry))
        add_string(block, &head->envc, str_of(entry));
}

/* An image's own variables come after ours, which keep runs alike. */
static void add_from_image(struct buf *block, struct box_exec_head *head,
                           const struct request *request, const char *name, const json_t *value)
{
    char entry[IMAGE_ENTRY_MAX];
    struct str text = json_str(value);
    int len = snprintf(entry, sizeof entry, "%s=%s", name, text.at);
    if (!json_is_string(value) || memchr(text.at, 0, text.len) || strchr(name, '=') || !*name ||
        len >= (int)sizeof entry || strcmp(name, "PATH") == 0)
        return;
    for (const char *const *one = common_env; *one; one++) {
        if (same_name(str_of(entry), *one))
            return;
    }
    add_default(block, head, request, entry);
}

/* PATH, and what the image asks for. */
static void add_image_env(struct buf *block, struct box_exec_head *head,
                          const struct request *request, const struct image *image)
{
    static const char modules[] = "/usr/local/lib/node_modules";
    json_t *env = json_object_get(image->stored, "env");
    const char *path = json_string_value(json_object_get(env, "PATH")), *name;
    char entry[IMAGE_ENTRY_MAX];
    json_t *value;
    size_t count = 0;
    bool usable = path && path[0] == '/' && strlen(path) + sizeof "PATH=" < sizeof entry;
    if (!usable)
        path = request && request->command ? COMMAND_PATH
               : image->hex[0]             ? "/usr/local/bin:/usr/bin:/bin"
                                           : "/usr/bin:/bin";
    const struct request_venv *venv = request ? request->venv : NULL;
    snprintf(entry, sizeof entry, "PATH=%s%s%s", venv ? venv->path : "", venv ? "/bin:" : "", path);
    add_default(block, head, request, entry);
    snprintf(entry, sizeof entry, "VIRTUAL_ENV=%s", venv ? venv->path : "");
    if (venv)
        add_default(block, head, request, entry);
    json_object_foreach (env, name, value) {
        if (count++ < IMAGE_ENTRIES_MOST)
            add_from_image(block, head, request, name, value);
    }
    own_fd folder = image->tree >= 0 && !json_object_get(env, "NODE_PATH")
                        ? image_root_open(image->tree, modules + 1, O_PATH | O_DIRECTORY)
                        : -1;
    snprintf(entry, sizeof entry, "NODE_PATH=%s", modules);
    if (folder >= 0)
        add_default(block, head, request, entry);
}

static void add_env(struct buf *block, struct box_exec_head *head, const struct request *request,
                    const struct image *image, bool waits)
{
    const struct plan_language *language = plan_language_of(request);
    const char *own = waits ? language->waiting_env : language->env;
    char hash_seed[48];
    snprintf(hash_seed, sizeof hash_seed, HASH_SEED "%u", request->seed);
    if (!request->command)
        add_default(block, head, request, hash_seed);
    for (const char *const *one = request->command ? command_env : common_env; *one; one++)
        add_default(block, head, request, *one);
    add_image_env(block, head, request, image);
    if (own)
        add_string(block, &head->envc, str_of(own));
    if (language->env && request->tools && !waits)
        add_string(block, &head->envc, STR("__cupel_given=1"));
    for (size_t i = 0; i < request->env_count; i++) {
        bool ours = language->env && same_name(request->env[i], "BASH_ENV=");
        if (!ours)
            add_string(block, &head->envc, request->env[i]);
    }
}

static int close_exec_block(struct buf *block, struct box_exec_head *head, struct plan *out,
                            struct err *err)
{
    head->bytes = (uint32_t)(block->len - sizeof *head);
    memcpy(block->at, head, sizeof *head);
    if (head->argc + head->envc > BOX_EXEC_STRINGS)
        return err_input(err, "args", NULL, NULL, "too many arguments and environment entries");
    out->exec_block = io_sealed_memfd("exec", block->at, block->len, 0);
    return out->exec_block < 0 ? err_sys(err, "make a memory file for the exec block") : 0;
}

static const char *program_of(const struct request *request, const struct image *image,
                              enum plan_purpose purpose)
{
    const struct plan_language *language = plan_language_of(request);
    if (language->code_in_file)
        return "main.sh";
    return engine_builtin(purpose == PLAN_SESSION ? language->cells : language->driver,
                          compiled_fits(image))
        .name;
}

static const char *interpreter_of(const struct plan_language *language, const struct image *image)
{
    const char *const paths[] = { [PLAN_PYTHON] = image->facts.python,
                                  [PLAN_NODE] = image->facts.node,
                                  [PLAN_BASH] = image->facts.bash };
    return paths[language->program];
}

static int make_exec_block(const struct request *request, const struct image *image,
                           enum plan_purpose purpose, struct plan *out, struct err *err)
{
    const struct plan_language *language = plan_language_of(request);
    struct box_exec_head head = { .magic = BOX_EXEC_MAGIC };
    char path[96];
    own_buf block = BUF_INIT(BOX_EXEC_ROOM);
    buf_add(&block, &head, sizeof head);
    char python[REQUEST_VENV_PATH + sizeof "/bin/python"];
    snprintf(python, sizeof python, "%s/bin/python", request->venv ? request->venv->path : "");
    if (request->venv && language->program == PLAN_PYTHON)
        add_string(&block, &head.argc, str_of(python));
    else if (language->program != PLAN_NOTHING)
        add_string(&block, &head.argc, str_of(interpreter_of(language, image)));
    for (size_t i = 0; language->argv[i]; i++)
        add_string(&block, &head.argc, str_of(language->argv[i]));
    if (request_is_node(request->language)) {
        /* node sizes its heap by the host's memory unless told: three quarters of ours. */
        snprintf(path, sizeof path, "--max-old-space-size=%lld",
                 (long long)(request->limits.value[LIMITS_MEMORY] * 3 / 4 >> 20));
        add_string(&block, &head.argc, str_of(path));
        if (request->has_seed) { /* 32 bits with a sign; 0 would be random */
            snprintf(path, sizeof path, "--random-seed=%d",
                     request->seed ? (int)request->seed : INT_MIN);
            add_string(&block, &head.argc, str_of(path));
        }
    }
    snprintf(path, sizeof path, BOX_PLANT_DIR "/%s", program_of(request, image, purpose));
    add_string(&block, &head.argc, str_of(path));
    if (purpose == PLAN_WAITING && !language->code_in_file)
        add_string(&block, &head.argc, STR("wait"));
    if (language->word) {
        snprintf(path, sizeof path, "%lld", (long long)request->limits.value[LIMITS_MEMORY]);
        add_string(&block, &head.argc, str_of(language->word));
        add_string(&block, &head.argc, str_of(path));
    }
    bool given = language->code_in_file || request->command;
    for (size_t i = 0; given && i < request->arg_count; i++)
        add_string(&block, &head.argc, request->args[i]);
    add_env(&block, &head, request, image, purpose != PLAN_RUN);
    return close_exec_block(&block, &head, out, err);
}

static void set_image(struct box_image *out, const struct image *image)
{
    if (!image->hex[0])
        return;
    memcpy(out->hex, image->hex, sizeof out->hex);
    out->on_host = image->on_host;
    out->present = 1;
}

bool plan_can_fork(const struct image *image, const char **out_why)
{
    *out_why = NULL;
    if (!image->facts.python[0])
        *out_why = "it has no Python";
    /* A zygote has CAP_SYS_ADMIN in W: what it executes and imports must be the host's alone. */
    else if (image->hex[0] && !image->beside)
        *out_why = "its own programs may not have a zygote's rights";
    return !*out_why;
}

int plan_zygote(bool large, const struct plan_image *in, struct plan *out, struct err *err)
{
    static const enum engine_builtin_id files[] = {
        ENGINE_BUILTIN_ZYGOTE_PY, ENGINE_BUILTIN_ZYGOTE_SO, ENGINE_BUILTIN_DRIVER_PY,
        PLAN_PYTHON_SESSION_FILES, ENGINE_BUILTIN_MATPLOTLIBRC,
    };
    const char *const argv[] = { in->image->facts.python, "-S", BOX_PLANT_DIR "/zygote.py" };
    struct box_exec_head head = { .magic = BOX_EXEC_MAGIC };
    own_buf block = BUF_INIT(BOX_EXEC_ROOM);
    *out = PLAN_INIT;
    out->create.op = BOX_OP_ZYGOTE;
    buf_add(&block, &head, sizeof head);
    for (size_t i = 0; i < array_len(argv); i++)
        add_string(&block, &head.argc, str_of(argv[i]));
    if (large)
        add_string(&block, &head.argc, STR("large"));
    add_string(&block, &head.envc, STR(HASH_SEED "0"));
    for (const char *const *one = common_env; *one; one++)
        add_string(&block, &head.envc, str_of(*one));
    add_image_env(&block, &head, /* request= */ NULL, in->image);
    set_image(&out->create.zygote.image, in->image);
    int failed = 0;
    for (size_t i = 0; i < array_len(files) && !failed; i++)
        failed = add_builtin(out, files[i], /* compiled= */ false, err);
    if (failed || add_font_list(out, in, err) < 0 ||
        close_exec_block(&block, &head, out, err) < 0) {
        plan_done(out);
        return -1;
    }
    return 0;
}

static int make_plan(const struct request *request, enum plan_purpose purpose,
                     const struct plan_image *in, struct plan *out, struct err *err)
{
    const int64_t *limit = request->limits.value;
    *out = PLAN_INIT;
    out->create.op = BOX_OP_CREATE;
    out->create.create.memory_bytes = limit[LIMITS_MEMORY];
    out->create.create.disk_bytes = limit[LIMITS_DISK];
    out->create.create.disk_inodes = request->command ? INODES_COMMAND : INODES_MAX;
    out->create.create.pids = limit[LIMITS_PIDS];
    out->create.create.cpu_thousandths = limit[LIMITS_CPUS];
    out->start.op = BOX_OP_START;
    set_image(&out->create.create.image, in->image);
    out->start.start.required = request->profile->strict ? BOX_WALLS_ALL : box_walls_required();
    /* The engine enforces the CPU limit by the box's counter; this is a backup. */
    out->start.start.cpu_s = limit[LIMITS_CPU] / 1000 + 5;
    out->start.start.open_files = OPEN_FILES;
    if (add_plants(out, request, purpose, in, err) == 0)
        return 0;
    plan_done(out);
    return -1;
}

int plan_make(const struct request *request, const struct plan_image *in, struct plan *out,
              struct err *err)
{
    return make_plan(request, PLAN_RUN, in, out, err);
}

int plan_add_exec(const struct request *request, const struct image *image, struct plan *plan,
                  struct err *err)
{
    own_close_fd(&plan->exec_block);
    return make_exec_block(request, image, PLAN_RUN, plan, err);
}

int plan_pool(const struct request *request, const struct image *image, bool session,
              struct plan *out, struct err *err)
{
    const struct plan_image in = { image, NULL, -1 };
    if (make_plan(request, PLAN_WAITING, &in, out, err) < 0)
        return -1;
    if (make_exec_block(request, image, PLAN_WAITING, out, err) < 0) {
        plan_done(out);
        return -1;
    }
    out->create.create.plants.again = 1;
    out->start.start.waits = !session;
    out->start.start.session = session;
    out->start.start.cpu_s = session ? CPU_S_SESSION : CPU_S_MOST;
    return 0;
}

int plan_session(const struct request *request, const struct plan_image *in, struct plan *out,
                 struct err *err)
{
    if (make_plan(request, PLAN_SESSION, in, out, err) < 0)
        return -1;
    if (make_exec_block(request, in->image, PLAN_SESSION, out, err) < 0) {
        plan_done(out);
        return -1;
    }
    out->create.create.plants.again = !(request->has_seed && request->language == REQUEST_BASH);
    out->start.start.session = 1;
    out->start.start.cpu_s = CPU_S_SESSION;
    return 0;
}
