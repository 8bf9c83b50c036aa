/* From a checked request to the broker's input: a box's numbers, its files, and the exec block.
 * Pure except for memory files. */
#ifndef ENGINE_TALK_PLAN_H
#define ENGINE_TALK_PLAN_H

#include "base/err.h"
#include "box/proto/proto.h"
#include "contract/request.h"
#include "image/image.h"

#define PLAN_PYTHON_LEAST 8 /* the drivers run on Python 3.8 and later */

/* A box or zygote shows this: an image, and its prepared font list (NULL and -1: none). */
struct plan_image {
    const struct image *image;
    const char *font_list;
    int font_fd;
};

struct plan {
    struct box_call create; /* without a box number */
    int plant_fds[BOX_PLANTS_MAX];
    int exec_block;
    struct box_call start;
};
#define PLAN_INIT                                                                                  \
    ((struct plan){ .plant_fds = { [0 ... BOX_PLANTS_MAX - 1] = -1 }, .exec_block = -1 })
void plan_done(struct plan *plan);

int plan_make(const struct request *request, const struct plan_image *in, struct plan *out,
              struct err *err);
/* The exec block, for an occupant that is not forked. */
int plan_add_exec(const struct request *request, const struct image *image, struct plan *plan,
                  struct err *err);
/* For a pool, whose occupants wait for requests like this one. */
int plan_pool(const struct request *request, const struct image *image, bool session,
              struct plan *out, struct err *err);
/* For a session that is not forked from a zygote: execs its cell runner. */
int plan_session(const struct request *request, const struct plan_image *in, struct plan *out,
                 struct err *err);
/* A zygote for Python, with or without the large packages: `create` holds a BOX_OP_ZYGOTE call. */
int plan_zygote(bool large, const struct plan_image *in, struct plan *out, struct err *err);
/* Can a zygote of this build fork the image's Python? *out_why says why not. */
bool plan_can_fork(const struct image *image, const char **out_why);

/* May a process that was started before the request run it? Not if it has a seed, or an `env` with
 * names that interpreters read at their start. */
bool plan_may_be_late(const struct request *request);
/* Do both need the same box: every number that is fixed when it is built, and no seed, whose box
 * has more files? */
bool plan_same_box(const struct request *a, const struct request *b);

/* The code for an interpreter: without a byte order mark at its start. */
struct str plan_code(const struct request *request);
/* The first line for the driver; heap. with_env: the process was started without the request's
 * environment, and sets it now. */
char *plan_driver_line(const struct request *request, const json_t *tools, const char *sign,
                       bool with_env);
/* Refuses a language that the image lacks; of image `host` the err names the package. */
int plan_check_installed(const struct request *request, const struct image *image, struct err *err);
/* The exec of the interpreter failed with `error`: -1 and a refusal if that is a stored image's
 * fault, else 0. */
int plan_blame_image(const struct request *request, const struct image *image, int error,
                     struct err *err);
/* plan_venv.c. Refuses a virtual environment of another Python than the image's. */
int plan_check_venv(const struct request *request, const struct image *image, struct err *err);
/* Refuses a seed where the image's loader cannot put the clock before libc. */
int plan_check_clock(const struct request *request, const struct image *image, struct err *err);
/* The same for a waiting bash (drivers/PROTOCOL.md), and whether the request can use one: a shell
 * cannot hold every value. */
bool plan_bash_may_wait(const struct request *request);
/* plan_bash.c. `tools`: that its code may call, or NULL. A bash that does not wait has its code in
 * a file, and gets nothing but its tools; NULL: nothing at all. */
char *plan_bash_message(const struct request *request, const json_t *tools, bool waits);

/* plan_command.c: for the program `shell`: how it runs its command, heap; later its terminal's
 * size. */
#define PLAN_COMMAND_MESSAGE 8 /* bytes */
char *plan_command_message(const struct request_command *command);
void plan_command_size(unsigned rows, unsigned columns, char out[PLAN_COMMAND_MESSAGE]);

/* Cells, and questions to a session; heap. Bash has `names` and `complete`, the latter with the
 * text up to the cursor. */
char *plan_line(const json_t *line);
/* `session`: its environment comes first; NULL: already sent. `hush`: an interrupt for the cell
 * before may still be pending. Python's stdin follows the line unchanged. `input`: the code may ask
 * for input. */
struct plan_cell {
    int64_t number;
    const char *nonce, *sign;
    const json_t *tools; /* that its code may call, or NULL */
    bool hush, input;
};
char *plan_cell_line(const struct request *request, const struct request *session,
                     const struct plan_cell *cell);
/* The outcome of a call: {"value":...} or {"error":...}. */
char *plan_return_line(int64_t number, const json_t *outcome);
/* A line of input, or its end, for that question. */
char *plan_input_line(int64_t number, struct str text, bool end);
char *plan_bash_cell(const struct request *request, const json_t *tools, int64_t cell,
                     const char *nonce);
/* The same outcome for bash. */
char *plan_bash_return(int64_t number, const json_t *outcome);
char *plan_bash_question(const char *word, const char *nonce, struct str text);

#endif
