/* `cupel serve`: the engine in the foreground until it is told to stop. The order is that of `cupel
 * run`: sockets are opened as the caller, then the engine drops the caller's rights, and only then
 * a client's byte is read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "cli/cli.h"
#include "cli/dir/folder.h"
#include "cli/term/interrupt.h"
#include "cli/link/engine_start.h"
#include "cli/link/state_files.h"
#include "cli/serve/listen.h"
#include "cli/serve/serve_ask.h"
#include "cli/serve/serve_notes.h"
#include "cli/serve/serve_options.h"
#include "cli/serve/setup.h"
#include "cli/term/term.h"
#include "engine/engine.h"
#include "serve/api/api.h"
#include "serve/api/models.h"
#include "serve/socket.h"
#include "serve/serve.h"
#include "serve/stall.h"
#include "serve/work/work.h"
#include "tool/call/shed.h"

#define FILES_LEAST 2048

struct door {
    struct cli_serve_options options;
    struct cli_setup setup;
    struct cli_listen listen;
    struct cli_folder folder; /* of --dir */
    json_t *missing; /* walls, for the notes */
    struct err untried;
    struct engine *engine;
    struct serve *serve;
    struct api *api;
    struct api_models *models; /* of tasks; NULL: there is no HTTP door */
    struct toolhost *tools; /* NULL: the owner has none */
    int state_dir;
    struct serve_socket socket;
    uid_t owner;
    int fd; /* of --fd */
    int notify; /* the service manager's socket; -1: none */
    int stop_fd;
};

/* systemd's readiness protocol: datagrams to a socket that it names. */
static int open_notify(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return -1;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = 0;
    own_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, size) < 0)
        return -1;
    unsetenv("NOTIFY_SOCKET");
    return take_fd(&fd);
}

static void notify(const struct door *door, const char *state)
{
    if (door->notify >= 0 && send(door->notify, state, strlen(state), MSG_NOSIGNAL) < 0)
        cli_term_note("tell the service manager '%s': %s", state, strerror(errno));
}

static int check_fd(int fd, struct err *err)
{
    int type = 0, domain = 0;
    socklen_t size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || type != SOCK_STREAM ||
        domain != AF_UNIX)
        return err_set(err, ERR_USAGE,
                       "option '--fd' takes an open unix stream socket, and %d is not one", fd);
    return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? err_sys(err, "set close-on-exec on '--fd'") : 0;
}

/* As the caller, and before the engine, which needs no key. */
static int open_models(struct door *door, struct err *err)
{
    const struct config *config = &door->setup.now.config;
    const struct api_models_options options = {
        .model = config_text(config, CONFIG_MODEL),
        .judge = config_text(config, CONFIG_JUDGE),
        .planner = config_text(config, CONFIG_PLANNER),
        .more = (const char *const *)door->setup.now.models,
    };
    door->models = api_models_open(&options, err);
    return door->models ? 0 : -1;
}

/* For a service, SIGHUP is a wish to reload. An engine in a terminal ends with it, as programs
 * do. */
static bool reloads(const struct door *door)
{
    return door->listen.count > 0 || door->notify >= 0;
}

/* A box takes some thirty descriptors of the engine and more of the broker, a client one or two.
 * With too few the engine would lose the broker in the middle of its work. */
static int check_files(struct err *err)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max >= FILES_LEAST)
        return 0;
    err_set(err, ERR_HOST, "the caller's RLIMIT_NOFILE is %llu; a service needs at least %d",
            (unsigned long long)files.rlim_max, FILES_LEAST);
    err_hint(err, "start cupel with 'ulimit -n %d' or more", FILES_LEAST);
    return -1;
}

/* As the caller. A folder that is named must be usable; without one, nothing is recorded. */
static int open_state(struct door *door, struct err *err)
{
    char path[PATH_MAX];
    bool named = false;
    door->state_dir = cli_state_open();
    if (door->state_dir >= 0 || !engine_state_path(path, sizeof path, &named) || !named)
        return 0;
    err_sys(err, "open the state folder '%.200s'", path);
    err->kind = ERR_HOST;
    err_hint(err, "set CUPEL_STATE to a folder that this user can write to, or unset it");
    return -1;
}

