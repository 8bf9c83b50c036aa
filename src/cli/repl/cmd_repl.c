/* `cupel repl`: lines in, cells to a session, results out, until Ctrl-D. Runs in the cli process.
 * As in `cupel run`, the caller's files come first (the history, the folder of pictures, the
 * engine); then the rights are dropped, and only then a line is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "box/host/box.h"
#include "cli/cli.h"
#include "cli/term/interrupt.h"
#include "cli/repl/repl.h"
#include "cli/repl/repl_options.h"
#include "cli/repl/repl_scan.h"
#include "cli/run/run_request.h"
#include "cli/run/shown.h"
#include "cli/link/engine_start.h"
#include "cli/term/term.h"

#define PERSONS_PROFILE "analysis"

static const char *const prompts[REQUEST_LANGUAGES][2] = {
    [REQUEST_PYTHON] = { ">>> ", "... " },
    [REQUEST_JAVASCRIPT] = { "> ", "... " },
    [REQUEST_BASH] = { "$ ", "> " },
    [REQUEST_TYPESCRIPT] = { "> ", "... " },
};

/* --- the session --- */

int cli_repl_ask(struct cli_repl *repl, json_t *ask, struct err *err)
{
    if (strcmp(json_string_value(json_object_get(ask, "do")), "new") != 0)
        json_object_set_new(ask, "session", json_string(repl->id));
    return cli_remote_ask(&repl->job.remote, ask, err);
}

static int take_session(struct cli_repl *repl, bool own, struct err *err)
{
    const json_t *info = json_object_get(repl->job.remote.call.answer, "session");
    const char *id = json_string_value(json_object_get(info, "session"));
    const char *language = json_string_value(json_object_get(info, "language"));
    const json_t *ended = json_object_get(info, "ended");
    int found = language ? request_language_find(language) : -1;
    if (!id || strlen(id) >= sizeof repl->id || found < 0)
        return err_set(err, ERR_BUG, "the engine did not describe the session");
    if (json_is_object(ended)) {
        const char *why = json_string_value(json_object_get(ended, "why"));
        err_set(err, ERR_ABSENT, "session '%.40s' has ended: %.200s", id, why ? why : "");
        err_hint(err, "'cupel repl' without an id makes a new one");
        return -1;
    }
    snprintf(repl->id, sizeof repl->id, "%s", id);
    repl->options.session = repl->id;
    repl->language = (enum request_language)found;
    repl->own = own;
    repl->told = (struct cli_term_size){ 0 };
    return 0;
}

int cli_repl_begin(struct cli_repl *repl, struct err *err)
{
    json_t *request = cli_remote_request(&repl->made_of);
    json_object_del(request, "code");
    own_json ask = json_pack("{s:s, s:o, s:I}", "do", "new", "request", request, "life_s",
                             (json_int_t)FRAME_LIFE_MAX_S);
    return cli_repl_ask(repl, ask, err) < 0 ? -1 : take_session(repl, /* own= */ true, err);
}

int cli_repl_use(struct cli_repl *repl, const char *id, struct err *err)
{
    own_json ask = json_pack("{s:s, s:s}", "do", "info", "session", id);
    if (!ask)
        return err_set(err, ERR_USAGE, "the id of a session is not UTF-8");
    return cli_remote_ask(&repl->job.remote, ask, err) < 0
               ? -1
               : take_session(repl, /* own= */ false, err);
}

void cli_repl_leave(struct cli_repl *repl)
{
    own_json ask = json_pack("{s:s}", "do", "end");
    struct err unheard = ERR_INIT; /* it may have ended by itself */
    if (repl->own)
        cli_repl_ask(repl, ask, &unheard);
    repl->own = false;
}

/* --- cells --- */

/* A late Ctrl-C for one cell must not hit the next. */
static void drain(int fd)
{
    char wishes[64];
    while (read(fd, wishes, sizeof wishes) > 0)
        ;
}

/* The request of a cell. Includes the terminal's size if the session does not know it: the code's
 * own setting stays until the terminal changes. */
static int make_cell(struct cli_repl *repl, struct err *err)
{
    struct cli_job *job = &repl->job;
    struct cli_term_size now = cli_term_size();
    char columns[32], lines[32];
    const char *texts[] = { columns, lines };
    struct opt_list env = { texts, 2 };
    snprintf(columns, sizeof columns, "COLUMNS=%zu", now.columns);
    snprintf(lines, sizeof lines, "LINES=%zu", now.rows);
    bool known = now.columns == repl->told.columns && now.rows == repl->told.rows;
    if (!repl->reader.prompts || known)
        env.count = 0;
    repl->told = now;
    return cli_run_request_cell(&repl->options, &job->inputs, &env, &job->request, err);
}

