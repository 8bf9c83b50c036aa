/* One row for each field of a task. Pure: no file, no clock. Fields of the box (profile, limits,
 * image, tier, files) are checked by the contract. Runs in the serve process. */
#include "serve/api/tasks_request.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/json.h"
#include "base/own.h"

void tasks_request_done(struct tasks_request *request)
{
    buf_done(&request->question);
    request_done(&request->made_of);
    json_decref(request->session);
    json_decref(request->root);
    *request = TASKS_REQUEST_INIT;
}

static int refuse(const char *field, const json_t *value, const char *bound, struct err *err)
{
    char given[sizeof err->value];
    json_brief(value, given, sizeof given);
    return err_input(err, field, given, bound, "field '%s' is %.80s: allowed is %s", field, given,
                     bound);
}

static int take_text(const json_t *value, const char *field, size_t most, const char *bound,
                     const char **out, struct err *err)
{
    struct str text = json_str(value);
    if (!text.at || text.len > most || memchr(text.at, 0, text.len))
        return refuse(field, value, bound, err);
    *out = text.at;
    return 0;
}

/* As the command line has it: no white space at its end. */
static int take_question(struct tasks_request *out, const json_t *value, struct err *err)
{
    const char *text = NULL;
    static const char bound[] = "a text, 1 to 262144 bytes";
    if (take_text(value, "question", TASKS_QUESTION_MAX, bound, &text, err) < 0 || !text)
        return -1;
    size_t len = strlen(text);
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    if (len == 0)
        return refuse("question", value, bound, err);
    out->question = BUF_INIT(TASKS_QUESTION_MAX);
    return buf_add(&out->question, text, len);
}

static int take_reply(struct tasks_request *out, const json_t *value, struct err *err)
{
    return take_text(value, "text", TASKS_REPLY_MAX, "a text, at most 60000 bytes", &out->text,
                     err);
}

static int take_allow(struct tasks_request *out, const json_t *value, struct err *err)
{
    out->allow = value;
    return json_is_boolean(value) ? 0 : refuse("allow", value, "true or false", err);
}

static int take_instructions(struct tasks_request *out, const json_t *value, struct err *err)
{
    return take_text(value, "instructions", TASKS_INSTRUCTIONS_MAX, "a text, at most 65536 bytes",
                     &out->instructions, err);
}

static int take_schema(struct tasks_request *out, const json_t *value, struct err *err)
{
    own_buf text = BUF_INIT(TASKS_SCHEMA_MAX);
    if (!json_is_object(value) || json_add(&text, value) < 0)
        return refuse("schema", value, "a JSON Schema, an object of at most 1048576 bytes", err);
    out->schema = value;
    return 0;
}

static int take_budget(struct tasks_request *out, const json_t *value, struct err *err)
{
    return agent_budget_read(value, &out->budget, err);
}

static int take_mode(struct tasks_request *out, const json_t *value, struct err *err)
{
    static const char *const names[] = { [AGENT_CODE] = "code", [AGENT_TOOLS] = "tools" };
    for (size_t i = 0; json_is_string(value) && i < array_len(names); i++)
        if (str_is(json_str(value), names[i])) {
            out->mode = (enum agent_mode)i;
            return 0;
        }
    return refuse("mode", value, "code or tools", err);
}

