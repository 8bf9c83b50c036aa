"""`cupel images pull` against a registry on loopback that does what registries do, and what hostile, broken
and slow ones do. The last tests ask Debian's docker-registry."""
import base64
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest

import host
from registry import (DOCKER_LIST, MACHINE, OCI, OCI_INDEX, Image, Registry, cut, digest, layer, once, reply,
                      trickle)

NOISE = random.Random(18).randbytes(300_000)  # gzip makes it no smaller


@pytest.fixture
def registry():
    with Registry() as made:
        yield made


class Puller:
    def __init__(self, cupel, folder):
        self.cupel, self.state = cupel, folder / "state"
        self.env = {"CUPEL_STATE": str(self.state)}

    def __call__(self, *args, code=0, env=None, plain=True, **options):
        done = self.cupel.run(["images", "pull", *(["--plain-http"] if plain else []), *args],
                              env={**self.env, **(env or {})}, **options)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *args, **options):
        return json.loads(self(*args, "--json", **options).stdout)

    def error(self, *args, code=2, **options):
        """The refusal; nothing of the pull stays."""
        error = self.json(*args, code=code, **options)["error"]
        self.holds_nothing()
        return error

    def kept(self, what):
        folder = self.state / "images" / what
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def holds_nothing(self):
        assert self.kept("names") == self.kept("trees") == self.kept("manifests") == self.kept("work") == []

    def tree(self, answer):
        return self.state / "images/trees" / answer["manifest"]["digest"].removeprefix("sha256:")


@pytest.fixture
def pull(cupel_as, folder):
    return Puller(cupel_as, folder)


SMALL = Image({"etc/first": b"1", "etc/second": b"2"}, {"etc/second": b"two", "etc/.wh.first": b""},
              env=["GREETING=hello"])


def test_the_layers_of_an_image_become_one_tree(pull, registry):
    ref = registry.push(SMALL)
    answer = pull.json(ref)
    manifest = answer["manifest"]
    assert answer["image"] == "tool" and answer["layers"] == 2 and not answer["was_there"]
    assert manifest["source"] == "docker://" + ref
    assert manifest["pulled"] == manifest["manifest"] == digest(SMALL.manifest)
    assert manifest["env"] == {"GREETING": "hello"}
    tree = pull.tree(answer)
    assert (tree / "etc/second").read_bytes() == b"two" and not (tree / "etc/first").exists()
    accepts = [headers["Accept"] for path, headers in registry.asked if "/manifests/" in path]
    assert all(kind in accepts[0] for kind in (OCI, OCI_INDEX, "manifest.v2+json", "manifest.list.v2+json"))


def test_a_pull_says_what_it_made(pull, registry):
    done = pull(registry.push(SMALL), "--name", "mine")
    assert done.stdout.startswith("mine sha256:") and "loaded" in done.stderr and "\x1b" not in done.stderr
    assert pull(registry.push(SMALL), "--name", "mine", "-q").stderr == ""


def test_an_image_that_was_pulled_before_is_not_loaded_again(pull, registry):
    ref = registry.push(SMALL)
    first = pull.json(ref)
    loads = len(registry.paths("/blobs/"))
    second = pull.json(ref, "--name", "again")
    assert second["was_there"] and second["loaded_bytes"] == 0
    assert second["manifest"]["digest"] == first["manifest"]["digest"]
    assert second["manifest"]["env"] == {"GREETING": "hello"}
    assert len(registry.paths("/blobs/")) == loads and pull.kept("names") == ["again", "tool"]


@pytest.mark.full
def test_a_layer_that_stands_twice_is_loaded_once(pull, registry):
    image = Image({"a": b"1"}, {"b": b"2"}, {"a": b"1"})
    answer = pull.json(registry.push(image))
    assert answer["layers"] == 3 and len(registry.paths("/blobs/")) == 3  # and the configuration
    assert (pull.tree(answer) / "a").read_bytes() == b"1"


@pytest.mark.parametrize("kind", [OCI_INDEX, pytest.param(DOCKER_LIST, marks=pytest.mark.full)])
def test_a_list_gives_this_machines_image(pull, registry, kind):
    image = Image({"which": b"mine"}, docker=kind == DOCKER_LIST)
    other = Image({"which": b"other"}, machine="s390x")
    ref = registry.push_list([(other, {"os": "linux", "architecture": "s390x"}),
                              (image, {"os": "linux", "architecture": MACHINE})], kind=kind)
    answer = pull.json(ref)
    assert (pull.tree(answer) / "which").read_bytes() == b"mine"
    assert answer["manifest"]["manifest"] == digest(image.manifest)
    assert answer["manifest"]["pulled"] == digest(registry.manifests["1"][0])


