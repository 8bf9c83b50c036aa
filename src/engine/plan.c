/* Drawing the walls: the one place where limits become kernel numbers, and where
 * an interpreter's command line and environment are written. The environment is
 * built from nothing: what is not in the tables below or in the request is not
 * in the box. Runs in the engine. */
#include "engine/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "box/box.h"
#include "box/mutate.h"
#include "engine/embed.h"

#define INODES_MAX 16384
#define OPEN_FILES 1024
#define PYTHON "/usr/bin/python3"

void plan_done(struct plan *plan)
{
    for (int i = 0; i < BOX_PLANTS_MAX; i++)
        own_close_fd(&plan->plant_fds[i]);
    own_close_fd(&plan->exec_block);
}

static const char *const common_env[] = {
    "PATH=/usr/bin:/bin",
    "HOME=/home/user",
    "USER=user",
    "LANG=C.UTF-8",
    "TMPDIR=/tmp",
    "XDG_CACHE_HOME=/tmp/.cache",
    "XDG_CONFIG_HOME=/tmp/.config",
    /* The same request gives the same result: no random hashes, no thread races. */
    "PYTHONHASHSEED=0",
    "PYTHONDONTWRITEBYTECODE=1",
    "OMP_NUM_THREADS=1",
    "OPENBLAS_NUM_THREADS=1",
    "MKL_NUM_THREADS=1",
    "MPLBACKEND=Agg",
    "MPLCONFIGDIR=/tmp/.matplotlib",
    "MATPLOTLIBRC=" BOX_PLANT_DIR "/matplotlibrc",
    "NO_UPDATE_NOTIFIER=1",
};

struct language {
    enum engine_embed_id driver;
    const char *argv[6];
    bool code_in_file;   /* the code is placed as main.sh, not sent to the driver */
    const char *env[2];
};

static const struct language languages[REQUEST_LANGUAGES] = {
    [REQUEST_PYTHON] = { ENGINE_EMBED_DRIVER_PYC, { PYTHON, "-S", "-s", NULL }, false,
                         { NULL } },
    [REQUEST_JAVASCRIPT] = { ENGINE_EMBED_DRIVER_JS,
                             { "/usr/bin/node", "--expose-internals", "--experimental-vm-modules",
                               NULL },
                             false, { NULL } },
    [REQUEST_BASH] = { ENGINE_EMBED_DRIVER_SH, { "/bin/bash", NULL }, true,
                       { "BASH_ENV=" BOX_PLANT_DIR "/driver.sh", NULL } },
};

/* The driver was compiled ahead by the Python of the build; another minor version
 * cannot read that and gets the source. */
static bool compiled_driver_fits(void)
{
    char target[64];
    ssize_t n = readlink(PYTHON, target, sizeof target - 1);
    target[n > 0 ? n : 0] = 0;
    return strcmp(target, BUILD_PYTHON) == 0;
}

static int add_plant(struct plan *plan, const char *name, int fd, struct err *err)
{
    uint32_t at = plan->create.create.plant_count;
    if (fd < 0)
        return err_sys(err, "make a memory file for '%s'", name);
    snprintf(plan->create.create.plant[at], BOX_PLANT_NAME, "%s", name);
    plan->plant_fds[at] = fd;
    plan->create.create.plant_count++;
    return 0;
}

static int add_embedded(struct plan *plan, enum engine_embed_id id, struct err *err)
{
    struct str bytes = engine_embed(id);
    const char *name = engine_embed_name(id);
    return add_plant(plan, name, io_sealed_memfd(name, bytes.at, bytes.len, 0), err);
}

static int add_plants(struct plan *plan, const struct request *request,
                      enum engine_embed_id driver, const char *font_list, int font_fd,
                      struct err *err)
{
    if (add_embedded(plan, driver, err) < 0 ||
        add_embedded(plan, ENGINE_EMBED_MATPLOTLIBRC, err) < 0)
        return -1;
    if (languages[request->language].code_in_file) {
        int fd = io_sealed_memfd("main.sh", request->code.at, request->code.len, 0);
        if (add_plant(plan, "main.sh", fd, err) < 0)
            return -1;
    }
    if (font_list) {
        snprintf(plan->create.create.font_list, BOX_PLANT_NAME, "%s", font_list);
        if (add_plant(plan, font_list, fcntl(font_fd, F_DUPFD_CLOEXEC, 3), err) < 0)
            return -1;
    }
    return 0;
}

/* "NAME=" prefix equal in both? */
static bool same_name(struct str a, const char *b)
{
    size_t len = strcspn(b, "=") + 1;
    return a.len >= len && memcmp(a.at, b, len) == 0;
}

static void add_string(struct buf *block, uint32_t *count, struct str text)
{
    buf_add_str(block, text);
    buf_add(block, "", 1);
    ++*count;
}

