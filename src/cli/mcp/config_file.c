/* Makes and changes the configuration files of MCP clients. Runs in the cli process, as the
 * caller. config.c states the rules. */
#include "cli/mcp/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/term/term.h"

#define FILE_MAX ((size_t)16 << 20)
#define TABLE "[mcp_servers.cupel]"

const struct cli_mcp_client cli_mcp_clients[] = {
    { "claude-code", true, ".claude.json", "mcpServers", true },
    { "claude-desktop", true, ".config/Claude/claude_desktop_config.json", "mcpServers", false },
    { "cursor", true, ".cursor/mcp.json", "mcpServers", false },
    { "vscode", false, ".vscode/mcp.json", "servers", true },
    { "codex", true, ".codex/config.toml", NULL, false },
};
const size_t cli_mcp_client_count = array_len(cli_mcp_clients);

/* --- the lines --- */

static json_t *server_of(const struct cli_mcp_client *client, const char *program)
{
    json_t *server = json_object();
    if (client->typed)
        json_object_set_new(server, "type", json_string("stdio"));
    json_object_set_new(server, "command", json_string(program));
    json_object_set_new(server, "args", json_pack("[s]", "mcp"));
    return server;
}

/* A JSON string is a basic string of TOML, too, except that TOML has no "\/". */
static char *toml_of(const char *program)
{
    struct buf out = BUF_INIT(8 * PATH_MAX);
    own_json path = json_string(program);
    own_str quoted = json_write(path, JSON_ENCODE_ANY);
    buf_printf(&out, TABLE "\ncommand = %s\nargs = [\"mcp\"]\n", quoted);
    return buf_take(&out);
}

char *cli_mcp_config_text(const struct cli_mcp_client *client, const char *program)
{
    if (!client->member)
        return toml_of(program);
    own_json root = json_pack("{s:{s:o}}", client->member, "cupel", server_of(client, program));
    own_str text = json_write(root, JSON_INDENT(2));
    struct buf out = BUF_INIT(FILE_MAX);
    buf_printf(&out, "%s\n", text);
    return buf_take(&out);
}

/* --- the file --- */

/* Its text; none where it is not there. */
static int read_file(const char *file, struct buf *out, bool *out_there, struct err *err)
{
    struct stat st;
    own_fd fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    *out_there = fd >= 0;
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return err_sys(err, "open '%.200s'", file);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_INPUT, "'%.200s' is not a file", file);
    return buf_read(out, fd) == 0 ? 0 : err_sys(err, "read '%.200s'", file);
}

static int write_new(const char *path, struct str text, mode_t mode, struct err *err)
{
    own_fd fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode & 0777);
    if (fd < 0)
        return err_sys(err, "make '%.200s'", path);
    if (io_write_all(fd, text.at, text.len) == 0 && fsync(fd) == 0)
        return 0;
    err_sys(err, "write '%.200s'", path);
    unlink(path);
    return -1;
}

/* mkdir -p of the folder that the file is in. */
static int make_folders(const char *file, struct err *err)
{
    own_str path = buf_strdup(str_of(file));
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return err_sys(err, "make the folder '%.200s'", path);
        *at = '/';
    }
    return 0;
}

/* A backup of another day stays: the first free name is taken. */
static int back_up(const char *file, struct str text, mode_t mode, struct err *err)
{
    char path[PATH_MAX];
    for (int i = 0; i < 1000; i++) {
        int n = i == 0 ? snprintf(path, sizeof path, "%s.cupel-backup", file)
                       : snprintf(path, sizeof path, "%s.cupel-backup-%d", file, i);
        struct stat st;
        if ((size_t)n >= sizeof path)
            return err_set(err, ERR_INPUT, "the path '%.200s' is too long", file);
        if (lstat(path, &st) == 0)
            continue;
        if (write_new(path, text, mode, err) < 0)
            return -1;
        cli_term_note("the file as it was: %s", path);
        return 0;
    }
    return err_set(err, ERR_CONFLICT, "there are a thousand backups of '%.200s'", file);
}

/* A link stays a link: the file behind it is replaced. */
static int replace(const char *file, struct str old, bool there, struct str text, struct err *err)
{
    char place[PATH_MAX], temp[PATH_MAX];
    struct stat st = { .st_mode = 0600 };
    if (there && (!realpath(file, place) || stat(place, &st) < 0))
        return err_sys(err, "find '%.200s'", file);
    if (!there && (make_folders(file, err) < 0 ||
                   (size_t)snprintf(place, sizeof place, "%s", file) >= sizeof place))
        return err->kind == ERR_NONE ? err_set(err, ERR_INPUT, "the path is too long") : -1;
    if (there && back_up(place, old, st.st_mode, err) < 0)
        return -1;
    if ((size_t)snprintf(temp, sizeof temp, "%s.cupel-%ld", place, (long)getpid()) >= sizeof temp)
        return err_set(err, ERR_INPUT, "the path '%.200s' is too long", file);
    if (write_new(temp, text, st.st_mode, err) < 0)
        return -1;
    if (rename(temp, place) == 0)
        return 0;
    err_sys(err, "replace '%.200s'", file);
    unlink(temp);
    return -1;
}

