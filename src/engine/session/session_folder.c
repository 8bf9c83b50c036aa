/* A session on a folder of the caller. Its engine is its own, shows the folder in the one box that
 * may, and collects the layer of changes when the session is over. Runs in the engine.
 *
 * 1. The folder's files are the caller's: nothing is snapped, restored or emptied. Going back to a
 *    state is of names alone.
 * 2. No porter works beside the code, so the one that reads the layer of the dead box has its
 *    place. */
#include "engine/session/session.h"

#include "base/clock.h"
#include "base/own.h"
#include "engine/run/run.h"

#define DEATH_MS 20000 /* for the box to die, and for a porter */

static bool shows_folder(const struct engine *engine)
{
    const struct engine_attached *attached = engine->options.attached;
    return attached && attached->mode != ENGINE_FOLDER_NONE;
}

bool session_has_folder(const struct session *session)
{
    return shows_folder(session->engine);
}

void session_open_folder(struct session *session)
{
    struct session_box *box = &session->box;
    struct house *house = &session->engine->house;
    box->id = house_take_attached(house, &box->tenant);
    if (box->id == HOUSE_NOBODY) {
        err_set(&session->step.err, ERR_BUSY, "another session works on the folder");
        err_hint(&session->step.err, "end it first, or start another 'cupel repl --dir'");
        session_start_done(session);
        return;
    }
    box->plan.create.box = box->id;
    session_await(session, SESSION_BUILDING);
    if (engine_attach(session->engine, &box->plan) < 0)
        session_step_failed(session, ERR_HOST, "cannot make the list of hidden files");
}

int session_check_folder(const struct engine *engine, const struct request *request, int what,
                         struct err *err)
{
    static const struct {
        enum frame_do what;
        const char *text;
    } refused[] = {
        { FRAME_DO_PUT, "takes no files: put them into the folder" },
        { FRAME_DO_GET, "gives no files: cupel apply brings them into the folder" },
        { FRAME_DO_FILES, "lists no files: code can, and cupel diff shows its changes" },
        { FRAME_DO_REMOVE, "removes no files: code can" },
        { FRAME_DO_FORK, "cannot be forked: a folder is shown to one session" },
    };
    if (!shows_folder(engine))
        return 0;
    if (request->file_count > 0) {
        err_input(err, "files", NULL, "none", "a session on a folder takes no files");
        err_hint(err, "put them into the folder");
        return -1;
    }
    for (size_t i = 0; i < array_len(refused); i++) {
        if ((int)refused[i].what == what)
            return err_set(err, ERR_USAGE, "a session on a folder %s", refused[i].text);
    }
    return 0;
}

/* --- the end --- */

struct collect {
    struct house_tenant tenant;
    struct files_job files;
    struct loop_timer late;
    struct engine *engine;
    struct request request; /* its limits alone */
    struct result *out;
    struct err err;
    bool over;
};

static void give_up(struct collect *c, const char *why)
{
    if (!c->over && c->err.kind == ERR_NONE)
        err_set(&c->err, ERR_HOST, "%s", why);
    c->over = true;
}

static void on_late(struct loop_timer *timer)
{
    give_up(loop_owner(timer, struct collect, late), "its box took too long to end");
}

static void on_collected(struct files_job *job)
{
    struct collect *c = loop_owner(job, struct collect, files);
    c->err = job->err;
    c->over = true;
}

static void ask_for_porter(struct collect *c)
{
    const struct box_call call = { .op = BOX_OP_PORTER,
                                   .box = BOX_ATTACHED,
                                   .porter = { .collect = 1, .layer = 1 } };
    house_call(&c->engine->house, &call, NULL, 0);
}

static void on_news(struct house_tenant *tenant, const struct box_news *news, int fds[BOX_NEWS_FDS])
{
    struct collect *c = loop_owner(tenant, struct collect, tenant);
    if (news->kind == BOX_NEWS_EMPTY) {
        ask_for_porter(c);
    } else if (news->kind == BOX_NEWS_PORTER) {
        loop_set_timer(&c->engine->loop, &c->late, LOOP_NEVER);
        files_collect_layer(&c->files, &c->engine->loop, take_fd(&fds[0]), &c->request, c->out,
                            on_collected);
    } else if (news->kind == BOX_NEWS_FAILED) {
        box_failure(news, &c->err);
        c->over = true;
    }
}

static void on_left_news(struct house_tenant *tenant, const struct box_news *news,
                         int fds[BOX_NEWS_FDS])
{
    (void)tenant;
    (void)news;
    (void)fds;
}

void session_leave_folder(struct session *session)
{
    struct engine *engine = session->engine;
    engine->folder.left = true;
    engine->folder.tenant.news = on_left_news;
    engine->folder.limits = session->request.limits;
    house_hand_over(&engine->house, BOX_ATTACHED, &engine->folder.tenant);
    house_ask(&engine->house, BOX_OP_KILL, BOX_ATTACHED);
}

int engine_collect_folder(struct engine *engine, struct result *out, struct err *err)
{
    struct collect c = { .tenant.news = on_news,
                         .files = FILES_JOB_INIT,
                         .engine = engine,
                         .out = out,
                         .err = ERR_INIT };
    if (!shows_folder(engine) || engine->options.attached->mode != ENGINE_FOLDER_LAYER)
        return 0;
    sessions_end_all(engine, "its folder is put away");
    if (!engine->folder.left)
        return 0;
    c.request.limits = engine->folder.limits;
    house_hand_over(&engine->house, BOX_ATTACHED, &c.tenant);
    loop_due(&c.late, on_late);
    loop_set_timer(&engine->loop, &c.late, clock_now_ns() + DEATH_MS * CLOCK_MS);
    if (engine->house.box[BOX_ATTACHED].empty)
        ask_for_porter(&c);
    while (!c.over) {
        if (loop_turn(&engine->loop) < 0 || engine_is_broken(engine, &c.err))
            give_up(&c, "the event loop failed");
    }
    loop_set_timer(&engine->loop, &c.late, LOOP_NEVER);
    files_drop(&c.files);
    engine->folder.left = false;
    house_vacate(&engine->house, BOX_ATTACHED, /* clean= */ false, -1);
    if (c.err.kind == ERR_NONE)
        return 0;
    *err = c.err;
    return -1;
}