static void add_default(struct buf *block, struct box_exec_head *head,
                        const struct request *request, const char *entry)
{
    for (size_t i = 0; i < request->env_count; i++) {
        if (same_name(request->env[i], entry))
            return; /* the request's own wins */
    }
    add_string(block, &head->envc, str_of(entry));
}

static void add_env(struct buf *block, struct box_exec_head *head, const struct request *request)
{
    const struct language *language = &languages[request->language];
    for (size_t i = 0; i < array_len(common_env); i++)
        add_default(block, head, request, common_env[i]);
    for (size_t i = 0; i < array_len(language->env) && language->env[i]; i++)
        add_string(block, &head->envc, str_of(language->env[i]));
    for (char **entry = environ; mutate(ENVIRONMENT) && *entry; entry++)
        add_default(block, head, request, *entry);
    for (size_t i = 0; i < request->env_count; i++) {
        bool ours = request->language == REQUEST_BASH && same_name(request->env[i], "BASH_ENV=");
        if (!ours)
            add_string(block, &head->envc, request->env[i]);
    }
}

static int make_exec_block(const struct request *request, enum engine_embed_id driver,
                           struct plan *out, struct err *err)
{
    const struct language *language = &languages[request->language];
    struct box_exec_head head = { .magic = BOX_EXEC_MAGIC };
    char path[96];
    own_buf block = BUF_INIT(BOX_EXEC_ROOM);
    buf_add(&block, &head, sizeof head);
    for (size_t i = 0; language->argv[i]; i++)
        add_string(&block, &head.argc, str_of(language->argv[i]));
    if (request->language == REQUEST_JAVASCRIPT) {
        /* node sizes its heap by the host's memory unless told: three quarters of ours. */
        snprintf(path, sizeof path, "--max-old-space-size=%lld",
                 (long long)(request->limits.value[LIMITS_MEMORY] * 3 / 4 >> 20));
        add_string(&block, &head.argc, str_of(path));
    }
    snprintf(path, sizeof path, BOX_PLANT_DIR "/%s",
             language->code_in_file ? "main.sh" : engine_embed_name(driver));
    add_string(&block, &head.argc, str_of(path));
    for (size_t i = 0; language->code_in_file && i < request->arg_count; i++)
        add_string(&block, &head.argc, request->args[i]);
    add_env(&block, &head, request);
    head.bytes = (uint32_t)(block.len - sizeof head);
    memcpy(block.at, &head, sizeof head);
    if (head.argc + head.envc > BOX_EXEC_STRINGS)
        return err_input(err, "args", NULL, NULL, "too many arguments and environment entries");
    out->exec_block = io_sealed_memfd("exec", block.at, block.len, 0);
    return out->exec_block < 0 ? err_sys(err, "make a memory file for the exec block") : 0;
}

int plan_make(const struct request *request, const char *font_list, int font_fd,
              struct plan *out, struct err *err)
{
    const int64_t *limit = request->limits.value;
    enum engine_embed_id driver = languages[request->language].driver;
    if (driver == ENGINE_EMBED_DRIVER_PYC && !compiled_driver_fits())
        driver = ENGINE_EMBED_DRIVER_PY;
    *out = PLAN_INIT;
    out->create.op = BOX_OP_CREATE;
    out->create.create.memory_bytes = limit[LIMITS_MEMORY];
    out->create.create.disk_bytes = limit[LIMITS_DISK];
    out->create.create.disk_inodes = INODES_MAX;
    out->create.create.pids = limit[LIMITS_PIDS];
    out->create.create.cpu_thousandths = limit[LIMITS_CPUS];
    out->start.op = BOX_OP_START;
    out->start.start.required = request->profile->strict ? box_walls_all() : box_walls_required();
    /* The CPU limit is the engine's, by the box's counter; this only backs it up. */
    out->start.start.cpu_s = limit[LIMITS_CPU] / 1000 + 5;
    out->start.start.open_files = OPEN_FILES;
    if (add_plants(out, request, driver, font_list, font_fd, err) < 0 ||
        make_exec_block(request, driver, out, err) < 0) {
        plan_done(out);
        return -1;
    }
    return 0;
}

char *plan_driver_line(const struct request *request)
{
    own_json args = json_array();
    for (size_t i = 0; i < request->arg_count; i++)
        json_array_append_new(args, json_text(request->args[i]));
    own_json line = json_pack("{s:s, s:o, s:O, s:O?, s:b}", "op", "run", "code",
                              json_text(request->code), "args", args, "call", request->call,
                              "stdin", request->stdin_text.len > 0);
    char *text = json_write(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    own_buf out = BUF_INIT(SIZE_MAX / 4);
    buf_add_text(&out, text);
    buf_add(&out, "\n", 1);
    free(text);
    return buf_take(&out);
}