/* As the caller, whose rights the tools have, and before any thread. A folder or file that is not
 * named and not there is no fault. */
static int open_tools(struct door *door, struct err *err)
{
    const struct config *config = &door->setup.now.config;
    own_str usual = toolhost_default_folder();
    own_str usual_secrets = toolhost_default_secrets();
    const char *folder = config_text(config, CONFIG_TOOLS);
    const char *mcp = config_text(config, CONFIG_TOOLS_MCP);
    const char *secrets = config_text(config, CONFIG_TOOLS_SECRETS);
    const struct toolhost_options options = { .folder = folder ? folder : usual,
                                              .mcp_file = mcp,
                                              .secrets_file = secrets ? secrets : usual_secrets };
    bool any = folder || mcp || (usual && access(usual, F_OK) == 0);
    return any ? toolhost_open(&options, &door->tools, err) : 0;
}

/* As the caller. */
static int open_folder(struct door *door, struct err *err)
{
    return cli_folder_open(door->options.dir, door->options.write, /* changes= */ false,
                           &door->folder, err) < 0
               ? -1
               : cli_folder_prepare(&door->folder, err);
}

static int open_door(struct door *door, struct err *err)
{
    const char *named = door->options.socket ? door->options.socket : getenv("CUPEL_SOCKET");
    door->owner = geteuid();
    if (cli_setup_open(&door->options, &door->setup, err) < 0 || open_state(door, err) < 0 ||
        open_tools(door, err) < 0)
        return -1;
    if (door->options.fd.given) {
        if (check_fd((int)door->options.fd.value, err) < 0)
            return -1;
        door->fd = (int)door->options.fd.value;
        return door->options.dir ? open_folder(door, err) : 0;
    }
    door->notify = open_notify();
    if (cli_setup_log(&door->setup, err) < 0 ||
        cli_listen_open(&door->setup.now.config, &door->listen, err) < 0 ||
        (door->listen.count > 0 && check_files(err) < 0) ||
        serve_socket_open(named && *named ? named : NULL, &door->socket, err) < 0)
        return -1;
    if (reloads(door) && cli_setup_watch(&door->setup, err) < 0)
        return -1;
    if (door->listen.count == 0)
        return 0;
    if (door->state_dir < 0) {
        err_set(err, ERR_HOST, "there is no state folder, and so no token could let anybody in");
        err_hint(err, "set CUPEL_STATE to a folder that this user can write to");
        return -1;
    }
    return open_models(door, err);
}

/* Each client is a descriptor. The broker was started before, with the caller's limit. */
static void raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static struct api_options api_options_of(const struct door *door)
{
    struct api_options options = {
        .engine = door->engine,
        .serve = door->serve,
        .state_dir = door->state_dir,
        .models = door->models,
        .http = { .listeners = door->listen.fds, .listener_count = door->listen.count },
        .records = json_is_true(door->setup.now.config.at[CONFIG_RECORDS].value),
        .redact = door->setup.now.config.at[CONFIG_REDACT].value,
    };
    cli_setup_fill(&door->setup, &options);
    return options;
}

/* The HTTP door, where it is wanted. */
static int open_api(struct door *door, struct err *err)
{
    if (door->listen.count == 0)
        return 0;
    raise_files();
    if (api_models_ready(door->models, err) < 0)
        return -1;
    struct api_options options = api_options_of(door);
    door->api = api_open(&options, err);
    if (!door->api)
        return -1;
    const struct serve_door http = api_door(door->api);
    serve_add_door(door->serve, &http);
    return 0;
}

static int apply(void *user, const struct cli_setup *setup, struct err *err)
{
    struct door *door = user;
    struct api_options options = api_options_of(door);
    const struct config *config = &setup->now.config;
    struct records *records = works_records(serve_works(door->serve));
    if (records)
        records_set_retention(records, config_integer(config, CONFIG_RETENTION_RECORDS),
                              config_integer(config, CONFIG_RETENTION_BYTES));
    serve_set_defaults(door->serve, config_integer(config, CONFIG_CACHE_TTL),
                       config_text(config, CONFIG_IMAGE));
    return door->api ? api_reload(door->api, &options, err) : 0;
}

