/* The hint for code that tries to install packages: the image that has them, or the command that
 * makes one. The code is the caller's, and hostile: of its text only names of packages are shown.
 * Runs in the engine. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/engine_int.h"

#define NAMED_MAX 4 /* packages that the hint repeats */

static const struct {
    const char *program, *option;
} installers[] = {
    { "npm", "--npm" },      { "apt-get", "--apt" }, { "apt", "--apt" },
    { "pip", "--pip" },      { "conda", "--pip" },
};

/* A program's name that is followed by "install": its option of `cupel images add`, and the text
 * after that word. */
static const char *find_install(struct str code, struct str *out_rest)
{
    static const char word[] = "install";
    const char *at = memmem(code.at, code.len, word, sizeof word - 1);
    if (!at)
        return NULL;
    struct str before = { code.at, (size_t)(at - code.at) };
    at += sizeof word - 1;
    *out_rest = (struct str){ at, code.len - (size_t)(at - code.at) };
    for (size_t i = 0; i < array_len(installers); i++) {
        const char *program = installers[i].program;
        if (before.len > 0 && memmem(before.at, before.len, program, strlen(program)))
            return installers[i].option;
    }
    return NULL;
}

static bool is_word(char c)
{
    return c && !strchr(" \t'\",[]()", c);
}

/* The packages that follow, up to the end of the command: as json texts. */
static json_t *packages_in(struct str rest)
{
    json_t *names = json_array();
    size_t at = 0;
    bool is_file = false; /* the word before was -r */
    while (at < rest.len && !strchr("\n;&|<>#", rest.at[at] ? rest.at[at] : '\n') &&
           json_array_size(names) < NAMED_MAX) {
        size_t from = at;
        while (at < rest.len && is_word(rest.at[at]) && !strchr("\n;&|", rest.at[at]))
            at++;
        struct request_package package;
        struct str word = { rest.at + from, at - from };
        if (word.len > 0 && !is_file && request_package_read(word, &package) == 0)
            json_array_append_new(names, json_text(word));
        if (word.len > 0)
            is_file = str_is(word, "-r");
        at += at == from;
    }
    return names;
}

void hint_install(struct engine *engine, const struct request *request, const struct result *result,
                  struct buf *out)
{
    const struct result_error *error = &result->error;
    bool tried = hint_is_command(error) || error->kind == RESULT_E_SYNTAX ||
                 error->kind == RESULT_E_TIMEOUT || error->kind == RESULT_E_IMPORT;
    struct str rest;
    const char *option = tried ? find_install(request->code, &rest) : NULL;
    if (!option)
        return;
    own_json names = packages_in(rest);
    buf_add_text(out, "a box has no network, so nothing can be installed in it");
    if (json_array_size(names) > 0)
        images_hint_packages(engine, names, option, out);
    else
        buf_printf(out, "; 'cupel images add NAME %s PACKAGE' makes an image that has a package",
                   option);
    buf_add_text(out, "; 'cupel languages' lists what is there");
    if (strcmp(request->image, "host") == 0)
        buf_add_text(out, " (numpy, pandas, scipy, matplotlib and more)");
}
