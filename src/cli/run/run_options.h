/* The command line of `cupel run`. */
#ifndef CLI_RUN_RUN_OPTIONS_H
#define CLI_RUN_RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/opt.h"
#include "contract/request.h"

struct cli_run_options {
    bool help, quiet, verbose, json, raw, cold, record;
    const char *language, *code, *out, *stdin_file, *profile, *image, *request;
    const char *session, *on_error; /* of a cell, see cupel session run */
    bool names, inline_artifacts, curl;
    struct opt_list files, env, limits, tools, packages, approve, refuse;
    const char *tools_dir, *mcp, *secrets; /* of an engine of our own */
    const char *dir; /* a folder to show as /workspace */
    const char *venv; /* a virtual environment of Python, to show at its own path */
    bool write, command; /* what is written there goes through; operands are a command */
    struct opt_number timeout, memory, cpus, disk, pids, seed, cache;
    struct opt_operands operands;
};

/* The rows, for every command that runs code: they also fill a larger struct that begins with this
 * one. */
#define CLI_RUN_AT(member) offsetof(struct cli_run_options, member)
#define CLI_RUN_ROW_LANGUAGE                                                                       \
    { "language", 'l', "NAME", OPT_TEXT, CLI_RUN_AT(language), REQUEST_ALL_LANGUAGES }
#define CLI_RUN_ROW_CODE                                                                           \
    { "code", 'c', "CODE", OPT_TEXT, CLI_RUN_AT(code), "run this text; operands are its arguments" }
#define CLI_RUN_ROW_FILE                                                                           \
    { "file",                                                                                      \
      'f',                                                                                         \
      "HOST[:PATH][:ro]",                                                                          \
      OPT_LIST,                                                                                    \
      CLI_RUN_AT(files),                                                                           \
      "copy a file into the work directory, read-only with :ro" }
#define CLI_RUN_ROW_FILES                                                                          \
    { "file",                                                                                      \
      'f',                                                                                         \
      "HOST[:PATH][:ro]",                                                                          \
      OPT_LIST,                                                                                    \
      CLI_RUN_AT(files),                                                                           \
      "copy a file into the work directory (:ro); show a folder" }
#define CLI_RUN_ROWS_DIR                                                                           \
    {                                                                                              \
        "dir",                                                                                     \
        0,                                                                                         \
        "DIR",                                                                                     \
        OPT_TEXT,                                                                                  \
        CLI_RUN_AT(dir),                                                                           \
        "show this folder as /workspace; keep changes for cupel diff"                              \
    },                                                                                             \
    {                                                                                              \
        "write",                                                                                   \
        0,                                                                                         \
        NULL,                                                                                      \
        OPT_FLAG,                                                                                  \
        CLI_RUN_AT(write),                                                                         \
        "with --dir: let the code write into the folder itself"                                    \
    }
#define CLI_RUN_ROW_VENV                                                                           \
    {                                                                                              \
        "venv",                                                                                    \
        0,                                                                                         \
        "DIR",                                                                                     \
        OPT_TEXT,                                                                                  \
        CLI_RUN_AT(venv),                                                                          \
        "Python and packages of this virtual environment, read-only"                               \
    }
#define CLI_RUN_ROW_OUT                                                                            \
    { "out", 'o', "DIR", OPT_TEXT, CLI_RUN_AT(out), "save artifacts and pictures in this folder" }
#define CLI_RUN_ROW_TIMEOUT                                                                        \
    { "timeout", 't', "S", OPT_NUMBER, CLI_RUN_AT(timeout), "wall-clock seconds" }
#define CLI_RUN_ROW_MEMORY                                                                         \
    { "memory", 'm', "SIZE", OPT_BYTES, CLI_RUN_AT(memory), "memory, for example 512M or 2G" }
#define CLI_RUN_ROW_CPUS                                                                           \
    { "cpus", 0, "N", OPT_NUMBER, CLI_RUN_AT(cpus), "processors, for example 0.5 or 2" }
#define CLI_RUN_ROW_DISK                                                                           \
    { "disk", 0, "SIZE", OPT_BYTES, CLI_RUN_AT(disk), "writable space, part of the memory" }
#define CLI_RUN_ROW_PIDS                                                                           \
    { "pids", 0, "N", OPT_NUMBER, CLI_RUN_AT(pids), "processes and threads at one time" }
#define CLI_RUN_ROW_LIMIT                                                                          \
    { "limit",                                                                                     \
      0,                                                                                           \
      "NAME=VALUE",                                                                                \
      OPT_LIST,                                                                                    \
      CLI_RUN_AT(limits),                                                                          \
      "any limit of a request, for example artifact_bytes=50M" }
#define CLI_RUN_ROW_ENV                                                                            \
    { "env", 'e', "NAME=VALUE", OPT_LIST, CLI_RUN_AT(env), "set an environment variable" }
#define CLI_RUN_ROW_STDIN                                                                          \
    { "stdin",                                                                                     \
      0,                                                                                           \
      "FILE",                                                                                      \
      OPT_TEXT,                                                                                    \
      CLI_RUN_AT(stdin_file),                                                                      \
      "standard input of the code; - passes ours" }
#define CLI_RUN_ROW_PROFILE                                                                        \
    { "profile",                                                                                   \
      0,                                                                                           \
      "NAME",                                                                                      \
      OPT_TEXT,                                                                                    \
      CLI_RUN_AT(profile),                                                                         \
      "defaults and walls: baseline, analysis, strict" }
#define CLI_RUN_ROW_IMAGE                                                                          \
    { "image", 0, "NAME", OPT_TEXT, CLI_RUN_AT(image), "root file system, see cupel images" }