@pytest.mark.full
def test_a_list_without_this_machine_says_what_it_has(pull, registry):
    other = Image({"which": b"other"}, machine="s390x")
    error = pull.error(registry.push_list([(other, {"os": "linux", "architecture": "s390x"})]))
    assert f"linux/{MACHINE}" in error["message"] and "linux/s390x" in error["hint"]


# --- names ---

def test_a_name_without_a_registry_is_refused_unless_one_is_configured(pull, registry):
    error = pull.error("team/tool:1", plain=False)
    assert error["field"] == "ref" and "images.registry" in error["hint"]
    registry.push(SMALL)
    config = pull.cupel.home / ".config/cupel/config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    try:
        config.write_text(json.dumps({"images": {"registry": registry.address}}))
        assert pull.json("team/tool:1")["manifest"]["source"] == f"docker://{registry.address}/team/tool:1"
    finally:
        config.unlink()


def test_a_digest_is_insisted_on(pull, registry):
    ref = registry.push(SMALL)
    name = ref.rpartition(":")[0]
    assert pull.json(f"{name}@{digest(SMALL.manifest)}")["manifest"]["pulled"] == digest(SMALL.manifest)


def test_a_manifest_of_another_digest_is_refused(pull, registry):
    wanted = digest(b"something else")
    registry.push(SMALL)
    registry.manifests[wanted] = registry.manifests["1"]
    error = pull.error(f"{registry.address}/team/tool@{wanted}")
    assert error["field"] == "digest" and error["bound"] == wanted


@pytest.mark.parametrize("args, field", [(["Team/TOOL"], "ref"), (["localhost:1/x", "--name", "host"], "name"),
                                         (["localhost:1/x", "--name", "../x"], "name"),
                                         (["localhost:1/x", "--idle-timeout", "0"], "idle_timeout"),
                                         (["localhost:1/x", "--max-size", "0"], "max_size")])
def test_a_value_out_of_bounds_is_refused(pull, args, field):
    error = pull.error(*args)
    assert error["field"] == field and error["bound"]


def test_an_image_that_is_not_there_is_named(pull, registry):
    error = pull.error(f"{registry.address}/team/tool:9")
    assert error["kind"] == "absent" and "manifests/9" in error["message"] and "manifest unknown" in error["message"]


# --- lies ---

def test_a_blob_of_another_content_is_refused(pull, registry):
    ref = registry.push(SMALL)
    data = registry.blobs[SMALL.layers[1]]
    registry.blobs[SMALL.layers[1]] = data[:-1] + bytes([data[-1] ^ 1])
    assert pull.error(ref)["field"] == "digest"


def test_a_blob_that_is_longer_than_it_said_is_cut_off(pull, registry):
    ref = registry.push(SMALL)
    registry.blobs[SMALL.layers[0]] += b"x" * 50_000_000
    assert "more" in pull.error(ref)["message"]


@pytest.mark.full
def test_a_manifest_that_never_ends_is_cut_off(pull, registry):
    registry.push(SMALL)
    registry.manifests["1"] = (b" " * (5 << 20), OCI)
    assert "4194304" in pull.error(f"{registry.address}/team/tool:1")["message"]


@pytest.mark.full
def test_a_list_of_lists_is_refused(pull, registry):
    inner = json.dumps({"schemaVersion": 2, "manifests": []}).encode()
    registry.manifests[digest(inner)] = (inner, OCI_INDEX)
    outer = json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": OCI_INDEX, "digest": digest(inner), "size": len(inner),
         "platform": {"os": "linux", "architecture": MACHINE}}]}).encode()
    registry.manifests["1"] = (outer, OCI_INDEX)
    assert "another list" in pull.error(f"{registry.address}/team/tool:1")["message"]


@pytest.mark.full
def test_a_manifest_of_many_brackets_is_refused(pull, registry):
    registry.manifests["1"] = (b"[" * 4_000_000, OCI)
    assert "manifest" in pull.error(f"{registry.address}/team/tool:1")["message"]


@pytest.mark.full
def test_more_than_max_size_is_refused_before_it_is_loaded(pull, registry):
    ref = registry.push(SMALL)
    assert "--max-size" in pull.error(ref, "--max-size", "100")["hint"]
    assert not registry.paths("/blobs/")


# --- faults that pass ---

