/* Parts of looking at records. Private to src/store/records. */
#ifndef STORE_RECORDS_LOOK_INT_H
#define STORE_RECORDS_LOOK_INT_H

#include "base/hash.h"
#include "store/records/look.h"

/* How long a question may take: its caller waits, and others wait behind it. */
#define LOOK_LIST_MS 3000
#define LOOK_SEARCH_MS 5000
#define LOOK_STATS_MS 10000

/* --- look_words.c: pure --- */
#define LOOK_TEXT_MAX 1000  /* bytes of a search */
#define LOOK_TERMS_MAX 32
#define LOOK_PREFIX_MIN 3   /* bytes before a `*`: a shorter one would read most of the index */
#define LOOK_MATCH_ROOM 8192
/* Appends the terms of a search as an expression of FTS5. Every byte of the text is a literal, but
 * double quotes, which are around a phrase, and a `*` at the end of a word or phrase. */
int look_words(struct str text, struct buf *out, struct err *err);
/* Appends one word of the column `tags`; false: no run can have this value. */
bool look_tag(struct buf *out, char kind, const char *value);

/* --- look_page.c: pure --- */
#define LOOK_PAGE_ROOM 34
/* Where a page ended, for the caller to give back. It tells nothing: the number of a run, which
 * counts everybody's, is sealed with a key of the store. `sum` is that of the filter. */
void look_page_write(struct str key, int64_t n, const char *sum, char out[LOOK_PAGE_ROOM]);
int look_page_read(struct str key, const char *page, const char *sum, int64_t *out_n,
                   struct err *err);
/* Of all that chooses records, but the times, which may be relative to now. */
void look_filter_sum(const struct look_filter *filter, char out[HASH_HEX_ROOM]);

/* --- look_find.c --- */
/* Runs between two numbers, both excluded. */
struct look_bounds {
    int64_t low, high;
};
/* Bounds of the runs that can have started in the window. Those between may still lie outside. */
int look_bounds(struct db *db, const struct look_filter *filter, struct look_bounds *out,
                struct err *err);
/* The number of a run that the owner may see; -1: ERR_ABSENT, ERR_INPUT for a prefix of several. */
int64_t look_find(struct db *db, const char *owner, const char *id, struct err *err);
/* Adds the hint to an ERR_SLOW. Returns -1. */
int look_slow(struct err *err);
void look_put_text_or_null(struct db_query *query, int place, const char *text);

/* --- look_row.c: columns as members --- */
struct look_member {
    const char *name;
    json_t *(*make)(struct db_query *query, int column);
};
json_t *look_text(struct db_query *query, int column);
json_t *look_int(struct db_query *query, int column);
json_t *look_real(struct db_query *query, int column);
json_t *look_seconds(struct db_query *query, int column); /* of milliseconds */
json_t *look_flag(struct db_query *query, int column);
json_t *look_stored(struct db_query *query, int column); /* JSON that this program wrote */
/* An object of the row's columns from `first` on. */
json_t *look_row(struct db_query *query, const struct look_member *members, size_t count,
                 int first);

/* --- look_output.c --- */
/* The sum of a content of the run; 1: it is there, 0: it has none of that kind. */
int look_use(struct db *db, int64_t n, const char *kind, struct str path, char out[HASH_HEX_ROOM],
             struct err *err);

/* --- look_show.c --- */
json_t *look_record(struct db *db, int64_t n, struct err *err);

#endif