static void run_cell(struct cli_repl *repl, const struct buf *cell)
{
    struct cli_job *job = &repl->job;
    struct err err = ERR_INIT;
    own_str code = buf_strdup(buf_str(cell));
    cli_job_again(job);
    job->inputs.code = code;
    drain(job->interrupt_fd);
    if (make_cell(repl, &err) < 0 || cli_job_run(job, &err) < 0)
        repl->code = cli_term_refuse(&err, /* json= */ false);
    else
        repl->code = cli_job_tell(job);
    job->inputs.code = NULL;
    if (job->result.state != RESULT_STATE_KEPT)
        repl->told = (struct cli_term_size){ 0 };
    /* The engine is gone, the reader is gone, or we were told to end. */
    if (err.kind == ERR_HOST || job->out.closed || cli_interrupt_signal())
        repl->quit = true;
}

/* An unused session ends; an open prompt keeps its session. */
static void keep_alive(void *user)
{
    own_json ask = json_pack("{s:s, s:b}", "do", "info", "names", 1);
    struct err unheard = ERR_INIT;
    cli_repl_ask(user, ask, &unheard);
}

static bool hear(void *user)
{
    struct cli_repl *repl = user;
    return cli_remote_hear(&repl->job.remote);
}

static json_t *complete(void *user, struct str code, size_t cursor, size_t *out_start)
{
    struct cli_repl *repl = user;
    if (code.len > 0 && code.at[0] == ':') {
        *out_start = 1;
        return cli_repl_commands_like((struct str){ code.at + 1, code.len - 1 });
    }
    struct err unheard = ERR_INIT;
    json_t *text = json_stringn(code.at, code.len);
    own_json ask = text ? json_pack("{s:s, s:o, s:I}", "do", "complete", "code", text, "cursor",
                                    (json_int_t)cursor)
                        : NULL;
    if (!ask || cli_repl_ask(repl, ask, &unheard) < 0)
        return NULL;
    const json_t *answer = repl->job.remote.call.answer;
    json_int_t start = json_integer_value(json_object_get(answer, "start"));
    *out_start = start > 0 ? (size_t)start : 0;
    return json_incref(json_object_get(answer, "matches"));
}

static bool is_blank(const struct buf *text)
{
    return strspn(buf_str(text).at, " \t\r\n") >= text->len;
}

/* Ways to leave: exit, quit(), exit(3), and "exit 3" of a shell. */
static bool is_end(struct cli_repl *repl, const struct buf *line)
{
    static const char *const words[] = { "exit", "quit" };
    const char *at = line->at + strspn(line->at, " \t");
    size_t i = 0;
    while (i < array_len(words) && strncmp(at, words[i], 4) != 0)
        i++;
    if (i == array_len(words))
        return false;
    at += 4;
    bool called = *at == '(';
    if (!called && (repl->language == REQUEST_BASH ? !strchr(" \t;\r\n", *at)
                                                   : at[strspn(at, " \t;\r\n")] != 0))
        return false;
    at += called;
    char *end = NULL;
    unsigned long code = strtoul(at, &end, 10);
    bool number = end != at && strchr("0123456789", end[-1]);
    at = number ? end : at;
    if (called && *at++ != ')')
        return false;
    if (at[strspn(at, " \t;\r\n")])
        return false;
    repl->quit = true;
    repl->code = number ? (int)(code & 0xff) : 0;
    return true;
}

static void read_one(struct cli_repl *repl)
{
    own_buf cell = BUF_INIT(REQUEST_CODE_MAX), line = BUF_INIT(REQUEST_CODE_MAX);
    repl->reader.pasted = false;
    for (;;) {
        repl->reader.prompt = prompts[repl->language][cell.len > 0];
        repl->reader.before = buf_str(&cell);
        enum cli_repl_read got = cli_repl_reader_next(&repl->reader, &line);
        repl->quit = got == CLI_REPL_END;
        if (got == CLI_REPL_INTERRUPTED)
            return;
        if (got == CLI_REPL_END)
            break;
        if (cell.len == 0 && !repl->reader.pasting &&
            (is_blank(&line) || is_end(repl, &line) || cli_repl_command(repl, line.at)))
            return;
        if (buf_add_str(&cell, buf_str(&line)) < 0) {
            cli_term_note("the cell exceeds %u bytes and was dropped", REQUEST_CODE_MAX);
            return;
        }
        if (!repl->reader.pasting &&
            cli_repl_is_whole(repl->language, buf_str(&cell), repl->reader.pasted))
            break;
    }
    bool ended = repl->quit;
    if (!is_blank(&cell) && !repl->reader.ended)
        run_cell(repl, &cell);
    repl->quit = repl->quit || ended;
}

/* --- begin and end --- */

static int open_engine(struct cli_repl *repl, struct err *err)
{
    struct cli_remote *remote = &repl->job.remote;
    char *options[CLI_RUN_ENGINE_OPTIONS];
    char dir[] = "--dir", write[] = "--write";
    char *folder[] = { dir, (char *)(uintptr_t)repl->options.dir,
                       repl->options.write ? write : NULL, NULL };
    if (repl->options.dir)
        return cli_session_own_heard(remote, folder, &repl->engine_said, err);
    if (cli_run_options_engine(&repl->options, options))
        return cli_session_own(remote, options, err);
    return repl->options.session ? cli_session_reach(remote, repl->options.session, err)
                                 : cli_session_carry(remote, err);
}

