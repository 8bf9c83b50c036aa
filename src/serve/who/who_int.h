/* Tokens at work, inside: shared by the files of src/serve/who and its unit tests. */
#ifndef SERVE_WHO_WHO_INT_H
#define SERVE_WHO_WHO_INT_H

#include "serve/who/who.h"
#include "store/tokens.h"
#include "store/usage.h"

#define WHO_WRITE_NS (5 * CLOCK_S) /* from a change to its being written */

/* The times at which runs began, of the last 60 seconds, oldest first. */
struct who_minute {
    int64_t *at_ns; /* heap */
    size_t first, count, room;
};

/* One for each id. It stays while it is in the file, referred to, or has stored bytes. */
struct who_token {
    struct who *who; /* NULL: closed */
    unsigned refs;   /* the users'; the list has none */
    bool known;      /* is in the file */
    bool is_operator;
    char id[WHO_ID_ROOM];
    char name[TOKENS_NAME_MAX + 1];
    int64_t expires_at;
    struct tokens_quota quota;
    int64_t runs, sessions, stored_bytes;
    int64_t reserved_ms;     /* CPU time set aside for runs under way */
    int64_t cpu_day, cpu_ms; /* used on that day */
    int64_t used_at;
    struct who_minute minute;
    int64_t retry_s;
};

struct who {
    struct loop *loop;
    int state_dir; /* the caller's; -1: none */
    struct tokens file;
    struct who_token **of_file; /* in the order of the file */
    struct stat seen;           /* of the file that was read; st_ino 0: none */
    struct err broken;          /* kind ERR_NONE: the file was understood */
    struct who_token **tokens;
    size_t count;
    int usage_lock; /* -1: not held, nothing is written */
    struct loop_timer write;
    bool complained;               /* about usage.json, since it last worked */
    int64_t (*now_ns)(void);       /* monotonic */
    int64_t (*utc_s)(void);
};

/* who.c */
struct who_token *who_of_id(struct who *who, const char *id, bool make);
void who_changed(struct who *who);     /* usage.json is to be written soon */
void who_forget_idle(struct who *who); /* tokens that nobody needs */
/* who_usage.c */
void who_usage_open(struct who *who);
void who_usage_write(struct who *who);
/* who_quota.c */
void who_new_day(struct who_token *token);
size_t who_minute_count(struct who_token *token);

#endif
