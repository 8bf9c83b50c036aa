"""OpenAI's errors, keys and model list: the same on both of its wires."""
from models.server import FakeModel, Rejected

#          name: status, type, code, message
ERRORS = {
    "rate": (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests"),
    "slow_down": (429, "requests", "slow_down", "Please slow down"),
    "quota": (429, "insufficient_quota", "credit_balance_exhausted",
              "You exceeded your current quota, please check your plan and billing details."),
    "server": (500, "server_error", None, "The server had an error while processing your request."),
    "overloaded": (503, "server_error", "server_is_overloaded", "The engine is currently overloaded"),
    "permission": (403, "invalid_request_error", "unsupported_country_region_territory", "Not supported here"),
    "context": (400, "invalid_request_error", "context_length_exceeded",
                "This model's maximum context length is 200000 tokens. However, your messages resulted in 210000."),
    "request": (400, "invalid_request_error", "invalid_value", "something is not as it should be"),
    "policy": (400, "invalid_request_error", "content_policy_violation", "Rejected by our safety system"),
}
# Of the same meaning, in the words of servers that people run themselves.
LOCAL_ERRORS = {
    "context_llamacpp": (400, {"error": {"code": 400, "message": "the request exceeds the available context size",
                                         "type": "exceed_context_size_error", "n_prompt_tokens": 9000,
                                         "n_ctx": 4096}}),
    "context_vllm": (400, {"object": "error", "type": "BadRequestError", "code": 400, "param": None,
                           "message": "This model's maximum context length is 4096 tokens. However, you requested "
                                      "9000 tokens."}),
    "loading": (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
    "flat": (400, {"error": "model is required"}),
}


class OpenAI(FakeModel):
    MODELS = ("gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna", "gpt-4.1", "gpt-5.2", "o4-mini")

    def headers(self):
        return {"x-request-id": self.name("req_"), "openai-version": "2020-10-01", "openai-processing-ms": "12",
                "x-ratelimit-limit-requests": "5000", "x-ratelimit-remaining-requests": "4999",
                "x-ratelimit-reset-requests": "12ms"}

    def check_key(self, seen):
        """A key of None is a server at home, which asks for none."""
        if self.key is None:
            return
        sent = seen.headers.get("authorization", "")
        if not sent:
            raise Rejected(401, "You didn't provide an API key.", code=None)
        if sent != f"Bearer {self.key}":
            raise Rejected(401, f"Incorrect API key provided: {sent[7:11]}****.", code="invalid_api_key")

    def check_model(self, request):
        if not isinstance(request.get("model"), str):
            raise Rejected(400, "you must provide a model parameter")
        if request["model"] not in self.known_models:
            raise Rejected(404, f"The model `{request['model']}` does not exist or you do not have access to it.",
                           code="model_not_found")

    def reasons(self, request):
        """Models that think refuse parameters of those that do not."""
        return not request["model"].startswith("gpt-4") and self.key is not None

    def rejection(self, no):
        return {"error": {"message": no.message, "type": "invalid_request_error", "param": no.param,
                          "code": no.code}}

    def error(self, name):
        if name in LOCAL_ERRORS:
            return LOCAL_ERRORS[name]
        status, kind, code, message = ERRORS[name]
        return status, {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def model_list(self):
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 1760000000, "owned_by": "system"}
                                           for name in sorted(self.known_models)]}