static void on_hup(void *user)
{
    struct door *door = user;
    notify(door, "RELOADING=1");
    cli_setup_reload(&door->setup, apply, door);
    notify(door, "READY=1");
}

static struct engine *open_engine(struct door *door, struct err *err)
{
    const struct config *config = &door->setup.now.config;
    struct engine_options how = {
        .warm = true,
        .runs_max = (unsigned)config_integer(config, CONFIG_RUNS),
        .queue_max = (unsigned)config_integer(config, CONFIG_QUEUE),
        .pool_fixed = config_is_set(config, CONFIG_POOL),
        .pool_size = (unsigned)config_integer(config, CONFIG_POOL),
    };
    const struct engine_attached attached = {
        .mode = door->folder.writes ? ENGINE_FOLDER_WRITE : ENGINE_FOLDER_LAYER,
        .folder = door->folder.fd,
    };
    const bool on_folder = door->folder.fd >= 0;
    how.attached = on_folder ? &attached : NULL;
    struct engine *engine = engine_open(&how, err);
    if (!engine || ((!on_folder || cli_folder_begin(&door->folder, err) == 0) &&
                    engine_warm_up(engine, err) == 0)) {
        if (engine && on_folder)
            engine_set_places(engine, buf_str(&door->folder.masks));
        return engine;
    }
    engine_close(engine);
    return NULL;
}

/* NULL with ERR_NONE: nothing is to be recorded. */
static struct records *open_records(const struct door *door, struct err *err)
{
    const struct config *config = &door->setup.now.config;
    const char **patterns = config_texts(config, CONFIG_REDACT);
    const struct records_options options = {
        .loop = engine_loop(door->engine),
        .state_dir = door->state_dir,
        .durable = json_is_true(config->at[CONFIG_DURABLE].value),
        .redact = patterns,
        .age_s = config_integer(config, CONFIG_RETENTION_RECORDS),
        .bytes = config_integer(config, CONFIG_RETENTION_BYTES),
    };
    bool wanted = json_is_true(config->at[CONFIG_RECORDS].value) && door->state_dir >= 0;
    struct records *records = wanted ? records_open(&options, err) : NULL;
    free(patterns);
    return records;
}

/* NULL with ERR_NONE: the owner has no tools. */
static struct shed *open_shed(struct door *door, struct err *err)
{
    struct toolhost *tools = take_ptr(door->tools);
    if (!tools || err->kind == ERR_NONE)
        return tools ? shed_new(engine_loop(door->engine), tools, err) : NULL;
    toolhost_close(tools);
    return NULL;
}

static struct serve *open_serve(struct door *door, struct serve_stall *stall, struct err *err)
{
    door->engine = open_engine(door, err);
    if (!door->engine)
        return NULL;
    if (door->listen.count > 0 && !cli_term_is_quiet())
        door->missing = cli_serve_missing(
            door->engine, config_text(&door->setup.now.config, CONFIG_PROFILE), &door->untried);
    struct serve_options options = { .engine = door->engine,
                                     .listener = door->socket.listener,
                                     .fd = door->fd,
                                     .owner = door->owner,
                                     .on_hup = reloads(door) ? on_hup : NULL,
                                     .user = door,
                                     .listen = door->listen.urls,
                                     .records = open_records(door, err),
                                     .cache_ttl_s = config_integer(&door->setup.now.config,
                                                                   CONFIG_CACHE_TTL),
                                     .image = config_text(&door->setup.now.config, CONFIG_IMAGE),
                                     .idle_exit_s = (int64_t)door->options.idle_exit.value };
    options.shed = open_shed(door, err);
    if (err->kind == ERR_NONE && cli_interrupt_open(&door->stop_fd, err) == 0) {
        options.stop_fd = door->stop_fd;
        door->serve = serve_open(&options, err);
    }
    if (!door->serve) {
        shed_free(options.shed);
        records_close(options.records);
        engine_close(door->engine);
        return NULL;
    }
    door->fd = -1; /* the connection owns it now */
    if (reloads(door))
        cli_interrupt_reloads();
    serve_stall_watch(stall, engine_loop(door->engine));
    if (open_api(door, err) == 0)
        return door->serve;
    serve_stall_close(stall);
    serve_close(door->serve);
    return NULL;
}