def test_a_broken_blob_continues_where_it_broke(pull, registry):
    image = Image({"noise": NOISE})
    ref = registry.push(image)
    name, data = image.layers[0], image.blobs[image.layers[0]]
    registry.faults.append(once(cut(name, 100_000, data), times=2))
    answer = pull.json(ref)
    assert (pull.tree(answer) / "noise").read_bytes() == NOISE
    ranges = [headers.get("Range") for path, headers in registry.asked if path.endswith(name)]
    assert ranges == [None, "bytes=100000-", "bytes=200000-"]


@pytest.mark.full
def test_a_registry_that_cannot_continue_sends_the_whole(pull, registry):
    image = Image({"noise": NOISE})
    ref = registry.push(image)
    name, data = image.layers[0], image.blobs[image.layers[0]]
    registry.faults.append(once(cut(name, 100_000, data)))
    registry.faults.append(reply(name, 200, data))
    assert (pull.tree(pull.json(ref)) / "noise").read_bytes() == NOISE


def test_a_busy_registry_is_asked_again_when_it_wishes(pull, registry):
    ref = registry.push(SMALL)
    registry.faults.append(once(reply("/manifests/", 429, Retry_After=1)))
    began = time.monotonic()
    done = pull(ref)
    assert time.monotonic() - began >= 1 and "429" in done.stderr and "again in 1." in done.stderr


@pytest.mark.full
def test_a_registry_that_wants_minutes_is_not_waited_for(pull, registry):
    ref = registry.push(SMALL)
    registry.faults.append(reply("/manifests/", 429, Retry_After=600))
    error = pull.error(ref, code=75)
    assert error["kind"] == "busy" and "600 s" in error["message"]


@pytest.mark.full
def test_a_registry_that_stays_broken_is_given_up(pull, registry):
    ref = registry.push(SMALL)
    registry.faults.append(reply("/manifests/", 503))
    error = pull.error(ref, code=75)
    assert "after 5 tries" in error["message"] and len(registry.paths("/manifests/")) == 5


@pytest.mark.full
def test_a_blob_that_trickles_is_given_up(pull, registry):
    image = Image({"noise": NOISE})
    ref = registry.push(image)
    name = image.layers[0]
    registry.faults.append(trickle(name, image.blobs[name], 0.1))
    error = pull.error(ref, "--idle-timeout", "1", code=75)
    assert "as good as nothing" in error["message"]


@pytest.mark.full
def test_silence_is_given_up(pull, registry):
    ref = registry.push(SMALL)
    registry.faults.append(lambda handler: time.sleep(3) or False)
    assert "sent nothing" in pull.error(ref, "--idle-timeout", "1", code=75)["message"]


# --- where it may be led ---

