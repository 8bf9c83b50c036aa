/* Rules and their matching. Matching takes at most pattern times path steps: no rule of a hostile
 * folder makes it slow. Any process; pure. */
#include "folder/ignore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"

/* In the order in which they count: a later row overrules an earlier one. */
const struct ignore_default ignore_defaults[] = {
    { ".env", "settings with passwords and keys" },
    { ".env.*", "settings with passwords and keys" },
    { "!.env.example", "an example without secrets" },
    { "!.env.sample", "an example without secrets" },
    { "!.env.template", "an example without secrets" },
    { "!.env.dist", "an example without secrets" },
    { ".envrc", "settings with passwords and keys" },
    { "id_rsa", "a private key of SSH" },
    { "id_dsa", "a private key of SSH" },
    { "id_ecdsa", "a private key of SSH" },
    { "id_ecdsa_sk", "a private key of SSH" },
    { "id_ed25519", "a private key of SSH" },
    { "id_ed25519_sk", "a private key of SSH" },
    { "*.ppk", "a private key of SSH" },
    { "*.pem", "a private key" },
    { "!**/certifi/cacert.pem", "certificates of authorities, which are public" },
    { "*.key", "a private key" },
    { "*.p12", "a private key" },
    { "*.pfx", "a private key" },
    { "*.jks", "private keys" },
    { "*.keystore", "private keys" },
    { "*.kdbx", "a password database" },
    { ".netrc", "passwords of servers" },
    { "_netrc", "passwords of servers" },
    { ".pgpass", "passwords of databases" },
    { ".my.cnf", "passwords of databases" },
    { ".npmrc", "tokens of package indexes" },
    { ".pypirc", "tokens of package indexes" },
    { ".git-credentials", "passwords of repositories" },
    { ".htpasswd", "passwords" },
    { ".vault-token", "a token" },
    { ".aws/", "keys of a cloud" },
    { ".azure/", "keys of a cloud" },
    { "**/.config/gcloud/", "keys of a cloud" },
    { ".kube/", "keys of a cluster" },
    { ".ssh/", "private keys of SSH" },
    { ".gnupg/", "private keys" },
    { "**/.docker/config.json", "passwords of registries" },
    { "credentials.json", "keys of a service" },
    { "client_secret*.json", "keys of a service" },
    { "*.tfstate", "passwords in the state of a cloud" },
    { "*.tfvars", "passwords for a cloud" },
};
const size_t ignore_default_count = array_len(ignore_defaults);

/* Version control runs programs that its folder names, such as hooks, outside of every box. */
static const char *const kept[] = { ".git", ".hg", ".svn", ".jj", IGNORE_FILE };

/* --- rules --- */

static bool has_wildcard(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("*?\\", text.at[i]) && text.at[i])
            return true;
    return false;
}

static unsigned pair(const char *at)
{
    return (unsigned)(unsigned char)at[0] << 8 | (unsigned char)at[1];
}

static void set_bit(uint8_t *bits, unsigned number)
{
    bits[number / 8] = (uint8_t)(bits[number / 8] | 1u << number % 8);
}

static bool has_bit(const uint8_t *bits, unsigned number)
{
    return bits[number / 8] >> number % 8 & 1;
}

static struct str name_of(struct str path)
{
    const char *slash = path.len > 0 ? memrchr(path.at, '/', path.len) : NULL;
    if (!slash)
        return path;
    return (struct str){ slash + 1, path.len - (size_t)(slash + 1 - path.at) };
}

/* Names of one byte are always looked at. */
static void index_rule(struct ignore *ignore, const struct ignore_rule *rule)
{
    struct str name = name_of((struct str){ rule->text, rule->len });
    struct str head = { name.at, name.len < 2 ? name.len : 2 };
    if (rule->ending && name.len >= 2)
        set_bit(ignore->last, pair(name.at + name.len - 2));
    else if (rule->ending || (!rule->literal && (head.len < 2 || has_wildcard(head))))
        ignore->any = true;
    else if (head.len == 2)
        set_bit(ignore->first, pair(name.at));
}

static bool may_match(const struct ignore *ignore, struct str name)
{
    return ignore->any || name.len < 2 || has_bit(ignore->first, pair(name.at)) ||
           has_bit(ignore->last, pair(name.at + name.len - 2));
}

