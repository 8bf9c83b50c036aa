/* Judges names and values: which names announce a secret, and which values look like one. Pure; any
 * process. Words, numbers, versions, paths and identifiers are no secrets; a value is random where
 * one of its pieces is none of these. */
#include <string.h>

#include "store/redact/redact_int.h"

#define NAME_MAX_BYTES 128
#define DISTINCT_MIN 6 /* different bytes in a random run */

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
    return is_lower(c) || is_upper(c) || is_digit(c);
}

static char fold(char c)
{
    return is_upper(c) ? (char)(c | 0x20) : c;
}

static bool begins(struct str text, const char *prefix)
{
    size_t len = strlen(prefix);
    if (text.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (fold(text.at[i]) != prefix[i])
            return false;
    return true;
}

static bool ends(const char *text, size_t len, const char *ending)
{
    size_t part = strlen(ending);
    return len >= part && memcmp(text + len - part, ending, part) == 0;
}

static const struct {
    const char *ending;
    enum name_class class;
} names[] = {
    /* The first that fits decides. */
    { "pagetoken", NAME_PLAIN },      { "nexttoken", NAME_PLAIN },
    { "continuationtoken", NAME_PLAIN }, { "synctoken", NAME_PLAIN },
    { "publickey", NAME_PLAIN },      { "primarykey", NAME_PLAIN },
    { "foreignkey", NAME_PLAIN },     { "cachekey", NAME_PLAIN },
    { "sortkey", NAME_PLAIN },        { "partitionkey", NAME_PLAIN },
    { "hashkey", NAME_PLAIN },        { "idempotencykey", NAME_PLAIN },
    { "rowkey", NAME_PLAIN },         { "objectkey", NAME_PLAIN },
    { "s3key", NAME_PLAIN },          { "groupkey", NAME_PLAIN },
    { "hostkey", NAME_PLAIN },        { "password", NAME_PASSWORD },
    { "passwd", NAME_PASSWORD },      { "passphrase", NAME_PASSWORD },
    { "pwd", NAME_PASSWORD },         { "pass", NAME_PASSWORD },
    { "secret", NAME_SECRET },        { "token", NAME_SECRET },
    { "credential", NAME_SECRET },    { "apikey", NAME_SECRET },
    { "accesskey", NAME_SECRET },     { "secretkey", NAME_SECRET },
    { "privatekey", NAME_SECRET },    { "authkey", NAME_SECRET },
    { "signingkey", NAME_SECRET },    { "encryptionkey", NAME_SECRET },
    { "accountkey", NAME_SECRET },    { "key", NAME_KEY },
    { "authorization", NAME_AUTHORIZATION },
};

enum name_class redact_name(struct str name)
{
    char plain[NAME_MAX_BYTES];
    size_t len = 0;
    bool parts = false, any_lower = false;
    if (name.len > NAME_MAX_BYTES)
        name = (struct str){ name.at + name.len - NAME_MAX_BYTES, NAME_MAX_BYTES };
    if (str_is(name, "PWD") || str_is(name, "OLDPWD"))
        return NAME_PLAIN; /* folders */
    for (size_t i = 0; i < name.len; i++) {
        any_lower = any_lower || is_lower(name.at[i]);
        parts = parts || (len && name.at[i] == '_');
        if (is_alnum(name.at[i]))
            plain[len++] = fold(name.at[i]);
    }
    while (len && is_digit(plain[len - 1]))
        len--;
    if (len && plain[len - 1] == 's' && !ends(plain, len, "pass"))
        len--;
    for (size_t i = 0; i < array_len(names); i++) {
        if (!ends(plain, len, names[i].ending))
            continue;
        /* A variable of the environment, MISTRAL_KEY; any other key is of a table. */
        if (names[i].class == NAME_KEY && (any_lower || !parts))
            return NAME_PLAIN;
        /* compass, bypass */
        if (strcmp(names[i].ending, "pass") == 0 && len > 4 && !parts)
            return NAME_PLAIN;
        return names[i].class;
    }
    return NAME_PLAIN;
}

const char *redact_name_kind(enum name_class class)
{
    static const char *const kinds[NAMES] = { "secret", "password", "secret", "secret",
                                              "authorization" };
    return kinds[class];
}

/* A piece of letters and digits: a word, a number, or both as in sha256, 4o, x86, 16T15. */
static bool is_word(struct str piece)
{
    size_t digits = 0, turns = 0, humps = 0;
    for (size_t i = 0; i < piece.len; i++) {
        char c = piece.at[i], before = i ? piece.at[i - 1] : c;
        digits += is_digit(c);
        turns += is_digit(c) != is_digit(before);
        humps += is_upper(c) && is_lower(before);
    }
    if (digits == piece.len)
        return digits <= 14;
    if (digits)
        return turns <= 2 && piece.len <= 12 && humps <= 1;
    return piece.len <= 32 && humps * 3 <= piece.len;
}

bool redact_is_random(struct str run)
{
    bool seen[256] = { false }, random = false;
    size_t distinct = 0, start = 0;
    for (size_t i = 0; i <= run.len; i++) {
        if (i < run.len && !seen[(unsigned char)run.at[i]]) {
            seen[(unsigned char)run.at[i]] = true;
            distinct++;
        }
        if (i < run.len && is_alnum(run.at[i]))
            continue;
        random = random || (i > start && !is_word((struct str){ run.at + start, i - start }));
        start = i + 1;
    }
    return random && distinct >= DISTINCT_MIN;
}

bool redact_is_placeholder(struct str value)
{
    static const char *const openings[] = { "<", "{", "%(", "%s", "*", "...", "your",
                                            "xxx", "\xe2\x80\xa6", "${", "$(", "#{", "insert",
                                            "example", "changeme", "placeholder" };
    static const char *const words[] = { "password", "passwd", "passphrase", "pass", "pwd",
                                         "secret", "token", "tokens", "key", "apikey", "api_key",
                                         "none", "null", "true", "false", "undefined", "string",
                                         "str", "bytes", "auth", "authentication", "credentials",
                                         "required", "optional", "user", "username" };
    if (memmem(value.at, value.len, "[redacted:", 10))
        return true;
    for (size_t i = 0; i < array_len(openings); i++)
        if (begins(value, openings[i]))
            return true;
    for (size_t i = 0; i < array_len(words); i++)
        if (value.len == strlen(words[i]) && begins(value, words[i]))
            return true;
    /* "$TOKEN" */
    bool is_variable = value.len > 1 && value.at[0] == '$';
    for (size_t i = 1; is_variable && i < value.len; i++)
        is_variable = is_upper(value.at[i]) || value.at[i] == '_' ||
                      (i > 1 && is_digit(value.at[i]));
    return is_variable;
}

struct traits {
    size_t letters, digits, marks, spaces, uppers;
};

static struct traits traits_of(struct str value)
{
    struct traits out = { 0 };
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        out.letters += is_lower(c) || is_upper(c);
        out.uppers += is_upper(c);
        out.digits += is_digit(c);
        out.spaces += c == ' ' || c == '\t' || c == '\n' || c == '\r';
        out.marks += !is_alnum(c) && c > ' ' && !strchr("_-./:,", c);
    }
    return out;
}