/* --- what goes into it --- */

static int refuse(const char *file, const char *why, struct err *err)
{
    err_set(err, ERR_INPUT, "'%.200s' %.200s; it is left as it is", file, why);
    err_hint(err, "without --write the lines are printed, to be put there by hand");
    return -1;
}

static int merge_json(const struct cli_mcp_client *client, const char *file, const char *program,
                      struct str old, struct buf *out, struct err *err)
{
    struct err why = ERR_INIT;
    own_json root = str_trim(old).len == 0 ? json_object() : json_read(old, FILE_MAX, &why);
    if (!root)
        return refuse(file, "is not plain JSON (a comment, perhaps)", err);
    json_t *servers = json_object_get(root, client->member);
    if (!json_is_object(root) || (servers && !json_is_object(servers)))
        return refuse(file, "has another form than the client's", err);
    if (!servers)
        json_object_set_new(root, client->member, servers = json_object());
    json_object_set_new(servers, "cupel", server_of(client, program));
    own_str text = json_write(root, JSON_INDENT(2));
    return text && buf_printf(out, "%s\n", text) == 0
               ? 0
               : err_set(err, ERR_LIMIT, "'%.200s' is too long", file);
}

/* The next line of the text, without its end. */
static struct str next_line(struct str *text)
{
    const char *end = memchr(text->at, '\n', text->len);
    struct str line = { text->at, end ? (size_t)(end - text->at) : text->len };
    size_t used = line.len + (end != NULL);
    *text = (struct str){ text->at + used, text->len - used };
    return line;
}

/* TOML is not parsed: a text that may hold a table inside a string of several lines, or the table
 * in another spelling, is refused. Our own table, from its name to the next one, is replaced. */
static int merge_toml(const char *file, const char *program, struct str old, struct buf *out,
                      struct err *err)
{
    bool ours = false, had = false;
    if (!str_is_utf8(old) || memchr(old.at, 0, old.len) || memmem(old.at, old.len, "\"\"\"", 3) ||
        memmem(old.at, old.len, "'''", 3))
        return refuse(file, "cannot be read safely (it has strings of several lines)", err);
    own_str lines = toml_of(program);
    for (struct str rest = old; rest.len > 0;) {
        struct str line = next_line(&rest), word = str_trim(line);
        if (word.len > 0 && word.at[0] == '[')
            ours = str_is(word, TABLE);
        else if (!ours && memmem(word.at, word.len, "mcp_servers", 11) && word.at[0] != '#')
            return refuse(file, "spells its servers in a way that is not understood here", err);
        if (word.len > 0 && word.at[0] == '[' && !ours &&
            memmem(word.at, word.len, "mcp_servers", 11) && memmem(word.at, word.len, "cupel", 5))
            return refuse(file, "has a table of cupel that is not understood here", err);
        if (!ours && buf_printf(out, "%.*s\n", (int)line.len, line.at) < 0)
            return err_set(err, ERR_LIMIT, "'%.200s' is too long", file);
        if (ours && !had)
            buf_add_text(out, lines);
        had = had || ours;
    }
    if (!had && buf_printf(out, "%s%s", out->len ? "\n" : "", lines) < 0)
        return err_set(err, ERR_LIMIT, "'%.200s' is too long", file);
    return 0;
}

int cli_mcp_config_write(const struct cli_mcp_client *client, const char *file, const char *program,
                         struct err *err)
{
    own_buf old = BUF_INIT(FILE_MAX), text = BUF_INIT(FILE_MAX + 65536);
    bool there = false;
    if (read_file(file, &old, &there, err) < 0)
        return -1;
    int rc = client->member ? merge_json(client, file, program, buf_str(&old), &text, err)
                            : merge_toml(file, program, buf_str(&old), &text, err);
    if (rc < 0)
        return -1;
    if (there && str_eq(buf_str(&old), buf_str(&text))) {
        cli_term_note("%s has it already", file);
        return 0;
    }
    if (replace(file, buf_str(&old), there, buf_str(&text), err) < 0)
        return -1;
    cli_term_note("written to %s; start the client again", file);
    return 0;
}