static struct ignore_rule *add_rule(struct ignore *ignore, struct str text, const char *why)
{
    ignore->rules = buf_list_room(ignore->rules, ignore->count, sizeof *ignore->rules);
    struct ignore_rule *rule = &ignore->rules[ignore->count++];
    *rule = (struct ignore_rule){ .why = why };
    if (text.len > 0 && text.at[0] == '!') {
        rule->shows = true;
        text = (struct str){ text.at + 1, text.len - 1 };
    }
    if (text.len > 0 && text.at[text.len - 1] == '/') {
        rule->dirs = true;
        text.len--;
    }
    rule->whole = text.len > 0 && memchr(text.at, '/', text.len);
    if (text.len > 0 && text.at[0] == '/')
        text = (struct str){ text.at + 1, text.len - 1 };
    rule->literal = !has_wildcard(text);
    struct str end = { text.at + 1, text.len > 0 ? text.len - 1 : 0 };
    if (!rule->whole && text.len > 1 && text.at[0] == '*' && !has_wildcard(end)) {
        rule->ending = true;
        text = end;
    }
    rule->text = buf_strdup(text);
    rule->len = text.len;
    index_rule(ignore, rule);
    return rule;
}

void ignore_init(struct ignore *out)
{
    *out = IGNORE_INIT;
    for (size_t i = 0; i < array_len(ignore_defaults); i++)
        add_rule(out, str_of(ignore_defaults[i].rule), ignore_defaults[i].why);
}

void ignore_done(struct ignore *ignore)
{
    for (size_t i = 0; i < ignore->count; i++)
        free(ignore->rules[i].text);
    free(ignore->rules);
    *ignore = IGNORE_INIT;
}

void ignore_add_path(struct ignore *ignore, struct str path, const char *why)
{
    struct ignore_rule *rule = add_rule(ignore, STR("/x"), why);
    free(rule->text);
    *rule = (struct ignore_rule){ .text = buf_strdup(path), .len = path.len, .whole = true,
                                  .literal = true, .why = why };
    index_rule(ignore, rule);
}

static int refuse(size_t number, struct str line, const char *bound, struct err *err)
{
    char field[40], value[60];
    snprintf(field, sizeof field, IGNORE_FILE ", line %zu", number);
    str_plain(value, sizeof value, line);
    err_input(err, field, NULL, bound, "%s: '%s' is not understood", field, value);
    err_hint(err,
             "a rule is NAME, /PATH, DIR/ or a pattern with * ? and **; ! shows a match again");
    return -1;
}

/* A pattern that the matcher gives another meaning than its author. */
static const char *fault_of(struct str line)
{
    if (line.len > IGNORE_RULE_MAX)
        return "at most 1000 bytes";
    if (memchr(line.at, 0, line.len) || memchr(line.at, '[', line.len))
        return "no [ and no NUL";
    if (line.at[line.len - 1] == '\\')
        return "a character after each backslash";
    struct str rest = line;
    if (rest.at[0] == '!')
        rest = (struct str){ rest.at + 1, rest.len - 1 };
    if (rest.len > 0 && rest.at[0] == '/')
        rest = (struct str){ rest.at + 1, rest.len - 1 };
    if (rest.len > 0 && rest.at[rest.len - 1] == '/')
        rest.len--;
    if (rest.len == 0)
        return "a name";
    while (rest.len > 0) {
        const char *slash = memchr(rest.at, '/', rest.len);
        size_t len = slash ? (size_t)(slash - rest.at) : rest.len;
        if (len == 0 || (len == 1 && rest.at[0] == '.') ||
            (len == 2 && rest.at[0] == '.' && rest.at[1] == '.'))
            return "names between slashes";
        size_t taken = len + (slash ? 1 : 0);
        rest = (struct str){ rest.at + taken, rest.len - taken };
        if (slash && rest.len == 0)
            return "names between slashes";
    }
    return NULL;
}

