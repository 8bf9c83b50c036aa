/* The request: JSON from any door, fully checked, defaults filled in. Pure: no file, no process, no
 * clock. A request that parses can run; any other is an ERR_INPUT err, and nothing runs. */
#ifndef CONTRACT_REQUEST_H
#define CONTRACT_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "contract/limits.h"

#define REQUEST_JSON_MAX (128u << 20) /* bytes of one request text */
#define REQUEST_CODE_MAX (4u << 20) /* bytes of code */
#define REQUEST_ARGS_MAX 1024
#define REQUEST_ENV_MAX 512
#define REQUEST_EXEC_MAX (512u << 10) /* bytes of all args and env together */
#define REQUEST_ARG_MAX (100u << 10) /* bytes of one argument or NAME=value */
#define REQUEST_CALL_MAX (4u << 20) /* bytes of call as compact JSON */
#define REQUEST_FILES_MAX 4096
#define REQUEST_TOOLS_MAX 128
#define REQUEST_TOOLS_BYTES (2u << 20) /* of tools as compact JSON */
#define REQUEST_TOOL_NAME_MAX 64
#define REQUEST_SEED_MAX UINT32_MAX
#define REQUEST_CACHE_MAX_S (30 * 86400) /* cache.ttl_s */
#define REQUEST_IMAGE_NAME_MAX 63
#define REQUEST_IMAGE_ROOM 80 /* "sha256:", 64 digits, NUL; names are shorter */
#define REQUEST_IMAGE_REF_ROOM (REQUEST_IMAGE_NAME_MAX + 1 + REQUEST_IMAGE_ROOM)
#define REQUEST_PACKAGES_MAX 64
#define REQUEST_PACKAGE_MAX 100 /* bytes of a package's name, and of its version */
#define REQUEST_PATH_MAX 1024 /* bytes of a path; 255 for one component */

enum request_language {
    REQUEST_PYTHON,
    REQUEST_JAVASCRIPT,
    REQUEST_BASH,
    REQUEST_TYPESCRIPT,
    REQUEST_R,
    REQUEST_JAVA,
    REQUEST_LANGUAGES
};

/* A language: its name and aliases. */
struct request_language_row {
    const char *name;
    const char *aliases[3];
    const char *endings[4]; /* of file names, with the dot */
    bool calls, sessions; /* it has `call`, and sessions */
    bool tools; /* its code can call tools */
};
#define REQUEST_TOOLS_LANGUAGES "python, javascript, typescript or bash"
#define REQUEST_ALL_LANGUAGES "python, javascript, bash, typescript, r or java"
extern const struct request_language_row request_languages[REQUEST_LANGUAGES];
int request_language_find(const char *name);
/* JavaScript, or TypeScript, which becomes JavaScript in the box. */
static inline bool request_is_node(enum request_language language)
{
    return language == REQUEST_JAVASCRIPT || language == REQUEST_TYPESCRIPT;
}
int request_language_of_file(const char *file_name);

enum request_on_output { REQUEST_TRUNCATE, REQUEST_STOP };
/* The state after a cell that ended in an error. */
enum request_on_error { REQUEST_KEEP, REQUEST_ROLLBACK };
#define REQUEST_SESSION_LEN 26 /* "s_" and 24 hexadecimal digits */

struct request_file {
    char *path; /* relative, clean, owned */
    struct str data; /* view into `owned` or into request.root */
    char *owned; /* heap bytes behind data, or NULL */
    bool readonly;
    char blob[65]; /* sha256 of the bytes, which the door has yet to fill in; "": none */
};

/* A command line in place of code: `args` holds it, the program first. request_set_command alone
 * makes one; no JSON names it. */
struct request_command {
    bool terminal; /* it gets a terminal, one of the box's own */
    bool err_apart; /* ... but for its stderr */
    uint16_t rows, columns; /* of that terminal; 0: unknown */
};
/* A virtual environment of Python that the box shows, at its own path. As for commands, no JSON
 * names it. */
#define REQUEST_VENV_PATH 1024 /* bytes of its path, with NUL */
struct request_venv {
    const char *path; /* absolute */
    char home[256]; /* the folder of the interpreter that it was made with */
    int minor; /* 11 of Python 3.11; 0: it does not say */
};
/* A command without a time limit: its clocks run out after a year. */
#define REQUEST_COMMAND_MS (INT64_C(366) * 86400 * 1000)