/* People choose passwords: a word with a digit or a mark will do, where it is clear that it is a
 * value and not a name in code. "$2b$..." is a hash. */
static bool is_password(struct str value, const struct traits *traits, bool bare)
{
    if (value.len < 6 || !traits->letters || traits->spaces || begins(value, "$2") ||
        begins(value, "$argon") || begins(value, "$6$") || memmem(value.at, value.len, "://", 3))
        return false;
    return bare ? redact_is_random(value) && traits->digits : traits->digits || traits->marks;
}

static bool is_secret(enum name_class class, struct str value, const struct traits *traits)
{
    size_t least = class == NAME_KEY ? 20 : 10;
    return value.len >= least && traits->letters && !traits->spaces &&
           (traits->digits || (traits->uppers && traits->uppers < traits->letters)) &&
           !memmem(value.at, value.len, "://", 3) && redact_is_random(value);
}

bool redact_value(enum name_class class, struct str value, bool bare)
{
    struct traits traits = traits_of(value);
    if (class == NAME_PLAIN || redact_is_placeholder(value))
        return false;
    if (class == NAME_AUTHORIZATION) {
        struct span part = redact_credential(value);
        return part.from < part.until;
    }
    return class == NAME_PASSWORD ? is_password(value, &traits, bare)
                                  : is_secret(class, value, &traits);
}

/* Schemes whose credential is one word, and those where it is the rest of the line. */
static const struct {
    const char *name;
    bool whole;
} schemes[] = {
    { "bearer", false }, { "basic", false },     { "token", false },  { "apikey", false },
    { "api-key", false }, { "negotiate", false }, { "ntlm", false },   { "bot", false },
    { "key", false },    { "splunk", false },    { "digest", true },  { "aws4-hmac-sha256", true },
    { "hawk", true },    { "oauth", true },      { "sso-key", false }, { "sharedkey", false },
};

struct span redact_credential(struct str value)
{
    struct span none = { 0, 0, NULL };
    size_t word = 0, from, until;
    while (word < value.len && value.at[word] != ' ' && value.at[word] != '\t')
        word++;
    for (from = word; from < value.len && (value.at[from] == ' ' || value.at[from] == '\t');)
        from++;
    for (until = from; until < value.len && value.at[until] != ' ' && value.at[until] != '\t';)
        until++;
    while (until > from && until == value.len && strchr(",;)}]>", value.at[until - 1]))
        until--;
    struct str first = { value.at, word }, second = { value.at + from, until - from };
    for (size_t i = 0; i < array_len(schemes) && second.len; i++) {
        if (!begins(first, schemes[i].name) || first.len != strlen(schemes[i].name))
            continue;
        if (redact_is_placeholder(second) || second.len < 4)
            return none;
        if (schemes[i].whole)
            return memchr(second.at, '=', value.len - from)
                       ? (struct span){ from, value.len, "authorization" }
                       : none;
        struct str after = str_trim((struct str){ value.at + until, value.len - until });
        return after.len == 0 || redact_is_random(second)
                   ? (struct span){ from, until, "authorization" }
                   : none;
    }
    if (redact_is_placeholder(first))
        return none;
    if (first.len >= (second.len ? 20 : 10) && redact_is_random(first))
        return (struct span){ 0, word, "authorization" };
    if (second.len >= 10 && !redact_is_placeholder(second) && redact_is_random(second))
        return (struct span){ from, memchr(second.at, ',', second.len) ? value.len : until,
                              "authorization" };
    return none;
}
