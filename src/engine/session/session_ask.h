/* Between the files that answer what is asked of a session; nobody else includes this. */
#ifndef ENGINE_SESSION_SESSION_ASK_H
#define ENGINE_SESSION_SESSION_ASK_H

#include "engine/session/session.h"

/* The end of an ask; if it had its turn, the next one has it now. */
void session_ask_reply(struct engine_ask *ask, const struct err *err);
void session_ask_info(struct engine_ask *ask); /* with what is told of the session */
void session_ask_refuse(struct engine_ask *ask, enum err_kind kind, const char *text,
                        const char *hint);
void session_ask_free(struct engine_ask *ask);
/* After a step: the ask that it was for, or NULL where it failed and is answered. */
struct engine_ask *session_ask_after(struct session *session);

/* What is done when it has its turn. */
void session_ask_put(struct session *session, struct engine_ask *ask);
void session_ask_files(struct session *session, struct engine_ask *ask);
void session_ask_checkpoint(struct session *session, struct engine_ask *ask);
void session_ask_undo(struct session *session, struct engine_ask *ask);
void session_ask_fork(struct session *session, struct engine_ask *ask);

#endif
