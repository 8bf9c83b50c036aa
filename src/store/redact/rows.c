/* The kinds of secrets that redaction knows: one row each. Pure data; any process.
 * Runs are possessive (`++`): what they took they never give back. */
#include "store/redact/redact_int.h"

/* A prefix that only keys have, then a run of at least that many. */
#define RUN(prefix, set, least) prefix "[" set "]{" #least ",}+"
#define ALNUM "A-Za-z0-9"
#define URL64 "A-Za-z0-9_-"

#define TOKEN(anchors, pattern) { "token", anchors, pattern, ROW_WORD | ROW_PART, NULL, false }
/* The prefix could also begin a name: the rest must look random. */
#define MAYBE(kind, anchors, pattern) \
    { kind, anchors, pattern, ROW_WORD | ROW_PART, redact_check_random, false }
/* Nothing else has this form and length: found within a word, too. */
#define ANYWHERE(kind, anchors, pattern) \
    { kind, anchors, pattern "(?![A-Za-z0-9])", 0, NULL, false }

/* After a name: a closing quote or bracket, a sign, and perhaps an opening quote. */
#define ESCAPED_QUOTE "\\\\{0,3}+[\"'`]"
#define GAP "[ \\t]{0,8}+"
#define BETWEEN                                                                    \
    "(?:" ESCAPED_QUOTE ")?+[\\])]?+(?:" GAP ":" GAP "[Ss]tr(?:ing)?+(?=" GAP "=))?+" \
    "(" GAP "(?:=>|:=|={1,3}+|:|,)" GAP "|[ \\t]{1,4}+(?=[^ \\t=:,]))"           \
    "(?:[bfru]{1,2}+(?=\\\\{0,3}+[\"'`]))?+(" ESCAPED_QUOTE "{1,3}+)?+"
/* Groups: 1 the sign, 2 the opening quote, 3 the value; its check says what is the secret. */
#define ASSIGNED(names)                                                          \
    names "s?+[_-]?+[0-9]{0,2}+" BETWEEN                                         \
          "((?(2)[^\\x00-\\x20\\x7f\"'`\\\\]{1,128}+"                           \
          "|[^\\x00-\\x20\\x7f\"'`<>(){}\\[\\],;|&\\\\]{1,128}+))"

