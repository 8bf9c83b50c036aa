/* Private to the request parser. */
#ifndef CONTRACT_REQUEST_INT_H
#define CONTRACT_REQUEST_INT_H

#include "base/attr.h"
#include "base/json.h"
#include "contract/request.h"

#define REQUEST_COMPONENT_MAX 255

/* The request under construction, and its limits. */
struct request_intake {
    struct request *out;
    const struct request_ceilings *ceilings;
    size_t exec_bytes; /* of args and env so far */
};

/* One member of an object in a request. take is NULL for a later feature. */
struct request_field {
    const char *name;
    int (*take)(struct request_intake *intake, const json_t *value, struct err *err);
    bool absent_too; /* take is called with NULL where the member is absent */
};
extern const struct request_field request_fields[];
extern const size_t request_field_count;

/* Member names, NULL at the end. */
extern const char *const request_call_members[];
extern const char *const request_file_members[];

extern const char *const request_tiers[];
extern const char *const request_artifacts[];
extern const char *const request_on_outputs[];
extern const char *const request_on_errors[];

/* Refusals; each returns -1. `value` is the caller's, shortened. */
int request_refuse(const char *field, const json_t *value, const char *bound, const char *why,
                   struct err *err);
int request_refuse_later(const char *field, const json_t *value, struct err *err);
/* `size` bytes or members exceed `most`. unit: "bytes", ... */
int request_refuse_size(const char *field, uint64_t size, uint64_t most, const char *unit,
                        struct err *err);
/* Refuses a member of `object` whose name is not in `members`. */
int request_check_members(const json_t *object, const char *field, const char *const *members,
                          struct err *err);
/* Index of text in a list that ends in NULL, or -1. */
int request_find_name(const char *const *names, struct str text);
/* Refuses anything but a string without NUL. */
int request_check_text(const json_t *value, const char *field, struct err *err);

int request_take_image(struct request_intake *intake, const json_t *value, struct err *err);
int request_take_packages(struct request_intake *intake, const json_t *value, struct err *err);
int request_take_files(struct request_intake *intake, const json_t *value, struct err *err);
int request_take_session(struct request_intake *intake, const json_t *value, struct err *err);
int request_take_on_error(struct request_intake *intake, const json_t *value, struct err *err);
int request_take_names(struct request_intake *intake, const json_t *value, struct err *err);
int request_take_call(struct request_intake *intake, const json_t *value, struct err *err);
int request_take_tools(struct request_intake *intake, const json_t *value, struct err *err);
int request_check_input_bytes(const struct request *request, const char *field, struct err *err);

#endif
