def _recorded_tools(sources):
    """The module `tools` of a recorded run: each call gets the outcome that the same call got then."""
    import base64, json, keyword, os, sys, tempfile, types

    class ToolError(Exception):
        def __init__(self, tool, reason):
            super().__init__(f"{tool}: {reason}")
            self.tool, self.reason = tool, reason

    class ToolDenied(ToolError):
        pass

    class ToolTimeout(ToolError, TimeoutError):
        pass

    kinds = {"denied": ToolDenied, "timeout": ToolTimeout}
    for one in (ToolError, ToolDenied, ToolTimeout):
        one.__module__ = "tools"

    def key_of(tool, arguments):
        return tool + " " + json.dumps(arguments, sort_keys=True, default=lambda value: value.item())

    def python_name(name):
        name = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name)
        return name + "_" if keyword.iskeyword(name) else "_" + name if not name or name[0].isdigit() else name

    class ToolLarge:
        def __init__(self, text):
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", delete=False) as file:
                file.write(text)
            self.path, self.size = file.name, os.path.getsize(file.name)

        def __fspath__(self):
            return self.path

        def open(self, mode="r"):
            return open(self.path, mode, encoding=None if "b" in mode else "utf-8")

        def read(self):
            with self.open() as file:
                return file.read()

        def json(self):
            return json.loads(self.read())

    def value_of(value):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        large = len(text.encode()) > 1 << 20
        return ToolLarge(value if isinstance(value, str) else text) if large else value

    past, tools = {}, {}
    for source in map(json.loads, sources):
        for call in sorted(source["calls"], key=lambda call: call["number"]):
            past.setdefault(key_of(call["tool"], call["arguments"]), []).append(call["outcome"])
        tools.update((tool["name"], tool) for tool in source["tools"])

    def outcome_of(tool, arguments, optional):
        given = {name: value for name, value in arguments.items()
                 if name not in optional or value != optional[name]}
        outcomes = past.get(key_of(tool, arguments)) or past.get(key_of(tool, given))
        if not outcomes:
            raise ToolError(tool, "the record has no such call")
        outcome = outcomes.pop(0)
        if "error" in outcome:
            raise kinds.get(outcome["error"]["kind"], ToolError)(tool, outcome["error"]["message"])
        if "files" in outcome:
            files = [types.SimpleNamespace(name=one["name"], mime=one["mime"], data=base64.b64decode(one["base64"]))
                     for one in outcome["files"]]
            return types.SimpleNamespace(value=value_of(outcome["value"]), files=files)
        return value_of(outcome["value"])

    def functions_of(tool):
        schema = tool["input_schema"]
        properties = schema.get("properties", {})
        required = [name for name in schema.get("required", ()) if name in properties]
        names = required + [name for name in properties if name not in required]
        back = {python_name(name): name for name in names}
        optional = {name: properties[name].get("default") if isinstance(properties[name], dict) else None
                    for name in names if name not in required}

        def call(*args, **named):
            one_dict = len(args) == 1 and not named and isinstance(args[0], dict)
            if one_dict and set(args[0]) <= set(properties or args[0]):
                return outcome_of(tool["name"], args[0], {})
            arguments = dict(zip(names, args))
            arguments.update((back.get(name, name), value) for name, value in named.items())
            return outcome_of(tool["name"], arguments, optional)

        async def later(*args, **named):
            return call(*args, **named)
        return call, later

    def put(base, parts, function):
        at = sys.modules[base]
        for part in parts[:-1]:
            base += "." + part
            if base not in sys.modules:
                sys.modules[base] = types.ModuleType(base)
            setattr(at, part, sys.modules[base])
            at = sys.modules[base]
        setattr(at, parts[-1], function)

    for base in ("tools", "tools.aio"):
        sys.modules[base] = types.ModuleType(base)
    module = sys.modules["tools"]
    module.aio, module.get = sys.modules["tools.aio"], lambda name: functions_of(tools[name])[0]
    module.ToolError, module.ToolDenied, module.ToolTimeout = ToolError, ToolDenied, ToolTimeout
    module.ToolLarge = ToolLarge
    module.list = lambda: list(tools)
    for name, tool in tools.items():
        parts = [python_name(part) for part in name.split(".")]
        call, later = functions_of(tool)
        put("tools", parts, call)
        put("tools.aio", parts, later)
