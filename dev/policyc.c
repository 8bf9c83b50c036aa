/* policyc POLICY_DIR OUT.h: compiles policy/NAME.policy to seccomp filters, as C data. It runs at
 * build time only; policy/README.md describes the language.
 *
 * libseccomp gives the names of the system calls but does not write the filters: in 2.5.4 a rule
 * for all other arguments silently removes the earlier rules of a call, so it cannot express "allow
 * these values, report all others". A filter checks the architecture (else kill), then finds the
 * number in a balanced tree of ranges, then for few calls their rules. A call without rules is
 * decided without loading an argument, so that the kernel's table of always-allowed calls (since
 * Linux 5.11) holds it.
 *
 * policyc refuses a policy unless an allow compares all 64 bits, a denial compares only bits below
 * 32, denials come before allows, and the last line of a call has no rule. */
#include "policyc.h"

#include <dirent.h>
#include <linux/filter.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    struct sock_filter at[BPF_MAXINSNS];
    size_t len;
};

/* Position of the reader, for messages. */
static const char *at_path = "policyc";
static int at_line;

static void fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, at_line ? "%s:%d: " : "%s: ", at_path, at_line);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- Reading ---- */
/* "allow" | "skip" | "kill" | "trace" | "quiet ERRNO" | "loud ERRNO"; gives the number of words
 * used. */
static size_t read_answer(char **words, size_t count, struct answer *out)
{
    for (size_t v = 0; count && v < array_len(verdicts); v++) {
        if (strcmp(words[0], verdicts[v].word) != 0)
            continue;
        *out = (struct answer){ (enum verdict)v, 0 };
        if (!verdicts[v].has_error)
            return 1;
        const struct named *error = count > 1 ? find(errors, array_len(errors), words[1]) : NULL;
        if (!error)
            fail("verdict '%s' needs one of EPERM, ENOSYS, EINVAL, EAFNOSUPPORT, EPROTONOSUPPORT",
                 words[0]);
        out->error = (int)error->value;
        return 2;
    }
    fail("unknown verdict '%s': use allow, quiet, skip, loud, trace, kill", count ? words[0] : "");
}

/* "aN == V" for an allow, "aN & MASK == V" for a denial, and a second one after "and". */
static void read_rule(char **words, size_t count, struct rule *out)
{
    const bool masked = out->answer.verdict != ALLOW;
    const size_t len = masked ? 5 : 3;
    for (size_t i = 0; i == 0 || i < count; i += len + 1) {
        if (count < i + len || count == i + len + 1 || (i && strcmp(words[i - 1], "and") != 0) ||
            strcmp(words[i + len - 2], "==") != 0 || (masked && strcmp(words[i + 1], "&") != 0))
            fail("rule of %s VALUE', or two of them with 'and'",
                 masked ? "a denial must be 'aN & MASK ==" : "an allow must be 'aN ==");
        if (out->count == TESTS_MAX)
            fail("rule has more than %d parts", TESTS_MAX);
        struct test test = { .arg = read_arg(words[i]), .masked = masked,
                             .mask = masked ? read_value(words[i + 2]) : UINT64_MAX,
                             .value = read_value(words[i + len - 1]) };
        if (masked && (!test.mask || test.mask > UINT32_MAX))
            fail("mask '%s' is not between 1 and 0xffffffff", words[i + 2]);
        if (test.value & ~test.mask)
            fail("value '%s' has bits outside of mask '%s'", words[i + 4], words[i + 2]);
        out->tests[out->count++] = test;
    }
}

static void add_rule(struct call *call, const struct rule *rule)
{
    for (size_t i = 0; i < call->count; i++) {
        if (same_tests(&call->rules[i], rule))
            fail("repeat a rule of the same call");
        if (call->rules[i].answer.verdict == ALLOW && rule->answer.verdict != ALLOW)
            fail("put denials before the allows of a call: this one may never be reached");
    }
    if (call->count == RULES_MAX)
        fail("call has more than %d rules", RULES_MAX);
    call->rules[call->count++] = *rule;
}

