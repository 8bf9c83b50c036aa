"""Images as a person names them: `--image` at every command that runs code, and a default one in the configuration."""
import json

import pytest

from engine import Engine, Started, socket_path
from made_images import open_shop, package

CODE = "import tiny\nprint(tiny.version)"


@pytest.fixture(scope="module")
def shops(cold_cupels, place):
    def stocked(who):
        return open_shop(cold_cupels[who], place)
    with Started(list(cold_cupels), stocked) as made:
        yield made


@pytest.fixture
def shop(shops, who):
    if "data" not in shops[who].names:
        shops[who].make("data", package("tiny", "1.5"))
        shops[who].make("other", package("rare", "2"))
    return shops[who]


def ok(done):
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


COMMANDS = {
    "run": ["run", "--image", "data", CODE],
    "run --cold": ["run", "--cold", "--image", "data", CODE],
    "exec": ["exec", "--image", "data", "python3", "-c", CODE],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_runs_in_the_image_that_it_names(cupel_as, shop, engine, name):
    assert ok(cupel_as.run(COMMANDS[name], env=engine.use())) == "1.5\n"
    others = [word.replace("data", "nix") if word == "data" else word for word in COMMANDS[name]]
    done = cupel_as.run(others, env=engine.use())
    assert done.returncode == 2 and "unknown image 'nix'" in done.stderr


def test_a_prompt_and_a_session_are_of_their_image(cupel_as, shop, engine):
    assert "1.5" in ok(cupel_as.run(["repl", "--image", "data"], input=CODE + "\n", env=engine.use()))
    session = ok(cupel_as.run(["session", "new", "--image", "data"], env=engine.use())).strip()
    assert ok(cupel_as.run(["session", "run", session, CODE], env=engine.use())) == "1.5\n"
    ok(cupel_as.run(["session", "rm", session], env=engine.use()))


def test_a_question_is_answered_in_the_image_that_it_names(cupel_as, shop, engine, folder):
    reply = {"text": f"```python\n{CODE}\nanswer('version {{v}}', v=tiny.version)\n```"}
    replies = folder / "replies.jsonl"
    replies.write_text("".join(json.dumps(reply) + "\n" for _ in range(3)))
    replies.chmod(0o644)
    words = ["ask", "--model", f"replay:{replies}", "--judge", "off", "--json", "which version?"]
    report = json.loads(cupel_as.run([*words[:-1], "--image", "data", words[-1]], env=engine.use()).stdout)
    assert report["values"] == {"v": "1.5"}, report
    report = json.loads(cupel_as.run(words, env=engine.use()).stdout)
    assert "'tiny' is not in image host" in json.dumps(report) and "image data has" in json.dumps(report)


def test_the_configuration_and_the_environment_name_the_default_image(cupel_as, shop, place):
    settings = place.fresh("settings", 0o755)
    (settings / "cupel").mkdir()
    (settings / "cupel/config.json").write_text(json.dumps({"image": "data"}))
    env = {"XDG_CONFIG_HOME": str(settings)}
    assert ok(cupel_as.run(["run", "--cold", CODE], env=env)) == "1.5\n"
    assert ok(cupel_as.run(["exec", "python3", "-c", CODE], env=env)) == "1.5\n"
    for request, image in (({"code": CODE}, "data"), ({"code": "1", "image": "host"}, "host"),
                           ({"code": "import rare", "packages": ["rare"]}, "other")):
        result = cupel_as.request(request, ["--cold"], env=env)
        assert (result["status"], result["isolation"]["image"]) == ("ok", image)
    assert ok(cupel_as.run(["run", "--cold", "--image", "other", "import rare"], env=env)) == ""
    done = cupel_as.run(["run", "--cold", CODE], env={**env, "CUPEL_IMAGE": "other"})
    assert done.returncode == 1 and "is not in image other" in done.stderr
    assert ok(cupel_as.run(["run", "--cold", CODE], env={"CUPEL_IMAGE": "data"})) == "1.5\n"
    for wrong in ("Data", "data@sha256:1", 5, ""):
        (settings / "cupel/config.json").write_text(json.dumps({"image": wrong}))
        done = cupel_as.run(["run", "--cold", CODE], env=env)
        assert done.returncode == 2 and "key 'image'" in done.stderr


def test_an_engine_has_the_default_image_for_requests_sessions_and_cells(cupel_as, shop, place):
    settings = place.fresh("settings", 0o755)
    (settings / "cupel").mkdir()
    (settings / "cupel/config.json").write_text(json.dumps({"image": "data"}))
    with Engine(cupel_as, socket_path(place, cupel_as), env={"XDG_CONFIG_HOME": str(settings)}) as engine, \
            engine.client() as client:
        assert client.run(CODE)[1]["result"]["stdout"] == "1.5\n"
        assert client.run({"code": "1", "image": "host"})[1]["result"]["isolation"]["image"] == "host"
        new = client.ask({"op": "session", "do": "new", "id": "s", "request": {"image": "other"}})
        session = new["session"]["session"]
        cell = client.run({"code": "import rare\nprint(rare.version)", "session": session})[1]["result"]
        assert (cell["stdout"], cell["isolation"]["image"]) == ("2\n", "other")
        new = client.ask({"op": "session", "do": "new", "id": "t", "request": {}})
        cell = client.run({"code": CODE, "session": new["session"]["session"]})[1]["result"]
        assert cell["stdout"] == "1.5\n"


HINTS = {
    "import of another image": ({"code": "import rare"}, "image other has rare 2: run with --image other"),
    "import in an image": ({"code": "import rare", "image": "data"}, "'rare' is not in image data; image other has"),
    "import of none": ({"code": "import nowhere", "image": "data"}, "'cupel images add NAME --pip nowhere'"),
    "pip in Python": ({"code": "import subprocess, sys\n"
                               "subprocess.check_call([sys.executable, '-m', 'pip', 'install', 'rare'])"},
                      "image other has it: run with --image other; 'cupel images add NAME --pip rare' makes"),
    "pip in Bash": ({"code": "pip install 'nowhere>=2' -q; exit 1", "language": "bash"},
                    "'cupel images add NAME --pip \"nowhere>=2\"' makes"),
    "npm": ({"code": "npm install zod; exit 1", "language": "bash"}, "'cupel images add NAME --npm zod' makes"),
    "apt": ({"code": "apt-get install -y ripgrep; exit 1", "language": "bash"}, "'cupel images add NAME --apt PACKAGE'"),
    "a file of names": ({"code": "pip install -r requirements.txt; exit 1", "language": "bash"}, "images add NAME --pip"),
    "hostile names": ({"code": "pip install '$(id)' '`x;y`'; exit 1", "language": "bash"},
                      "'cupel images add NAME --pip id' makes"),
}


@pytest.mark.parametrize("name", HINTS)
def test_what_is_missing_is_hinted_at_with_the_image_or_the_command(shop, client, name):
    request, words = HINTS[name]
    result = client.run(request)[1]["result"]
    assert words in result["error"]["hint"], result["error"]
    assert "$(" not in result["error"]["hint"] and "`" not in result["error"]["hint"]


def test_a_magic_that_installs_names_the_command(shop, client):
    result = client.run("!pip install nowhere")[1]["result"]
    assert "cupel images add NAME --pip nowhere" in result["stdout"] + result["stderr"]