/* No time limit: a person has Ctrl-C. */
static void set_defaults(struct cli_repl *repl)
{
    struct cli_run_options *options = &repl->options;
    const struct limits_profile *profile = limits_profile_find(PERSONS_PROFILE);
    const struct limits_row *wall = &limits_rows[LIMITS_TIMEOUT];
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    if (!repl->reader.prompts)
        return;
    if (!options->timeout.given)
        options->timeout = (struct opt_number){ true, (double)wall->most / (double)wall->scale };
    if (!options->session && !options->profile && profile->defaults.value[LIMITS_MEMORY] <= memory)
        options->profile = PERSONS_PROFILE;
}

static int prepare(struct cli_repl *repl, struct err *err)
{
    struct cli_job *job = &repl->job;
    const char *folder = repl->options.out ? repl->options.out : ".";
    if (cli_run_inputs_open_files(&repl->options.files, /* folders= */ false, &job->inputs, err) <
            0 ||
        cli_steward_open(folder, &job->steward, err) < 0)
        return -1;
    job->pictures = repl->options.out ? NULL : folder;
    job->save_hint = ":get saves";
    job->at_prompt = true;
    cli_repl_reader_open(&repl->reader);
    set_defaults(repl);
    if (open_engine(repl, err) < 0 || box_drop_door(err) < 0)
        return -1;
    if (repl->options.session) {
        own_str id = buf_strdup(str_of(repl->options.session));
        repl->options.session = NULL;
        if (cli_run_request_session(&repl->options, &job->inputs, &repl->made_of, err) < 0 ||
            cli_repl_use(repl, id, err) < 0)
            return -1;
    } else if (cli_run_request_session(&repl->options, &job->inputs, &repl->made_of, err) < 0 ||
               cli_repl_begin(repl, err) < 0) {
        return -1;
    }
    if (cli_interrupt_open(&job->interrupt_fd, err) < 0)
        return -1;
    repl->reader.interrupt_fd = job->interrupt_fd;
    repl->reader.rest = repl->reader.prompts ? keep_alive : NULL;
    job->answers = repl->reader.prompts;
    repl->reader.news = repl->reader.prompts ? hear : NULL;
    repl->reader.news_fd = job->remote.client.link.fd;
    return 0;
}

static void talk(struct cli_repl *repl)
{
    if (repl->reader.prompts)
        cli_term_note("%s in session %s; :help lists commands, Ctrl-D ends",
                      request_languages[repl->language].name, repl->id);
    if (repl->reader.prompts && repl->options.dir)
        cli_term_note("on a folder: :undo brings names back, and changes no file");
    while (!repl->quit)
        read_one(repl);
    cli_repl_leave(repl);
}

/* Our engine has ended: what became of the changes to the folder. */
static int tell_changes(const struct cli_repl *repl)
{
    char said[1024], set[32];
    size_t count = 0;
    int cut = 0;
    ssize_t n = repl->engine_said < 0 ? 0 : pread(repl->engine_said, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    if (n <= 0 || repl->options.write)
        return 0;
    if (sscanf(said, CLI_SESSION_CHANGES " %zu %31s %d", &count, set, &cut) != 3) {
        said[strcspn(said, "\n")] = 0;
        cli_term_note("%s", strncmp(said, "cupel: ", 7) == 0 ? said + 7 : said);
        return 125;
    }
    if (count > 0)
        cli_term_note("changes: %zu, kept as %s; cupel diff shows them, cupel apply brings them "
                      "into the folder",
                      count, set);
    if (cut)
        cli_term_note("changes: not all of them were kept, see cupel diff");
    return 0;
}

static int done(struct cli_repl *repl)
{
    cli_repl_reader_close(&repl->reader);
    request_done(&repl->made_of);
    cli_job_done(&repl->job);
    int code = tell_changes(repl);
    own_close_fd(&repl->engine_said);
    cli_run_options_done(&repl->options);
    return code;
}

int cli_cmd_repl(int argc, char **argv)
{
    struct cli_repl repl = { .options = CLI_RUN_OPTIONS_INIT,
                             .made_of = REQUEST_INIT,
                             .engine_said = -1,
                             .reader = { .interrupt_fd = -1, .history_fd = -1 } };
    struct err err = ERR_INIT;
    repl.reader.complete = complete;
    repl.reader.user = &repl;
    cli_job_init(&repl.job, &repl.options);
    int code = 0;
    int parsed = cli_repl_options_parse(argc, argv, &repl.options, &err);
    cli_term_set_quiet(repl.options.quiet);
    cli_shown_set_variables(&repl.options);
    if (parsed == 0 && repl.options.help) {
        cli_repl_options_help();
    } else if (parsed < 0 || prepare(&repl, &err) < 0) {
        code = cli_term_refuse(&err, /* json= */ false);
    } else {
        talk(&repl);
        code = cli_interrupt_signal() ? 128 + cli_interrupt_signal()
               : repl.reader.prompts  ? 0
                                      : repl.code;
    }
    int lost = done(&repl);
    return lost ? lost : code;
}