const struct redact_row redact_rows[] = {
    /* A marker of ours: nothing in it is searched again. */
    { NULL, "[redacted:", "\\[redacted:[a-z-]{2,20}+:[0-9a-f]{8}\\]", 0, NULL, false },
    /* Clouds. */
    ANYWHERE("cloud-key", "AKIA|ASIA|ABIA|ACCA", "A[A-Z]{3}[A-Z2-7]{16}"),
    { "cloud-key", "AIza", RUN("AIza", URL64, 30), ROW_WORD | ROW_PART, NULL, false },
    { "cloud-key", "GOCSPX-", RUN("GOCSPX-", URL64, 20), ROW_WORD | ROW_PART, NULL, false },
    { "cloud-key", "ya29.", "ya29\\.[A-Za-z0-9_.-]{20,}+", ROW_WORD, NULL, false },
    { "cloud-key", "AccountKey=|SharedAccessKey=|SharedSecret=",
      "[A-Za-z]{10,15}=([A-Za-z0-9+/]{20,}+={0,2})", 0, NULL, false },
    { "cloud-key", "?sig=|&sig=|;sig=", "[?&;]sig=([A-Za-z0-9%+/]{30,}+={0,2})", 0, NULL, false },
    { "cloud-key", "X-Amz-Signature=|X-Amz-Security-Token=|X-Goog-Signature=",
      "X-[A-Za-z-]{12,20}+=([A-Za-z0-9%+/=_-]{16,}+)", ROW_FOLD, NULL, false },
    { "cloud-key", "dop_v1_|doo_v1_|dor_v1_", RUN("do[opr]_v1_", "a-f0-9", 32), ROW_WORD, NULL,
      false },
    { "cloud-key", "dapi", "dapi[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])", ROW_WORD, NULL, false },
    /* Models. */
    MAYBE("model-key", "sk-", RUN("sk-", URL64, 20)),
    MAYBE("model-key", "gsk_", RUN("gsk_", ALNUM, 30)),
    MAYBE("model-key", "hf_", RUN("hf_", ALNUM, 30)),
    MAYBE("model-key", "xai-", RUN("xai-", ALNUM, 40)),
    MAYBE("model-key", "r8_", RUN("r8_", ALNUM, 30)),
    MAYBE("model-key", "pplx-", RUN("pplx-", ALNUM, 32)),
    MAYBE("model-key", "nvapi-", RUN("nvapi-", URL64, 40)),
    /* Tokens of services. */
    TOKEN("cupel_", "cupel_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    TOKEN("ghp_|gho_|ghu_|ghs_|ghr_", RUN("gh[pousr]_", ALNUM, 30)),
    ANYWHERE("token", "ghp_|gho_|ghu_|ghs_|ghr_", "gh[pousr]_[A-Za-z0-9]{36}"),
    TOKEN("github_pat_", RUN("github_pat_", "A-Za-z0-9_", 30)),
    ANYWHERE("token", "github_pat_", "github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    MAYBE("token", "glpat-|gldt-|glrt-|glcbt-|glptt-|glft-|glsoat-|glagent-",
          RUN("gl[a-z]{2,5}-", "A-Za-z0-9_.-", 18)),
    MAYBE("token", "xoxb-|xoxp-|xoxa-|xoxs-|xoxr-|xoxo-|xoxe-|xoxe.|xapp-|xoxc-|xoxd-",
          RUN("x(?:ox[a-z]|app)[.-]", "A-Za-z0-9.%-", 20)),
    { "token", "hooks.slack.com/services/", "hooks\\.slack\\.com/services/([A-Za-z0-9/]{20,}+)", 0,
      NULL, false },
    { "token", "/api/webhooks/", "/api/webhooks/[0-9]{15,20}+/([A-Za-z0-9_-]{40,}+)", 0, NULL,
      false },
    MAYBE("token", "npm_", RUN("npm_", ALNUM, 30)),
    TOKEN("pypi-AgE", RUN("pypi-AgE", URL64, 40)),
    MAYBE("token", "sk_live_|rk_live_|sk_test_|rk_test_", RUN("[sr]k_(?:live|test)_", ALNUM, 16)),
    MAYBE("token", "whsec_", RUN("whsec_", "A-Za-z0-9+/=", 24)),
    { "token", "SG.", "SG\\.[A-Za-z0-9_-]{16,64}+\\.[A-Za-z0-9_-]{16,}+", ROW_WORD, NULL, false },
    { "token", "key-", "key-[0-9a-f]{32}(?![A-Za-z0-9])", ROW_WORD, NULL, false },
    { "token", ":AA", "(?<=[0-9]{8}):(AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])", 0, NULL, false },
    MAYBE("token", "shpat_|shpca_|shppa_|shpss_", RUN("shp[a-z]{2}_", "A-Fa-f0-9", 32)),
    MAYBE("token", "hvs.|hvb.|hvr.", RUN("hv[sbr]\\.", URL64, 24)),
    MAYBE("token", "dckr_pat_", RUN("dckr_pat_", URL64, 20)),
    MAYBE("token", "lin_api_|lin_oauth_", RUN("lin_[a-z]{3,5}_", ALNUM, 32)),
    MAYBE("token", "ntn_", RUN("ntn_", ALNUM, 40)),
    MAYBE("token", "glsa_|glc_", RUN("gl(?:sa|c)_", "A-Za-z0-9_+/=", 32)),
    MAYBE("token", "sntrys_|sntryu_", RUN("sntry[su]_", "A-Za-z0-9_+/=", 40)),
    MAYBE("token", "pscale_tkn_|pscale_pw_", RUN("pscale_(?:tkn|pw)_", "A-Za-z0-9_.-", 30)),
    MAYBE("token", "ATATT3", RUN("ATATT3", "A-Za-z0-9_=-", 40)),
    MAYBE("token", "PMAK-", RUN("PMAK-", "A-Za-z0-9-", 40)),
    MAYBE("token", "rubygems_", RUN("rubygems_", "a-f0-9", 40)),
    MAYBE("token", "sbp_", RUN("sbp_", "a-f0-9", 36)),
    { "token", "eyJ", "eyJ[A-Za-z0-9_-]{8,}+\\.[A-Za-z0-9_-]{8,}+(?:\\.[A-Za-z0-9_-]*+){0,3}+",
      ROW_WORD | ROW_DASH, NULL, false },
    /* Keys in blocks of lines. */
    { "private-key", "-----BEGIN",
      "-----BEGIN (?:[A-Z0-9]{1,12}+ ){0,4}?PRIVATE KEY(?: BLOCK)?-----",
      0, redact_check_pem, true },
    { "private-key", "-----END",
      "-----END (?:[A-Z0-9]{1,12}+ ){0,4}?PRIVATE KEY(?: BLOCK)?-----", 0, redact_check_pem_end,
      true },
    { "private-key", "AGE-SECRET-KEY-1", RUN("AGE-SECRET-KEY-1", "A-Z0-9", 40), ROW_WORD, NULL,
      false },
    /* Output too long for a result has a line in its middle (contract/result_stream.c), and that
     * line may have cut a secret in two: each half alone has no form. */
    { "cut", " bytes left out ...", " bytes left out \\.\\.\\.\\n", 0, redact_check_cut, true },
    { "cut", "left out ...", "left out \\.\\.\\.\\n([^\\x00-\\x20]{8,}+)", 0,
      redact_check_half, false },
    /* A place that says what stands there. */
    { "authorization", "authorization",
      "authorization(?:" ESCAPED_QUOTE ")?+\\]?+[ \\t]{0,8}+(?:=>|[:=,])[ \\t]{0,8}+"
      "(?:[bfru]{1,2}+(?=\\\\{0,3}+[\"'`]))?+(?:" ESCAPED_QUOTE ")?+"
      "([^\\x00-\\x08\\x0a-\\x1f\"'`\\\\]{4,512}+)",
      ROW_FOLD, redact_check_authorization, true },
    { "authorization", "bearer ", "bearer {1,4}+([A-Za-z0-9_.~+/=-]{16,}+)", ROW_FOLD | ROW_WORD,
      redact_check_random, false },
    { "url-password", "://",
      "://[^\\x00-\\x20/?#@:\"'`<>[\\\\]{0,128}+:"
      "([^\\x00-\\x20/?#@\"'`<>\\\\]{1,256}+)@", 0,
      redact_check_url, true },
    { "password", "password|passwd|passphrase|pwd|_pass|-pass|\"pass|'pass",
      ASSIGNED("(?:password|passwd|passphrase|pwd|[\"'_-]pass)"), ROW_FOLD, redact_check_assigned,
      true },
    { "secret", "secret|token|credential", ASSIGNED("(?:secret|token|credential)"), ROW_FOLD,
      redact_check_assigned, true },
    { "secret",
      "_key|-key|apikey|accesskey|secretkey|privatekey|authkey|signingkey|encryptionkey|accountkey",
      ASSIGNED("[_-]?(?:api|access|secret|private|auth|signing|encryption|account)?key"), ROW_FOLD,
      redact_check_assigned, true },
    /* A variable in an observation of the agent: "password (str of 6) 'abc123'"; and a list. */
    { "secret",
      "password|passwd|passphrase|pwd|pass (|pass = |secret|token|credential|_key|apikey|"
      "accesskey|secretkey|privatekey|authkey|signingkey|encryptionkey|accountkey|authorization (",
      "_?[a-z]{3,14}[_-]?[0-9]{0,2}"
      "(?: \\([A-Za-z_][A-Za-z0-9_.]{0,39}(?: of [0-9]{1,18}| [0-9x]{1,40})?\\) "
      "| = (?=[(\\[{]{1,3}[bru]?[\"']))"
      "([^\\r\\n]{1,128})",
      ROW_FOLD, redact_check_shown, true },
};

const size_t redact_row_count = sizeof redact_rows / sizeof redact_rows[0];

_Static_assert(sizeof redact_rows / sizeof redact_rows[0] <= REDACT_ROWS_MAX, "too many rows");
