/* What the broker tells of a session's box, and whom it concerns: the cell that runs, the step
 * that waits for it, or nobody yet. Runs in the engine. */
#include "engine/session/session.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/own.h"
#include "box/park/inject.h"
#include "engine/run/run.h"

static void take_started(struct session *session, const struct box_news *news,
                         int fds[BOX_NEWS_FDS])
{
    for (int i = 0; i < BOX_NEWS_FDS; i++) {
        if (i == RUN_WORDS || i == RUN_REQUESTS)
            continue; /* we have made them */
        own_close_fd(&session->fd[i]);
        session->fd[i] = take_fd(&fds[i]);
    }
    session->walls = news->walls;
    session->stats = news->stats;
    session_open_streams(session);
}

static void on_exited(struct session *session, const struct box_news *news)
{
    session->gone = true;
    session->swept = false;
    if (session->cell && session->stage == SESSION_CELL)
        run_on_news(session->cell, news);
    else if (session->wait == SESSION_DRIVER)
        session_step_failed(session, ERR_HOST, "the interpreter has ended");
    else if (session->stage == SESSION_IDLE)
        session_died_idle(session, session_next);
}

static void on_swept(struct session *session, const struct box_news *news)
{
    session->swept = true;
    if (session->cell && session->stage == SESSION_CELL)
        run_on_news(session->cell, news);
}

static void on_failed(struct session *session, const struct box_news *news)
{
    struct err err = ERR_INIT;
    if (session->wait == SESSION_STARTED && session->forked) {
        pools_zygote_failed(&session->engine->pools, session->plan.start.start.zygote);
        session_start_again(session); /* by another zygote, or it is exec'd */
        return;
    }
    box_failure(news, &err);
    if (session->wait != SESSION_NO_WAIT && session->wait != SESSION_FILES)
        session_step_failed(session, ERR_HOST, err.text);
}

/* What it did not answer is answered for it, before this or by the next one. */
static void on_keeper_gone(struct session *session)
{
    session->keeper_gone = session->going_back; /* who goes back needs what it knows */
    if (session->going_back)
        return;
    session_forget_places(session);
    snprintf(session->unprotected, sizeof session->unprotected, "what was kept is lost");
    if (session->stage == SESSION_IDLE)
        session_protect(session);
}

/* The answer that is awaited? One that comes after we have given up may not be taken for
 * another; if it is a copy, nobody knows of it. */
static bool take_kept(struct session *session, const struct box_news *news)
{
    bool parked = news->kind == BOX_NEWS_PARKED, awake = news->kind == BOX_NEWS_AWAKE;
    enum session_wait wait = parked ? SESSION_PARKED : awake ? SESSION_AWAKE : SESSION_PREPARED;
    if (session->wait != wait || news->ticket != session->ticket) {
        if (parked && news->end == INJECT_OK)
            session_drop_copy(session, news->state, news->ticket);
        return false;
    }
    session->kept.end = news->end;
    session->kept.error = news->error;
    if (parked) {
        session->held_bytes = news->held_bytes;
        session->maps[1] = session->maps[0];
        session->maps[0] = news->lost & BOX_MAPS_FILES;
    }
    if (awake && news->end == INJECT_OK) {
        session->gone = session->swept = session->fresh = false;
        session->lost |= news->lost;
    }
    return true;
}

/* Told of the parent's box, whose keeper did it. */
static void on_forked_into(struct session *parent, const struct box_news *news)
{
    struct session *coming = parent->coming;
    if (!coming || coming->wait != SESSION_FORKED_INTO || coming->fork_ticket != news->ticket)
        return;
    coming->kept.end = news->end;
    coming->kept.error = news->error;
    coming->lost |= news->lost;
    session_step_done(coming);
}

void session_on_news(struct house_tenant *tenant, const struct box_news *news,
                     int fds[BOX_NEWS_FDS])
{
    static const struct {
        enum box_news_kind kind;
        enum session_wait wait;
    } awaited[] = {
        { BOX_NEWS_READY, SESSION_BUILT },   { BOX_NEWS_STARTED, SESSION_STARTED },
        { BOX_NEWS_PORTER, SESSION_PORTER }, { BOX_NEWS_SWEPT, SESSION_SWEPT },
        { BOX_NEWS_AWAKE, SESSION_AWAKE },   { BOX_NEWS_PARKED, SESSION_PARKED },
        { BOX_NEWS_PREPARED, SESSION_PREPARED },
    };
    struct session *session = loop_owner(tenant, struct session, tenant);
    if (news->kind == BOX_NEWS_EMPTY) {
        session_end(session, "its box died");
        return;
    }
    if (news->kind == BOX_NEWS_STARTED && session->wait == SESSION_STARTED)
        take_started(session, news, fds);
    if (news->kind == BOX_NEWS_PORTER && session->wait == SESSION_PORTER)
        session->porter = take_fd(&fds[0]);
    if ((news->kind == BOX_NEWS_PARKED || news->kind == BOX_NEWS_PREPARED ||
         news->kind == BOX_NEWS_AWAKE) &&
        !take_kept(session, news))
        return;
    if (news->kind == BOX_NEWS_EXITED)
        on_exited(session, news);
    else if (news->kind == BOX_NEWS_SWEPT)
        on_swept(session, news);
    else if (news->kind == BOX_NEWS_FAILED)
        on_failed(session, news);
    else if (news->kind == BOX_NEWS_KEEPER_GONE)
        on_keeper_gone(session);
    else if (news->kind == BOX_NEWS_STATE_LOST)
        session_lost_place(session, news->state, news->ticket);
    else if (news->kind == BOX_NEWS_FORKED_INTO)
        on_forked_into(session, news);
    else if (news->kind == BOX_NEWS_STAT && session->cell && session->stage == SESSION_CELL)
        run_on_news(session->cell, news);
    for (size_t i = 0; i < array_len(awaited) && session->stage != SESSION_ENDED; i++) {
        if (awaited[i].kind == news->kind && awaited[i].wait == session->wait) {
            session_step_done(session);
            return;
        }
    }
}
