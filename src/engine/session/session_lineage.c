/* Lineages: interpreters of a session that were started one after another, each with streams of
 * its own, which its copies share. Who is woken needs the streams that it has. Runs in the
 * engine. */
#include "engine/session/session.h"

#include "base/own.h"
#include "engine/run/run.h"

static bool lineage_is_kept(const struct session *session, unsigned lineage)
{
    for (int i = 0; i < BOX_STATES; i++) {
        const struct session_place *place = &session->place[i];
        if (place->used && !place->birth && place->lineage == lineage)
            return true;
    }
    return false;
}

void session_go_to_lineage(struct session *session, unsigned lineage)
{
    if (lineage == session->lineage)
        return;
    bool kept = lineage_is_kept(session, session->lineage);
    for (int i = 0; i < RUN_PIPES; i++) {
        int *aside = &session->streams[session->lineage][i];
        own_close_fd(aside);
        if (kept)
            *aside = take_fd(&session->fd[i]);
        own_close_fd(&session->fd[i]);
        session->fd[i] = take_fd(&session->streams[lineage][i]);
    }
    session->lineage = lineage;
}

void session_begin_lineage(struct session *session)
{
    unsigned lineage = 0; /* there are more than places that are kept */
    while (lineage == session->lineage || lineage_is_kept(session, lineage))
        lineage++;
    session_go_to_lineage(session, lineage);
}