static int refuse(struct door *door, const struct err *err)
{
    if (door->fd >= 0)
        serve_refuse(door->fd, err);
    return cli_term_refuse(err, /* json= */ false);
}

/* The session's changes become a set; the client reads the outcome in our standard error. */
static void keep_changes(struct door *door)
{
    struct err err = ERR_INIT;
    own_result result;
    own_buf line = BUF_INIT(128);
    size_t count = 0;
    result_init(&result);
    engine_make_id(result.run);
    if (door->folder.fd < 0 || door->folder.writes)
        return;
    if (engine_collect_folder(door->engine, &result, &err) < 0 ||
        cli_folder_collect(&door->folder, &result, &count, &err) < 0) {
        err_wrap(&err, "the session ended, but its changes are lost");
        cli_term_refuse(&err, /* json= */ false);
        return;
    }
    buf_printf(&line, CLI_SESSION_CHANGES " %zu %s %d\n", count, result.run, result.layer_cut);
    cli_term_write(STDERR_FILENO, buf_str(&line));
}

static int serve_until_told(struct door *door)
{
    struct err err = ERR_INIT;
    struct serve_stall stall = SERVE_STALL_INIT;
    serve_stall_open(&stall);
    struct serve *serve = open_serve(door, &stall, &err);
    if (!serve) {
        serve_stall_close(&stall);
        return refuse(door, &err);
    }
    notify(door, "READY=1");
    if (door->socket.listener >= 0)
        cli_serve_notes(door->socket.path, door->listen.urls,
                        config_text(&door->setup.now.config, CONFIG_PROFILE), door->missing,
                        &door->untried);
    int rc = serve_go(serve, &err);
    keep_changes(door);
    notify(door, "STOPPING=1");
    serve_stall_close(&stall);
    api_close(door->api);
    serve_close(serve);
    api_free(door->api);
    if (rc == 0)
        return 0;
    cli_term_refuse(&err, /* json= */ false);
    return err_exit_code(ERR_BUG);
}

int cli_cmd_serve(int argc, char **argv)
{
    struct door door = { .socket = SERVE_SOCKET_INIT, .fd = -1, .notify = -1, .stop_fd = -1,
                         .state_dir = -1, .setup.reader = CLI_READER_INIT,
                         .folder = CLI_FOLDER_INIT };
    struct err err = ERR_INIT;
    int parsed = cli_serve_options_parse(argc, argv, &door.options, &err);
    cli_term_set_quiet(door.options.quiet);
    if (parsed == 0 && door.options.help) {
        cli_serve_options_help();
        cli_serve_options_done(&door.options);
        return 0;
    }
    if (parsed == 0 && (door.options.status || door.options.stop)) {
        int asked = door.options.status ? cli_serve_status(&door.options)
                                        : cli_serve_stop(&door.options);
        cli_serve_options_done(&door.options);
        return asked;
    }
    int code = parsed < 0 || open_door(&door, &err) < 0 ? refuse(&door, &err)
                                                        : serve_until_told(&door);
    cli_folder_done(&door.folder);
    if (serve_socket_close(&door.socket) < 0 && errno != ENOENT)
        cli_term_note("'%s' was not removed, the next start replaces it: %s", door.socket.path,
                      strerror(errno));
    cli_listen_close(&door.listen);
    cli_setup_close(&door.setup);
    api_models_close(door.models);
    toolhost_close(door.tools);
    json_decref(door.missing);
    cli_serve_options_done(&door.options);
    own_close_fd(&door.state_dir);
    own_close_fd(&door.fd);
    own_close_fd(&door.notify);
    own_close_fd(&door.stop_fd);
    return code;
}