int ignore_add(struct ignore *ignore, struct str text, struct err *err)
{
    size_t number = 0, count = 0;
    if (text.len > IGNORE_TEXT_MAX)
        return err_input(err, IGNORE_FILE, NULL, "at most 65536 bytes",
                         IGNORE_FILE " has %zu bytes", text.len);
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        struct str line = { text.at, end ? (size_t)(end - text.at) : text.len };
        size_t taken = line.len + (end ? 1 : 0);
        text = (struct str){ text.at + taken, text.len - taken };
        number++;
        line = str_trim(line);
        if (line.len == 0 || line.at[0] == '#')
            continue;
        const char *fault = fault_of(line);
        if (!fault && ++count > IGNORE_RULES_MAX)
            fault = "at most 1000 rules";
        if (fault)
            return refuse(number, line, fault, err);
        add_rule(ignore, line, NULL);
    }
    return 0;
}

/* --- matching --- */

/* One name against one part of a pattern: * is any bytes, ? one byte, \ takes the next as it is. */
static bool match_name(struct str p, struct str s)
{
    size_t i = 0, j = 0, star = SIZE_MAX, from = 0;
    while (j < s.len) {
        bool quoted = i + 1 < p.len && p.at[i] == '\\';
        char c = i < p.len ? p.at[i + quoted] : 0;
        if (i < p.len && !quoted && c == '*') {
            star = ++i;
            from = j;
        } else if (i < p.len && ((!quoted && c == '?') || c == s.at[j])) {
            i += 1 + (size_t)quoted;
            j++;
        } else if (star != SIZE_MAX) {
            i = star;
            j = ++from;
        } else {
            return false;
        }
    }
    while (i < p.len && p.at[i] == '*')
        i++;
    return i == p.len;
}

/* Takes the first part of a path off. */
static struct str cut(struct str *rest)
{
    const char *slash = rest->len > 0 ? memchr(rest->at, '/', rest->len) : NULL;
    struct str part = { rest->at, slash ? (size_t)(slash - rest->at) : rest->len };
    size_t taken = part.len + (slash ? 1 : 0);
    *rest = (struct str){ rest->at + taken, rest->len - taken };
    return part;
}

/* ** is any number of parts; at the end it is at least one. */
static bool match_path(struct str p, struct str s)
{
    struct str again_p = STR_NONE, again_s = STR_NONE;
    while (s.len > 0) {
        struct str p_rest = p, s_rest = s;
        struct str part = cut(&p_rest), name = cut(&s_rest);
        if (str_is(part, "**")) {
            if (p_rest.len == 0)
                return true;
            again_p = p = p_rest;
            again_s = s;
        } else if (p.len > 0 && match_name(part, name)) {
            p = p_rest;
            s = s_rest;
        } else if (again_s.len > 0) {
            cut(&again_s);
            p = again_p;
            s = again_s;
        } else {
            return false;
        }
    }
    return p.len == 0;
}

static bool match(const struct ignore_rule *rule, struct str path, struct str name)
{
    struct str text = { rule->text, rule->len };
    if (rule->ending)
        return name.len >= text.len && name.at[name.len - 1] == text.at[text.len - 1] &&
               str_ends(name, text);
    struct str with = rule->whole ? path : name;
    if (rule->literal)
        return with.len == text.len && with.at[0] == text.at[0] && str_eq(with, text);
    return rule->whole ? match_path(text, with) : match_name(text, with);
}

const struct ignore_rule *ignore_match(const struct ignore *ignore, struct str path, bool is_dir)
{
    struct str name = name_of(path);
    if (name.len == 0 || !may_match(ignore, name))
        return NULL;
    for (size_t i = ignore->count; i-- > 0;) {
        const struct ignore_rule *rule = &ignore->rules[i];
        if ((is_dir || !rule->dirs) && match(rule, path, name))
            return rule;
    }
    return NULL;
}

bool ignore_hides_within(const struct ignore *ignore, struct str path, bool is_dir)
{
    for (size_t i = 0; i < path.len; i++) {
        if (path.at[i] == '/' && ignore_hides(ignore, (struct str){ path.at, i }, true))
            return true;
    }
    return ignore_hides(ignore, path, is_dir);
}

bool ignore_is_kept(struct str path)
{
    struct str name = name_of(path);
    if (name.len == 0 || name.at[0] != '.')
        return false;
    for (size_t i = 0; i < array_len(kept); i++)
        if (str_is(name, kept[i]))
            return true;
    return false;
}

bool ignore_is_kept_within(struct str path)
{
    for (size_t i = 0; i < path.len; i++) {
        if (path.at[i] == '/' && ignore_is_kept((struct str){ path.at, i }))
            return true;
    }
    return ignore_is_kept(path);
}
