/* Questions about records, as the routes ask them. Private to src/serve/api. */
#ifndef SERVE_API_RECORDS_H
#define SERVE_API_RECORDS_H

#include "serve/api/asks.h"
#include "store/records/look.h"

#define RECORDS_ID_LEN 26 /* "r_" and 24 digits */

/* Everything that the thread needs: the exchange may go meanwhile. */
struct records_question {
    struct look_filter filter; /* its texts are in `texts` */
    char *texts[8];
    size_t text_count;
    char id[RECORDS_ID_LEN + 1];
    char *path;     /* of an artifact */
    bool flag;      /* pinned; stderr */
    int format;     /* of an export */
    unsigned status; /* HTTP's, of the answer */
    uint64_t from;  /* events */
    size_t events_max;
    struct events *events;
};
struct records_question *records_question_new(const struct http_exchange *x);
void records_question_free(void *question);
/* A copy that lives as long as the question. */
const char *records_question_text(struct records_question *question, const char *text);

/* The id of the path; -1: no run has such a one. */
int records_take_id(const struct http_exchange *x, struct records_question *question,
                    struct err *err);
/* A JSON text and a newline as the answer; takes the value, which may be NULL after an err. */
int records_give(struct ask *ask, json_t *value);

/* records_query.c: the parameters of a list or of figures. `names` ends with NULL. */
extern const char *const records_list_names[], *const records_stats_names[];
int records_query(const struct http_exchange *x, const char *const *names,
                  struct records_question *out, struct err *err);

/* runs_stored.c: replies for a run that is not in memory any more. */
enum records_part { RECORDS_RESULT, RECORDS_EVENTS, RECORDS_OUTPUT, RECORDS_ARTIFACT,
                    RECORDS_OUTCOME };
void records_answer(struct http_exchange *x, enum records_part part, bool is_err);

#endif
