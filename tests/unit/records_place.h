/* Records in a state folder of their own, for unit tests. */
#ifndef TESTS_UNIT_RECORDS_PLACE_H
#define TESTS_UNIT_RECORDS_PLACE_H

#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "store/db/db.h"
#include "store/records/catalog.h"
#include "store/records/contents.h"
#include "store/records/records.h"

/* Nobody's; it looks like one. */
#define KEPT_KEY                                                                    \
    "sk-ant-api03-"                                                                  \
    "abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ0123-AAAAAAAA"

extern struct loop kept_loop;
extern struct records *kept_records;
extern int kept_state;
extern unsigned kept_answers;
extern struct err kept_last;

/* A state folder, which goes with the test. */
void kept_make(void);
/* Makes the folder first, if there is none. */
void kept_open(void);
void kept_close(void);
/* Turns the loop until so many were told. */
void kept_await(unsigned count);
void kept_told(void *user, const struct err *err);

struct request kept_request(const char *text);
/* Each waits until it is told: kept_last. */
struct record *kept_begin(const char *run, const struct request *request);
void kept_end(struct record *record, struct result *result, const struct record_cache *cache);
void kept_fill(struct result *result, const char *run, const char *output);
void kept_run(const char *run, const char *code, const char *output,
              const struct record_cache *cache);

/* A connection; the catalog is up to date. */
struct db *kept_look(void);
/* The first column of the first row, as text. */
char *kept_ask(struct db *db, const char *sql);
void kept_check_whole(void);

#define CHECK_ASK(db, sql, want)           \
    do {                                   \
        own_str got_ = kept_ask(db, sql); \
        CHECK_TEXT(got_, want);            \
    } while (0)

#endif
