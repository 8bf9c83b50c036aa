"""A folder of tool files, and `cupel tools` on it."""
import json
import os

SECRET = "s3cr3t-Zanzibar-" + "0123456789abcdef"
OPEN = {"type": "object"}


class Tools:
    """The files belong to the user that cupel runs as."""

    def __init__(self, cupel, place):
        self.cupel = cupel
        owner = cupel.uid if cupel.switch else None
        self.root = place.fresh("tools", 0o755, owner)
        self.secrets = self.root / "secrets.json"
        self.folder = self.root / "tools"
        self.folder.mkdir()
        self.own(self.folder, 0o755)

    def own(self, path, mode):
        path.chmod(mode)
        if self.cupel.switch:
            os.chown(path, self.cupel.uid, self.cupel.uid)

    def write(self, name, content, mode=0o644):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        self.own(path, mode)
        return path

    def tool(self, name, line=None, **more):
        """A tool that runs a line of sh, or the command that `more` has."""
        whole = {"name": name, "description": "A tool.", "input_schema": OPEN, "effect": "read",
                 "command": ["sh", "-c", line], **more}
        return self.write(f"{name}.json", {key: value for key, value in whole.items() if value is not None})

    def secret(self, mode=0o600, **secrets):
        self.secrets.write_text(json.dumps(secrets))
        self.own(self.secrets, mode)

    def options(self):
        return ["--tools-dir", self.folder, "--secrets", self.secrets]

    def run(self, verb, *args, **options):
        return self.cupel.run(["tools", verb, *self.options(), *args], **options)

    def call(self, name, arguments=None, *args, **options):
        """(exit code, outcome) of a call."""
        done = self.run("call", "--json", *args, name, json.dumps(arguments or {}), **options)
        return done.returncode, json.loads(done.stdout)

    def value(self, name, arguments=None, *args):
        code, outcome = self.call(name, arguments, *args)
        assert code == 0 and set(outcome) == {"value"}, outcome
        return outcome["value"]

    def error(self, name, arguments=None, *args):
        """The error of a tool that ran and failed."""
        code, outcome = self.call(name, arguments, *args)
        assert code == 1 and set(outcome) == {"error"}, outcome
        assert outcome["error"]["kind"] == "error"
        return outcome["error"]["message"]

    def refusal(self, name, arguments=None, *args):
        """The err of a call that was not made."""
        code, answer = self.call(name, arguments, *args)
        assert code in (2, 77) and set(answer) == {"error"}, answer
        return answer["error"]

    def faults(self):
        done = self.run("check", "--json")
        answer = json.loads(done.stdout)
        assert done.returncode == (1 if answer["faults"] else 0)
        return answer["faults"]

    def fault(self):
        """The only one, and no tool beside it."""
        [one] = self.faults()
        return one
