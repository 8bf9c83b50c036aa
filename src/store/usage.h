/* The use of tokens, in usage.json of the state folder: CPU time of a day, and when each was used
 * last. Written by the serve process, read by it at its start and by `cupel token ls`. */
#ifndef STORE_USAGE_H
#define STORE_USAGE_H

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "store/tokens.h"

#define USAGE_FILE "usage.json"
#define USAGE_FILE_MAX (1u << 20)
#define USAGE_DAY_S 86400

struct usage_row {
    char id[TOKENS_ID_ROOM];
    int64_t used_at; /* seconds since 1970; 0: never */
    int64_t day;     /* of cpu_ms: days since 1970, in UTC */
    int64_t cpu_ms;
};

struct usage {
    struct usage_row *at;
    size_t count;
};
#define USAGE_INIT ((struct usage){ 0 })
void usage_done(struct usage *usage);
#define own_usage attr_cleanup(usage_done) struct usage

void usage_add(struct usage *usage, const struct usage_row *row);
const struct usage_row *usage_find(const struct usage *usage, const char *id);
int usage_parse(struct str text, struct usage *out, struct err *err);
/* 1; 0: there is no file; -1: an err. */
int usage_read(int state_dir, struct usage *out, struct err *err);
/* Hold the lock: one service counts in a state folder. ERR_BUSY where another does. */
int usage_lock(int state_dir, struct err *err);
/* Does not wait for the disk: it runs in the loop, and a lost file costs a day's count. */
int usage_write(int state_dir, const struct usage *usage, struct err *err);

#endif