#define CLI_RUN_ROW_PACKAGE                                                                        \
    {                                                                                              \
        "package",                                                                                 \
        0,                                                                                         \
        "PACKAGE",                                                                                 \
        OPT_LIST,                                                                                  \
        CLI_RUN_AT(packages),                                                                      \
        "use an image that has this package of Python"                                             \
    }
#define CLI_RUN_ROW_SEED                                                                           \
    { "seed", 0, "N", OPT_NUMBER, CLI_RUN_AT(seed), "fix random numbers and the clock" }
#define CLI_RUN_ROW_TOOLS                                                                          \
    {                                                                                              \
        "tools",                                                                                   \
        0,                                                                                         \
        "NAME",                                                                                    \
        OPT_LIST,                                                                                  \
        CLI_RUN_AT(tools),                                                                         \
        "tools that the code may call, see cupel tools"                                            \
    }
#define CLI_RUN_ROWS_APPROVE                                                                       \
    {                                                                                              \
        "approve",                                                                                 \
        0,                                                                                         \
        "NAME",                                                                                    \
        OPT_LIST,                                                                                  \
        CLI_RUN_AT(approve),                                                                       \
        "allow calls of this tool whose policy asks"                                               \
    },                                                                                             \
    {                                                                                              \
        "refuse",                                                                                  \
        0,                                                                                         \
        "NAME",                                                                                    \
        OPT_LIST,                                                                                  \
        CLI_RUN_AT(refuse),                                                                        \
        "refuse them; this comes first"                                                            \
    }
#define CLI_RUN_ROWS_SOURCES                                                                       \
    { "tools-dir", 0, "DIR", OPT_TEXT, CLI_RUN_AT(tools_dir), "tools from this folder" },          \
        { "mcp", 0, "FILE", OPT_TEXT, CLI_RUN_AT(mcp), "and of the MCP servers in this file" },    \
    {                                                                                              \
        "secrets", 0, "FILE", OPT_TEXT, CLI_RUN_AT(secrets), "secrets for tools, from this file"   \
    }
#define CLI_RUN_ROW_CACHE                                                                          \
    { "cache", 0, "S", OPT_NUMBER, CLI_RUN_AT(cache), "take the same run's result of the last S s" }
#define CLI_RUN_ROW_REQUEST                                                                        \
    { "request",                                                                                   \
      0,                                                                                           \
      "FILE",                                                                                      \
      OPT_TEXT,                                                                                    \
      CLI_RUN_AT(request),                                                                         \
      "a complete request as JSON; - reads standard input" }
#define CLI_RUN_ROW_JSON                                                                           \
    { "json", 0, NULL, OPT_FLAG, CLI_RUN_AT(json), "print the result as JSON and nothing else" }
#define CLI_RUN_ROW_INLINE                                                                         \
    { "inline",                                                                                    \
      0,                                                                                           \
      NULL,                                                                                        \
      OPT_FLAG,                                                                                    \
      CLI_RUN_AT(inline_artifacts),                                                                \
      "with --json: the bytes of artifacts, as base64" }
#define CLI_RUN_ROW_CURL                                                                           \
    { "curl", 0, NULL, OPT_FLAG, CLI_RUN_AT(curl), "print the HTTP request, and run nothing" }
#define CLI_RUN_ROW_COLD                                                                           \
    { "cold", 0, NULL, OPT_FLAG, CLI_RUN_AT(cold), "use no running engine, see cupel serve" }
#define CLI_RUN_ROW_RECORD                                                                         \
    {                                                                                              \
        "record",                                                                                  \
        0,                                                                                         \
        NULL,                                                                                      \
        OPT_FLAG,                                                                                  \
        CLI_RUN_AT(record),                                                                        \
        "keep a record without an engine, too; see cupel runs"                                     \
    }
#define CLI_RUN_ROW_RAW                                                                            \
    { "raw", 0, NULL, OPT_FLAG, CLI_RUN_AT(raw), "print the code's control characters unchanged" }
#define CLI_RUN_ROW_VERBOSE                                                                        \
    {                                                                                              \
        "verbose",                                                                                 \
        'v',                                                                                       \
        NULL,                                                                                      \
        OPT_FLAG,                                                                                  \
        CLI_RUN_AT(verbose),                                                                       \
        "show the cost of the run and its walls"                                                   \
    }
#define CLI_RUN_ROW_QUIET                                                                          \
    { "quiet", 'q', NULL, OPT_FLAG, CLI_RUN_AT(quiet), "no notes on standard error" }
#define CLI_RUN_ROW_HELP { "help", 'h', NULL, OPT_FLAG, CLI_RUN_AT(help), "show this text" }

#define CLI_RUN_OPTIONS_INIT ((struct cli_run_options){ 0 })

extern const struct opt cli_run_options_table[];
extern const size_t cli_run_options_rows;

/* Parses and checks argv without opening files. Fills `out` as far as possible even on failure, so
 * that --json and -q are known. */
int cli_run_options_parse(int argc, char **argv, struct cli_run_options *out, struct err *err);
/* Fills `out` with the options of `cupel serve` for an engine of our own, and a NULL. False: none
 * is needed. */
#define CLI_RUN_ENGINE_OPTIONS 7
bool cli_run_options_engine(const struct cli_run_options *options,
                            char *out[CLI_RUN_ENGINE_OPTIONS]);
/* The rules between options, for a command with its own table. */
int cli_run_options_check(const struct cli_run_options *options, struct err *err);
/* A folder or a large file needs an engine of our own, which is given it as the caller: some
 * options do not go with that. `what`: for the message. */
int cli_run_options_check_alone(const struct cli_run_options *options, const char *what,
                                struct err *err);
/* A wrong command line is still answered in the form it asks for. */
bool cli_run_options_ask_for_json(int argc, char **argv);
void cli_run_options_done(struct cli_run_options *options);
void cli_run_options_help(void);

#endif