#define FLAG(member)                                                                         \
    static int take_##member(struct tasks_request *out, const json_t *value, struct err *err) \
    {                                                                                        \
        out->member = json_is_true(value);                                                   \
        return json_is_boolean(value) ? 0 : refuse(#member, value, "true or false", err);    \
    }
FLAG(cross_check)
FLAG(verify)
FLAG(conversation)
FLAG(wait)
#undef FLAG

#define MODEL(member)                                                                        \
    static int take_##member(struct tasks_request *out, const json_t *value, struct err *err) \
    {                                                                                        \
        (void)err;                                                                           \
        out->models.member = value;                                                          \
        return 0;                                                                            \
    }
MODEL(model)
MODEL(judge)
MODEL(planner)
#undef MODEL

/* The contract's. */
static int take_session(struct tasks_request *out, const json_t *value, struct err *err)
{
    (void)out;
    (void)value;
    (void)err;
    return 0;
}

/* A task's client hears of no call, so it can answer none. */
static int take_tools(struct tasks_request *out, const json_t *value, struct err *err)
{
    size_t i;
    json_t *name;
    (void)out;
    json_array_foreach (value, i, name) {
        char field[32];
        snprintf(field, sizeof field, "tools[%zu]", i);
        if (!json_is_string(name))
            return refuse(field, name, "a name or pattern of the service's own tools", err);
    }
    return 0; /* the rest is the contract's */
}

struct row {
    const char *name;
    int (*take)(struct tasks_request *out, const json_t *value, struct err *err);
};

static const struct row fields[] = {
    { "question", take_question },
    { "files", take_session },
    { "profile", take_session },
    { "limits", take_session },
    { "image", take_session },
    { "tier", take_session },
    { "tools", take_tools },
    { "model", take_model },
    { "judge", take_judge },
    { "planner", take_planner },
    { "cross_check", take_cross_check },
    { "mode", take_mode },
    { "schema", take_schema },
    { "instructions", take_instructions },
    { "budget", take_budget },
    { "verify", take_verify },
    { "conversation", take_conversation },
    { "wait", take_wait },
    { NULL, NULL },
};

static const struct row reply_fields[] = {
    { "text", take_reply },
    { "allow", take_allow },
    { "question", take_question },
    { "files", take_session },
    { "wait", take_wait },
    { NULL, NULL },
};

static const struct row resume_fields[] = {
    { "budget", take_budget },
    { "model", take_model },
    { "wait", take_wait },
    { NULL, NULL },
};

static int take_all(json_t *root, const struct row *rows, struct tasks_request *out,
                    struct err *err)
{
    const char *name;
    json_t *value;
    json_object_foreach (root, name, value) {
        const struct row *row = rows;
        own_buf known = BUF_INIT(sizeof err->bound - 1);
        while (row->name && strcmp(row->name, name) != 0)
            row++;
        if (row->name && row->take(out, value, err) < 0)
            return -1;
        if (row->name)
            continue;
        for (row = rows; row->name; row++)
            buf_printf(&known, "%s%s", row == rows ? "" : ", ", row->name);
        return err_input(err, name, NULL, buf_str(&known).at, "unknown field '%.60s'", name);
    }
    out->root = json_incref(root);
    return 0;
}

/* The request of the task's boxes, checked with its files; `session` is the same without them. */
static int make_session(json_t *root, const struct request_ceilings *ceilings,
                        struct tasks_request *out, struct err *err)
{
    out->session = json_object();
    for (const struct row *row = fields; row->name; row++) {
        bool is_box = row->take == take_session || row->take == take_tools;
        json_t *value = is_box ? json_object_get(root, row->name) : NULL;
        if (value)
            json_object_set(out->session, row->name, value);
    }
    if (!json_object_get(out->session, "profile"))
        json_object_set_new(out->session, "profile", json_string("analysis"));
    if (request_from_session_json(out->session, ceilings, &out->made_of, err) < 0)
        return -1;
    json_t *bare = json_copy(out->session);
    json_object_del(bare, "files");
    json_decref(out->session);
    out->session = json_deep_copy(bare);
    json_decref(bare);
    return 0;
}

int tasks_request_read(json_t *root, const struct request_ceilings *ceilings,
                       struct tasks_request *out, struct err *err)
{
    *out = TASKS_REQUEST_INIT;
    if (take_all(root, fields, out, err) < 0 || make_session(root, ceilings, out, err) < 0) {
        tasks_request_done(out);
        return -1;
    }
    if (out->cross_check && out->made_of.tools) {
        tasks_request_done(out);
        return err_input(err, "cross_check", "true", "false beside tools",
                         "a second program would have to call the tools again");
    }
    if (out->question.len > 0)
        return 0;
    tasks_request_done(out);
    err_input(err, "question", NULL, "a text", "field 'question' is missing");
    err_hint(err, "for example {\"question\": \"Which customer spent most?\", \"files\": [...]}");
    return -1;
}

struct agent_task tasks_request_task(const struct tasks_request *request,
                                     const struct agent_file *files, size_t file_count)
{
    return (struct agent_task){
        .question = request->question.at,
        .files = files,
        .file_count = file_count,
        .budget = request->budget,
        .mode = request->mode,
        .cross_check = request->cross_check,
        .schema = (json_t *)(uintptr_t)request->schema,
        .instructions = request->instructions,
        .verify = request->verify,
        .session = request->session,
    };
}

size_t tasks_request_files(const struct tasks_request *request, struct agent_file *out)
{
    const struct request *made_of = &request->made_of;
    for (size_t i = 0; i < made_of->file_count; i++)
        out[i] = (struct agent_file){ .path = made_of->files[i].path,
                                      .content = made_of->files[i].data };
    return made_of->file_count;
}

static int check_new(const struct request *before, const struct request *added, struct err *err)
{
    for (size_t i = 0; i < added->file_count; i++)
        for (size_t j = 0; j < before->file_count; j++)
            if (strcmp(added->files[i].path, before->files[j].path) == 0)
                return err_input(err, "files.path", NULL, "a path that the task does not have yet",
                                 "the task has a file '%.200s' already", added->files[i].path);
    return 0;
}

static int read_follow(json_t *root, const struct tasks_request *first,
                       const struct request_ceilings *ceilings, struct tasks_request *out,
                       struct err *err)
{
    if (out->question.len == 0) {
        err_input(err, "question", NULL, "a text", "neither 'question' nor 'text' is there");
        err_hint(err, "{\"text\"} replies to the model, {\"allow\"} decides on a call, "
                      "{\"question\"} asks further");
        return -1;
    }
    own_json whole = json_copy(first->session);
    json_t *files = json_object_get(root, "files");
    if (files)
        json_object_set(whole, "files", files);
    if (request_from_session_json(whole, ceilings, &out->made_of, err) < 0)
        return -1;
    return check_new(&first->made_of, &out->made_of, err);
}

int tasks_request_read_reply(json_t *root, const struct tasks_request *first,
                             const struct request_ceilings *ceilings, struct tasks_request *out,
                             struct err *err)
{
    *out = TASKS_REQUEST_INIT;
    int rc = take_all(root, reply_fields, out, err);
    bool alone = out->text || out->allow;
    const char *name = out->text ? "text" : "allow";
    if (rc == 0 && alone && json_object_size(root) > 1)
        rc = err_input(err, name, NULL, "this field alone",
                       "'%s' and other fields exclude each other", name);
    if (rc == 0 && !alone)
        rc = read_follow(root, first, ceilings, out, err);
    if (rc < 0)
        tasks_request_done(out);
    return rc;
}

int tasks_request_read_resume(json_t *root, struct tasks_request *first, bool *out_wait,
                              struct err *err)
{
    struct tasks_request wish = TASKS_REQUEST_INIT;
    wish.budget = first->budget;
    int rc = take_all(root, resume_fields, &wish, err);
    *out_wait = wish.wait;
    if (rc == 0)
        first->budget = wish.budget;
    if (rc == 0 && wish.models.model && first->root) { /* the request keeps the name */
        json_object_set(first->root, "model", (json_t *)(uintptr_t)wish.models.model);
        first->models.model = json_object_get(first->root, "model");
    }
    tasks_request_done(&wish);
    return rc;
}