static void end_call(struct call *call, struct answer last)
{
    call->last = last;
    call->last_line = at_line;
    if (call->count && same_answer(call->rules[call->count - 1].answer, last))
        fail("drop the rule before this line: it gives the same verdict");
}

static void read_words(struct policy *policy, char **words, size_t count)
{
    if (count && !strcmp(words[0], "default")) {
        if (policy->fallback_line)
            fail("repeat 'default', given in line %d", policy->fallback_line);
        if (read_answer(words + 1, count - 1, &policy->fallback) != count - 1)
            fail("default takes a verdict and nothing else");
        if (policy->fallback.verdict == LOUD)
            fail("default must be quiet, kill or allow: a future call is no news");
        policy->fallback_line = at_line;
        return;
    }
    if (count && !strcmp(words[0], "include")) {
        if (count != 2 || policy->beneath_line)
            fail("include takes one name, once a file");
        snprintf(policy->beneath, sizeof policy->beneath, "%s", words[1]);
        policy->beneath_line = at_line;
        return;
    }
    struct rule rule = { .count = 0 };
    size_t used = read_answer(words, count, &rule.answer);
    if (used == count)
        fail("name a system call");
    static struct call absent; /* takes the lines of a call that this architecture lacks */
    int nr = read_call(words[used]);
    struct call *call = nr < 0 ? &absent : &policy->calls[nr];
    if (nr < 0)
        absent = (struct call){ 0 };
    if (call->last_line)
        fail("repeat call '%s', decided in line %d", words[used], call->last_line);
    if (!call->first_line)
        call->first_line = at_line;
    if (++used == count) {
        end_call(call, rule.answer);
        return;
    }
    if (strcmp(words[used], "if") != 0)
        fail("expect 'if' where '%s' stands", words[used]);
    read_rule(words + used + 1, count - used - 1, &rule);
    add_rule(call, &rule);
}

static void read_line(struct policy *policy, char *line)
{
    char *words[WORDS_MAX];
    size_t count = 0;
    char *reason = strchr(line, '#');
    bool has_reason = reason && reason[1 + strspn(reason + 1, " \t\n")];
    if (reason)
        *reason = 0;
    for (char *rest = line, *word; (word = strsep(&rest, " \t\n"));) {
        if (!*word)
            continue;
        if (count == WORDS_MAX)
            fail("line has more than %d words", WORDS_MAX);
        words[count++] = word;
    }
    if (!count)
        return;
    if (!has_reason)
        fail("give the reason of this line, after a '#'");
    read_words(policy, words, count);
}

/* The supervisor's errno for this call; 0 if none of its lines is loud. */
static int loud_error(const struct call *call)
{
    int error = call->last.verdict == LOUD ? call->last.error : 0;
    for (size_t i = 0; i < call->count; i++) {
        const struct answer *answer = &call->rules[i].answer;
        if (answer->verdict == LOUD && error && error != answer->error)
            fail("give this call one loud errno: the supervisor sees only its number");
        error = answer->verdict == LOUD ? answer->error : error;
    }
    return error;
}

static void check_policy(const struct policy *policy)
{
    at_path = policy->path;
    at_line = 0;
    if (!policy->fallback_line)
        fail("lack the line 'default VERDICT'");
    for (size_t nr = 0; nr < CALLS_MAX; nr++) {
        at_line = policy->calls[nr].first_line;
        if (at_line && !policy->calls[nr].last_line)
            fail("end the rules of this call by a line without 'if'");
        loud_error(&policy->calls[nr]);
    }
    at_line = 0;
}

static void read_policy(struct policy *policy)
{
    char line[256];
    FILE *file = fopen(policy->path, "re");
    at_path = policy->path;
    at_line = 0;
    if (!file)
        fail("cannot open: %s", strerror(errno));
    while (fgets(line, sizeof line, file)) {
        at_line++;
        if (!strchr(line, '\n'))
            fail("line is over %zu bytes or does not end", sizeof line - 2);
        read_line(policy, line);
    }
    fclose(file);
}