struct request {
    json_t *root; /* keeps the strings below alive */
    enum request_language language;
    struct str code;
    struct str stdin_text;
    struct str *args;
    size_t arg_count;
    struct str *env; /* "NAME=value" */
    size_t env_count;
    char **env_owned;
    const json_t *call; /* {"function", "args", "kwargs"} or NULL */
    struct request_file *files;
    size_t file_count;
    const char *image; /* "host", a name, or "sha256:..." of an image by its digest alone */
    const char *image_digest; /* "sha256:..." where the request pins one, else NULL */
    bool image_given; /* the request names it, not a default */
    char *image_owned; /* heap bytes behind both, or NULL */
    const json_t *packages; /* that the image must have: texts for request_package_read, or NULL */
    const struct limits_profile *profile;
    struct limits limits;
    enum request_on_output on_output_limit;
    bool inline_artifacts; /* the result holds their bytes */
    const char *session; /* "s_...": a cell of that session; NULL: a run */
    enum request_on_error on_error; /* of a cell */
    bool names; /* of a cell: report its changes to the session's names */
    bool has_seed; /* random numbers and the clock follow from the seed */
    uint32_t seed;
    const json_t *tools; /* names and definitions, not yet read; NULL: none */
    int64_t cache_ttl_s; /* a stored result may be that old; 0: the code runs */
    const struct request_command *command; /* runs in place of code; NULL: none */
    const struct request_venv *venv; /* Python is that of it; NULL: none */
};

#define REQUEST_INIT ((struct request){ 0 })
void request_done(struct request *request);
#define own_request attr_cleanup(request_done) struct request

/* Maximums that depend on the host and its operator. */
struct request_ceilings {
    int64_t host_memory_bytes;
    const struct limits *limits; /* NULL: those of the contract */
    const struct limits_profile *profile; /* of a request that names none; NULL: baseline */
    const char *image; /* of a request that names none; NULL: host */
    int64_t cache_ttl_s; /* of a request without 'cache' */
    bool blobs; /* the door has blobs: request_fill_blob follows */
};

/* Turns the request of a session, without code, into a command's, which lives for `timeout_ms`; 0:
 * until it ends. `argv` and `command` must stay as long as the request. argv may hold any bytes. */
int request_set_command(struct request *request, char *const *argv, size_t argc,
                        const struct request_command *command, int64_t timeout_ms, struct err *err);

/* From JSON text, or from a JSON object (which gets a reference). Both give a complete, checked
 * request or -1. */
int request_parse(struct str text, const struct request_ceilings *ceilings, struct request *out,
                  struct err *err);
int request_from_json(json_t *object, const struct request_ceilings *ceilings, struct request *out,
                      struct err *err);
/* Adds an input file of raw bytes (heap, taken over even on failure) without base64, for the
 * command line. The checks are those of files[]: path, duplicates, input_bytes. */
int request_add_file(struct request *request, const char *path, char *bytes, size_t len,
                     bool readonly, struct err *err);

/* Gives a file with a blob its bytes (heap, taken over even on failure). -1: all inputs together
 * are more than input_bytes. */
int request_fill_blob(struct request *request, size_t index, char *bytes, size_t len,
                      struct err *err);
/* "sha256:" and 64 hexadecimal digits, lower case: the digits, or NULL. */
const char *request_blob_sum(struct str text);

/* The request of a new session: as request_from_json, but without code and fields of cells. */
int request_from_session_json(json_t *object, const struct request_ceilings *ceilings,
                              struct request *out, struct err *err);
/* A cell's request, completed from its session: language, profile, limits. Refuses fields that must
 * equal the session's. A new object; NULL with an err. */
json_t *request_of_cell(const json_t *cell, const struct request *session, struct err *err);

/* Replaces the image: "NAME", "NAME@sha256:HEX" or "sha256:HEX", checked by its form alone. */
int request_set_image(struct request *request, const char *text, struct err *err);
/* [a-z0-9][a-z0-9._-]*; "sha256:" and 64 hexadecimal digits, lower case. */
bool request_image_is_name(struct str text);
bool request_image_is_digest(struct str text);
/* Either, or NAME@sha256:HEX. */
bool request_image_is_ref(struct str text);
#define REQUEST_IMAGE_BOUND "NAME, NAME@sha256:HEX or sha256:HEX"

/* One of `packages`: a name alone, or with a version: exactly that one, or at least that. */
struct request_package {
    struct str name, version; /* views; an empty version: any */
    bool least;
};
int request_package_read(struct str text, struct request_package *out);

/* May a request name this path? Relative, at most REQUEST_PATH_MAX bytes, components of 1 to 255
 * bytes, none empty, "." or "..", no NUL, not inside ".cupel" (spilled output). `field` names it in
 * the err. */
int request_check_path(struct str path, const char *field, struct err *err);

/* sha256 over the inputs in a fixed order (stdin, args, env, call, files with paths and readonly
 * bit), for provenance.inputs_sha256; request_hash.c lists the exact bytes. The seed is no part of
 * it: provenance has it beside. out_hex has HASH_HEX_ROOM bytes. */
void request_inputs_sha256(const struct request *request, char *out_hex);
/* The key of the cache: sha256 over all that decides the result of a run in an image of that
 * digest. request_hash.c lists the exact bytes. */
void request_cache_key(const struct request *request, const char *image_digest, char *out_hex);

#endif
