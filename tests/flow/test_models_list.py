"""`cupel models`: what is configured, what is reachable, what it costs, and whose key is where."""
import json

import pytest

from models.asking import SETUPS, environment, fake_of

KEY = "sk-ant-a-key-of-this-test-0123456789"


def listed(cupel, args=(), env=None):
    done = cupel.run(["models", "--json", *args], env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return {row["model"]: row for row in json.loads(done.stdout)["models"]}, done


def chosen(rows):
    return [name for name, row in rows.items() if row["chosen"]]


def test_without_any_key_the_known_ones_are_listed_and_none_is_chosen(cupel):
    rows, done = listed(cupel)
    assert rows and all(row["known"] for row in rows.values()) and not chosen(rows)
    assert {"model", "wire", "base_url", "key", "reachable", "detail", "input_usd_per_mtok", "output_usd_per_mtok",
            "chosen", "known"} <= set(next(iter(rows.values())))
    assert all(row["reachable"] is None for row in rows.values())


def test_a_key_chooses(cupel):
    rows, done = listed(cupel, env={"ANTHROPIC_API_KEY": KEY})
    (name,) = chosen(rows)
    assert name.startswith("anthropic/") and rows[name]["key"] == "environment" and KEY not in done.stdout


def test_a_name_chooses_over_keys(cupel):
    env = {"ANTHROPIC_API_KEY": KEY, "CUPEL_MODEL": "openai/gpt-6-luna", "OPENAI_API_KEY": KEY}
    assert chosen(listed(cupel, env=env)[0]) == ["openai/gpt-6-luna"]


def test_prices_are_known_or_null_and_never_zero(cupel):
    rows, _ = listed(cupel, env={"CUPEL_MODEL": "anthropic/claude-of-tomorrow", "ANTHROPIC_API_KEY": KEY})
    assert rows["anthropic/claude-of-tomorrow"]["input_usd_per_mtok"] is None
    known = [row for row in rows.values() if row["input_usd_per_mtok"] is not None]
    assert known and all(row["input_usd_per_mtok"] > 0 and row["output_usd_per_mtok"] > 0 for row in known)


@pytest.mark.parametrize("setup", SETUPS)
def test_a_server_is_asked_whether_it_is_there(cupel, setup):
    name = SETUPS[setup][1]
    with fake_of(setup) as fake:
        env = {**environment(setup, fake), "CUPEL_MODEL": name}
        rows, done = listed(cupel, ["--probe"], env)
        assert rows[name]["reachable"] is True, rows[name]
        assert fake.seen and not fake.completions  # being there costs nothing
        assert fake.key is None or fake.key not in done.stdout + done.stderr
        fake.key = "another"
        assert listed(cupel, ["--probe"], env)[0][name]["reachable"] is not True or setup == "home"
    row = listed(cupel, ["--probe"], env)[0][name]
    assert row["reachable"] is False and row["detail"], row


def test_the_table_is_for_people(cupel):
    done = cupel.run(["models"], env={"ANTHROPIC_API_KEY": KEY})
    assert done.returncode == 0 and KEY not in done.stdout + done.stderr
    stars = [line for line in done.stdout.splitlines() if line.startswith("*")]
    assert len(stars) == 1 and "anthropic/" in stars[0]


def config(folder, name, value, mode=0o600):
    path = folder / "cupel" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    path.chmod(mode)
    return {"XDG_CONFIG_HOME": str(folder)}


def test_a_key_in_a_file_is_said_to_be_there(cupel, folder):
    env = config(folder, "keys.json", {"anthropic": KEY})
    rows, done = listed(cupel, env=env)
    (name,) = chosen(rows)
    assert rows[name]["key"] == "file" and KEY not in done.stdout + done.stderr


def test_keys_that_others_can_read_are_refused(cupel, folder):
    env = config(folder, "keys.json", {"anthropic": KEY}, 0o644)
    done = cupel.run(["models", "--json"], env=env)
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 2 and "keys.json" in error["message"] and "chmod 600" in error["hint"], error
    assert KEY not in done.stdout + done.stderr


def test_prices_are_the_users_to_change(cupel, folder):
    env = {**config(folder, "prices.json", {"anthropic/claude-opus-5": {"input": 7, "output": 70}}, 0o644),
           "ANTHROPIC_API_KEY": KEY}
    row = listed(cupel, env=env)[0]["anthropic/claude-opus-5"]
    assert (row["input_usd_per_mtok"], row["output_usd_per_mtok"]) == (7, 70)


@pytest.mark.parametrize("table", ["{", "[]", {"x/y": 3}, {"x/y": {"input": -1, "output": 1}},
                                   {"x/y": {"input": 1}}, {"x/y": {"input": 1, "output": 1, "inptu": 1}}])
def test_a_price_list_that_is_none_is_refused(cupel, folder, table):
    done = cupel.run(["models", "--json"], env=config(folder, "prices.json", table))
    assert done.returncode == 2 and "prices.json" in json.loads(done.stdout)["error"]["message"], done.stdout