/* A call's own rules come before those of the included policy; a line without a rule replaces them
 * all. */
static void join_call(struct call *own, const struct call *base)
{
    if (own->last_line)
        return;
    if (!own->first_line) {
        *own = *base;
        return;
    }
    at_line = own->first_line;
    for (size_t i = 0; i < base->count; i++)
        add_rule(own, &base->rules[i]);
    own->last = base->last;
    own->last_line = base->last_line;
}

static void join(struct policy *policy, struct policy *policies, size_t count)
{
    struct policy *base = NULL;
    policy->joined = true; /* before the others: a circle of includes then never completes */
    for (size_t i = 0; i < count; i++)
        if (!strcmp(policies[i].name, policy->beneath))
            base = &policies[i];
    if (base && base->beneath_line && !base->joined)
        join(base, policies, count);
    at_path = policy->path;
    at_line = policy->beneath_line;
    if (!base || !base->fallback_line || policy->fallback_line)
        fail("include a policy that is there, and has the default for both");
    policy->fallback = base->fallback;
    policy->fallback_line = base->fallback_line;
    for (size_t nr = 0; nr < CALLS_MAX; nr++) {
        join_call(&policy->calls[nr], &base->calls[nr]);
        at_line = policy->calls[nr].first_line;
        int loud = loud_error(&policy->calls[nr]);
        if (loud && loud != loud_error(&base->calls[nr]))
            fail("give this call the loud errno that it has in '%s'", base->name);
    }
}

/* ---- Writing BPF ---- */
static uint32_t action_of(struct answer answer)
{
    uint32_t data = answer.verdict == QUIET ? (uint32_t)answer.error : 0;
    return verdicts[answer.verdict].action | data;
}

static void emit(struct program *out, unsigned code, unsigned yes, unsigned no, uint32_t k)
{
    if (out->len == BPF_MAXINSNS)
        fail("filter has over %d instructions", BPF_MAXINSNS);
    out->at[out->len++] = (struct sock_filter){ (uint16_t)code, (uint8_t)yes, (uint8_t)no, k };
}