def test_a_redirect_to_a_metadata_service_is_refused(pull, registry):
    ref = registry.push(SMALL)
    for place in ("169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "2852039166"):
        registry.faults[:] = [reply("/blobs/", 307, Location=f"http://{place}/latest/meta-data")]
        error = pull.error(ref, code=77)
        assert "no address that may be asked" in error["message"]


def test_a_token_server_at_a_metadata_service_is_refused(pull, registry):
    ref = registry.push(SMALL)
    registry.faults.append(reply("/manifests/", 401, WWW_Authenticate='Bearer realm="http://169.254.169.254/token"'))
    assert "no address that may be asked" in pull.error(ref, code=77)["message"]


def test_a_redirect_to_another_host_gets_no_credentials(pull, registry, folder):
    with Registry() as storage:
        ref = registry.push(SMALL)
        storage.blobs.update(SMALL.blobs)
        auths = folder / "auth.json"
        auths.write_text(json.dumps({"auths": {registry.address: {"auth": base64.b64encode(b"me:secret").decode()}}}))
        auths.chmod(0o644)

        def fault(handler):
            if not handler.headers.get("Authorization"):
                return handler.answer(401, WWW_Authenticate='Basic realm="x"')
            return "/blobs/" in handler.path and \
                handler.answer(307, Location=f"http://{storage.address}{handler.path}")
        registry.faults.append(fault)
        pull.json(ref, env={"REGISTRY_AUTH_FILE": str(auths)})
        assert storage.asked and not any("Authorization" in headers for _, headers in storage.asked)
        sent = [headers["Authorization"] for path, headers in registry.asked if "/blobs/" in path]
        assert set(sent) == {"Basic " + base64.b64encode(b"me:secret").decode()}


@pytest.mark.full
@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://u:p@127.0.0.1/", ""])
def test_a_redirect_to_no_web_address_is_refused(pull, registry, target):
    ref = registry.push(SMALL)
    registry.faults.append(reply("/blobs/", 307, Location=target))
    done = pull(ref, code=125 if not target else 2)
    assert "redirect" in done.stderr
    pull.holds_nothing()


@pytest.mark.full
def test_redirects_in_a_circle_end(pull, registry):
    ref = registry.push(SMALL)
    registry.faults.append(lambda handler: "/blobs/" in handler.path and handler.answer(307, Location=handler.path))
    assert "redirects more than" in pull.error(ref, code=125)["message"]


def test_plain_http_is_for_this_host_alone(pull):
    error = pull.error("registry.example.org/x")
    assert error["field"] == "plain_http" and "--tls-ca" in error["hint"]
    assert pull.error("10.0.0.1:5000/x")["field"] == "plain_http"


# --- who asks ---

def token_server(registry, wanted):
    """The token's flow: /token gives a token for what was asked, and the rest needs it."""
    def fault(handler):
        url = urllib.parse.urlsplit(handler.path)
        if url.path == "/token":
            asked = {name: values[0] for name, values in urllib.parse.parse_qs(url.query).items()}
            registry.tokens.append((asked, handler.headers.get("Authorization")))
            if handler.headers.get("Authorization") != wanted:
                return handler.answer(401)
            return handler.answer(200, json.dumps({"token": "t0ken" + str(len(registry.tokens))}).encode())
        if handler.headers.get("Authorization") != f"Bearer t0ken{len(registry.tokens)}":
            return handler.answer(401, WWW_Authenticate=f'Bearer realm="http://{registry.address}/token",'
                                                        'service="it&self",scope="repository:team/tool:pull"')
        return False
    registry.tokens = []
    registry.faults.append(fault)


def test_a_token_is_fetched_without_credentials(pull, registry):
    ref = registry.push(SMALL)
    token_server(registry, None)
    pull.json(ref)
    assert registry.tokens == [({"scope": "repository:team/tool:pull", "service": "it&self"}, None)]


def test_a_token_is_fetched_with_the_callers_credentials(pull, registry):
    ref = registry.push(SMALL)
    basic = base64.b64encode(b"me:pass word").decode()
    token_server(registry, "Basic " + basic)
    error = pull.error(ref, code=77)
    assert error["kind"] == "forbidden" and "docker login" in error["hint"]
    config = pull.cupel.home / ".docker/config.json"
    config.parent.mkdir(exist_ok=True)
    try:
        config.write_text(json.dumps({"auths": {registry.address: {"auth": basic}}}))
        pull.json(ref)
    finally:
        config.unlink()


@pytest.mark.full
def test_a_token_that_expires_is_fetched_again(pull, registry):
    ref = registry.push(SMALL)
    token_server(registry, None)

    def expire(handler):
        if "/blobs/" in handler.path and len(registry.tokens) == 1:
            registry.tokens.append(({}, None))  # the registry now wants another token
        return False
    registry.faults.insert(0, expire)
    pull.json(ref)
    assert len(registry.tokens) == 3


@pytest.mark.full
@pytest.mark.parametrize("answer", [b"", b"{}", b'{"token": "a\\r\\nb"}', b'{"token": 7}', b"[" * 1000,
                                    json.dumps({"token": "x" * 20000}).encode(), b"x" * 200_000])
def test_a_token_that_is_none_is_refused(pull, registry, answer):
    ref = registry.push(SMALL)
    registry.faults.append(reply("/token", 200, answer))
    registry.faults.append(reply("/manifests/", 401,
                                 WWW_Authenticate=f'Bearer realm="http://{registry.address}/token"'))
    assert "token" in pull.error(ref)["message"]


@pytest.mark.full
def test_a_credential_helper_is_not_started(pull, registry, folder):
    auths = folder / "auth.json"
    auths.write_text(json.dumps({"credHelpers": {registry.address: "x"}}))
    auths.chmod(0o644)
    error = pull.error(registry.push(SMALL), env={"REGISTRY_AUTH_FILE": str(auths)})
    assert "credential helper" in error["message"] and "REGISTRY_AUTH_FILE" in error["hint"]
    assert not registry.asked


# --- TLS ---

@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """(certificate, key) of 127.0.0.1, signed by itself."""
    made = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", made / "key.pem", "-out", made / "cert.pem", "-days", "2", "-subj", "/CN=cupel tests",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return made / "cert.pem", made / "key.pem"


def test_a_registry_of_an_own_authority_is_trusted_by_tls_ca(pull, authority, folder):
    certificate = folder / "ca.pem"
    shutil.copy(authority[0], certificate)
    certificate.chmod(0o644)
    with Registry(tls=authority) as registry:
        ref = registry.push(SMALL)
        error = pull.error(ref, code=125, plain=False)
        assert "--tls-ca" in error["hint"] and not registry.asked
        assert pull.json(ref, "--tls-ca", certificate, plain=False)["layers"] == 2


@pytest.mark.full
def test_a_redirect_away_from_tls_is_refused(pull, authority, folder):
    certificate = folder / "ca.pem"
    shutil.copy(authority[0], certificate)
    certificate.chmod(0o644)
    with Registry(tls=authority) as registry, Registry() as plain:
        ref = registry.push(SMALL)
        registry.faults.append(reply("/blobs/", 307, Location=f"http://{plain.address}/x"))
        error = pull.error(ref, "--tls-ca", certificate, plain=False, code=77)
        assert "without TLS" in error["message"] and not plain.asked
        registry.faults[:] = [reply("/manifests/", 401, WWW_Authenticate=f'Bearer realm="http://{plain.address}/t"')]
        assert "does not use TLS" in pull.error(ref, "--tls-ca", certificate, plain=False, code=77)["message"]


@pytest.mark.full
def test_a_file_without_certificates_is_refused(pull, folder):
    (folder / "ca.pem").write_text("no")
    assert pull.error("localhost:1/x", "--tls-ca", folder / "ca.pem", plain=False)["field"] == "tls_ca"


# --- ends in the middle ---

def test_a_killed_pull_leaves_nothing_and_the_next_one_works(pull, registry):
    image = Image({"noise": NOISE})
    ref = registry.push(image)
    name = image.layers[0]
    registry.faults.append(once(trickle(name, image.blobs[name], 0.01)))
    child = pull.cupel.popen(["images", "pull", "--plain-http", ref], env=pull.env)
    assert host.wait_until(lambda: registry.paths(name), 10)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert pull.kept("names") == pull.kept("trees") == pull.kept("manifests") == []
    registry.faults.clear()
    assert (pull.tree(pull.json(ref)) / "noise").read_bytes() == NOISE
    assert pull.kept("work") == []


# --- Debian's registry ---

class RealRegistry:
    def __init__(self, folder, tls=None):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        config = {"version": "0.1", "storage": {"filesystem": {"rootdirectory": str(folder / "blobs")}},
                  "http": {"addr": self.address}}
        if tls:
            config["http"]["tls"] = {"certificate": str(tls[0]), "key": str(tls[1])}
        (folder / "registry.yml").write_text(json.dumps(config))
        self.child = subprocess.Popen(["docker-registry", "serve", folder / "registry.yml"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        def listens():
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", int(self.address.rpartition(":")[2]))) == 0
        assert host.wait_until(listens, 10)
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def layout(folder, image):
    """The image as an OCI layout, for skopeo."""
    blobs = folder / "layout/blobs/sha256"
    blobs.mkdir(parents=True)
    for data in [*image.blobs.values(), image.manifest]:
        (blobs / digest(data).removeprefix("sha256:")).write_bytes(data)
    (folder / "layout/oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (folder / "layout/index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": image.type, "digest": digest(image.manifest), "size": len(image.manifest),
         "annotations": {"org.opencontainers.image.ref.name": "1"}}]}))
    return folder / "layout"


@pytest.mark.full
@pytest.mark.parametrize("form", ["oci", "v2s2"])
@pytest.mark.parametrize("tls", [False, True])
def test_debians_registry_gives_what_skopeo_pushed(pull, folder, place, authority, form, tls):
    for program in ("docker-registry", "skopeo"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed: apt-get install {program}")
    image = Image({"bin/tool": b"#!/bin/sh\n"}, {"noise": NOISE})
    home = place.fresh("registry", 0o755)
    certificate = folder / "ca.crt"
    shutil.copy(authority[0], certificate)
    certificate.chmod(0o644)
    with RealRegistry(home, tls=authority if tls else None) as registry:
        ref = f"{registry.address}/team/tool:1"
        subprocess.run(["skopeo", "copy", "-q", "--insecure-policy", f"--format={form}", "--dest-tls-verify=false",
                        f"oci:{layout(home, image)}:1", f"docker://{ref}"], check=True, timeout=60)
        answer = pull.json(ref, *(["--tls-ca", certificate] if tls else []), plain=not tls)
    assert (pull.tree(answer) / "noise").read_bytes() == NOISE
    assert os.access(pull.tree(answer) / "bin/tool", os.X_OK)
    assert layer({}) and answer["layers"] == 2