static void emit_load(struct program *out, uint32_t offset)
{
    emit(out, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

/* A test that holds falls through; one that fails skips the rest of its rule. */
static void emit_rule(struct program *out, const struct rule *rule)
{
    size_t patch[2 * TESTS_MAX], patches = 0;
    for (size_t i = 0; i < rule->count; i++) {
        const struct test *test = &rule->tests[i];
        if (!test->masked) {
            emit_load(out, ARG_HIGH(test->arg));
            patch[patches++] = out->len;
            emit(out, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (uint32_t)(test->value >> 32));
        }
        emit_load(out, ARG_LOW(test->arg));
        if (test->masked && test->mask != UINT32_MAX)
            emit(out, BPF_ALU | BPF_AND | BPF_K, 0, 0, (uint32_t)test->mask);
        patch[patches++] = out->len;
        emit(out, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (uint32_t)test->value);
    }
    emit(out, BPF_RET | BPF_K, 0, 0, action_of(rule->answer));
    for (size_t i = 0; i < patches; i++)
        out->at[patch[i]].jf = (uint8_t)(out->len - patch[i] - 1);
}

/* Numbers from `first` on, up to the next range, share a verdict, or are one call with rules. */
struct range {
    uint32_t first;
    struct answer answer;
    const struct call *call;
};

/* Code is relative, so a node is its test, the lower half and the upper half in a row. */
static void emit_tree(struct program *out, const struct range *ranges, size_t count)
{
    if (count == 1) {
        for (size_t i = 0; ranges->call && i < ranges->call->count; i++)
            emit_rule(out, &ranges->call->rules[i]);
        emit(out, BPF_RET | BPF_K, 0, 0, action_of(ranges->answer));
        return;
    }
    size_t half = count / 2, test = out->len;
    emit(out, BPF_JMP | BPF_JGE | BPF_K, 0, 0, ranges[half].first);
    emit_tree(out, ranges, half);
    size_t lower = out->len - test - 1;
    if (lower <= UINT8_MAX) {
        out->at[test].jt = (uint8_t)lower;
    } else { /* too far for a conditional jump */
        emit(out, 0, 0, 0, 0);
        memmove(&out->at[test + 2], &out->at[test + 1], lower * sizeof out->at[0]);
        out->at[test].jf = 1;
        out->at[test + 1] = (struct sock_filter){ BPF_JMP | BPF_JA, 0, 0, (uint32_t)lower };
    }
    emit_tree(out, ranges + half, count - half);
}

static void compile(const struct policy *policy, struct program *out)
{
    static struct range ranges[CALLS_MAX + 3];
    const struct answer foreign = { KILL, 0 };
    size_t count = 0;
    for (uint32_t nr = 0; nr <= CALLS_MAX; nr++) {
        const struct call *call = nr < CALLS_MAX ? &policy->calls[nr] : NULL;
        bool named = call && call->last_line;
        struct range range = { nr, named ? call->last : policy->fallback,
                               named && call->count ? call : NULL };
        const struct range *before = count ? &ranges[count - 1] : NULL;
        if (!before || before->call || range.call || !same_answer(before->answer, range.answer))
            ranges[count++] = range;
    }
    if (arch->foreign_last) {
        ranges[count++] = (struct range){ arch->foreign_first, foreign, NULL };
        ranges[count++] = (struct range){ arch->foreign_last + 1, policy->fallback, NULL };
    }
    out->len = 0;
    emit_load(out, offsetof(struct seccomp_data, arch));
    emit(out, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, arch->audit);
    emit(out, BPF_RET | BPF_K, 0, 0, action_of(foreign));
    emit_load(out, offsetof(struct seccomp_data, nr));
    emit_tree(out, ranges, count);
}

/* ---- Writing C ---- */
static const char *name_of(int nr, char *room, size_t size)
{
    char *known = seccomp_syscall_resolve_num_arch(arch->scmp, nr);
    const char *name = known;
    for (size_t i = 0; !known && i < array_len(new_calls); i++)
        if (new_calls[i].value == (uint64_t)nr)
            name = new_calls[i].name;
    snprintf(room, size, "%s", name ? name : "");
    free(known);
    return name ? room : NULL;
}

static void write_filter(FILE *out, const struct policy *policy)
{
    static struct program program;
    char upper[sizeof policy->name] = "";
    for (size_t i = 0; policy->name[i]; i++)
        upper[i] = (char)(policy->name[i] & ~0x20);
    compile(policy, &program);
    fprintf(out, "\n#define BOX_FILTER_%s_LEN %zu\n", upper, program.len);
    fprintf(out, "UNUSED static const struct sock_filter box_filter_%s[] = {\n", policy->name);
    for (size_t i = 0; i < program.len; i++)
        fprintf(out, "    { 0x%02x, %u, %u, 0x%08x },\n", program.at[i].code, program.at[i].jt,
                program.at[i].jf, program.at[i].k);
    fputs("};\n", out);
}

static void write_names(FILE *out)
{
    char name[64];
    fputs("\n/* Names, by number. */\n"
          "struct box_filter_name {\n    int nr;\n    const char *name;\n};\n"
          "UNUSED static const struct box_filter_name box_filter_names[] = {\n",
          out);
    for (int nr = 0; nr < CALLS_MAX; nr++)
        if (name_of(nr, name, sizeof name))
            fprintf(out, "    { %d, \"%s\" },\n", nr, name);
    fputs("};\n", out);
}

static void write_loud(FILE *out, const struct policy *policies, size_t count)
{
    const struct policy *first = NULL;
    fputs("\n/* What the supervisor answers, by number. */\n"
          "struct box_filter_loud {\n    int nr;\n    int error;\n};\n"
          "UNUSED static const struct box_filter_loud box_filter_loud[] = {\n",
          out);
    for (size_t p = 0; p < count; p++)
        for (int nr = 0; !policies[p].beneath_line && nr < CALLS_MAX; nr++) {
            int error = loud_error(&policies[p].calls[nr]);
            if (!error)
                continue;
            at_path = policies[p].path;
            if (first && first != &policies[p])
                fail("drop the loud lines: '%s' has some, and one supervisor listens", first->name);
            first = &policies[p];
            fprintf(out, "    { %d, %d },\n", nr, error);
        }
    fputs("};\n", out);
}

/* The rules as data: the unit test tries each of them with every upper bit. */
static void write_rules(FILE *out, const struct policy *policies, size_t count)
{
    fputs("\n/* Every rule, as written; for the tests. */\n"
          "struct box_filter_rule {\n    const char *policy;\n    int nr;\n    uint32_t action;\n"
          "    int tests;\n    struct {\n        int arg;\n        uint64_t mask, value;\n"
          "    } test[2];\n};\n"
          "UNUSED static const struct box_filter_rule box_filter_rules[] = {\n",
          out);
    for (size_t p = 0; p < count; p++)
        for (int nr = 0; nr < CALLS_MAX; nr++)
            for (size_t i = 0; i < policies[p].calls[nr].count; i++) {
                const struct rule *rule = &policies[p].calls[nr].rules[i];
                fprintf(out, "    { \"%s\", %d, 0x%08xu, %zu, {", policies[p].name, nr,
                        action_of(rule->answer), rule->count);
                for (size_t t = 0; t < rule->count; t++)
                    fprintf(out, " { %u, 0x%llxu, 0x%llxu },", rule->tests[t].arg,
                            (unsigned long long)rule->tests[t].mask,
                            (unsigned long long)rule->tests[t].value);
                fputs(" } },\n", out);
            }
    fputs("};\n", out);
}

static void write_header(const char *path, const struct policy *policies, size_t count)
{
    FILE *out = fopen(path, "we");
    at_path = path;
    if (!out)
        fail("cannot open: %s", strerror(errno));
    fputs("/* Written by dev/policyc from policy/; not to be edited. */\n"
          "#ifndef BOX_FILTER_H\n#define BOX_FILTER_H\n\n"
          "#include <linux/filter.h>\n#include <stdint.h>\n\n"
          "#pragma push_macro(\"UNUSED\")\n#undef UNUSED\n"
          "#define UNUSED __attribute__((unused))\n",
          out);
    for (size_t p = 0; p < count; p++)
        write_filter(out, &policies[p]);
    write_names(out);
    write_loud(out, policies, count);
    write_rules(out, policies, count);
    fputs("\n#pragma pop_macro(\"UNUSED\")\n#endif\n", out);
    at_path = path;
    if (ferror(out) || fclose(out))
        fail("cannot write: %s", strerror(errno));
}

static int is_policy(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && !strcmp(dot, ".policy");
}

int main(int argc, char **argv)
{
    static struct policy policies[POLICIES_MAX];
    struct dirent **entries;
    for (size_t i = 0; argc == 4 && i < array_len(archs); i++)
        arch = strcmp(argv[3], archs[i].name) == 0 ? &archs[i] : arch;
    if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], arch->name) != 0))
        fail("usage: policyc POLICY_DIR OUT.h [x86_64|aarch64]");
    at_path = argv[1];
    int count = scandir(argv[1], &entries, is_policy, alphasort);
    if (count <= 0 || count > POLICIES_MAX)
        fail("find %d policies, not 1 to %d", count, POLICIES_MAX);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        size_t len = strcspn(name, ".");
        if (len == 0 || strspn(name, "abcdefghijklmnopqrstuvwxyz_") != len ||
            len >= sizeof policies[i].name)
            fail("name '%s' is not lower-case letters, '_' and '.policy'", name);
        snprintf(policies[i].name, sizeof policies[i].name, "%.*s", (int)len, name);
        snprintf(policies[i].path, sizeof policies[i].path, "%s/%s", argv[1], name);
        read_policy(&policies[i]);
    }
    for (int i = 0; i < count; i++) {
        if (policies[i].beneath_line && !policies[i].joined)
            join(&policies[i], policies, (size_t)count);
        check_policy(&policies[i]);
    }
    write_header(argv[2], policies, (size_t)count);
    return 0;
}
